//! The same transfers through a relay that loses, repeats, delays and reorders packets both ways,
//! or is silent for a while.

use manypath::AssocClosed;
use tokio::time::Instant;

use crate::harness::{Case, Opens, Pattern, Running, Setting, Verifier, interop, pause, say, soon};
use crate::transfer::{manypath_echoes, manypath_receives, usrsctp_echoes};

/// 3 % lost, 1 % twice, 3 % late.
const LOSSY: &str = "--drop 30 --duplicate 10 --reorder 30 --delay 3";

/// Short timers, so that repairs take little time; usrsctp keeps answering after the end, as a lost
/// SHUTDOWN COMPLETE demands.
const PEER_TIMERS: &str = "--rto-min-ms 50 --linger-ms 1500";
const OUR_TIMERS: &[(&str, &str)] = &[("rto_initial", "200 ms"), ("rto_min", "100 ms")];

const SIZES: &[usize] = &[8, 100, 1444, 30_000];
const SIZE_LIST: &str = "--messages 8,100,1444,30000";

fn lossy(opens: Opens, setting: Setting, relay: &str, task: &str) -> Case {
    Case::new(opens, setting, &format!("{PEER_TIMERS} {task}")).set(OUR_TIMERS).relays(&[relay])
}

/// manypath sends through a lossy relay.
async fn manypath_sends(opens: Opens, setting: Setting, seed: u32) {
    let case = lossy(opens, setting, &format!("{LOSSY} --seed {seed}"), "receive");
    let Running { association, peer, endpoint: _endpoint, mut relays } = case.start().await;
    let sent = Pattern::new(SIZES, 7).send(&association, 1_000_000).await.expect("sent");
    association.shutdown().await.expect("everything is delivered");
    let report = peer.report().await;
    report.assert_ok("peer-shutdown");
    assert_eq!(report.number("bytes_received"), sent);
    let counts = relays.remove(0).finish().await;
    assert!(counts["to_target"]["dropped"].as_u64() > Some(0), "{counts}");
}

/// usrsctp sends through a lossy relay.
async fn usrsctp_sends(opens: Opens, setting: Setting, seed: u32) {
    let task = format!("{SIZE_LIST} --streams 7 send 1000000");
    let case = lossy(opens, setting, &format!("{LOSSY} --seed {seed}"), &task);
    manypath_receives(case.start().await).await;
}

#[test]
fn manypath_connects_and_sends() {
    interop(manypath_sends(Opens::Manypath, Setting::Fast, 1));
}

#[test]
fn usrsctp_connects_and_manypath_sends_by_the_rfc() {
    interop(manypath_sends(Opens::Usrsctp, Setting::Plain, 2));
}

#[test]
fn usrsctp_connects_and_sends() {
    interop(usrsctp_sends(Opens::Usrsctp, Setting::Fast, 3));
}

#[test]
fn manypath_connects_and_usrsctp_sends_by_the_rfc() {
    interop(usrsctp_sends(Opens::Manypath, Setting::Plain, 4));
}

#[test]
fn usrsctp_echoes_ordered_and_unordered() {
    interop(async {
        let case = lossy(Opens::Manypath, Setting::Fast, &format!("{LOSSY} --seed 5"), "echo");
        usrsctp_echoes(case.start().await, Pattern::new(SIZES, 7), 400_000).await;
        let case = lossy(Opens::Usrsctp, Setting::Plain, &format!("{LOSSY} --seed 6"), "echo");
        let unordered = Pattern { unordered: true, ..Pattern::new(&[3000, 20], 3) };
        usrsctp_echoes(case.start().await, unordered, 400_000).await;
    });
}

#[test]
fn manypath_echoes_what_usrsctp_sends() {
    interop(async {
        let task = format!("{SIZE_LIST} --streams 7 --echoed send 400000");
        let relay = format!("{LOSSY} --seed 7");
        manypath_echoes(lossy(Opens::Usrsctp, Setting::Fast, &relay, &task).start().await, 0).await;
    });
}

#[test]
fn much_is_repeated_and_reordered() {
    interop(async {
        let relay = "--duplicate 300 --reorder 300 --delay 2 --reorder-delay 8 --seed 8";
        let case = lossy(Opens::Usrsctp, Setting::Fast, relay, "echo");
        usrsctp_echoes(case.start().await, Pattern::new(SIZES, 7), 400_000).await;
    });
}

#[test]
fn a_tenth_of_all_packets_is_lost() {
    interop(async {
        for (opens, setting) in [(Opens::Manypath, Setting::Fast), (Opens::Usrsctp, Setting::Plain)]
        {
            let case = lossy(opens, setting, "--drop 100 --delay 2 --seed 9", "echo");
            usrsctp_echoes(case.start().await, Pattern::new(SIZES, 7), 150_000).await;
        }
    });
}

