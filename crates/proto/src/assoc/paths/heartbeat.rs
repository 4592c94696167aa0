//! Heartbeats (RFC 9260 §8.3): they verify paths, show which ones work, and measure idle ones.

use std::time::Duration;

use bytes::Bytes;

use super::heartbeat_info::{HeartbeatInfo, InfoCodec};
use crate::assoc::paths::is_to_be_known;
use crate::assoc::recover::outage::is_known;
use crate::assoc::recover::timeout::TimeoutCause;
use crate::assoc::send::outgoing::OutgoingPacket;
use crate::assoc::{Association, PathTimer, Timer};
use crate::datagram::{AddressPair, Transmit};
use crate::path::{Path, Probe};
use crate::rng::Rng;
use crate::time::Instant;
use crate::view::{PathId, PathState};

/// Longest time between two probes while data waits for the end of an outage: data flows again
/// within a second of the end.
const MAX_GAP_IN_OUTAGE: Duration = Duration::from_millis(900);

/// Shortest time between two probes of a lone path in an outage, while data waits.
const MIN_GAP_IN_OUTAGE: Duration = Duration::from_millis(250);

/// Shortest time between two probes of a lone path in an outage, while no data waits.
const MIN_GAP_WITHOUT_DATA: Duration = Duration::from_secs(1);

/// The heartbeat state shared by all paths; each path has its own in `path::Probing`.
#[derive(Debug)]
pub(crate) struct Heartbeats {
    pub(super) codec: InfoCodec,
    /// False if no path's heartbeat is due.
    pub(crate) may_be_due: bool,
    /// When a heartbeat of the peer was last answered on other paths than its own.
    pub(crate) answered_elsewhere: Option<Instant>,
    /// Bytes of probes that may still be sent to unverified addresses that only the peer listed.
    pub(crate) credit: usize,
}

impl Heartbeats {
    pub(crate) fn new(rng: Rng) -> Heartbeats {
        let codec = InfoCodec::new(rng);
        Heartbeats { codec, may_be_due: false, answered_elsewhere: None, credit: 0 }
    }
}

impl Association {
    /// Starts the verification of every path that the handshake did not verify (RFC 9260 §5.4). RFC
    /// 2960 has no verification: all paths are active at once.
    pub(crate) fn verify_paths(&mut self, now: Instant) {
        if self.recovery.rules.heartbeats.none_at_start {
            self.paths.ids().for_each(|id| self.confirm_path(now, id));
            return;
        }
        let burst = self.config.hb_max_burst as usize;
        let unconfirmed: Vec<_> = self
            .paths
            .iter()
            .filter(|p| p.liveness.state == PathState::Unconfirmed)
            .map(|p| (p.id, p.rto.rto()))
            .collect();
        for (n, (id, rto)) in unconfirmed.into_iter().enumerate() {
            match u32::try_from(n / burst) {
                Ok(0) => {
                    self.probe_now(now, id);
                    self.begin_trial(now, id);
                }
                round => {
                    let at = now + rto * round.unwrap_or(u32::MAX);
                    self.timers.set(Timer::Path(id, PathTimer::Heartbeat), at);
                    self.begin_trial(at, id);
                }
            }
        }
    }

    /// Stops heartbeats after SHUTDOWN or SHUTDOWN ACK (RFC 9260 §8.3). Only paths learnt from the
    /// peer's packets are still verified: without that, nothing that arrives there would count.
    /// Answers in flight still count, too: a path that they verify can carry the chunks of the
    /// shutdown (§6.4.1).
    pub(crate) fn stop_heartbeats(&mut self) {
        self.stop_size_searches();
        for p in self.paths.iter_mut().filter(|p| !is_to_be_known(p)) {
            self.timers.stop(Timer::Path(p.id, PathTimer::Heartbeat));
            p.probing.is_due = false;
            p.probing.probe = None;
        }
    }

    /// True if only unverified paths are left to carry the chunks of a shutdown.
    fn lacks_a_way_to_end(&self) -> bool {
        let works = |p: &Path| is_known(p) && p.liveness.state == PathState::Active;
        self.state.is_ending() && !self.paths.iter().any(works)
    }

