//! `send -` and `recv --stdout`: programs at both ends of a pipe.

#![cfg(unix)]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use common::{MANYPATH, Receiver, code, listing, manypath, noise, send, stderr};
use serde_json::Value;
use tempfile::tempdir;

/// A `manypath recv --stdout` on a free loopback port; killed when dropped.
struct ToOutput {
    child: Child,
    err: BufReader<ChildStderr>,
    ticket: String,
    said: String,
}

impl ToOutput {
    fn start(more: &[&str]) -> ToOutput {
        let mut command = Command::new(MANYPATH);
        command.args(["recv", "--stdout", "--listen", "127.0.0.1", "--port", "0"]).args(more);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let err = BufReader::new(child.stderr.take().unwrap());
        let (ticket, said) = (String::new(), String::new());
        let mut started = ToOutput { child, err, ticket, said };
        // The ticket is a line of its own on standard error, or in an event there.
        for _ in 0..20 {
            let mut line = String::new();
            started.err.read_line(&mut line).unwrap();
            let event: Value = serde_json::from_str(&line).unwrap_or_default();
            let ticket = event["ticket"].as_str().unwrap_or(line.trim());
            if ticket.starts_with("manypath2:") {
                started.ticket = ticket.to_owned();
                return started;
            }
            started.said += &line;
        }
        panic!("no ticket: {}", started.said);
    }

    /// Its exit code, what it wrote, and what it said.
    fn end(mut self) -> (Option<i32>, Vec<u8>, String) {
        let mut content = Vec::new();
        if let Some(mut out) = self.child.stdout.take() {
            out.read_to_end(&mut content).unwrap();
        }
        self.err.read_to_string(&mut self.said).unwrap();
        (self.child.wait().unwrap().code(), content, std::mem::take(&mut self.said))
    }
}

impl Drop for ToOutput {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts `manypath send - --json` with more arguments, the last being its destination.
fn send_input(more: &[&str]) -> (Child, ChildStdin) {
    let mut command = Command::new(MANYPATH);
    command.args(["send", "--json"]).args(more);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let input = child.stdin.take().unwrap();
    (child, input)
}

/// Sends `content` as standard input; its end and its result.
fn send_content(content: &[u8], more: &[&str]) -> (Output, Value) {
    let (child, mut input) = send_input(more);
    let content = content.to_vec();
    // The receiver may refuse all of it.
    let writing = thread::spawn(move || drop(input.write_all(&content)));
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    let result = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output, result)
}

#[test]
fn what_goes_into_one_end_comes_out_of_the_other() {
    // All bytes there are, more than any buffer; and nothing.
    for length in [0, 20_000_003] {
        let content = noise(length);
        let receiver = ToOutput::start(&[]);
        let ticket = receiver.ticket.clone();
        let sent = content.clone();
        let sending = thread::spawn(move || send_content(&sent, &["-", &ticket]));
        let (received, came, err) = receiver.end();
        let (output, result) = sending.join().unwrap();
        assert_eq!((code(&output), received), (0, Some(0)), "{} {err}", stderr(&output));
        assert!(came == content, "{} bytes of {length}", came.len());
        let length = length as u64;
        assert_eq!((&result["bytes"], &result["completed"]), (&length.into(), &true.into()));
        let file = &result["files"][0];
        assert_eq!((&file["name"], &file["bytes"]), (&"stdin".into(), &length.into()), "{result}");
        assert_eq!(file["status"], "stored");
        assert!(file["sha256"].is_string());
    }
}

#[test]
fn a_file_goes_to_standard_output_too_and_standard_input_to_a_file() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let file = from.path().join("x");
    fs::write(&file, noise(3_000_000)).unwrap();
    let receiver = ToOutput::start(&["--json"]);
    // With --json the ticket is in an event, on standard error as well.
    let ticket = receiver.ticket.clone();
    let path = file.clone();
    let sending = thread::spawn(move || send(&[&path], &ticket, &[]));
    let (received, came, said) = receiver.end();
    let (code_, _, err) = sending.join().unwrap();
    assert_eq!((code_, received), (0, Some(0)), "{err}");
    assert!(came == fs::read(&file).unwrap());
    assert!(
        said.lines().any(|line| line.starts_with("{") && line.contains("goodput_bps")),
        "{said}"
    );

    let mut receiver = Receiver::start(to.path(), &[]);
    for (more, name) in [(&["-"][..], "stdin"), (&["--as", "d/db.sql", "-"], "d/db.sql")] {
        let (output, result) = send_content(b"some text\n", &[more, &[&receiver.ticket]].concat());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        assert_eq!(result["files"][0]["name"], name);
        assert_eq!(fs::read(to.path().join(name)).unwrap(), b"some text\n");
        let received = receiver.result();
        assert_eq!(received["files"][0]["bytes"], 10, "{received}");
    }
    // It is one file among others; and there is only one.
    let file = file.to_str().unwrap();
    let (output, result) = send_content(b"new", &[file, "-", &receiver.ticket]);
    assert_eq!(code(&output), 1, "stdin is there already: {}", stderr(&output));
    assert_eq!((&result["files_total"], &result["files_failed"]), (&2.into(), &1.into()));
    assert_eq!(listing(to.path()), ["d", "stdin", "x"]);
    for (words, says) in [
        (&["send", "-", "-", "127.0.0.1:9"][..], "only once"),
        (&["send", "--as", "y", file, "-", "127.0.0.1:9"], "a single FILE"),
        (&["send", "--as", "../y", "-", "127.0.0.1:9"], "cannot be sent"),
        (&["recv", "--stdout", "--dir", "x"], "cannot be used with"),
        (&["recv", "--stdout", "--overwrite"], "cannot be used with"),
    ] {
        let output = manypath(words);
        assert_ne!(code(&output), 0);
        assert!(stderr(&output).contains(says), "{words:?}: {}", stderr(&output));
    }
}

