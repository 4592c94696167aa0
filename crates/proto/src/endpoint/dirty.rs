//! The associations whose outputs are still to be drained.

use std::collections::VecDeque;

/// Slots of associations, in the order in which they have their turn; each is here once.
#[derive(Default)]
pub(super) struct Dirty {
    queue: VecDeque<u32>,
    /// By slot: it is in the queue.
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

    /// The first has sent something: the next one's turn.
    pub(super) fn rotate(&mut self) {
        if self.queue.len() > 1 {
            self.queue.rotate_left(1);
        }
    }

    /// The first has nothing to send: removes it.
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
