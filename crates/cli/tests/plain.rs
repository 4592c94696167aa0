//! The usual mistakes: the reason and the remedy are told, and no secret.

mod common;

use std::fs;

use common::{Receiver, code, listing, manypath, send, stderr};
use tempfile::tempdir;

/// A ticket of a receiver at 127.0.0.1.
const TICKET: &str =
    "manypath2:aetkwaih4oymiquy7qobjgx36tejs35zeqt24qpemsnzgtfeswmrw6csxbkqcbd7aaaacqjurjia";

#[test]
fn a_hidden_file_in_a_directory_is_left_out_and_said() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let tree = from.path().join("tree");
    fs::create_dir_all(tree.join(".git/refs")).unwrap();
    for name in ["a", "b", ".hidden", ".git/config", ".git/refs/head"] {
        fs::write(tree.join(name), "12345").unwrap();
    }
    // The two files fit, with the hidden ones they would not.
    let mut receiver = Receiver::start(to.path(), &["--max-size", "10B"]);
    let (code, result, err) = send(&[&tree], &receiver.ticket, &[]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("left out 3 hidden files") && err.contains("--hidden"), "{err}");
    assert_eq!(err.matches("hidden files").count(), 1, "{err}");
    assert!(err.contains("2 of 2 files"), "directories are no files: {err}");
    assert_eq!((&result["files_omitted"], &result["bytes"]), (&3.into(), &10.into()));
    let received = receiver.result();
    assert_eq!((&received["completed"], &received["files_failed"]), (&true.into(), &0.into()));
    assert_eq!(listing(&to.path().join("tree")), ["a", "b"]);

    let willing = Receiver::start(to.path(), &["--hidden", "--once"]);
    let (code, result, err) = send(&[&tree], &willing.ticket, &[]);
    assert_eq!(code, 0, "{err}");
    assert!(!err.contains("left out"), "{err}");
    assert_eq!((&result["files_omitted"], &result["files_failed"]), (&0.into(), &0.into()));
    assert_eq!(willing.end().0, 0);
    assert_eq!(listing(&to.path().join("tree")), [".git", ".hidden", "a", "b"]);
    assert_eq!(listing(&to.path().join("tree/.git/refs")), ["head"]);
}

#[test]
fn a_hidden_file_that_is_named_is_an_error() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let tree = from.path().join(".tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("a"), "a").unwrap();
    let receiver = Receiver::start(to.path(), &["--once"]);
    let (code, result, err) = send(&[&tree], &receiver.ticket, &[]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("hidden files") && err.contains("--hidden"), "{err}");
    assert!(err.contains("the file is not stored"), "{err}");
    // No "0 B in 0.00 s" before it.
    assert!(!err.contains("0 B in"), "{err}");
    assert_eq!((&result["files_failed"], &result["completed"]), (&2.into(), &false.into()));
    assert_eq!(receiver.end().0, 1);
}

#[test]
fn a_ticket_at_the_wrong_place_is_not_repeated() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("x");
    fs::write(&file, "x").unwrap();
    let file = file.to_str().unwrap();
    let secret = &TICKET["manypath2:".len()..];
    let via = format!("--bind={TICKET}");
    let list = format!("{TICKET},{TICKET}");
    for (words, says) in [
        (&["send", TICKET, file][..], "the ticket comes last"),
        (&["send", TICKET, "x", file], "the ticket comes last"),
        (&["send", &TICKET.to_uppercase(), file], "the ticket comes last"),
        (&["send", file, "x", TICKET, "laptop"], "the ticket comes last"),
        (&["send", "laptop", file], "the destination comes last"),
        (&["send", file, &list], "try:"),
        (&["send", file, &format!("@{TICKET}")], "cannot read"),
        (&["send", file, &format!("ticket={TICKET}")], "is not HOST"),
        (&["recv", TICKET], "unexpected argument 'manypath2:...'"),
        (&[TICKET], "unrecognized subcommand 'manypath2:...'"),
        (&["perf", "server", TICKET], "unexpected argument"),
        (&["send", &via, file, "host"], "manypath2:..."),
    ] {
        let output = manypath(words);
        let err = stderr(&output).to_lowercase();
        assert_eq!(code(&output), 2, "{words:?}: {err}");
        assert!(err.contains(&says.to_lowercase()), "{words:?}: {err}");
        assert!(!err.contains(&secret[..20]), "{words:?}: {err}");
    }
    // Help and usage errors without a ticket are as ever.
    let output = manypath(&["recv", "--nonsense"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("'--nonsense'"));
}

#[test]
fn a_secret_that_is_not_accepted_says_where_to_get_the_right_one() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let file = from.path().join("x");
    fs::write(&file, "x").unwrap();
    let identity = from.path().join("key");
    let identity = identity.to_str().unwrap();
    let first = Receiver::start(to.path(), &["--identity", identity]);
    let old = first.ticket.clone();
    let port = first.port.to_string();
    drop(first);
    let receiver = {
        let mut command = std::process::Command::new(common::MANYPATH);
        command.args(["recv", "--listen", "127.0.0.1", "--port", &port, "--identity", identity]);
        command.arg("--dir").arg(to.path());
        Receiver::spawn(command)
    };
    let dest = format!("127.0.0.1:{}", receiver.port);
    let hint = "`manypath recv` was started with";
    for (dest, more, says, hint) in [
        (&old, &[][..], "does not accept this ticket any more", "prints now"),
        (&dest, &["--token", "wrong horse!"], "does not accept this token", hint),
        (&dest, &[], "wants a token", hint),
    ] {
        let (code, _, err) = send(&[&file], dest, more);
        assert_eq!(code, 5, "{err}");
        assert!(err.contains(says) && err.contains(hint), "{says}: {err}");
        assert!(!err.contains("wrong horse"), "{err}");
    }
}
