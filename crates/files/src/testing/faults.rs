//! How a simulated disk fails, and how programs on it end.

use std::path::PathBuf;

/// Which faults there are, and how often.
#[derive(Clone, Debug)]
pub struct Faults {
    /// Probability that an operation fails for no reason.
    pub error: f64,
    /// Probability that a write takes only a part.
    pub short_write: f64,
    /// Bytes that fit.
    pub capacity: u64,
    /// Syncs do nothing and say that all is well.
    pub lies: bool,
    /// Names reach the disk in their order, as with a journal.
    pub ordered_names: bool,
    /// There are files without names.
    pub unnamed: bool,
    /// Characters that no name may have, as on exFAT: giving such a name fails.
    pub refused_characters: &'static str,
    /// Probability that another receiver starts in this directory before an operation, and cleans
    /// it up.
    pub neighbours: (f64, PathBuf),
}

impl Faults {
    /// A disk without faults; after a loss of power it is as bad as the rules allow.
    pub fn none() -> Faults {
        Faults {
            error: 0.0,
            short_write: 0.0,
            capacity: u64::MAX,
            lies: false,
            ordered_names: false,
            unnamed: true,
            refused_characters: "",
            neighbours: (0.0, PathBuf::new()),
        }
    }
}

/// How a program ends in the middle.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Crash {
    /// It is killed: what it wrote is seen by those that follow.
    Kill,
    /// The machine loses its power.
    Power,
}
