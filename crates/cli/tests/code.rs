//! Codes: a receiver that a relay knows by a number, over loopback.

mod common;

use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use common::relay::Relay;
use common::{Receiver, code, listing, manypath, send, stderr};
use tempfile::{TempDir, tempdir};

/// A receiver that shows a code, and a file for it.
struct Scene {
    relay: Relay,
    receiver: Receiver,
    file: PathBuf,
    to: TempDir,
    _from: TempDir,
}

impl Scene {
    /// Everything at one loopback address, which no other test uses.
    fn new(ip: &str, more: &[&str]) -> Scene {
        let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
        let file = from.path().join("x");
        fs::write(&file, "content").unwrap();
        let relay = Relay::start(ip, &[]);
        let receiver = receiver(&relay, to.path(), more);
        Scene { relay, receiver, file, to, _from: from }
    }

    /// The code as the receiver shows it.
    fn code(&self) -> String {
        text(&self.receiver, "code")
    }

    /// The code with the relay behind it.
    fn destination(&self) -> String {
        text(&self.receiver, "destination")
    }

    /// The code with its last word changed, so that it is wrong, and the relay behind it.
    fn wrong(&self) -> String {
        let code = self.code();
        let (number, words) = code.split_once('-').unwrap();
        let first = words.split('-').next().unwrap();
        let last = if words.ends_with("-anvil") { "cabana" } else { "anvil" };
        format!("{number}-{first}-{last}@{}", self.relay.address())
    }

    fn send(&self, dest: &str, more: &[&str]) -> (i32, String) {
        let (code, _, err) = send(&[&self.file], dest, more);
        (code, err)
    }
}

fn receiver(relay: &Relay, to: &Path, more: &[&str]) -> Receiver {
    let via = relay.word();
    Receiver::start(to, &[&["--code", "--via", &via], more].concat())
}

fn text(receiver: &Receiver, key: &str) -> String {
    receiver.listening[key].as_str().expect("text").to_owned()
}