#[test]
fn manypath_sends_through_an_outage() {
    interop(async {
        let relay = "--outage-at 300 --outage-for 700 --delay 2";
        let case = lossy(Opens::Manypath, Setting::Fast, relay, "receive");
        let Running { association, peer, endpoint: _endpoint, mut relays } = case.start().await;
        let mut sent = 0;
        for (options, payload) in Pattern::new(&[1000], 1).messages(300_000) {
            sent += payload.len() as u64;
            association.send(options, payload).await.expect("queued");
            pause(2).await;
        }
        let timeouts: u64 = association.paths().iter().map(|p| p.counters.t3_expirations).sum();
        association.shutdown().await.expect("everything is delivered");
        let report = peer.report().await;
        report.assert_ok("peer-shutdown");
        assert_eq!(report.number("bytes_received"), sent);
        let counts = relays.remove(0).finish().await;
        assert!(counts["outage"].as_u64() > Some(0) && timeouts > 0, "{timeouts}, {counts}");
    });
}

#[test]
fn usrsctp_sends_through_an_outage() {
    interop(async {
        let relay = "--outage-at 300 --outage-for 700 --delay 2";
        let task = "--pace-ms 2 send 300000";
        let case = lossy(Opens::Usrsctp, Setting::Plain, relay, task);
        let Running { association, peer, endpoint: _endpoint, mut relays } = case.start().await;
        let mut verifier = Verifier::new(0);
        verifier.receive_all(&association).await.expect("everything until the shutdown");
        peer.report().await.assert_ok("local-shutdown");
        let counts = relays.remove(0).finish().await;
        assert!(counts["outage"].as_u64() > Some(0), "{counts}");
    });
}

#[test]
fn an_abort_arrives_however_packets_are_mixed() {
    interop(async {
        let relay = "--duplicate 100 --reorder 100 --delay 2 --seed 10";
        let case = lossy(Opens::Manypath, Setting::Fast, relay, "--close abort receive 300000");
        let Running { association, peer, endpoint: _endpoint, relays: _relays } =
            case.start().await;
        Pattern::new(&[1000], 1).send(&association, 300_000).await.expect("queued");
        let end = soon("the abort", association.closed()).await;
        assert!(matches!(end, AssocClosed::PeerAborted { cause: 12, .. }), "{end:?}");
        peer.report().await.assert_ok("local-abort");

        let case = lossy(Opens::Usrsctp, Setting::Fast, relay, "--expect-close abort receive");
        let Running { association, peer, endpoint: _endpoint, relays: _relays } =
            case.start().await;
        Pattern::new(&[1000], 1).send(&association, 300_000).await.expect("queued");
        soon("acknowledged", association.acknowledged()).await.expect("acknowledged");
        association.abort("enough");
        peer.report().await.assert_ok("peer-abort");
    });
}

/// Time in seconds for `bytes` from usrsctp to manypath through a relay, with the default timers of
/// both.
fn time_of_usrsctp(setting: Setting, relay: &str, bytes: u64) -> f64 {
    let mut seconds = 0.0;
    interop(async {
        let task = format!("--linger-ms 1500 --messages 1400 send {bytes}");
        let case = Case::new(Opens::Usrsctp, setting, &task).relays(&[relay]);
        let Running { association, peer, endpoint: _endpoint, relays: _relays } =
            case.start().await;
        let begin = Instant::now();
        let mut verifier = Verifier::new(0);
        verifier.receive_all(&association).await.expect("everything until the shutdown");
        seconds = begin.elapsed().as_secs_f64();
        peer.report().await.assert_ok("local-shutdown");
    });
    seconds
}

/// The time that it takes by default, divided by that of profile `rfc9260`.
#[test]
#[ignore = "a measurement of some minutes"]
fn usrsctp_sends_to_the_default_as_fast_as_by_the_rfc() {
    const PAIRS: u32 = 12;
    for (one_way_ms, bytes) in [(0, 4_800_000), (10, 2_400_000), (50, 600_000)] {
        let total = |setting| -> f64 {
            let relay = |seed| format!("--drop 20 --delay {one_way_ms} --seed {seed}");
            (1..=PAIRS).map(|seed| time_of_usrsctp(setting, &relay(seed), bytes)).sum()
        };
        let ratio = total(Setting::Fast) / total(Setting::Plain);
        say(format_args!("round trip {} ms: {ratio:.2} times the time by rfc9260", 2 * one_way_ms));
        assert!(ratio <= 1.2, "round trip {} ms: {ratio:.2}", 2 * one_way_ms);
    }
}
