//! `relay`, `--via` and `paths` over loopback.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::relay::Relay;
use common::{MANYPATH, Receiver, code, manypath, noise, send, stderr, stdout};
use serde_json::Value;
use tempfile::tempdir;

fn file(dir: &Path, bytes: usize) -> std::path::PathBuf {
    let path = dir.join("big");
    fs::write(&path, noise(bytes)).unwrap();
    path
}

#[test]
fn a_transfer_goes_through_relays_and_says_which() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    // It takes much longer than the allocations: a path that comes late has its share, too.
    let big = file(from.path(), 100_000_000);
    let relays = [Relay::start("127.0.0.41", &[]), Relay::start("127.0.0.42", &[])];
    // One on the command line, one in a file.
    let list = from.path().join("relays");
    fs::write(&list, format!("# mine\n{}\n", relays[1].word())).unwrap();
    let via = format!("{},@{}", relays[0].word(), list.display());
    let mut receiver = Receiver::start(to.path(), &["--once"]);
    let more = ["--via", &via, "--bind", "127.0.0.1", "--preset", "cmt"];
    let (code, sent, err) = send(&[&big], &receiver.ticket, &more);
    assert_eq!(code, 0, "{err}");
    assert!(fs::read(to.path().join("big")).unwrap() == fs::read(&big).unwrap());
    let received = receiver.result();
    assert_eq!(received["paths"].as_array().unwrap().len(), 3);

    let mut names: Vec<_> =
        sent["paths"].as_array().unwrap().iter().map(|p| p["relay"].clone()).collect();
    names.sort_by_key(Value::to_string);
    let [one, two] = relays;
    assert_eq!(names, [Value::from(one.address()), two.address().into(), Value::Null]);
    for relay in [one, two] {
        assert!(err.contains(&format!("relay {}: allocated", relay.address())), "{err}");
        let end = relay.stop();
        assert_eq!((&end["event"], &end["allocated"]), (&"stopped".into(), &1.into()));
        assert!(end["bytes"].as_u64().unwrap() > 1_000_000, "{end}");
        assert_eq!(end["allocations"], 0, "given back at the end");
    }
}

#[test]
fn the_second_port_for_stun_is_named_or_left_out_and_the_relay_works_without_it() {
    let free = std::net::UdpSocket::bind("127.0.0.57:0").unwrap().local_addr().unwrap().port();
    let port = free.to_string();
    let relay = Relay::start("127.0.0.57", &["--stun-port", &port]);
    assert_eq!(relay.listening["stun_port"], free);
    // It is taken now.
    let second = Relay::start("127.0.0.57", &["--stun-port", &port]);
    assert_eq!(second.listening["stun_port"], Value::Null);
    let third = Relay::start("127.0.0.57", &["--stun-port", "0"]);
    assert_eq!(third.listening["stun_port"], Value::Null);
    let ends = [relay, second, third].map(Relay::stop);
    assert!(ends.iter().all(|end| end["event"] == "stopped"), "{ends:?}");
}

#[test]
fn a_wrong_password_costs_a_path_and_not_the_transfer() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    // It takes longer than the relay's refusal.
    let big = file(from.path(), 50_000_000);
    let relay = Relay::start("127.0.0.43", &["--user", "ann:a secret"]);
    assert_eq!(relay.listening["via"], Value::Null, "passwords that a user chose are not shown");
    let receiver = Receiver::start(to.path(), &["--once"]);
    let via = format!("turn:ann:guess@{}", relay.address());
    let (code, sent, err) = send(&[&big], &receiver.ticket, &["--via", &via]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("error 401"), "{err}");
    assert!(!err.contains("guess"), "{err}");
    assert_eq!(sent["paths"].as_array().unwrap().len(), 1);
    let end = relay.stop();
    assert_eq!((&end["allocated"], &end["refused"]), (&0.into(), &1.into()));
}

