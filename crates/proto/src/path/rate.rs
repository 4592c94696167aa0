//! Measures the delivery rate of a path (draft-ietf-ccwg-bbr, section "Delivery Rate Samples").

use std::collections::VecDeque;
use std::time::Duration;

use crate::policy::cc::{LostPacket, RateSample};
use crate::time::Instant;
use crate::tx::SackArrival;

/// A packet with DATA chunks, and the state of its path when it was sent.
#[derive(Copy, Clone, Debug)]
struct Packet {
    /// Order of the packet's last chunk.
    order: u64,
    sent_at: Instant,
    total: u64,
    total_at: Instant,
    total_via: Option<SackArrival>,
    first_sent_at: Instant,
    lost: u64,
    in_flight: usize,
    is_app_limited: bool,
}

/// How long an RTT measured by DATA is valid. After that heartbeats measure it.
const TIMED_WITHIN: Duration = Duration::from_secs(10);

/// Bytes in flight on a path before a packet and with it.
#[derive(Copy, Clone, Debug)]
pub(crate) struct InFlight {
    pub(crate) before: usize,
    pub(crate) after: usize,
}

/// The delivery of one path. Amounts are bytes of DATA chunks.
#[derive(Debug, Default)]
pub(crate) struct DeliveryRate {
    /// Bytes acknowledged so far (C.delivered), the time of the latest SACK, and the path on which
    /// it came. With nothing in flight, an interval begins when a packet is sent.
    ///
    /// Deviation: the draft takes the latest SACK that acknowledged something on this path.
    total: u64,
    total_at: Instant,
    total_via: Option<SackArrival>,
    lost: u64,
    /// When the latest packet acknowledged was sent (C.first_send_time).
    first_sent_at: Instant,
    /// The path had less to send than it could carry, until this total is delivered
    /// (C.app_limited).
    app_limited: Option<u64>,
    /// The window was used up less than a round trip ago, until this total is delivered.
    window_limited: u64,
    min_rtt: Option<Duration>,
    /// When DATA last measured a round trip.
    timed_at: Option<Instant>,
    /// Packets in flight, earliest first. Lost or acknowledged ones stay until all before them are
    /// gone.
    packets: VecDeque<Packet>,
}

