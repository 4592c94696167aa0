//! `recv` and `perf server` while strangers open associations and do not say who they are.

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{MANYPATH, Receiver, code, manypath, send, stderr};
use manypath::keys::{Identity, PeerKeys, TlsKeys};
use manypath::{
    AssocClosed, Association, BindTo, Endpoint, EndpointOptions, SendOptions, StreamId,
};
use tempfile::tempdir;
use tokio::time::Instant;

/// The stream of both protocols is 0.
fn frame(ppid: u32) -> SendOptions {
    SendOptions { stream: StreamId(0), ppid, unordered: false, ..SendOptions::default() }
}

/// Payload protocol identifier of the frames of transfers, and of measurements.
const TRANSFER: u32 = 0x6d70_0001;
const MEASUREMENT: u32 = 0x6d70_0011;

fn hello(token: &[u8]) -> Vec<u8> {
    [b"\x01MPFT\x02", &[token.len() as u8][..], token, &[0; 12]].concat()
}

/// Asks to send for an hour.
fn request() -> Vec<u8> {
    let hour = 3_600_000_000_000_u64;
    let [no_limit, no_rate] = [[0xff; 8], [0; 8]];
    let size = 1000_u32.to_be_bytes();
    [b"\x01MPPF\x02\x00", &size[..], &hour.to_be_bytes(), &no_limit, &no_rate].concat()
}

/// An association with `server` from an endpoint of its own.
async fn open(ip: &str, server: SocketAddr) -> Option<(Endpoint, Association)> {
    let bind = vec![BindTo::Address(ip.parse().unwrap())];
    let keys = TlsKeys::raw_public_keys(&Identity::generate().unwrap(), PeerKeys::Any);
    let endpoint =
        Endpoint::bind(EndpointOptions { bind, ..EndpointOptions::client(keys) }).unwrap();
    let association = endpoint.connect(server).await.ok()?;
    Some((endpoint, association))
}

/// This many silent associations.
async fn silent(count: usize, server: SocketAddr) -> Vec<(Endpoint, Association)> {
    let mut all = Vec::new();
    for i in 0..count {
        let ip = format!("127.0.{}.1", i % 7);
        all.push(open(&ip, server).await.expect("nobody is refused"));
    }
    all
}

async fn end_of(association: &Association) -> String {
    match association.closed().await {
        AssocClosed::PeerAborted { reason, .. } => String::from_utf8(reason).unwrap(),
        other => panic!("{other}"),
    }
}

fn local(port: u64) -> SocketAddr {
    SocketAddr::new([127, 0, 0, 1].into(), u16::try_from(port).unwrap())
}

/// A `perf server`, its port, and how to end it.
struct PerfServer(Child, SocketAddr);

