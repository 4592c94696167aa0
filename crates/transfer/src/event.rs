//! Events of a transfer, for whoever shows them.

use std::convert::Infallible;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use manypath_files::frame::{FileHeader, Outcome, Summary, Unnamed};
use manypath_files::relative::printable;
use tokio::time::{MissedTickBehavior, interval};

use crate::plan::Unsent;

/// An event of a transfer. Both ends have the same, except where one is named.
#[derive(Copy, Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Both ends are ready. The first event.
    Begun {
        /// Files and directories to come. At the receiver: without those hidden in directories.
        entries: u32,
        /// Their bytes; none if the size of one is not known.
        bytes: Option<u64>,
        /// At the sender: hidden files that it leaves out, as the receiver takes none.
        omitted: usize,
    },
    /// Bytes that are at the receiver, now; at times, as [`Options::progress_every`] says.
    ///
    /// [`Options::progress_every`]: crate::Options::progress_every
    Progress {
        /// The sender counts those that are acknowledged, and with both those that were there.
        done: u64,
        /// Bytes in all, if that is known.
        total: Option<u64>,
    },
    /// A file is resumed: its beginning is not sent, because the receiver has it.
    Resumed {
        /// The name at the receiver.
        name: &'a str,
        /// Bytes that are not sent.
        offset: u64,
        /// Bytes of the whole file.
        size: u64,
    },
    /// A file or directory is over: stored, or not.
    Entry(EntryOutcome<'a>),
    /// At the sender: an entry that it cannot send. It sends the others.
    Unsent(&'a Unsent),
    /// At the receiver: an entry that it cannot store because of its name.
    Unnamed(&'a Unnamed),
    /// At the receiver: something that its user should know, in words.
    Notice(&'a str),
    /// Everything is stored, or reported as not stored. The last event of a transfer that was not
    /// broken off.
    Done(&'a Summary),
}

/// The outcome of a file or directory.
#[derive(Copy, Clone, Debug)]
pub struct EntryOutcome<'a> {
    /// Name at the receiver, kind and size. The sender knows every size at the end of its file, the
    /// receiver only sizes that were announced.
    pub header: &'a FileHeader,
    /// Stored, or why not.
    pub outcome: Outcome,
    /// The reason for people, if it was not stored. Without control characters at the sender.
    pub text: &'a str,
    /// The SHA-256 of its content; at the sender of what it sent, at the receiver of what it
    /// stored.
    pub sha256: Option<[u8; 32]>,
}

/// An entry that was not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotStored {
    /// The name at the receiver, without control characters.
    pub name: String,
    /// Why not.
    pub outcome: Outcome,
    /// The reason for people.
    pub why: String,
}

impl fmt::Display for NotStored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.name, self.why, self.outcome.name())
    }
}

/// How many entries there were, and the first that was not stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Files and directories that are over.
    pub total: u32,
    /// How many of them were not stored.
    pub failed: u32,
    /// The first of these.
    pub first_failure: Option<NotStored>,
}

impl Counts {
    /// Counts what an event tells.
    fn count(&mut self, event: &Event<'_>) {
        let not_stored = |name: &str, outcome: Outcome, why: &dyn fmt::Display| {
            let (name, why) = (printable(name), printable(&why.to_string()));
            (outcome != Outcome::Stored).then_some(NotStored { name, outcome, why })
        };
        let failure = match event {
            Event::Entry(entry) => {
                not_stored(entry.header.name.as_str(), entry.outcome, &entry.text)
            }
            Event::Unsent(unsent) => not_stored(&unsent.name, unsent.outcome(), &unsent.why),
            Event::Unnamed(unnamed) => {
                not_stored(&unnamed.name, Outcome::NameRefused, &unnamed.why)
            }
            _ => return,
        };
        self.total += 1;
        if let Some(failure) = failure {
            self.failed += 1;
            self.first_failure.get_or_insert(failure);
        }
    }
}

/// Where the events of a transfer go: both of its halves tell some.
pub(crate) struct Events<F>(Mutex<(F, Counts)>);

impl<F: FnMut(Event<'_>) + Send> Events<F> {
    pub(crate) fn new(handler: F) -> Events<F> {
        Events(Mutex::new((handler, Counts::default())))
    }

    pub(crate) fn tell(&self, event: Event<'_>) {
        let mut locked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (handler, counts) = &mut *locked;
        counts.count(&event);
        handler(event);
    }

    /// The entries that are over until now.
    pub(crate) fn counts(&self) -> Counts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    /// Tells the progress at times, for ever.
    pub(crate) async fn tell_progress(
        &self,
        every: Option<Duration>,
        total: Option<u64>,
        done: impl Fn() -> u64,
    ) -> Infallible {
        let Some(every) = every.filter(|every| !every.is_zero()) else {
            return std::future::pending().await;
        };
        let mut ticks = interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            let done = total.map_or_else(&done, |total| done().min(total));
            self.tell(Event::Progress { done, total });
        }
    }
}
