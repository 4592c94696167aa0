//! Messages that are given up (RFC 3758, RFC 7496), in both directions, with DATA and with I-DATA,
//! through a lossy relay. Each fourth message has no limit, and must arrive.

use std::time::Duration;

use manypath::{Association, SendOptions};

use crate::harness::{
    Case, FORWARD_TSN, I_FORWARD_TSN, Log, Opens, Pattern, Running, Setting, Verifier, interop,
    pause, say,
};

const RELIABLE_EVERY: u32 = 4;
/// Messages of a single fragment, or of several.
const SIZES: &[usize] = &[100, 1400, 5000];
const SIZE_LIST: &str = "--messages 100,1400,5000";
const MESSAGES: u32 = 301;

/// Enough that some of the messages with limits are lost, and FORWARD TSN, too.
fn losses(seed: u32) -> String {
    format!("--drop 60 --duplicate 10 --reorder 30 --delay 3 --seed {seed}")
}

/// Longer than the lifetimes, while messages are on their way.
fn outage(seed: u32) -> String {
    format!("--drop 20 --duplicate 10 --delay 3 --outage-at 150 --outage-for 200 --seed {seed}")
}

/// Many times what a case takes.
const PATIENCE: Duration = Duration::from_secs(15);
const PEER: &str = "--rto-min-ms 50 --linger-ms 1500 --reliable-every 4";
const TIMERS: &[(&str, &str)] = &[("rto_initial", "200 ms"), ("rto_min", "100 ms")];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunks {
    Data,
    IData,
}

fn case(opens: Opens, setting: Setting, chunks: Chunks, relay: &str, task: &str) -> Case {
    let interleaves = chunks == Chunks::IData;
    let peer = format!("{PEER} {}{task}", if interleaves { "--interleave " } else { "" });
    let case = Case::new(opens, setting, &peer).set(TIMERS).relays(&[relay]);
    let extensions = [
        ("partial_reliability", "true"),
        ("message_interleaving", if interleaves { "true" } else { "false" }),
    ];
    case.set(&extensions)
}

/// The other kind of chunk must not be there.
fn assert_skipped(chunks: Chunks, wire: &Log) {
    let (used, other) = match chunks {
        Chunks::Data => (FORWARD_TSN, I_FORWARD_TSN),
        Chunks::IData => (I_FORWARD_TSN, FORWARD_TSN),
    };
    assert!(wire.count(used) > 0, "nothing was skipped: {wire:?}");
    assert_eq!(wire.count(other), 0, "{wire:?}");
}

/// Queues all messages, each fourth without a limit.
async fn send(association: &Association, unordered: bool, limit: &SendOptions) {
    let pattern = Pattern { unordered, ..Pattern::new(SIZES, 3) };
    for index in 0..MESSAGES {
        let (mut options, payload) = pattern.message(index);
        if index % RELIABLE_EVERY != 0 {
            options.lifetime = limit.lifetime;
            options.max_retransmissions = limit.max_retransmissions;
        }
        association.send(options, payload).await.expect("queued");
        pause(1).await;
    }
}

async fn manypath_gives_up(case: Case, chunks: Chunks, unordered: bool, limit: SendOptions) {
    let (running, wire) = case.start_watched().await;
    let Running { association, peer, endpoint: _endpoint, relays: _relays } = running;
    assert_eq!(association.interleaves(), chunks == Chunks::IData);
    send(&association, unordered, &limit).await;
    association.shutdown().await.expect("what is reliable is delivered");
    let report = peer.report().await;
    report.assert_ok("peer-shutdown");
    let stats = association.stats();
    assert_eq!(report.number("reliable_received"), u64::from(MESSAGES.div_ceil(RELIABLE_EVERY)));
    let missing = u64::from(MESSAGES) - report.number("messages_received");
    let given_up = stats.messages_abandoned + stats.messages_dropped;
    assert!((1..=given_up).contains(&missing), "{missing} are missing: {stats:?}");
    assert!(stats.forward_tsns_sent > 0, "{stats:?}");
    assert_skipped(chunks, &wire.of_manypath());
}

fn retransmissions(limit: u16) -> SendOptions {
    SendOptions { max_retransmissions: Some(limit), ..SendOptions::default() }
}

fn lifetime(milliseconds: u64) -> SendOptions {
    SendOptions { lifetime: Some(Duration::from_millis(milliseconds)), ..SendOptions::default() }
}

#[test]
fn manypath_repeats_nothing() {
    interop(async {
        let case = case(Opens::Manypath, Setting::Fast, Chunks::Data, &losses(51), "receive");
        manypath_gives_up(case, Chunks::Data, false, retransmissions(0)).await;
    });
}