    pub(crate) fn probe_now(&mut self, now: Instant, id: PathId) {
        let lacks_a_way = self.lacks_a_way_to_end();
        let is_needed = |p: &Path| {
            is_to_be_known(p) || (lacks_a_way && p.liveness.state == PathState::Unconfirmed)
        };
        if self.state.is_ending() && !self.paths.get(id).is_some_and(is_needed) {
            return;
        }
        // The event that calls for a probe may have ended the association.
        if self.closed().is_some() {
            return;
        }
        if let Some(p) = self.paths.get_mut(id).filter(|p| !p.liveness.is_silent()) {
            p.probing.is_due = true;
            self.heartbeats.may_be_due = true;
            let at = now + p.rto.rto();
            self.timers.set(Timer::Path(id, PathTimer::Heartbeat), at);
        }
    }

    /// Probes a path at once after T3-rtx expired on it, if another path is usable (HAR:
    /// retransmission policies paper, section 4.1). The answer ends the back-off of its RTO.
    pub(crate) fn heartbeat_after_rto(&mut self, now: Instant, id: PathId) {
        let has_other = self.paths.iter().any(|p| p.id != id && p.role.usable);
        let Some(p) = self.paths.get_mut(id).filter(|p| has_other && !p.probing.is_due) else {
            return;
        };
        p.probing.probe = None;
        self.probe_now(now, id);
    }

    /// Probes a path on which the peer's packets arrive although it has failed, or is unverified
    /// and needed for a shutdown. An earlier heartbeat first gets an RTO to be answered, and longer
    /// if the peer is heard and does not answer.
    pub(crate) fn probe_if_failed(&mut self, now: Instant, id: PathId) {
        let lacks_a_way = self.lacks_a_way_to_end();
        let Some(p) = self.paths.get_mut(id) else { return };
        let has_failed = match p.liveness.state {
            PathState::PotentiallyFailed | PathState::Inactive => true,
            PathState::Unconfirmed => lacks_a_way,
            PathState::Active => false,
        };
        // A peer that returns may have missed an earlier heartbeat while it was away, so wait for
        // its answer for one SRTT only.
        let waits = match p.rto.srtt() {
            Some(srtt) if self.policies.in_doubt.carry_when_answered => srtt,
            _ => p.rto.rto(),
        };
        let gap = p.probing.gap(now, p.probing.hb_interval);
        let is_asked = p.probing.probe.is_some_and(|probe| now - probe.sent_at < waits)
            || p.probing.last_sent.is_some_and(|at| now - at < gap);
        if has_failed && !is_asked && !p.probing.is_due {
            p.probing.probe = None;
            self.probe_now(now, id);
        }
    }

    /// The Heartbeat Information for a probe that is sent now.
    pub(crate) fn new_probe(&mut self, now: Instant, id: PathId) -> Vec<u8> {
        if self.recovery.rules.heartbeats.from_sending {
            self.begin_heartbeat_interval(now, id);
        }
        self.note_probe(id);
        let in_outage = self.is_probed_with_data(id);
        let is_protected = self.is_protected();
        let Some(p) = self.paths.get_mut(id) else { return Vec::new() };
        let (info, code) = self.heartbeats.codec.write(p, now, is_protected);
        p.probing.is_due = false;
        p.probing.last_sent = Some(now);
        p.probing.probe = Some(Probe { code, sent_at: now });
        p.probing.unanswered = p.probing.unanswered.saturating_add(1);
        let answer_by = match p.liveness.state {
            PathState::Active if !in_outage => p.rto.rto(),
            _ => self.probe_interval(now, id),
        };
        self.timers.set(Timer::Path(id, PathTimer::Heartbeat), now + answer_by);
        info
    }

    /// Begins the interval to the next heartbeat of an active path, unless an interval still lasts.
    fn begin_heartbeat_interval(&mut self, now: Instant, id: PathId) {
        let jitter = self.rng.unit() + 0.5;
        let is_active = |p: &&Path| p.liveness.state == PathState::Active;
        let Some(p) = self.paths.get(id).filter(is_active) else { return };
        if p.probing.interval.is_some_and(|(_, end)| end > now) {
            return;
        }
        let end = now + self.heartbeat_gap(p, jitter);
        let is_for_all = self.recovery.rules.heartbeats.one_at_a_time;
        for p in self.paths.iter_mut().filter(|p| p.id == id || is_for_all) {
            p.probing.interval = Some((now, end));
            if p.id != id && p.liveness.state == PathState::Active && p.probing.probe.is_none() {
                self.timers.set(Timer::Path(p.id, PathTimer::Heartbeat), end);
            }
        }
    }

