use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn tracker_with(initial: u32, tsns: &[u32]) -> TsnTracker {
    let mut tracker = TsnTracker::new(Tsn(initial));
    for &tsn in tsns {
        tracker.observe(Tsn(tsn));
    }
    tracker
}

fn blocks(tracker: &TsnTracker) -> Vec<(u16, u16)> {
    tracker.gap_ack_blocks().collect()
}

#[test]
fn the_example_of_the_rfc() {
    // RFC 9260 §3.3.4: TSNs up to 12 in order, then 14, 15 and 17.
    let tracker = tracker_with(10, &[10, 11, 12, 14, 15, 17]);
    assert_eq!(tracker.cum_tsn(), Tsn(12));
    assert_eq!(tracker.highest(), Tsn(17));
    assert_eq!(blocks(&tracker), [(2, 3), (5, 5)], "RFC 9260 §3.3.4: offsets from the cum TSN");
}

#[test]
fn nothing_received_acknowledges_the_tsn_before_the_first() {
    let tracker = TsnTracker::new(Tsn(0));
    assert_eq!(tracker.cum_tsn(), Tsn(u32::MAX), "RFC 9260 §6.2: initial TSN - 1");
    assert_eq!(tracker.highest(), Tsn(u32::MAX));
    assert!(!tracker.has_gaps());
}

#[test]
fn a_filled_gap_joins_the_ranges_beside_it() {
    let mut tracker = tracker_with(1, &[3, 5]);
    assert_eq!(tracker.observe(Tsn(4)), Arrival::New);
    assert_eq!(blocks(&tracker), [(3, 5)]);
    tracker.observe(Tsn(2));
    assert_eq!(blocks(&tracker), [(2, 5)]);
    tracker.observe(Tsn(1));
    assert_eq!(tracker.cum_tsn(), Tsn(5));
    assert!(!tracker.has_gaps());
}

#[test]
fn duplicates_are_listed_each_time_up_to_a_bound() {
    let mut tracker = tracker_with(1, &[1, 3]);
    for tsn in [1, 3, 3, 0] {
        assert_eq!(tracker.observe(Tsn(tsn)), Arrival::Duplicate, "TSN {tsn}");
    }
    assert_eq!(tracker.duplicates(), [Tsn(1), Tsn(3), Tsn(3), Tsn(0)], "RFC 9260 §3.3.4");
    for _ in 0..2 * MAX_DUPLICATES {
        tracker.observe(Tsn(1));
    }
    assert_eq!(tracker.duplicates().len(), MAX_DUPLICATES);
    tracker.duplicates_reported(3);
    assert_eq!(tracker.duplicates()[..2], [Tsn(0), Tsn(1)], "in the order of arrival");
    tracker.duplicates_reported(MAX_DUPLICATES);
    assert!(tracker.duplicates().is_empty());
}

#[test]
fn the_window_ends_where_gap_ack_blocks_end() {
    let mut tracker = TsnTracker::new(Tsn(1));
    assert_eq!(tracker.observe(Tsn(65_536)), Arrival::Dropped);
    assert_eq!(tracker.observe(Tsn(65_535)), Arrival::New);
    assert_eq!(blocks(&tracker), [(65_535, 65_535)]);
    tracker.observe(Tsn(1));
    assert_eq!(tracker.observe(Tsn(65_536)), Arrival::New);
    assert_eq!(blocks(&tracker), [(65_534, 65_535)]);
}

#[test]
fn the_number_of_ranges_is_bounded() {
    let mut tracker = TsnTracker::new(Tsn(0));
    for i in 1..=MAX_GAPS as u32 {
        assert_eq!(tracker.observe(Tsn(3 * i)), Arrival::New);
    }
    let over = 3 * MAX_GAPS as u32 + 3;
    assert_eq!(tracker.observe(Tsn(over)), Arrival::Dropped, "one range too many");
    assert!(!tracker.contains(Tsn(over)));
    assert_eq!(tracker.observe(Tsn(over - 2)), Arrival::New, "extends the last range");
    assert_eq!(tracker.observe(Tsn(0)), Arrival::New, "the next in order opens no range");
    assert_eq!(tracker.gap_ack_blocks().len(), MAX_GAPS);
}

