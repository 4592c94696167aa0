//! Authentication of chunks (RFC 4895): each side takes data and SACKs only behind AUTH chunks that
//! the other one has made, with the empty key and with one that both were given.

use std::time::Duration;

use crate::harness::{AUTH, Case, DATA, Opens, Pattern, Running, SACK, Setting, interop};
use crate::transfer::usrsctp_echoes;

const BYTES: u64 = 300_000;
const SIZES: &[usize] = &[100, 1444, 5000];
const SECRET: &str = "between the two of us";

/// The peer authenticates DATA and SACK, and so do we.
fn case(opens: Opens, setting: Setting, task: &str) -> Case {
    let task = format!("--auth-chunk 0 --auth-chunk 3 {task}");
    let parameters = [("authentication", "true"), ("authenticated_chunks", "data, sack")];
    Case::new(opens, setting, &task).set(&parameters)
}

/// Data flows in both directions, all of it behind AUTH chunks.
async fn echoes(case: Case) {
    let (running, wire) = case.start_watched().await;
    usrsctp_echoes(running, Pattern::new(SIZES, 3), BYTES).await;
    for (side, log) in [("manypath", wire.of_manypath()), ("usrsctp", wire.of_usrsctp())] {
        for kind in [DATA, SACK] {
            assert!(log.count(kind) > 0, "{side} sends chunks of type {kind}: {log:?}");
            assert_eq!(log.unauthenticated(kind), 0, "chunks of type {kind} of {side}");
        }
    }
}

#[test]
fn both_sides_authenticate_with_the_empty_key() {
    interop(async {
        echoes(case(Opens::Manypath, Setting::Fast, "echo")).await;
        echoes(case(Opens::Usrsctp, Setting::Plain, "echo")).await;
    });
}

#[test]
fn both_sides_authenticate_with_a_shared_key_through_losses() {
    interop(async {
        let relay = "--drop 10 --duplicate 10 --reorder 20 --delay 3 --seed 5";
        for (opens, setting) in [(Opens::Manypath, Setting::Plain), (Opens::Usrsctp, Setting::Fast)]
        {
            let task = "--auth-key 7=secret7 --rto-min-ms 50 --linger-ms 1500 echo";
            let case = case(opens, setting, task).auth_key(7, "secret7").relays(&[relay]);
            echoes(case).await;
        }
    });
}

#[test]
fn with_different_keys_nothing_is_taken() {
    interop(async {
        let task = "--auth-key 7=another --timeout 10 receive";
        let case = case(Opens::Manypath, Setting::Fast, task).auth_key(7, SECRET);
        let (running, wire) = case.start_watched().await;
        let Running { association, peer: _peer, endpoint: _endpoint, .. } = running;
        let (options, payload) = Pattern::new(&[500], 1).message(0);
        association.send(options, payload).await.expect("queued");
        let taken = tokio::time::timeout(Duration::from_secs(2), association.acknowledged()).await;
        assert!(taken.is_err(), "acknowledged, although usrsctp has another key");
        assert!(wire.of_manypath().count(AUTH) > 0);
        association.abort("the keys differ");
    });
}