    /// HB.interval + RTO ± 50 % of the RTO (RFC 9260 §8.3). `jitter` is the factor of the RTO.
    fn heartbeat_gap(&self, p: &Path, jitter: f64) -> Duration {
        let (interval, rto) = (p.probing.hb_interval, p.rto.rto());
        if self.recovery.rules.heartbeats.halved {
            interval / 2 + rto
        } else {
            interval + rto.mul_f64(jitter)
        }
    }

    /// True if a lost heartbeat was repeated in the interval that ends. The repetition replaces the
    /// next one.
    fn was_repeated(&self, id: PathId) -> bool {
        let Some(p) = self.paths.get(id) else { return false };
        let begun = p.probing.interval.map(|(begun, _)| begun);
        p.probing.probe.is_none()
            && begun.is_some()
            && p.probing.last_sent > begun
            && p.probing.lost == 0
    }

    /// Schedules the next probe of an idle path: after HB.interval + RTO ± 50 % of the RTO (RFC
    /// 9260 §8.3).
    pub(crate) fn schedule_heartbeat(&mut self, now: Instant, id: PathId) {
        let jitter = self.rng.unit() + 0.5;
        let is_over = self.state.is_ending() || self.closed().is_some();
        let may_probe = |p: &&Path| !is_over && !p.liveness.is_silent();
        let Some(p) = self.paths.get(id).filter(may_probe) else { return };
        let ends = p.probing.interval.map(|(_, end)| end).filter(|end| *end > now);
        if p.liveness.state == PathState::Active
            && p.probing.has_heartbeats
            && let Some(end) = ends
        {
            self.timers.set(Timer::Path(id, PathTimer::Heartbeat), end);
            return;
        }
        let mut after = self.heartbeat_gap(p, jitter);
        if p.liveness.state != PathState::Active {
            let hurries = self.is_probed_with_data(id);
            let least = if hurries { Duration::ZERO } else { p.rto.rto() };
            after = after.min(self.probe_interval(now, id).max(least));
        }
        let timer = Timer::Path(id, PathTimer::Heartbeat);
        if p.liveness.state == PathState::Active && !p.probing.has_heartbeats {
            self.timers.stop(timer);
        } else {
            self.timers.set(timer, now + after);
        }
    }

    pub(crate) fn on_heartbeat_timer(&mut self, now: Instant, id: PathId) {
        if !self.state.is_open() {
            return;
        }
        let counts = !self.counts_elsewhere(now, id);
        let Some(p) = self.paths.get_mut(id) else { return };
        let is_lost = p.probing.probe.is_some();
        if let Some(probe) = p.probing.probe.take() {
            p.probing.lost = p.probing.lost.saturating_add(1);
            if counts && p.liveness.timed_out.data.is_none_or(|at| at <= probe.sent_at) {
                self.count_timeout(now, id, TimeoutCause::Heartbeat);
            }
        }
        if self.forget_stranger(now, id) {
            return;
        }
        if !self.state.is_open() {
            return;
        }
        let Some(p) = self.paths.get(id) else { return };
        // While the peer answers probes of its closed window, the path is not idle: a heartbeat
        // would end the back-off of these probes.
        let sends_new = p.flow.last_new_data.is_some_and(|at| now - at < p.probing.hb_interval);
        let busy = sends_new || self.peer_window.is_probe_answered();
        let carries_data = p.role.usable && self.out.chunks_in_flight(id) > 0;
        let (busy, carries_data) =
            if self.is_probed_with_data(id) { (false, false) } else { (busy, carries_data) };
        match p.liveness.state {
            // RFC 9260 §8.3: a path is idle, and probed, if no chunk on it measures the RTT.
            // Retransmissions do not, so a path that carries nothing else is idle.
            PathState::Active if busy => self.schedule_heartbeat(now, id),
            PathState::Active if is_lost && !self.recovery.rules.heartbeats.repeated_at_once => {
                self.schedule_heartbeat(now, id);
            }
            PathState::Active if self.is_idle_elsewhere_for_longer(id) => {
                self.schedule_heartbeat(now, id);
            }
            PathState::Active if self.was_repeated(id) => {
                self.begin_heartbeat_interval(now, id);
                self.schedule_heartbeat(now, id);
            }
            PathState::Active => self.probe_now(now, id),
            // The last resort carries data that T3-rtx watches. A probe would count each failure
            // twice.
            _ if carries_data => self.schedule_heartbeat(now, id),
            _ => self.probe_now(now, id),
        }
    }

