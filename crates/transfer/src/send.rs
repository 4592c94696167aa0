//! The sending end of a transfer.

mod answers;
mod feed;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use manypath::{AssocClosed, Association, ConnectTarget, DirectPathError, Endpoint};
use manypath_files::SystemDisk;
use manypath_files::frame::{AHEAD, Accepts, ClientFrame, Hello, ServerFrame, Summary, reason};
use manypath_files::source::{Answer, Entry, Piece, Unwanted, Wishes, read_all};
use manypath_trust::Token;
use manypath_trust::password::Password;
use tokio::sync::mpsc;

use crate::Options;
use crate::direct::direct_path;
use crate::ending::{PeerReason, abort, finish};
use crate::event::{Counts, Event, Events, NotStored};
use crate::messages::{Messages, first_frame, send_frame};
use crate::opening::{Again, Opening, OpeningError, bulk_message_size};
use crate::password::{NotProved, prove};
use crate::plan::{Plan, PlanError};
use crate::stall::stalled;
use crate::tally::Tally;
use answers::Answers;
use feed::{Outlet, feed};

/// Messages that are read ahead of the network.
const READ_AHEAD: usize = 32;
/// Answers to files that were announced, waiting to be read: two of each.
const ANSWERS: usize = 2 * AHEAD;
/// How long a receiver may take to answer the hello. After many wrong tokens, of anybody in our
/// network, it takes up to two minutes.
pub const WELCOME_TIME_MAX: Duration = Duration::from_secs(150);

/// The way in which the token gets to the receiver.
#[derive(Clone, Debug)]
pub enum Showing {
    /// Openly: the receiver has shown who it is, or nothing is encrypted. Empty if the receiver
    /// wants none.
    Open(Token),
    /// Nothing shows who the receiver is, and there is no token. The receiver says if it wants one;
    /// one that does not may be anybody, and gets nothing.
    Nothing,
    /// Both ends prove that they have it.
    Proved(Password),
}

/// Why a transfer did not begin. Nothing was sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OfferError {
    /// No association was opened.
    #[error(transparent)]
    Opening(#[from] OpeningError),
    /// The receiver ended the association; [`PeerReason`] reads why.
    #[error("the receiver did not take the transfer: {0}")]
    Ended(AssocClosed),
    /// The receiver did not prove that it has the token, or did not speak of it.
    #[error(transparent)]
    NotProved(NotProved),
    /// The receiver asks for no token, so it may be anybody.
    #[error("the other end asks for no token, so it may be anybody")]
    AsksForNoToken,
    /// The receiver does not answer.
    #[error("the other end does not answer the transfer protocol")]
    Silent,
    /// The receiver says something else.
    #[error("the other end does not speak this version of the transfer protocol")]
    Protocol,
    /// No direct path works in time, and one end lets no relay carry content.
    #[error(transparent)]
    NoDirectPath(manypath::DirectPathError),
    /// The receiver is of an earlier version, which takes no files of unknown size.
    #[error("the receiver takes no files of unknown size: its version is older")]
    UnknownSize,
    /// The first message could not be sent.
    #[error(transparent)]
    Send(manypath::SendError),
}

