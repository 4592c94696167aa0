//! `manypath send`: the sending end of a transfer.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use manypath::{AssocClosed, Association, SendError};
use manypath_files::SystemDisk;
use manypath_live::Total;
use manypath_trace::Recorded;
use manypath_trust::password::Password;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::time::Instant;

use super::frame::{AHEAD, ClientFrame, Hello, Outcome, ServerFrame, Summary, VERSION, reason};
use super::messages::{Incoming, Messages, first_frame, send_content, send_frame};
use super::password::{NotProved, prove};
use super::relative::printable;
use super::report::{FileLog, TransferResult};
use super::resumable;
use super::secret::{Sources, unproved};
use super::source::{Answer as Wish, Entry, Piece, Plan, Unwanted, Wishes, read_all};
use super::stall;
use crate::args::SendArgs;
use crate::control::Control;
use crate::dest::Destination;
use crate::failure::{Failure, Result};
use crate::latency::AckLatency;
use crate::live::Views;
use crate::paths::PathWatch;
use crate::progress::{Counted, Progress};
use crate::record::RecordFile;
use crate::screen::Screen;
use crate::security::{Calling, NOT_ENCRYPTED};
use crate::signals::interrupted;
use crate::transport::{self, Answer, closed_failure, send_failure};
use crate::{names, settings, show, via};

/// Messages that are read ahead of the network.
const READ_AHEAD: usize = 32;
/// Answers to files that were announced, waiting to be read: two of each.
const ANSWERS: usize = 2 * AHEAD;
/// The hint after a transfer was interrupted.
const GO_ON: &str = "run the same command again: it sends only what is missing";
/// How long the receiver may take to answer the hello. After many wrong tokens, of anybody in our
/// network, it takes up to two minutes.
pub(crate) const WELCOME_TIME_MAX: Duration = Duration::from_secs(150);

