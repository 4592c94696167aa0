//! The gap-acknowledged TSNs, as ranges.

use manypath_wire::Tsn;

/// An inclusive range of TSNs; never empty.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct TsnRange {
    pub(crate) first: Tsn,
    pub(crate) last: Tsn,
}

/// A set of TSNs above the cumulative TSN ack point: ascending ranges that do not touch.
///
/// Comparing the set before and after a SACK costs time in proportion to the number of gaps, so a
/// SACK that repeats a long gap ack block costs nothing for the TSNs inside it.
#[derive(Clone, Debug, Default)]
pub(crate) struct TsnRanges {
    ranges: Vec<TsnRange>,
}

impl TsnRanges {
    pub(crate) fn iter(&self) -> impl Iterator<Item = TsnRange> + '_ {
        self.ranges.iter().copied()
    }

    /// The range of that number, counted from the lowest.
    pub(crate) fn get(&self, number: usize) -> Option<TsnRange> {
        self.ranges.get(number).copied()
    }

    /// The highest TSN in the set.
    pub(crate) fn last(&self) -> Option<Tsn> {
        self.ranges.last().map(|r| r.last)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Adds a range that begins above everything in the set (or touches its end).
    pub(crate) fn push_back(&mut self, r: TsnRange) {
        match self.ranges.last_mut() {
            Some(end) if r.first.le(end.last.next()) => {
                if r.last.gt(end.last) {
                    end.last = r.last;
                }
            }
            _ => self.ranges.push(r),
        }
    }

    /// Removes everything up to and including `tsn`.
    pub(crate) fn remove_up_to(&mut self, tsn: Tsn) {
        // In most calls nothing is removed.
        if self.ranges.first().is_none_or(|r| r.first.gt(tsn)) {
            return;
        }
        let gone = self.ranges.iter().take_while(|r| r.last.le(tsn)).count();
        self.ranges.drain(..gone);
        if let Some(r) = self.ranges.first_mut()
            && r.first.le(tsn)
        {
            r.first = tsn.next();
        }
    }

    /// Puts into `out` the parts of `self` that `other` does not cover.
    pub(crate) fn difference(&self, other: &TsnRanges, out: &mut Vec<TsnRange>) {
        out.clear();
        let mut others = other.ranges.iter().peekable();
        for r in &self.ranges {
            let mut first = r.first;
            loop {
                while others.peek().is_some_and(|o| o.last.lt(first)) {
                    others.next();
                }
                match others.peek() {
                    Some(o) if o.first.le(r.last) => {
                        if o.first.gt(first) {
                            out.push(TsnRange { first, last: o.first.prev() });
                        }
                        if o.last.ge(r.last) {
                            break;
                        }
                        first = o.last.next();
                    }
                    _ => {
                        out.push(TsnRange { first, last: r.last });
                        break;
                    }
                }
            }
        }
    }

    /// Makes `self` the same set as `other`.
    pub(crate) fn copy_from(&mut self, other: &TsnRanges) {
        self.ranges.clear();
        self.ranges.extend_from_slice(&other.ranges);
    }

    /// Removes what `gone` (ascending) covers, using `scratch` for the work.
    pub(crate) fn subtract(&mut self, gone: &[TsnRange], scratch: &mut TsnRanges) {
        scratch.clear();
        gone.iter().for_each(|&r| scratch.push_back(r));
        let mut kept = Vec::new();
        self.difference(scratch, &mut kept);
        self.ranges = kept;
    }

    /// Makes `self` the union of both sets, using `scratch` for the work.
    pub(crate) fn union_with(&mut self, other: &TsnRanges, scratch: &mut TsnRanges) {
        scratch.clear();
        let (mut a, mut b) = (self.ranges.iter().peekable(), other.ranges.iter().peekable());
        loop {
            let next = match (a.peek(), b.peek()) {
                (Some(x), Some(y)) if x.first.le(y.first) => a.next(),
                (_, Some(_)) => b.next(),
                (Some(_), None) => a.next(),
                (None, None) => break,
            };
            if let Some(r) = next {
                scratch.push_back(*r);
            }
        }
        std::mem::swap(&mut self.ranges, &mut scratch.ranges);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// TSNs around the wrap-around, so that every comparison is a serial one.
    fn tsn(offset: u16) -> Tsn {
        Tsn(u32::MAX - 100).add(u32::from(offset))
    }

    fn ranges(set: &BTreeSet<u16>) -> TsnRanges {
        let mut r = TsnRanges::default();
        for &o in set {
            r.push_back(TsnRange { first: tsn(o), last: tsn(o) });
        }
        r
    }

    fn members(ranges: impl Iterator<Item = TsnRange>) -> BTreeSet<u16> {
        ranges
            .flat_map(|r| (0..=r.last.distance_from(r.first)).map(move |i| r.first.add(i)))
            .map(|t| t.distance_from(tsn(0)) as u16)
            .collect()
    }

    proptest! {
        #[test]
        fn behaves_like_a_set(
            a in prop::collection::btree_set(0u16..200, 0..80),
            b in prop::collection::btree_set(0u16..200, 0..80),
            cut in 0u16..200,
        ) {
            let (ra, rb) = (ranges(&a), ranges(&b));
            let mut out = Vec::new();
            ra.difference(&rb, &mut out);
            prop_assert_eq!(members(out.iter().copied()), a.difference(&b).copied().collect());

            let mut union = ra.clone();
            union.union_with(&rb, &mut TsnRanges::default());
            prop_assert_eq!(members(union.iter()), a.union(&b).copied().collect());
            prop_assert!(union.ranges.windows(2).all(|w| w[0].last.next().lt(w[1].first)));

            let mut rest = ra;
            rest.remove_up_to(tsn(cut));
            prop_assert_eq!(members(rest.iter()), a.into_iter().filter(|&o| o > cut).collect());
        }
    }
}