#[test]
fn only_tsns_above_the_cumulative_one_are_forgotten() {
    let mut tracker = tracker_with(1, &[1, 3, 4, 5, 6, 9]);
    assert!(!tracker.forget(Tsn(1)), "RFC 9260 §6.2: a cumulative ack is never taken back");
    assert!(!tracker.forget(Tsn(2)));
    assert!(tracker.forget(Tsn(9)));
    assert_eq!(blocks(&tracker), [(2, 5)]);
    assert!(tracker.forget(Tsn(5)));
    assert_eq!(blocks(&tracker), [(2, 3), (5, 5)]);
    assert!(tracker.forget(Tsn(3)));
    assert!(tracker.forget(Tsn(6)));
    assert_eq!(blocks(&tracker), [(3, 3)]);
    assert_eq!(tracker.observe(Tsn(5)), Arrival::New, "a forgotten TSN is new again");
}

/// The received TSNs as a set of distances from the initial TSN.
struct Model {
    initial: u32,
    received: BTreeSet<u32>,
}

impl Model {
    fn cum(&self) -> u32 {
        let next = (0..).zip(&self.received).find(|(i, at)| i != *at).map(|(i, _)| i);
        next.unwrap_or(self.received.len() as u32)
    }

    fn blocks(&self) -> Vec<(u16, u16)> {
        let cum = self.cum();
        let mut blocks: Vec<(u16, u16)> = Vec::new();
        for offset in self.received.iter().filter(|&&at| at >= cum).map(|at| (at + 1 - cum) as u16)
        {
            match blocks.last_mut() {
                Some(last) if last.1 + 1 == offset => last.1 = offset,
                _ => blocks.push((offset, offset)),
            }
        }
        blocks
    }

    fn check(&self, tracker: &TsnTracker) {
        let initial = Tsn(self.initial);
        assert_eq!(tracker.cum_tsn().next().distance_from(initial), self.cum());
        assert_eq!(blocks(tracker), self.blocks());
        assert_eq!(tracker.has_gaps(), self.received.len() as u32 != self.cum());
        let end = self.received.last().map_or(0, |last| last + 1);
        assert_eq!(tracker.highest().next().distance_from(initial), end);
    }
}

proptest! {
    #[test]
    fn agrees_with_a_set_of_integers(
        initial in prop_oneof![any::<u32>(), u32::MAX - 60..=u32::MAX],
        steps in prop::collection::vec((0u32..120, prop::bool::weighted(0.1)), 1..200),
    ) {
        let mut tracker = TsnTracker::new(Tsn(initial));
        let mut model = Model { initial, received: BTreeSet::new() };
        for (at, forget) in steps {
            let tsn = Tsn(initial.wrapping_add(at));
            prop_assert_eq!(tracker.contains(tsn), model.received.contains(&at));
            if forget {
                let expected = at >= model.cum() && model.received.remove(&at);
                prop_assert_eq!(tracker.forget(tsn), expected);
            } else {
                let expected = if model.received.insert(at) { Arrival::New } else { Arrival::Duplicate };
                prop_assert_eq!(tracker.classify(tsn), expected);
                prop_assert_eq!(tracker.observe(tsn), expected);
            }
            model.check(&tracker);
        }
    }

    #[test]
    fn a_long_lossy_transfer_over_several_laps(
        initial in any::<u32>(),
        lost in prop::collection::vec(any::<bool>(), 3000),
    ) {
        // Each TSN arrives now or 100 TSNs later; in the end all have.
        let mut tracker = TsnTracker::new(Tsn(initial));
        let count = lost.len() as u32;
        for at in 0..count + 100 {
            if at >= 100 && lost[at as usize - 100] {
                let late = tracker.observe(Tsn(initial.wrapping_add(at - 100)));
                prop_assert_eq!(late, Arrival::New);
            }
            if at < count && !lost[at as usize] {
                prop_assert_eq!(tracker.observe(Tsn(initial.wrapping_add(at))), Arrival::New);
            }
        }
        prop_assert_eq!(tracker.cum_tsn(), Tsn(initial.wrapping_add(count - 1)));
        prop_assert!(!tracker.has_gaps());
    }
}
