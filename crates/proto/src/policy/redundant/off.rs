//! No redundancy.

use super::{Cover, RedundancyPolicy};
use crate::policy::{PolicyCx, Wants};
use crate::view::PathId;

/// Nothing is duplicated.
#[derive(Debug, Default)]
pub struct Off;

impl RedundancyPolicy for Off {
    fn wants(&self) -> Wants {
        Wants::default()
    }

    fn cover(&mut self, _cx: &mut PolicyCx<'_>) -> Option<Cover> {
        None
    }

    fn flight_succeeded(&mut self, _path: PathId) {}

    fn flight_failed(&mut self, _path: PathId) {}
}
