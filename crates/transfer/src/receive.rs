//! The receiving end of a transfer, from the hello to the summary.

mod admit;
mod intake;
mod order;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use manypath::{AssocClosed, Association};
use manypath_files::frame::{FileStatus, FrameError, Hello, Outcome, ServerFrame, Summary, reason};
use manypath_files::sink::{Done, Holder, Said};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::Options;
use crate::ending::{abort, let_peer_finish};
use crate::event::{Counts, EntryOutcome, Event, Events, NotStored};
use crate::messages::{Messages, send_frame};
use crate::meter::DeliveryMeter;
use crate::password::Secret;
use crate::reception::Place;
use crate::stall::stalled;
use crate::tally::Tally;
use crate::target::Target;
use intake::Intake;

pub use admit::{HELLO_TIME_MAX, Rejected, has_certificate};

/// Messages that wait for the disk.
const WRITE_BEHIND: usize = 32;
/// How long a writing thread may take to end after a stall, which may be the disk's.
const STALLED_WRITER_TIME_MAX: Duration = Duration::from_secs(1);
/// A sender that says nothing for so long may be gone, if another one wants to send the same.
const SILENT: Duration = Duration::from_secs(1);
/// How often that is looked at.
const LISTENING: Duration = Duration::from_millis(100);
/// Answers that wait to be sent.
const ANSWERS_WAITING: usize = 64;

/// A receiver: whom it admits, and where it puts files.
#[derive(Clone, Debug)]
pub struct Receiver<T> {
    /// The token that senders must have; none if the program knows by itself who they are.
    pub secret: Option<Secret>,
    /// Where files go.
    pub target: T,
}

/// A sender that has the right token, and what it offers.
pub struct Incoming<T> {
    target: T,
    association: Association,
    peer: SocketAddr,
    messages: Messages,
    hello: Hello,
    received: Tally,
    place: Option<Place>,
}

/// Why a transfer stopped before its end, at the receiver.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// The association is over.
    #[error("the transfer was broken off: {0}")]
    Closed(AssocClosed),
    /// A frame that is not understood.
    #[error("protocol error: {0}")]
    Frame(FrameError),
    /// Something out of order.
    #[error("protocol error: {0}")]
    Order(&'static str),
    /// This end was [asked to stop](crate::Stop).
    #[error("stopped")]
    Stopped,
    /// Another transfer of the same file came while this one had nothing to say.
    #[error("the sender fell silent; another transfer of the same file goes on")]
    Replaced,
    /// It is sent away for this reason.
    #[error("{0}")]
    Refused(String),
    /// The sender answers, and nothing went on for this time.
    #[error("no progress for {} s: the sender answers, but sends nothing more", .0.as_secs_f64())]
    Stalled(Duration),
    /// The thread that writes is gone.
    #[error("the receiver failed")]
    Writer,
    /// The thread that writes failed when everything had come.
    #[error("the writing thread failed")]
    WriterAtEnd,
    /// It went to its end, and not every entry was stored.
    #[error("{failed} of {total} entries are not stored; the first: {first}", failed = .0.failed, total = .0.total, first = first_text(.0))]
    NotStored(Counts),
    /// The directory takes no files.
    #[error("cannot write into the directory: {0}")]
    Directory(String),
    /// The endpoint was closed.
    #[error("the endpoint was closed")]
    EndpointClosed,
}

fn first_text(files: &Counts) -> String {
    files.first_failure.as_ref().map_or_else(String::new, NotStored::to_string)
}

impl ReceiveError {
    /// True if the same transfer, begun again by its sender, goes on where this one ended.
    #[must_use]
    pub fn is_resumable(&self) -> bool {
        matches!(
            self,
            ReceiveError::Closed(_)
                | ReceiveError::Stopped
                | ReceiveError::Replaced
                | ReceiveError::Stalled(_)
        )
    }

    /// The reason for the peer.
    fn reason(&self) -> String {
        match self {
            ReceiveError::Stopped => reason::INTERRUPTED.to_owned(),
            ReceiveError::Replaced => {
                format!("{}: another transfer takes its place", reason::INTERRUPTED)
            }
            ReceiveError::Stalled(_) => reason::STALLED.to_owned(),
            ReceiveError::Frame(e) => format!("{}: {e}", reason::PROTOCOL),
            ReceiveError::Order(what) => format!("{}: {what}", reason::PROTOCOL),
            ReceiveError::Refused(why) => why.clone(),
            _ => ReceiveError::Writer.to_string(),
        }
    }
}

