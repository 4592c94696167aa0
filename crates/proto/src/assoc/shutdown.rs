//! Closing an association (RFC 9260 §9).

use std::time::Duration;

use bytes::Bytes;
use manypath_wire::{ErrorCause, Tsn};

use super::recover::outage::is_known;
use super::recover::timeout::TimeoutCause;
use super::send::control::Control;
use super::state::State;
use super::{AssocTimer, Association, Timer};
use crate::datagram::AddressPair;
use crate::event::{AssocClosed, Event};
use crate::path::Path;
use crate::time::Instant;
use crate::view::{PathId, PathState};

/// Time after which a peer is no longer known to be there: RTO.Min of RFC 9260.
const HEARD_LATELY: Duration = Duration::from_secs(1);

impl Association {
    /// Closes gracefully: everything queued is delivered first (RFC 9260 §9.2). An association that
    /// is not established yet ends at once, with an abort if messages are lost.
    pub fn shutdown(&mut self, now: Instant) {
        match self.state {
            State::CookieWait(_) if self.queue.is_empty() => self.close(AssocClosed::Shutdown),
            State::CookieWait(_) | State::CookieEchoed { .. } => self.abort(now, b""),
            State::Established => {
                self.state = State::ShutdownPending;
                self.cancel_requests();
                self.continue_shutdown(now);
            }
            _ => {}
        }
    }

    /// Ends the association at once and drops undelivered data (RFC 9260 §9.1). The peer is told
    /// the reason, cut to 1024 bytes.
    pub fn abort(&mut self, _now: Instant, reason: &[u8]) {
        if matches!(self.state, State::Closed(_)) {
            return;
        }
        self.control.clear();
        if self.ends.id.peer_tag != 0 {
            let reason = Bytes::copy_from_slice(&reason[..reason.len().min(1024)]);
            self.push_abort(Some(ErrorCause::UserInitiatedAbort(reason)));
        }
        self.close(AssocClosed::Aborted);
    }

    /// The peer's host does not know SCTP. That ends the association as an ABORT would (RFC 9260
    /// §10, ICMP8).
    ///
    /// Deviation: an association whose packets must be protected is not ended by a message that is
    /// not. Nor is one whose peer was heard a moment ago, because Linux also says so while the
    /// buffer of a raw socket is full.
    pub(crate) fn peer_has_no_sctp(&mut self, now: Instant) {
        let heard = self.paths.iter().filter_map(|p| p.liveness.last_heard).max();
        let is_alive = heard.is_some_and(|at| now - at < HEARD_LATELY);
        // In SHUTDOWN-ACK-SENT both ends have everything, and the peer may be gone.
        let is_done = matches!(self.state, State::ShutdownAckSent { .. });
        if self.refuses_plain() || (is_alive && !is_done) {
            return;
        }
        self.tell_if_readable();
        self.control.clear();
        self.close(if is_done { AssocClosed::Shutdown } else { AssocClosed::NoSuchProtocol });
    }

    /// True while INIT waits for its answer.
    pub(crate) fn awaits_init_ack(&self) -> bool {
        matches!(self.state, State::CookieWait(_))
    }

    /// Sends SHUTDOWN or SHUTDOWN ACK once nothing is outstanding.
    pub(super) fn continue_shutdown(&mut self, now: Instant) {
        if !self.queue.is_empty() || !self.out.is_empty() || !self.is_released() {
            return;
        }
        match self.state {
            State::ShutdownPending => {
                self.state = State::ShutdownSent { attempts: 0 };
                self.stop_heartbeats();
                self.control.push_back(Control::Shutdown);
                self.start_t5(now);
                self.start_t2(now, self.control_path());
            }
            State::ShutdownReceived { answer_on } => {
                let is_there = self.paths.get(answer_on).is_some_and(is_known);
                let on = if is_there { answer_on } else { self.control_path() };
                self.send_shutdown_ack(now, 0, on);
                self.stop_heartbeats();
            }
            _ => {}
        }
    }

    fn send_shutdown_ack(&mut self, now: Instant, attempts: u32, on: PathId) {
        self.state = State::ShutdownAckSent { attempts, on };
        self.control.push_back(Control::ShutdownAck { on });
        self.start_t5(now);
        self.start_t2(now, on);
    }

    /// Starts T5-shutdown-guard, which bounds the whole shutdown by 5 · RTO.Max as §9.2 recommends.
    /// It also runs if the peer began the shutdown, because a peer that is heard gets any number of
    /// attempts.
    fn start_t5(&mut self, now: Instant) {
        self.timers.start(Timer::Assoc(AssocTimer::T5), now + 5 * self.config.rto_max);
    }

    /// Starts T2-shutdown for a chunk that is sent on this path.
    fn start_t2(&mut self, now: Instant, on: PathId) {
        let rto = self.paths.get(on).map_or(self.config.rto_initial, |p| p.rto.rto());
        self.timers.set(Timer::Assoc(AssocTimer::T2), now + rto);
    }