impl PerfServer {
    fn start() -> PerfServer {
        let mut server = Command::new(MANYPATH)
            .args(["perf", "server", "--listen", "127.0.0.1", "--port", "0", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let listening: serde_json::Value = serde_json::from_str(&line).unwrap();
        PerfServer(server, local(listening["port"].as_u64().unwrap()))
    }
}

impl Drop for PerfServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_strangers_keep_no_sender_out() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let file = from.path().join("x");
    fs::write(&file, common::noise(3_000_000)).unwrap();
    let receiver = Receiver::start(to.path(), &["--overwrite", "--token", "correct horse"]);
    let dest = format!("127.0.0.1:{}", receiver.port);
    let _silent = silent(100, local(receiver.port)).await;
    for _ in 0..3 {
        let (code, _, err) = send(&[&file], &dest, &["--token", "correct horse"]);
        assert_eq!(code, 0, "{err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_strangers_keep_no_measurement_out() {
    let server = PerfServer::start();
    let _silent = silent(40, server.1).await;
    let output = manypath(&["perf", "client", &server.1.to_string(), "-n", "1 MB"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn measurements_that_stand_still_make_room() {
    let server = PerfServer::start();
    let mut holders = silent(4, server.1).await;
    for (_, holder) in &mut holders {
        holder.send(frame(MEASUREMENT), request().into()).await.unwrap();
        assert!(holder.recv().await.unwrap().is_some(), "accepted");
    }
    let (_fifth, association) = open("127.0.0.5", server.1).await.unwrap();
    association.send(frame(MEASUREMENT), request().into()).await.unwrap();
    assert!(end_of(&association).await.starts_with("busy"), "they may go on for a while");
    // They are asked to leave when somebody comes later than that.
    tokio::time::sleep(Duration::from_secs(11)).await;
    let output = manypath(&["perf", "client", &server.1.to_string(), "-n", "1 MB"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let left = holders.iter().filter(|(_, a)| a.close_reason().is_none()).count();
    assert_eq!(left, 3, "one made room");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_asks_a_busy_server_again() {
    let server = PerfServer::start();
    let mut holders = silent(4, server.1).await;
    for (_, holder) in &mut holders {
        holder.send(frame(MEASUREMENT), request().into()).await.unwrap();
        assert!(holder.recv().await.unwrap().is_some(), "accepted");
    }
    let server_address = server.1.to_string();
    let client = tokio::task::spawn_blocking(move || {
        manypath(&["perf", "client", &server_address, "-n", "1 MB", "--connect-timeout", "60 s"])
    });
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!client.is_finished(), "a busy server is no reason to give up");
    holders[0].1.abort("done");
    let output = client.await.unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(holders[1..].iter().all(|(_, a)| a.close_reason().is_none()), "nobody made room");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_cannot_be_tried_fast() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let receiver = Receiver::start(to.path(), &["--token", "correct horse"]);
    let server = local(receiver.port);
    let mut answered_in = Vec::new();
    for _ in 0..7 {
        let (_endpoint, association) = open("127.0.9.9", server).await.expect("a chance");
        let begin = Instant::now();
        association.send(frame(TRANSFER), hello(b"wrong horse!!").into()).await.unwrap();
        let answer = end_of(&association).await;
        assert!(answer.starts_with("not authorised"), "{answer}");
        answered_in.push(begin.elapsed().as_secs_f64());
    }
    let (free, delayed) = answered_in.split_at(5);
    assert!(free.iter().all(|time| *time < 0.9), "{answered_in:?}");
    assert!(delayed[0] >= 1.0 && delayed[1] >= 2.0, "the sixth and later: {answered_in:?}");
    // Those of other networks are served meanwhile.
    let file = from.path().join("x");
    fs::write(&file, "x").unwrap();
    let dest = server.to_string();
    let (code, _, err) = send(&[&file], &dest, &["--token", "correct horse"]);
    assert_eq!(code, 0, "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_strangers_cause_to_be_said_is_limited() {
    let to = tempdir().unwrap();
    let mut receiver = Command::new(MANYPATH)
        .args(["recv", "--listen", "127.0.0.1", "--port", "0", "--dir"])
        .arg(to.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut err = BufReader::new(receiver.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("Listening on ") {
        assert!(err.read_line(&mut said).unwrap() > 0, "{said}");
    }
    let port = said.split_once("127.0.0.1:").unwrap().1;
    let port = port.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
    for i in 0..200 {
        let Some((_endpoint, association)) = open("127.0.0.9", local(port)).await else { continue };
        association.abort(format!("{i}\x1b[2J"));
    }
    // The count of the others comes a second after the window of 10 s at the latest.
    let (lines, said_since) = std::sync::mpsc::channel();
    std::thread::spawn(move || err.lines().map_while(Result::ok).try_for_each(|l| lines.send(l)));
    while !said.contains("more lines about strangers were omitted") {
        let line = said_since.recv_timeout(Duration::from_secs(30));
        said += &line.unwrap_or_else(|_| panic!("nothing is said of the others: {said}"));
        said.push('\n');
    }
    receiver.kill().unwrap();
    receiver.wait().unwrap();
    let lines = said.lines().filter(|line| line.contains("rejected 127.0.0.9")).count();
    assert!((1..=60).contains(&lines), "{said}");
    assert!(!said.contains('\x1b'), "{said}");
}
