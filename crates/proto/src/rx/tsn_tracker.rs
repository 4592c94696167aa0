//! Which TSNs have arrived (RFC 9260 §6.2, §6.7).

use std::collections::VecDeque;

use manypath_wire::Tsn;

/// How far, in TSNs, a chunk may be ahead of the cumulative TSN: what the 16-bit offset of a gap
/// ack block can express (RFC 9260 §3.3.4).
pub(crate) const MAX_TSN_AHEAD: u32 = 65_535;

/// Most ranges of TSNs above the cumulative TSN. A TSN that would open another range is dropped
/// without an acknowledgement, so that a peer cannot make the tracker large or slow.
pub(crate) const MAX_GAPS: usize = 4096;

/// Most duplicate TSNs remembered until a SACK reports them: more than a packet of 64 KiB has
/// chunks. A sender that sends chunks on two paths waits for each report.
pub(crate) const MAX_DUPLICATES: usize = 4096;

/// Meaning of the arrival of a TSN.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It had not been received before.
    New,
    /// It had been received before; the next SACK reports it.
    Duplicate,
    /// It cannot be accepted now: it is too far ahead, opens one gap too many, or has no room. It
    /// must be dropped without an acknowledgement; the peer sends it again.
    Dropped,
}

/// A run of received TSNs above the cumulative TSN, both ends included, as extended TSNs.
#[derive(Copy, Clone, Debug)]
struct Range {
    first: u64,
    last: u64,
}

/// Consecutive TSNs, both ends included.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct TsnSpan {
    pub(crate) first: Tsn,
    pub(crate) last: Tsn,
}

/// The place of a TSN among those received, with indices into `ranges`.
#[derive(Copy, Clone)]
enum Place {
    Next,
    Received,
    OutOfReach,
    After(usize),
    Before(usize),
    Alone(usize),
}

/// The received TSNs: a cumulative TSN and the ranges above it.
///
/// Arrivals in order, and arrivals that extend the last range, take constant time. Others take a
/// binary search among the ranges. Their number is that of the gaps, not that of TSNs.
#[derive(Clone, Debug)]
pub(crate) struct TsnTracker {
    /// The cumulative TSN, extended to 64 bits so that ranges compare as plain numbers. Its lower
    /// 32 bits are the TSN on the wire.
    cum: u64,
    /// Ascending, never adjacent, none starts at `cum + 1`.
    ranges: VecDeque<Range>,
    duplicates: Vec<Tsn>,
}

impl TsnTracker {
    /// A tracker for a peer whose first TSN is `initial_tsn` (RFC 9260 §3.3.2).
    pub(crate) fn new(initial_tsn: Tsn) -> TsnTracker {
        // Leave one wrap-around of room below, so that earlier TSNs do not underflow.
        let cum = (1 << 32) + u64::from(initial_tsn.prev().0);
        TsnTracker { cum, ranges: VecDeque::new(), duplicates: Vec::new() }
    }

    /// The cumulative TSN: the last one before the first missing TSN.
    pub(crate) fn cum_tsn(&self) -> Tsn {
        Tsn(self.cum as u32)
    }

    /// The highest TSN received; the cumulative TSN if there are no gaps.
    #[cfg(test)]
    pub(crate) fn highest(&self) -> Tsn {
        Tsn(self.ranges.back().map_or(self.cum, |r| r.last) as u32)
    }

