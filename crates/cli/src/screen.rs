//! Where messages for the user go: lines on standard error, and bars at the bottom of a terminal.
//!
//! Every line is an event for the live views as well. While a view has the terminal, lines wait.

pub(crate) mod figures;
pub(crate) mod labels;
pub(crate) mod layout;
pub(crate) mod notices;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod qr;
pub(crate) mod report;
pub(crate) mod shares;
pub(crate) mod sheet;

use std::collections::VecDeque;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use manypath_live::Live;

use crate::args::ReportArgs;
use manypath_files::relative::printable;

/// Lines that wait for a view to leave the terminal; the oldest go first.
const WAITING_MAX: usize = 200;
/// Columns of a bar, at least; where there is less room there is only text.
const BAR_MIN: usize = 6;
/// Columns of a bar, at most.
const BAR_MAX: usize = 24;
/// Columns before the second line of a text that a terminal has no room for.
const INDENT: usize = 2;
/// Columns that the time of an event takes.
const INDENT_AT: usize = 10;

/// Where messages for the user go. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    to: To,
    is_verbose: bool,
    live: Arc<OnceLock<Live>>,
    /// The lines that wait, while a view has the terminal.
    waiting: Arc<Mutex<Option<VecDeque<Line>>>>,
}

/// A text for the user.
#[derive(Clone, Debug)]
struct Line {
    text: String,
    /// Columns before what a terminal has no room for on the first line.
    indent: usize,
}

#[derive(Clone, Debug)]
enum To {
    /// Nowhere: `--quiet`.
    Nobody,
    /// Lines on standard error: not a terminal, or `--json`.
    Lines,
    /// Lines above the bars on a terminal.
    Bars(MultiProgress),
}

impl Screen {
    /// The screen that the user asked for.
    pub(crate) fn new(report: &ReportArgs) -> Screen {
        let to = if report.quiet {
            To::Nobody
        } else if report.json || !std::io::stderr().is_terminal() {
            To::Lines
        } else {
            To::Bars(MultiProgress::with_draw_target(ProgressDrawTarget::stderr()))
        };
        let is_verbose = report.verbose > 0;
        Screen { to, is_verbose, live: Arc::default(), waiting: Arc::default() }
    }

    /// True with `-v`.
    pub(crate) fn is_verbose(&self) -> bool {
        self.is_verbose
    }

    /// The columns of a line: those of the terminal, or as many as are easily read in a file.
    pub(crate) fn columns(&self) -> usize {
        match self.to {
            To::Bars(_) => layout::columns(),
            To::Lines | To::Nobody => layout::WITHOUT_TERMINAL,
        }
    }

