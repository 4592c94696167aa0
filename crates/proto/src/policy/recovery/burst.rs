//! Max.Burst limits the packets that leave a path at once (RFC 9260 §6.1, D).

use crate::params::{MaxBurstRule, Params};
use crate::time::Instant;

/// The burst of one path.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Burst {
    /// Packets that may still leave.
    left: u32,
    /// The last opportunity to send.
    opportunity: Instant,
}

impl Burst {
    pub(crate) fn new(config: &Params, now: Instant) -> Burst {
        Burst { left: Bursts::new(config).limit(false), opportunity: now }
    }

    /// True if no packet may leave.
    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// A packet left.
    #[inline]
    pub(crate) fn spend(&mut self) {
        self.left = self.left.saturating_sub(1);
    }
}

/// The rule for all paths of an association.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Bursts {
    rule: MaxBurstRule,
    max: u32,
    /// All paths share one limit, which ends once it has held data back.
    are_joint: bool,
    /// A retransmitted chunk was acknowledged cumulatively, so bursts are likely from now on.
    are_likely: bool,
}

impl Bursts {
    pub(super) fn new(config: &Params) -> Bursts {
        Bursts {
            rule: config.max_burst_rule,
            max: config.max_burst,
            are_joint: !config.sfr && config.max_burst_rule == MaxBurstRule::AfterFastRetransmit,
            are_likely: false,
        }
    }

    /// Packets per burst. There is no limit if Max.Burst is off, or if its rule starts with the
    /// first retransmission and none was made.
    fn limit(&self, has_retransmitted: bool) -> u32 {
        let waits = match self.rule {
            MaxBurstRule::CutsCwnd => true, // cwnd itself is the limit
            MaxBurstRule::AfterFastRetransmit => !has_retransmitted,
            MaxBurstRule::Rfc9260 | MaxBurstRule::PerSack => false,
        };
        if self.max == 0 || waits { u32::MAX } else { self.max }
    }

    /// Begins an opportunity to send. Each instant is one. By some rules each SACK is one instead;
    /// an idle path gets no SACKs, so its spent burst is renewed here. Returns the packets by which
    /// cwnd may exceed the flight size, if the rule limits cwnd.
    pub(crate) fn begin(&self, burst: &mut Burst, now: Instant, flight_size: usize) -> Option<u32> {
        let is_new = burst.opportunity != now;
        burst.opportunity = now;
        match self.rule {
            MaxBurstRule::AfterFastRetransmit if self.are_joint && is_new => self.renew(burst),
            MaxBurstRule::AfterFastRetransmit if self.are_joint => {}
            MaxBurstRule::Rfc9260 if is_new => burst.left = self.limit(true),
            MaxBurstRule::CutsCwnd if is_new && self.max > 0 => return Some(self.max),
            MaxBurstRule::PerSack | MaxBurstRule::AfterFastRetransmit
                if flight_size == 0 && burst.left == 0 =>
            {
                burst.left = self.limit(true);
            }
            _ => {}
        }
        None
    }

    /// Allows a new burst: a SACK arrived or T3-rtx expired.
    pub(crate) fn renew(&self, burst: &mut Burst) {
        burst.left = self.limit(self.are_likely);
    }

    /// A SACK arrived. `of_retransmission` is true if it acknowledged one cumulatively.
    pub(crate) fn on_sack(&mut self, of_retransmission: bool) {
        self.are_likely |= of_retransmission;
    }

    /// True if all paths share one limit. The caller then has to call [`end`](Self::end).
    pub(crate) fn are_joint(&self) -> bool {
        self.are_joint
    }

    /// Ends a joint limit, because nothing but Max.Burst has held new data back.
    pub(crate) fn end(&mut self) {
        self.are_likely = false;
    }
}
