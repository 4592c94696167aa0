//! Paths that fail by silence, and the one path that all SACKs take (mTCP paper, sections 3.1.5 and 3.5).

use std::sync::Arc;
use std::time::Duration;

use manypath_wire::SackPath;

use super::control::Control;
use super::{AssocTimer, Association, PathTimer, Timer};
use crate::config::Config;
use crate::event::Event;
use crate::path::{ElectReason, Path, PathId, PathState};
use crate::policy::known;
use crate::time::Instant;

/// Which path SACKs take, at both ends.
#[derive(Debug, Default)]
pub(super) struct SackPaths {
    /// Both ends announced the SACK PATH chunk.
    agreed: bool,
    /// Where our last one went, and its serial number.
    ours: Option<(PathId, u32)>,
    /// Where the peer's SACKs come from, and the serial number with which it said so.
    peers: Option<(PathId, u32)>,
    /// That path has failed, and the peer has not chosen another yet, as far as we know. Until it has, nothing is
    /// acknowledged on any path, and silence means nothing.
    waits: bool,
    /// The peer says that ours do not arrive where we last sent them.
    is_reported: bool,
}

/// Whether an end understands SACK PATH chunks and says so when it opens an association.
pub(super) fn announces_sack_path(config: &Config) -> bool {
    let watches_silence = || config.failure.build(config).silence_max(config.rto_initial).is_some();
    config.ack_path.build(config).elects() || watches_silence()
}

/// Whether an end says so that answers a peer which does, or does not.
pub(super) fn answers_sack_path(config: &Config, peer_knows: bool) -> bool {
    announces_sack_path(config) || (config.ack_path_as_asked && peer_knows)
}

/// The configuration of an association that such a peer opened.
pub(super) fn as_asked(config: Arc<Config>, peer_knows: bool) -> Arc<Config> {
    let is_asked = config.ack_path_as_asked && peer_knows;
    match is_asked && !config.ack_path.build(&config).elects() {
        true => Arc::new(Config {
            ack_path: known("primary"),
            // As the preset mtcp has it, whose sender takes a SACK for one report.
            dac: false,
            sack_gaps_wait: true,
            ..(*config).clone()
        }),
        false => config,
    }
}

impl Association {
    /// Uses SACK PATH chunks from now on if both ends announced them.
    pub(super) fn agree_on_sack_path(&mut self, peer_knows: bool) {
        self.sack_paths.agreed = announces_sack_path(&self.config) && peer_knows;
    }

    /// Makes the path that the policy chose for a SACK the primary, if the policy elects.
    pub(super) fn elect(&mut self, now: Instant, chosen: Option<PathId>) {
        let Some(path) = chosen.filter(|id| *id != self.primary) else { return };
        if self.policies.ack_path.elects() {
            let is_reported = std::mem::take(&mut self.sack_paths.is_reported);
            let reason = self.reason_to_leave(self.primary, is_reported);
            let is_silent = self.paths.get(self.primary).is_none_or(|p| {
                let max = p.rto.rto() * self.config.silence_rtos;
                p.last_data_received.is_none_or(|at| now - at > max)
            });
            let reason = match reason {
                ElectReason::Better if is_silent => ElectReason::Silent,
                reason => reason,
            };
            self.primary = path;
            self.events.push_back(Event::PrimaryElected { path, by_peer: false, reason });
        }
    }

    /// Why SACKs leave a path.
    fn reason_to_leave(&self, id: PathId, is_reported: bool) -> ElectReason {
        let path = self.paths.get(id);
        let has_failed =
            |state| matches!(state, PathState::PotentiallyFailed | PathState::Inactive);
        match path {
            _ if is_reported => ElectReason::Failed,
            Some(p) if has_failed(p.state) => ElectReason::Failed,
            Some(p) if p.suppressed.is_some() => ElectReason::SetAside,
            _ => ElectReason::Better,
        }
    }

    /// A path works: if SACKs might take it rather than the primary, whose round-trip time nothing
    /// has measured, that one is probed. Scores need it (mTCP paper, section 3.3), and a host that
    /// sends no DATA would know it after a heartbeat interval only.
    pub(super) fn measure_primary(&mut self, now: Instant) {
        if !self.policies.ack_path.elects() {
            return;
        }
        let works = self.paths.iter().filter(|p| p.state == PathState::Active).count();
        let is_unknown = |p: &Path| {
            p.state == PathState::Active
                && p.rto.srtt().is_none()
                && p.last_new_data.is_none()
                && p.probe.is_none()
                && !p.heartbeat_due
        };
        if works > 1 && self.paths.get(self.primary).is_some_and(is_unknown) {
            self.probe_now(now, self.primary);
        }
    }

