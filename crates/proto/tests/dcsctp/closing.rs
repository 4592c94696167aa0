//! Shutdown and abort by each end, with data under way.

use dcsctp::api::{SocketEvent, SocketState};
use manypath_proto::{AssocClosed, Event};

use super::pair::{Mail, Opens, Pair, Setup, check};

fn mails() -> Vec<Mail> {
    (0..50).map(|number| Mail { number, length: 2000, ..Mail::default() }).collect()
}

fn closed(pair: &Pair) -> Option<&AssocClosed> {
    pair.events.iter().find_map(|event| match event {
        Event::Closed(reason) => Some(reason),
        _ => None,
    })
}

/// An open pair whose ends each have begun to send.
fn sending(opens: Opens, seed: u64) -> Pair {
    let setup = Setup { loss_rate: 0.05, seed, ..Setup::default() };
    let mut pair = Pair::open(opens, &setup);
    pair.from_us = mails().into();
    pair.from_dcsctp = mails().into();
    pair.run_until("all are queued", |p| p.from_us.is_empty() && p.from_dcsctp.is_empty());
    pair
}

#[test]
fn what_was_sent_arrives_before_a_shutdown_of_either() {
    for opens in [Opens::Manypath, Opens::Dcsctp] {
        for ours in [true, false] {
            let mut pair = sending(opens, 3);
            if ours {
                let now = pair.now();
                pair.association().shutdown(now);
            } else {
                pair.dcsctp.shutdown();
            }
            pair.run_until("both are closed", |pair| {
                pair.dcsctp.state() == SocketState::Closed && closed(pair).is_some()
            });
            check(&mails(), &pair.at_us);
            check(&mails(), &pair.at_dcsctp);
            assert_eq!(closed(&pair), Some(&AssocClosed::Shutdown), "ours: {ours}");
        }
    }
}

#[test]
fn an_abort_of_ours_ends_dcsctp() {
    let mut pair = Pair::open(Opens::Dcsctp, &Setup::default());
    let now = pair.now();
    pair.association().abort(now, b"enough");
    let is_aborted = |event: &SocketEvent| match event {
        SocketEvent::OnAborted(_, text) => text.contains("enough"),
        _ => false,
    };
    pair.run_until("it is told", |pair| pair.dcsctp_events.iter().any(is_aborted));
}

#[test]
fn an_abort_of_dcsctp_ends_ours() {
    let mut pair = Pair::open(Opens::Manypath, &Setup::default());
    pair.dcsctp.close();
    pair.run_until("we are told", |pair| closed(pair).is_some());
    assert!(matches!(closed(&pair), Some(AssocClosed::PeerAborted { .. })), "{:?}", closed(&pair));
}
