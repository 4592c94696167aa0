//! One direction of an emulated link, in virtual time.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use manypath::Rng;

/// Bytes of IPv4 and UDP header that a real link would carry besides each datagram's payload.
pub const HEADER_BYTES: usize = 28;

/// What a link is like. Times count from the emulation's start.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Bits per second, IP and UDP headers included; at least 1.
    pub rate_bps: u64,
    /// One-way propagation delay.
    pub delay: Duration,
    /// Bytes that may wait for the link, the packet being sent not counted; the rest is dropped.
    pub queue_bytes: usize,
    /// Probability that a packet is lost, 0 to 1.
    pub loss: f64,
    /// When the link is down: what is sent or still on its way then is lost.
    pub down: Vec<Range<Duration>>,
}

/// What has passed a link.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Packets carried.
    pub packets: u64,
    /// Payload bytes carried.
    pub bytes: u64,
    /// Packets lost: the queue was full, chance, or the link was down.
    pub dropped: u64,
}

/// One direction of a link.
#[derive(Debug)]
pub struct Link {
    config: LinkConfig,
    rng: Rng,
    /// When the last accepted packet has left the queue.
    free_at: Duration,
    /// Packets that wait or are being sent: when their sending begins, and their size.
    waiting: VecDeque<(Duration, usize)>,
    waiting_bytes: usize,
    counts: LinkCounts,
}

impl Link {
    /// An idle link.
    pub fn new(config: LinkConfig, rng: Rng) -> Link {
        let waiting = VecDeque::new();
        let counts = LinkCounts::default();
        Link { config, rng, free_at: Duration::ZERO, waiting, waiting_bytes: 0, counts }
    }

    /// Takes a datagram of `payload` bytes at `now`, which never goes back. Returns when it arrives at
    /// the far end, or `None` if it is lost. Packets arrive in the order they were taken.
    pub fn offer(&mut self, now: Duration, payload: usize) -> Option<Duration> {
        let arrival = self.schedule(now, payload + HEADER_BYTES);
        match arrival {
            Some(_) => {
                self.counts.packets += 1;
                self.counts.bytes += payload as u64;
            }
            None => self.counts.dropped += 1,
        }
        arrival
    }

    fn schedule(&mut self, now: Duration, size: usize) -> Option<Duration> {
        while self.waiting.front().is_some_and(|(begins, _)| *begins <= now) {
            self.waiting_bytes -= self.waiting.pop_front().map_or(0, |(_, size)| size);
        }
        if self.is_down(now) || self.waiting_bytes + size > self.config.queue_bytes {
            return None;
        }
        let begins = self.free_at.max(now);
        let bits = size as u64 * 8;
        self.free_at = begins + Duration::from_nanos(bits * 1_000_000_000 / self.config.rate_bps);
        if begins > now {
            self.waiting.push_back((begins, size));
            self.waiting_bytes += size;
        }
        let arrives = self.free_at + self.config.delay;
        let cut = self.config.down.iter().any(|d| d.start < arrives && now < d.end);
        // Chance is drawn for every packet that the link carries, so that loss takes its time on it.
        (!self.rng.chance(self.config.loss) && !cut).then_some(arrives)
    }

    /// Whether the link is down at `at`.
    pub fn is_down(&self, at: Duration) -> bool {
        self.config.down.iter().any(|d| d.contains(&at))
    }

    /// What has passed so far.
    pub fn counts(&self) -> LinkCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: usize = 1500 - HEADER_BYTES;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// 12 Mbit/s: a packet of 1500 bytes takes 1 ms.
    fn config() -> LinkConfig {
        let queue_bytes = 10 * 1500;
        LinkConfig { rate_bps: 12_000_000, delay: ms(20), queue_bytes, loss: 0.0, down: vec![] }
    }

    fn link(config: LinkConfig) -> Link {
        Link::new(config, Rng::from_number(7))
    }

    #[test]
    fn a_packet_takes_its_size_over_the_rate_and_the_delay() {
        let mut link = link(config());
        assert_eq!(link.offer(ms(5), PAYLOAD), Some(ms(26)));
        assert_eq!(link.offer(ms(5), PAYLOAD), Some(ms(27)), "behind the first");
        assert_eq!(link.offer(ms(50), PAYLOAD / 2 - 14), Some(ms(70) + ms(1) / 2));
    }

    #[test]
    fn the_queue_drops_what_does_not_fit_and_empties_at_the_rate() {
        let mut link = link(config());
        let accepted = (0..50).filter(|_| link.offer(ms(0), PAYLOAD).is_some()).count();
        assert_eq!(accepted, 11, "one is sent, ten wait");
        assert_eq!(link.offer(ms(3), PAYLOAD), Some(ms(32)), "room for those that left");
        assert_eq!(
            link.counts(),
            LinkCounts { packets: 12, bytes: 12 * PAYLOAD as u64, dropped: 39 }
        );
    }

    #[test]
    fn an_overloaded_link_carries_exactly_its_rate() {
        let mut link = link(config());
        let mut arrived = 0;
        for step in 0..20_000u64 {
            // Twice the rate, for ten seconds.
            let arrival = link.offer(Duration::from_micros(step * 500), PAYLOAD);
            arrived += u64::from(arrival.is_some_and(|at| at <= ms(10_020)));
        }
        assert_eq!(arrived, 10_000);
    }

    #[test]
    fn an_outage_loses_what_is_sent_and_what_is_on_its_way() {
        let mut link = link(LinkConfig { down: vec![ms(100)..ms(200)], ..config() });
        assert_eq!(link.offer(ms(79), PAYLOAD), Some(ms(100)), "arrives as it goes down");
        assert_eq!(link.offer(ms(80), PAYLOAD), None, "on its way when it goes down");
        assert_eq!(link.offer(ms(150), PAYLOAD), None);
        assert!(link.is_down(ms(199)) && !link.is_down(ms(200)));
        assert_eq!(link.offer(ms(200), PAYLOAD), Some(ms(221)));
    }

    #[test]
    fn loss_is_as_frequent_as_configured() {
        let mut link = link(LinkConfig { loss: 0.1, ..config() });
        let lost = (0..10_000).filter(|n| link.offer(ms(2 * n), PAYLOAD).is_none()).count();
        assert!((800..1200).contains(&lost), "{lost} of 10000 at 10 %");
    }
}
