//! Pauses of a link: times in which it holds all packets, as radio links do.

use std::time::Duration;

use manypath_proto::Instant;

/// Regular pauses in which a link sends nothing. What waits leaves afterwards at its rate; what has
/// left before arrives. A packet that is being sent goes on after the pause.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Pauses {
    /// When the first begins, from the start of the run on.
    pub first: Duration,
    /// Length of each.
    pub length: Duration,
    /// From the begin of one to that of the next; longer than `length`.
    pub every: Duration,
}

/// The same in nanoseconds, wide enough for any sums.
#[derive(Copy, Clone, Debug)]
pub(super) struct PausesNs {
    first: u128,
    length: u128,
    every: u128,
}

impl From<Pauses> for PausesNs {
    fn from(pauses: Pauses) -> PausesNs {
        let Pauses { first, length, every } = pauses;
        let [first, length, every] = [first, length, every].map(|time| time.as_nanos());
        // A link that never sends would stop the clock.
        PausesNs { first, length, every: every.max(length + 1) }
    }
}

impl PausesNs {
    /// The end of `work` nanoseconds of sending that begin at `from`, or after the pause then.
    pub(super) fn send(self, from: Instant, work: u64) -> Instant {
        let end = self.end(from.as_nanos().into(), work.into());
        Instant::from_nanos(u64::try_from(end).unwrap_or(u64::MAX))
    }

    fn end(self, from: u128, mut work: u128) -> u128 {
        let before = self.first.saturating_sub(from);
        if work <= before {
            return from + work;
        }
        work -= before;
        // From here on, time is counted from the begin of the first pause.
        let at = from.saturating_sub(self.first);
        let (begin, into) = (at - at % self.every, at % self.every);
        let from = begin + into.max(self.length);
        let left = begin + self.every - from;
        if work <= left {
            return self.first + from + work;
        }
        work -= left;
        let sends = self.every - self.length;
        let cycles = (work - 1) / sends;
        self.first + begin + self.every * (cycles + 1) + self.length + work - cycles * sends
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Nanosecond by nanosecond: the definition.
    fn counted(pauses: PausesNs, from: u64, mut work: u64) -> u128 {
        let mut at = u128::from(from);
        while work > 0 {
            let pauses_now =
                at >= pauses.first && (at - pauses.first) % pauses.every < pauses.length;
            work -= u64::from(!pauses_now);
            at += 1;
        }
        at
    }

    proptest! {
        #[test]
        fn as_counted_one_by_one(
            first in 0u128..50, length in 1u128..20, more in 1u128..20, from in 0u64..200,
            work in 1u64..300,
        ) {
            let pauses = PausesNs { first, length, every: length + more };
            let end = pauses.send(Instant::from_nanos(from), work).as_nanos();
            prop_assert_eq!(u128::from(end), counted(pauses, from, work));
        }

        #[test]
        fn any_values_give_a_time(
            first in any::<u64>(), length in any::<u64>(), every in any::<u64>(),
            from in any::<u64>(), work in any::<u64>(),
        ) {
            let nanos = Duration::from_nanos;
            let pauses = Pauses { first: nanos(first), length: nanos(length), every: nanos(every) };
            let end = PausesNs::from(pauses).send(Instant::from_nanos(from), work);
            prop_assert!(end.as_nanos() >= from);
        }
    }
}
