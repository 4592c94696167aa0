//! `send` over three emulated paths of which one fails five times: MSACMT-RTv2 with both cycles
//! beside CMT-PF.
#![cfg(target_os = "linux")] // all of 127/8 is there

mod common;

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use common::{MANYPATH, Receiver, noise, send};
use manypath::{Instant, Rng};
use manypath_realtime::emulator::{EmulatedPath, Epoch};
use manypath_sim::{LinkSpec, PathSpec, QueueLimit};
use serde_json::Value;
use tempfile::tempdir;

/// The paths: Mbit/s, and milliseconds each way.
const PATHS: [(u64, u64); 3] = [(10, 10), (10, 20), (10, 30)];
/// When the second path is down: five times 400 ms.
const OUTAGES: [u64; 5] = [500, 1300, 2100, 2900, 3700];
const OUTAGE: Duration = Duration::from_millis(400);
const BYTES: usize = 20_000_000;
const TOKEN: &str = "three-paths";

fn loopback(block: u8, path: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, block, path as u8 + 1))
}

fn list(block: u8) -> String {
    (0..PATHS.len()).map(|path| loopback(block, path).to_string()).collect::<Vec<_>>().join(",")
}

/// The paths between a sender and the receiver at `block` and that port.
async fn paths(block: u8, port: u16, epoch: &Epoch) -> Vec<EmulatedPath> {
    let mut paths = Vec::new();
    for (path, (mbps, delay)) in PATHS.into_iter().enumerate() {
        let link = LinkSpec::mbps_ms(mbps as f64, delay as f64).queue(QueueLimit::Bytes(150_000));
        let mut spec = PathSpec::hops([link]);
        if path == 1 {
            for at in OUTAGES {
                spec = spec.down(Instant::from_millis(at), Some(OUTAGE));
            }
        }
        let server = SocketAddr::new(loopback(block, path), port);
        let rng = Rng::from_number(path as u64);
        let path =
            EmulatedPath::start(loopback(block + 1, path), server, &spec, rng, epoch.clone());
        paths.push(path.await.expect("a path"));
    }
    paths
}

/// Sends the file with that preset and that cycle of redundancy; the sender's result.
fn transfer(preset: &str, cycle: &str, block: u8, file: &Path) -> Value {
    let to = tempdir().unwrap();
    let cycle = format!("redundancy_cycle={cycle}");
    let transport = ["--preset", preset, "--set", "advertise_addresses=false", "--set", &cycle];
    let mut command = Command::new(MANYPATH);
    command.args(["recv", "--once", "--port", "0", "--token", TOKEN, "--listen", &list(block)]);
    command.args(transport).arg("--dir").arg(to.path());
    let mut receiver = Receiver::spawn(command);

    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
    let epoch = Epoch::default();
    let paths = runtime.block_on(paths(block, receiver.port as u16, &epoch));
    let dest: Vec<_> = paths.iter().map(|path| path.address().to_string()).collect();
    let bind = list(block + 2);
    let more = [&["--token", TOKEN, "--bind", &bind][..], &transport].concat();
    let (code, sent, err) = send(&[file], &dest.join(","), &more);
    assert_eq!(code, 0, "{preset}: {err}");
    let last_outage = Duration::from_millis(OUTAGES[4]) + OUTAGE;
    assert!(epoch.elapsed() > last_outage, "{preset} met all outages: {:?}", epoch.elapsed());
    assert_eq!(receiver.result()["completed"], true);
    let copy = to.path().join(file.file_name().unwrap());
    assert!(fs::read(copy).unwrap() == fs::read(file).unwrap(), "{preset}: the file is the same");
    sent
}

#[test]
fn a_path_that_fails_five_times_with_and_without_redundancy() {
    let from = tempdir().unwrap();
    let file = from.path().join("file");
    fs::write(&file, noise(BYTES)).unwrap();
    let systems = [("cmt-pf", "keep"), ("msacmt-rtv2", "keep"), ("msacmt-rtv2", "restart")];
    let results = thread::scope(|scope| {
        let start = |(i, (preset, cycle))| {
            let file = &file;
            scope.spawn(move || transfer(preset, cycle, 71 + 10 * i as u8, file))
        };
        let running: Vec<_> = systems.into_iter().enumerate().map(start).collect();
        running.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
    });
    let paths = |result: &Value, key: &str| -> u64 {
        result["paths"].as_array().unwrap().iter().map(|path| path[key].as_u64().unwrap()).sum()
    };
    for (result, (_, cycle)) in results.iter().zip(systems) {
        let number = |key: &str| result[key].as_f64().unwrap_or_else(|| panic!("{key}: {result}"));
        let preset = &result["preset"];
        println!(
            "{preset}, {cycle}: {:.2} s, overhead {:.3}, longest gap {:.3} s, latency of 99 of 100 messages {:.3} s",
            number("transfer_time_s"),
            number("overhead"),
            number("max_delivery_gap_s"),
            number("message_latency_p99_s"),
        );
        assert_eq!((&result["completed"], &result["bytes"]), (&true.into(), &BYTES.into()));
        assert_eq!(result["paths"].as_array().unwrap().len(), 3, "no way around: {result}");
        let changes = result["paths"][1]["state_changes"].as_array().unwrap();
        let failures = changes.iter().filter(|c| c["to"] == "potentially_failed").count();
        assert!(failures >= 3, "{preset} noticed the failures: {result}");
        let sent = paths(result, "bytes_sent") as f64;
        assert!((number("overhead") - sent / BYTES as f64).abs() < 0.02, "{result}");
        assert!(number("max_delivery_gap_s") < 3.0, "{result}");
        // A message waits for an acknowledgement, so for one round trip at least.
        assert!(number("message_latency_p99_s") > 0.02, "{result}");
    }
    let copies = |result: &Value| paths(result, "redundant_chunks_sent");
    let [pf, keep, restart] = &results[..] else { panic!("three systems") };
    assert_eq!(copies(pf), 0);
    for (result, cycle) in [(keep, "keep"), (restart, "restart")] {
        assert!(copies(result) > 200, "{cycle}: {} copies: {result}", copies(result));
        // What copies cost, told by the transfer itself: a busy machine makes each lose otherwise.
        let mean_chunk = paths(result, "bytes_sent") / paths(result, "data_chunks_sent");
        let first = paths(result, "bytes_sent") - copies(result) * mean_chunk * 9 / 10;
        assert!(first >= BYTES as u64, "{cycle}: copies are not what was sent beside: {result}");
    }
}
