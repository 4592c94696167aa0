//! Congestion control by a model of the path: its facts and its answers.

use std::time::Duration;

use super::{Limits, Window};
use crate::rng::Rng;
use crate::time::Instant;
use crate::view::Estimate;

/// Delivery on a path as of a SACK (draft-ietf-ccwg-bbr, section "Delivery Rate Samples"). Amounts
/// are bytes of DATA chunks.
#[derive(Copy, Clone, Debug)]
#[non_exhaustive]
pub struct Delivery {
    /// When the SACK arrived.
    pub now: Instant,
    /// Bytes acknowledged for the first time by the SACK.
    pub newly_acked: usize,
    /// Bytes acknowledged over the life of the path (C.delivered).
    pub total: u64,
    /// Bytes in flight after the SACK.
    pub in_flight: usize,
    /// The round-trip time of the latest packet acknowledged, if it was sent once.
    pub rtt: Option<Duration>,
    /// The window was used up in the last round trip.
    pub is_window_limited: bool,
    /// The SACK has hardly room for more gap ack blocks, so the peer may have received more than it
    /// can report.
    pub is_report_full: bool,
    /// The sample of the latest packet acknowledged. `None` if all acknowledged chunks had been
    /// taken for lost.
    pub sample: Option<RateSample>,
}

/// A measurement by the latest packet that a SACK acknowledges.
#[derive(Copy, Clone, Debug, Default)]
#[non_exhaustive]
pub struct RateSample {
    /// The total that was delivered when the packet was sent (RS.prior_delivered).
    pub prior_total: u64,
    /// Bytes delivered since then (RS.delivered).
    pub delivered: usize,
    /// Bytes per second (RS.delivery_rate); 0 if the interval was too short to measure.
    pub rate: f64,
    /// The path had less to send than it could carry, so it may be faster.
    pub is_app_limited: bool,
    /// Bytes in flight once the packet had been sent.
    pub in_flight: usize,
    /// Bytes lost since the packet was sent.
    pub lost: usize,
}

/// A packet that is about to be sent.
#[derive(Copy, Clone, Debug)]
#[non_exhaustive]
pub struct SentPacket {
    /// When it was sent.
    pub now: Instant,
    /// Bytes in flight before the packet.
    pub in_flight_before: usize,
    /// The path has less to send than it could carry.
    pub is_app_limited: bool,
    /// cwnd at that time, in bytes.
    pub cwnd: usize,
}

/// A transmission that was lost.
#[derive(Copy, Clone, Debug)]
#[non_exhaustive]
pub struct LostPacket {
    /// Bytes of DATA chunks lost with it.
    pub size: usize,
    /// Bytes in flight once it had been sent.
    pub in_flight: usize,
    /// Bytes lost since it was sent, this transmission included.
    pub lost: usize,
    /// The path had less to send than it could carry.
    pub is_app_limited: bool,
    /// The total delivered by now, in bytes.
    pub total: u64,
    /// cwnd, in bytes.
    pub cwnd: usize,
}

/// The rate of a path.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Pace {
    /// Bytes of DATA chunks per second.
    pub rate: f64,
    /// Bytes that may leave at once.
    pub quantum: usize,
}

/// A controller that keeps a model of its path: how much data it holds, and how fast it delivers.
///
/// The engine measures what is delivered only for controllers that have one.
pub trait Model {
    /// Gives the model a random generator. Called once, before anything is sent.
    fn seed(&mut self, rng: Rng);

    /// A packet with DATA chunks is about to be sent.
    fn on_sent(&mut self, sent: &SentPacket);

    /// A transmission was taken for lost. Called before [`on_delivery`](Self::on_delivery) of the
    /// same SACK.
    fn on_lost(&mut self, lost: &LostPacket);

    /// The window after a SACK that acknowledged something for the first time.
    fn on_delivery(&mut self, window: Window, limits: &Limits, delivery: &Delivery) -> Window;

    /// A heartbeat measured an RTT on a path where DATA has measured none for a while.
    fn on_heartbeat(&mut self, _now: Instant, _rtt: Duration) {}

    /// The rate at which the path may be sent on. `None` before anything was measured.
    fn pace(&self) -> Option<Pace>;

    /// The speed of the path, for schedulers. `None` before it was measured.
    fn estimate(&self) -> Option<Estimate> {
        None
    }

    /// True while the model sends less than it could on purpose: rates measured meanwhile are too
    /// low.
    fn holds_back(&self) -> bool;
}
