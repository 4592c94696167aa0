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
    /// Acknowledged for the first time by the SACK.
    pub newly_acked: usize,
    /// Acknowledged over the life of the path (C.delivered).
    pub total: u64,
    /// In flight after the SACK.
    pub in_flight: usize,
    /// The round-trip time of the latest packet acknowledged, if it was sent once.
    pub rtt: Option<Duration>,
    /// The window was used up in the last round trip.
    pub is_window_limited: bool,
    /// So much is missing that the SACK has hardly room for more gap ack blocks: the peer may have
    /// received more than it can say.
    pub is_report_full: bool,
    /// Measured by the latest packet acknowledged. `None` if what was acknowledged had been taken
    /// for lost.
    pub sample: Option<RateSample>,
}

/// A measurement by the latest packet that a SACK acknowledges.
#[derive(Copy, Clone, Debug, Default)]
#[non_exhaustive]
pub struct RateSample {
    /// The total that was delivered when the packet was sent (RS.prior_delivered).
    pub prior_total: u64,
    /// Delivered since (RS.delivered).
    pub delivered: usize,
    /// Bytes per second (RS.delivery_rate); 0 if the interval was too short to measure.
    pub rate: f64,
    /// The path had less to send than it could have, so it may be faster.
    pub is_app_limited: bool,
    /// In flight when the packet had been sent.
    pub in_flight: usize,
    /// Lost since the packet was sent.
    pub lost: usize,
}

/// A packet that was sent.
#[derive(Copy, Clone, Debug)]
#[non_exhaustive]
pub struct SentPacket {
    /// When it was sent.
    pub now: Instant,
    /// In flight before it, in bytes.
    pub in_flight_before: usize,
    /// The path had less to send than it could have.
    pub is_app_limited: bool,
    /// The window at that time, in bytes.
    pub cwnd: usize,
}

/// A transmission that was lost.
#[derive(Copy, Clone, Debug)]
#[non_exhaustive]
pub struct LostPacket {
    /// Bytes of DATA chunks lost with it.
    pub size: usize,
    /// In flight when it had been sent, in bytes.
    pub in_flight: usize,
    /// Lost since it was sent, itself included, in bytes.
    pub lost: usize,
    /// The path had less to send than it could have.
    pub is_app_limited: bool,
    /// The total delivered by now, in bytes.
    pub total: u64,
    /// The window, in bytes.
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

/// A controller that keeps a model of its path: how much it delivers, and how fast.
///
/// The engine measures what is delivered only for controllers that have one.
pub trait Model {
    /// Gives it randomness. Called once, before anything is sent.
    fn seed(&mut self, rng: Rng);

    /// A packet with DATA chunks is about to be sent.
    fn on_sent(&mut self, sent: &SentPacket);

    /// A transmission was taken for lost. Called before [`on_delivery`](Self::on_delivery) of the
    /// same SACK.
    fn on_lost(&mut self, lost: &LostPacket);

    /// The window after a SACK that acknowledged something for the first time.
    fn on_delivery(&mut self, window: Window, limits: &Limits, delivery: &Delivery) -> Window;

    /// A heartbeat measured a round trip on a path where DATA has measured none for a while.
    fn on_heartbeat(&mut self, _now: Instant, _rtt: Duration) {}

    /// The rate at which the path may be sent on. `None` before anything was measured.
    fn pace(&self) -> Option<Pace>;

    /// The speed of the path, for schedulers. `None` before it was measured.
    fn estimate(&self) -> Option<Estimate> {
        None
    }

    /// True while it sends less than it could on purpose: rates measured meanwhile say nothing of
    /// the path.
    fn holds_back(&self) -> bool;
}
