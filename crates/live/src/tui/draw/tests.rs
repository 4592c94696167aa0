//! Boards drawn at several sizes; `UPDATE_GOLDEN=1` writes the expected drawings.

use std::path::PathBuf;

use ratatui_core::backend::TestBackend;
use ratatui_core::terminal::Terminal;

use super::*;
use crate::figures::Happened;
use crate::tui::board::{Deed, Key};

/// A process that sends 30 Mbit/s on its first path and less on each other, for a minute.
fn process(paths: u16) -> Process {
    let path = |n: u16| PathFigures {
        path: n,
        interface: (n == 1).then(|| "eth0".to_owned()),
        local: format!("192.0.2.{n}:40000"),
        remote: "198.51.100.7:9899".to_owned(),
        state: "active".to_owned(),
        rank: "normal".to_owned(),
        up_bps: 30e6 / f64::from(n),
        down_bps: 52_000.0,
        srtt_s: Some(0.0405 * f64::from(n)),
        loss: Some(0.001),
        cwnd_bytes: 150_000,
        flight_bytes: 90_000,
        samples: (1..=600)
            .map(|step| Sample {
                at_ms: step * 100,
                // An outage of the second path from the twentieth to the fortieth second.
                up_bps: match (n, step) {
                    (2, 200..400) => 0.0,
                    _ => 30e6 / f64::from(n),
                },
                ..Sample::default()
            })
            .collect(),
        ..PathFigures::default()
    };
    let association = AssociationFigures {
        association: 1,
        peer: "198.51.100.7:9899".to_owned(),
        encrypted: true,
        total_bytes: Some(1_000_000_000),
        done_bytes: 250_000_000,
        acked_bytes: 250_000_000,
        up_bps: 45e6,
        paths: (1..=paths).map(path).collect(),
        ..AssociationFigures::default()
    };
    let event = |number, at_ms, text: &str| Happened { number, at_ms, text: text.to_owned() };
    Process {
        pid: 4711,
        command: "send".to_owned(),
        now_ms: 60_000,
        associations: vec![association],
        events: vec![
            event(0, 20_300, "path 2 (192.0.2.2:40000 - 198.51.100.7:9899) is potentially failed"),
            event(1, 40_100, "path 2 (192.0.2.2:40000 - 198.51.100.7:9899) is active"),
        ],
        ..Process::default()
    }
}

fn board(processes: Vec<Process>) -> Board {
    let mut board = Board::own("Waiting for a sender.".to_owned());
    board.update(processes);
    board
}