/// `manypath send`.
pub(crate) async fn run(args: SendArgs) -> Result<()> {
    let dest = Destination::parse(&args.dest)?;
    let mut key = dest.key(args.security.insecure)?;
    let has_certificate = args.security.certificates.cert.is_some();
    let mut sources = Sources::new(&args, &dest)?;
    let config = settings::config_via(&args.transport, &args.via)?;
    let preset = config.preset;
    let limit = settings::duration("--connect-timeout", &args.connect_timeout)?;
    let stall_limit = stall::limit(&args.stall_timeout)?;
    let plan = Plan::new(&args.files)?;
    let screen = Screen::new(&args.report);
    let dest = match args.security.insecure {
        true => dest,
        false => names::look_up(dest, args.security.peer.as_deref(), &screen).await?,
    };
    if dest.local().is_some() {
        key = dest.key(false)?;
        sources = Sources::new(&args, &dest)?;
    }
    let mut views = Views::start(&args.live, "send", &screen).await?;
    for path in &plan.skipped {
        screen.line(&format!("omitted, neither file nor directory: {}", path.display()));
    }
    let calling = Calling::new(&args.security, dest.host(), key, &screen)?;
    let remotes = dest.resolve().await?;
    let is_code = sources.is_code();
    let token = sources.read(&dest, &screen)?;
    let relays = via::relays(&args.via).await?;
    let is_protected = calling.is_protected();
    let message_size =
        transport::bulk_message_size(&config, &remotes, !relays.is_empty(), is_protected);
    let trace_interval = via::trace_interval(&args.trace, &config, &relays)?;
    let record_file = RecordFile::create(args.record.trace.as_deref())?;
    let peer = match dest.local() {
        Some(local) => format!("{} ({})", local.name, transport::addresses(&remotes)),
        None => transport::addresses(&remotes),
    };
    if !is_protected {
        screen.line(NOT_ENCRYPTED);
    }

    let endpoint = transport::open_via(config, &args.bind.bind, relays, calling.security)?;
    let _relay_watch = via::RelayWatch::start(&endpoint, &screen);
    let _control = Control::start(&endpoint, &views, &screen, &args.report);
    for note in endpoint.notes() {
        screen.line(note);
    }
    let entries = Arc::from(plan.entries);
    let bytes = plan.bytes;
    let files = FileLog::default();
    let measures_latency = args.report.json;
    let resumed = Arc::default();
    let mut transfer =
        Transfer { peer, is_code, entries, bytes, message_size, files, measures_latency, resumed };
    // Only a receiver that has shown who it is sees the token; others prove that they have it, as
    // this end does. A key that was only announced shows nothing. Without a token the receiver says
    // that it wants one.
    let knows_peer = calling.knows_peer && (has_certificate || dest.local().is_none());
    let proves = is_protected && (is_code || !knows_peer) && !token.is_empty();
    let is_unproved = is_protected && !knows_peer && !proves;
    let password = proves.then(|| Password::new(token.clone())).transpose();
    let password = password.map_err(|e| Failure::usage(e.to_string()))?;
    let hello = (!proves).then(|| first_frame(transfer.hello(token)));
    let heard = async |association: &Association| match &password {
        None if is_unproved => {
            let answer = transfer.hear_welcome(association).await;
            unproved(association, &transfer.peer, answer).await
        }
        None => transfer.hear_welcome(association).await,
        Some(password) => transfer.prove_token(association, password).await,
    };
    let connected = tokio::select! {
        connected = transport::connect(&endpoint, remotes, limit, hello, heard) => connected,
        () = interrupted() => Err(Failure::failed("interrupted; nothing was sent")),
    };
    let (done, ended) = match connected {
        Err(failure) => (Err(failure), None),
        Ok(association) => {
            let watch = PathWatch::start(&association, screen.clone(), Some(Total::Sent(bytes)));
            let _route_watch = via::watch_routes(&association, trace_interval);
            let counted = Counted::Acked(transfer.resumed.clone());
            let progress = Progress::start(&screen, &args.report, &association, bytes, counted);
            views.open(String::new());
            let record = record_file.map(|file| file.start(&association, None));
            let heard = Cell::new(0);
            let progress_made = || association.stats().bytes_acked + heard.get();
            let done = tokio::select! {
                done = transfer.run(&association, &heard) => done,
                () = stall::stalled(stall_limit, progress_made) => {
                    transport::abort(&association, reason::STALLED).await;
                    Err(stall_failure(&transfer.peer, stall_limit))
                }
                () = interrupted() => {
                    transport::abort(&association, reason::INTERRUPTED).await;
                    Err(Failure::interrupted("interrupted").hint(GO_ON))
                }
            };
            if let Some(record) = record {
                record.finish(recorded(&done), &screen).await;
            }
            views.close().await;
            progress.end().await;
            let blocked = association.stats().receive_buffer_blocked;
            (done, Some((association, watch, blocked)))
        }
    };

    let failure = transfer.failure(&done);
    let error = failure.as_ref().map(|f| f.message.clone());
    let mut result = TransferResult::new(preset, transfer.files, error);
    if let Some((association, watch, blocked)) = ended {
        result.secured(&association);
        (result.paths, result.notices) = (watch.report(&association), watch.notices());
        result.receive_buffer_blocked_s = Some(blocked.as_secs_f64());
    }
    result.resumed_bytes = transfer.resumed.load(Ordering::Relaxed);
    if let Ok(measured) = done {
        result.measured(&measured.summary, measured.time);
        result.message_latency_p99_s = measured.latency_p99_s;
        let sent: u64 = result.paths.iter().map(|path| path.stats.counters.bytes_sent).sum();
        result.overhead = (result.bytes > 0).then(|| sent as f64 / result.bytes as f64);
        result.tell(&screen);
    }
    if args.report.json {
        show::print(&result.json_line())?;
    }
    failure.map_or(Ok(()), Err)
}

/// The measurements of a complete transfer.
struct Measured {
    summary: Summary,
    time: Duration,
    latency_p99_s: Option<f64>,
}

/// The end of the record of a transfer.
fn recorded(done: &Result<Measured>) -> Recorded {
    let measured = done.as_ref().ok();
    Recorded {
        completed: measured.is_some(),
        content_bytes: measured.map(|measured| measured.summary.bytes),
        transfer_time_s: measured.map(|measured| measured.time.as_secs_f64()),
    }
}

struct Transfer {
    peer: String,
    /// The secret is a code, not a token.
    is_code: bool,
    entries: Arc<[Entry]>,
    /// Sum of the files' sizes.
    bytes: u64,
    message_size: usize,
    files: FileLog,
    measures_latency: bool,
    /// Bytes that the receiver had before.
    resumed: Arc<AtomicU64>,
}

/// The state of the files shared by both halves of a transfer, feeding and listening.
struct Shared<'a> {
    entries: &'a [Entry],
    /// Digests of files whose status is awaited.
    digests: RefCell<BTreeMap<u32, [u8; 32]>>,
    /// For the thread that reads the files.
    answers: mpsc::Sender<Wish>,
    unwanted: Unwanted,
    peer: &'a str,
    resumed: &'a AtomicU64,
}

