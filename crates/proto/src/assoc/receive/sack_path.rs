//! The path that all SACKs take (mTCP paper, sections 3.1.5 and 3.5.2): the agreement at the
//! opening of the association, and the choice of the path.

use manypath_wire::SackPath;

use crate::assoc::send::control::Control;
use crate::assoc::{AssocTimer, Association, Timer};
use crate::config::Config;
use crate::event::Event;
use crate::path::{InUse, Path};
use crate::policy::ack_path;
use crate::time::Instant;
use crate::view::{ElectReason, PathId, PathState};

/// The paths that SACKs take, in both directions.
#[derive(Debug)]
pub(crate) struct SackPaths {
    /// Both ends announced the SACK PATH chunk.
    agreed: bool,
    /// Our SACKs take one path because the peer asked for that, against the configuration.
    as_asked: bool,
    /// A SACK may count for several packets (CMT paper, Fig. 4): `dac`, unless the peer asked for
    /// one path, because its sender counts each SACK as one missing report.
    pub(crate) dac: bool,
    /// Gaps need not be reported at once: `sack_gaps_wait`, or the peer asked for one path.
    pub(super) gaps_wait: bool,
    /// The path that our last SACK took, and its serial number.
    ours: Option<(PathId, u32)>,
    /// The path that the peer's SACKs take, and the serial number of the chunk that said so.
    peers: Option<(PathId, u32)>,
    /// The path of the peer's SACKs has failed, and as far as we know the peer has chosen no other.
    /// Until then nothing is acknowledged on any path, and silence means nothing.
    waits: bool,
    /// The peer reports that our SACKs do not arrive on the path that the last one took.
    is_reported: bool,
}

impl SackPaths {
    /// The state before the handshake, as configured.
    pub(crate) fn new(config: &Config) -> SackPaths {
        SackPaths {
            agreed: false,
            as_asked: false,
            dac: config.dac,
            gaps_wait: config.sack_gaps_wait,
            ours: None,
            peers: None,
            waits: false,
            is_reported: false,
        }
    }

    /// The path that the peer's SACKs take, if the peer has said so.
    pub(crate) fn of_peer(&self) -> Option<PathId> {
        self.peers.map(|(path, _)| path)
    }

    /// Notes that the path of the peer's SACKs has failed.
    pub(crate) fn peers_has_failed(&mut self) {
        self.waits = true;
    }

    /// True while the peer must choose another path for its SACKs: none arrive until then.
    pub(crate) fn awaits_choice(&self) -> bool {
        self.waits
    }
}

/// True if an end that accepts an association announces SACK PATH chunks, given what the peer
/// announced. An end that connects announces them if its policies want them.
pub(crate) fn answers_sack_path(config: &Config, peer_knows: bool) -> bool {
    (config.ack_path_as_asked && peer_knows) || config.needs().sack_path_chunks
}

impl Association {
    /// Uses SACK PATH chunks from now on if both ends announced them.
    pub(crate) fn agree_on_sack_path(&mut self, peer_knows: bool) {
        self.agreed.sack_paths.agreed = self.policies.needs.sack_path_chunks && peer_knows;
    }

    /// Grants the wish of a peer that opened the association and announced SACK PATH chunks: all
    /// SACKs take one path, and are sent as the preset `mtcp` sends them.
    pub(crate) fn grant_sack_path(&mut self, peer_knows: bool) {
        if !self.config.ack_path_as_asked || !peer_knows || self.policies.ack_path.elects() {
            return;
        }
        self.policies.set_ack_path(ack_path::one_path(&self.config));
        let paths = &mut self.agreed.sack_paths;
        (paths.as_asked, paths.dac, paths.gaps_wait) = (true, false, true);
    }

