//! A new look at the paths from time to time.

use std::time::Duration;

use crate::time::Instant;

/// When paths are scored anew, and what follows (mTCP §3.2.3, addition of paths).
///
/// The paper names neither the interval nor how much better is "much higher"; both are ours.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Rescoring {
    /// Time between two looks.
    pub interval: Duration,
    /// An unused path is taken into use if its score is this many times that of one in use; above 1, so
    /// that two equal paths do not change places for ever.
    pub factor: f64,
    /// Paths to keep in use at least, the d of MP_d.
    pub min_paths: usize,
}

impl Default for Rescoring {
    /// 30 s, twice as good, one path.
    fn default() -> Rescoring {
        Rescoring { interval: Duration::from_secs(30), factor: 2.0, min_paths: 1 }
    }
}

/// What to change; paths by their place in what was given.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// Begin to use this one. Suppression decides afterwards whether another is to go.
    Add(usize),
}

impl Rescoring {
    /// True if it is time for a look, with `in_use` paths in use and the last look at `last`.
    pub fn is_due(&self, now: Instant, last: Option<Instant>, in_use: usize) -> bool {
        in_use < self.min_paths || last.is_none_or(|last| last + self.interval <= now)
    }

    /// The path to add, given the score of each and whether it is in use: the best unused one, if too few
    /// are in use or it is much better than the worst that is. Paths with score 0 do not work.
    pub fn change(&self, paths: &[(f64, bool)]) -> Change {
        let by_score = |a: &(usize, f64), b: &(usize, f64)| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0));
        let of = |wanted: bool| {
            let indexed = paths.iter().enumerate();
            indexed.filter(move |(_, p)| p.1 == wanted).map(|(index, p)| (index, p.0))
        };
        let Some((best, score)) = of(false).filter(|&(_, s)| s > 0.0).max_by(by_score) else {
            return Change::None;
        };
        let too_few = of(true).count() < self.min_paths;
        let worst = of(true).min_by(by_score);
        if too_few || worst.is_some_and(|(_, used)| score > self.factor * used) {
            Change::Add(best)
        } else {
            Change::None
        }
    }
}
