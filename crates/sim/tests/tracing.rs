//! A run and its trace: the trace tells what the run's own result and log tell, and changes
//! nothing.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use manypath_sim::scenario::{RunOptions, Scenario};
use manypath_sim::{Pair, PairBuilder, TraceTo, Tracer, chunk_type, secs};
use manypath_trace::{ChunkSummary, Event, Record, Records};

/// A writer whose bytes the test can read afterwards.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Two paths, one of them lossy and cut for three seconds.
fn lossy(profile: &str) -> PairBuilder {
    Pair::two_paths("cmt-pf").profile(profile).path(1, |path| path.loss(0.03)).seed(11)
}

fn run(mut t: Pair) -> Pair {
    t.net.path(1).at(secs(2)).cut_for(std::time::Duration::from_secs(3));
    t.a.send_file(4_000_000);
    t.run_to_end(secs(300));
    t.a.shutdown();
    t.run_to_end(secs(400));
    assert!(t.result().completed);
    t
}

fn follow(t: &mut Pair, mut tracer: Tracer) {
    for (name, host) in [("a", &t.a), ("z", &t.z)] {
        tracer.host(host.node(), name, host.config()).unwrap();
    }
    t.net.set_observer(Box::new(tracer));
}

/// A run and the records of its trace.
fn traced() -> (Pair, Vec<Record>) {
    let out = Shared::default();
    let mut t = lossy("2006").start();
    follow(&mut t, Tracer::new("lossy", 11).json_lines(Box::new(out.clone())));
    let mut t = run(t);
    t.net.take_observer().unwrap().finish().unwrap();
    let bytes = out.0.lock().unwrap();
    let records = Records::new(bytes.as_slice()).collect::<Result<Vec<_>, _>>().unwrap();
    (t, records)
}

#[test]
fn a_trace_changes_nothing() {
    let plain = run(lossy("2006").start());
    let (traced, records) = traced();
    assert!(records.len() > 10_000, "{} records", records.len());
    assert_eq!(plain.net.trace_hash(), traced.net.trace_hash());
    assert_eq!(plain.result(), traced.result());
}

#[test]
fn a_trace_has_every_packet_and_its_fate() {
    let (t, records) = traced();
    let mut sent: BTreeMap<u64, &Record> = BTreeMap::new();
    let (mut received, mut dropped) = (0, 0);
    for record in &records {
        match &record.event {
            Event::PacketSent(packet) => assert!(sent.insert(packet.packet, record).is_none()),
            Event::PacketReceived(packet) => {
                let sender = sent[&packet.packet];
                assert!(sender.time < record.time);
                assert_ne!(sender.host, record.host);
                received += 1;
            }
            Event::PacketDropped { packet, .. } => {
                assert_eq!(sent[packet].host, record.host);
                dropped += 1;
            }
            _ => {}
        }
    }
    let log = t.net.packet_log().unwrap().packets();
    assert_eq!(sent.len(), log.len());
    assert_eq!(dropped, log.iter().filter(|packet| packet.is_dropped()).count());
    assert!(dropped > 20, "{dropped}");
    assert_eq!(received + dropped, log.len(), "nothing is under way at the end");
}

