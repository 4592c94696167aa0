//! The rank of a path: what it costs to use it.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// The rank of a path. Data takes the paths of the least rank; a [rank
/// policy](crate::policy::rank) says when it takes others.
///
/// Ranks are ordered from cheap to dear. As text they are `normal`, `cost=N` and `backup`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathRank {
    /// A cost without unit: only the order of costs counts. Paths of equal cost are used together;
    /// 0 is a normal path.
    Cost(u8),
    /// The last resort, dearer than any cost. It carries data only while no other path works, as a
    /// backup path of MPTCP does (RFC 8684 §3.3.8).
    Backup,
}

impl PathRank {
    /// The rank of a path that was given none.
    pub const NORMAL: PathRank = PathRank::Cost(0);

    /// True for the rank of a path that was given none.
    pub fn is_normal(&self) -> bool {
        *self == PathRank::NORMAL
    }
}

impl Default for PathRank {
    fn default() -> PathRank {
        PathRank::NORMAL
    }
}

impl fmt::Display for PathRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathRank::Cost(0) => f.pad("normal"),
            PathRank::Cost(cost) => f.pad(&format!("cost={cost}")),
            PathRank::Backup => f.pad("backup"),
        }
    }
}

/// A text that is no rank.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no rank of a path; write normal, backup, or cost=N with N from 0 to 255")]
pub struct RankError(String);

impl FromStr for PathRank {
    type Err = RankError;

    fn from_str(text: &str) -> Result<PathRank, RankError> {
        let cost = || {
            let digits = text.strip_prefix("cost=")?;
            let is_number = digits.bytes().all(|b| b.is_ascii_digit());
            is_number.then(|| digits.parse().ok()).flatten().map(PathRank::Cost)
        };
        match text {
            "normal" => Ok(PathRank::NORMAL),
            "backup" => Ok(PathRank::Backup),
            _ => cost().ok_or_else(|| RankError(text.chars().take(40).collect())),
        }
    }
}

impl Serialize for PathRank {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_ordered_from_cheap_to_dear() {
        let ordered = [PathRank::NORMAL, PathRank::Cost(1), PathRank::Cost(255), PathRank::Backup];
        assert!(ordered.is_sorted());
        assert_eq!(PathRank::default(), PathRank::Cost(0));
    }

    #[test]
    fn every_rank_is_read_as_it_is_written() {
        for rank in (0..=255).map(PathRank::Cost).chain([PathRank::Backup]) {
            assert_eq!(rank.to_string().parse(), Ok(rank));
        }
        assert_eq!("cost=0".parse(), Ok(PathRank::NORMAL));
    }

    #[test]
    fn other_texts_are_refused_and_named() {
        for text in ["", "Backup", "cost", "cost=", "cost=256", "cost=-1", "cost=+1", "3"] {
            let error = text.parse::<PathRank>().expect_err(text);
            assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
        }
        let long = "x".repeat(1 << 16).parse::<PathRank>().expect_err("no rank");
        assert!(long.to_string().len() < 200, "an error is short");
    }
}
