//! Traces of protected runs with their packets opened: they show what is inside, and change
//! nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

use manypath_sim::TraceTo;
use manypath_sim::scenario::{RunOptions, RunResult, Scenario};
use manypath_trace::{ChunkSummary, Event, OPENED, PacketSummary, Record, Records};

/// Rekeyed every 100 packets, with losses.
const SCENARIO: &str = r#"
    name = "opened"
    time_limit = "60 s"
    protected = true
    [transport]
    profile = "fast"
    preset = "cmt-pf"
    rekey_packets = 100
    [transfer]
    size = "500 kB"
    [[path]]
    rate = "10 Mbit/s"
    delay = "10 ms"
    [[path]]
    rate = "10 Mbit/s"
    delay = "45 ms"
    loss = "2 %"
"#;

fn run(trace: Option<TraceTo>) -> RunResult {
    let points = Scenario::parse("opened.toml", SCENARIO).unwrap().points().unwrap();
    points[0].run.run(5, &RunOptions { trace, ..RunOptions::default() }).unwrap().result
}

fn traced(dir: &Path, opened: bool) -> RunResult {
    let (lines, captures) = (dir.join("events.jsonl"), dir.to_owned());
    run(Some(TraceTo { json_lines: Some(lines), pcapng_dir: Some(captures), opened, record: None }))
}

fn packets(dir: &Path) -> Vec<(String, PacketSummary)> {
    let lines = fs::read(dir.join("events.jsonl")).unwrap();
    let records = Records::new(lines.as_slice()).map(Result::unwrap);
    let packet = |record: Record| match record.event {
        Event::PacketSent(packet) => Some((record.host, packet)),
        _ => None,
    };
    records.filter_map(packet).collect()
}

fn has_dtls(packet: &PacketSummary) -> bool {
    packet.chunks.iter().any(|chunk| matches!(chunk, ChunkSummary::Dtls { .. }))
}

#[test]
fn opened_traces_show_the_chunks_inside() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let plain = run(None);
    let results = [traced(dirs[0].path(), false), traced(dirs[1].path(), true)];
    assert!(results.iter().all(|result| *result == plain), "the same run, with the same hash");
    let [closed, opened] = [&dirs[0], &dirs[1]].map(|dir| packets(dir.path()));

    let sealed = closed.iter().filter(|(_, packet)| has_dtls(packet)).count();
    assert!(sealed > 500, "{sealed}");
    assert!(closed.iter().all(|(_, packet)| !packet.opened));
    assert_eq!(opened.iter().filter(|(_, packet)| packet.opened).count(), sealed);
    let mut data_chunks = 0;
    for ((host, packet), (same_host, inner)) in closed.iter().zip(&opened) {
        assert_eq!((host, packet.packet, packet.bytes), (same_host, inner.packet, inner.bytes));
        assert_eq!(has_dtls(packet), inner.opened);
        assert!(!has_dtls(inner));
        let is_malformed = |chunk: &_| matches!(chunk, ChunkSummary::Malformed { .. });
        assert!(!inner.chunks.iter().any(is_malformed), "{inner:?}");
        let data = inner.chunks.iter().filter(|chunk| matches!(chunk, ChunkSummary::Data { .. }));
        data_chunks += if host == "a" { data.count() as u64 } else { 0 };
    }
    let sent = plain.transfer.paths.iter().map(|path| path.stats.counters.data_chunks_sent);
    assert_eq!(data_chunks, sent.sum::<u64>());
}

#[test]
fn opened_captures_are_those_of_plain_packets_with_a_comment() {
    let dir = tempfile::tempdir().unwrap();
    traced(dir.path(), true);
    let file = dir.path().join("opened-seed5-a.pcapng");
    let bytes = fs::read(&file).unwrap();
    let comments = bytes.windows(OPENED.len()).filter(|part| *part == OPENED.as_bytes()).count();
    assert!(comments > 500, "{comments}");

    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&file).args(["-o", "sctp.checksum:CRC 32c", "-T", "fields"]);
    tshark.args(["-e", "sctp.chunk_type", "-e", "sctp.checksum.status", "-e", "frame.comment"]);
    let output = match tshark.output() {
        Ok(output) => output,
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "tshark must run in CI: {error}");
            eprintln!("SKIPPED: tshark is not installed, the captures were not dissected");
            return;
        }
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert!(lines.iter().all(|fields| fields[1] == "1"), "a checksum is wrong");
    assert!(!lines.iter().any(|fields| fields[0] == "65"), "a DTLS chunk is left");
    assert_eq!(lines.iter().filter(|fields| fields[2].contains(OPENED)).count(), comments);
    let lost = lines.iter().filter(|fields| fields[2].contains("dropped: loss"));
    assert!(lost.clone().count() > 0 && lost.clone().all(|fields| fields[2].contains(OPENED)));
    assert!(lines.iter().filter(|fields| fields[0].split(',').any(|ty| ty == "0")).count() > 300);
}
