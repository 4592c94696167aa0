//! Schedulers with streams that always have more to send, or few messages.

use std::collections::BTreeMap;

use super::*;
use crate::config::Config;
use crate::policy::Factory;

/// The streams of the next `count` fragments. Each stream has fragments of its length in bytes, and
/// `left` messages of one fragment each.
struct Bench {
    scheduler: Box<dyn StreamScheduler>,
    left: BTreeMap<u16, (usize, usize)>,
}

impl Bench {
    fn new(name: &str) -> Bench {
        let factory = Factory::<dyn StreamScheduler>::named(name).expect("a scheduler");
        Bench { scheduler: factory.build(&Config::default()), left: BTreeMap::new() }
    }

    fn give(&mut self, stream: u16, priority: u16, (count, bytes): (usize, usize)) {
        self.left.insert(stream, (count, bytes));
        self.scheduler.enter(StreamId(stream), priority);
    }

    fn send(&mut self, count: usize) -> Vec<u16> {
        let mut sent = Vec::new();
        for _ in 0..count {
            let Some(stream) = self.scheduler.next() else { break };
            let (left, bytes) = self.left.get_mut(&stream.0).expect("it has something to send");
            *left -= 1;
            let (bytes, is_empty) = (*bytes, *left == 0);
            self.scheduler.sent(&Turn { stream, bytes, may_change: true, is_empty });
            sent.push(stream.0);
        }
        sent
    }

    /// Bytes of each stream among the next `count` fragments.
    fn shares(&mut self, count: usize) -> BTreeMap<u16, usize> {
        let mut shares = BTreeMap::new();
        for stream in self.send(count) {
            *shares.entry(stream).or_default() += self.left[&stream].1;
        }
        shares
    }
}

const MANY: usize = 1_000_000;

#[test]
fn rr_goes_around() {
    let mut b = Bench::new("rr");
    b.give(5, 1, (3, 100));
    b.give(2, 9, (1, 100));
    b.give(7, 9, (9, 1000));
    assert_eq!(b.send(6), [5, 2, 7, 5, 7, 5]);
    b.give(2, 9, (1, 100));
    assert_eq!(b.send(3), [7, 2, 7]);
}

#[test]
fn rr_stays_with_a_message_that_must_be_finished() {
    let mut rr = Rr::default();
    rr.enter(StreamId(1), 0);
    rr.enter(StreamId(2), 0);
    let turn = Turn { stream: StreamId(1), bytes: 9, may_change: false, is_empty: false };
    rr.sent(&turn);
    assert_eq!(rr.next(), Some(StreamId(1)));
    rr.sent(&Turn { may_change: true, is_empty: true, ..turn });
    assert_eq!(rr.next(), Some(StreamId(2)));
}

#[test]
fn rr_packet_changes_the_stream_with_the_packet() {
    let mut b = Bench::new("rr_packet");
    b.give(1, 0, (5, 100));
    b.give(2, 0, (2, 100));
    assert_eq!(b.send(3), [1, 1, 1]);
    b.scheduler.packet_ended();
    assert_eq!(b.send(2), [2, 2]);
    assert!(b.scheduler.ends_packet(), "RFC 8260 §3.3: a packet has chunks of one stream");
    b.scheduler.packet_ended();
    assert!(!b.scheduler.ends_packet());
    b.scheduler.packet_ended();
    assert_eq!(b.send(9), [1, 1], "an empty packet changes nothing");
}

#[test]
fn prio_lets_the_greatest_priority_send_and_equals_take_turns() {
    let mut b = Bench::new("prio");
    b.give(1, 256, (MANY, 1000));
    b.give(2, 256, (MANY, 1000));
    assert_eq!(b.send(3), [1, 2, 1]);
    b.give(3, 512, (2, 10));
    b.give(4, 0, (1, 10));
    assert_eq!(b.send(4), [3, 3, 2, 1]);
    b.scheduler.set_priority(StreamId(4), 1024);
    b.scheduler.set_priority(StreamId(9), 2048); // has nothing to send
    assert_eq!(b.send(3), [4, 2, 1]);
}

#[test]
fn fair_counts_bytes_and_no_priorities() {
    let mut b = Bench::new("fair");
    b.give(1, 1, (MANY, 1400));
    b.give(2, 9, (MANY, 100));
    let shares = b.shares(3000);
    assert!(shares[&1].abs_diff(shares[&2]) <= 1400, "{shares:?}");
}

#[test]
fn wfq_shares_by_weight() {
    let mut b = Bench::new("wfq");
    b.give(1, 128, (MANY, 1400));
    b.give(2, 256, (MANY, 700));
    b.give(3, 1024, (MANY, 100));
    b.give(4, 0, (MANY, 1400));
    let shares = b.shares(10_000);
    let per_weight = |stream: u16, weight: usize| shares[&stream] / weight;
    assert!(per_weight(1, 128).abs_diff(per_weight(2, 256)) <= 12, "{shares:?}");
    assert!(per_weight(1, 128).abs_diff(per_weight(3, 1024)) <= 12, "{shares:?}");
    assert_eq!(shares[&4], 1400, "a weight of 0 is the least one: {shares:?}");
}

#[test]
fn a_stream_that_comes_back_gets_its_share_from_then_on() {
    let mut b = Bench::new("wfq");
    b.give(1, 256, (MANY, 1000));
    b.send(500);
    b.give(2, 256, (1, 1000));
    let turns = b.send(4);
    assert_eq!(turns.iter().filter(|stream| **stream == 2).count(), 1, "{turns:?}");
    assert!(turns[..2].contains(&2), "it does not wait: {turns:?}");
    // It cannot get more by giving one message at a time.
    let mut shares = BTreeMap::from([(1, 0), (2, 0)]);
    for _ in 0..300 {
        b.give(2, 256, (1, 1000));
        while b.left[&2].0 > 0 {
            let stream = b.send(1)[0];
            *shares.get_mut(&stream).expect("one of the two") += 1;
        }
    }
    assert!(shares[&1] + 2 >= shares[&2], "{shares:?}");
}

#[test]
fn ten_thousand_streams_are_served_alike() {
    for name in ["rr", "rr_packet", "prio", "fair", "wfq"] {
        let mut b = Bench::new(name);
        for stream in 0..10_000 {
            b.give(stream, 256, (2, 100));
        }
        let mut sent = Vec::new();
        while b.scheduler.next().is_some() {
            sent.extend(b.send(1));
            b.scheduler.packet_ended();
        }
        let (mut first, mut second) = (sent[..10_000].to_vec(), sent[10_000..].to_vec());
        first.sort_unstable();
        second.sort_unstable();
        let all: Vec<u16> = (0..10_000).collect();
        assert_eq!((first == all, second == all), (true, true), "{name}");
    }
}