    /// True if any TSN is missing below the highest received.
    pub(crate) fn has_gaps(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// The answer that [`observe`](Self::observe) would give, without recording the arrival.
    pub(crate) fn classify(&self, tsn: Tsn) -> Arrival {
        match self.place(tsn) {
            Place::Received => Arrival::Duplicate,
            Place::OutOfReach => Arrival::Dropped,
            _ => Arrival::New,
        }
    }

    /// A TSN near the cumulative one, as a number that does not wrap.
    pub(crate) fn extended(&self, tsn: Tsn) -> u64 {
        self.extend(tsn)
    }

    /// True if `tsn` has been received.
    pub(crate) fn contains(&self, tsn: Tsn) -> bool {
        self.classify(tsn) == Arrival::Duplicate
    }

    /// Records the arrival of `tsn`.
    #[inline(always)] // for DATA and for I-DATA
    pub(crate) fn observe(&mut self, tsn: Tsn) -> Arrival {
        let place = self.place(tsn);
        let at = self.extend(tsn);
        match place {
            Place::Received => {
                if self.duplicates.len() < MAX_DUPLICATES {
                    self.duplicates.push(tsn);
                }
                return Arrival::Duplicate;
            }
            Place::OutOfReach => return Arrival::Dropped,
            Place::Next => {
                self.cum = at;
                if let Some(first) = self.ranges.front()
                    && first.first == at + 1
                {
                    self.cum = first.last;
                    self.ranges.pop_front();
                }
            }
            Place::After(i) => {
                self.ranges[i].last = at;
                if let Some(next) = self.ranges.get(i + 1).copied()
                    && next.first == at + 1
                {
                    self.ranges[i].last = next.last;
                    self.ranges.remove(i + 1);
                }
            }
            Place::Before(i) => self.ranges[i].first = at,
            Place::Alone(i) => self.ranges.insert(i, Range { first: at, last: at }),
        }
        Arrival::New
    }

    /// Takes all TSNs up to one as received (RFC 3758 §3.6). False if they were already.
    pub(crate) fn skip_to(&mut self, tsn: Tsn) -> bool {
        if self.offset(tsn) <= 0 {
            return false;
        }
        self.cum = self.extend(tsn);
        while let Some(first) = self.ranges.front()
            && first.first <= self.cum + 1
        {
            self.cum = self.cum.max(first.last);
            self.ranges.pop_front();
        }
        true
    }

    /// The TSNs received above the cumulative TSN and up to another one.
    pub(crate) fn received_up_to(&self, tsn: Tsn) -> Vec<TsnSpan> {
        let last = self.extend(tsn);
        let below = self.ranges.iter().take_while(|range| range.first <= last);
        let span = |range: &Range| TsnSpan {
            first: Tsn(range.first as u32),
            last: Tsn(range.last.min(last) as u32),
        };
        below.map(span).collect()
    }

    /// Takes back the arrival of `tsn`, because the receiver has discarded the chunk (reneging, RFC
    /// 9260 §6.2). Only TSNs above the cumulative TSN can be taken back. True if it was.
    pub(crate) fn forget(&mut self, tsn: Tsn) -> bool {
        let at = self.extend(tsn);
        let i = self.ranges.partition_point(|r| r.last < at);
        let Some(range) = self.ranges.get_mut(i).filter(|r| r.first <= at) else {
            return false;
        };
        let last = range.last;
        match (range.first == at, last == at) {
            (true, true) => drop(self.ranges.remove(i)),
            (true, false) => range.first += 1,
            (false, true) => range.last -= 1,
            (false, false) => {
                range.last = at - 1;
                self.ranges.insert(i + 1, Range { first: at + 1, last });
            }
        }
        true
    }

    /// The gap ack blocks of a SACK sent now: first and last TSN of each received range as offsets
    /// from the cumulative TSN, ascending (RFC 9260 §3.3.4).
    pub(crate) fn gap_ack_blocks(&self) -> impl ExactSizeIterator<Item = (u16, u16)> + '_ {
        // Every range lies within MAX_TSN_AHEAD of a cumulative TSN that only grows.
        self.ranges.iter().map(|r| ((r.first - self.cum) as u16, (r.last - self.cum) as u16))
    }

    /// The gap ack blocks of a SACK sent now, split into blocks above the TSN `kept` and blocks up
    /// to it.
    pub(crate) fn gap_ack_blocks_split_at(&self, kept: Tsn) -> [Vec<(u16, u16)>; 2] {
        let limit = u16::try_from(self.offset(kept).max(0)).unwrap_or(u16::MAX);
        let (mut above, mut below) = (Vec::new(), Vec::new());
        for (first, last) in self.gap_ack_blocks() {
            if first <= limit {
                below.push((first, last.min(limit)));
            }
            if last > limit {
                above.push((first.max(limit.saturating_add(1)), last));
            }
        }
        [above, below]
    }

    /// TSNs received again and not reported yet, in order of arrival; one entry per arrival, at
    /// most [`MAX_DUPLICATES`].
    pub(crate) fn duplicates(&self) -> &[Tsn] {
        &self.duplicates
    }

    /// Forgets the first `count` duplicates, because a SACK with them has been sent.
    pub(crate) fn duplicates_reported(&mut self, count: usize) {
        self.duplicates.drain(..count.min(self.duplicates.len()));
    }

    /// The signed distance of `tsn` from the cumulative TSN (RFC 1982).
    fn offset(&self, tsn: Tsn) -> i32 {
        tsn.0.wrapping_sub(self.cum as u32) as i32
    }

    /// The extended TSN nearest to the cumulative TSN.
    fn extend(&self, tsn: Tsn) -> u64 {
        self.cum.wrapping_add_signed(i64::from(self.offset(tsn)))
    }

    fn place(&self, tsn: Tsn) -> Place {
        match self.offset(tsn) {
            1 => return Place::Next,
            ..=0 => return Place::Received,
            offset if offset.cast_unsigned() > MAX_TSN_AHEAD => return Place::OutOfReach,
            _ => {}
        }
        let at = self.extend(tsn);
        let end = self.ranges.len();
        let i = match self.ranges.back() {
            None => end,
            Some(back) if at > back.last + 1 => end,
            Some(back) if at == back.last + 1 => return Place::After(end - 1),
            Some(_) => self.ranges.partition_point(|r| r.last + 1 < at),
        };
        match self.ranges.get(i) {
            Some(r) if at == r.last + 1 => Place::After(i),
            Some(r) if at >= r.first => Place::Received,
            Some(r) if at + 1 == r.first => Place::Before(i),
            _ if end >= MAX_GAPS => Place::OutOfReach,
            _ => Place::Alone(i),
        }
    }
}

#[cfg(test)]
mod tests;
