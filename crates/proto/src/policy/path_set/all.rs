//! Every path that works carries data, as CMT has it.

use super::members::Members;
use super::{Decision, PathSet, Standing, Standings};
use crate::overlay::Route;
use crate::params::Params;
use crate::time::Instant;
use crate::view::PathId;

/// Every working path carries data, except paths whose hops a better path shares.
#[derive(Debug)]
pub struct All {
    members: Members,
}

impl All {
    /// With the limits of a configuration.
    pub fn new(config: &Params) -> All {
        All { members: Members::new(config.paths_min, None) }
    }
}

impl PathSet for All {
    fn added(&mut self, now: Instant, path: PathId) {
        self.members.add(now, path);
    }

    fn removed(&mut self, path: PathId) {
        self.members.remove(path);
    }

    fn began(&mut self, now: Instant, path: &Standing) {
        self.members.begin_use(now, path);
    }

    fn set_route(&mut self, path: PathId, route: Route) {
        self.members.set_route(path, route);
    }

    fn settle(&mut self, now: Standings<'_>) -> Vec<Decision> {
        let mut made = Vec::new();
        self.members.keep_disjoint(now, &mut made);
        self.members.restore_if_few(now, &mut made);
        made
    }
}
