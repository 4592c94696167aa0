//! Tasks that wait.

use std::task::{Context, Waker};

/// Tasks that wait for the same thing, each once.
#[derive(Default)]
pub(crate) struct Wakers(Vec<Waker>);

impl Wakers {
    pub(crate) fn register(&mut self, cx: &Context<'_>) {
        if !self.0.iter().any(|w| w.will_wake(cx.waker())) {
            self.0.push(cx.waker().clone());
        }
    }

    pub(crate) fn wake(&mut self, to_wake: &mut Vec<Waker>) {
        to_wake.append(&mut self.0);
    }
}
