//! Names and QR codes on the command line. `tests/names` has names in networks.

mod common;

use std::fs;

use common::{Receiver, code, manypath, send, stderr};
use tempfile::tempdir;

#[test]
fn words_that_are_no_names_are_refused() {
    for (name, says) in [
        ("two words", "begins and ends with a letter"),
        ("laptop.local", "consists of letters"),
        ("", "1 to 40 characters"),
        ("localhost", "every host has for itself"),
        ("192", "at least one letter"),
    ] {
        let output = manypath(&["recv", "--name", name]);
        assert_eq!(code(&output), 2, "{name:?}");
        assert!(stderr(&output).contains(says), "{name:?}: {}", stderr(&output));
    }
}

#[test]
fn options_that_exclude_each_other_are_refused() {
    for words in [
        &["recv", "--name", "laptop", "--insecure"][..],
        &["recv", "--qr", "--quiet"],
        &["recv", "--qr", "--tui"],
        &["recv", "--qr", "--cert", "a", "--key", "b"],
        &["relay", "--qr", "--user", "ann:secret"],
        &["send", "Cargo.toml", "laptop", "--code", "482-109-357", "--token", "secret"],
        &["send", "Cargo.toml", "laptop", "--code", "482-109-357", "--insecure"],
    ] {
        let output = manypath(words);
        assert_eq!(code(&output), 2, "{words:?}");
        assert!(stderr(&output).contains("cannot be used with"), "{}", stderr(&output));
    }
}

#[test]
fn a_receiver_without_a_name_has_no_code() {
    let to = tempdir().unwrap();
    let receiver = Receiver::start(to.path(), &[]);
    assert!(receiver.listening["name"].is_null() && receiver.listening["code"].is_null());
}

#[test]
fn a_code_is_refused_beside_a_ticket_and_by_a_receiver_that_has_none() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let file = from.path().join("x");
    fs::write(&file, "x").unwrap();
    let receiver = Receiver::start(to.path(), &[]);
    let (code, _, err) = send(&[&file], &receiver.ticket, &["--code", "482-109-357"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("--code is for a NAME or HOST"), "{err}");
    let dest = format!("127.0.0.1:{}", receiver.port);
    let (code, _, err) = send(&[&file], &dest, &["--code", "482-109-357"]);
    assert_eq!(code, 5, "{err}");
    assert!(err.contains("does not know this code"), "{err}");
    let (code, _, err) = send(&[&file], &dest, &["--code", "482-109-35"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("--code: a code has nine digits"), "{err}");
}

#[test]
fn a_ticket_is_shown_as_blocks_beside_its_text() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let file = from.path().join("x");
    fs::write(&file, "x").unwrap();
    let receiver = Receiver::start(to.path(), &["--qr", "--once"]);
    // A QR code has it in upper case.
    let (code, _, err) = send(&[&file], &receiver.ticket.to_uppercase(), &[]);
    assert_eq!(code, 0, "{err}");
    let (code, err) = receiver.end();
    assert_eq!(code, 0, "{err}");
    let is_block = |c: char| matches!(c, ' ' | '▀' | '▄' | '█');
    let lines: Vec<_> =
        err.lines().filter(|line| line.contains('█') && line.chars().all(is_block)).collect();
    assert!((15..40).contains(&lines.len()), "{err}");
    assert!(!err.contains('\x1b'), "no colours where there is no terminal");
}