/// The result of a transfer at its receiver, whether or not it went to its end.
#[derive(Debug)]
pub struct Received {
    /// The summary that the sender gets at the end.
    pub summary: Summary,
    /// From the welcome to the last content.
    pub time: Duration,
    /// Bytes that were not sent, as they were there before.
    pub resumed: u64,
    /// Entries, and how many of them were not stored.
    pub files: Counts,
    /// False if the disk or the peer hung at the end, so that events of the last entries are
    /// missing.
    pub has_all_events: bool,
    /// Why it did not go to its end, if it did not.
    pub end: Result<(), ReceiveError>,
}

/// The outcome of storing what a sender sends.
struct Stored {
    meter: DeliveryMeter,
    /// Bytes that were there before.
    resumed: u64,
    taken: Result<(), ReceiveError>,
    has_writer_failed: bool,
    has_all_events: bool,
}

/// The end of the taking, and of the thread that writes; none if that hangs.
struct Taken {
    meter: DeliveryMeter,
    resumed: u64,
    taken: Result<(), ReceiveError>,
    written: Option<Result<(), tokio::task::JoinError>>,
}

impl<T: Target> Incoming<T> {
    /// The association; it can be watched while the transfer goes on.
    #[must_use]
    pub fn association(&self) -> &Association {
        &self.association
    }

    /// Where the sender is.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Files and directories to come. Without those hidden in directories.
    #[must_use]
    pub fn entries(&self) -> u32 {
        self.hello.entries
    }

    /// Bytes to come; none if the size of a file is not known.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        (!self.hello.has_unknown_size).then_some(self.hello.bytes)
    }

    /// Bytes that are there: received, and there before.
    #[must_use]
    pub fn received(&self) -> Tally {
        self.received.clone()
    }

    /// The place of this transfer among those that its [`Reception`](crate::Reception) serves at a
    /// time. It is free when all clones of it and the transfer are gone.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        self.place.clone()
    }

    /// Counts it as one of the transfers at a time.
    pub(crate) fn at(self, place: Place) -> Incoming<T> {
        Incoming { place: Some(place), ..self }
    }

    /// Receives everything, and tells events. The result says how it ended.
    pub async fn receive(
        mut self,
        options: &Options,
        events: impl FnMut(Event<'_>) + Send,
    ) -> Received {
        let events = Events::new(events);
        let (entries, bytes) = (self.entries(), self.bytes());
        events.tell(Event::Begun { entries, bytes, omitted: 0 });
        let received = self.received.clone();
        let done = || received.get();
        tokio::select! {
            all = self.receive_all(options, &events) => all,
            never = events.tell_progress(options.progress_every, bytes, done) => match never {},
        }
    }

    async fn receive_all<F: FnMut(Event<'_>) + Send>(
        &mut self,
        options: &Options,
        events: &Events<F>,
    ) -> Received {
        let stored = self.store(options, events).await;
        let Stored { meter, resumed, has_all_events, .. } = stored;
        let end = match stored.taken {
            Ok(()) if stored.has_writer_failed => Err(ReceiveError::WriterAtEnd),
            Ok(()) => {
                self.conclude(options, &meter, events).await;
                Ok(())
            }
            Err(broken) => {
                if !matches!(broken, ReceiveError::Closed(_)) {
                    abort(&self.association, &broken.reason()).await;
                }
                Err(broken)
            }
        };
        let files = events.counts();
        let summary = meter.summary(Instant::now(), &files);
        if end.is_ok() {
            events.tell(Event::Done(&summary));
        }
        Received { summary, time: meter.transfer_time(), resumed, files, has_all_events, end }
    }

    /// Takes messages and writes what is in them, until the sender has said all or something breaks
    /// it off.
    async fn store<F: FnMut(Event<'_>) + Send>(
        &mut self,
        options: &Options,
        events: &Events<F>,
    ) -> Stored {
        let association = self.association.clone();
        let (said_tx, said_rx) = mpsc::channel(ANSWERS_WAITING);
        let answering = answer(&association, said_rx, events);
        tokio::pin!(answering);
        let mut has_answered = false;
        let Taken { meter, resumed, taken, written } = {
            let taking = self.take(said_tx, options, events);
            tokio::pin!(taking);
            loop {
                tokio::select! {
                    taken = &mut taking => break taken,
                    () = &mut answering, if !has_answered => has_answered = true,
                }
            }
        };
        let acked = || association.stats().bytes_acked;
        let (taken, has_all_events) = tokio::select! {
            () = std::future::ready(()), if has_answered => (taken, true),
            () = &mut answering, if !has_answered => (taken, true),
            () = std::future::ready(()), if written.is_none() => (taken, false),
            () = stalled(options.stall_limit, acked) => {
                let limit = options.stall_limit.unwrap_or_default();
                (taken.and(Err(ReceiveError::Stalled(limit))), false)
            }
        };
        let has_writer_failed = written.is_some_and(|written| written.is_err());
        Stored { meter, resumed, taken, has_writer_failed, has_all_events }
    }

    /// Takes messages, then waits for the thread that writes what is in them.
    async fn take<F: FnMut(Event<'_>) + Send>(
        &mut self,
        said: mpsc::Sender<Said>,
        options: &Options,
        events: &Events<F>,
    ) -> Taken {
        let (work, work_rx) = mpsc::channel(WRITE_BEHIND);
        let (target, unnamed) = (self.target.clone(), said.clone());
        let holder = Arc::<Holder>::default();
        let held = holder.clone();
        let writing = tokio::task::spawn_blocking(move || target.write(held, work_rx, &said));
        let association = &self.association;
        let heard = AtomicU64::new(0);
        let progress_made = || heard.load(Ordering::Relaxed) + association.stats().bytes_acked;
        let mut intake = Intake::new(association, work, unnamed, &self.received, &heard, events);
        let limit = options.stall_limit;
        let taken = tokio::select! {
            taken = intake.run(&mut self.messages) => taken,
            () = stalled(limit, progress_made) => {
                Err(ReceiveError::Stalled(limit.unwrap_or_default()))
            }
            () = options.stop.stopped() => Err(ReceiveError::Stopped),
            () = replaced(&holder, &heard) => Err(ReceiveError::Replaced),
        };
        let (meter, resumed) = intake.end();
        // The thread ends once the work's channel is closed, and an unfinished file is gone before
        // we are; but the disk may hang, whoever reads a stream, too, and a peer may take no
        // answers.
        let is_stalled = matches!(&taken, Err(ReceiveError::Stalled(_)));
        if is_stalled {
            abort(association, reason::STALLED).await;
        }
        let may_hang = is_stalled || (taken.is_err() && self.target.is_stream());
        let written = if may_hang {
            tokio::time::timeout(STALLED_WRITER_TIME_MAX, writing).await.ok()
        } else {
            Some(writing.await)
        };
        Taken { meter, resumed, taken, written }
    }

    /// Tells the sender what became of its files, and lets it end the association.
    async fn conclude<F: FnMut(Event<'_>) + Send>(
        &self,
        options: &Options,
        meter: &DeliveryMeter,
        events: &Events<F>,
    ) {
        let association = &self.association;
        let summary = ServerFrame::Summary(meter.summary(Instant::now(), &events.counts()));
        // A sender that is gone before it hears this changes nothing about what is stored.
        let _ = send_frame(association, summary.encode()).await;
        tokio::select! {
            () = let_peer_finish(association, &options.stop) => {}
            () = stalled(options.stall_limit, || association.stats().bytes_acked) => {}
        }
    }
}

