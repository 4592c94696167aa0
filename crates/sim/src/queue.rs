//! What happens next: the earliest of a set of slots.
//!
//! A simulated network has few sources of events (links, timers of nodes, the schedule of changes)
//! and each needs only its own next event on record: packets leave a link in the order of their
//! arrival times, so the link keeps them and its slot shows the first. A tournament tree over the
//! slots then finds the earliest event in one look and takes an update in log4(slots) small steps,
//! with nothing allocated, where a heap of all packets under way would be some hundred entries.

use manypath_proto::Instant;

/// When an event is due, and its turn among the events of the same instant.
///
/// The turn is the number of events planned before it, so ties go by order of insertion and a run
/// repeats exactly. From high bits to low: 64 of time, 48 of turn, 16 left free for a slot.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due(u128);

const SLOT_BITS: u32 = 16;
const SLOT_MASK: u128 = (1 << SLOT_BITS) - 1;

impl Due {
    fn new(at: Instant, low: u64) -> Due {
        Due(u128::from(at.as_nanos()) << 64 | u128::from(low))
    }

    /// The same event, its turn kept, at another instant.
    pub(crate) fn moved_to(self, at: Instant) -> Due {
        Due::new(at, self.0 as u64)
    }

    /// The instant.
    pub(crate) fn at(self) -> Instant {
        Instant::from_nanos((self.0 >> 64) as u64)
    }
}

/// Names one source of events.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u16);

impl Slot {
    /// The number of slots added before this one.
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Slots of a group. Four are compared faster than two twice.
const WIDTH: usize = 4;

/// The earliest event of each slot, and the earliest of all.
#[derive(Debug)]
pub(crate) struct SlotQueue {
    /// A complete tree. The first level has the events of all slots, in groups; each other level has
    /// the least of each group of the level before; the last is one group. A value is a [`Due`] with
    /// its slot in the low bits.
    levels: Vec<Vec<[u128; WIDTH]>>,
    /// The least of all.
    first: u128,
    slots: usize,
    turn: u64,
}

const IDLE: u128 = u128::MAX;

impl Default for SlotQueue {
    fn default() -> SlotQueue {
        SlotQueue::new()
    }
}

impl SlotQueue {
    pub(crate) fn new() -> SlotQueue {
        SlotQueue { levels: vec![vec![[IDLE; WIDTH]]], first: IDLE, slots: 0, turn: 0 }
    }

    /// Adds a slot without an event.
    ///
    /// # Panics
    ///
    /// If there are 65536 already.
    pub(crate) fn add_slot(&mut self) -> Slot {
        let slot = Slot(u16::try_from(self.slots).expect("at most 65536 links and nodes"));
        self.slots += 1;
        if slot.index() == WIDTH * self.levels[0].len() {
            for level in &mut self.levels {
                level.resize(WIDTH * level.len(), [IDLE; WIDTH]);
            }
            let mut top = [IDLE; WIDTH];
            top[0] = self.first;
            self.levels.push(vec![top]);
        }
        slot
    }

    /// The key of an event at `at` that is planned now. It need not be put in a slot at once.
    #[inline]
    pub(crate) fn plan(&mut self, at: Instant) -> Due {
        self.turn += 1;
        Due::new(at, self.turn << SLOT_BITS)
    }

    /// Sets the slot's next event; `None` if it has none.
    #[inline]
    pub(crate) fn set(&mut self, slot: Slot, due: Option<Due>) {
        let value = due.map_or(IDLE, |due| due.0 | u128::from(slot.0));
        self.put(slot.index(), value);
    }

    /// The slot's next event.
    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> Option<Due> {
        let value = self.levels[0][slot.index() / WIDTH][slot.index() % WIDTH];
        (value != IDLE).then_some(Due(value & !SLOT_MASK))
    }

    /// The earliest event of all.
    #[inline]
    pub(crate) fn next(&self) -> Option<(Instant, Slot)> {
        let first = self.first;
        (first != IDLE).then(|| (Due(first).at(), Slot(first as u16)))
    }

    fn put(&mut self, slot: usize, mut value: u128) {
        let mut at = slot;
        for level in &mut self.levels {
            let group = &mut level[at / WIDTH];
            if group[at % WIDTH] == value {
                return; // nor does anything change above
            }
            group[at % WIDTH] = value;
            value = group.iter().copied().fold(IDLE, u128::min);
            at /= WIDTH;
        }
        self.first = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(n: u64) -> Instant {
        Instant::from_nanos(n)
    }

    #[test]
    fn events_of_one_instant_come_in_the_order_they_were_planned() {
        let mut queue = SlotQueue::new();
        let slots: Vec<Slot> = (0..5).map(|_| queue.add_slot()).collect();
        for &i in &[3, 0, 4, 1, 2] {
            let due = queue.plan(at(7));
            queue.set(slots[i], Some(due));
        }
        let mut seen = Vec::new();
        while let Some((time, slot)) = queue.next() {
            assert_eq!(time, at(7));
            seen.push(slot.index());
            queue.set(slot, None);
        }
        assert_eq!(seen, [3, 0, 4, 1, 2]);
    }

    #[test]
    fn adding_a_slot_keeps_the_events_of_the_others() {
        let mut queue = SlotQueue::new();
        for n in 0..20u64 {
            let slot = queue.add_slot();
            let due = queue.plan(at(100 - n));
            queue.set(slot, Some(due));
            assert_eq!(queue.next(), Some((at(100 - n), slot)));
        }
    }

    proptest! {
        #[test]
        fn the_next_event_is_the_least_of_all(
            ops in prop::collection::vec((0usize..11, prop::option::weighted(0.7, 0u64..50)), 1..300)
        ) {
            let mut queue = SlotQueue::new();
            let slots: Vec<Slot> = (0..11).map(|_| queue.add_slot()).collect();
            let mut model: Vec<Option<Due>> = vec![None; 11];
            for (slot, time) in ops {
                model[slot] = time.map(|t| queue.plan(at(t)));
                queue.set(slots[slot], model[slot]);
                let least = model.iter().enumerate().filter_map(|(i, d)| d.map(|d| (d, i))).min();
                prop_assert_eq!(
                    queue.next().map(|(t, s)| (t, s.index())),
                    least.map(|(d, i)| (d.at(), i))
                );
                prop_assert_eq!(queue.get(slots[slot]), model[slot]);
            }
        }
    }
}
