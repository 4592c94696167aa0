//! Messages that may be given up (RFC 3758), streams that are reset (RFC 6525), and packets without
//! a checksum (RFC 9653), as each end asks.

use std::time::Duration;

use dcsctp::api::{
    Options, SocketEvent, StreamId as DcsctpStream,
    ZERO_CHECKSUM_ALTERNATE_ERROR_DETECTION_METHOD_LOWER_LAYER_DTLS as OVER_DTLS,
};
use manypath_proto::{Event, RequestOutcome, StreamRequest};
use manypath_wire::StreamId;

use super::pair::{Mail, Opens, Pair, Setup, check};

/// Messages on two streams, every other of which is given up at its first loss, or late.
fn limited(count: u32, by_time: bool) -> Vec<Mail> {
    let mail = |number: u32| {
        let is_limited = number % 2 == 1;
        Mail {
            stream: (number / 2 % 2) as u16,
            unordered: number.is_multiple_of(5),
            number,
            length: if number.is_multiple_of(3) { 4000 } else { 700 },
            lifetime: (is_limited && by_time).then_some(Duration::from_millis(40)),
            max_retransmissions: (is_limited && !by_time).then_some(0),
        }
    };
    (0..count).map(mail).collect()
}

/// The chunks that carry messages, by the options of both ends.
fn with_interleaving(is_on: bool) -> Setup {
    let options = Options { enable_message_interleaving: is_on, ..Options::default() };
    let parameters = vec![("message_interleaving", if is_on { "true" } else { "false" })];
    Setup { options, parameters, loss_rate: 0.05, ..Setup::default() }
}

#[test]
fn messages_that_we_give_up_are_skipped_by_dcsctp() {
    for interleaving in [false, true] {
        for by_time in [false, true] {
            let mails = limited(400, by_time);
            let mut pair = Pair::new(Opens::Manypath, &with_interleaving(interleaving));
            pair.from_us = mails.clone().into();
            pair.run_until("ours are sent", |pair| pair.from_us.is_empty());
            pair.run_for(Duration::from_secs(60));
            check(&mails, &pair.at_dcsctp);
            assert!(pair.at_dcsctp.len() < mails.len(), "some were given up");
            let stats = pair.association().stats();
            assert!(stats.messages_dropped + stats.messages_abandoned > 0, "{stats:?}");
            assert!(by_time || stats.forward_tsns_sent > 0, "{stats:?}");
            assert_eq!(pair.association().unacked_bytes(), 0);
        }
    }
}

#[test]
fn messages_that_dcsctp_gives_up_are_skipped() {
    for interleaving in [false, true] {
        for by_time in [false, true] {
            let mails = limited(400, by_time);
            let mut pair = Pair::new(Opens::Dcsctp, &with_interleaving(interleaving));
            pair.from_dcsctp = mails.clone().into();
            pair.run_until("its are sent", |pair| pair.from_dcsctp.is_empty());
            pair.run_for(Duration::from_secs(60));
            check(&mails, &pair.at_us);
            assert!(pair.at_us.len() < mails.len(), "some were given up");
            let stats = pair.association().stats();
            assert!(by_time || stats.forward_tsns_received > 0, "{stats:?}");
        }
    }
}

/// Ordered messages of one stream, numbered from here.
fn ordered(stream: u16, from: u32, count: u32) -> Vec<Mail> {
    let mail = |number| Mail { stream, number, length: 3000, ..Mail::default() };
    (from..from + count).map(mail).collect()
}

#[test]
fn streams_that_we_reset_begin_again() {
    for opens in [Opens::Manypath, Opens::Dcsctp] {
        let parameters = vec![("stream_reconfiguration", "true")];
        let setup = Setup { parameters, loss_rate: 0.05, ..Setup::default() };
        let mut pair = Pair::open(opens, &setup);
        let (before, after) = (ordered(1, 0, 30), ordered(1, 30, 30));
        pair.from_us = before.clone().into();
        pair.run_until("ours are sent", |pair| pair.from_us.is_empty());
        let now = pair.now();
        pair.association().reset_streams(now, &[StreamId(1)]).expect("both ends can");
        pair.from_us = after.clone().into();
        pair.run_until("all have arrived", |pair| pair.at_dcsctp.len() == 60);
        check(&[before, after].concat(), &pair.at_dcsctp);
        let reset = |event: &SocketEvent| match event {
            SocketEvent::OnIncomingStreamReset(streams) => streams[..] == [DcsctpStream(1)],
            _ => false,
        };
        assert_eq!(pair.dcsctp_events.iter().filter(|event| reset(event)).count(), 1);
        pair.run_for(Duration::from_secs(10));
        assert_eq!(outcomes(&pair), [RequestOutcome::Performed]);
    }
}