#[test]
fn the_events_of_a_trace_add_up_to_the_result() {
    let (t, records) = traced();
    let result = t.result();
    for (number, path) in result.paths.iter().enumerate() {
        let number = number as u16 + 1;
        let count = |accepts: &dyn Fn(&Event) -> u64| -> u64 {
            let at_a = records.iter().filter(|record| record.host == "a");
            at_a.map(|record| accepts(&record.event)).sum()
        };
        let packets = count(&|event| match event {
            Event::PacketSent(packet) => u64::from(packet.path == Some(number)),
            _ => 0,
        });
        assert_eq!(packets, path.stats.counters.packets_sent, "path {number}");
        let data = count(&|event| match event {
            Event::PacketSent(packet) if packet.path == Some(number) => {
                let is_data = |chunk: &&ChunkSummary| matches!(chunk, ChunkSummary::Data { .. });
                packet.chunks.iter().filter(is_data).count() as u64
            }
            _ => 0,
        });
        assert_eq!(data, path.stats.counters.data_chunks_sent, "path {number}");
        let expired = count(&|event| u64::from(*event == Event::T3Expired { path: number }));
        assert_eq!(expired, path.stats.counters.t3_expirations, "path {number}");
        let fast = count(&|event| match event {
            Event::FastRetransmit { path, chunks } if *path == number => *chunks,
            _ => 0,
        });
        assert_eq!(fast, path.stats.counters.fast_retransmits, "path {number}");
        let changes = count(&|event| {
            matches!(event, Event::PathState { path, .. } if *path == number) as u64
        });
        assert_eq!(changes, path.state_changes.len() as u64, "path {number}");
        let last = records.iter().rev().find_map(|record| match &record.event {
            Event::PathMetrics(m) if record.host == "a" && m.path == number => Some(m.cwnd_bytes),
            _ => None,
        });
        assert_eq!(last, Some(path.stats.cwnd as u64), "path {number}");
    }
    let delivered: u64 = records
        .iter()
        .map(|record| match &record.event {
            Event::Delivered { bytes, .. } if record.host == "z" => *bytes,
            _ => 0,
        })
        .sum();
    assert_eq!(delivered, 4_000_000);
    assert!(records.iter().any(|r| matches!(&r.event, Event::T3Expired { .. })));
    assert!(records.iter().any(|r| matches!(&r.event, Event::FastRetransmit { .. })));
    assert!(records.iter().any(|r| matches!(&r.event, Event::Closed { .. })));
}

#[test]
fn time_never_runs_back_in_a_trace() {
    let (_, records) = traced();
    assert!(records.iter().zip(&records[1..]).all(|(first, second)| first.time <= second.time));
}

#[test]
fn a_closed_receive_buffer_is_told_from_its_beginning_to_its_end() {
    let out = Shared::default();
    let mut t = Pair::one_path("sctp").set("receive_buffer", "20 KiB").start();
    follow(&mut t, Tracer::new("blocked", 1).json_lines(Box::new(out.clone())));
    t.a.send_file(1_000_000);
    t.z.pause_reading();
    t.run_until(secs(5));
    t.z.resume_reading();
    t.run_to_end(secs(120));
    t.net.take_observer().unwrap().finish().unwrap();
    let bytes = out.0.lock().unwrap();
    let records: Vec<Record> = Records::new(bytes.as_slice()).map(Result::unwrap).collect();
    let (mut total, mut since) = (0.0, None);
    for record in records.iter().filter(|record| record.host == "a") {
        match record.event {
            Event::ReceiveBufferBlocked => since = Some(record.time),
            Event::ReceiveBufferUnblocked { blocked_s } => {
                let began = since.take().expect("it began");
                assert!((blocked_s - (record.time - began).as_secs_f64()).abs() < 1e-9);
                total += blocked_s;
            }
            _ => {}
        }
    }
    assert!(total > 4.0, "{total}");
    assert!((total - t.result().receive_buffer_blocked_s).abs() < 1e-6, "{total}");
}

#[test]
fn an_error_of_the_writer_comes_at_the_end_and_stops_nothing() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("disk full"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut t = lossy("2006").start();
    follow(&mut t, Tracer::new("lossy", 11).json_lines(Box::new(Full)));
    let mut t = run(t);
    let error = t.net.take_observer().unwrap().finish().unwrap_err();
    assert_eq!(error.to_string(), "disk full");
}

// ---- pcapng ----

fn captured(profile: &str, nr_sack: &str, dir: &Path) -> Pair {
    let to = TraceTo { pcapng_dir: Some(dir.join("captures")), ..TraceTo::default() };
    let mut t = lossy(profile).set("nr_sack", nr_sack).start();
    let tracer = to.open("lossy", &[("path.2.loss".to_owned(), "3 %".to_owned())], 11).unwrap();
    follow(&mut t, tracer);
    let mut t = run(t);
    t.net.take_observer().unwrap().finish().unwrap();
    t
}

/// tshark's dissection of one packet.
#[derive(Debug)]
struct Dissected {
    protocols: String,
    time: String,
    interface: String,
    is_outbound: bool,
    comment: String,
    chunk_types: Vec<u8>,
    /// Wireshark's 0: bad; of IP, of UDP if there is any, of SCTP.
    checksums: String,
    /// Wireshark's remarks.
    remarks: String,
    /// How grave the remarks are.
    severities: String,
}