impl<T> fmt::Debug for Incoming<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// Waits until another transfer wants a file of this one, and its sender has been silent for a
/// while.
async fn replaced(holder: &Holder, heard: &AtomicU64) {
    let (mut before, mut silent) = (0, Duration::ZERO);
    loop {
        tokio::time::sleep(LISTENING).await;
        let now = heard.load(Ordering::Relaxed);
        silent = if now == before { silent + LISTENING } else { Duration::ZERO };
        before = now;
        if holder.is_contested() && silent >= SILENT {
            return;
        }
    }
}

/// Tells the sender what is there and what becomes of each file, and tells events.
async fn answer<F: FnMut(Event<'_>) + Send>(
    association: &Association,
    mut said: mpsc::Receiver<Said>,
    events: &Events<F>,
) {
    while let Some(said) = said.recv().await {
        let frame = match said {
            Said::Ready(ready) => ServerFrame::Ready(ready),
            Said::Working => ServerFrame::Working,
            Said::Notice(notice) => {
                events.tell(Event::Notice(&notice));
                continue;
            }
            Said::Unnamed(unnamed) => {
                events.tell(Event::Unnamed(&unnamed));
                let (index, text) = (unnamed.index, unnamed.why.to_string());
                ServerFrame::Status(FileStatus { index, outcome: Outcome::NameRefused, text })
            }
            Said::Done(Done { status, header, sha256 }) => {
                let (outcome, text) = (status.outcome, status.text.as_str());
                let entry = EntryOutcome { header: &header, outcome, text, sha256 };
                events.tell(Event::Entry(entry));
                ServerFrame::Status(status)
            }
        };
        // If the association is over, its end is noticed elsewhere; events go on.
        let _ = send_frame(association, frame.encode()).await;
    }
}
