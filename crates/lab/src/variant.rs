//! The names of an experiment's variants.

/// Follows the paper: `scenario.toml`.
pub const SCENARIO: &str = "scenario";
/// Follows the papers' simulator as it is packaged: `packaged.toml`.
pub const PACKAGED: &str = "packaged";
