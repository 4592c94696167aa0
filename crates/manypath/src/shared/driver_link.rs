//! The link from an endpoint's handles to the task that drives it.

use std::task::{Context, Waker};

/// How the handles reach the driver.
#[derive(Default)]
pub(crate) struct DriverLink {
    waker: Option<Waker>,
    /// It has been woken and has not run since.
    kicked: bool,
    /// It was dropped with its runtime; nothing moves any more.
    gone: bool,
}

impl DriverLink {
    /// Makes the driver run soon.
    pub(crate) fn kick(&mut self, to_wake: &mut Vec<Waker>) {
        if self.kicked {
            return;
        }
        if let Some(waker) = &self.waker {
            self.kicked = true;
            to_wake.push(waker.clone());
        }
    }

    /// The driver runs: it will see everything done before this.
    pub(crate) fn runs(&mut self, cx: &Context<'_>) {
        self.kicked = false;
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }

    /// The driver was dropped before its time.
    pub(crate) fn set_gone(&mut self) {
        self.gone = true;
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone
    }
}
