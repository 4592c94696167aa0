//! Parameters: plain values, each with its unit, range and source. Policies are made from them.

mod chunk_types;
mod error;
mod kinds;
mod ns2_rules;
mod profile;
mod row;
mod setting;
mod table;
pub mod units;

pub use chunk_types::ChunkTypes;
pub use error::ConfigError;
pub use kinds::{
    Cuc, InitialCwnd, InitialSsthresh, MaxBurstRule, Ns2Release, RedundancyCycle, RedundancyOrder,
    RtxPastCwnd, SharedVerdict, Units,
};
pub use ns2_rules::{Rule, RuleSet};
pub use profile::Profile;
pub(crate) use profile::of_profile;
pub use row::Group;
pub(crate) use row::{Row, check, optional, row, set};
pub(crate) use setting::{Allowed, Any, Setting, list};
pub use table::Params;
pub(crate) use table::VALUES;
