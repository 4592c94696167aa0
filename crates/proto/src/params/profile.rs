//! Profiles: sets of protocol constants.
//!
//! The values themselves stand beside each parameter in `table.rs`, so that a parameter is one
//! entry.

use super::error::ConfigError;
use super::kinds::Ns2Release;
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
    /// RFC 2960 as the SCTP module of ns-2 2.35 implements it (its release 3.8). The reference
    /// results come from it.
    Ns2,
    /// RFC 2960 as release 3.7 of that module implements it (June 2007). The CMT-PF paper used it.
    Ns2Release37,
    /// RFC 2960 as release 3.6 implements it (June 2006). It has the first agent for CMT.
    Ns2Release36,
    /// RFC 2960 as release 3.5 implements it (September 2005). The retransmission policies paper
    /// used about that release.
    Ns2Release35,
    /// RFC 2960 as release 3.4 implements it (August 2003). Section 2 of that paper used about that
    /// release.
    Ns2Release34,
}

/// Another name of the profile `ns2`.
const NS2_BY_RELEASE: &str = "ns2-3.8";

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 8] = [
        Self::Rfc9260,
        Self::Fast,
        Self::Papers2006,
        Self::Ns2,
        Self::Ns2Release37,
        Self::Ns2Release36,
        Self::Ns2Release35,
        Self::Ns2Release34,
    ];

    /// Name in configuration: `rfc9260`, `fast`, `2006`, `ns2`, or `ns2-3.4` to `ns2-3.7`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rfc9260 => "rfc9260",
            Self::Fast => "fast",
            Self::Papers2006 => "2006",
            Self::Ns2 => "ns2",
            Self::Ns2Release37 => "ns2-3.7",
            Self::Ns2Release36 => "ns2-3.6",
            Self::Ns2Release35 => "ns2-3.5",
            Self::Ns2Release34 => "ns2-3.4",
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
            Self::Ns2Release37 => "the ns2 profile as ns-2's SCTP module was in 2007: CMT-PF paper",
            Self::Ns2Release36 => "the same as in 2006, without verification of paths: CMT paper",
            Self::Ns2Release35 => "the same as in 2005: retransmission policies paper",
            Self::Ns2Release34 => "the same as in 2003: section 2 of that paper",
        }
    }

    /// True for RFC 2960 over IP, in any of its forms.
    pub fn is_of_the_papers(self) -> bool {
        self == Self::Papers2006 || self.ns2_release().is_some()
    }

    /// The release of ns-2's module that the profile repeats, if any.
    pub(crate) fn ns2_release(self) -> Option<Ns2Release> {
        match self {
            Self::Rfc9260 | Self::Fast | Self::Papers2006 => None,
            Self::Ns2 => Some(Ns2Release::R38),
            Self::Ns2Release37 => Some(Ns2Release::R37),
            Self::Ns2Release36 => Some(Ns2Release::R36),
            Self::Ns2Release35 => Some(Ns2Release::R35),
            Self::Ns2Release34 => Some(Ns2Release::R34),
        }
    }

    /// True if the profile repeats that release of ns-2's module, or an earlier one.
    pub(crate) fn is_until(self, last: Ns2Release) -> bool {
        self.ns2_release().is_some_and(|release| release <= last)
    }

    /// The profile of that name. `ns2-3.8` is another name of `ns2`.
    pub fn from_name(name: &str) -> Result<Self, ConfigError> {
        let is_named = |profile: &Self| profile.name() == name;
        let by_release = (name == NS2_BY_RELEASE).then_some(Self::Ns2);
        Self::ALL.into_iter().find(is_named).or(by_release).ok_or_else(|| {
            let names = Self::ALL.map(Self::name);
            ConfigError::new("profile", name, format!("must be {}", list(&names)))
        })
    }
}

/// The value of a parameter in a profile: `default` in `rfc9260`, then `fast:`, `papers:` and
/// `ns2:` where those profiles differ. The ns2 profile is the 2006 profile except for its own
/// values. `r37:` is the value in release 3.7 of ns-2's module and all earlier ones, and so on for
/// `r36:`, `r35:` and `r34:`.
macro_rules! of_profile {
    ($profile:expr, $default:expr $(, fast: $fast:expr)? $(, papers: $papers:expr)?
     $(, ns2: $ns2:expr)? $(, r37: $r37:expr)? $(, r36: $r36:expr)? $(, r35: $r35:expr)?
     $(, r34: $r34:expr)?) => {{
        let value = $default;
        $(let value = if $profile == $crate::params::Profile::Fast { $fast } else { value };)?
        $(let value = if $profile.is_of_the_papers() { $papers } else { value };)?
        $(let value = if $profile.ns2_release().is_some() { $ns2 } else { value };)?
        $(let value = if $profile.is_until($crate::params::Ns2Release::R37) { $r37 } else { value };)?
        $(let value = if $profile.is_until($crate::params::Ns2Release::R36) { $r36 } else { value };)?
        $(let value = if $profile.is_until($crate::params::Ns2Release::R35) { $r35 } else { value };)?
        $(let value = if $profile.is_until($crate::params::Ns2Release::R34) { $r34 } else { value };)?
        value
    }};
}
pub(crate) use of_profile;
