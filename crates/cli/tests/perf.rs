//! `perf` over loopback.

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use common::{MANYPATH, code, manypath, stderr, stdout};
use serde_json::Value;

/// Runs a measurement against a server of its own: the client's and the server's results.
fn measure(client: &[&str]) -> (Value, Value) {
    let mut server = Command::new(MANYPATH)
        .args(["perf", "server", "--once", "--listen", "127.0.0.1", "--port", "0", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(server.stdout.take().unwrap());
    let mut record = || {
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        serde_json::from_str::<Value>(&line).unwrap()
    };
    let dest = format!("127.0.0.1:{}", record()["port"]);
    let output = manypath(&[&["perf", "client", &dest, "--json"], client].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let ours = serde_json::from_str(&stdout(&output)).unwrap();
    let theirs = record();
    assert!(server.wait().unwrap().success());
    (ours, theirs)
}

#[test]
fn a_number_of_bytes_goes_up_down_and_both_ways() {
    for (option, up, down) in
        [(None, true, false), (Some("-R"), false, true), (Some("--bidir"), true, true)]
    {
        let mut args = vec!["-n", "20 MB"];
        args.extend(option);
        let (client, server) = measure(&args);
        let ways = u64::from(up) + u64::from(down);
        for result in [&client, &server] {
            assert_eq!(result["completed"], true);
            assert_eq!(result["bytes"], 20_000_000 * ways);
            assert_eq!(result["up"].is_object(), up);
            assert_eq!(result["down"].is_object(), down);
            assert!(result["goodput_bps"].as_u64().unwrap() > 0);
            assert!(result["seconds"].as_f64().unwrap() > 0.0);
            assert!(result["cpu_seconds"].as_f64().unwrap() > 0.0);
            let sends = up && result["role"] == "client" || down && result["role"] == "server";
            let latency = result["message_latency_p99_s"].as_f64();
            assert_eq!(latency.is_some_and(|s| s > 0.0 && s < 10.0), sends, "{result}");
            assert!(result["paths"].as_array().is_some_and(|paths| !paths.is_empty()));
        }
    }
}

#[test]
fn a_time_ends_it_and_seconds_are_told() {
    let (client, _) = measure(&["-t", "1.5", "--messages", "1000B"]);
    let seconds = client["seconds"].as_f64().unwrap();
    assert!((1.0..5.0).contains(&seconds), "{seconds}");
    assert_eq!(client["message_size"], 1000);
    assert!(!client["intervals"].as_array().unwrap().is_empty());
}

#[test]
fn no_server_is_exit_code_4() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let dest = silent.local_addr().unwrap().to_string();
    let output = manypath(&["perf", "client", &dest, "--connect-timeout", "1s"]);
    assert_eq!(code(&output), 4, "{}", stderr(&output));
}

#[test]
fn people_read_the_result_on_standard_output() {
    let mut server = Command::new(MANYPATH)
        .args(["perf", "server", "--once", "--listen", "127.0.0.1", "--port", "0", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let listening: Value = serde_json::from_str(&line).unwrap();
    let dest = format!("127.0.0.1:{}", listening["port"]);
    let output = manypath(&["perf", "client", &dest, "-n", "1MB", "--quiet"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).starts_with("to the server: 1.0 MB in "), "{}", stdout(&output));
    assert_eq!(stderr(&output), "");
    server.wait().unwrap();
}
