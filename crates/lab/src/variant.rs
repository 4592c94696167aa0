//! The names of an experiment's variants.

/// The name of the variant that follows the paper: `scenario.toml`.
pub const SCENARIO: &str = "scenario";
/// The name of the variant that follows the papers' simulator as it is packaged: `packaged.toml`.
pub const PACKAGED: &str = "packaged";
/// The beginning of the names of variants that follow a release of the papers' simulator, such as
/// `release-3.5`: `release-3.5.toml`.
pub const RELEASE: &str = "release-";
