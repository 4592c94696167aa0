//! Profiles: sets of protocol constants.
//!
//! The values themselves stand beside each parameter in `params.rs`, so that a parameter is one
//! entry.

use super::ConfigError;
use super::setting::list;

/// A set of protocol constants that a configuration starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Profile {
    /// The values RFC 9260 §16 suggests.
    Rfc9260,
    /// Short timers, pacing and tail-loss probes: the default.
    #[default]
    Fast,
    /// RFC 2960 as the 2006 papers and the SCTP module of ns-2 used it.
    Papers2006,
    /// The same as the SCTP module of ns-2 2.35 does it (its release 3.8). The reference results
    /// come from it.
    Ns2,
    /// The same as release 3.5 of that module did it (September 2005). The retransmission policies
    /// paper used about that release.
    Ns2Release35,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 5] =
        [Self::Rfc9260, Self::Fast, Self::Papers2006, Self::Ns2, Self::Ns2Release35];

    /// Name in configuration: `rfc9260`, `fast`, `2006`, `ns2` or `ns2-3.5`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rfc9260 => "rfc9260",
            Self::Fast => "fast",
            Self::Papers2006 => "2006",
            Self::Ns2 => "ns2",
            Self::Ns2Release35 => "ns2-3.5",
        }
    }

    /// Its purpose, in one line.
    pub fn description(self) -> &'static str {
        match self {
            Self::Rfc9260 => "the constants RFC 9260 suggests; for any peer on any network",
            Self::Fast => "200 ms timers, pacing, tail-loss probes: failover well below a second",
            Self::Papers2006 => {
                "RFC 2960 as the papers' simulations used it; to repeat their results"
            }
            Self::Ns2 => {
                "the 2006 profile with what ns-2 2.35 does differently; to compare with it"
            }
            Self::Ns2Release35 => {
                "the ns2 profile as ns-2's SCTP module was in 2005: smaller windows, no wait"
            }
        }
    }

    /// True for RFC 2960 over IP, in any of its forms.
    pub fn is_of_the_papers(self) -> bool {
        self == Self::Papers2006 || self.is_of_ns2()
    }

    /// True for both releases of ns-2's module.
    pub(super) fn is_of_ns2(self) -> bool {
        matches!(self, Self::Ns2 | Self::Ns2Release35)
    }

    /// The profile of that name.
    pub fn from_name(name: &str) -> Result<Self, ConfigError> {
        Self::ALL.into_iter().find(|profile| profile.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name);
            ConfigError::new("profile", name, format!("must be {}", list(&names)))
        })
    }
}