#[test]
fn streams_that_dcsctp_resets_begin_again() {
    for opens in [Opens::Manypath, Opens::Dcsctp] {
        let parameters = vec![("stream_reconfiguration", "true")];
        let setup = Setup { parameters, loss_rate: 0.05, ..Setup::default() };
        let mut pair = Pair::open(opens, &setup);
        let (before, after) = (ordered(1, 0, 30), ordered(1, 30, 30));
        pair.from_dcsctp = before.clone().into();
        // It throws away what it has not begun to send when it resets a stream.
        pair.run_until("its are sent", |pair| {
            pair.from_dcsctp.is_empty() && pair.dcsctp.buffered_amount(DcsctpStream(1)) == 0
        });
        pair.dcsctp.reset_streams(&[DcsctpStream(1)]).expect("both ends can");
        pair.from_dcsctp = after.clone().into();
        pair.run_until("all have arrived", |pair| pair.at_us.len() == 60);
        check(&[before, after].concat(), &pair.at_us);
        let reset = Event::IncomingStreamsReset { streams: vec![StreamId(1)] };
        assert_eq!(pair.events.iter().filter(|event| **event == reset).count(), 1);
        pair.run_until("it is told", |pair| {
            let told = |event: &SocketEvent| match event {
                SocketEvent::OnStreamsResetPerformed(streams) => streams[..] == [DcsctpStream(1)],
                _ => false,
            };
            pair.dcsctp_events.iter().any(told)
        });
    }
}

/// dcsctp resets no stream because we ask, and adds none: it says so, and everything else goes on.
#[test]
fn requests_that_dcsctp_does_not_know_are_answered() {
    let parameters = vec![("stream_reconfiguration", "true")];
    let mut pair = Pair::open(Opens::Manypath, &Setup { parameters, ..Setup::default() });
    let now = pair.now();
    pair.association().request_stream_reset(now, &[StreamId(1)]).expect("asked");
    pair.run_for(Duration::from_secs(20));
    let count = outcomes(&pair).len();
    assert_eq!(count, 1, "{:?}", pair.events);
    pair.from_us = ordered(2, 0, 5).into();
    pair.run_until("all have arrived", |pair| pair.at_dcsctp.len() == 5);
}

fn outcomes(pair: &Pair) -> Vec<RequestOutcome> {
    let outcome = |event: &Event| match event {
        Event::StreamsReconfigured { request, outcome, by_peer: false } => {
            assert!(!matches!(request, StreamRequest::AddOutgoing(_)));
            Some(*outcome)
        }
        _ => None,
    };
    pair.events.iter().filter_map(outcome).collect()
}

#[test]
fn packets_have_no_checksum_where_both_ends_say_dtls() {
    for opens in [Opens::Manypath, Opens::Dcsctp] {
        for (ours, theirs) in [(true, true), (true, false), (false, true)] {
            let mut options = Options::default();
            if theirs {
                options.zero_checksum_alternate_error_detection_method = OVER_DTLS;
            }
            let parameters = vec![("zero_checksum", if ours { "true" } else { "false" })];
            let setup = Setup { options, parameters, loss_rate: 0.02, ..Setup::default() };
            let mut pair = Pair::open(opens, &setup);
            let mails = ordered(0, 0, 50);
            pair.from_us = mails.clone().into();
            pair.from_dcsctp = mails.clone().into();
            pair.run_until("all arrive", |p| p.at_us.len() == 50 && p.at_dcsctp.len() == 50);
            check(&mails, &pair.at_us);
            check(&mails, &pair.at_dcsctp);
            let (to_us, to_dcsctp) =
                (pair.network.unchecked_to_us, pair.network.unchecked_to_dcsctp);
            let both = ours && theirs;
            assert!((to_us > 50) == both, "{opens:?}: {to_us} packets of dcsctp");
            assert!((to_dcsctp > 50) == both, "{opens:?}: {to_dcsctp} packets of ours");
        }
    }
}
