//! What happens next: the earliest of a set of slots.
//!
//! A simulated network has few sources of events (links, timers of nodes, the schedule of changes)
//! and each needs only its own next event on record: packets leave a link in the order of their
//! arrival times, so the link keeps them and its slot shows the first. A tournament tree over the
//! slots then finds the earliest event in one look and takes an update in log2(slots) comparisons,
//! with nothing allocated, where a heap of all packets under way would be some hundred entries.

use manypath_proto::Instant;

/// When an event is due, and its turn among the events of the same instant.
///
/// The turn is the number of events planned before it, so ties go by order of insertion and a run
/// repeats exactly.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due(u128);

impl Due {
    const NEVER: Due = Due(u128::MAX);

    fn new(at: Instant, turn: u64) -> Due {
        Due(u128::from(at.as_nanos()) << 64 | u128::from(turn))
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
pub(crate) struct Slot(u32);

impl Slot {
    /// The number of slots added before this one.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Copy, Clone, Debug)]
struct Winner {
    due: Due,
    slot: u32,
}

/// The earliest event of each slot, and the earliest of all.
#[derive(Debug)]
pub(crate) struct SlotQueue {
    /// A complete binary tree: node `i` holds the earlier of nodes `2i` and `2i + 1`, the leaves
    /// are `leaves..2 * leaves`, and node 1 is the earliest of all.
    tree: Vec<Winner>,
    leaves: usize,
    slots: u32,
    turn: u64,
}

impl SlotQueue {
    pub(crate) fn new() -> SlotQueue {
        SlotQueue { tree: idle_tree(1), leaves: 1, slots: 0, turn: 0 }
    }

    /// Adds a slot without an event.
    pub(crate) fn add_slot(&mut self) -> Slot {
        let slot = self.slots;
        self.slots += 1;
        if self.slots as usize > self.leaves {
            let events: Vec<Due> = self.tree[self.leaves..].iter().map(|leaf| leaf.due).collect();
            self.leaves *= 2;
            self.tree = idle_tree(self.leaves);
            for (index, due) in events.into_iter().enumerate() {
                self.put(index, due);
            }
        }
        Slot(slot)
    }

    /// The key of an event at `at` that is planned now. It need not be put in a slot at once.
    pub(crate) fn plan(&mut self, at: Instant) -> Due {
        self.turn += 1;
        Due::new(at, self.turn)
    }

    /// Sets the slot's next event; `None` if it has none.
    pub(crate) fn set(&mut self, slot: Slot, due: Option<Due>) {
        self.put(slot.index(), due.unwrap_or(Due::NEVER));
    }

    /// The slot's next event.
    pub(crate) fn get(&self, slot: Slot) -> Option<Due> {
        let due = self.tree[self.leaves + slot.index()].due;
        (due != Due::NEVER).then_some(due)
    }

    /// The earliest event of all.
    pub(crate) fn next(&self) -> Option<(Instant, Slot)> {
        let first = self.tree[1];
        (first.due != Due::NEVER).then(|| (first.due.at(), Slot(first.slot)))
    }

    fn put(&mut self, leaf: usize, due: Due) {
        let mut node = self.leaves + leaf;
        self.tree[node] = Winner { due, slot: leaf as u32 };
        while node > 1 {
            let pair = node & !1;
            let (left, right) = (self.tree[pair], self.tree[pair + 1]);
            node >>= 1;
            self.tree[node] = if right.due < left.due { right } else { left };
        }
    }
}

fn idle_tree(leaves: usize) -> Vec<Winner> {
    vec![Winner { due: Due::NEVER, slot: 0 }; 2 * leaves]
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
