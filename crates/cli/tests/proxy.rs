//! `manypath proxy` as a user runs it: exit codes, and a connection there and back.

#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

fn manypath() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_manypath"));
    command.env_remove("MANYPATH_TOKEN").stdin(Stdio::null());
    command
}

/// A process that runs in the background; killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts a command and reads its first event.
    fn start(arguments: &[&str]) -> (Running, serde_json::Value) {
        let mut child =
            manypath().args(arguments).arg("--json").stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        (Running(child), serde_json::from_str(&line).expect("an event"))
    }
}

fn listen() -> (Running, serde_json::Value) {
    Running::start(&["proxy", "listen", "--listen", "127.0.0.1", "--port", "0"])
}

fn run(arguments: &[&str]) -> Output {
    manypath().args(arguments).output().unwrap()
}

#[test]
fn a_connection_goes_through_and_a_signal_ends_in_order() {
    let (_far, event) = listen();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let forward = format!("127.0.0.1:0:{}", server.local_addr().unwrap());
    let ticket = event["ticket"].as_str().unwrap();
    let (mut near, ready) = Running::start(&["proxy", "connect", ticket, "-L", &forward]);
    assert_eq!((&ready["event"], &ready["encrypted"]), (&"ready".into(), &true.into()));
    let mut program = TcpStream::connect(ready["ports"][0]["listen"][0].as_str().unwrap()).unwrap();
    program.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    program.write_all(b"there").unwrap();
    let (mut accepted, _) = server.accept().unwrap();
    let mut there = [0; 5];
    accepted.read_exact(&mut there).unwrap();
    accepted.write_all(b"back").unwrap();
    let mut back = [0; 4];
    program.read_exact(&mut back).unwrap();
    assert_eq!((&there, &back), (b"there", b"back"));

    let pid = near.0.id().to_string();
    assert!(Command::new("kill").arg(&pid).status().unwrap().success());
    assert_eq!(near.0.wait().unwrap().code(), Some(0));
}

#[test]
fn a_wrong_token_is_exit_code_5() {
    let (_far, event) = listen();
    let dest = format!("127.0.0.1:{}", event["port"]);
    let done =
        run(&["proxy", "connect", &dest, "--token", "some other token", "-D", "127.0.0.1:0"]);
    assert_eq!(done.status.code(), Some(5), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_wrong_command_line_says_what_to_write() {
    for (arguments, text) in [
        (&["proxy", "connect", "host"][..], "--local"),
        (&["proxy", "connect", "host", "-L", "80:host"], "8080:host:80"),
        (&["proxy", "connect", "host", "-D", "a:b"], "1080"),
        (&["proxy", "listen", "--allow-target", "host"], "HOST:PORT"),
    ] {
        let done = run(arguments);
        let shown = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{shown}");
        assert!(shown.contains(text), "{arguments:?}: {shown}");
    }
}

#[test]
fn a_remote_forward_that_is_not_allowed_ends_the_command_with_the_remedy() {
    let (_far, event) = listen();
    let ticket = event["ticket"].as_str().unwrap();
    let done = run(&["proxy", "connect", ticket, "-R", "0:localhost:80"]);
    let shown = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{shown}");
    assert!(shown.contains("--allow-remote-forwards"), "{shown}");
}
