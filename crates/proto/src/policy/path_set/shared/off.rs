//! Bottlenecks are not looked for.

use super::{SharedEvidence, SharedPolicy};
use crate::path::PathId;
use crate::policy::PolicyCx;
use crate::time::Instant;

/// Each path is taken for independent of the others, as CMT does.
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
