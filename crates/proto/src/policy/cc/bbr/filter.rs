//! The greatest value in a window of time.

/// The greatest of the values of the last rounds, by three candidates (Kathleen Nichols'
/// algorithm).
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct MaxOfRounds {
    /// Round and value, greatest first, each newer than the one before it.
    candidates: [(u64, usize); 3],
}

impl MaxOfRounds {
    /// Adds the value of a round, and returns the greatest of the last `rounds`.
    pub(super) fn add(&mut self, round: u64, value: usize, rounds: u64) -> usize {
        let new = (round, value);
        let c = &mut self.candidates;
        let is_over = |(began, _): (u64, usize)| round - began.min(round) > rounds;
        if value >= c[0].1 || is_over(c[2]) {
            *c = [new; 3];
            return value;
        }
        if value >= c[1].1 {
            (c[1], c[2]) = (new, new);
        } else if value >= c[2].1 {
            c[2] = new;
        }
        if is_over(c[0]) {
            // The next best candidate moves up; twice if that one has expired, too.
            *c = [c[1], c[2], new];
            if is_over(c[0]) {
                *c = [c[1], c[2], new];
            }
        } else if c[1].0 == c[0].0 && round - c[0].0 > rounds / 4 {
            (c[1], c[2]) = (new, new);
        } else if c[2].0 == c[1].0 && round - c[1].0 > rounds / 2 {
            c[2] = new;
        }
        c[0].1
    }
}

/// The greatest rate of this probing cycle and of the one before it (BBR.max_bw_filter).
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct MaxOfCycles {
    before: f64,
    now: f64,
}

impl MaxOfCycles {
    pub(super) fn add(&mut self, rate: f64) {
        self.now = self.now.max(rate);
    }

    pub(super) fn max(&self) -> f64 {
        self.now.max(self.before)
    }

    /// Begins a cycle. One that measured nothing does not count.
    pub(super) fn advance(&mut self) {
        if self.now > 0.0 {
            (self.before, self.now) = (self.now, 0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cycle_without_measurements_keeps_the_one_before() {
        let mut max = MaxOfCycles::default();
        max.add(7.0);
        max.advance();
        max.advance();
        assert_eq!(max.max(), 7.0);
        max.add(5.0);
        assert_eq!(max.max(), 7.0);
        max.advance();
        assert_eq!(max.max(), 5.0);
    }

    proptest! {
        #[test]
        fn it_is_never_less_than_the_latest_nor_more_than_all_of_the_window(
            values in proptest::collection::vec(0usize..1000, 1..200), rounds in 1u64..20,
        ) {
            let mut filter = MaxOfRounds::default();
            for (round, &value) in values.iter().enumerate() {
                let max = filter.add(round as u64, value, rounds);
                let first = round.saturating_sub(rounds as usize);
                let greatest = *values[first..=round].iter().max().expect("not empty");
                prop_assert!((value..=greatest).contains(&max), "{max} not in {value}..={greatest}");
            }
        }
    }
}
