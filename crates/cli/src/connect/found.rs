//! Names that are looked up, of which some may not be found.

use crate::failure::{Failure, Result};
use crate::screen::Screen;

/// The things that have one of several names, and a sentence for each name that was not found. One
/// that is not found costs what it would have given, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found<T> {
    /// All that was found; never empty if anything is missing.
    pub(crate) all: Vec<T>,
    /// The names that were not found, with the reasons.
    pub(crate) missing: Vec<String>,
}

impl<T> Found<T> {
    /// Nothing is missing.
    pub(crate) fn complete(all: Vec<T>) -> Found<T> {
        Found { all, missing: Vec::new() }
    }

    /// An error if all that was looked for is missing.
    pub(crate) fn new(all: Vec<T>, mut missing: Vec<String>) -> Result<Found<T>> {
        missing.dedup();
        if all.is_empty() && !missing.is_empty() {
            return Err(Failure::failed(missing.join("; "))
                .hint("check the name and the name server, or give its IP address"));
        }
        Ok(Found { all, missing })
    }

    /// Tells the user of the names that were not found, and goes on with the others.
    pub(crate) fn told(self, screen: &Screen) -> Vec<T> {
        for name in &self.missing {
            screen.line(&format!("{name}; going on without it"));
        }
        self.all
    }
}
