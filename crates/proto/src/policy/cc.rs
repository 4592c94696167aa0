//! The congestion window of a path.

mod balia;
mod bbr;
mod coupled;
mod cubic;
mod lia;
mod model;
mod olia;
mod rfc2960;
mod rfc9260;
mod used_up;

use std::time::Duration;

pub use crate::view::Estimate;
pub use balia::Balia;
pub use bbr::{Bbr, Guards, State as BbrState};
pub use cubic::Cubic;
pub use lia::Lia;
pub use model::{Delivery, LostPacket, Model, Pace, RateSample, SentPacket};
pub use olia::Olia;
pub use rfc2960::Rfc2960;
pub use rfc9260::Rfc9260;

use super::registry;
use crate::time::Instant;
use crate::view::PathId;

/// The variables of congestion control (RFC 9260 §7.2), in bytes of DATA chunks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window.
    pub cwnd: usize,
    /// Slow-start threshold.
    pub ssthresh: usize,
    /// Progress towards the next increase in congestion avoidance.
    pub partial_bytes_acked: usize,
}

/// The constants of a path, in bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// One packet in window arithmetic: PMDCS (RFC 9260), or the MTU (RFC 2960 and the papers).
    pub packet: usize,
    /// Lower bound of ssthresh after a loss.
    pub ssthresh_floor: usize,
    /// Upper bound of the growth per SACK in slow start.
    pub slow_start_increase_max: usize,
}

/// Facts of a SACK for congestion control.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AckFacts<'a> {
    /// The path.
    pub path: PathId,
    /// Bytes acknowledged for the first time on the path.
    pub acked_bytes: usize,
    /// The part of these bytes that counts towards growth in congestion avoidance: all of them,
    /// unless the rule `growth_needs_used_window` of the recovery holds.
    pub counted_bytes: usize,
    /// Flight size before the SACK, in bytes.
    pub flight_before: usize,
    /// Flight size after the SACK, in bytes.
    pub flight_after: usize,
    /// The path is in fast recovery.
    pub in_fast_recovery: bool,
    /// When the SACK arrived.
    pub now: Instant,
    /// RTT of the latest chunk acknowledged, if it was sent once. Measured from every SACK for
    /// controllers that [need](NeededFacts::rtt) it, and now and then for others.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// The latest transmission acknowledged, in the order of all transmissions of the association.
    pub latest_acked: Option<u64>,
    /// The latest transmission of the association when the SACK arrived, in the same order.
    pub latest_sent: u64,
    /// The windows of all paths that carry data, this one's included, in the order of their ids.
    /// Empty unless the controller [needs](NeededFacts::paths) them.
    pub paths: &'a [PathWindow],
}

/// The window of a path that carries data.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathWindow {
    /// The path.
    pub path: PathId,
    /// Congestion window in bytes.
    pub cwnd: usize,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// Bytes acknowledged between the last two losses that cut the window, or since the last one if
    /// that is more.
    pub between_losses: u64,
}

impl PathWindow {
    /// Smoothed RTT in seconds, if it was measured and is not 0.
    fn rtt(&self) -> Option<f64> {
        self.srtt.filter(|srtt| !srtt.is_zero()).map(|srtt| srtt.as_secs_f64())
    }
}

/// The facts that a controller needs in addition to those of every SACK. The engine gathers no
/// others.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NeededFacts {
    /// An RTT from every SACK, not only one per round trip.
    pub rtt: bool,
    /// The windows of all paths: for controllers that are coupled.
    pub paths: bool,
    /// Spurious losses: for controllers that [undo](CongestionControl::on_spurious_losses) their
    /// reaction to them.
    pub spurious_losses: bool,
}

/// Moves the congestion window of one path; each path has a controller of its own. Coupled
/// controllers see the windows of the other paths.
///
/// A method gets the current window, and returns the new one. The engine may have changed the
/// window since the last call, for instance while the path was idle. `cwnd` must stay at one
/// [packet](Limits::packet) or more, or nothing is sent any more.
pub trait CongestionControl: std::fmt::Debug + Send {
    /// The window after a SACK that moved the left edge of the path. Called once per SACK, before
    /// its losses are acted upon.
    fn on_ack(&mut self, window: Window, limits: &Limits, ack: &AckFacts) -> Window;

    /// The window after a loss seen by missing reports; called once per fast recovery.
    fn on_fast_retransmit(&mut self, window: Window, limits: &Limits) -> Window;

    /// The window after a router has marked a packet of the path, as it found a queue (ECN).
    /// Called once for all packets in flight, and not in fast recovery. By default, a mark
    /// counts as a loss.
    fn on_congestion_mark(&mut self, window: Window, limits: &Limits) -> Window {
        self.on_fast_retransmit(window, limits)
    }

    /// The window after T3-rtx expired, or after the path was found silent.
    fn on_timeout(&mut self, window: Window, limits: &Limits) -> Window;

    /// Losses were found that may turn out spurious. A controller that can undo its reaction stores
    /// its state. Called once per flight, before the window is cut.
    fn on_losses(&mut self, _window: Window) {}

    /// The window after all losses since [`on_losses`](Self::on_losses) turned out spurious: the
    /// packets were only late. Called for controllers that [need](NeededFacts::spurious_losses) it.
    fn on_spurious_losses(&mut self, window: Window) -> Window {
        window
    }

    /// The facts that the controller needs. The engine asks when it adds the path.
    fn needs(&self) -> NeededFacts {
        NeededFacts::default()
    }

    /// The model of a controller that follows the delivery of the path rather than losses. The
    /// engine asks when it adds the path, and measures only if there is one.
    fn model(&mut self) -> Option<&mut dyn Model> {
        None
    }
}

registry!(CongestionControl {
    "rfc9260" => |_| Box::new(Rfc9260),
    "rfc2960" => |_| Box::new(Rfc2960),
    "cubic" => |_| Box::<Cubic>::default(),
    "lia" => |_| Box::<Lia>::default(),
    "olia" => |_| Box::<Olia>::default(),
    "balia" => |_| Box::<Balia>::default(),
    "bbr" => |_| Box::new(Bbr::new(Guards::ON)),
    "bbr-draft" => |_| Box::new(Bbr::new(Guards::OFF)),
});

#[cfg(test)]
impl AckFacts<'_> {
    /// Facts of a SACK that acknowledges the first bytes of a flight, outside of fast recovery.
    fn of(acked_bytes: usize, flight_before: usize) -> AckFacts<'static> {
        AckFacts {
            path: PathId(0),
            acked_bytes,
            counted_bytes: acked_bytes,
            flight_before,
            flight_after: flight_before - acked_bytes,
            in_fast_recovery: false,
            now: Instant::ZERO,
            rtt: None,
            srtt: None,
            latest_acked: None,
            latest_sent: 0,
            paths: &[],
        }
    }
}
