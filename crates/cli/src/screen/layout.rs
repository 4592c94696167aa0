//! Text that fits the width of a terminal.

use textwrap::core::display_width;
use textwrap::{Options, WordSplitter};

/// Columns of text that goes to a file or to another program.
pub(crate) const WITHOUT_TERMINAL: usize = 100;
/// Rows of a terminal that does not say how many it has.
const ROWS: usize = 24;
/// Columns of the narrowest terminal that text is fitted to.
const NARROWEST: usize = 20;

/// The columns of the terminal at standard error, or [`WITHOUT_TERMINAL`].
pub(crate) fn columns() -> usize {
    columns_of(&console::Term::stderr())
}

/// The columns of the terminal at standard output, or [`WITHOUT_TERMINAL`].
pub(crate) fn columns_of_output() -> usize {
    columns_of(&console::Term::stdout())
}

/// The rows of the terminal at standard error.
pub(crate) fn rows() -> usize {
    console::Term::stderr().size_checked().map_or(ROWS, |(rows, _)| rows.into())
}

fn columns_of(terminal: &console::Term) -> usize {
    let size = if terminal.is_term() { terminal.size_checked() } else { None };
    size.map_or(WITHOUT_TERMINAL, |(_, columns)| usize::from(columns).max(NARROWEST))
}

/// The columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    display_width(text)
}

/// `text` with lines of at most `columns`, broken between words; what follows a break begins with
/// `indent` spaces. A word that is longer stays whole, so that it can be copied.
pub(crate) fn wrapped(text: &str, columns: usize, indent: usize) -> String {
    let indent = " ".repeat(indent.min(columns / 2));
    let options = Options::new(columns)
        .subsequent_indent(&indent)
        .break_words(false)
        .word_splitter(WordSplitter::NoHyphenation);
    let line = |line: &str| {
        if width(line) > columns {
            textwrap::fill(&with_units(line), &options).replace(GLUE, " ")
        } else {
            line.to_owned()
        }
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// A space at which no line breaks.
const GLUE: char = '\u{a0}';

/// `line` with numbers glued to their units.
fn with_units(line: &str) -> String {
    let mut before = ' ';
    let mut rest = line.chars().peekable();
    let mut out = String::with_capacity(line.len());
    while let Some(c) = rest.next() {
        let is_unit = |next: &char| next.is_ascii_alphabetic() || *next == '%';
        let glues = c == ' ' && before.is_ascii_digit() && rest.peek().is_some_and(is_unit);
        out.push(if glues { GLUE } else { c });
        before = c;
    }
    out
}

/// `text` in at most `columns`. If it is longer the middle goes: names differ at their beginnings
/// and at their ends.
pub(crate) fn shortened(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(1);
    let head = taken(text.chars(), room.div_ceil(2));
    let tail = taken(text.chars().rev(), room - width(&head).min(room));
    head + "…" + &tail.chars().rev().collect::<String>()
}

/// The first characters that `columns` have room for.
fn taken(characters: impl Iterator<Item = char>, columns: usize) -> String {
    let mut out = String::new();
    for c in characters {
        out.push(c);
        if width(&out) > columns {
            out.pop();
            break;
        }
    }
    out
}

/// `text` in exactly `columns`, shortened or with spaces behind it.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    let text = shortened(text, columns);
    let spaces = columns.saturating_sub(width(&text));
    text + &" ".repeat(spaces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_long_words_stay_whole() {
        let text = "   1.0 s  path 1 (wlan0) is potentially failed\nshort";
        let expected = "   1.0 s  path 1 (wlan0) is\n          potentially failed\nshort";
        assert_eq!(wrapped(text, 30, 10), expected);
        assert_eq!(wrapped("ticket: abcdefghijklmnop", 10, 2), "ticket:\n  abcdefghijklmnop");
        assert_eq!(wrapped("", 10, 2), "");
        let shares = "  wlan0 145.2 MB (73 %), lte0 54.8 MB (27 %)";
        assert_eq!(wrapped(shares, 41, 2), "  wlan0 145.2 MB (73 %), lte0 54.8 MB\n  (27 %)");
    }

    #[test]
    fn names_lose_their_middle_and_keep_their_ends() {
        assert_eq!(shortened("holiday-photo-0001.jpeg", 23), "holiday-photo-0001.jpeg");
        assert_eq!(shortened("holiday-photo-0001.jpeg", 15), "holiday…01.jpeg");
        assert_eq!(shortened("写真写真写真写真.jpg", 11), "写真…真.jpg");
        for columns in 0..12 {
            assert!(width(&shortened("写真 a long name 写真", columns)) <= columns.max(1));
        }
        assert_eq!(padded("wlan0", 8), "wlan0   ");
        assert_eq!(padded("写真", 5), "写真 ");
    }
}
