//! The I bit (RFC 7053): each side asks the other for the SACK at once, where both delay SACKs for
//! as long as they may. One message is in flight at a time.

use std::time::Duration;

use tokio::time::Instant;

use crate::harness::{Case, Opens, Pattern, Running, Setting, Verifier, interop};

const MESSAGES: u32 = 8;
/// Of each SACK that is not hurried, in milliseconds.
const DELAY_MS: u64 = 400;
/// If every second message waited, it would take this long; a slow machine takes less otherwise.
const HALF: Duration = Duration::from_millis(DELAY_MS * MESSAGES as u64 / 2);

/// Neither a lost packet nor a retransmission hurries a SACK.
const PARAMETERS: &[(&str, &str)] =
    &[("sack_delay", "400 ms"), ("rto_min", "3 s"), ("rto_initial", "3 s")];
const PEER: &str = "--sack-delay-ms 400 --rto-min-ms 3000";

/// manypath sends; how long it takes, and how many chunks asked for a SACK.
async fn manypath_sends(opens: Opens, chunks: &str, sack_immediately: bool) -> (Duration, u32) {
    let (task, interleaving) = match chunks {
        "I-DATA" => (format!("{PEER} --interleave receive"), "true"),
        _ => (format!("{PEER} receive"), "false"),
    };
    let case = Case::new(opens, Setting::Plain, &task).set(PARAMETERS);
    let case = case.set(&[("message_interleaving", interleaving)]);
    let (running, wire) = case.start_watched().await;
    let Running { association, peer, endpoint: _endpoint, .. } = running;
    let begin = Instant::now();
    for index in 0..MESSAGES {
        let (mut options, payload) = Pattern::new(&[500], 1).message(index);
        options.sack_immediately = sack_immediately;
        association.send(options, payload).await.expect("queued");
        association.acknowledged().await.expect("acknowledged");
    }
    let taken = begin.elapsed();
    association.shutdown().await.expect("everything is delivered");
    let report = peer.report().await;
    report.assert_ok("peer-shutdown");
    assert_eq!(report.number("messages_received"), u64::from(MESSAGES));
    let asked = wire.of_manypath().immediate();
    (taken, asked)
}

/// usrsctp sends; how long it takes until the last message is here, and how many chunks asked.
async fn usrsctp_sends(opens: Opens, option: &str) -> (Duration, u32) {
    let task = format!("{PEER} --one-at-a-time --messages 500 {option} send 4000");
    let case = Case::new(opens, Setting::Plain, &task).set(PARAMETERS);
    let case = case.set(&[("message_interleaving", "true")]);
    let (running, wire) = case.start_watched().await;
    let Running { association, peer, endpoint: _endpoint, .. } = running;
    let begin = Instant::now();
    let mut verifier = Verifier::new(0);
    verifier.receive(&association, 4000).await;
    let taken = begin.elapsed();
    verifier.receive_all(&association).await.expect("the shutdown");
    peer.report().await.assert_ok("local-shutdown");
    let asked = wire.of_usrsctp().immediate();
    (taken, asked)
}

#[test]
fn usrsctp_acknowledges_at_once_as_manypath_asks() {
    interop(async {
        for (opens, chunks) in [(Opens::Manypath, "DATA"), (Opens::Usrsctp, "I-DATA")] {
            let (taken, asked) = manypath_sends(opens, chunks, true).await;
            assert_eq!(asked, MESSAGES, "of {chunks}");
            assert!(taken < HALF, "{chunks}: {taken:?}");
        }
        let (taken, asked) = manypath_sends(Opens::Manypath, "DATA", false).await;
        assert!(asked == 0 && taken > HALF, "{taken:?}, {asked} times");
    });
}

#[test]
fn manypath_acknowledges_at_once_as_usrsctp_asks() {
    interop(async {
        for (opens, option) in [(Opens::Usrsctp, ""), (Opens::Manypath, "--interleave")] {
            let option = format!("--sack-immediately {option}");
            let (taken, asked) = usrsctp_sends(opens, &option).await;
            assert!(asked >= MESSAGES && taken < HALF, "{option}: {taken:?}, {asked} times");
        }
        let (taken, asked) = usrsctp_sends(Opens::Usrsctp, "").await;
        assert!(asked < MESSAGES && taken > HALF, "{taken:?}, {asked} times");
    });
}
