//! The queue of associations that peers opened and the application has not accepted yet.

use std::collections::VecDeque;
use std::task::{Context, Waker};

use manypath_proto::AssocId;

use crate::wakers::Wakers;

/// Associations that peers opened, until the application takes them; oldest first.
pub(crate) struct AcceptQueue {
    ids: VecDeque<AssocId>,
    limit: usize,
    /// Tasks that wait for the next one.
    wakers: Wakers,
}

impl AcceptQueue {
    pub(crate) fn new(limit: usize) -> AcceptQueue {
        AcceptQueue { ids: VecDeque::new(), limit, wakers: Wakers::default() }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.ids.len() >= self.limit
    }

    /// Adds an association and wakes those that wait for one.
    pub(crate) fn push(&mut self, id: AssocId, to_wake: &mut Vec<Waker>) {
        self.ids.push_back(id);
        self.wake(to_wake);
    }

    /// Takes the oldest association.
    pub(crate) fn pop(&mut self) -> Option<AssocId> {
        self.ids.pop_front()
    }

    /// Takes this association; false if it was not there.
    pub(crate) fn remove(&mut self, id: AssocId) -> bool {
        let before = self.ids.len();
        self.ids.retain(|&other| other != id);
        self.ids.len() < before
    }

    /// Has the task woken when an association comes, or when there will be none.
    pub(crate) fn wait(&mut self, cx: &Context<'_>) {
        self.wakers.register(cx);
    }

    pub(crate) fn wake(&mut self, to_wake: &mut Vec<Waker>) {
        self.wakers.wake(to_wake);
    }
}