#[test]
fn a_code_leads_to_the_receiver_and_is_good_for_many_transfers() {
    let scene = Scene::new("127.0.0.71", &[]);
    assert_eq!(scene.destination(), format!("{}@{}", scene.code(), scene.relay.address()));
    let (code, err) = scene.send(&scene.destination(), &[]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(fs::read(scene.to.path().join("x")).unwrap(), b"content");
    // The relay may be named for itself, and a person types as a person does.
    let spoken = scene.code().replace('-', " ").to_uppercase();
    let via = ["--via", &scene.relay.word(), "--as", "y"];
    let (code, err) = scene.send(&spoken, &via);
    assert_eq!(code, 0, "{err}");
    assert_eq!(listing(scene.to.path()), ["x", "y"]);
}

#[test]
fn a_wrong_code_sends_nothing_and_is_said_at_both_ends() {
    let scene = Scene::new("127.0.0.72", &[]);
    let (code, err) = scene.send(&scene.wrong(), &[]);
    assert_eq!(code, 5, "{err}");
    assert!(err.contains("does not know this code") && err.contains("nothing was sent"), "{err}");
    assert!(!err.contains(&scene.code()), "{err}");
    assert!(listing(scene.to.path()).is_empty());
    let said = scene.receiver.said();
    assert!(said.contains("not authorised"), "{said}");
}

/// Five guesses of a network are answered at once, the next ones later and later.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test of real processes in real time")]
fn guesses_are_answered_later_and_later() {
    let scene = Scene::new("127.0.0.73", &[]);
    let guess = || {
        let begin = Instant::now();
        let (code, err) = scene.send(&scene.wrong(), &[]);
        assert_eq!(code, 5, "{err}");
        begin.elapsed()
    };
    let quick: Vec<Duration> = (0..5).map(|_| guess()).collect();
    let slow: Vec<Duration> = (0..2).map(|_| guess()).collect();
    assert!(slow[0] >= Duration::from_secs(1), "{quick:?} {slow:?}");
    assert!(slow[1] >= Duration::from_secs(2), "{quick:?} {slow:?}");
    // A sender that knows the code waits, too, and gets through.
    let (code, err) = scene.send(&scene.destination(), &[]);
    assert_eq!(code, 0, "{err}");
}

#[test]
fn a_code_of_a_receiver_that_is_gone_says_so() {
    let mut scene = Scene::new("127.0.0.74", &[]);
    let dest = scene.destination();
    let pid = scene.receiver.id().to_string();
    let stopped = std::process::Command::new("kill").args(["-INT", &pid]).status();
    assert!(stopped.expect("runs").success());
    // It gives its allocation back.
    thread::sleep(Duration::from_millis(500));
    let (code, err) = scene.send(&dest, &[]);
    assert_eq!(code, 4, "{err}");
    assert!(err.contains("knows no receiver with the number"), "{err}");
    assert!(err.contains("recv --code"), "{err}");
    scene.receiver.kill();
}

#[test]
fn a_relay_that_is_silent_or_knows_no_numbers_is_said() {
    let from = tempdir().unwrap();
    let file = from.path().join("x");
    fs::write(&file, "x").unwrap();
    let silent = UdpSocket::bind("127.0.0.75:0").unwrap();
    let dest = format!("7-cabana-anvil@{}", silent.local_addr().unwrap());
    let (code, _, err) = send(&[&file], &dest, &[]);
    assert_eq!(code, 4, "{err}");
    assert!(err.contains("127.0.0.75") && err.contains("does not answer"), "{err}");
    let closed = Relay::start("127.0.0.76", &["--no-open"]);
    let via = closed.word();
    let words = ["recv", "--listen", "127.0.0.1", "--port", "0", "--code", "--via", &via, "--json"];
    let output = manypath(&words);
    assert_eq!(common::code(&output), 4, "{}", stderr(&output));
    assert!(stderr(&output).contains("no relay gave this receiver a number"));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test of real processes in real time")]
fn a_relay_that_is_restarted_leaves_the_code_good() {
    let users = tempdir().unwrap();
    let list = users.path().join("users");
    fs::write(&list, "ann:a long secret\n").unwrap();
    let more = ["--users", list.to_str().unwrap()];
    let relay = Relay::start("127.0.0.77", &more);
    let (address, port) = (relay.address(), relay.port());
    let via = format!("turn:ann:a%20long%20secret@{address}");
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let file = from.path().join("x");
    fs::write(&file, "content").unwrap();
    let receiver = Receiver::start(to.path(), &["--code", "--via", &via]);
    let dest = text(&receiver, "destination");
    drop(relay);
    let _again = Relay::start_at("127.0.0.77", &port, &more);
    // The receiver notices within the 15 s after which it speaks to its relay in any case.
    let until = Instant::now() + Duration::from_secs(40);
    let mut sent = send(&[&file], &dest, &[]);
    while sent.0 != 0 && Instant::now() < until {
        thread::sleep(Duration::from_secs(1));
        sent = send(&[&file], &dest, &[]);
    }
    assert_eq!(sent.0, 0, "{}", sent.2);
    assert_eq!(fs::read(to.path().join("x")).unwrap(), b"content");
}

#[test]
fn words_that_do_not_go_together_are_refused() {
    let from = tempdir().unwrap();
    let file = from.path().join("x");
    fs::write(&file, "x").unwrap();
    for (dest, more, says) in [
        ("7-cabana-anvil", &[][..], "which relay knows the code"),
        ("7-cabana-anvill", &[], "no code has the word \"anvill\""),
        ("7-cabana-anvil@h", &["--insecure"], "worth nothing without encryption"),
        ("7-cabana-anvil@h", &["--code", "482-109-357"], "DEST is a code"),
        ("7-cabana-anvil@h", &["--token", "a secret"], "DEST is a code"),
    ] {
        let (code, _, err) = send(&[&file], dest, more);
        assert_eq!(code, 2, "{dest} {more:?}: {err}");
        assert!(err.contains(says), "{dest} {more:?}: {err}");
    }
    for (words, says) in [
        (&["recv", "--code"][..], "a code needs a relay"),
        (&["recv", "--code", "--insecure"], "cannot be used with"),
        (&["recv", "--code", "--token", "a secret"], "cannot be used with"),
        (&["proxy", "connect", "--socks", "1080", "7-cabana-anvil@h"], "for `manypath send`"),
    ] {
        let output = manypath(words);
        assert_eq!(code(&output), 2, "{words:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{words:?}: {}", stderr(&output));
    }
}
