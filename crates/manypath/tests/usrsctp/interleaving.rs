//! Message interleaving (RFC 8260): I-DATA in both directions, long messages on several streams at
//! a time.
//!
//! usrsctp delivers a message in parts once half of its receive buffer holds it. Several long ones
//! at a time fill a smaller buffer before that, and its window stays closed: so it has a large one.

use crate::harness::{Case, Opens, Pattern, Running, Setting, interop};
use crate::transfer::{manypath_receives, usrsctp_echoes};

const SIZES: &[usize] = &[8, 1444, 300_000, 30_000, 1_000_000];
const SIZE_LIST: &str = "--messages 8,1444,300000,30000,1000000";
const BYTES: u64 = 8_000_000;

fn case(opens: Opens, setting: Setting, task: &str) -> Case {
    let peer = format!("--interleave --receive-buffer 8000000 {task}");
    let parameters = [("message_interleaving", "true"), ("stream_scheduler", "fair")];
    Case::new(opens, setting, &peer).set(&parameters)
}

async fn manypath_sends(case: Case) {
    let Running { association, peer, endpoint: _endpoint, relays: _relays } = case.start().await;
    assert!(association.interleaves(), "both sides want I-DATA");
    association.set_stream_priority(manypath::StreamId(1), 512);
    let sent = Pattern::new(SIZES, 7).send(&association, BYTES).await.expect("sent");
    association.shutdown().await.expect("everything is delivered");
    let report = peer.report().await;
    report.assert_ok("peer-shutdown");
    assert_eq!(report.number("bytes_received"), sent);
}

async fn usrsctp_sends(opens: Opens, setting: Setting) {
    let task = format!("{SIZE_LIST} --streams 7 send {BYTES}");
    let running = case(opens, setting, &task).start().await;
    assert!(running.association.interleaves(), "both sides want I-DATA");
    manypath_receives(running).await;
}

#[test]
fn manypath_connects_and_sends() {
    interop(manypath_sends(case(Opens::Manypath, Setting::Fast, "receive")));
}

#[test]
fn usrsctp_connects_and_manypath_sends_by_the_rfc() {
    interop(manypath_sends(case(Opens::Usrsctp, Setting::Plain, "receive")));
}

#[test]
fn manypath_sends_through_losses() {
    let relay = "--drop 10 --duplicate 10 --reorder 30 --delay 3 --seed 41";
    let case = case(Opens::Manypath, Setting::Fast, "--rto-min-ms 50 --linger-ms 1500 receive");
    interop(manypath_sends(case.relays(&[relay])));
}

#[test]
fn usrsctp_connects_and_sends() {
    interop(usrsctp_sends(Opens::Usrsctp, Setting::Fast));
}

#[test]
fn manypath_connects_and_usrsctp_sends_by_the_rfc() {
    interop(usrsctp_sends(Opens::Manypath, Setting::Plain));
}

#[test]
fn usrsctp_echoes_ordered_and_unordered_messages() {
    interop(async {
        for unordered in [false, true] {
            let pattern = Pattern { unordered, ..Pattern::new(&[30_000, 20, 3000], 5) };
            let running = case(Opens::Manypath, Setting::Fast, "echo").start().await;
            assert!(running.association.interleaves());
            usrsctp_echoes(running, pattern, 2_000_000).await;
        }
    });
}

#[test]
fn a_side_without_it_gets_data_chunks() {
    interop(async {
        let plain = Case::new(Opens::Manypath, Setting::Fast, "receive");
        let ours = plain.set(&[("message_interleaving", "true")]);
        let theirs = Case::new(Opens::Usrsctp, Setting::Plain, "--interleave receive");
        for case in [ours, theirs] {
            let Running { association, peer, endpoint: _endpoint, .. } = case.start().await;
            assert!(!association.interleaves());
            Pattern::new(&[30_000], 3).send(&association, 600_000).await.expect("sent");
            association.shutdown().await.expect("everything is delivered");
            peer.report().await.assert_ok("peer-shutdown");
        }
    });
}