impl DeliveryRate {
    /// Bytes acknowledged so far.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// True if the path has less to send than it could carry.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited.is_some()
    }

    /// True if the window was used up in the last round trip.
    pub(crate) fn is_window_limited(&self) -> bool {
        self.total < self.window_limited
    }

    /// Notes a packet. `order` is that of its last chunk. `in_flight` is the volume in flight
    /// before and after it.
    pub(crate) fn on_sent(&mut self, now: Instant, order: u64, in_flight: InFlight) {
        if in_flight.before == 0 {
            (self.first_sent_at, self.total_at, self.total_via) = (now, now, None);
        }
        self.packets.push_back(Packet {
            order,
            sent_at: now,
            total: self.total,
            total_at: self.total_at,
            total_via: self.total_via,
            first_sent_at: self.first_sent_at,
            lost: self.lost,
            in_flight: in_flight.after,
            is_app_limited: self.is_app_limited(),
        });
    }

    /// Notes that the path could send more than the application offers, so that its delivery does
    /// not show its capacity.
    pub(crate) fn limit_by_application(&mut self, in_flight: usize) {
        self.app_limited = Some((self.total + in_flight as u64).max(1));
    }

    /// Notes that the window is used up.
    pub(crate) fn limit_by_window(&mut self, in_flight: usize) {
        self.window_limited = self.total + in_flight as u64;
    }

    /// Takes the bytes that a SACK newly acknowledges, the RTT that it measured, and the path on
    /// which it came. Its losses follow by [`on_lost`](Self::on_lost), then
    /// [`sample`](Self::sample).
    pub(crate) fn on_acked(
        &mut self,
        now: Instant,
        bytes: usize,
        rtt: Option<Duration>,
        via: Option<SackArrival>,
    ) {
        self.total += bytes as u64;
        (self.total_at, self.total_via) = (now, via);
        self.note_rtt(rtt);
        self.timed_at = rtt.map(|_| now).or(self.timed_at);
        if self.app_limited.is_some_and(|until| self.total > until) {
            self.app_limited = None;
        }
    }

    /// True if DATA has measured no RTT for [`TIMED_WITHIN`]. That happens where each chunk is also
    /// sent on another path: an acknowledgement does not say which of the two arrived.
    pub(crate) fn is_untimed(&self, now: Instant) -> bool {
        self.timed_at.is_none_or(|at| now.saturating_since(at) > TIMED_WITHIN)
    }

    /// Takes an RTT of the path.
    pub(crate) fn note_rtt(&mut self, rtt: Option<Duration>) {
        self.min_rtt = self.min_rtt.into_iter().chain(rtt).min();
    }

    /// Counts a lost transmission; `size` is the length of its DATA chunk in bytes.
    pub(crate) fn on_lost(&mut self, order: u64, size: usize, cwnd: usize) -> Option<LostPacket> {
        self.lost += size as u64;
        let packet = self.packet_of(order)?;
        Some(LostPacket {
            size,
            in_flight: packet.in_flight,
            lost: (self.lost - packet.lost) as usize,
            is_app_limited: packet.is_app_limited,
            total: self.total,
            cwnd,
        })
    }

    /// The sample of the packet with this transmission, the latest one that was just acknowledged.
    pub(crate) fn sample(&mut self, latest: u64) -> Option<RateSample> {
        let packet = *self.packet_of(latest)?;
        self.first_sent_at = self.first_sent_at.max(packet.sent_at);
        let send_elapsed = packet.sent_at.saturating_since(packet.first_sent_at);
        let ack_elapsed = self.total_at.saturating_since(packet.total_at);
        let interval = send_elapsed.max(ack_elapsed);
        let delivered = (self.total - packet.total) as usize;
        // A shorter interval belongs to a retransmission whose original was acknowledged.
        let is_long = self.min_rtt.is_some_and(|min| interval >= min) && !interval.is_zero();
        // The time between SACKs on two paths also contains the difference of their backward
        // delays.
        let is_alike =
            |via: SackArrival| self.total_via.is_some_and(|last| via.is_alike(last, interval));
        let is_measured = is_long && packet.total_via.is_none_or(is_alike);
        let rate = if is_measured { delivered as f64 / interval.as_secs_f64() } else { 0.0 };
        Some(RateSample {
            prior_total: packet.total,
            delivered,
            rate,
            is_app_limited: packet.is_app_limited,
            in_flight: packet.in_flight,
            lost: (self.lost - packet.lost) as usize,
        })
    }

    /// Forgets packets before `earliest`, the first transmission in flight.
    pub(crate) fn forget_before(&mut self, earliest: Option<u64>) {
        match earliest {
            Some(earliest) => {
                while self.packets.front().is_some_and(|packet| packet.order < earliest) {
                    self.packets.pop_front();
                }
            }
            None => self.packets.clear(),
        }
    }

    /// The packet that carried a transmission.
    fn packet_of(&self, order: u64) -> Option<&Packet> {
        let index = self.packets.partition_point(|packet| packet.order < order);
        self.packets.get(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::PathId;

    const NEAR: Option<SackArrival> = via(0, 20);
    const FAR: Option<SackArrival> = via(1, 30);

    /// A path with the shortest round-trip time in milliseconds.
    const fn via(path: u8, rtt_min: u64) -> Option<SackArrival> {
        Some(SackArrival { path: PathId(path), rtt_min: Some(Duration::from_millis(rtt_min)) })
    }

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// A packet of 1000 bytes each millisecond, acknowledged after 20 ms on the near way.
    fn steady() -> DeliveryRate {
        let mut rate = DeliveryRate::default();
        for ms in 0..40 {
            if ms >= 20 {
                rate.on_acked(at(ms), 1000, Some(Duration::from_millis(20)), NEAR);
                assert!(rate.sample(ms - 20).is_some());
            }
            rate.on_sent(at(ms), ms, InFlight { before: 1000, after: 2000 });
        }
        rate
    }

    #[test]
    fn sacks_that_come_in_on_different_paths_measure_no_rate() {
        let mut rate = steady();
        let rtt = Some(Duration::from_millis(20));
        // The way by which the SACKs of ten packets come takes 10 ms longer. Then they return.
        for ms in 50..60 {
            rate.on_acked(at(ms), 1000, rtt, FAR);
            let sample = rate.sample(ms - 30).expect("sent");
            assert_eq!(sample.rate, 0.0, "{sample:?}");
            rate.on_sent(at(ms), ms, InFlight { before: 1000, after: 2000 });
        }
        rate.on_acked(at(60), 11_000, rtt, NEAR);
        let rate_then = rate.sample(39).expect("sent").rate;
        assert!((rate_then - 1e6).abs() < 1.0, "{rate_then}: 21,000 bytes since 39 ms");
        rate.on_acked(at(80), 1000, rtt, NEAR);
        let sample = rate.sample(59).expect("sent");
        assert_eq!((sample.rate, sample.delivered), (0.0, 12_000), "571 kB/s since the far way");
    }

    #[test]
    fn sacks_that_come_in_on_paths_alike_measure_a_rate() {
        let mut rate = steady();
        let rtt = Some(Duration::from_millis(20));
        for ms in 40..60 {
            rate.on_acked(at(ms), 1000, rtt, via(ms as u8 % 2, 20 + ms % 2));
            let measured = rate.sample(ms - 20).expect("sent").rate;
            assert!((measured - 1e6).abs() < 1.0, "{measured} at {ms} ms");
            rate.on_sent(at(ms), ms, InFlight { before: 1000, after: 2000 });
        }
    }
}