#[test]
fn usrsctp_connects_and_manypath_repeats_nothing_unordered_by_the_rfc() {
    interop(async {
        let case = case(Opens::Usrsctp, Setting::Plain, Chunks::Data, &losses(52), "receive");
        manypath_gives_up(case, Chunks::Data, true, retransmissions(0)).await;
    });
}

#[test]
fn manypath_sends_nothing_late_by_the_rfc() {
    interop(async {
        let case = case(Opens::Manypath, Setting::Plain, Chunks::Data, &outage(53), "receive");
        manypath_gives_up(case, Chunks::Data, false, lifetime(30)).await;
    });
}

#[test]
fn manypath_skips_interleaved_messages() {
    interop(async {
        let case = case(Opens::Usrsctp, Setting::Fast, Chunks::IData, &losses(54), "receive");
        manypath_gives_up(case, Chunks::IData, false, retransmissions(0)).await;
    });
}

#[test]
fn manypath_skips_unordered_interleaved_messages_by_the_rfc() {
    interop(async {
        let case = case(Opens::Manypath, Setting::Plain, Chunks::IData, &outage(55), "receive");
        manypath_gives_up(case, Chunks::IData, true, lifetime(30)).await;
    });
}

/// usrsctp sends with a limit until it shuts down.
async fn usrsctp_gives_up(case: Case, chunks: Chunks) {
    let (running, wire) = case.start_watched().await;
    let Running { association, peer, endpoint: _endpoint, relays: _relays } = running;
    assert_eq!(association.interleaves(), chunks == Chunks::IData);
    let mut verifier = Verifier::new(0);
    let to_the_end = verifier.receive_what_comes(&association);
    if let Ok(end) = tokio::time::timeout(PATIENCE, to_the_end).await {
        end.expect("messages until the shutdown");
    } else {
        // usrsctp stalls, with I-DATA only, after it has skipped some messages.
        say(format_args!("usrsctp repeats a lost message no more, and skips it not"));
        assert!(chunks == Chunks::IData && verifier.messages() > 20, "{:?}", association.stats());
        assert_skipped(chunks, &wire.of_usrsctp());
        return;
    }
    let report = peer.report().await;
    report.assert_ok("local-shutdown");
    let sent = report.number("messages_sent");
    assert_eq!(verifier.reliable(RELIABLE_EVERY), sent.div_ceil(u64::from(RELIABLE_EVERY)));
    // usrsctp reports each fragment.
    let (missing, given_up) = (sent - verifier.messages(), report.number("given_up"));
    assert!((1..=given_up).contains(&missing), "{missing} are missing, {given_up} given up");
    let stats = association.stats();
    assert!(stats.forward_tsns_received > 0, "{stats:?}");
    assert_skipped(chunks, &wire.of_usrsctp());
}

fn usrsctp_case(opens: Opens, setting: Setting, chunks: Chunks, relay: &str, how: &str) -> Case {
    let task = format!("{SIZE_LIST} --streams 3 {how} send 600000");
    case(opens, setting, chunks, relay, &task)
}

#[test]
fn usrsctp_repeats_nothing() {
    interop(async {
        let how = "--limit rtx=0";
        let case = usrsctp_case(Opens::Manypath, Setting::Fast, Chunks::Data, &losses(61), how);
        usrsctp_gives_up(case, Chunks::Data).await;
    });
}

#[test]
fn usrsctp_connects_and_repeats_nothing_unordered() {
    interop(async {
        let how = "--limit rtx=0 --unordered";
        let case = usrsctp_case(Opens::Usrsctp, Setting::Plain, Chunks::Data, &losses(62), how);
        usrsctp_gives_up(case, Chunks::Data).await;
    });
}

#[test]
fn usrsctp_connects_and_sends_nothing_late() {
    interop(async {
        let how = "--limit ttl=30 --pace-ms 2";
        let case = usrsctp_case(Opens::Usrsctp, Setting::Fast, Chunks::Data, &outage(63), how);
        usrsctp_gives_up(case, Chunks::Data).await;
    });
}

#[test]
fn usrsctp_skips_late_interleaved_messages() {
    interop(async {
        let how = "--limit ttl=30 --pace-ms 2";
        let case = usrsctp_case(Opens::Manypath, Setting::Fast, Chunks::IData, &outage(65), how);
        usrsctp_gives_up(case, Chunks::IData).await;
    });
}

#[test]
fn usrsctp_skips_late_interleaved_messages_unordered() {
    interop(async {
        let how = "--limit ttl=30 --pace-ms 2 --unordered";
        let case = usrsctp_case(Opens::Usrsctp, Setting::Plain, Chunks::IData, &outage(66), how);
        usrsctp_gives_up(case, Chunks::IData).await;
    });
}