    /// True with `--quiet`.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self.to, To::Nobody)
    }

    /// True if it has lines and no bars.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.to, To::Lines)
    }

    /// True if it has bars.
    pub(crate) fn has_bars(&self) -> bool {
        matches!(self.to, To::Bars(_))
    }

    /// Makes every line from now on an event of the live views.
    pub(crate) fn note_in(&self, live: &Live) {
        let _ = self.live.set(live.clone());
    }

    /// The live views' figures, if this command has them.
    pub(crate) fn live(&self) -> Option<&Live> {
        self.live.get()
    }

    /// Tells the user of an event. Whatever it contains, a terminal obeys none of it.
    pub(crate) fn line(&self, text: &str) {
        self.note(text);
        self.say(text, INDENT);
    }

    /// Like [`line`](Self::line), for an event of an association: `at_s` seconds after it was
    /// established.
    pub(crate) fn line_at(&self, at_s: f64, text: &str) {
        // The views have a clock of their own.
        self.note(text);
        self.say(&format!("{at_s:6.1} s  {text}"), INDENT_AT);
    }

    fn note(&self, text: &str) {
        if let Some(live) = self.live.get() {
            live.note(&shown(text));
        }
    }

    fn say(&self, text: &str, indent: usize) {
        let line = Line { text: text.to_owned(), indent };
        if let Some(waiting) = self.waiting().as_mut() {
            if waiting.len() == WAITING_MAX {
                waiting.pop_front();
            }
            waiting.push_back(line);
            return;
        }
        self.write(&line);
    }

    /// Tells the user figures that the live views show in their own way.
    pub(crate) fn figures(&self, text: &str) {
        if self.waiting().is_none() {
            self.write(&Line { text: text.to_owned(), indent: INDENT_AT });
        }
    }

    fn write(&self, line: &Line) {
        let text = shown(&line.text);
        match &self.to {
            To::Nobody => {}
            To::Lines => eprintln!("{text}"),
            To::Bars(bars) => {
                let text = layout::wrapped(&text, layout::columns(), line.indent);
                // A terminal that went away loses messages, nothing else.
                bars.suspend(|| drop(writeln!(std::io::stderr(), "{text}")));
            }
        }
    }

    /// A line at the bottom that the caller rewrites; hidden where there are no bars.
    pub(crate) fn bar(&self, total: Option<u64>) -> ProgressBar {
        let To::Bars(bars) = &self.to else { return ProgressBar::hidden() };
        let bar = match total {
            Some(total) => ProgressBar::new(total.max(1)),
            None => ProgressBar::no_length(),
        };
        bars.add(bar.with_style(style("{msg}")))
    }

    /// Sets the text of a line of [`Screen::bar`]; its bar has the columns that the text leaves.
    pub(crate) fn set_bar(&self, bar: &ProgressBar, text: &str) {
        let columns = self.columns() - 1;
        let text = layout::shortened(text, columns);
        if bar.length().is_some() {
            bar.set_style(match columns.saturating_sub(layout::width(&text) + 1).min(BAR_MAX) {
                0..BAR_MIN => style("{msg}"),
                room => style(&format!("{{bar:{room}}} {{msg}}")),
            });
        }
        bar.set_message(text);
    }

    /// Takes a line of [`Screen::bar`] off the terminal.
    pub(crate) fn remove_bar(&self, bar: &ProgressBar) {
        bar.finish_and_clear();
        if let To::Bars(bars) = &self.to {
            bars.remove(bar);
        }
    }

    /// Leaves the terminal to a view.
    pub(crate) fn leave(&self) {
        self.waiting().get_or_insert_default();
        if let To::Bars(bars) = &self.to {
            bars.set_draw_target(ProgressDrawTarget::hidden());
        }
    }

    /// Returns to the terminal, and writes what was to be said meanwhile.
    pub(crate) fn come_back(&self) {
        let Some(lines) = self.waiting().take() else { return };
        if let To::Bars(bars) = &self.to {
            bars.set_draw_target(ProgressDrawTarget::stderr());
        }
        lines.iter().for_each(|line| self.write(line));
    }

    fn waiting(&self) -> MutexGuard<'_, Option<VecDeque<Line>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `text` as lines, with whatever is not plain text escaped: parts of it may come from the network.
pub(crate) fn shown(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

/// `text` as lines for standard error, in the columns of its terminal if it is one.
pub(crate) fn fitted(text: &str) -> String {
    let text = shown(text);
    if std::io::stderr().is_terminal() {
        layout::wrapped(&text, layout::columns(), INDENT)
    } else {
        text
    }
}

fn style(template: &str) -> ProgressStyle {
    // All templates are in this file.
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("█▓░")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_kept_and_what_a_terminal_obeys_is_not() {
        assert_eq!(shown("a\n  try: \x1b]0;x\x07b"), "a\n  try: \\u{1b}]0;x\\u{7}b");
    }

    #[test]
    fn lines_wait_while_a_view_has_the_terminal() {
        let report = ReportArgs { json: false, quiet: true, verbose: 0 };
        let screen = Screen::new(&report);
        screen.leave();
        (0..300).for_each(|n| screen.line(&n.to_string()));
        screen.figures("1 Mbit/s");
        let waiting = screen.waiting().clone().unwrap();
        assert_eq!((waiting.len(), waiting[0].text.as_str()), (WAITING_MAX, "100"));
        screen.come_back();
        assert!(screen.waiting().is_none());
    }
}
