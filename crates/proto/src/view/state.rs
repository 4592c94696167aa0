//! The states of a path (RFC 9260 §5.4 and §8.2, RFC 7829 §4).

use serde::Serialize;

/// State of a path, as the sender sees it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PathState {
    /// Not yet verified with a nonce; carries heartbeats only (RFC 9260 §5.4).
    Unconfirmed,
    /// Works as far as is known.
    Active,
    /// Had more than `pf_max_retrans` timeouts in a row; heartbeats only, while another path is
    /// active (RFC 7829, CMT-PF).
    PotentiallyFailed,
    /// Had more than `path_max_retrans` timeouts in a row; slow heartbeats only (RFC 9260 §8.2).
    Inactive,
}

impl PathState {
    /// The name used in JSON results: `unconfirmed`, `active`, `potentially_failed`, `inactive`.
    pub const fn name(self) -> &'static str {
        match self {
            PathState::Unconfirmed => "unconfirmed",
            PathState::Active => "active",
            PathState::PotentiallyFailed => "potentially_failed",
            PathState::Inactive => "inactive",
        }
    }
}