    /// The chunk that goes with a SACK on this path.
    pub(super) fn sack_path_chunk(&mut self, path: PathId) -> Option<SackPath> {
        if !self.sack_paths.agreed || !self.policies.ack_path.elects() {
            return None;
        }
        let serial = match self.sack_paths.ours {
            Some((old, serial)) if old == path => serial,
            Some((_, serial)) => serial.wrapping_add(1),
            None => 0,
        };
        self.sack_paths.ours = Some((path, serial));
        Some(SackPath { serial, failed: false })
    }

    /// The peer says that its SACKs take the path on which it said so.
    pub(super) fn on_sack_path(&mut self, now: Instant, path: Option<PathId>, chunk: SackPath) {
        let Some(id) = path.filter(|_| self.sack_paths.agreed) else { return };
        if chunk.failed {
            self.on_sack_path_failed(now, chunk.serial);
            return;
        }
        let known = self.sack_paths.peers;
        let is_newer = |old: u32| (chunk.serial.wrapping_sub(old) as i32) > 0;
        let is_new = known.is_none_or(|(_, serial)| is_newer(serial));
        if !is_new && known != Some((id, chunk.serial)) {
            return; // overtaken by one that said otherwise
        }
        self.sack_paths.peers = Some((id, chunk.serial));
        let has_failed = std::mem::take(&mut self.sack_paths.waits);
        if let Some((old, _)) = known.filter(|(old, _)| *old != id) {
            let reason = self.reason_to_leave(old, has_failed);
            self.events.push_back(Event::PrimaryElected { path: id, by_peer: true, reason });
        }
        if has_failed {
            for id in self.paths.ids() {
                self.renew_silence(now, id);
            }
        }
    }

    /// The peer says that our SACKs do not arrive: the next one, sent at once, takes another path.
    fn on_sack_path_failed(&mut self, now: Instant, serial: u32) {
        let is_present = self.sack_paths.ours.is_some_and(|(_, ours)| ours == serial);
        let Some(receiver) = self.receiver.as_mut().filter(|_| is_present) else { return };
        self.policies.ack_path.primary_failed();
        self.sack_paths.is_reported = true;
        receiver.delayed.demand_now();
        self.timers.set(Timer::Assoc(AssocTimer::Sack), now);
    }

    /// Tells the peer on a path that the one of its SACKs has failed, while it has chosen no other.
    pub(super) fn tell_sack_path_failed(&mut self, id: PathId) {
        let serial = self.sack_paths.peers.map(|(_, serial)| serial);
        let to = self.paths.get(id).map(|p| (p.local, p.remote));
        if let (true, Some(serial), Some(to)) = (self.sack_paths.waits, serial, to) {
            self.reply(Control::SackPathFailed { serial, to });
        }
    }

    /// A path is gone.
    pub(super) fn forget_sack_path(&mut self, id: PathId) {
        self.policies.ack_path.forget(id);
        let paths = &mut self.sack_paths;
        paths.peers = paths.peers.filter(|(path, _)| *path != id);
        paths.waits &= paths.peers.is_some();
    }

    /// For how long nothing need be acknowledged on a path that works.
    fn silence_max(&self, id: PathId) -> Option<Duration> {
        let path = self.paths.get(id).filter(|p| p.state == PathState::Active)?;
        let limit = self.policies.fail.silence_max(path.rto.rto());
        limit.filter(|_| !self.sack_paths.waits)
    }

    /// DATA was sent on a path: from now on an ack is waited for, if none was before.
    pub(super) fn start_silence(&mut self, now: Instant, id: PathId) {
        let timer = Timer::Path(id, PathTimer::Silence);
        let Some(limit) = self.silence_max(id).filter(|_| !self.timers.is_running(timer)) else {
            return;
        };
        if let Some(p) = self.paths.get_mut(id) {
            p.silence_max = limit;
        }
        self.timers.set(timer, now + limit);
    }