impl Transfer {
    /// The frame that introduces us to the receiver.
    fn hello(&self, token: Vec<u8>) -> Vec<u8> {
        let (entries, bytes) = (self.entries.len() as u32, self.bytes);
        ClientFrame::Hello(Hello { version: VERSION, token, entries, bytes }).encode()
    }

    /// Proves the token to a receiver that must prove it, too; then says hello.
    async fn prove_token(&self, association: &Association, token: &Password) -> Answer {
        let mut messages = Messages::default();
        let proving = prove(association, &mut messages, token);
        let Ok(proved) = tokio::time::timeout(WELCOME_TIME_MAX, proving).await else {
            transport::abort(association, reason::PROTOCOL).await;
            return Answer::Failed(protocol_error(&self.peer));
        };
        let failure = match proved {
            Ok(()) => {
                return match send_frame(association, self.hello(Vec::new())).await {
                    Ok(()) => self.hear_welcome(association).await,
                    Err(error) => Answer::Failed(send_failure(&error, &self.peer)),
                };
            }
            Err(NotProved::Closed(closed)) => {
                let failure = match &closed {
                    AssocClosed::PeerAborted { reason, .. }
                        if self.is_code
                            && reason.starts_with(reason::NOT_AUTHORISED.as_bytes()) =>
                    {
                        self.wrong_code()
                    }
                    closed => refusal(closed, &self.peer),
                };
                return Answer::Ended(closed, failure);
            }
            Err(NotProved::Wrong) if self.is_code => self.wrong_code(),
            Err(NotProved::Wrong) => {
                let what =
                    format!("{} does not know this token, or somebody is in between", self.peer);
                Failure::not_authorised(what)
                    .hint("check the token; nothing was sent, and nobody has learnt it")
            }
            Err(NotProved::Protocol) => protocol_error(&self.peer),
            Err(NotProved::NoRandomness) => Failure::failed("the system gives no random numbers"),
        };
        transport::abort(association, reason::NOT_AUTHORISED).await;
        Answer::Failed(failure)
    }

    fn wrong_code(&self) -> Failure {
        let what = format!("{} does not know this code, or somebody is in between", self.peer);
        Failure::not_authorised(what).hint(
            "check the code that `manypath recv --name` shows now, each start makes a new one; \
             nothing was sent, and nobody has learnt the code",
        )
    }

    /// Hears what the receiver says to our hello.
    async fn hear_welcome(&self, association: &Association) -> Answer {
        let (messages, heard) = (Messages::default(), &Cell::new(0));
        let mut answers = Answers { association, messages, peer: &self.peer, heard };
        let Ok(frame) = tokio::time::timeout(WELCOME_TIME_MAX, answers.message()).await else {
            transport::abort(association, reason::PROTOCOL).await;
            let what = format!("{} does not answer the transfer protocol", self.peer);
            let hint = "check that `manypath recv` listens there";
            return Answer::Failed(Failure::failed(what).hint(hint));
        };
        match frame {
            Err(closed) => {
                let failure = refusal(&closed, &self.peer);
                Answer::Ended(closed, failure)
            }
            Ok(Ok(ServerFrame::Welcome)) => Answer::Welcome,
            Ok(Ok(_)) => Answer::Failed(protocol_error(&self.peer)),
            Ok(Err(failure)) => Answer::Failed(failure),
        }
    }

    /// `heard` counts what the receiver says.
    async fn run(&mut self, association: &Association, heard: &Cell<u64>) -> Result<Measured> {
        let messages = Messages::default();
        let answers = Answers { association, messages, peer: &self.peer, heard };
        let (answers_tx, answers_rx) = mpsc::channel(ANSWERS);
        let shared = Shared {
            entries: &self.entries,
            digests: RefCell::default(),
            answers: answers_tx,
            unwanted: Unwanted::none(),
            peer: &self.peer,
            resumed: &self.resumed,
        };
        let mut pieces =
            self.read(Wishes { answers: answers_rx, unwanted: shared.unwanted.clone() });
        let latency = self.measures_latency.then(|| AckLatency::start(association));
        let to = Outlet { association, latency: latency.as_ref() };
        let feeding = feed(to, &shared, &mut pieces);
        let ((begin, given_up), summary) =
            tokio::try_join!(feeding, answers.until_summary(&shared, &mut self.files))?;
        let settle = Duration::from_nanos(summary.settle_ns);
        let time = begin.map_or(Duration::ZERO, |begin| begin.elapsed().saturating_sub(settle));
        let latency_p99_s = latency.as_ref().and_then(AckLatency::p99_s);
        transport::finish(association).await;
        if let Some(why) = given_up {
            self.files.first_failure = Some((Outcome::Abandoned, why));
        }
        Ok(Measured { summary, time, latency_p99_s })
    }