const FIELDS: [&str; 12] = [
    "frame.protocols",
    "frame.time_epoch",
    "frame.interface_name",
    "frame.packet_flags_direction",
    "frame.comment",
    "sctp.chunk_type",
    "ip.checksum.status",
    "udp.checksum.status",
    "sctp.checksum.status",
    "_ws.malformed",
    "_ws.expert.message",
    "_ws.expert.severity",
];

/// Dissects a capture, with every check of checksums on. `None`, loudly, if tshark is not
/// installed.
fn tshark(file: &Path) -> Option<Vec<Dissected>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-T", "fields", "-E", "separator=/t"]);
    for check in ["sctp.checksum:CRC 32c", "ip.check_checksum:TRUE", "udp.check_checksum:TRUE"] {
        command.args(["-o", check]);
    }
    command.args(FIELDS.iter().flat_map(|field| ["-e", field]));
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "tshark must run in CI: {error}");
            eprintln!("SKIPPED: tshark is not installed, the captures were not dissected");
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(dissected).collect())
}

fn dissected(line: &str) -> Dissected {
    let fields: Vec<&str> = line.split('\t').collect();
    let [
        protocols,
        time,
        interface,
        direction,
        comment,
        types,
        ip,
        udp,
        sctp,
        malformed,
        remarks,
        severities,
    ] = fields[..]
    else {
        panic!("{line:?}");
    };
    let types = types.split(',').filter(|ty| !ty.is_empty());
    Dissected {
        protocols: protocols.to_owned(),
        time: time.to_owned(),
        interface: interface.to_owned(),
        is_outbound: direction.parse::<u32>().unwrap_or_else(|_| hexadecimal(direction)) == 2,
        comment: comment.to_owned(),
        chunk_types: types.map(|ty| ty.parse().unwrap()).collect(),
        checksums: [ip, udp, sctp].concat(),
        remarks: format!("{malformed}{remarks}"),
        severities: severities.to_owned(),
    }
}

fn hexadecimal(number: &str) -> u32 {
    u32::from_str_radix(number.trim_start_matches("0x"), 16).unwrap()
}

/// Wireshark's severity from which on it speaks of a warning or an error.
const WARNING: u32 = 0x60_0000;

/// True if Wireshark warns of something, except for SACKs of long gaps: with SFR those are no
/// fault.
fn is_wrong(packet: &Dissected) -> bool {
    let is_grave = |severity: &str| {
        severity.parse::<u32>().unwrap_or_else(|_| hexadecimal(severity)) >= WARNING
    };
    let is_long_gap = packet.remarks == "More than 100 TSNs were gap-acknowledged in this SACK.";
    packet.severities.split(',').any(|s| !s.is_empty() && is_grave(s)) && !is_long_gap
}

fn check_captures(profile: &str, nr_sack: &str, protocols: &str, checksums: &str) -> Option<()> {
    let dir = tempfile::tempdir().unwrap();
    let t = captured(profile, nr_sack, dir.path());
    let log = t.net.packet_log().unwrap().packets();
    for (name, host) in [("a", &t.a), ("z", &t.z)] {
        let file = format!("captures/lossy-path.2.loss-3-seed11-{name}.pcapng");
        let packets = tshark(&dir.path().join(file))?;
        for packet in &packets {
            assert!(packet.protocols.starts_with(protocols), "{packet:?}");
            assert_eq!(packet.checksums, checksums, "{packet:?}");
            assert!(!is_wrong(packet), "{packet:?}");
        }
        let sent: Vec<_> = log.iter().filter(|packet| packet.from == host.node()).collect();
        let from_peer = log.iter().filter(|packet| packet.from != host.node());
        let received: Vec<_> = from_peer.filter(|packet| !packet.is_dropped()).collect();
        let sack = if nr_sack == "true" { chunk_type::NR_SACK } else { chunk_type::SACK };
        assert!(packets.iter().any(|packet| packet.chunk_types.contains(&sack)));
        for ty in [chunk_type::DATA, sack, chunk_type::HEARTBEAT, chunk_type::INIT] {
            let logged = sent.iter().chain(&received).flat_map(|packet| packet.chunks());
            let logged = logged.filter(|chunk| chunk.ty() == ty).count();
            let found = packets.iter().flat_map(|packet| &packet.chunk_types);
            assert_eq!(found.filter(|t| **t == ty).count(), logged, "{name}, chunk type {ty}");
        }
        let count = |accepts: &dyn Fn(&Dissected) -> bool| {
            packets.iter().filter(|packet| accepts(packet)).count()
        };
        assert_eq!(count(&|packet| packet.is_outbound), sent.len());
        assert_eq!(count(&|packet| !packet.is_outbound), received.len());
        let dropped = sent.iter().filter(|packet| packet.is_dropped()).count();
        assert_eq!(count(&|packet| packet.comment.starts_with("dropped: ")), dropped);
        assert!(count(&|packet| packet.interface == format!("{name} path 2")) > 100);
        assert!(packets.is_sorted_by(|one, next| one.time <= next.time || one.time.len() < next.time.len()));
        if name == "a" {
            assert_eq!((&*packets[0].time, &*packets[0].interface), ("0.000000000", "a path 1"));
        }
    }
    Some(())
}

