use super::*;

fn sheet() -> Sheet {
    let mut sheet = Sheet::new(["transport.preset", "runs", "time [s]", "what"]).numbers_from(1);
    sheet.row(["cmt", "3", "76.8 ± 0.1", "a path fails for good"]);
    sheet.row(["cmt-pf", "12", "13.7 ± 12.5", "it returns"]);
    sheet
}

fn widest(text: &str) -> usize {
    text.lines().map(display_width).max().unwrap_or(0)
}

#[test]
fn a_table_that_fits_has_a_line_for_each_row() {
    let text = sheet().text(None);
    assert_eq!(text, sheet().text(Some(80)));
    assert_eq!(text.lines().count(), 6, "{text}");
    assert_eq!(widest(&text), sheet().width());
    let lines: Vec<&str> = text.lines().collect();
    let widths: Vec<usize> = [0, 2, 5].iter().map(|line| display_width(lines[*line])).collect();
    assert_eq!(widths, [sheet().width(); 3], "{text}");
    assert_eq!(lines[4], "cmt-pf              12  13.7 ± 12.5             it returns");
}

#[test]
fn a_table_that_is_too_wide_breaks_names_at_dots_and_no_number_from_its_tolerance() {
    for columns in 44..sheet().width() {
        let text = sheet().text(Some(columns));
        assert!(widest(&text) <= columns, "{columns} columns:\n{text}");
        assert!(text.contains("76.8 ± 0.1"), "{text}");
    }
    let text = sheet().text(Some(46));
    assert!(text.contains("transport.") && !text.contains("transport.preset"), "{text}");
}

#[test]
fn rows_become_records_where_no_table_fits() {
    let text = sheet().text(Some(30));
    assert_eq!(
        text.split_once("\n\n").unwrap().0,
        "transport.       cmt\npreset\nruns             3\ntime [s]         76.8 ± 0.1\n\
         what             a path fails\n                 for good"
    );
    let mut long = Sheet::new(["claim", "says"]);
    long.row(["one", &"many words ".repeat(40)]);
    assert!(long.text(Some(60)).starts_with("claim  one\nsays   many words"));
    assert!(long.clone().tall().text(Some(60)).starts_with('─'));
}

#[test]
fn records_leave_out_what_is_empty_and_have_no_limit_elsewhere() {
    let mut sheet = Sheet::new(["claim", "reference", "says"]);
    sheet.row(["one", "", &"word ".repeat(50)]);
    let text = sheet.records(None);
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(!text.contains("reference"));
}

#[test]
fn rows_with_several_lines_are_told_apart() {
    let mut first = Sheet::new(["a", "b"]);
    first.row(["one two three four", "x"]);
    first.row(["five six seven eight", "y"]);
    assert_eq!(first.text(Some(16)).matches("────").count() / 4, 3, "{}", first.text(Some(16)));
    let mut last = Sheet::new(["a", "b"]);
    last.row(["x", "one two three four"]);
    last.row(["y", "five six seven eight"]);
    let rules = last.text(Some(16)).lines().filter(|line| line.starts_with('─')).count();
    assert_eq!(rules, 2, "{}", last.text(Some(16)));
}

#[test]
fn a_table_without_rows_is_its_names() {
    assert!(Sheet::new(["path", "via"]).text(Some(40)).contains("path  via"));
    assert_eq!(Sheet::new(["path", "via"]).records(Some(40)), "");
}

#[test]
fn text_is_continued_below_its_own_indentation() {
    let text = "short\n    one two three four\n";
    assert_eq!(wrapped(text, None, 2), text);
    assert_eq!(wrapped(text, Some(18), 2), "short\n    one two three\n      four\n");
    assert_eq!(beside("lead  ", "one two three", Some(14)), "lead  one two\n      three");
    // Nothing is broken inside a word: an address or a command can be copied.
    assert_eq!(
        wrapped("see https://example.org/long", Some(12), 0),
        "see\nhttps://example.org/long"
    );
}

proptest::proptest! {
    #[test]
    fn whatever_it_contains_a_table_fits(
        rows in proptest::collection::vec(proptest::collection::vec("[a-z±%. \u{e9}\u{6f22}]{0,60}", 5), 0..6),
        columns in 40_usize..200,
    ) {
        let mut sheet = Sheet::new(["id", "path.wifi.loss", "time [s]", "b", "what is said"]).numbers_from(3);
        rows.iter().for_each(|row| sheet.row(row));
        for text in [sheet.text(Some(columns)), sheet.records(Some(columns))] {
            proptest::prop_assert!(widest(&text) <= columns, "{columns}:\n{text}");
        }
    }
}
