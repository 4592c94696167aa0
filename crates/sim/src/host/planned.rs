//! Commands that run at a planned time.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use manypath_proto::{Instant, PathRank};

use crate::traffic::MessageKind;

/// A command that runs at a planned time.
#[derive(Copy, Clone, Debug)]
pub(super) enum Planned {
    Associate,
    /// Asks for the addresses that NATs give the host.
    Gather,
    /// Sends `bytes`, all at once or one message at a time.
    Send {
        bytes: u64,
        kind: MessageKind,
        /// The time from one message to the next.
        every: Option<Duration>,
    },
    SendUntil(Instant, MessageKind),
    /// The paths from a local address get a rank.
    Rank(IpAddr, PathRank),
    StopSending,
    Shutdown,
}

/// The commands that are to come: by time, then in the order in which they were given.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    commands: BTreeMap<(Instant, u32), Planned>,
    /// Commands that were ever added.
    added: u32,
}

impl Schedule {
    pub(super) fn add(&mut self, at: Instant, what: Planned) {
        self.commands.insert((at, self.added), what);
        self.added += 1;
    }

    /// The next command that is due, with the time for which it was planned.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<(Instant, Planned)> {
        let next = self.commands.first_entry().filter(|next| next.key().0 <= now)?;
        let ((at, _), what) = next.remove_entry();
        Some((at, what))
    }

    /// The time of the next command.
    pub(super) fn next(&self) -> Option<Instant> {
        self.commands.first_key_value().map(|((at, _), _)| *at)
    }

    /// True if the application sends more at a planned time.
    pub(super) fn will_send(&self) -> bool {
        use Planned::{Send, SendUntil};
        let is_sending = |what: &Planned| matches!(what, Send { .. } | SendUntil(..));
        self.commands.values().any(is_sending)
    }

    pub(super) fn len(&self) -> usize {
        self.commands.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.commands.clear();
    }
}