#[test]
fn a_relay_or_host_that_is_not_found_costs_a_path_and_not_the_transfer() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let small = file(from.path(), 1_000_000);
    let relay = Relay::start("127.0.0.46", &[]);
    let receiver = Receiver::start(to.path(), &["--token", "a secret", "--overwrite"]);
    // Names that no name server is asked for.
    let (none, gone) = ("turn:ann:secret@no..relay", "no..host:7");
    let via =
        |words: &str| ["--via".to_owned(), words.to_owned(), "--token".into(), "a secret".into()];
    let run = |dest: &str, via: &[String]| {
        let more: Vec<&str> = via.iter().map(String::as_str).collect();
        send(&[&small], dest, &more)
    };
    let here = format!("127.0.0.1:{}", receiver.port);
    let dest = format!("{gone},{here}");
    let (code, _, err) = run(&dest, &via(&format!("{none},{}", relay.word())));
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("cannot find the relay no..relay:3478"), "{err}");
    assert!(err.contains("cannot find the host no..host"), "{err}");
    assert!(err.contains(&format!("relay {}: ", relay.address())), "{err}");
    assert!(!err.contains("secret@"), "{err}");
    // Without any it ends.
    let (code, _, err) = run(&here, &via(&format!("{none},{none}")));
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("cannot find the relay no..relay:3478"), "{err}");
    let (code, _, err) = run(&format!("{gone},no..other"), &via(&relay.word()));
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("no..host") && err.contains("no..other"), "{err}");
}