#[test]
fn tshark_finds_nothing_wrong_in_captures_over_ip() {
    check_captures("2006", "false", "raw:ip:sctp", "11");
}

#[test]
fn tshark_finds_nothing_wrong_in_captures_over_udp() {
    check_captures("rfc9260", "false", "raw:ip:udp:sctp", "111");
}

#[test]
fn tshark_finds_nothing_wrong_in_nr_sacks() {
    check_captures("2006", "true", "raw:ip:sctp", "11");
}

#[test]
fn a_capture_that_cannot_be_written_says_which_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let to = TraceTo { pcapng_dir: Some(file), ..TraceTo::default() };
    let error = to.open("x", &[], 1).unwrap_err().to_string();
    assert!(error.starts_with("cannot write ") && error.contains("file"), "{error}");
}

// ---- Scenarios ----

#[test]
fn a_scenario_traces_each_run_into_files_of_its_own() {
    let text = r#"
        name = "two flows: traced"
        time_limit = "60 s"
        seeds = 1
        [transport]
        profile = "2006"
        preset = "cmt"
        [transfer]
        size = "200 kB"
        [[path]]
        rate = "10 Mbit/s"
        delay = "45 ms"
        [[path]]
        rate = "10 Mbit/s"
        delay = "45 ms"
        [sweep]
        "path.2.loss" = ["1 %", "9 %"]
    "#;
    let dir = tempfile::tempdir().unwrap();
    for point in Scenario::parse("traced.toml", text).unwrap().points().unwrap() {
        let value = point.params[0].1.trim_end_matches(" %");
        let lines = dir.path().join(format!("{value}.jsonl"));
        let trace = Some(TraceTo {
            json_lines: Some(lines.clone()),
            pcapng_dir: Some(dir.path().to_owned()),
            ..TraceTo::default()
        });
        let options = RunOptions { trace, ..RunOptions::default() };
        let result = point.run.run(5, &options).unwrap().result;
        let plain = point.run.run(5, &RunOptions::default()).unwrap().result;
        assert_eq!(result, plain, "the trace changes nothing");
        let lines = fs::read(lines).unwrap();
        let records: Vec<Record> = Records::new(lines.as_slice()).map(Result::unwrap).collect();
        let acknowledged = records.iter().rev().find_map(|record| match record.event {
            Event::Acknowledged { total_bytes, .. } => Some(total_bytes),
            _ => None,
        });
        assert_eq!(acknowledged, Some(200_000));
        for host in ["a", "z"] {
            let name = format!("two-flows-traced-path.2.loss-{value}-seed5-{host}.pcapng");
            assert!(fs::metadata(dir.path().join(name)).unwrap().len() > 100_000);
        }
    }
    let options = RunOptions {
        trace: Some(TraceTo {
            json_lines: Some(dir.path().join("no/such/dir")),
            ..TraceTo::default()
        }),
        ..RunOptions::default()
    };
    let point = &Scenario::parse("traced.toml", text).unwrap().points().unwrap()[0];
    let error = point.run.run(5, &options).unwrap_err().to_string();
    assert!(error.starts_with("cannot write ") && error.contains("such"), "{error}");
}
