//! SACKs return to where the data came from (RFC 9260 §6.4).

use super::AckPathPolicy;
use crate::policy::{Needs, PolicyCx};
use crate::view::PathId;

/// A SACK takes the path of the DATA it answers, whatever the state of that path: what came from
/// there can probably go there.
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