    /// True if paths are probed one at a time and another path has been idle for longer.
    fn is_idle_elsewhere_for_longer(&self, id: PathId) -> bool {
        let idle_since = |p: &Path| p.flow.last_new_data.max(p.probing.last_sent);
        let Some(own) = self.paths.get(id).filter(|p| p.probing.probe.is_none()) else {
            return false;
        };
        let is_longer = |p: &Path| {
            p.id != id && p.liveness.state == PathState::Active && idle_since(p) < idle_since(own)
        };
        self.recovery.rules.heartbeats.one_at_a_time && self.paths.iter().any(is_longer)
    }

    /// Handles HEARTBEAT ACK. `via` is the path on which it came.
    pub(crate) fn on_heartbeat_ack(
        &mut self,
        now: Instant,
        info: &Bytes,
        from: AddressPair,
        via: Option<PathId>,
    ) {
        if self.on_size_answer(now, info) || self.on_check_answer(now, info, from, via) {
            return;
        }
        let asked =
            self.heartbeats.codec.read(info, now, self.is_protected(), |id| self.paths.get(id));
        let Some(HeartbeatInfo { path: id, code, sent_at }) = asked else { return };
        let stuck = self.stuck_paths(id);
        let is_quick = self.config.hb_first_probe.is_some();
        let Some(p) = self.paths.get_mut(id) else { return };
        // An answer that was already counted, or is older than a counted one, is not news.
        if p.liveness.is_away() || p.probing.answered.is_some_and(|newest| sent_at <= newest) {
            return;
        }
        let latest = p.probing.probe.take().filter(|probe| probe.code == code);
        let asked_at = latest.map_or(sent_at, |probe| probe.sent_at);
        let is_late = latest.is_none();
        let is_idle = self.out.chunks_in_flight(id) == 0;
        // Nothing else has shown since the heartbeat that the path works.
        let is_news =
            std::mem::take(&mut p.probing.is_after_change) && p.liveness.last_active < asked_at;
        let was_in_doubt =
            p.liveness.state != PathState::Active || p.liveness.error_count > 0 || is_news;
        let was_verified = p.liveness.state != PathState::Unconfirmed;
        self.recovery.policy.on_heartbeat_ack();
        let rtt = now - asked_at;
        if is_quick && is_idle {
            p.rto.sample_when_idle(rtt);
        } else {
            p.rto.sample(rtt);
        }
        if via == Some(id) {
            p.note_heartbeat_rtt(now, rtt);
            p.rto.of_heartbeat = Some(rtt);
        }
        p.note_answer(now, asked_at);
        self.go_on_with_doubt(now, id);
        self.error_count = 0;
        self.path_answered(now, id);
        self.end_outage(now, &stuck, id, asked_at);
        if was_in_doubt && was_verified {
            self.path_answers(now, id, is_late.then_some(asked_at));
        }
        // The heartbeat may have waited for a network that just came up, for instance for ARP. Its
        // RTT would then be too long for the path, so measure again.
        if is_quick && is_late && was_in_doubt {
            self.probe_now(now, id);
        }
    }

