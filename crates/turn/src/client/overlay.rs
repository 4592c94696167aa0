//! Relays that the relay knows: a client asks for them while it has an allocation.

use std::time::Duration;

use manypath_proto::Instant;

use super::ClientError;
use crate::mesh::Listed;

/// Time between two requests.
const INTERVAL: Duration = Duration::from_secs(2);
/// Time until the next request after one without an answer: the relay may not know OVERLAY.
const SILENT_INTERVAL: Duration = Duration::from_secs(60);

/// When the relay is asked for others, and the answer.
#[derive(Default)]
pub(super) struct Overlay {
    is_followed: bool,
    /// `None` while a request is under way, and where the relay does not know it.
    ask_at: Option<Instant>,
    listed: Option<Vec<Listed>>,
}

impl Overlay {
    /// Wants to know the relays.
    pub(super) fn follow(&mut self) {
        self.is_followed = true;
    }

    /// There is an allocation, with a request at once.
    pub(super) fn begin(&mut self, now: Instant) {
        self.ask_at = self.is_followed.then_some(now);
    }

    /// When the next request is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.ask_at
    }

    /// True if a request is due, which is under way from now on.
    pub(super) fn take_due(&mut self, now: Instant) -> bool {
        self.ask_at.take_if(|at| *at <= now).is_some()
    }

    pub(super) fn answered(&mut self, now: Instant, listed: Vec<Listed>) {
        self.listed = Some(listed);
        self.ask_at = Some(now + INTERVAL);
    }

    pub(super) fn failed(&mut self, now: Instant, error: &ClientError) {
        self.ask_at = (*error == ClientError::NoAnswer).then_some(now + SILENT_INTERVAL);
    }

    /// The latest answer, unless it was taken.
    pub(super) fn take_listed(&mut self) -> Option<Vec<Listed>> {
        self.listed.take()
    }
}
