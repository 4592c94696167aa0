//! Closing an association (RFC 9260 §9).

use std::net::SocketAddr;

use bytes::Bytes;
use manypath_wire::{ErrorCause, Tsn};

use super::control::Control;
use super::state::State;
use super::timeout::TimeoutCause;
use super::{AssocTimer, Association, Timer};
use crate::event::{AssocClosed, Event};
use crate::time::Instant;

impl Association {
    /// Closes gracefully: everything queued is delivered first (RFC 9260 §9.2). Before the
    /// association is established it just ends, by an abort if that loses anything.
    pub fn shutdown(&mut self, now: Instant) {
        match self.state {
            State::CookieWait { .. } if self.queue.is_empty() => self.close(AssocClosed::Shutdown),
            State::CookieWait { .. } | State::CookieEchoed { .. } => self.abort(now, b""),
            State::Established => {
                self.state = State::ShutdownPending;
                self.continue_shutdown(now);
            }
            _ => {}
        }
    }

    /// Ends the association at once; what is not delivered is lost (RFC 9260 §9.1). The peer is
    /// told the reason, cut to 1024 bytes.
    pub fn abort(&mut self, _now: Instant, reason: &[u8]) {
        if matches!(self.state, State::Closed(_)) {
            return;
        }
        self.control.clear();
        if self.id.peer_tag != 0 {
            let reason = Bytes::copy_from_slice(&reason[..reason.len().min(1024)]);
            self.push_abort(Some(ErrorCause::UserInitiatedAbort(reason)));
        }
        self.close(AssocClosed::Aborted);
    }

    /// Sends SHUTDOWN or SHUTDOWN ACK once nothing is outstanding.
    pub(super) fn continue_shutdown(&mut self, now: Instant) {
        if !self.queue.is_empty() || !self.out.is_empty() {
            return;
        }
        match self.state {
            State::ShutdownPending => {
                self.state = State::ShutdownSent { attempts: 0 };
                self.stop_heartbeats();
                self.control.push_back(Control::Shutdown);
                // §9.2: bounds the whole shutdown, by five RTO.Max as recommended.
                let at = now + 5 * self.config.rto_max;
                self.timers.start(Timer::Assoc(AssocTimer::T5), at);
                self.start_t2(now);
            }
            State::ShutdownReceived => {
                self.state = State::ShutdownAckSent { attempts: 0 };
                self.stop_heartbeats();
                self.control.push_back(Control::ShutdownAck);
                self.start_t2(now);
            }
            _ => {}
        }
    }

    fn start_t2(&mut self, now: Instant) {
        let rto = self.paths.get(self.primary).map_or(self.config.rto_initial, |p| p.rto.rto());
        self.timers.set(Timer::Assoc(AssocTimer::T2), now + rto);
    }

    /// §9.2: a peer that still sends in SHUTDOWN-SENT is there, and gets the time it needs.
    pub(super) fn heard_while_shutting_down(&mut self, now: Instant) {
        if let State::ShutdownSent { attempts } = &mut self.state {
            *attempts = 0;
            self.error_count = 0;
            self.start_t2(now);
        }
    }

    /// T2-shutdown expired: SHUTDOWN or SHUTDOWN ACK again, by the next path.
    pub(super) fn on_t2(&mut self, now: Instant) {
        let limit = self.config.association_max_retrans.unwrap_or(10);
        let (attempts, chunk) = match &mut self.state {
            State::ShutdownSent { attempts } => (attempts, Control::Shutdown),
            State::ShutdownAckSent { attempts } => (attempts, Control::ShutdownAck),
            _ => return,
        };
        *attempts += 1;
        if *attempts > limit {
            self.close(AssocClosed::PathsFailed);
            return;
        }
        self.control.push_back(chunk);
        let primary = self.primary;
        self.count_timeout(now, primary, TimeoutCause::Data);
        if !matches!(self.state, State::Closed(_)) {
            let ids: Vec<_> = self.paths.ids().collect();
            if let Some(at) = ids.iter().position(|&id| id == primary) {
                self.primary = ids[(at + 1) % ids.len()];
            }
            self.start_t2(now);
        }
    }

    /// T5-shutdown-guard expired.
    pub(super) fn on_t5(&mut self) {
        self.push_abort(None);
        self.close(AssocClosed::PathsFailed);
    }

    /// Handles SHUTDOWN: it also acknowledges cumulatively.
    pub(super) fn on_shutdown(&mut self, now: Instant, cum_tsn_ack: Tsn) {
        match self.state {
            State::Established | State::ShutdownPending => {
                self.state = State::ShutdownReceived;
                self.events.push_back(Event::PeerShutdown);
            }
            State::ShutdownReceived => {}
            State::ShutdownSent { .. } => {
                // §9.2: both at once.
                self.state = State::ShutdownAckSent { attempts: 0 };
                self.control.push_back(Control::ShutdownAck);
                self.start_t2(now);
                return;
            }
            State::ShutdownAckSent { .. } => {
                self.reply(Control::ShutdownAck);
                return;
            }
            _ => return,
        }
        self.acknowledge_by_shutdown(now, cum_tsn_ack);
        self.continue_shutdown(now);
    }

    /// The cumulative TSN ack of SHUTDOWN, as a SACK that says nothing else.
    fn acknowledge_by_shutdown(&mut self, now: Instant, cum_tsn_ack: Tsn) {
        if cum_tsn_ack.le(self.out.cum_tsn_ack_point()) {
            return;
        }
        let a_rwnd = u32::try_from(self.a_rwnd).unwrap_or(u32::MAX);
        let sack = manypath_wire::Sack::cumulative(cum_tsn_ack, a_rwnd);
        self.acknowledge(now, &sack, false, (None, None));
    }

    /// DATA that arrives after SHUTDOWN was sent is answered with SHUTDOWN and a SACK (§9.2).
    pub(super) fn shutdown_sent_got_data(&mut self, now: Instant) {
        if matches!(self.state, State::ShutdownSent { .. }) {
            self.reply(Control::Shutdown);
            if let Some(r) = self.receiver.as_mut() {
                r.delayed.demand_now();
            }
            self.start_t2(now);
        }
    }

    pub(super) fn on_shutdown_ack(&mut self, from: (SocketAddr, SocketAddr)) {
        match self.state {
            State::ShutdownSent { .. } | State::ShutdownAckSent { .. } => {
                self.control.clear();
                let to = self.working_way_to(from);
                self.control.push_back(Control::ShutdownComplete { to });
                self.close(AssocClosed::Shutdown);
            }
            // §8.5.1, E: in COOKIE-WAIT and COOKIE-ECHOED it belongs to an older association.
            _ => {}
        }
    }

    pub(super) fn on_shutdown_complete(&mut self) {
        if matches!(self.state, State::ShutdownAckSent { .. }) {
            self.control.clear();
            self.close(AssocClosed::Shutdown);
        }
    }
}
