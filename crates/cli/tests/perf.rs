//! `perf` over loopback.

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use common::{MANYPATH, code, manypath, stderr, stdout};
use serde_json::Value;

/// Runs a measurement against a server of its own: the client's and the server's results.
fn measure(client: &[&str]) -> (Value, Value) {
    let (mut lines, theirs) = measure_lines(client);
    assert_eq!(lines.len(), 1, "{lines:?}");
    (lines.remove(0), theirs)
}

/// The same, with all that the client prints.
fn measure_lines(client: &[&str]) -> (Vec<Value>, Value) {
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
    let ours = stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
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

/// Bytes and the rate of each interval in one direction, `key`; intervals without gaps.
fn intervals<'a>(lines: &'a [Value], key: &'a str) -> Vec<(u64, f64)> {
    let mut end = 0.0;
    let interval = |line: &Value| {
        assert_eq!(line["event"], "interval");
        assert_eq!(line["begin_s"].as_f64(), Some(end));
        end = line["end_s"].as_f64().unwrap();
        assert_eq!(line["bytes"], line[key]["bytes"], "one direction is all: {line}");
        (line[key]["bytes"].as_u64().unwrap(), line[key]["bps"].as_f64().unwrap())
    };
    lines.iter().map(interval).collect()
}

#[test]
fn a_rate_is_offered_evenly_and_each_interval_is_told() {
    const BYTES_PER_S: f64 = 2e6;
    for (options, key, other) in [(&[][..], "up", "down"), (&["-R"], "down", "up")] {
        let args = ["-t", "2", "--rate", "16 Mbit/s", "--interval", "0.2", "--messages", "1 kB"];
        let (lines, server) = measure_lines(&[&args, options].concat());
        let (result, lines) = lines.split_last().unwrap();
        assert_eq!(result["rate_bps"], 16_000_000);
        let bytes = result["bytes"].as_u64().unwrap();
        assert_eq!(server["bytes"], bytes);
        let offered = 2.0 * BYTES_PER_S;
        // The last messages are not sent if the machine is late at the end.
        assert!((0.7 * offered..offered + 1e3).contains(&(bytes as f64)), "{bytes} of {offered}");

        let told = intervals(lines, key);
        assert!(told.len() >= 5, "{lines:?}");
        assert_eq!(told.iter().map(|(bytes, _)| bytes).sum::<u64>(), bytes);
        // Evenly: half of the time has about half of the data, and no more.
        let first = lines.iter().take_while(|line| line["end_s"].as_f64().unwrap() < 1.1);
        let begun: u64 = first.map(|line| line["bytes"].as_u64().unwrap()).sum();
        assert!((begun as f64) < 1.1 * BYTES_PER_S + 1e3, "{begun} within 1.1 s");

        for line in lines {
            assert!(line[other].is_null(), "{line}");
            let path = &line["paths"][0];
            assert_eq!((&path["path"], &path["state"]), (&1.into(), &"active".into()), "{line}");
            assert!(path[key]["bytes"].is_u64() && path[other].is_null(), "{line}");
        }
        let of_path: u64 =
            lines.iter().map(|l| l["paths"][0][key]["bytes"].as_u64().unwrap()).sum();
        // The last acknowledgement may come after the result.
        assert!(of_path + 10_000 >= bytes, "all content took the path: {of_path} of {bytes}");
        let kept = result["intervals"].as_array().unwrap();
        assert_eq!(kept.len(), told.len());
        assert_eq!(kept[0]["at_s"], lines[0]["end_s"]);

        let gap = result[key]["max_delivery_gap_s"].as_f64().unwrap();
        assert!(gap > 0.0 && gap < 2.0, "{gap}");
        assert_eq!(server[key]["max_delivery_gap_s"], gap);
    }
}

#[test]
fn with_a_rate_latency_counts_from_when_messages_are_due() {
    // A message of 100 kB is due each 100 ms.
    let args = ["-t", "1", "--rate", "8 Mbit/s", "--messages", "100 kB"];
    let (client, _) = measure(&args);
    let latency = client["message_latency_p99_s"].as_f64().unwrap();
    assert!(latency > 0.0 && latency < 1.0, "{latency}");
    let bytes = client["bytes"].as_u64().unwrap();
    assert!((500_000..=1_000_000).contains(&bytes) && bytes % 100_000 == 0, "{bytes}");
}

#[test]
fn people_see_each_interval_and_the_latency_at_a_rate() {
    let mut server = Command::new(MANYPATH)
        .args(["perf", "server", "--once", "--listen", "127.0.0.1", "--port", "0", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let listening: Value = serde_json::from_str(&line).unwrap();
    let dest = format!("127.0.0.1:{}", listening["port"]);
    let args = ["perf", "client", &dest, "-t", "1", "-i", "0.25", "--rate", "1 Mbit/s"];
    let output = manypath(&args);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let told = stderr(&output);
    let lines = told.lines().filter(|line| line.contains(" to ") && line.contains("bit/s"));
    assert!((3..=6).contains(&lines.count()), "{told}");
    assert!(stdout(&output).contains("message latency: 99 of 100 within "), "{}", stdout(&output));
    server.wait().unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn a_link_local_address_from_a_bound_socket_is_refused_with_the_remedy() {
    let output = manypath(&["perf", "client", "[fe80::7%lo]:9899", "--bind", "lo"]);
    assert_eq!(code(&output), 4, "{}", stderr(&output));
    assert!(stderr(&output).contains("leave --bind out"), "{}", stderr(&output));
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