    /// Starts the thread that reads the files. It ends when what it returns is dropped.
    fn read(&self, mut wishes: Wishes) -> mpsc::Receiver<Piece> {
        let (pieces_tx, pieces) = mpsc::channel(READ_AHEAD);
        let (entries, message_size) = (self.entries.clone(), self.message_size);
        drop(tokio::task::spawn_blocking(move || {
            read_all(&SystemDisk, &entries, message_size, &mut wishes, &pieces_tx);
        }));
        pieces
    }

    /// Why the command fails, if it does.
    fn failure(&self, done: &Result<Measured>) -> Option<Failure> {
        let (outcome, text) = match (done, &self.files.first_failure) {
            (Err(failure), _) => return Some(failure.clone()),
            (Ok(_), first) => first.as_ref()?,
        };
        let (total, failed) = (self.files.total, self.files.failed);
        let what = format!("{failed} of {total} not stored; the first: {text}");
        let failure = Failure::failed(what);
        Some(match outcome.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        })
    }
}

/// Where everything goes, and what times it.
#[derive(Copy, Clone)]
struct Outlet<'a> {
    association: &'a Association,
    latency: Option<&'a AckLatency>,
}

impl Outlet<'_> {
    async fn frame(&self, frame: ClientFrame) -> std::result::Result<(), SendError> {
        let bytes = frame.encode();
        let length = bytes.len();
        send_frame(self.association, bytes).await?;
        self.note(length);
        Ok(())
    }

    async fn content(&self, content: Bytes) -> std::result::Result<(), SendError> {
        let length = content.len();
        send_content(self.association, content).await?;
        self.note(length);
        Ok(())
    }

    fn note(&self, bytes: usize) {
        if let Some(latency) = self.latency {
            latency.handed_over(bytes);
        }
    }
}

/// Hands everything to the association. Returns when the first content was handed over, and why the
/// first file was given up, if one was.
async fn feed(
    to: Outlet<'_>,
    shared: &Shared<'_>,
    pieces: &mut mpsc::Receiver<Piece>,
) -> Result<(Option<Instant>, Option<String>)> {
    let entry = |index: u32| &shared.entries[index as usize];
    let failed = |e: SendError| match e {
        SendError::Closed(closed) => broken_off(&closed, shared.peer),
        other => send_failure(&other, shared.peer),
    };
    let (mut begin, mut given_up) = (None, None);
    while let Some(piece) = pieces.recv().await {
        let sent = match piece {
            Piece::Announce(index) => {
                let header = entry(index).header.clone();
                to.frame(ClientFrame::File(header)).await
            }
            Piece::Begin { index, offset } => {
                shared.resumed.fetch_add(offset, Ordering::Relaxed);
                to.frame(ClientFrame::Begin { index, offset }).await
            }
            Piece::Working => to.frame(ClientFrame::Working).await,
            Piece::Content(content) => {
                begin.get_or_insert_with(Instant::now);
                to.content(content).await
            }
            Piece::End { index, result } => {
                let sha256 = result.unwrap_or_else(|why| {
                    let source = entry(index).source.display();
                    given_up.get_or_insert(format!("cannot read {source}: {why}"));
                    None
                });
                if let Some(sha256) = sha256 {
                    shared.digests.borrow_mut().insert(index, sha256);
                }
                to.frame(ClientFrame::End { index, sha256 }).await
            }
        };
        sent.map_err(failed)?;
    }
    let finish = ClientFrame::Finish { entries: shared.entries.len() as u32 };
    to.frame(finish).await.map_err(failed)?;
    Ok((begin, given_up))
}

/// Reads what the receiver answers.
struct Answers<'a> {
    association: &'a Association,
    messages: Messages,
    peer: &'a str,
    heard: &'a Cell<u64>,
}

