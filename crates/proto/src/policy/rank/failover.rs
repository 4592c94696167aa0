//! Dearer paths only while no cheaper one works.

use super::{Ceiling, RankCx, RankPolicy};

/// A path carries data only while no cheaper one works, however much waits: every rank is like
/// [`Backup`](crate::PathRank::Backup).
#[derive(Debug, Default)]
pub struct Failover;

impl RankPolicy for Failover {
    fn ceiling(&mut self, cx: &RankCx<'_>) -> Ceiling {
        Ceiling { open: cx.base, next: cx.base, again: None }
    }
}