    /// Tells the application of the agreement, once the association is open.
    pub(crate) fn tell_sack_path_agreed(&mut self) {
        if self.agreed.sack_paths.agreed {
            self.events.push(Event::SackPathAgreed {
                ours: self.policies.ack_path.elects(),
                as_asked: self.agreed.sack_paths.as_asked,
            });
        }
    }

    /// Makes the path that the policy chose for a SACK the primary, if the policy elects.
    pub(crate) fn elect(&mut self, now: Instant, chosen: Option<PathId>) {
        let Some(path) = chosen.filter(|id| *id != self.primary) else { return };
        if self.policies.ack_path.elects() {
            let is_reported = std::mem::take(&mut self.agreed.sack_paths.is_reported);
            let reason = self.reason_to_leave(self.primary, is_reported);
            let primary = self.paths.get(self.primary).map(|p| p.view(InUse::default()));
            let is_silent = primary.is_none_or(|view| self.policies.ack_path.is_silent(now, &view));
            let reason = match reason {
                ElectReason::Better if is_silent => ElectReason::Silent,
                reason => reason,
            };
            self.primary = path;
            self.events.push(Event::PrimaryElected { path, by_peer: false, reason });
        }
    }

    /// The reason why SACKs leave a path.
    fn reason_to_leave(&self, id: PathId, is_reported: bool) -> ElectReason {
        let path = self.paths.get(id);
        let has_failed =
            |state| matches!(state, PathState::PotentiallyFailed | PathState::Inactive);
        match path {
            _ if is_reported => ElectReason::Failed,
            Some(p) if has_failed(p.liveness.state) => ElectReason::Failed,
            Some(p) if p.role.set_aside.is_some() => ElectReason::SetAside,
            _ => ElectReason::Better,
        }
    }

    /// Probes a primary whose RTT nothing has measured, if SACKs or data might prefer another
    /// working path. Scores need the RTT (mTCP paper, section 3.3), and a host that sends no DATA
    /// would learn it only after a heartbeat interval. Until then the primary would seem slow and
    /// carry nothing.
    pub(crate) fn measure_primary(&mut self, now: Instant) {
        if !self.policies.ack_path.elects() && !self.policies.sched.compares_rtts() {
            return;
        }
        let works = self.paths.iter().filter(|p| p.liveness.state == PathState::Active).count();
        let is_unknown = |p: &Path| {
            p.liveness.state == PathState::Active
                && p.rto.srtt().is_none()
                && p.flow.last_new_data.is_none()
                && p.probing.probe.is_none()
                && !p.probing.is_due
        };
        if works > 1 && self.paths.get(self.primary).is_some_and(is_unknown) {
            self.probe_now(now, self.primary);
        }
    }

    /// The SACK PATH chunk that goes with a SACK on this path, if any.
    pub(crate) fn sack_path_chunk(&mut self, path: PathId) -> Option<SackPath> {
        if !self.agreed.sack_paths.agreed || !self.policies.ack_path.elects() {
            return None;
        }
        let serial = match self.agreed.sack_paths.ours {
            Some((old, serial)) if old == path => serial,
            Some((_, serial)) => serial.wrapping_add(1),
            None => 0,
        };
        self.agreed.sack_paths.ours = Some((path, serial));
        Some(SackPath { serial, failed: false })
    }

    /// Handles the peer's SACK PATH chunk: its SACKs take the path on which the chunk came.
    pub(super) fn on_sack_path(&mut self, now: Instant, path: Option<PathId>, chunk: SackPath) {
        if !self.agreed.sack_paths.agreed {
            return;
        }
        let Some(id) = path else { return };
        if chunk.failed {
            self.on_sack_path_failed(now, chunk.serial);
            return;
        }
        let known = self.agreed.sack_paths.peers;
        let is_newer = |old: u32| (chunk.serial.wrapping_sub(old) as i32) > 0;
        let is_new = known.is_none_or(|(_, serial)| is_newer(serial));
        if !is_new && known != Some((id, chunk.serial)) {
            return; // overtaken by one that said otherwise
        }
        self.agreed.sack_paths.peers = Some((id, chunk.serial));
        let has_failed = std::mem::take(&mut self.agreed.sack_paths.waits);
        if let Some((old, _)) = known.filter(|(old, _)| *old != id) {
            let reason = self.reason_to_leave(old, has_failed);
            self.events.push(Event::PrimaryElected { path: id, by_peer: true, reason });
        }
        if has_failed {
            for id in self.paths.ids() {
                self.renew_silence(now, id);
            }
        }
    }