impl Answers<'_> {
    async fn next(&mut self) -> Result<ServerFrame> {
        self.message().await.map_err(|closed| broken_off(&closed, self.peer))?
    }

    /// The next frame; how the association ended, if it did.
    async fn message(&mut self) -> std::result::Result<Result<ServerFrame>, AssocClosed> {
        loop {
            let message = self.association.recv().await?.ok_or(AssocClosed::Shutdown)?;
            self.heard.set(self.heard.get() + 1);
            return Ok(match self.messages.take(message) {
                Ok(None) => continue,
                Ok(Some(Incoming::Frame(bytes))) => {
                    ServerFrame::decode(&bytes).map_err(|_| protocol_error(self.peer))
                }
                Ok(Some(Incoming::Content(_))) | Err(_) => Err(protocol_error(self.peer)),
            });
        }
    }

    /// Passes an answer on to the thread that reads the files.
    fn answer(&self, shared: &Shared<'_>, answer: Wish) -> Result<()> {
        match shared.answers.try_send(answer) {
            // That thread may be done.
            Ok(()) | Err(TrySendError::Closed(_)) => Ok(()),
            Err(TrySendError::Full(_)) => Err(protocol_error(self.peer)),
        }
    }

    async fn until_summary(mut self, shared: &Shared<'_>, files: &mut FileLog) -> Result<Summary> {
        loop {
            match self.next().await? {
                ServerFrame::Status(status) => {
                    let index = status.index;
                    let entry = shared.entries.get(index as usize);
                    let entry = entry.ok_or_else(|| protocol_error(self.peer))?;
                    if status.outcome != Outcome::Stored {
                        shared.unwanted.set(index);
                        self.answer(shared, Wish::Refused(index))?;
                    }
                    let text = printable(&status.text);
                    let sha256 = shared.digests.borrow_mut().remove(&index);
                    files.add(&entry.header, status.outcome, &text, sha256);
                }
                ServerFrame::Ready(ready) => self.answer(shared, Wish::Ready(ready))?,
                ServerFrame::Working => {}
                ServerFrame::Summary(summary) => return Ok(summary),
                ServerFrame::Welcome | ServerFrame::Password(_) => {
                    return Err(protocol_error(self.peer));
                }
            }
        }
    }
}

fn stall_failure(peer: &str, limit: Option<Duration>) -> Failure {
    let what = format!(
        "no progress for {}: {peer} answers, but accepts no more data",
        stall::shown(limit)
    );
    Failure::interrupted(what)
        .hint("check the receiver and its disk; --stall-timeout changes this limit")
}

fn protocol_error(peer: &str) -> Failure {
    Failure::failed(format!("{peer} does not speak this version of the transfer protocol"))
        .hint("use the same version of manypath on both sides, and `manypath recv` on the other")
}

/// The failure when the association ends during a transfer.
fn broken_off(closed: &AssocClosed, peer: &str) -> Failure {
    resumable(closed, refusal(closed, peer), GO_ON)
}

/// The failure that the receiver's ABORT means.
fn refusal(closed: &AssocClosed, peer: &str) -> Failure {
    let text = match closed {
        AssocClosed::PeerAborted { reason, .. } => String::from_utf8_lossy(reason),
        other => return closed_failure(other, peer),
    };
    if text.starts_with(reason::NOT_AUTHORISED) {
        return Failure::not_authorised(format!("{peer} does not accept this token"))
            .hint("use the ticket that `manypath recv` prints now; each start makes a new one");
    }
    if text.starts_with(reason::BUSY) {
        return Failure::failed(format!("{peer} is busy with other transfers"))
            .hint("try again later");
    }
    if let Some(why) = text.strip_prefix(reason::REFUSED) {
        let why = printable(why.trim_start_matches(':').trim());
        let refused =
            |outcome: Outcome| why.strip_prefix(outcome.name()).map(|rest| (outcome, rest));
        let known = refused(Outcome::TooLarge).or_else(|| refused(Outcome::DiskFull));
        let (hint, why) = match &known {
            Some((outcome, why)) => (outcome.hint(), why.trim_start_matches(':').trim()),
            None => (None, why.as_str()),
        };
        let failure =
            Failure::failed(format!("{peer} refuses the transfer: {why}; nothing was sent"));
        return match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        };
    }
    if text.starts_with(reason::STALLED) {
        return Failure::failed(format!("{peer} gave up: the transfer made no progress"));
    }
    if text.starts_with(reason::INTERRUPTED) {
        return Failure::failed(format!("the receiver at {peer} was stopped"));
    }
    closed_failure(closed, peer)
}
