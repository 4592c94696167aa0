//! No redundancy.

use super::RedundancyPolicy;
use crate::policy::Needs;

/// Nothing is duplicated.
#[derive(Debug, Default)]
pub struct Off;

impl RedundancyPolicy for Off {
    fn needs(&self) -> Needs {
        Needs::default()
    }
}
