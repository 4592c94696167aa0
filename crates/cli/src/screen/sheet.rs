//! Tables and texts that fit the terminal.

use std::io::IsTerminal;

use comfy_table::{
    CellAlignment, ContentArrangement, LineStyle, Table, presets::UTF8_HORIZONTAL_ONLY,
};
use console::Term;
use textwrap::core::{Word, display_width};
use textwrap::{Options, WordSeparator, WordSplitter};

/// Narrowest and widest lines; what the environment says may be anything.
const COLUMNS: std::ops::RangeInclusive<usize> = 40..=500;
/// Columns between two columns of a table.
const GAP: usize = 2;
/// Most lines of a row. A table that needs more is no table any more, so it becomes records.
const TALLEST: usize = 4;
/// Widest names of a record's values.
const NAME: usize = 24;

/// Columns of a line on standard output: those of the terminal, and no more than `COLUMNS` says.
/// Without either it is `None`: other programs read on, and get a row in one line.
pub(crate) fn columns() -> Option<usize> {
    let stated = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
    let stated = stated.filter(|columns| *columns > 0);
    let terminal = || Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
    let seen = std::io::stdout().is_terminal().then(terminal).flatten();
    let least = stated.into_iter().chain(seen).min();
    least.map(|columns| columns.clamp(*COLUMNS.start(), *COLUMNS.end()))
}

/// The text with lines that fit: each is continued with its indentation and `hang` columns more.
pub(crate) fn wrapped(text: &str, columns: Option<usize>, hang: usize) -> String {
    let Some(columns) = columns else { return text.to_owned() };
    let wrap = |line: &str| {
        let content = line.trim_start();
        let indent = &line[..line.len() - content.len()];
        wrapped_after(indent, content, Some(columns), indent.len() + hang)
    };
    text.split('\n').map(wrap).collect::<Vec<_>>().join("\n")
}

fn wrapped_after(lead: &str, text: &str, columns: Option<usize>, indent: usize) -> String {
    let whole = format!("{lead}{text}");
    let Some(columns) = columns.filter(|columns| display_width(&whole) > *columns) else {
        return whole;
    };
    let indent = " ".repeat(indent);
    let options = Options::new(columns)
        .initial_indent(lead)
        .subsequent_indent(&indent)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .break_words(false);
    textwrap::fill(text, options)
}

/// The text beside `lead`, which its first line begins with; further lines begin below its first.
pub(crate) fn beside(lead: &str, text: &str, columns: Option<usize>) -> String {
    wrapped_after(lead, text, columns, display_width(lead))
}

/// A table for a person. Where it is too wide, long cells take several lines; where that does not
/// help, each row becomes a record, a line for each value.
#[derive(Clone, Debug)]
pub(crate) struct Sheet {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    numbers_from: usize,
    tallest: usize,
}

impl Sheet {
    /// A table without rows, with these names of its columns.
    pub(crate) fn new<T: Into<String>>(header: impl IntoIterator<Item = T>) -> Sheet {
        let header: Vec<String> = header.into_iter().map(Into::into).collect();
        Sheet { numbers_from: header.len(), tallest: TALLEST, header, rows: Vec::new() }
    }

    /// Aligns columns from this one on, counted from 0, as numbers.
    pub(crate) fn numbers_from(mut self, column: usize) -> Sheet {
        self.numbers_from = column;
        self
    }

