use super::*;
use crate::report::figure::{Axis, Mark, Point};

fn axis(label: &str, unit: &str, categories: &[&str]) -> Axis {
    Axis {
        label: label.to_owned(),
        unit: unit.to_owned(),
        log: false,
        zero: true,
        categories: categories.iter().map(|&text| text.to_owned()).collect(),
    }
}

fn line(name: &str, slot: usize, points: &[(f64, f64)]) -> Line {
    let points = points.iter().map(|&(x, y)| Point { x, y, ci: 0.0, n: 1 }).collect();
    Line { name: name.to_owned(), slot, reference: false, points }
}

fn figure(kind: Shape, x: Axis, lines: Vec<Line>) -> Figure {
    let panel = Panel { title: String::new(), lines, stated: Vec::<Mark>::new() };
    let view = View { variant: "scenario".into(), name: String::new(), panels: vec![panel] };
    Figure {
        id: "made".into(),
        title: "A figure".into(),
        caption: String::new(),
        kind,
        x,
        y: axis("Time", "s", &[]),
        views: vec![view],
    }
}

const PLAIN: Style = Style { columns: 60, colours: false };

/// Row and column of a letter, from the first row of the plot on.
fn place(text: &str, letter: char) -> Vec<(usize, usize)> {
    let rows = text.lines().skip(2).take(usize::from(ROWS));
    let found = rows.enumerate().flat_map(|(row, line)| {
        let letters = line.chars().enumerate().filter(move |(_, c)| *c == letter);
        letters.map(move |(column, _)| (row, column))
    });
    found.collect()
}

#[test]
fn a_rising_and_a_falling_line_cross() {
    let lines = vec![
        line("up", 0, &[(0.0, 0.0), (10.0, 5.0)]),
        line("down", 1, &[(0.0, 5.0), (10.0, 0.0)]),
    ];
    let text = draw(&figure(Shape::Lines, axis("Loss", "%", &[]), lines), PLAIN);
    let (up, down) = (place(&text, 'a'), place(&text, 'b'));
    let ([(up_right, right), (up_left, left)], [(down_left, _), (down_right, _)]) =
        (&up[..], &down[..])
    else {
        panic!("{text}")
    };
    assert!(up_right < up_left && left < right && down_left < down_right, "{text}");
    assert!(text.contains("Time [s]") && text.contains("Loss [%]"), "{text}");
    assert!(text.contains("a up") && text.contains("b down"), "{text}");
    assert!(text.chars().any(|c| ('\u{2801}'..='\u{28ff}').contains(&c)), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
}

#[test]
fn bars_of_a_group_stand_beside_each_other() {
    let lines = vec![line("one", 0, &[(0.0, 2.0), (1.0, 4.0)]), line("two", 1, &[(0.0, 2.0)])];
    let text = draw(&figure(Shape::Bars, axis("System", "", &["cmt", "pf"]), lines), PLAIN);
    let (one, two) = (place(&text, 'a'), place(&text, 'b'));
    assert_eq!((one.len(), two.len()), (2, 1), "{text}");
    let low = one.iter().max().unwrap();
    assert!(low.0 == two[0].0 && low.1 < two[0].1, "{text}");
    assert!(text.contains("cmt") && text.contains("pf"), "{text}");
}

#[test]
fn colours_are_closed_again() {
    let lines = vec![line("up", 0, &[(0.0, 0.0), (10.0, 5.0)])];
    let text = draw(
        &figure(Shape::Lines, axis("Loss", "%", &[]), lines),
        Style { colours: true, ..PLAIN },
    );
    assert!(text.contains("\x1b[38;5;33m"), "{text:?}");
    for line in text.lines().filter(|line| line.contains("\x1b[38")) {
        assert!(line.ends_with("\x1b[39m") || !line.trim_end().ends_with('a'), "{line:?}");
    }
}

#[test]
fn any_size_of_terminal_and_no_points_at_all_are_drawn() {
    for columns in [0, 1, 39, 40, 5000] {
        let lines = vec![line("up", 7, &[(1e-9, 1e9), (1e9, -1e9)]), line("none", 3, &[])];
        let figure = figure(Shape::Scatter, axis("Loss", "", &[]), lines);
        assert!(draw(&figure, Style { columns, colours: false }).contains("a up"));
    }
    let mut empty = figure(Shape::Time, axis("Time", "s", &[]), vec![]);
    empty.views.clear();
    assert!(draw(&empty, PLAIN).contains("run the experiment"));
}
