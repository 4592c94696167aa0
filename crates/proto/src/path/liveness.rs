//! The life of a path: its state, its failures, and when it was heard.

use std::time::Duration;

use crate::time::Instant;
use crate::view::PathState;

/// How the pair of addresses became known.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The application named it: RFC 9260 §5.4, rule 1, trusts such an address.
    Named,
    /// The peer listed the remote address in the handshake.
    Listed,
    /// A packet of the peer came from there: the path may be given up.
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
    /// Another path takes the place of this one, as soon as that is verified.
    Superseded,
    /// The address is not ours any more: nothing is sent here. There is no other path then.
    Away,
}

/// The last timeouts of each kind. One failure that both data and a heartbeat run into counts once.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct TimedOut {
    pub(crate) data: Option<Instant>,
    pub(crate) heartbeat: Option<Instant>,
}

/// The signs by which a path works or does not.
#[derive(Debug)]
pub(crate) struct Liveness {
    pub(crate) state: PathState,
    pub(crate) address: Address,
    /// Timeouts of data and heartbeats in a row (RFC 9260 §8.2).
    pub(crate) error_count: u32,
    /// When T3-rtx was last counted as a timeout, and when a lost heartbeat was.
    pub(crate) timed_out: TimedOut,
    /// The latest transmission when a timeout last put the path in doubt: acks of what was sent
    /// before say nothing of what happened since.
    pub(crate) doubted_order: Option<u64>,
    /// When a packet of the peer last arrived on exactly this pair.
    pub(crate) last_heard: Option<Instant>,
    /// When the path last proved to work.
    pub(crate) last_active: Instant,
    /// With a failure policy that waits for acks: for how long it does, counted from the last.
    pub(crate) silence_max: Duration,
    /// The data outstanding here was sent again because another path answered. Until T3-rtx
    /// expires or something answers here, such answers say no more of this path.
    pub(crate) was_carried: bool,
}

impl Liveness {
    /// A path that was created `now` and is not verified.
    pub(super) fn new(now: Instant) -> Liveness {
        Liveness {
            state: PathState::Unconfirmed,
            address: Address::Ours,
            error_count: 0,
            timed_out: TimedOut::default(),
            doubted_order: None,
            last_heard: None,
            last_active: now,
            silence_max: Duration::ZERO,
            was_carried: false,
        }
    }

    /// Our address is gone.
    pub(crate) fn is_away(&self) -> bool {
        self.address == Address::Away
    }

    /// Another path takes the place of this one.
    pub(crate) fn is_superseded(&self) -> bool {
        self.address == Address::Superseded
    }

    /// Another path is to take the place of this one, or not any more. A gone address stays gone.
    pub(crate) fn supersede(&mut self, is_superseded: bool) {
        if !self.is_away() {
            self.address = if is_superseded { Address::Superseded } else { Address::Ours };
        }
    }
}