#[test]
fn relays_that_know_each_other_are_all_used_unless_the_user_does_not_want_that() {
    let user = ["--user", "ann:secret"];
    let mut one = Relay::start("127.0.0.47", &user);
    let peers = format!("no..relay,{}", one.address());
    let mut two = Relay::start("127.0.0.48", &[&user[..], &["--peers", &peers]].concat());
    let places = [one.address(), two.address()];
    for (relay, other) in [(&mut one, &places[1]), (&mut two, &places[0])] {
        let event = relay.event("relays");
        let known = &event["relays"][0];
        assert_eq!((&known["address"], &known["alive"]), (&other.as_str().into(), &true.into()));
        assert!(known["rtt_s"].as_f64().unwrap() < 10.0 && known["loss"] == 0.0, "{event}");
    }

    let from = tempdir().unwrap();
    let big = file(from.path(), 100_000_000);
    let via = format!("turn:ann:secret@{}", places[0]);
    let relays = |more: &[&str]| {
        let to = tempdir().unwrap();
        let receiver = Receiver::start(to.path(), &["--once"]);
        let words = ["--via", &via, "--bind", "127.0.0.1", "--preset", "cmt"];
        let (code, sent, err) = send(&[&big], &receiver.ticket, &[&words[..], more].concat());
        assert_eq!(code, 0, "{err}");
        let paths = sent["paths"].as_array().unwrap().iter();
        let mut names: Vec<_> = paths.filter_map(|p| p["relay"].as_str()).collect();
        names.sort_unstable();
        names.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(relays(&["--no-relay-peers"]), places[..1]);
    assert_eq!(relays(&[]), places);
}

#[test]
fn relays_know_each_other_by_a_user_that_is_not_invented() {
    let output = manypath(&["relay", "--peers", "relay.example"]);
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    assert!(stderr(&output).contains("the same first user"), "{}", stderr(&output));
}

#[test]
fn paths_measures_direct_and_relayed_ones() {
    let dir = tempdir().unwrap();
    let relay = Relay::start("127.0.0.44", &["--user", "ann:secret"]);
    let receiver = Receiver::start(dir.path(), &[]);
    let picture = dir.path().join("paths.svg");
    // Without a password in it; that comes from the environment.
    let via = format!("turn:ann@{}", relay.address());
    let run = |more: &[&str]| {
        Command::new(MANYPATH)
            .args(["paths", "--via", &via, "--probes", "5", "--interval", "10ms"])
            .args(["--bind", "127.0.0.1", &receiver.ticket, "--svg"])
            .arg(&picture)
            .args(more)
            .env("MANYPATH_RELAY_PASSWORD", "secret")
            .output()
            .expect("runs")
    };
    let output = run(&["--json"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).expect("an object");
    let paths = report["paths"].as_array().unwrap();
    let relays: Vec<_> = paths.iter().map(|p| p["relay"].clone()).collect();
    assert_eq!(relays, [Value::Null, relay.address().into()]);
    for path in paths {
        assert_eq!((&path["loss"], &path["probes"]), (&0.0.into(), &5.into()), "{path}");
        assert!(path["rtt_s"].as_f64().unwrap() > 0.0 && path["score"].as_f64().unwrap() > 0.0);
    }
    assert!(paths.iter().any(|p| p["selected"] == true));
    assert!(fs::read_to_string(&picture).unwrap().starts_with("<svg"));

    let text = run(&[]);
    let text = stdout(&text);
    assert!(text.contains(&relay.address()) && text.contains("direct"), "{text}");
    assert!(text.contains("the best score"), "{text}");
}

#[test]
fn paths_to_nobody_is_exit_code_4() {
    let output = manypath(&["paths", "--probes", "2", "--interval", "1ms", "127.0.0.1:9"]);
    assert_eq!(code(&output), 4, "{}", stderr(&output));
    assert!(stdout(&output).contains("no probe was answered"));
}

#[test]
fn what_is_wrong_on_the_command_line_is_said_without_passwords() {
    for args in [
        &["send", "--via", "topsecret@host", "Cargo.toml", "127.0.0.1:9"][..],
        &["send", "--via", "turn:ann:topsecret@host:x", "Cargo.toml", "127.0.0.1:9"],
        &["paths", "--via", "turn:ann@host", "127.0.0.1:9"],
        &["relay", "--user", "topsecret"],
        &["relay", "--user", "ann:topsecret", "--user", "ann:topsecret"],
        &["relay", "--allow-peer", "10.0.0.0/99"],
        &["relay", "--ports", "9-1"],
        &["relay", "--users", "/no/such/file"],
    ] {
        let output = manypath(args);
        assert_eq!(code(&output), 2, "{args:?}: {}", stderr(&output));
        assert!(!stderr(&output).contains("topsecret"), "{}", stderr(&output));
    }
}

#[test]
fn a_receiver_is_reached_through_a_relay_by_its_ticket_alone() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let big = file(from.path(), 20_000_000);
    let relay = Relay::start("127.0.0.49", &["--rate-per-user", "0"]);
    // The first relay does not run, the second has no name, and the third does what it should.
    let via = format!("turn:a:b@127.0.0.50:9,turn:a:b@no..relay,{}", relay.word());
    let mut receiver = Receiver::start(to.path(), &["--once", "--via", &via]);
    let relayed = receiver.listening["relayed"].as_array().unwrap().clone();
    let [place] = &relayed[..] else { panic!("{relayed:?}") };
    assert_eq!((&place["relay"], &place["open"]), (&relay.address().into(), &true.into()));
    let (code, sent, err) = send(&[&big], &receiver.ticket, &["--preset", "cmt"]);
    assert_eq!(code, 0, "{err}");
    assert!(fs::read(to.path().join("big")).unwrap() == fs::read(&big).unwrap());
    let through = |path: &&Value| path["remote"] == place["address"];
    let paths = sent["paths"].as_array().unwrap();
    let path = paths.iter().find(through).expect("a path to the relayed address");
    // The transfer began there. Both ends are on this host: it went on directly.
    assert!(path["bytes_sent"].as_u64().unwrap() > 2_000, "{path}");
    assert_eq!(path["rank"], "backup", "{path}");
    let received = receiver.result();
    let names: Vec<_> = received["paths"].as_array().unwrap().iter().map(|p| &p["relay"]).collect();
    assert!(names.contains(&&Value::from(relay.address())), "{names:?}");
    let (_, said) = receiver.end();
    assert!(said.contains("relay 127.0.0.50:9: no answer yet; going on without it"), "{said}");
    assert!(said.contains("cannot find the relay no..relay"), "{said}");
    assert!(!said.contains("stale") && !said.contains("another address"), "{said}");
    assert_eq!(relay.stop()["allocations"], 0, "given back at the end");
}

#[test]
fn a_receiver_without_any_relay_says_so_and_goes_on() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let small = file(from.path(), 1000);
    let receiver = Receiver::start(to.path(), &["--once", "--via", "turn:a:b@127.0.0.50:9"]);
    assert_eq!(receiver.listening["relayed"], Value::Array(Vec::new()));
    let (code, _, err) = send(&[&small], &receiver.ticket, &[]);
    assert_eq!(code, 0, "{err}");
    let (_, said) = receiver.end();
    assert!(said.contains("no relay gave this host an address"), "{said}");
}

