//! The places that a token comes from.

mod common;

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use common::{MANYPATH, Receiver, code, listing, manypath, send, skipped, stderr};
use tempfile::tempdir;

const TOKEN: &str = "correct horse";

#[test]
fn a_token_comes_from_a_file_or_the_environment() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let [secret, file] = ["secret", "x"].map(|name| from.path().join(name));
    fs::write(&secret, format!("{TOKEN}\n")).unwrap();
    fs::write(&file, "x").unwrap();
    let secret = secret.to_str().unwrap();
    let receiver = Receiver::start(to.path(), &["--overwrite", "--token-file", secret]);
    let dest = format!("127.0.0.1:{}", receiver.port);
    let (code_, _, err) = send(&[&file], &dest, &["--token-file", secret]);
    assert_eq!(code_, 0, "{err}");
    let by_variable = |value: &str| {
        let mut command = Command::new(MANYPATH);
        command.arg("send").arg(&file).arg(&dest).env("MANYPATH_TOKEN", value);
        command.stdin(Stdio::null()).output().unwrap()
    };
    let sent = by_variable(TOKEN);
    assert_eq!(code(&sent), 0, "{}", stderr(&sent));
    assert!(!stderr(&sent).contains("other users"), "{}", stderr(&sent));
    assert_eq!(code(&by_variable("wrong horse!")), 5);
    assert_eq!(listing(to.path()), ["x"]);
}

#[test]
fn a_token_on_the_command_line_is_warned_of() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let file = from.path().join("x");
    fs::write(&file, "x").unwrap();
    let receiver = Receiver::start(to.path(), &["--once", "--token", TOKEN]);
    let dest = format!("127.0.0.1:{}", receiver.port);
    let (code, _, err) = send(&[&file], &dest, &["--token", TOKEN]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("other users of this host can see the token"), "{err}");
    let (code, err) = receiver.end();
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("other users of this host can see the token"), "{err}");
    assert!(!err.contains(TOKEN), "{err}");
}

#[test]
fn a_ticket_takes_no_token_beside_it() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let file = from.path().join("x");
    fs::write(&file, "x").unwrap();
    let receiver = Receiver::start(to.path(), &["--once"]);
    for option in ["--token", "--token-file"] {
        let (code, _, err) = send(&[&file], &receiver.ticket, &[option, TOKEN]);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains(&format!("{option} is for a HOST")), "{err}");
    }
    // The variable may be set for other transfers.
    let mut command = Command::new(MANYPATH);
    command.arg("send").arg(&file).arg(&receiver.ticket).env("MANYPATH_TOKEN", "another");
    let sent = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(code(&sent), 0, "{}", stderr(&sent));
}

#[test]
fn without_a_terminal_nobody_is_asked() {
    // A session of its own has no terminal.
    if !Path::new("/usr/bin/setsid").exists() {
        return skipped("setsid is not installed");
    }
    let mut command = Command::new("setsid");
    command.args(["--wait", MANYPATH, "recv", "--token-file", "-"]).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    assert!(stderr(&output).contains("cannot ask for the token"), "{}", stderr(&output));
    assert!(stderr(&output).contains("--token-file"), "{}", stderr(&output));
}

/// A command at a terminal of its own, made by `script`.
struct AtTerminal {
    child: Child,
    shown: String,
}

impl AtTerminal {
    fn start(words: &str) -> AtTerminal {
        let mut command = Command::new("script");
        command.args(["-qec", &format!("'{MANYPATH}' {words}"), "/dev/null"]);
        command.env_remove("MANYPATH_TOKEN").stdin(Stdio::piped()).stdout(Stdio::piped());
        AtTerminal { child: command.spawn().unwrap(), shown: String::new() }
    }

    /// Waits until this is shown for the `count`th time.
    fn wait_for(&mut self, text: &str, count: usize) {
        let out = self.child.stdout.as_mut().unwrap();
        while self.shown.matches(text).count() < count {
            let mut bytes = [0; 1024];
            let read = out.read(&mut bytes).unwrap();
            assert!(read > 0, "it ended before {text:?}: {}", self.shown);
            self.shown.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
    }

    /// Types, once the terminal's echo is off: that comes just after the question.
    fn types(&mut self, text: &str) {
        thread::sleep(Duration::from_millis(300));
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Its exit code, and all that was shown.
    fn end(mut self) -> (Option<i32>, String) {
        self.child.stdout.take().unwrap().read_to_string(&mut self.shown).unwrap();
        (self.child.wait().unwrap().code(), std::mem::take(&mut self.shown))
    }
}

impl Drop for AtTerminal {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_token_is_asked_for_without_echo() {
    if !Path::new("/usr/bin/script").exists() {
        return skipped("script is not installed");
    }
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let file = from.path().join("x");
    fs::write(&file, "x").unwrap();
    let receiver = Receiver::start(to.path(), &["--once", "--token", TOKEN]);
    let words = format!("send '{}' 127.0.0.1:{}", file.display(), receiver.port);
    let mut sender = AtTerminal::start(&words);
    sender.wait_for("Token: ", 1);
    sender.types(&format!("{TOKEN}\r"));
    let (code, shown) = sender.end();
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains("horse"), "{shown}");
    assert_eq!(listing(to.path()), ["x"]);
}

#[test]
fn a_new_token_is_asked_for_twice() {
    if !Path::new("/usr/bin/script").exists() {
        return skipped("script is not installed");
    }
    let words = "recv --once --listen 127.0.0.1 --port 0 --token-file -";
    for (answers, code, message) in [
        ([TOKEN, "correct house"], 2, "the two tokens differ"),
        (["short", "short"], 2, "shorter than 6 characters"),
    ] {
        let mut receiver = AtTerminal::start(words);
        for (question, answer) in ["Token: ", "The same again: "].iter().zip(answers) {
            receiver.wait_for(question, 1);
            receiver.types(&format!("{answer}\r"));
        }
        let (ended, shown) = receiver.end();
        assert_eq!(ended, Some(code), "{shown}");
        assert!(shown.contains(message), "{shown}");
    }
    // An interruption ends the question, and the terminal has its echo again.
    let mut receiver = AtTerminal::start(&format!("{words}; stty -a"));
    receiver.wait_for("Token: ", 1);
    receiver.types("\x03");
    let (_, shown) = receiver.end();
    assert!(shown.contains("interrupted"), "{shown}");
    assert!(shown.contains(" echo ") && !shown.contains("-echo "), "{shown}");
}

#[test]
fn a_token_of_the_environment_has_the_limits_of_others() {
    let mut command = Command::new(MANYPATH);
    command.arg("recv").env("MANYPATH_TOKEN", "short").stdin(Stdio::null());
    let output = command.output().unwrap();
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("MANYPATH_TOKEN: shorter"), "{}", stderr(&output));
    let output = manypath(&["recv", "--help"]);
    assert!(common::stdout(&output).contains("MANYPATH_TOKEN"));
}