fn seen(board: &Board, (width, height): (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(board, Colours::On, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| {
        let cells = (0..width).map(|x| buffer[(x, y)].symbol());
        cells.collect::<String>().trim_end().to_owned() + "\n"
    };
    (0..height).map(line).collect()
}

fn compare(name: &str, board: &Board, size: (u16, u16)) {
    let seen = seen(board, size);
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/tui/draw/golden");
    let file = folder.join(format!("{name}-{}x{}.txt", size.0, size.1));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(&file, &seen).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(seen, expected, "{}", file.display());
}

#[test]
fn two_paths_at_several_sizes() {
    let board = board(vec![process(2)]);
    for size in [(80, 24), (200, 60), (40, 10)] {
        compare("two", &board, size);
    }
}

#[test]
fn sixteen_paths_and_none() {
    for size in [(80, 24), (200, 60)] {
        compare("sixteen", &board(vec![process(16)]), size);
    }
    let mut none = process(0);
    compare("none", &board(vec![none.clone()]), (80, 24));
    none.associations.clear();
    compare("waiting", &board(vec![none]), (80, 24));
}

#[test]
fn several_associations_and_processes() {
    let mut server = process(2);
    server.pid = 4712;
    server.command = "perf server".to_owned();
    let mut second = server.associations[0].clone();
    (second.association, second.total_bytes) = (2, None);
    second.peer = "203.0.113.5:2000".to_owned();
    server.associations.push(second);
    compare("server", &board(vec![server.clone()]), (80, 24));

    let mut top = Board::remote();
    top.update(vec![process(2), server]);
    compare("list", &top, (80, 24));
    top.press(Key::Down);
    top.press(Key::Enter);
    assert!(seen(&top, (80, 24)).starts_with("manypath perf server"));
    top.press(Key::Back);
    assert!(seen(&top, (80, 24)).starts_with("manypath top"));
}

#[test]
fn the_selected_row_is_seen_however_many_there_are() {
    let mut board = board(vec![process(16)]);
    for n in 1..=16 {
        for size in [(80, 24), (80, 12), (80, 8), (40, 6)] {
            let seen = seen(&board, size);
            assert!(seen.contains(&format!("\n> {n} ")), "row {n} at {size:?}:\n{seen}");
        }
        board.press(Key::Down);
    }
}

#[test]
fn any_size_and_any_text_is_drawn() {
    let mut hostile = process(3);
    let long = "\x1b[31m世界".repeat(300);
    hostile.command.clone_from(&long);
    hostile.events[0].text.clone_from(&long);
    let association = &mut hostile.associations[0];
    (association.peer, association.total_bytes) = (long.clone(), Some(0));
    let path = &mut association.paths[0];
    path.interface = Some(long.clone());
    (path.state, path.rank, path.why) = (long.clone(), long.clone(), Some(long));
    (path.srtt_s, path.loss) = (Some(1e300), Some(f64::NAN));
    path.samples.iter_mut().for_each(|sample| sample.up_bps = f64::INFINITY);
    let board = board(vec![hostile]);
    for width in (0..130).step_by(3) {
        for height in 0..30 {
            let seen = seen(&board, (width, height));
            assert!(!seen.contains('\x1b'));
        }
    }
}

#[test]
fn a_key_sets_the_rank_of_the_selected_path() {
    let mut board = board(vec![process(2)]);
    board.press(Key::Down);
    let rank = |path, rank| Some(Deed::SetRank { pid: 4711, association: 1, path, rank });
    assert_eq!(board.press(Key::Backup), rank(2, "backup"));
    board.press(Key::Down);
    assert_eq!(board.press(Key::Normal), rank(2, "normal"), "there is no third row");
    board.press(Key::Up);
    assert_eq!(board.press(Key::Backup), rank(1, "backup"));
    board.update(vec![process(0)]);
    assert_eq!(board.press(Key::Backup), None);
    assert_eq!(board.press(Key::Quit), Some(Deed::Quit));
}

#[test]
fn sentences_are_wrapped_between_words() {
    assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
    assert_eq!(wrapped("", 7), [""]);
    assert_eq!(wrapped("longer-than-that x", 7), ["longer-than-that", "x"]);
    let mut process = process(2);
    process.events[1].text = format!("{}END", "several words in a row ".repeat(6));
    assert!(seen(&board(vec![process]), (80, 24)).contains("END"));
}

#[test]
fn without_colours_there_are_none() {
    let board = board(vec![process(2)]);
    let colours = |colours| {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(&board, colours, frame)).unwrap();
        let cells = terminal.backend().buffer().content().iter();
        cells.filter(|cell| cell.fg != Color::Reset).count()
    };
    assert!(colours(Colours::On) > 0);
    assert_eq!(colours(Colours::Off), 0);
}

#[test]
fn a_past_grows_to_a_bound_and_goes_with_its_path() {
    let mut board = Board::remote();
    for round in 0..30 {
        let mut process = process(1);
        process.now_ms += round * 60_000;
        for sample in &mut process.associations[0].paths[0].samples {
            sample.at_ms += round * 60_000;
        }
        board.update(vec![process]);
    }
    let last = board.processes[0].clone();
    let path = &last.associations[0].paths[0];
    assert_eq!(board.past(4711, 1, path).len(), 6000);
    assert_eq!(board.events_of(4711).len(), 2, "each was told often");
    board.update(vec![process(0)]);
    assert!(board.past(4711, 1, path).is_empty());
}

#[test]
fn a_process_with_many_events_shows_the_last_of_them() {
    let mut board = Board::remote();
    for round in 0..3 {
        let mut process = process(1);
        let event = |n| Happened { number: n, at_ms: n, text: n.to_string() };
        process.events = (400 * round..400 * (round + 1)).map(event).collect();
        board.update(vec![process]);
    }
    let events = board.events_of(4711);
    assert_eq!(events.len(), 500);
    assert_eq!((events[0].number, events[499].number), (700, 1199));
}