    /// DATA that was sent on a path is acknowledged: the time begins anew if there is more.
    pub(super) fn renew_silence(&mut self, now: Instant, id: PathId) {
        self.timers.stop(Timer::Path(id, PathTimer::Silence));
        if self.out.chunks_in_flight(id) > 0 {
            self.start_silence(now, id);
        }
    }

    /// Nothing was acknowledged on a path for too long.
    pub(super) fn on_silence(&mut self, now: Instant, id: PathId) {
        let is_active = self.paths.get(id).is_some_and(|p| p.state == PathState::Active);
        if !is_active || !self.state.is_open() {
            return;
        }
        // A peer whose SACKs come back on every path, or that does not say which they take, is silent on a path
        // that has failed only.
        match self.sack_paths.peers.is_some_and(|(path, _)| path == id) {
            true => self.fail_primary(now, id),
            false => self.fail_silent(now, id),
        }
    }

    /// A path has failed; what is outstanding there goes to others.
    fn fail_silent(&mut self, now: Instant, id: PathId) {
        let config = self.config_rc();
        self.move_outstanding(id);
        let last_order = self.out.last_order();
        let Some(p) = self.paths.get_mut(id) else { return };
        let limits = p.limits(&config);
        if p.window.cwnd > limits.packet {
            p.window = p.cc.on_timeout(p.window, &limits);
        }
        p.silent_at = Some(now);
        p.doubted_order = Some(last_order);
        self.set_path_state(now, id, PathState::PotentiallyFailed);
    }

    /// The path of the peer's SACKs has failed, so that all paths seem to. Those that failed since it may have
    /// are taken back, and DATA goes to all that are active. The peer is told there, and would also notice that DATA
    /// comes no longer from the primary; it elects another.
    fn fail_primary(&mut self, now: Instant, id: PathId) {
        let Some(limit) = self.paths.get(id).map(|p| p.silence_max) else { return };
        let since = now.saturating_sub(limit);
        self.sack_paths.waits = true;
        self.fail_silent(now, id);
        for other in self.paths.ids().filter(|other| *other != id) {
            self.timers.stop(Timer::Path(other, PathTimer::Silence));
            let Some(p) = self.paths.get_mut(other) else { continue };
            let seems = p.state == PathState::PotentiallyFailed;
            if seems && p.silent_at.is_some_and(|at| at >= since) {
                p.silent_at = None;
                p.error_count = 0;
                self.set_path_state(now, other, PathState::Active);
            }
            let is_active = self.paths.get(other).is_some_and(|p| p.state == PathState::Active);
            if is_active {
                self.move_outstanding(other);
                if let Some(p) = self.paths.get_mut(other) {
                    p.one_packet = true;
                }
                self.tell_sack_path_failed(other);
            }
        }
    }

    /// Takes all that is outstanding on a path for lost: it is sent again where there is room.
    pub(super) fn move_outstanding(&mut self, id: PathId) {
        let (marked, _) = self.out.mark_path(id, None);
        self.out.forget_lost(id);
        if let Some(p) = self.paths.get_mut(id) {
            p.counters.chunks_lost += marked as u64;
        }
        self.timers.stop(Timer::Path(id, PathTimer::T3Rtx));
        self.timers.stop(Timer::Path(id, PathTimer::TailLossProbe));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Preset, Profile};

    #[test]
    fn who_is_asked_sends_sacks_as_the_preset_mtcp_does() {
        let of = |preset| Config::of(Profile::Fast, Preset::from_name(preset).unwrap());
        let sacks = |c: &Config| (c.ack_path.clone(), c.dac, c.sack_gaps_wait);
        let (plain, mtcp) = (Arc::new(of("cmt-pf")), of("mtcp"));
        assert_ne!(sacks(&plain), sacks(&mtcp));
        assert_eq!(sacks(&as_asked(Arc::clone(&plain), true)), sacks(&mtcp));
        assert_eq!(sacks(&as_asked(Arc::clone(&plain), false)), sacks(&plain));
        let refuses = Arc::new(Config { ack_path_as_asked: false, ..(*plain).clone() });
        assert_eq!(sacks(&as_asked(refuses, true)), sacks(&plain));
        let chosen = Arc::new(Config { dac: true, ..mtcp });
        assert!(as_asked(chosen, true).dac, "what is configured for one path for SACKs stays");
    }
}
