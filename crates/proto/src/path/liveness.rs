//! The life of a path: its state, its failures, and when it was heard.

use std::time::Duration;

use crate::config::Config;
use crate::time::Instant;
use crate::view::PathState;

/// How the pair of addresses became known.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The application named it: RFC 9260 §5.4, rule 1, trusts such an address.
    Named,
    /// The peer listed the remote address.
    Listed,
    /// A packet of the peer came from there. The path may be given up.
    Learnt,
    /// A packet came from there, and the pair is one of the application's candidates.
    LearntAndNamed,
}

impl Origin {
    pub(crate) fn is_named(self) -> bool {
        matches!(self, Origin::Named | Origin::LearntAndNamed)
    }

    pub(crate) fn is_learnt(self) -> bool {
        matches!(self, Origin::Learnt | Origin::LearntAndNamed)
    }

    /// The application names the pair, too.
    pub(crate) fn name(&mut self) {
        *self = if self.is_learnt() { Origin::LearntAndNamed } else { Origin::Named };
    }
}

/// The local address of a path.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Ours,
    /// Another path replaces this one once it is verified.
    Superseded,
    /// The peer was not told of the address yet: nothing but that leaves from there (RFC 5061 §5.3,
    /// F1).
    Untold,
    /// This host no longer has the address: nothing is sent here. No other path exists then.
    Away,
}

/// Times of the last timeout of each kind. One failure that affects both data and a heartbeat
/// counts once.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct TimedOut {
    pub(crate) data: Option<Instant>,
    pub(crate) heartbeat: Option<Instant>,
}

/// The signs that a path works, or does not.
#[derive(Debug)]
pub(crate) struct Liveness {
    pub(crate) state: PathState,
    pub(crate) address: Address,
    /// Timeouts of data and heartbeats in a row (RFC 9260 §8.2).
    pub(crate) error_count: u32,
    /// More timeouts in a row than these make the path inactive.
    pub(crate) max_retrans: u32,
    /// When T3-rtx was last counted as a timeout, and when a lost heartbeat last was.
    pub(crate) timed_out: TimedOut,
    /// The latest transmission when a timeout last put the path in doubt. Acks of earlier
    /// transmissions prove nothing about the time since.
    pub(crate) doubted_order: Option<u64>,
    /// When a packet of the peer last arrived on exactly this pair.
    pub(crate) last_heard: Option<Instant>,
    /// When the path last proved to work.
    pub(crate) last_active: Instant,
    /// With a failure policy that acts on silence: how long the path may be without an
    /// acknowledgement.
    pub(crate) silence_max: Duration,
    /// True if this path's outstanding data was sent again because another path answered. Until
    /// T3-rtx expires or something answers here, answers on other paths cause no more of that.
    pub(crate) was_carried: bool,
}

impl Liveness {
    /// A path that was created `now` and is not verified.
    pub(super) fn new(config: &Config, now: Instant) -> Liveness {
        Liveness {
            state: PathState::Unconfirmed,
            address: Address::Ours,
            error_count: 0,
            max_retrans: config.path_max_retrans,
            timed_out: TimedOut::default(),
            doubted_order: None,
            last_heard: None,
            last_active: now,
            silence_max: Duration::ZERO,
            was_carried: false,
        }
    }

    /// True if this host no longer has the local address.
    pub(crate) fn is_away(&self) -> bool {
        self.address == Address::Away
    }

    /// True if another path replaces this one.
    pub(crate) fn is_superseded(&self) -> bool {
        self.address == Address::Superseded
    }

    /// True if the peer was not told of the local address yet.
    #[inline]
    pub(crate) fn is_untold(&self) -> bool {
        self.address == Address::Untold
    }

    /// True if the path sends nothing of its own accord.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_away() || self.is_untold()
    }

    /// Sets if another path replaces this one. A path whose address is gone, or that the peer was
    /// not told of, stays so.
    pub(crate) fn supersede(&mut self, is_superseded: bool) {
        if !self.is_silent() {
            self.address = if is_superseded { Address::Superseded } else { Address::Ours };
        }
    }
}
