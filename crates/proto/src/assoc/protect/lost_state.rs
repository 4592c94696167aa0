//! The peer of a protected association may have lost its state: something unprotected says so.
//!
//! Such a packet may be forged, and changes nothing. But it is a reason to ask: every path gets
//! heartbeats, which only a peer with the keys can answer. If none does, but something unprotected
//! comes again, the association ends soon, and not after the minutes that an outage is given.

use std::time::Duration;

use crate::assoc::Association;
use crate::assoc::state::State;
use crate::event::AssocClosed;
use crate::time::Instant;

/// Times that the peer is asked, on every path.
const QUESTIONS: u32 = 5;
/// Between two of them; at least the RTO of the primary path.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// After an answer nothing unprotected is a reason to ask again for as long.
const TRUST: Duration = Duration::from_secs(10);

/// Questions to a peer that may have lost its state.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct LostState {
    /// Questions that are not answered.
    asked: u32,
    /// Something unprotected came again after the first question. Without that it may be an outage,
    /// and what began the doubt a single forged packet.
    is_repeated: bool,
    /// Before that no new doubt arises.
    trusted_until: Option<Instant>,
}

impl Association {
    /// Something unprotected came that only a peer without its state would send.
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
                // It has everything, and has closed already.
                State::ShutdownAckSent { .. } => self.close(AssocClosed::Shutdown),
                _ => self.close(AssocClosed::PathsFailed),
            };
        }
        p.lost_state.asked += 1;
        p.deadlines.ask = Some(now + rto.max(ASK_EVERY));
        let is_first = p.lost_state.asked == 1;
        for path in self.paths.ids() {
            // Data asks too, and a heartbeat that is lost in a full queue would count against a
            // path that works: whoever can forge an ABORT could suspend it.
            if !is_first || self.out.chunks_in_flight(path) == 0 {
                self.probe_now(now, path);
            }
        }
        self.set_key_timer();
    }
}
