//! No search for shared bottlenecks.

use super::{SharedEvidence, SharedPolicy};
use crate::policy::PolicyCx;
use crate::time::Instant;
use crate::view::PathId;

/// Takes each path for independent of the others, as CMT does.
#[derive(Debug, Default)]
pub struct Off;

impl SharedPolicy for Off {
    fn is_on(&self) -> bool {
        false
    }

    fn begin(&mut self, _now: Instant, _path: PathId) {}

    fn end(&mut self, _path: PathId) {}

    fn on_fast_retransmit(&mut self, _cx: &PolicyCx<'_>, _path: PathId) -> Vec<SharedEvidence> {
        Vec::new()
    }
}