/// Why a transfer was not completed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// There is nothing to send, or not as it is wanted.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// It did not begin.
    #[error(transparent)]
    Offer(#[from] OfferError),
    /// The association ended during it.
    #[error("the transfer was broken off: {0}")]
    Closed(AssocClosed),
    /// A message could not be sent.
    #[error(transparent)]
    Send(manypath::SendError),
    /// The receiver said something that the protocol does not have.
    #[error("the receiver does not speak this version of the transfer protocol")]
    Protocol,
    /// The receiver answers, and takes nothing more, for this time.
    #[error("no progress for {} s: the receiver answers, but accepts no more data", .0.as_secs_f64())]
    Stalled(Duration),
    /// This end was [asked to stop](crate::Stop).
    #[error("stopped")]
    Stopped,
    /// It went to its end, and not every entry was stored.
    #[error("{failed} of {total} entries are not stored; the first: {first}", failed = .0.files.failed, total = .0.files.total, first = first_text(.0))]
    NotStored(Box<Sent>),
    /// No endpoint could be opened.
    #[error(transparent)]
    Bind(#[from] manypath::BindError),
    /// The ticket is not one for an encrypted transfer.
    #[error(transparent)]
    Ticket(#[from] manypath_files::ticket::TrustMismatch),
    /// This end could not make a key.
    #[error("no key: {0}")]
    Key(String),
}

fn first_text(sent: &Sent) -> String {
    sent.files.first_failure.as_ref().map_or_else(String::new, NotStored::to_string)
}

impl SendError {
    /// True if the same transfer, begun again, goes on where this one ended.
    #[must_use]
    pub fn is_resumable(&self) -> bool {
        match self {
            SendError::Closed(AssocClosed::NotProtected { .. }) => false,
            SendError::Closed(closed) => !matches!(
                PeerReason::of(closed),
                Some(PeerReason::Protocol | PeerReason::NotAuthorised | PeerReason::NoDirectPath)
            ),
            SendError::Stalled(_) | SendError::Stopped => true,
            _ => false,
        }
    }
}

/// The measurements of a transfer that went to its end.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The receiver's: among others the bytes that were delivered, those that were there before not
    /// included.
    pub summary: Summary,
    /// From the first content handed to the association to the last delivered.
    pub time: Duration,
    /// Bytes that were not sent, as the receiver had them.
    pub resumed: u64,
    /// Hidden files that were left out, as the receiver takes none.
    pub omitted: usize,
    /// Entries, and how many of them were not stored.
    pub files: Counts,
}

/// Files that are offered to a receiver.
#[derive(Debug)]
pub struct Offer {
    plan: Plan,
    showing: Showing,
    message_size: Option<usize>,
}

/// A transfer that the receiver has agreed to.
pub struct Sending {
    association: Association,
    plan: Plan,
    /// Files that are left out.
    omitted: usize,
    message_size: usize,
    resumed: Tally,
    handed_over: Option<HandedOver>,
}

/// Called for each message that was handed to the association, with its length in bytes.
type HandedOver = Arc<dyn Fn(usize) + Send + Sync>;

/// A file that was sent to its end.
#[derive(Copy, Clone, Debug)]
struct SentFile {
    sha256: [u8; 32],
    length: u64,
}

/// The state of the files shared by both halves of a transfer, feeding and listening.
struct Shared {
    entries: Arc<[Entry]>,
    /// Files whose status is awaited.
    sent: Mutex<BTreeMap<u32, SentFile>>,
    /// Why files were given up whose status is awaited.
    given_up: Mutex<BTreeMap<u32, String>>,
    /// For the thread that reads the files.
    answers: mpsc::Sender<Answer>,
    unwanted: Unwanted,
    resumed: Tally,
}

impl Offer {
    /// Offers what is in the plan to a receiver that gets the token so.
    #[must_use]
    pub fn new(plan: Plan, showing: Showing) -> Offer {
        Offer { plan, showing, message_size: None }
    }

    /// Sends content in messages of this many bytes. Otherwise they fill 32 packets of the
    /// association's.
    #[must_use]
    pub fn with_message_size(self, bytes: usize) -> Offer {
        Offer { message_size: Some(bytes), ..self }
    }

    /// Opens an association with a receiver, and agrees with it on what is sent. One that is busy
    /// is asked again until `limit` is over.
    ///
    /// # Errors
    /// There is no such receiver, or it does not take this; nothing was sent.
    pub async fn open(
        self,
        endpoint: &Endpoint,
        receiver: impl Into<ConnectTarget>,
        limit: Duration,
    ) -> Result<Sending, OfferError> {
        let hello = self.first_hello().map(first_frame);
        let mut opening = Opening::new(endpoint, receiver, limit, hello);
        loop {
            let association = opening.next().await?;
            let closed = match self.hear(&association).await {
                Ok(accepts) => return self.settle(association, accepts).await,
                Err(OfferError::Ended(closed)) => closed,
                Err(other) => return Err(other),
            };
            match opening.again_after(&closed).await {
                Again::Yes => {}
                Again::No => return Err(OfferError::Ended(closed)),
                Again::TooLate => return Err(OpeningError::Busy.into()),
            }
        }
    }

    /// Agrees with the receiver at the other end of an association on what is sent. The transfer is
    /// all that the association is for: it ends with it.
    ///
    /// # Errors
    /// The receiver does not take this; nothing was sent.
    pub async fn over(self, association: Association) -> Result<Sending, OfferError> {
        if let Some(hello) = self.first_hello() {
            send_frame(&association, hello).await.map_err(OfferError::Send)?;
        }
        let accepts = self.hear(&association).await?;
        self.settle(association, accepts).await
    }

    /// The first message, but for a token that is proved before.
    fn first_hello(&self) -> Option<Vec<u8>> {
        match &self.showing {
            Showing::Open(token) => Some(self.hello(token.clone())),
            Showing::Nothing => Some(self.hello(Token::default())),
            Showing::Proved(_) => None,
        }
    }

    /// The frame that introduces this end to the receiver.
    fn hello(&self, token: Token) -> Vec<u8> {
        let (entries, bytes) = self.plan.least();
        let has_unknown_size = self.plan.bytes().is_none();
        ClientFrame::Hello(Hello { has_unknown_size, ..Hello::new(token, entries, bytes) }).encode()
    }

    /// Hears what the receiver says to the hello, after the token was proved if that is wanted.
    async fn hear(&self, association: &Association) -> Result<Option<Accepts>, OfferError> {
        match &self.showing {
            Showing::Open(_) => hear_welcome(association).await,
            Showing::Nothing => {
                // A true receiver has sent this end away; whoever welcomes it is another.
                hear_welcome(association).await?;
                abort(association, reason::NOT_AUTHORISED).await;
                Err(OfferError::AsksForNoToken)
            }
            Showing::Proved(password) => self.prove_token(association, password).await,
        }
    }

    /// Proves the token to a receiver that must prove it, too; then says hello.
    async fn prove_token(
        &self,
        association: &Association,
        token: &Password,
    ) -> Result<Option<Accepts>, OfferError> {
        let mut messages = Messages::default();
        match prove(association, &mut messages, token, WELCOME_TIME_MAX).await {
            Ok(()) => {
                let hello = self.hello(Token::default());
                send_frame(association, hello).await.map_err(OfferError::Send)?;
                hear_welcome(association).await
            }
            Err(NotProved::Closed(closed)) => Err(OfferError::Ended(closed)),
            Err(other) => {
                abort(association, reason::NOT_AUTHORISED).await;
                Err(OfferError::NotProved(other))
            }
        }
    }

    /// Leaves out what this receiver does not take, and waits for a direct path if content may take
    /// no other.
    async fn settle(
        self,
        association: Association,
        accepts: Option<Accepts>,
    ) -> Result<Sending, OfferError> {
        direct_path(&association).await.map_err(|error| match error {
            DirectPathError::Closed(closed) => OfferError::Ended(closed),
            error => OfferError::NoDirectPath(error),
        })?;
        let Offer { mut plan, message_size, .. } = self;
        let omitted = match accepts {
            // A receiver that does not say it is of an earlier version.
            None if plan.bytes().is_none() => {
                abort(&association, reason::INTERRUPTED).await;
                return Err(OfferError::UnknownSize);
            }
            Some(Accepts { hidden: false }) => plan.leave_out_hidden(),
            Some(_) | None => 0,
        };
        let message_size = message_size.unwrap_or_else(|| own_message_size(&association));
        let resumed = Tally::default();
        Ok(Sending { association, plan, omitted, message_size, resumed, handed_over: None })
    }
}

/// Bytes of a message that fills the packets of an association.
fn own_message_size(association: &Association) -> usize {
    let config = association.config().unwrap_or_default();
    let remotes: Vec<_> = association.paths().iter().map(|path| path.remote).collect();
    bulk_message_size(&config, &remotes, true, association.is_protected())
}

/// Hears what the receiver says to the hello.
async fn hear_welcome(association: &Association) -> Result<Option<Accepts>, OfferError> {
    let heard = AtomicU64::new(0);
    let mut answers = Answers::new(association, &heard);
    let Ok(frame) = tokio::time::timeout(WELCOME_TIME_MAX, answers.next()).await else {
        abort(association, reason::PROTOCOL).await;
        return Err(OfferError::Silent);
    };
    match frame {
        Ok(ServerFrame::Welcome(accepts)) => Ok(accepts),
        Err(SendError::Closed(closed)) => Err(OfferError::Ended(closed)),
        Ok(_) | Err(_) => Err(OfferError::Protocol),
    }
}

impl Sending {
    /// The association; it can be watched while the transfer goes on.
    #[must_use]
    pub fn association(&self) -> &Association {
        &self.association
    }

    /// Bytes of all files that are sent; none if the size of one is not known.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        self.plan.bytes()
    }

    /// Hidden files that are left out, as the receiver takes none.
    #[must_use]
    pub fn omitted(&self) -> usize {
        self.omitted
    }

    /// Entries of directories that are neither files nor directories: they are left out.
    #[must_use]
    pub fn skipped(&self) -> &[PathBuf] {
        self.plan.skipped()
    }

    /// True if standard input is sent.
    #[must_use]
    pub fn has_standard_input(&self) -> bool {
        self.plan.has_standard_input()
    }

    /// Bytes that are not sent, as the receiver has them.
    #[must_use]
    pub fn resumed(&self) -> Tally {
        self.resumed.clone()
    }

    /// Calls `handed_over` for each message that was handed to the association, with its length in
    /// bytes: for measurements. It must not block.
    pub fn on_message(&mut self, handed_over: impl Fn(usize) + Send + Sync + 'static) {
        self.handed_over = Some(Arc::new(handed_over));
    }

    /// Sends the files, and tells events. `Ok` if it went to its end, whatever was stored:
    /// [`Sent::files`] tells.
    ///
    /// # Errors
    /// It was broken off.
    pub async fn run(
        self,
        options: &Options,
        events: impl FnMut(Event<'_>) + Send,
    ) -> Result<Sent, SendError> {
        let (association, total) = (self.association.clone(), self.bytes());
        let (heard, resumed) = (AtomicU64::new(0), self.resumed.clone());
        let events = Events::new(events);
        let entries = self.plan.entries.len() as u32;
        events.tell(Event::Begun { entries, bytes: total, omitted: self.omitted });
        self.plan.unsent().iter().for_each(|unsent| events.tell(Event::Unsent(unsent)));
        let progress_made = || association.stats().bytes_acked + heard.load(Ordering::Relaxed);
        let done = || association.stats().bytes_acked + resumed.get();
        tokio::select! {
            sent = self.carry(&heard, &events) => sent,
            () = stalled(options.stall_limit, progress_made) => {
                abort(&association, reason::STALLED).await;
                Err(SendError::Stalled(options.stall_limit.unwrap_or_default()))
            }
            () = options.stop.stopped() => {
                abort(&association, reason::INTERRUPTED).await;
                Err(SendError::Stopped)
            }
            never = events.tell_progress(options.progress_every, total, done) => match never {},
        }
    }

    /// Sends the files. `heard` counts what the receiver says.
    async fn carry<F: FnMut(Event<'_>) + Send>(
        self,
        heard: &AtomicU64,
        events: &Events<F>,
    ) -> Result<Sent, SendError> {
        let Sending { association, plan, omitted, message_size, resumed, handed_over } = self;
        let answers = Answers::new(&association, heard);
        let entries: Arc<[Entry]> = plan.entries.into();
        let (answers_tx, answers_rx) = mpsc::channel(ANSWERS);
        let shared = Shared {
            entries: entries.clone(),
            sent: Mutex::default(),
            given_up: Mutex::default(),
            answers: answers_tx,
            unwanted: Unwanted::none(),
            resumed,
        };
        let wishes = Wishes { answers: answers_rx, unwanted: shared.unwanted.clone() };
        let mut pieces = read(entries, message_size, wishes);
        let to = Outlet { association: &association, handed_over: handed_over.as_deref() };
        let feeding = feed(to, &shared, &mut pieces, events);
        let (fed, summary) = tokio::try_join!(feeding, answers.until_summary(&shared, events))?;
        let settle = Duration::from_nanos(summary.settle_ns);
        let time = fed.begin.map_or(Duration::ZERO, |begin| begin.elapsed().saturating_sub(settle));
        finish(&association).await;
        events.tell(Event::Done(&summary));
        let (resumed, files) = (shared.resumed.get(), events.counts());
        Ok(Sent { summary, time, resumed, omitted, files })
    }
}

impl fmt::Debug for Sending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending").field("association", &self.association).finish_non_exhaustive()
    }
}

/// Starts the thread that reads the files. It ends when what this returns is dropped.
fn read(entries: Arc<[Entry]>, message_size: usize, mut wishes: Wishes) -> mpsc::Receiver<Piece> {
    let (pieces_tx, pieces) = mpsc::channel(READ_AHEAD);
    drop(tokio::task::spawn_blocking(move || {
        read_all(&SystemDisk, &entries, message_size, &mut wishes, &pieces_tx);
    }));
    pieces
}