#[test]
fn content_arrives_as_soon_as_it_is_there_and_silence_is_no_stall() {
    let mut receiver = ToOutput::start(&["--stall-timeout", "3s"]);
    let (child, mut input) = send_input(&["--stall-timeout", "3s", "-", &receiver.ticket]);
    let mut out = receiver.child.stdout.take().unwrap();
    for (text, pause) in [("first", 0), ("second", 5), ("third", 1)] {
        thread::sleep(Duration::from_secs(pause));
        input.write_all(text.as_bytes()).unwrap();
        let mut came = vec![0; text.len()];
        out.read_exact(&mut came).unwrap();
        assert_eq!(came, text.as_bytes());
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let (received, _, err) = receiver.end();
    assert_eq!(received, Some(0), "{err}");
}

#[test]
fn a_pipe_that_is_closed_at_the_receiver_ends_both() {
    for silent in [false, true] {
        let mut receiver = ToOutput::start(&[]);
        let (child, mut input) = send_input(&["-", &receiver.ticket]);
        // As `| head -c 5` does.
        let mut out = receiver.child.stdout.take().unwrap();
        input.write_all(b"hello").unwrap();
        out.read_exact(&mut [0; 5]).unwrap();
        drop(out);
        // The rest cannot be written. The sender hears of it, though its input goes on, or says
        // nothing more without an end.
        let writing = thread::spawn(move || {
            let _ = input.write_all(b"more");
            while !silent && input.write_all(&[7; 10_000]).is_ok() {}
            input
        });
        let output = child.wait_with_output().unwrap();
        drop(writing.join().unwrap());
        assert_eq!(code(&output), 1, "{}", stderr(&output));
        assert!(stderr(&output).contains("standard output has ended"), "{}", stderr(&output));
        let (received, _, err) = receiver.end();
        assert_eq!(received, Some(1), "{err}");
        assert!(err.contains("standard output has ended"), "{err}");
    }
}

#[test]
fn an_interrupted_sender_is_no_success_at_the_other_end_of_the_pipe() {
    let receiver = ToOutput::start(&[]);
    let (child, mut input) = send_input(&["-", &receiver.ticket]);
    input.write_all(&noise(1_000_000)).unwrap();
    thread::sleep(Duration::from_millis(500));
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &id]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let (received, _, err) = receiver.end();
    assert_eq!((code(&output), received), (3, Some(3)), "{err}");
}

#[test]
fn a_receiver_to_standard_output_takes_one_file() {
    let from = tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| from.path().join(name));
    fs::write(&a, "a").unwrap();
    fs::write(&b, "b").unwrap();
    let receiver = ToOutput::start(&[]);
    let (code_, _, err) = send(&[&a, &b], &receiver.ticket, &[]);
    assert_eq!(code_, 1, "{err}");
    assert!(err.contains("one file to its standard output") && err.contains("tar c"), "{err}");
    let (code_, _, err) = send(&[from.path()], &receiver.ticket, &[]);
    assert_eq!(code_, 1, "{err}");
    // It still waits.
    let (code_, _, err) = send(&[&b], &receiver.ticket, &[]);
    assert_eq!(code_, 0, "{err}");
    let (received, came, err) = receiver.end();
    assert_eq!((received, came.as_slice()), (Some(0), &b"b"[..]), "{err}");
}

#[cfg(target_os = "linux")]
#[test]
fn files_whose_size_is_not_known_arrive_whole() {
    let to = tempdir().unwrap();
    let receiver = Receiver::start(to.path(), &["--once"]);
    // It has content, and its size is said to be 0.
    let file = Path::new("/proc/filesystems");
    assert_eq!(fs::metadata(file).unwrap().len(), 0);
    let (code, result, err) = send(&[file], &receiver.ticket, &[]);
    assert_eq!(code, 0, "{err}");
    let content = fs::read(file).unwrap();
    assert_eq!(fs::read(to.path().join("filesystems")).unwrap(), content);
    assert_eq!(result["files"][0]["bytes"], content.len());
}

/// Receivers of the version before say nothing of what they accept.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_receiver_gets_no_standard_input() {
    use manypath::{Endpoint, EndpointOptions, Security, SendOptions, StreamId};
    use manypath_files::frame::{PPID_CONTROL, ServerFrame};

    let bind = vec!["127.0.0.1".parse().unwrap()];
    let client = EndpointOptions::client(Security::Plain);
    let options = EndpointOptions { udp_port: 0, accept: true, bind, ..client };
    let endpoint = Endpoint::bind(options).unwrap();
    let dest = format!("127.0.0.1:{}", endpoint.udp_port());
    let sending =
        tokio::task::spawn_blocking(move || send_content(b"text", &["--insecure", "-", &dest]));
    let association = endpoint.accept().await.unwrap();
    assert!(association.recv().await.unwrap().is_some(), "the hello");
    let control = SendOptions {
        stream: StreamId(0),
        ppid: PPID_CONTROL,
        unordered: false,
        ..SendOptions::default()
    };
    association.send(control, ServerFrame::Welcome(None).encode().into()).await.unwrap();
    let (output, result) = sending.await.unwrap();
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains("its version is older"), "{}", stderr(&output));
    assert_eq!(result["completed"], false);
    assert!(association.recv().await.is_err(), "an ABORT, and nothing before it");
}