#[test]
fn the_environment_names_relays_for_commands_that_listen() {
    let relay = Relay::start("127.0.0.51", &["--no-open"]);
    let listening = |more: &[&str]| {
        let dir = tempdir().unwrap();
        let mut command = Command::new(MANYPATH);
        command.args(["recv", "--listen", "127.0.0.1", "--port", "0", "--dir"]).arg(dir.path());
        command.args(more).env("MANYPATH_RELAY", relay.word());
        let receiver = Receiver::spawn(command);
        (receiver.listening["relayed"].clone(), receiver.said())
    };
    let (relayed, said) = listening(&[]);
    assert_eq!(relayed[0]["open"], false);
    assert!(said.contains("its own users only") && said.contains("--via"), "{said}");
    let (relayed, said) = listening(&["--via", "none"]);
    assert_eq!(relayed, Value::Array(Vec::new()));
    assert!(!said.contains("relay"), "{said}");
}

// ---- Relays for everything, or to meet only ----

#[test]
fn a_receiver_that_takes_relays_alone_tells_nobody_where_it_is() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let big = file(from.path(), 5_000_000);
    let relay = Relay::start("127.0.0.52", &["--rate-per-user", "0"]);
    let words = ["--once", "--relay-only", "--via", &relay.word()];
    let mut receiver = Receiver::start(to.path(), &words);
    assert_eq!(receiver.listening["addresses"], Value::Array(Vec::new()));
    let place = receiver.listening["relayed"][0]["address"].clone();
    let (code, sent, err) = send(&[&big], &receiver.ticket, &[]);
    assert_eq!(code, 0, "{err}");
    let paths = sent["paths"].as_array().unwrap();
    assert!(paths.iter().all(|path| path["remote"] == place), "{paths:?}");
    let received = receiver.result();
    let paths = received["paths"].as_array().unwrap();
    assert!(paths.iter().all(|path| path["relay"] == relay.address()), "{paths:?}");
}

#[test]
fn a_sender_that_takes_relays_alone_is_seen_at_its_relay() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let small = file(from.path(), 100_000);
    let (near, far) = (Relay::start("127.0.0.53", &[]), Relay::start("127.0.0.54", &[]));
    let mut receiver = Receiver::start(to.path(), &["--once", "--via", &far.word()]);
    let words = ["--relay-only", "--via", &near.word()];
    let (code, sent, err) = send(&[&small], &receiver.ticket, &words);
    assert_eq!(code, 0, "{err}");
    let own = sent["paths"][0]["local"].clone();
    let received = receiver.result();
    let paths = received["paths"].as_array().unwrap();
    assert!(paths.iter().all(|path| path["remote"] == own), "{own}: {paths:?}");
}

