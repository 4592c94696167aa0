//! With `--json`, a command that ends early prints a result all the same.

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{MANYPATH, Receiver, code, manypath, stderr, stdout};
use serde_json::Value;
use tempfile::tempdir;

/// The last line that a command prints, which is its result.
fn last(text: &str) -> Value {
    serde_json::from_str(text.lines().last().unwrap_or_default()).unwrap_or_default()
}

#[test]
fn a_command_that_cannot_begin_says_so_in_json() {
    let nowhere = ["--connect-timeout", "300ms"];
    let commands: [&[&str]; 10] = [
        &["perf", "client", "127.0.0.1:9", nowhere[0], nowhere[1]],
        &["send", "Cargo.toml", "127.0.0.1:9", "--insecure", nowhere[0], nowhere[1]],
        &["send", "no/such/file", "127.0.0.1:9"],
        &["recv", "--dir", "Cargo.toml"],
        &["paths", "no.such.host.invalid"],
        &["doctor", "no.such.host.invalid"],
        &["proxy", "connect", "no.such.host.invalid", "-D", "127.0.0.1:0"],
        &["sim", "run", "no/such.toml"],
        &["lab", "run", "no-such-experiment"],
        &["replay", "no/such.jsonl"],
    ];
    for command in commands {
        let output = manypath(&[command, &["--json"]].concat());
        let text = stdout(&output);
        assert_ne!(code(&output), 0, "{command:?}");
        let result = last(&text);
        assert_eq!((text.lines().count(), &result["completed"]), (1, &false.into()), "{command:?}");
        let error = result["error"].as_str().unwrap_or_default();
        assert!(!error.is_empty() && stderr(&output).contains("manypath: "), "{command:?} {text}");
        let output = manypath(command);
        assert!(stdout(&output).is_empty(), "without --json as before: {command:?}");
    }
}

/// A `perf server` for one measurement, and its port.
fn server() -> (Child, impl BufRead, String) {
    let mut command = Command::new(MANYPATH);
    command.args(["perf", "server", "--once", "--listen", "127.0.0.1", "--port", "0", "--json"]);
    let mut server = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut out = BufReader::new(server.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let dest = format!("127.0.0.1:{}", last(&line)["port"]);
    (server, out, dest)
}

#[cfg(unix)]
fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
}

#[cfg(unix)]
#[test]
fn a_measurement_that_ends_early_prints_the_result_so_far() {
    for (direction, name) in [(None, "INT"), (Some("-R"), "TERM")] {
        let (mut server, mut out, dest) = server();
        let mut command = Command::new(MANYPATH);
        command.args(["perf", "client", &dest, "-t", "60", "--interval", "0.2", "--json"]);
        command.args(direction).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut client = command.spawn().unwrap();
        let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
        for _ in 0..3 {
            assert_eq!(last(&lines.next().unwrap().unwrap())["event"], "interval");
        }
        signal(&client, name);
        let result = last(&lines.map_while(Result::ok).last().unwrap());
        assert_eq!(client.wait().unwrap().code(), Some(1));
        assert_eq!(
            (&result["completed"], &result["error"]),
            (&false.into(), &"interrupted".into())
        );
        assert!(result["bytes"].as_u64().unwrap() > 0, "{result}");
        assert!(result["goodput_bps"].as_u64().unwrap() > 0, "{result}");
        assert!(result["seconds"].as_f64().unwrap() > 0.5, "{result}");
        let way = if direction.is_some() { "down" } else { "up" };
        assert_eq!(result[way]["bytes"], result["bytes"]);
        assert!(result["paths"].as_array().is_some_and(|paths| !paths.is_empty()), "{result}");
        let mut theirs = String::new();
        out.read_line(&mut theirs).unwrap();
        let theirs = last(&theirs);
        assert_eq!((&theirs["completed"], &theirs["role"]), (&false.into(), &"server".into()));
        assert!(theirs["bytes"].as_u64().unwrap() > 0, "{theirs}");
        assert!(!server.wait().unwrap().success());
    }
}

#[cfg(unix)]
#[test]
fn a_measurement_whose_server_dies_prints_the_result_so_far() {
    let (mut server, _out, dest) = server();
    let mut command = Command::new(MANYPATH);
    command.args([
        "perf",
        "client",
        &dest,
        "-t",
        "60",
        "--json",
        "--set",
        "association_timeout=2s",
    ]);
    let client = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    server.kill().unwrap();
    server.wait().unwrap();
    let output = client.wait_with_output().unwrap();
    assert_ne!(code(&output), 0);
    let result = last(&stdout(&output));
    assert_eq!(result["completed"], false, "{}", stderr(&output));
    assert!(result["error"].is_string() && result["bytes"].as_u64().unwrap() > 0, "{result}");
}

#[cfg(unix)]
#[test]
fn a_receiver_that_is_stopped_before_a_sender_came_prints_a_result() {
    let to = tempdir().unwrap();
    let mut receiver = Receiver::start(to.path(), &["--once"]);
    let id = receiver.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &id]).status().unwrap().success());
    let result = receiver.result();
    assert_eq!((&result["completed"], &result["error"]), (&false.into(), &"interrupted".into()));
    assert_eq!(receiver.end().0, 1);
}

#[test]
fn a_receiver_to_standard_output_writes_no_result_there() {
    let output = manypath(&["recv", "--stdout", "--json", "--token-file", "no/such/file"]);
    assert_ne!(code(&output), 0);
    assert!(stdout(&output).is_empty(), "{}", stdout(&output));
}
