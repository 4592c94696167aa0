//! The names of an experiment's variants.

/// The name of the variant that follows the paper: `scenario.toml`.
pub const SCENARIO: &str = "scenario";
/// The name of the variant that follows the papers' simulator as it is packaged: `packaged.toml`.
pub const PACKAGED: &str = "packaged";
