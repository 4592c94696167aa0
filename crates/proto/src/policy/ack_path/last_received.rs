//! SACKs return to where the data came from (RFC 9260 §6.4).

use super::AckPathPolicy;
use crate::policy::{Needs, PolicyCx};
use crate::view::PathId;

/// A SACK takes the path of the DATA that it acknowledges, whatever that path's state: a path that
/// brings packets can probably carry some back.
#[derive(Debug, Default)]
pub struct LastReceived;

impl AckPathPolicy for LastReceived {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn choose(&mut self, _cx: &mut PolicyCx<'_>, last_data: Option<PathId>) -> Option<PathId> {
        last_data
    }
}
