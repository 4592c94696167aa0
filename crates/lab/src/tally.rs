//! How many claims hold.

use std::fmt;

use crate::claims::{Judgement, Verdict};

/// Counts of claims by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All of them.
    pub all: usize,
    /// Those that hold.
    pub hold: usize,
    /// Claims that hold, have no mark, and do not hold without the mechanism.
    pub evidence: usize,
    /// Claims that hold and have a mark.
    pub marked: usize,
    /// Those that chance may explain.
    pub undecided: usize,
    /// Those that do not hold.
    pub fail: usize,
    /// Claims that do not hold, for a known reason.
    pub explained: usize,
    /// Those without runs.
    pub not_run: usize,
}

impl Tally {
    /// Counts claims.
    pub fn of<'a>(judged: impl Iterator<Item = &'a Judgement>) -> Tally {
        let mut tally = Tally::default();
        for judgement in judged {
            tally.all += 1;
            tally.evidence += usize::from(judgement.is_evidence());
            match judgement.verdict {
                Verdict::Holds => {
                    tally.hold += 1;
                    tally.marked += usize::from(judgement.mark.is_some());
                }
                Verdict::Undecided => tally.undecided += 1,
                Verdict::Fails => tally.fail += 1,
                Verdict::Explained => {
                    tally.fail += 1;
                    tally.explained += 1;
                }
                Verdict::NotRun => tally.not_run += 1,
            }
        }
        tally
    }
}

impl Tally {
    /// Claims that hold, have no mark, and hold without the mechanism as well, as far as is known.
    pub fn without_evidence(&self) -> usize {
        self.hold - self.evidence - self.marked
    }
}

/// `10 of 14 hold (9 of them only with the mechanism), 1 cannot be decided, 3 do not hold (3
/// explained)`.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} hold", self.hold, self.all)?;
        if self.hold > 0 {
            write!(f, " ({} of them only with the mechanism", self.evidence)?;
            if self.marked > 0 {
                write!(f, ", {} marked", self.marked)?;
            }
            f.write_str(")")?;
        }
        if self.undecided > 0 {
            write!(f, ", {} cannot be decided", self.undecided)?;
        }
        if self.fail > 0 {
            write!(f, ", {} do not hold ({} explained)", self.fail, self.explained)?;
        }
        match self.not_run {
            0 => Ok(()),
            count => write!(f, ", {count} not run"),
        }
    }
}