/// Both ends are on one host, so a direct path is found at once.
#[test]
fn a_relay_that_is_there_to_meet_carries_no_content() {
    for [here, there] in [["--direct-only", "-v"], ["-v", "--direct-only"]] {
        let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
        let big = file(from.path(), 5_000_000);
        let relay = Relay::start("127.0.0.55", &[]);
        let receiver = Receiver::start(to.path(), &["--once", there, "--via", &relay.word()]);
        let place = receiver.listening["relayed"][0]["address"].clone();
        let (code, sent, err) = send(&[&big], &receiver.ticket, &[here]);
        assert_eq!(code, 0, "{err}");
        let paths = sent["paths"].as_array().unwrap();
        let through = paths.iter().filter(|path| path["remote"] == place);
        let bytes: u64 = through.map(|path| path["bytes_sent"].as_u64().unwrap()).sum();
        assert!(bytes < 50_000, "{bytes} bytes through the relay: {paths:?}");
    }
}

/// The client alone wants it, and knows nothing but an address. The server learns of the wish
/// before it is asked for content.
#[test]
fn a_server_sends_no_content_through_a_relay_at_which_its_client_wants_to_meet() {
    let relay = Relay::start("127.0.0.57", &[]);
    let mut server = Command::new(MANYPATH);
    server.args(["perf", "server", "--once", "--listen", "127.0.0.1", "--port", "0"]);
    server.args(["--via", &relay.word()]);
    let server = Receiver::spawn(server);
    let place = server.listening["relayed"][0]["address"].as_str().unwrap().to_owned();
    let words = ["perf", "client", "-R", "-t", "0.5", "--json", "--bind", "127.0.0.1"];
    let words = [&words[..], &["--direct-only", &place]].concat();
    let output = manypath(&words);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let result: Value = serde_json::from_str(&stdout(&output)).expect("one object");
    assert!(result["bytes"].as_u64().unwrap() > 1_000_000, "{result}");
    let paths = result["paths"].as_array().unwrap();
    let through = paths.iter().find(|path| path["remote"] == place).expect("a path");
    assert!(through["data_bytes_received"].as_u64().unwrap() < 1000, "{through}");
}

#[test]
fn content_that_no_relay_may_carry_ends_with_exit_code_4_where_no_direct_path_is_found() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let small = file(from.path(), 1000);
    let relay = Relay::start("127.0.0.56", &[]);
    let receiver = Receiver::start(to.path(), &["--once", "--relay-only", "--via", &relay.word()]);
    let (code, _, err) = send(&[&small], &receiver.ticket, &["--direct-only"]);
    assert_eq!(code, 4, "{err}");
    assert!(err.contains("leave out --direct-only, or see `manypath doctor`"), "{err}");
    let (code, said) = receiver.end();
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("found no direct path"), "{said}");
    assert!(!to.path().join("big").exists());
}

#[test]
fn options_for_relays_that_make_no_sense_say_what_to_do() {
    for (args, exit, hint) in [
        (&["recv", "--relay-only", "--direct-only"][..], 2, "cannot be used with"),
        (&["recv", "--relay-only", "--name", "laptop"], 2, "cannot be used with"),
        (&["recv", "--relay-only", "--via", "none"], 2, "name one with --via RELAY"),
        (&["perf", "server", "--relay-only", "--via", "none"], 2, "name one with --via RELAY"),
        (&["proxy", "listen", "--relay-only", "--via", "none"], 2, "name one with --via RELAY"),
        (&["send", "--relay-only", "Cargo.toml", "127.0.0.1:9"], 2, "--via RELAY"),
        (&["perf", "client", "--relay-only", "127.0.0.1:9"], 2, "--via RELAY"),
        (
            &["recv", "--relay-only", "--port", "0", "--via", "turn:a:b@127.0.0.50:9"],
            4,
            "leave out --relay-only",
        ),
    ] {
        let words: Vec<&str> =
            args.iter().copied().chain(token_for(args).iter().copied()).collect();
        let output = manypath(&words);
        assert_eq!(code(&output), exit, "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(hint), "{args:?}: {}", stderr(&output));
    }
}

/// A token for `send`, which would ask for one.
fn token_for<'a>(args: &[&str]) -> &'a [&'a str] {
    if args[0] == "send" { &["--token", "correct horse"] } else { &[] }
}
