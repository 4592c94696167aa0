//! The next event: the earliest of a set of slots.
//!
//! A simulated network has few sources of events (links, timers of nodes, the schedule of changes)
//! and each needs only its own next event on record: packets leave a link in the order of their
//! arrival times, so the link keeps them and its slot shows the first. The slots stand in groups of
//! eight, and the earliest event is looked for among the earliest of each group: a few steps
//! without a branch, and nothing allocated, where a heap of all packets under way would be some
//! hundred entries.

use manypath_proto::Instant;

/// When an event is due, and its turn among the events of the same instant.
///
/// Ties go by the order in which events were planned, so a run repeats exactly. That order is kept
/// as a history: the event that was being handled when this one was planned came before another
/// such event if it was due earlier, or else if it was itself planned earlier; and one event plans
/// in the order of its turns. So events can be planned ahead of the event that would plan them, and
/// still have their place: see [`then`](Self::then).
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due {
    at: Instant,
    /// When the event was due that planned it.
    planned: Instant,
    /// When that event was planned.
    before: Instant,
    /// Counts what was planned.
    turn: u64,
}

impl Due {
    const NEVER: Due =
        Due { at: NEVER, planned: Instant::ZERO, before: Instant::ZERO, turn: u64::MAX };

    /// Before all others.
    const START: Due =
        Due { at: Instant::ZERO, planned: Instant::ZERO, before: Instant::ZERO, turn: 0 };

    /// The same event, its turn kept, at another instant.
    pub(crate) fn moved_to(self, at: Instant) -> Due {
        Due { at, ..self }
    }

    /// The event at `at` that this one, which nobody need see, plans when it is due.
    #[inline]
    pub(crate) fn then(self, at: Instant) -> Due {
        Due { at, planned: self.at, before: self.planned, turn: self.turn }
    }

    /// The instant.
    #[inline]
    pub(crate) fn at(self) -> Instant {
        self.at
    }
}

/// Names one source of events.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

impl Slot {
    /// The number of slots added before this one.
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// When a slot without an event is due.
const NEVER: Instant = Instant::from_nanos(u64::MAX);

/// Slots of a group.
const GROUP: usize = 8;

/// The earliest event of each slot, and the earliest of all.
#[derive(Debug)]
pub(crate) struct SlotQueue {
    /// When each slot is due, in groups.
    groups: Vec<[Instant; GROUP]>,
    /// The earliest of each group.
    earliest: Vec<Instant>,
    dues: Vec<Due>,
    turn: u64,
    /// The event of the present; what is due before it has happened.
    present: Due,
}

impl Default for SlotQueue {
    fn default() -> SlotQueue {
        SlotQueue::new()
    }
}

impl SlotQueue {
    pub(crate) fn new() -> SlotQueue {
        SlotQueue {
            groups: Vec::new(),
            earliest: Vec::new(),
            dues: Vec::new(),
            turn: 0,
            present: Due::START,
        }
    }

    /// Adds a slot without an event.
    ///
    /// # Panics
    ///
    /// If there are 2^32 already.
    pub(crate) fn add_slot(&mut self) -> Slot {
        let slot = Slot(u32::try_from(self.dues.len()).expect("at most 2^32 links and nodes"));
        self.dues.push(Due::NEVER);
        if self.dues.len() > self.groups.len() * GROUP {
            self.groups.push([NEVER; GROUP]);
            self.earliest.push(NEVER);
        }
        slot
    }

    /// The present.
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        self.present.at
    }

    /// True if an event is due before that of the present.
    #[inline]
    pub(crate) fn is_past(&self, due: Due) -> bool {
        due < self.present
    }

    /// Lets time run to the slot's event, which is the next of all.
    #[inline]
    pub(crate) fn begin(&mut self, slot: Slot) {
        self.present = self.dues[slot.index()];
    }

    /// Lets time run to an instant at which no event is left.
    pub(crate) fn rest_until(&mut self, at: Instant) {
        if at >= self.present.at {
            self.present = Due { at, planned: at, before: at, turn: u64::MAX };
        }
    }

    /// The present as something planned now: what [`then`](Due::then) begins with.
    #[inline]
    pub(crate) fn turn(&mut self) -> Due {
        self.turn += 1;
        Due { turn: self.turn, ..self.present }
    }

    /// The key of an event at `at` that is planned now. It need not be put in a slot at once.
    #[inline]
    pub(crate) fn plan(&mut self, at: Instant) -> Due {
        self.turn().then(at)
    }

    /// Sets the slot's next event; `None` if it has none.
    #[inline]
    pub(crate) fn set(&mut self, slot: Slot, due: Option<Due>) {
        self.put(slot, due.unwrap_or(Due::NEVER));
    }

    /// The slot's next event.
    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> Option<Due> {
        Some(self.dues[slot.index()]).filter(|due| due.at != NEVER)
    }

    /// The earliest event of all.
    #[inline]
    pub(crate) fn next(&self) -> Option<(Instant, Slot)> {
        let (mut at, mut group, mut last_group) = (NEVER, 0, 0);
        for (number, &first) in self.earliest.iter().enumerate() {
            group = if first < at { number } else { group };
            last_group = if first <= at { number } else { last_group };
            at = at.min(first);
        }
        if at == NEVER {
            return None;
        }
        let mut those = 0_u32;
        for (slot, other) in self.groups[group].iter().enumerate() {
            those |= u32::from(*other == at) << slot;
        }
        let is_tie = group != last_group || !those.is_power_of_two();
        let slot = match is_tie {
            false => Slot((group * GROUP) as u32 + those.trailing_zeros()),
            true => self.first_of_tie(at),
        };
        Some((at, slot))
    }

    /// Of the slots that are due at that instant, the one whose turn it is.
    #[cold]
    fn first_of_tie(&self, at: Instant) -> Slot {
        let slots = self.groups.iter().flatten().enumerate();
        let tied = slots.filter(|(_, due)| **due == at).map(|(slot, _)| slot);
        let first = tied.min_by_key(|slot| self.dues[*slot]).unwrap_or(0);
        Slot(first as u32)
    }

    #[inline]
    fn put(&mut self, slot: Slot, due: Due) {
        let slot = slot.index();
        self.dues[slot] = due;
        let group = &mut self.groups[slot / GROUP];
        group[slot % GROUP] = due.at;
        self.earliest[slot / GROUP] = earliest(group);
    }
}

/// The earliest of some instants; `NEVER` of none.
#[inline]
fn earliest(instants: &[Instant]) -> Instant {
    instants.iter().fold(NEVER, |first, other| first.min(*other))
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