    /// Updates a path's state and window after a heartbeat was answered.
    fn path_answered(&mut self, now: Instant, id: PathId) {
        let config = self.config_rc();
        let Some(p) = self.paths.get_mut(id) else { return };
        let state = p.liveness.state;
        if let Some(packets) = self.policies.fail.recovery_cwnd(state) {
            p.flow.one_packet = false;
            p.flow.window.cwnd = packets as usize * p.limits(&config).packet;
        }
        match state {
            PathState::Unconfirmed => self.confirm_path(now, id),
            PathState::PotentiallyFailed | PathState::Inactive => {
                self.set_path_state(now, id, PathState::Active);
            }
            PathState::Active => self.schedule_heartbeat(now, id),
        }
    }

    /// Sends the next heartbeat that is due, in a packet of its own.
    #[cold]
    pub(crate) fn heartbeat_packet(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.heartbeats.may_be_due = self.paths.iter().any(|p| p.probing.is_due);
        let id = self.paths.iter().find(|p| p.probing.is_due && self.may_probe(p))?.id;
        let info = self.new_probe(now, id);
        let max = self.paths.get(id)?.size.max_packet;
        let mut packet = OutgoingPacket::new(buf, self.ends.header(), max, self.seals());
        packet.push_heartbeat(&info);
        let len = self.finish(packet)?;
        let p = self.paths.get_mut(id)?;
        p.counters.packets_sent += 1;
        p.counters.heartbeats_sent += 1;
        p.counters.bytes_sent += len as u64;
        Some(Transmit::new(p.local, p.remote, len))
    }

    /// The time between probes of a path that is not active: its RTO with back-off, or less if the
    /// configuration asks for quick probes. It is never less than a recent answer took, and grows
    /// while the peer is heard and does not answer.
    fn probe_interval(&self, now: Instant, id: PathId) -> Duration {
        let config = &self.config;
        let Some(p) = self.paths.get(id) else { return config.hb_interval };
        let rto = p.rto.rto();
        let waits = p.liveness.state == PathState::Inactive
            && !self.recovery.rules.heartbeats.failed_at_once;
        let interval = p.probing.hb_interval;
        let gap = p.probing.gap(now, interval).max(self.gap_in_silence(now, id));
        let slow = if waits { rto + interval } else { rto.max(gap) };
        let doubled = |first: Duration| first.saturating_mul(1 << p.probing.lost.min(16));
        let Some(srtt) = p.rto.srtt() else {
            // A network that the host just joined may lose the first packets.
            let is_new = p.origin.is_named() && p.liveness.error_count <= p.liveness.max_retrans;
            return match config.hb_first_probe {
                Some(first) if is_new && self.policies.in_doubt.carry_when_answered => {
                    slow.min(doubled(first))
                }
                _ => slow,
            };
        };
        let first = config.hb_first_probe.map_or(Duration::MAX, doubled);
        let most = config.hb_probe_max.unwrap_or(Duration::MAX);
        slow.min(first.min(most).max(2 * srtt).max(gap))
    }

    /// The shortest time between two quick probes of a silent path: a fraction of the time for
    /// which it has been silent. In an outage the fraction is larger, so that probes do not fill a
    /// link that became very slow. Data that waits on this path bounds the time. Without such data
    /// it is unbounded, and silence counts from the peer's last packet. A lone path also has a
    /// lower bound, because no other path tells whether it is slow or dead.
    fn gap_in_silence(&self, now: Instant, id: PathId) -> Duration {
        let is_quick = self.config.hb_probe_max.is_some();
        if !is_quick {
            return Duration::ZERO;
        }
        let Some(p) = self.paths.get(id) else { return Duration::ZERO };
        let waits = self.out.chunks_in_flight(id) > 0;
        let heard_at = p.liveness.last_heard.filter(|at| !waits && *at > p.liveness.last_active);
        let silence = now - heard_at.unwrap_or(p.liveness.last_active);
        if !self.is_in_outage() {
            return silence / 40;
        }
        let is_lone = self.paths.iter().filter(|p| is_known(p)).count() == 1;
        match (is_lone, waits) {
            (true, true) => (silence / 8).clamp(MIN_GAP_IN_OUTAGE, MAX_GAP_IN_OUTAGE),
            (true, false) => (silence / 4).max(MIN_GAP_WITHOUT_DATA),
            (false, true) => (silence / 8).min(MAX_GAP_IN_OUTAGE),
            (false, false) => silence / 8,
        }
    }
}
