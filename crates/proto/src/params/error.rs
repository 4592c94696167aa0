//! The error for a value that configuration does not accept.

use std::fmt;

/// A value that configuration does not accept.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigError {
    /// The parameter.
    pub field: String,
    /// The value it was given; empty when the error is not about a value.
    pub value: String,
    /// The accepted values, or the change to make.
    pub allowed: String,
}

impl ConfigError {
    pub(crate) fn new(field: &str, value: &str, allowed: impl Into<String>) -> Self {
        Self { field: field.to_owned(), value: value.to_owned(), allowed: allowed.into() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value.as_str() {
            "" => write!(f, "{}: {}", self.field, self.allowed),
            value => write!(f, "{} = {value}: {}", self.field, self.allowed),
        }
    }
}

impl std::error::Error for ConfigError {}
