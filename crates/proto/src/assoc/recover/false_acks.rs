//! Detects a peer that acknowledges data which it has not received.
//!
//! Such a peer makes us send faster than its link can carry, past every loss on the way, at the
//! cost of all other traffic on it (RFC 5062; Savage et al., "TCP congestion control with a
//! misbehaving receiver", 1999). A SACK has no nonce. So now and then a TSN is skipped: it counts
//! as sent, and is sent an RTT later. An honest peer reports it missing, which costs one RTT. A
//! peer that acknowledges it lies, and the association ends.
//!
//! A peer that reports real losses gets a smaller window, as its link demands. Such reports
//! therefore postpone the next test.

use manypath_wire::{ErrorCause, Sack, Tsn};

use crate::assoc::Association;
use crate::assoc::state::State;
use crate::tx::{PathDigest, TsnState};
use crate::view::{PathId, PathState};

/// User bytes acknowledged without a loss before the first test, ± 50 %.
const FIRST_AFTER: u64 = 256 << 10;
/// Each passed test doubles this number, up to this value or to `WINDOWS` windows.
const AFTER_MAX: u64 = 16 << 20;
const WINDOWS: u64 = 64;
/// Packets that must follow a skipped TSN at once, so that the test does not end by a timeout.
const FOLLOWERS: usize = 8;
/// Room that the peer's buffer must have, in flights, on a path whose rate is measured. All that
/// follows a skipped TSN waits there, and the next window comes two RTTs later. At a rate that
/// doubles per RTT that is six flights; without room, sending would stop.
const FLIGHTS_AHEAD: usize = 8;

/// The state of an association's tests.
#[derive(Debug, Default)]
pub(crate) struct FalseAcks {
    /// User bytes acknowledged since the last test or loss.
    acked: u64,
    /// The number of acknowledged bytes at which the next test comes; 0 if not drawn yet.
    due_at: u64,
    passed: u32,
    /// The TSN that was skipped and not sent yet.
    skipped: Option<Tsn>,
    /// True if the peer has what followed the skipped TSN, which now waits to be sent.
    is_over: bool,
}

impl FalseAcks {
    /// Notes that a TSN is sent. True if it had been skipped, so that this is no retransmission.
    pub(crate) fn sends(&mut self, tsn: Tsn) -> bool {
        self.skipped.take_if(|skipped| *skipped == tsn).is_some()
    }

    /// Notes that a TSN is sent on a second path. If it had been skipped, the peer may now
    /// acknowledge it, so the test ends without a verdict.
    pub(crate) fn sends_early(&mut self, tsn: Tsn) {
        if self.sends(tsn) && !self.is_over {
            (self.acked, self.due_at) = (0, 0);
        }
    }
}

impl Association {
    /// True if the next TSN is to be skipped.
    ///
    /// A test delays what follows by one RTT. So there is none while less data is queued than half
    /// of what is in flight: then the application sets the rate, and a false SACK cannot raise it.
    pub(crate) fn is_to_skip(&self, path: PathId, fragment: usize) -> bool {
        let test = &self.false_acks;
        if test.due_at == 0 || test.acked < test.due_at || test.skipped.is_some() {
            return false;
        }
        let ahead = FOLLOWERS * fragment;
        let has_room = self.paths.get(path).is_some_and(|p| {
            p.liveness.state == PathState::Active
                && p.liveness.error_count == 0
                && !self.recovery.policy.recovers(path)
                && p.flow.cwnd_space(self.out.counted(path)) > ahead
        });
        let in_flight: usize = self.paths.ids().map(|id| self.out.counted(id)).sum();
        matches!(self.state, State::Established)
            && has_room
            && self.queue.bytes() > ahead.max(in_flight / 2)
            && self.peer_rwnd() > ahead
            && self.has_room_behind(path, in_flight)
            && !self.policies.needs.roles
            && !self.out.may_have_marked()
    }

    /// True if the peer's buffer has room for all that may follow a skipped TSN before it arrives.
    fn has_room_behind(&self, path: PathId, in_flight: usize) -> bool {
        let is_measured = self.paths.get(path).is_some_and(|p| p.flow.rate.is_some());
        !is_measured || self.peer_rwnd() > FLIGHTS_AHEAD.saturating_mul(in_flight)
    }

    /// Notes that `tsn` counts as sent although it was not.
    pub(crate) fn note_skipped(&mut self, tsn: Tsn) {
        self.false_acks.skipped = Some(tsn);
        self.out.note_skipped(tsn);
        self.false_acks.is_over = false;
    }

    /// Ends the association if a SACK acknowledges the skipped TSN. True if it does.
    pub(super) fn is_caught(&mut self, sack: &Sack) -> bool {
        let Some(tsn) = self.false_acks.skipped else { return false };
        if !acknowledges(sack, tsn) || self.out.get(tsn).is_none() {
            return false;
        }
        let text = b"SACK for a TSN that was skipped: optimistic acknowledgement";
        self.abort_with(
            ErrorCause::ProtocolViolation(bytes::Bytes::from_static(text)),
            "it acknowledged what it cannot have received",
        );
        true
    }

    /// Goes on with a test after a SACK: sends the skipped TSN if the peer has what followed it on
    /// its path, and counts acknowledged bytes towards the next test.
    pub(super) fn go_on_with_ack_test(&mut self, released: usize, paths: &[PathDigest]) {
        if !self.config.ack_tests {
            return;
        }
        let test = &mut self.false_acks;
        test.acked += released as u64;
        if paths.iter().any(|facts| facts.lost > 0) && test.skipped.is_none() {
            test.acked = 0;
        }
        if test.due_at == 0 {
            let cwnd: usize = self.paths.iter().map(|p| p.flow.window.cwnd).sum();
            let most = AFTER_MAX.max(WINDOWS * cwnd as u64);
            let mean = (FIRST_AFTER << test.passed.min(32)).min(most);
            test.due_at = (mean as f64 * (0.5 + self.rng.unit())) as u64;
        }
        if test.is_over {
            return;
        }
        let Some(tsn) = test.skipped else { return };
        let Some(sent) = self.out.get(tsn) else { return };
        let of_path = paths.get(sent.path.index());
        if of_path.is_some_and(|facts| facts.latest_sent > Some(sent.order)) {
            self.false_acks.acked = 0;
            self.false_acks.due_at = 0;
            self.false_acks.passed += 1;
            self.false_acks.is_over = true;
            if sent.state == TsnState::InFlight {
                self.out.mark_for_probe(tsn);
            }
            self.recovery.past_cwnd.allow_if(true);
        }
    }
}

/// True if a SACK reports that this TSN has arrived.
fn acknowledges(sack: &Sack, tsn: Tsn) -> bool {
    if sack.cum_tsn_ack.ge(tsn) {
        return true;
    }
    let offset = tsn.distance_from(sack.cum_tsn_ack);
    let has = |b: manypath_wire::GapAckBlock| (b.start.into()..=b.end.into()).contains(&offset);
    sack.gap_ack_blocks().any(has) || sack.nr_gap_ack_blocks().any(has)
}