    /// Handles the peer's report that our SACKs do not arrive: the next one, sent at once, takes
    /// another path.
    fn on_sack_path_failed(&mut self, now: Instant, serial: u32) {
        let is_present = self.agreed.sack_paths.ours.is_some_and(|(_, ours)| ours == serial);
        if !is_present {
            return;
        }
        let Some(receiver) = self.rx.receiver.as_mut() else { return };
        self.policies.ack_path.primary_failed();
        self.agreed.sack_paths.is_reported = true;
        receiver.delayed.demand_now();
        self.timers.set(Timer::Assoc(AssocTimer::Sack), now);
    }

    /// Tells the peer on a path that the path of its SACKs has failed, until it chooses another.
    pub(crate) fn tell_sack_path_failed(&mut self, id: PathId) {
        let serial = self.agreed.sack_paths.peers.map(|(_, serial)| serial);
        let to = self.paths.get(id).map(|p| p.pair());
        if let (true, Some(serial), Some(to)) = (self.agreed.sack_paths.waits, serial, to) {
            self.reply(Control::SackPathFailed { serial, to });
        }
    }

    /// Forgets a removed path.
    pub(crate) fn forget_sack_path(&mut self, id: PathId) {
        self.policies.ack_path.forget(id);
        self.policies.fail.forget(id);
        let paths = &mut self.agreed.sack_paths;
        paths.peers = paths.peers.filter(|(path, _)| *path != id);
        paths.waits &= paths.peers.is_some();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Rng;
    use crate::assoc::Identity;
    use manypath_wire::Tsn;

    fn of(preset: &str, settings: &[(&str, &str)]) -> Config {
        let owned: Vec<_> =
            settings.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        Config::build("fast", preset, &owned).expect("valid")
    }

    /// Returns if all SACKs take one path, `dac` and `gaps_wait`, at an accepting end.
    fn sacks(config: &Config, peer_knows: bool) -> (bool, bool, bool) {
        let id = Identity {
            local_tag: 1,
            peer_tag: 2,
            local_port: 1,
            peer_port: 1,
            initial_tsn: Tsn(1),
        };
        let config = Arc::new(config.clone());
        let mut a = Association::new(config, id, Vec::new(), Rng::from_number(1));
        a.grant_sack_path(peer_knows);
        (a.policies.ack_path.elects(), a.agreed.sack_paths.dac, a.agreed.sack_paths.gaps_wait)
    }

    #[test]
    fn who_is_asked_sends_sacks_as_the_preset_mtcp_does() {
        let asked = [("ack_path_as_asked", "true")];
        let (plain, mtcp) = (of("cmt-pf", &asked), of("mtcp", &[]));
        let of_mtcp = sacks(&mtcp, true);
        assert_eq!(of_mtcp, (true, false, true));
        assert_eq!(sacks(&plain, true), of_mtcp);
        assert_eq!(sacks(&plain, false), (false, plain.dac, plain.sack_gaps_wait));
        assert_ne!(sacks(&plain, false), of_mtcp);
        let refuses = of("cmt-pf", &[("ack_path_as_asked", "false")]);
        assert_eq!(sacks(&refuses, true), sacks(&plain, false));
        let chosen = of("mtcp", &[("ack_path_as_asked", "true"), ("dac", "true")]);
        assert_eq!(sacks(&chosen, true), (true, true, true), "what is configured stays");
    }
}
