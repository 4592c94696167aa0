//! Paths as policies see them.

use std::fmt;
use std::time::Duration;

use super::estimate::Estimate;
use super::rank::PathRank;
use super::state::PathState;
use crate::time::Instant;

/// Number of a path within its association, from 0. Shown as "path 1" for 0.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u8);

impl PathId {
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "path {}", u16::from(self.0) + 1)
    }
}

/// A path as policies see it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PathView {
    /// The path.
    pub id: PathId,
    /// Its state.
    pub state: PathState,
    /// The path's rank: paths of lesser ranks carry data first.
    pub rank: PathRank,
    /// True if the path may carry data now, by the failure policy, the path set and its rank.
    pub usable: bool,
    /// Congestion window in bytes.
    pub cwnd: usize,
    /// Slow-start threshold in bytes.
    pub ssthresh: usize,
    /// Bytes of DATA chunks in flight.
    pub flight_size: usize,
    /// Bytes of DATA chunks in flight; with `pipe_accounting` also bytes that the path lost and
    /// that are not acknowledged yet.
    pub pipe: usize,
    /// Bytes that the congestion window, Max.Burst and pacing allow now; 0 if nothing may be sent.
    /// The last chunk may exceed it by less than its own size (RFC 9260 §6.1, rule B).
    pub cwnd_space: usize,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// The measured rate and RTT without a queue, if congestion control measures them.
    pub estimate: Option<Estimate>,
    /// Retransmission timeout, with its back-off.
    pub rto: Duration,
    /// Fraction of chunks lost: from a simulation's oracle, or else as measured.
    pub loss_rate: f64,
    /// Timeouts in a row.
    pub error_count: u32,
    /// Timeouts in a row that the path may have before it is inactive: `path_max_retrans`, unless
    /// the path has a value of its own.
    pub path_max_retrans: u32,
    /// When the path last proved to work.
    pub last_active: Instant,
    /// When DATA of the peer last arrived on it.
    pub last_data_received: Option<Instant>,
}

/// The lowest loss rate that a score can have: lower ones need more packets than are measured.
const LEAST_LOSS_RATE: f64 = 1e-4;

impl PathView {
    /// The expected throughput of the path in packets per second: sqrt(1.5) / (RTT sqrt(loss
    /// rate)), as RON estimates TCP's (mTCP paper, section 5.6). 0 before the RTT is measured.
    pub fn score(&self) -> f64 {
        score(self.srtt, self.loss_rate)
    }
}

/// [`PathView::score`] of a round-trip time and a loss rate.
pub(crate) fn score(srtt: Option<Duration>, loss_rate: f64) -> f64 {
    let Some(rtt) = srtt.filter(|rtt| !rtt.is_zero()) else { return 0.0 };
    1.5f64.sqrt() / (rtt.as_secs_f64() * loss_rate.max(LEAST_LOSS_RATE).sqrt())
}
