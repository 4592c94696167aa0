//! The associations whose outputs must still be drained.

use std::collections::VecDeque;

/// Slots of associations in the order of their turns. Each slot is in the queue at most once.
#[derive(Default)]
pub(super) struct Dirty {
    queue: VecDeque<u32>,
    /// By slot: true if it is in the queue.
    is_queued: Vec<bool>,
}

impl Dirty {
    /// Adds an association, unless it is here already.
    #[inline]
    pub(super) fn add(&mut self, slot: u32) {
        if self.is_queued.len() <= slot as usize {
            self.is_queued.resize(slot as usize + 1, false);
        }
        let is_queued = &mut self.is_queued[slot as usize];
        if !*is_queued {
            *is_queued = true;
            self.queue.push_back(slot);
        }
    }

    /// The association whose turn it is.
    #[inline]
    pub(super) fn first(&self) -> Option<u32> {
        self.queue.front().copied()
    }

    /// Moves on to the next association, because the first has sent something.
    pub(super) fn rotate(&mut self) {
        if self.queue.len() > 1 {
            self.queue.rotate_left(1);
        }
    }

    /// Removes the first association, because it has nothing to send.
    pub(super) fn remove_first(&mut self) {
        if let Some(slot) = self.queue.pop_front() {
            self.is_queued[slot as usize] = false;
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// The association at a place in the queue.
    #[inline]
    pub(super) fn at(&self, place: usize) -> u32 {
        self.queue[place]
    }
}
