//! The peer of a protected association may have lost its state, as an unprotected packet suggests.
//!
//! The packet may be forged, so it changes nothing, but it is a reason to ask: every path gets
//! heartbeats, which only a peer with the keys can answer. If none is answered and more unprotected
//! packets come, the association ends within seconds, not after the minutes allowed for an outage.

use std::time::Duration;

use crate::assoc::Association;
use crate::assoc::state::State;
use crate::event::AssocClosed;
use crate::time::Instant;

/// Most rounds of heartbeats on every path.
const QUESTIONS: u32 = 5;
/// Time between two rounds; at least the RTO of the primary path.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// After an answer, how long unprotected packets are no reason to ask again.
const TRUST: Duration = Duration::from_secs(10);

/// Questions to a peer that may have lost its state.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct LostState {
    /// Rounds of heartbeats sent without an answer.
    asked: u32,
    /// True if an unprotected packet came again after the first round. Otherwise there may be an
    /// outage, and one forged packet may have begun the doubt.
    is_repeated: bool,
    /// Until then no new doubt arises.
    trusted_until: Option<Instant>,
}

impl Association {
    /// Handles an unprotected packet that only a peer without its state would send.
    pub(crate) fn doubt_peer(&mut self, now: Instant) {
        let is_open = self.state.is_open();
        let Some(p) = self.protection.as_mut().filter(|p| p.is_confirmed() && is_open) else {
            return;
        };
        p.lost_state.is_repeated |= p.lost_state.asked > 1;
        let is_trusted = p.lost_state.trusted_until.is_some_and(|until| now < until);
        if p.lost_state.asked == 0 && !is_trusted {
            self.ask_peer(now);
        }
    }

    /// The peer has sent a protected packet.
    pub(super) fn peer_is_there(&mut self, now: Instant) {
        let Some(p) = self.protection.as_mut().filter(|p| p.lost_state.asked > 0) else { return };
        p.lost_state = LostState { trusted_until: Some(now + TRUST), ..LostState::default() };
        p.deadlines.ask = None;
    }

    /// Asks again, or gives up.
    pub(super) fn ask_peer(&mut self, now: Instant) {
        let rto = self.paths.get(self.primary).map_or(ASK_EVERY, |p| p.rto.rto());
        let Some(p) = self.protection.as_mut() else { return };
        if p.lost_state.asked >= QUESTIONS && !p.lost_state.is_repeated {
            p.lost_state = LostState::default();
            return;
        }
        if p.lost_state.asked >= QUESTIONS {
            return match self.state {
                // The peer has everything, and has closed already.
                State::ShutdownAckSent { .. } => self.close(AssocClosed::Shutdown),
                _ => self.close(AssocClosed::PathsFailed),
            };
        }
        p.lost_state.asked += 1;
        p.deadlines.ask = Some(now + rto.max(ASK_EVERY));
        let is_first = p.lost_state.asked == 1;
        for path in self.paths.ids() {
            // On a path with data in flight, the data asks the peer. A heartbeat lost in a full
            // queue would count against a working path, so anyone who can forge an ABORT could
            // suspend the path.
            if !is_first || self.out.chunks_in_flight(path) == 0 {
                self.probe_now(now, path);
            }
        }
        self.set_key_timer();
    }
}
