//! Where messages for the user go: lines on standard error, and bars at the bottom of a terminal.

use std::io::IsTerminal;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::ReportArgs;
use crate::transfer::relative::printable;

/// Where messages for the user go.
#[derive(Clone, Debug)]
pub(crate) enum Screen {
    /// Nowhere: `--quiet`.
    Silent,
    /// Lines on standard error: not a terminal, or `--json`.
    Plain,
    /// Lines above the bars on a terminal.
    Bars(MultiProgress),
}

impl Screen {
    /// The screen that the user asked for.
    pub(crate) fn new(report: &ReportArgs) -> Screen {
        if report.quiet {
            Screen::Silent
        } else if report.json || !std::io::stderr().is_terminal() {
            Screen::Plain
        } else {
            Screen::Bars(MultiProgress::with_draw_target(ProgressDrawTarget::stderr()))
        }
    }

    /// Tells the user something. Whatever it contains, a terminal obeys none of it.
    pub(crate) fn line(&self, text: &str) {
        let text = &shown(text);
        match self {
            Screen::Silent => {}
            Screen::Plain => eprintln!("{text}"),
            // A terminal that went away loses messages, nothing else.
            Screen::Bars(bars) => drop(bars.println(text)),
        }
    }

    /// A line at the bottom that the caller rewrites; hidden where there are no bars.
    pub(crate) fn bar(&self, total: Option<u64>) -> ProgressBar {
        let Screen::Bars(bars) = self else { return ProgressBar::hidden() };
        let bar = match total {
            Some(total) => ProgressBar::new(total.max(1)).with_style(style("{bar:24} {msg}")),
            None => ProgressBar::no_length().with_style(style("{msg}")),
        };
        bars.add(bar)
    }
}

/// `text` as lines, with whatever is not plain text escaped: parts of it may come from the network.
pub(crate) fn shown(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

fn style(template: &str) -> ProgressStyle {
    // The templates are constants of this file.
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
}
