//! No redundancy.

use super::{Cover, RedundancyPolicy};
use crate::policy::{Needs, PolicyCx};
use crate::view::PathId;

/// Nothing is duplicated.
#[derive(Debug, Default)]
pub struct Off;

impl RedundancyPolicy for Off {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn cover(&mut self, _cx: &mut PolicyCx<'_>) -> Option<Cover> {
        None
    }

    fn flight_succeeded(&mut self, _path: PathId) {}

    fn flight_failed(&mut self, _path: PathId) {}
}
