//! Recovery by time: chunks are lost when they are late, not when others overtook them (RFC 8985).

use super::{Flight, LossRecovery, PathFacts, PathVerdict, ReportScope, Rules, Sfr};
use crate::params::Params;
use crate::view::PathId;

/// Finds losses by time, and recovers each path on its own as [`Sfr`] does.
#[derive(Debug)]
pub struct Rack(Sfr);

impl Rack {
    /// With the parameters of a configuration.
    pub fn new(config: &Params) -> Rack {
        Rack(Sfr::new(config).with_timeouts_as_cuts())
    }
}

impl LossRecovery for Rack {
    fn rules(&self) -> Rules {
        let mut rules = self.0.rules();
        rules.sacks.scope = ReportScope::Time;
        rules
    }

    fn reset_path(&mut self, path: PathId) {
        self.0.reset_path(path);
    }

    fn share(&mut self, from: PathId, to: PathId) {
        self.0.share(from, to);
    }

    fn recovers(&self, path: PathId) -> bool {
        self.0.recovers(path)
    }

    fn recovers_anywhere(&self) -> bool {
        self.0.recovers_anywhere()
    }

    fn on_path_sack(&mut self, facts: &PathFacts, flight: &dyn Flight) -> PathVerdict {
        self.0.on_path_sack(facts, flight)
    }

    fn on_congestion_mark(&mut self, path: PathId, flight: &dyn Flight) {
        self.0.on_congestion_mark(path, flight);
    }

    fn on_path_timeout(&mut self, path: PathId) {
        self.0.on_path_timeout(path);
    }

    fn on_spurious_losses(&mut self, path: PathId) {
        self.0.on_spurious_losses(path);
    }
}
