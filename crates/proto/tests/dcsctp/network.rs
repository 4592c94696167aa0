//! A network that delays each packet by half of the round trip, and loses some.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use manypath_proto::{Instant, Rng};

#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum To {
    Us,
    Dcsctp,
}

/// A packet that arrives; ordered by when, then by when it was sent.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnderWay {
    at: Instant,
    number: u64,
    pub to: To,
    pub packet: Vec<u8>,
}

pub struct Network {
    one_way: Duration,
    loss_rate: f64,
    rng: Rng,
    sent: u64,
    /// Packets without a checksum that each end sent.
    pub unchecked_to_us: u64,
    pub unchecked_to_dcsctp: u64,
    under_way: BinaryHeap<Reverse<UnderWay>>,
}

impl Network {
    pub fn new(round_trip: Duration, loss_rate: f64, seed: u64) -> Network {
        Network {
            one_way: round_trip / 2,
            loss_rate,
            rng: Rng::from_number(seed),
            sent: 0,
            unchecked_to_us: 0,
            unchecked_to_dcsctp: 0,
            under_way: BinaryHeap::new(),
        }
    }

    pub fn send(&mut self, now: Instant, to: To, packet: Vec<u8>) {
        self.sent += 1;
        let is_unchecked = u64::from(packet[8..12] == [0; 4]);
        match to {
            To::Us => self.unchecked_to_us += is_unchecked,
            To::Dcsctp => self.unchecked_to_dcsctp += is_unchecked,
        }
        if !self.rng.chance(self.loss_rate) {
            let (at, number) = (now + self.one_way, self.sent);
            self.under_way.push(Reverse(UnderWay { at, number, to, packet }));
        }
    }

    pub fn next_at(&self) -> Option<Instant> {
        self.under_way.peek().map(|Reverse(next)| next.at)
    }

    pub fn arrived(&mut self, now: Instant) -> Option<UnderWay> {
        self.next_at().filter(|at| *at <= now)?;
        self.under_way.pop().map(|Reverse(next)| next)
    }
}
