//! Finds the association whose timer expires next.

use crate::time::Instant;

/// The deadline of a slot without a timer.
const NEVER: Instant = Instant::from_nanos(u64::MAX);

/// The deadline of each slot, and the earliest of all.
///
/// A deadline changes with nearly every packet, so this is a tournament: a binary tree in one array
/// with its root at 1. Each node has the earlier deadline of its two children; of equal ones, that
/// of the lower slot.
#[derive(Debug)]
pub(super) struct Deadlines {
    tree: Vec<Instant>,
    /// Number of slots that fit; a power of two.
    slots: usize,
}

impl Deadlines {
    pub(super) fn new() -> Deadlines {
        Deadlines { tree: vec![NEVER; 2], slots: 1 }
    }

    /// Sets a slot's deadline; `None` if it has none.
    #[inline]
    pub(super) fn set(&mut self, slot: u32, at: Option<Instant>) {
        let slot = slot as usize;
        if slot >= self.slots {
            self.grow(slot);
        }
        let mut at = at.unwrap_or(NEVER);
        let mut node = self.slots + slot;
        while self.tree[node] != at {
            self.tree[node] = at;
            if node == 1 {
                break;
            }
            at = at.min(self.tree[node ^ 1]);
            node /= 2;
        }
    }

    /// The earliest deadline.
    #[inline]
    pub(super) fn next(&self) -> Option<Instant> {
        (self.tree[1] != NEVER).then_some(self.tree[1])
    }

    /// Takes the slot with the earliest deadline, if that is not after `now`. The slot has no
    /// deadline then.
    pub(super) fn pop_expired(&mut self, now: Instant) -> Option<u32> {
        let first = self.next().filter(|at| *at <= now)?;
        let mut node = 1;
        while node < self.slots {
            node *= 2;
            node += usize::from(self.tree[node] != first);
        }
        let slot = (node - self.slots) as u32;
        self.set(slot, None);
        Some(slot)
    }

    fn grow(&mut self, slot: usize) {
        let old = self.tree.split_off(self.slots);
        self.slots = (slot + 1).next_power_of_two();
        self.tree = vec![NEVER; 2 * self.slots];
        for (slot, at) in old.into_iter().enumerate() {
            self.set(slot as u32, Some(at));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn deadlines_expire_in_the_order_of_time_and_then_of_slots(
            steps in prop::collection::vec((0u32..21, prop::option::of(0u64..40), 0u64..40), 1..200)
        ) {
            let mut deadlines = Deadlines::new();
            let mut model: BTreeSet<(u64, u32)> = BTreeSet::new();
            for (slot, at, now) in steps {
                deadlines.set(slot, at.map(Instant::from_nanos));
                model.retain(|&(_, other)| other != slot);
                model.extend(at.map(|at| (at, slot)));
                let next = model.first().map(|&(at, _)| Instant::from_nanos(at));
                prop_assert_eq!(deadlines.next(), next);
                let expired = model.first().copied().filter(|&(at, _)| at <= now);
                model.retain(|entry| Some(*entry) != expired);
                let popped = deadlines.pop_expired(Instant::from_nanos(now));
                prop_assert_eq!(popped, expired.map(|(_, slot)| slot));
            }
        }
    }
}