    /// Adds a row.
    pub(crate) fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cells = cells.into_iter().map(Into::into);
        let missing = std::iter::repeat(String::new());
        self.rows.push(cells.chain(missing).take(self.header.len()).collect());
    }

    /// Lets rows have any number of lines.
    pub(crate) fn tall(mut self) -> Sheet {
        self.tallest = usize::MAX;
        self
    }

    /// Columns that it takes if no cell is folded.
    pub(crate) fn width(&self) -> usize {
        total(&self.natural())
    }

    fn natural(&self) -> Vec<usize> {
        let width = |cell: &str| cell.lines().map(display_width).max().unwrap_or(0);
        self.widths(width, width)
    }

    /// The table with its last line end, in lines of at most `columns` if there is a limit.
    pub(crate) fn text(&self, columns: Option<usize>) -> String {
        let natural = self.natural();
        let Some(columns) = columns else { return self.drawn(&natural) };
        if total(&natural) <= columns {
            return self.drawn(&natural);
        }
        let least = self.widths(longest_word, longest_part);
        if total(&least) > columns {
            return self.records(Some(columns)) + "\n";
        }
        let widths = shared_out(&least, &natural, columns - total(&least));
        let tallest = self.rows.iter().flat_map(|row| row.iter().zip(&widths));
        match tallest.map(|(cell, width)| folded(cell, *width, words).len()).max() {
            Some(lines) if lines > self.tallest => self.records(Some(columns)) + "\n",
            _ => self.drawn(&widths),
        }
    }

    /// For each column the most of what `of_cell` says of its cells and `of_name` of its name.
    fn widths(
        &self,
        of_cell: impl Fn(&str) -> usize,
        of_name: impl Fn(&str) -> usize,
    ) -> Vec<usize> {
        let most = |(column, name): (usize, &String)| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| of_cell(cell)).chain([of_name(name)]).max().unwrap_or(0)
        };
        self.header.iter().enumerate().map(most).collect()
    }

    fn drawn(&self, widths: &[usize]) -> String {
        let fold = |row: &[String], parts: Parts| -> Vec<String> {
            let cells = row.iter().zip(widths);
            cells.map(|(cell, width)| folded(cell, *width, parts).join("\n")).collect()
        };
        let rows: Vec<_> = self.rows.iter().map(|row| fold(row, words)).collect();
        // A row whose last cell alone goes on below can be told from the next by its other cells.
        let is_tall = |row: &Vec<String>| row.iter().rev().skip(1).any(|cell| cell.contains('\n'));
        let mut style = UTF8_HORIZONTAL_ONLY;
        if !rows.iter().any(is_tall) {
            style = style.row_separator(LineStyle::none());
        }
        let mut table = Table::new();
        table.load_style(style).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(fold(&self.header, name_parts));
        table.add_rows(rows);
        for (number, column) in table.column_iter_mut().enumerate() {
            // The table puts one more column between two columns.
            column.set_padding((if number == 0 { 0 } else { GAP as u16 - 1 }, 0));
            if number >= self.numbers_from {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.trim_fmt() + "\n"
    }

    /// Each row as lines of names and values, with an empty line between two rows; values without
    /// text are left out.
    pub(crate) fn records(&self, columns: Option<usize>) -> String {
        let columns = columns.unwrap_or(usize::MAX);
        let names: Vec<String> = self.header.iter().map(|name| name.replace('\n', " ")).collect();
        let width = names.iter().map(|name| display_width(name)).max().unwrap_or(0);
        let width = width.min(NAME).min(columns / 2);
        let mut text = String::new();
        for row in &self.rows {
            if !text.is_empty() {
                text.push('\n');
            }
            for (name, cell) in names.iter().zip(row).filter(|(_, cell)| !cell.is_empty()) {
                let name = folded(name, width, name_parts);
                let value = folded(cell, columns - width - GAP, words);
                for line in 0..name.len().max(value.len()) {
                    let part = |of: &[String]| of.get(line).cloned().unwrap_or_default();
                    let (name, value) = (part(&name), part(&value));
                    let gap = " ".repeat(width.saturating_sub(display_width(&name)) + GAP);
                    text += format!("{name}{gap}{value}").trim_end();
                    text.push('\n');
                }
            }
        }
        text
    }
}

/// Gives each column its least width, and the rest to those that lack least, then shares.
fn shared_out(least: &[usize], natural: &[usize], mut rest: usize) -> Vec<usize> {
    let mut widths = least.to_vec();
    let lack = |column: usize| natural[column].saturating_sub(least[column]);
    let mut lacking: Vec<usize> = (0..least.len()).filter(|column| lack(*column) > 0).collect();
    lacking.sort_by_key(|column| lack(*column));
    for (done, column) in lacking.iter().enumerate() {
        let given = lack(*column).min(rest / (lacking.len() - done));
        widths[*column] += given;
        rest -= given;
    }
    widths
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Divides a line into parts that stay together.
type Parts = fn(&str) -> Box<dyn Iterator<Item = Word<'_>> + '_>;

fn folded(cell: &str, width: usize, parts: Parts) -> Vec<String> {
    let options = Options::new(width.max(1))
        .word_separator(WordSeparator::Custom(parts))
        .word_splitter(WordSplitter::NoHyphenation);
    let fold = |line| textwrap::wrap(line, &options).into_iter().map(|part| part.into_owned());
    cell.lines().flat_map(fold).collect()
}

fn longest_word(cell: &str) -> usize {
    longest(cell, words)
}

fn longest_part(name: &str) -> usize {
    longest(name, name_parts)
}

fn longest(text: &str, parts: Parts) -> usize {
    text.lines().flat_map(parts).map(|part| display_width(&part)).max().unwrap_or(0)
}

/// The words of a line; a number stays with its sign or tolerance, as in `4.6 ± 0.5`.
fn words(line: &str) -> Box<dyn Iterator<Item = Word<'_>> + '_> {
    let mut words = Vec::new();
    let (mut begin, mut end) = (0, 0);
    let mut glue = true;
    for word in WordSeparator::AsciiSpace.find_words(line) {
        if !glue && !matches!(word.word, "±" | "%") {
            words.push(Word::from(&line[begin..end]));
            begin = end;
        }
        end += word.word.len() + word.whitespace.len();
        glue = matches!(word.word, "±" | "Fig." | "Table" | "Section");
    }
    words.push(Word::from(&line[begin..end]));
    Box::new(words.into_iter())
}

/// The words of a column's name, and what `path.wifi.loss` has between its dots.
fn name_parts(line: &str) -> Box<dyn Iterator<Item = Word<'_>> + '_> {
    Box::new(WordSeparator::AsciiSpace.find_words(line).flat_map(parted))
}

fn parted(word: Word<'_>) -> Vec<Word<'_>> {
    let is_break = |(at, _): &(usize, &str)| {
        *at > 0 && word.word[at + 1..].starts_with(|next: char| next.is_ascii_lowercase())
    };
    let (mut parts, mut begin) = (Vec::new(), 0);
    for (at, _) in word.word.match_indices('.').filter(is_break) {
        parts.push(Word::from(&word.word[begin..=at]));
        begin = at + 1;
    }
    let mut last = Word::from(&word.word[begin..]);
    last.whitespace = word.whitespace;
    parts.push(last);
    parts
}

#[cfg(test)]
mod tests;
