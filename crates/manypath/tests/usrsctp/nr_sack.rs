//! Non-renegable SACKs (type 16) in both directions, through a lossy relay, so that there are gaps.

use crate::harness::{Case, Opens, Pattern, Running, Setting, interop};
use crate::transfer::{manypath_receives, usrsctp_echoes};

const RELAY: &str = "--drop 30 --duplicate 10 --reorder 30 --delay 3";
const TIMERS: &[(&str, &str)] = &[("rto_initial", "200 ms"), ("rto_min", "100 ms")];

fn lossy(opens: Opens, setting: Setting, seed: u32, task: &str) -> Case {
    let peer = format!("--nr-sack --rto-min-ms 50 --linger-ms 1500 {task}");
    let relay = format!("{RELAY} --seed {seed}");
    Case::new(opens, setting, &peer).set(TIMERS).set(&[("nr_sack", "true")]).relays(&[&relay])
}

async fn manypath_sends(opens: Opens, setting: Setting, seed: u32) {
    let case = lossy(opens, setting, seed, "receive");
    let Running { association, peer, endpoint: _endpoint, relays: _relays } = case.start().await;
    let sent =
        Pattern::new(&[8, 1444, 30_000], 7).send(&association, 1_000_000).await.expect("sent");
    association.shutdown().await.expect("everything is delivered");
    let report = peer.report().await;
    report.assert_ok("peer-shutdown");
    assert_eq!(report.number("bytes_received"), sent);
    let stats = association.stats();
    assert!(stats.nr_sacks_received > 20, "usrsctp uses NR-SACK: {stats:?}");
}

async fn usrsctp_sends(opens: Opens, setting: Setting, seed: u32) {
    let case = lossy(opens, setting, seed, "--messages 8,1444,30000 --streams 7 send 1000000");
    manypath_receives(case.start().await).await;
}

#[test]
fn manypath_connects_and_sends() {
    interop(manypath_sends(Opens::Manypath, Setting::Fast, 31));
}

#[test]
fn usrsctp_connects_and_manypath_sends_by_the_rfc() {
    interop(manypath_sends(Opens::Usrsctp, Setting::Plain, 32));
}

#[test]
fn usrsctp_connects_and_sends() {
    interop(usrsctp_sends(Opens::Usrsctp, Setting::Fast, 33));
}

#[test]
fn manypath_connects_and_usrsctp_sends_by_the_rfc() {
    interop(usrsctp_sends(Opens::Manypath, Setting::Plain, 34));
}

#[test]
fn usrsctp_echoes_unordered_messages() {
    interop(async {
        let unordered = Pattern { unordered: true, ..Pattern::new(&[3000, 20], 3) };
        usrsctp_echoes(
            lossy(Opens::Manypath, Setting::Fast, 35, "echo").start().await,
            unordered,
            400_000,
        )
        .await;
    });
}

#[test]
fn without_it_on_one_side_sacks_are_used() {
    interop(async {
        let case = Case::new(Opens::Manypath, Setting::Fast, "receive").set(&[("nr_sack", "true")]);
        let Running { association, peer, endpoint: _endpoint, .. } = case.start().await;
        Pattern::new(&[1444], 1).send(&association, 300_000).await.expect("sent");
        association.shutdown().await.expect("everything is delivered");
        peer.report().await.assert_ok("peer-shutdown");
        let stats = association.stats();
        assert_eq!(stats.nr_sacks_received, 0, "{stats:?}");
        assert!(stats.sacks_received > 20, "{stats:?}");
    });
}
