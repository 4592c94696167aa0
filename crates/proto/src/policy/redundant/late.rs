//! Copies of what is late.

use super::{Cover, RedundancyPolicy};
use crate::policy::{Needs, PolicyCx};
use crate::view::PathId;

/// No path duplicates another. But chunks that are late on one path are sent again on another
/// (reinjection), in two cases:
///
/// - A path has nothing else to send, at the end of a transfer or because the peer's receive buffer
///   is full, and delivers clearly sooner than the slower path that has a chunk in flight. Or the
///   slower path should have delivered by now.
/// - The receiver waits for a chunk that is overdue on a path, which may be silent or have become
///   slow.
///
/// The copies are 512 KiB and 2 % of what is acknowledged, at most. They ask for a SACK at once, by
/// the I bit (RFC 9260 §3.3.1).
#[derive(Debug, Default)]
pub struct Late;

impl RedundancyPolicy for Late {
    fn needs(&self) -> Needs {
        Needs { late_copies: true, ..Needs::default() }
    }

    fn cover(&mut self, _cx: &mut PolicyCx<'_>) -> Option<Cover> {
        None
    }

    fn flight_succeeded(&mut self, _path: PathId) {}

    fn flight_failed(&mut self, _path: PathId) {}
}
