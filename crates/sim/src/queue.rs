//! The next event: the earliest of a set of slots.
//!
//! Each source of events (a link, the timer of a node, the schedule of changes) needs only its own
//! next event on record: packets leave a link in the order of their arrival times, so the link
//! keeps them and its slot shows the first. The slots are the leaves of a tournament in groups of
//! eight: each group sends its earliest event to a group of the level above, up to one winner. An
//! event costs a few steps without a branch on each level, and levels are few: five for 20,000
//! slots. Nothing is allocated, where a heap of all packets under way would be far larger.

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
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
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

/// Entries of a group.
const GROUP: usize = 8;

/// Slots, or the winners of groups of the level below, that compete with each other.
#[derive(Copy, Clone, Debug)]
struct Group {
    /// When each is due.
    at: [Instant; GROUP],
    /// The slot of each.
    slot: [u32; GROUP],
}

impl Group {
    const EMPTY: Group = Group { at: [NEVER; GROUP], slot: [0; GROUP] };

    /// The entry that comes first. Of several of one instant, that whose turn it is.
    #[inline]
    fn winner(&self, dues: &[Due]) -> (Instant, u32) {
        let at = self.at.iter().fold(NEVER, |first, other| first.min(*other));
        let mut those = 0_u32;
        for (entry, other) in self.at.iter().enumerate() {
            those |= u32::from(*other == at) << entry;
        }
        let entry = if those.is_power_of_two() {
            those.trailing_zeros() as usize
        } else {
            self.first_of_tie(those, dues)
        };
        (at, self.slot[entry])
    }

    #[inline(never)] // mostly there is none
    fn first_of_tie(&self, those: u32, dues: &[Due]) -> usize {
        let tied = (0..GROUP).filter(|entry| those >> entry & 1 == 1);
        tied.min_by_key(|entry| dues[self.slot[*entry] as usize]).unwrap_or(0)
    }
}

/// The earliest event of each slot, and the earliest of all.
#[derive(Debug)]
pub(crate) struct SlotQueue {
    dues: Vec<Due>,
    /// The groups of each level: first those of the slots, last the one group of the top.
    levels: Vec<Vec<Group>>,
    /// The earliest of all.
    first: (Instant, u32),
    turn: u64,
    /// The present event: all that are due before it have happened.
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
            dues: Vec::new(),
            levels: vec![Vec::new()],
            first: (NEVER, 0),
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
        let slot = u32::try_from(self.dues.len()).expect("at most 2^32 links and nodes");
        self.dues.push(Due::NEVER);
        let mut entry = slot as usize;
        for level in &mut self.levels {
            let group = entry / GROUP;
            if group == level.len() {
                level.push(Group::EMPTY);
            }
            // Of a group without events any slot may stand for the others.
            if level[group].at[entry % GROUP] == NEVER {
                level[group].slot[entry % GROUP] = slot;
            }
            entry = group;
        }
        if self.levels.last().is_some_and(|top| top.len() > 1) {
            self.add_level();
        }
        Slot(slot)
    }

    /// Lets the groups of the top level, of which there are two now, compete.
    #[cold]
    fn add_level(&mut self) {
        let mut top = Group::EMPTY;
        for (entry, group) in self.levels.last().into_iter().flatten().enumerate() {
            (top.at[entry], top.slot[entry]) = group.winner(&self.dues);
        }
        self.levels.push(vec![top]);
    }

    /// The present.
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        self.present.at
    }

    /// True if `due` is before the present event.
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
        self.put(slot.0, due.unwrap_or(Due::NEVER));
    }

    /// The slot's next event.
    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> Option<Due> {
        Some(self.dues[slot.index()]).filter(|due| due.at != NEVER)
    }

    /// The earliest event of all.
    #[inline]
    pub(crate) fn next(&self) -> Option<(Instant, Slot)> {
        let (at, slot) = self.first;
        (at != NEVER).then_some((at, Slot(slot)))
    }

    /// Gives the slots that are due until `limit`, at most as many as `found` has room for, in no
    /// order. Returns how many there are.
    pub(crate) fn until(&self, limit: Instant, found: &mut [Slot]) -> usize {
        let mut count = 0;
        if let Some(top) = self.levels.len().checked_sub(1) {
            self.gather(top, 0, limit, found, &mut count);
        }
        count
    }

    fn gather(
        &self,
        level: usize,
        group: usize,
        limit: Instant,
        found: &mut [Slot],
        count: &mut usize,
    ) {
        let Some(entries) = self.levels[level].get(group) else { return };
        for entry in 0..GROUP {
            if entries.at[entry] > limit || *count == found.len() {
                continue;
            }
            match level.checked_sub(1) {
                Some(below) => self.gather(below, group * GROUP + entry, limit, found, count),
                None => {
                    found[*count] = Slot(entries.slot[entry]);
                    *count += 1;
                }
            }
        }
    }

    #[inline]
    fn put(&mut self, slot: u32, due: Due) {
        self.dues[slot as usize] = due;
        let (mut entry, mut now) = (slot as usize, (due.at, slot));
        for level in &mut self.levels {
            let group = &mut level[entry / GROUP];
            let place = entry % GROUP;
            let before = (group.at[place], group.slot[place]);
            (group.at[place], group.slot[place]) = now;
            // Another slot wins below, as before.
            if before == now && now.1 != slot {
                return;
            }
            now = group.winner(&self.dues);
            entry /= GROUP;
        }
        self.first = now;
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
            ops in prop::collection::vec((0usize..600, prop::option::weighted(0.7, 0u64..50)), 1..300),
            begin in 1usize..600,
        ) {
            let mut queue = SlotQueue::new();
            let mut slots: Vec<Slot> = (0..begin).map(|_| queue.add_slot()).collect();
            let mut model: Vec<Option<Due>> = vec![None; 600];
            for (slot, time) in ops {
                // Slots come while others have events.
                while slots.len() <= slot {
                    slots.push(queue.add_slot());
                }
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
