//! Messages in both directions at once, whoever opens.

use std::time::Duration;

use dcsctp::api::Options;
use manypath_proto::PathState;

use super::pair::{Mail, Opens, Pair, Setup, check};

const SIZES: [usize; 5] = [1, 100, 1176, 5000, 60_000];

/// Messages on three streams, every fourth unordered.
fn mails(count: u32) -> Vec<Mail> {
    let mail = |number: u32| Mail {
        stream: (number % 3) as u16,
        unordered: number.is_multiple_of(4),
        number,
        length: SIZES[number as usize % SIZES.len()],
        ..Mail::default()
    };
    (0..count).map(mail).collect()
}

/// Each end sends 60 messages to the other.
fn exchange(opens: Opens, setup: &Setup) -> Pair {
    let mails = mails(60);
    let mut pair = Pair::new(opens, setup);
    pair.from_us = mails.clone().into();
    pair.from_dcsctp = mails.clone().into();
    let count = mails.len();
    pair.run_until("all have arrived", |p| p.at_us.len() >= count && p.at_dcsctp.len() >= count);
    check(&mails, &pair.at_us);
    check(&mails, &pair.at_dcsctp);
    pair
}

#[test]
fn messages_arrive_in_both_directions() {
    for opens in [Opens::Manypath, Opens::Dcsctp] {
        for (profile, preset) in [("fast", "adaptive"), ("rfc9260", "sctp")] {
            exchange(opens, &Setup { profile, preset, ..Setup::default() });
        }
    }
}

#[test]
fn messages_arrive_through_losses() {
    for opens in [Opens::Manypath, Opens::Dcsctp] {
        for seed in 1..=5 {
            exchange(opens, &Setup { loss_rate: 0.05, seed, ..Setup::default() });
        }
    }
}

#[test]
fn messages_are_interleaved_where_both_ends_can() {
    for opens in [Opens::Manypath, Opens::Dcsctp] {
        for (ours, theirs) in [(true, true), (true, false), (false, true)] {
            let options = Options { enable_message_interleaving: theirs, ..Options::default() };
            let parameters = vec![("message_interleaving", if ours { "true" } else { "false" })];
            let setup = Setup { options, parameters, loss_rate: 0.02, ..Setup::default() };
            let mut pair = exchange(opens, &setup);
            let both = ours && theirs;
            assert_eq!(pair.association().interleaves(), both, "{opens:?}: {ours}, {theirs}");
        }
    }
}

#[test]
fn heartbeats_of_both_are_answered_while_nothing_is_sent() {
    for opens in [Opens::Manypath, Opens::Dcsctp] {
        let mut pair = Pair::open(opens, &Setup::default());
        pair.run_for(Duration::from_secs(300));
        let path = pair.association().paths().next().expect("a path");
        assert!(path.state == PathState::Active && path.error_count == 0, "{path:?}");
        assert!(
            pair.dcsctp_events
                .iter()
                .all(|event| { !matches!(event, dcsctp::api::SocketEvent::OnError(..)) })
        );
    }
}