    /// Grants a peer that still sends more attempts, until T5 expires (§9.2). They do not wait for
    /// a pause in its packets: the peer sends heartbeats for as long as SHUTDOWN is lost.
    pub(super) fn heard_while_shutting_down(&mut self) {
        if let State::ShutdownSent { attempts } | State::ShutdownAckSent { attempts, .. } =
            &mut self.state
        {
            *attempts = 0;
        }
    }

    /// T2-shutdown expired: sends SHUTDOWN or SHUTDOWN ACK again on the next path (RFC 9260 §6.4).
    pub(super) fn on_t2(&mut self, now: Instant) {
        let limit = self.config.association_max_retrans.unwrap_or(10);
        let (tried, failed) = match self.state {
            State::ShutdownSent { attempts } => (attempts, self.control_path()),
            State::ShutdownAckSent { attempts, on } => (attempts, on),
            _ => return,
        };
        let attempts = tried + 1;
        if attempts > limit {
            self.close(AssocClosed::PathsFailed);
            return;
        }
        // A peer that is heard may still have data to send before its SHUTDOWN ACK.
        let rto = self.paths.get(failed).map_or(Duration::ZERO, |p| p.rto.rto());
        if self.last_heard.is_none_or(|at| now - at >= rto) {
            self.count_timeout(now, failed, TimeoutCause::Data);
        }
        if matches!(self.state, State::Closed(_)) {
            return;
        }
        let next = self.control_path_after(failed);
        self.primary = next;
        if matches!(self.state, State::ShutdownAckSent { .. }) {
            self.send_shutdown_ack(now, attempts, next);
        } else {
            self.state = State::ShutdownSent { attempts };
            self.control.push_back(Control::Shutdown);
            self.start_t2(now, next);
        }
    }

    /// The path after `failed` among the usable and verified ones; if there are none, among all.
    pub(super) fn control_path_after(&self, failed: PathId) -> PathId {
        let fits = |p: &Path| p.role.usable && p.liveness.state != PathState::Unconfirmed;
        let order = |p: &&Path| (!fits(p), p.id <= failed, p.id);
        self.paths.iter().min_by_key(order).map_or(self.primary, |p| p.id)
    }

    /// T5-shutdown-guard expired.
    pub(super) fn on_t5(&mut self) {
        self.push_abort(None);
        self.close(AssocClosed::PathsFailed);
    }

    /// Handles SHUTDOWN: it also acknowledges cumulatively.
    pub(super) fn on_shutdown(&mut self, now: Instant, from: AddressPair, cum_tsn_ack: Tsn) {
        let answer_on = self.shutdown_ack_path(from);
        match self.state {
            State::Established | State::ShutdownPending => {
                self.state = State::ShutdownReceived { answer_on };
                self.cancel_requests();
                self.events.push(Event::PeerShutdown);
            }
            State::ShutdownReceived { .. } => self.state = State::ShutdownReceived { answer_on },
            State::ShutdownSent { .. } => {
                // §9.2: both ends have sent SHUTDOWN.
                self.send_shutdown_ack(now, 0, answer_on);
                return;
            }
            State::ShutdownAckSent { .. } => {
                self.reply(Control::ShutdownAck { on: answer_on });
                return;
            }
            _ => return,
        }
        self.acknowledge_by_shutdown(now, cum_tsn_ack);
        self.continue_shutdown(now);
    }

    /// The path for SHUTDOWN ACK: the one on which SHUTDOWN came (RFC 9260 §6.4), if it is verified
    /// (§5.4).
    fn shutdown_ack_path(&self, from: AddressPair) -> PathId {
        let way = self.working_way_to(from);
        let path = self.paths.find(&way).and_then(|id| self.paths.get(id));
        path.filter(|p| is_known(p)).map_or_else(|| self.control_path(), |p| p.id)
    }

    /// Applies the cumulative TSN ack of SHUTDOWN like a SACK without gap reports.
    fn acknowledge_by_shutdown(&mut self, now: Instant, cum_tsn_ack: Tsn) {
        if cum_tsn_ack.le(self.out.cum_tsn_ack_point()) {
            return;
        }
        let sack = manypath_wire::Sack::cumulative(cum_tsn_ack, self.peer_window.a_rwnd_u32());
        self.acknowledge(now, &sack, false, None, None);
    }

    /// Answers DATA that arrives after SHUTDOWN was sent with SHUTDOWN and a SACK (§9.2). While the
    /// peer goes on sending, T5 starts again, because that may take long over a slow path.
    pub(super) fn shutdown_sent_got_data(&mut self, now: Instant, is_new: bool) {
        if matches!(self.state, State::ShutdownSent { .. }) {
            if is_new {
                let at = now + 5 * self.config.rto_max;
                self.timers.set(Timer::Assoc(AssocTimer::T5), at);
            }
            self.reply(Control::Shutdown);
            if let Some(r) = self.rx.receiver.as_mut() {
                r.delayed.demand_now();
            }
            self.start_t2(now, self.control_path());
        }
    }

    pub(super) fn on_shutdown_ack(&mut self, from: AddressPair) {
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
