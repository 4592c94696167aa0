//! No redundancy.

use super::{Cover, RedundancyPolicy};
use crate::path::PathId;
use crate::policy::PolicyCx;

/// Nothing is duplicated.
#[derive(Debug, Default)]
pub struct Off;

impl RedundancyPolicy for Off {
    fn is_on(&self) -> bool {
        false
    }

    fn cover(&mut self, _cx: &mut PolicyCx<'_>) -> Option<Cover> {
        None
    }

    fn flight_succeeded(&mut self, _path: PathId) {}

    fn flight_failed(&mut self, _path: PathId) {}
}
