//! `manypath send`: the sending end of a transfer.

mod answers;
mod feed;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use manypath::{AssocClosed, Association, Endpoint, Security};
use manypath_files::SystemDisk;
use manypath_files::ticket::Ticket;
use manypath_live::Total;
use manypath_trace::Recorded;
use manypath_trust::Token;
use manypath_trust::password::Password;
use tokio::sync::mpsc;

use crate::args::{ReportArgs, SendArgs};
use crate::commands::names;
use crate::connect::dest::Destination;
use crate::connect::near::Near;
use crate::connect::security::{Calling, NOT_ENCRYPTED};
use crate::connect::transport::{self, Answer, send_failure};
use crate::connect::uplinks;
use crate::connect::via;
use crate::control::Control;
use crate::failure::{Failure, Result};
use crate::latency::AckLatency;
use crate::live::Views;
use crate::paths::PathWatch;
use crate::record::RecordFile;
use crate::screen::Screen;
use crate::screen::output;
use crate::screen::progress::{Counted, Progress};
use crate::settings;
use crate::signals::interrupted;
use crate::transfer::frame::{AHEAD, Accepts, ClientFrame, Hello, ServerFrame, Summary, reason};
use crate::transfer::relative::shown;
use crate::transfer::report::{FileLog, TransferResult};
use crate::transfer::secret::{SecretKind, Sources, unproved};
use crate::transfer::source::{
    Answer as Wish, Entry, Piece, Plan, Source, Unwanted, Wishes, read_all,
};
use crate::transfer::stall;
use answers::{Answers, protocol_error, refusal, stall_failure};
use feed::{Outlet, feed};
use manypath_transfer::messages::{Messages, first_frame, send_frame};
use manypath_transfer::password::{NotProved, prove};

/// Messages that are read ahead of the network.
const READ_AHEAD: usize = 32;
/// Answers to files that were announced, waiting to be read: two of each.
const ANSWERS: usize = 2 * AHEAD;
/// The hint after a transfer was interrupted.
const GO_ON: &str = "run the same command again: it sends only what is missing";
/// The hint if there was content of unknown size, which is not gone on with.
const BEGIN_ANEW: &str = "run the same command again: it sends all of its input";
/// The command at the other end.
const SERVER: &str = "manypath recv";
/// How long the receiver may take to answer the hello. After many wrong tokens, of anybody in our
/// network, it takes up to two minutes.
pub(crate) const WELCOME_TIME_MAX: Duration = Duration::from_secs(150);

/// `manypath send`.
pub(crate) async fn run(args: SendArgs) -> Result<()> {
    check_order(&args)?;
    let dest = Destination::parse(&args.words.dest)?;
    dest.key(args.security.insecure)?;
    Sources::new(&args, &dest)?;
    let config = settings::config_via(&args.transport, &args.via)?;
    let preset = config.preset;
    let limit = settings::duration("--connect-timeout", &args.connect_timeout)?;
    let stall_limit = stall::limit(&args.stall_timeout)?;
    let plan = Plan::new(&args.words.files, args.name.as_deref())?;
    let screen = Screen::new(&args.report);
    let dest = look_up(dest, &args, &screen).await?;
    let mut views = Views::start(&args.live, "send", &screen).await?;
    for path in &plan.skipped {
        screen.line(&format!("omitted, neither file nor directory: {}", shown(path)));
    }
    let receiver = Receiver::of(&dest, &args, &screen).await?;
    let relays = via::relays(&args.via).await?.told(&screen);
    let trace_interval = via::trace_interval(&args.trace, &config, &relays)?;
    let record_file = RecordFile::create(args.record.trace.as_deref())?;
    if !receiver.is_protected {
        screen.line(NOT_ENCRYPTED);
    }
    let remotes = &receiver.remotes;
    let has_relays = !relays.is_empty();
    let message_size =
        transport::bulk_message_size(&config, remotes, has_relays, receiver.is_protected);
    let relay_peers = args.relay_peers.are_wanted();
    let security = receiver.security.clone();
    let near = Near { config, bind: &args.bind.bind, relays, relay_peers, security };
    let near = near.open(&screen)?;
    let _control = Control::start(&near.endpoint, &views, &screen, &args.report);
    near.tell_notes(&screen);

    let measures_latency = args.report.json;
    let mut transfer = Transfer::new(&receiver, plan, message_size, measures_latency);
    let connected = transfer.connect(&near.endpoint, receiver, limit, &screen).await;
    let (done, ended) = match connected {
        Err(failure) => (Err(failure), None),
        Ok(association) => {
            let around = Around {
                screen: &screen,
                report: &args.report,
                views: &mut views,
                record_file,
                trace_interval,
                stall_limit,
            };
            let (done, ended) = transfer.carry(association, around).await;
            (done, Some(ended))
        }
    };
    transfer.tell(done, ended, preset, &args.report, &screen)
}

/// The receiver that DEST names, its name looked up in the local network.
async fn look_up(dest: Destination, args: &SendArgs, screen: &Screen) -> Result<Destination> {
    dest.warn_of_file(&args.words.dest, screen);
    via::warn_of_files(&args.via, screen);
    match args.security.insecure {
        true => Ok(dest),
        false => names::look_up(dest, args.security.peer.as_deref(), screen).await,
    }
}

/// The way in which the token gets to the receiver.
enum Showing {
    /// Openly: the receiver has shown who it is, or nothing is encrypted.
    Open(Token),
    /// Nothing shows who the receiver is, and there is no token. The receiver says if it wants one.
    Nothing,
    /// Both ends prove that they have it.
    Proved(Password),
}

/// The receiver, and how it is to be met.
struct Receiver {
    /// As a person reads it.
    name: String,
    remotes: Vec<SocketAddr>,
    security: Security,
    is_protected: bool,
    secret: SecretKind,
    showing: Showing,
}

impl Receiver {
    async fn of(dest: &Destination, args: &SendArgs, screen: &Screen) -> Result<Receiver> {
        let key = dest.key(args.security.insecure)?;
        let sources = Sources::new(args, dest)?;
        let calling = Calling::new(&args.security, dest.host(), key, screen)?;
        let remotes = dest.resolve().await?.told(screen);
        let is_code = sources.is_code();
        let token = sources.read(dest, screen)?;
        let secret = if is_code { SecretKind::Code } else { SecretKind::of(dest, &token) };
        let name = match dest.local() {
            Some(local) => format!("{} ({})", local.name, transport::addresses(&remotes)),
            None => transport::addresses(&remotes),
        };
        // Only a receiver that has shown who it is sees the token; others prove that they have it,
        // as this end does. A key that was only announced shows nothing.
        let has_certificate = args.security.certificates.cert.is_some();
        let knows_peer = calling.knows_peer && (has_certificate || dest.local().is_none());
        let is_protected = calling.is_protected();
        let showing = if !is_protected || (knows_peer && !is_code) {
            Showing::Open(token)
        } else if !token.is_empty() {
            Showing::Proved(Password::new(token).map_err(|e| Failure::usage(e.to_string()))?)
        } else if knows_peer {
            Showing::Open(token)
        } else {
            Showing::Nothing
        };
        Ok(Receiver { name, remotes, security: calling.security, is_protected, secret, showing })
    }
}

/// Fails if DEST is among the files.
fn check_order(args: &SendArgs) -> Result<()> {
    let is_ticket = |file: &PathBuf| file.to_str().is_some_and(Ticket::looks_like);
    let mut missing =
        args.words.files.iter().filter(|file| !file.exists() && file.as_os_str() != "-");
    let is_file = Path::new(&args.words.dest).exists();
    let what = match missing.find(|file| is_file || is_ticket(file)) {
        None => return Ok(()),
        Some(file) if is_ticket(file) => "the ticket comes last".to_owned(),
        Some(file) => format!(
            "there is no file {}, but there is one called {}: the destination comes last",
            file.display(),
            args.words.dest
        ),
    };
    Err(Failure::usage(what).hint("manypath send FILE... DEST"))
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
    secret: SecretKind,
    plan: Plan,
    /// The kinds of files that the receiver accepts, if it has said so.
    accepts: Cell<Option<Accepts>>,
    /// Files that are left out.
    omitted: usize,
    message_size: usize,
    files: FileLog,
    measures_latency: bool,
    /// Bytes that the receiver had before.
    resumed: Arc<AtomicU64>,
}

/// A file that was sent to its end.
#[derive(Copy, Clone, Debug)]
struct Sent {
    sha256: [u8; 32],
    length: u64,
}

/// The state of the files shared by both halves of a transfer, feeding and listening.
struct Shared<'a> {
    entries: &'a [Entry],
    /// Files whose status is awaited.
    sent: RefCell<BTreeMap<u32, Sent>>,
    /// Why files were given up whose status is awaited.
    given_up: RefCell<BTreeMap<u32, String>>,
    /// For the thread that reads the files.
    answers: mpsc::Sender<Wish>,
    unwanted: Unwanted,
    peer: &'a str,
    /// The hint after an interruption.
    go_on: &'static str,
    resumed: &'a AtomicU64,
}

/// The surroundings of a transfer while its files are carried.
struct Around<'a> {
    screen: &'a Screen,
    report: &'a ReportArgs,
    views: &'a mut Views,
    record_file: Option<RecordFile>,
    trace_interval: Option<Duration>,
    stall_limit: Option<Duration>,
}

/// The association of a transfer that has ended, for its result.
struct Ended {
    association: Association,
    watch: PathWatch,
    /// How long the receiver's buffer was full.
    blocked: Duration,
}

impl Transfer {
    fn new(
        receiver: &Receiver,
        plan: Plan,
        message_size: usize,
        measures_latency: bool,
    ) -> Transfer {
        Transfer {
            peer: receiver.name.clone(),
            secret: receiver.secret,
            plan,
            accepts: Cell::new(None),
            omitted: 0,
            message_size,
            files: FileLog::default(),
            measures_latency,
            resumed: Arc::default(),
        }
    }

    /// Opens the association, and agrees with the receiver on what is sent.
    async fn connect(
        &mut self,
        endpoint: &Endpoint,
        receiver: Receiver,
        limit: Duration,
        screen: &Screen,
    ) -> Result<Association> {
        let showing = receiver.showing;
        let hello = match &showing {
            Showing::Open(token) => Some(first_frame(self.hello(token.clone()))),
            Showing::Nothing => Some(first_frame(self.hello(Token::default()))),
            Showing::Proved(_) => None,
        };
        let heard = async |association: &Association| match &showing {
            Showing::Open(_) => self.hear_welcome(association).await,
            Showing::Nothing => {
                let answer = self.hear_welcome(association).await;
                unproved(association, &self.peer, answer).await
            }
            Showing::Proved(password) => self.prove_token(association, password).await,
        };
        let association = tokio::select! {
            connected = transport::connect(endpoint, receiver.remotes, limit, hello, heard) => {
                connected?
            }
            () = interrupted() => return Err(Failure::failed("interrupted; nothing was sent")),
        };
        if let Err(failure) = self.settle(screen) {
            transport::abort(&association, reason::INTERRUPTED).await;
            return Err(failure);
        }
        Ok(association)
    }

    /// Sends the files, and shows how it goes.
    async fn carry(
        &mut self,
        association: Association,
        around: Around<'_>,
    ) -> (Result<Measured>, Ended) {
        let Around { screen, report, views, record_file, trace_interval, stall_limit } = around;
        uplinks::say(&association, screen);
        let bytes = self.plan.bytes();
        let watch = PathWatch::start(&association, screen.clone(), bytes.map(Total::Sent));
        let _route_watch = via::watch_routes(&association, trace_interval);
        let counted = Counted::Acked(self.resumed.clone());
        let progress = Progress::start(screen, report, &association, bytes, counted);
        views.open(String::new());
        let record = record_file.map(|file| file.start(&association, None));
        let (heard, go_on, peer) = (Cell::new(0), self.go_on(), self.peer.clone());
        let progress_made = || association.stats().bytes_acked + heard.get();
        let done = tokio::select! {
            done = self.run(&association, &heard) => done,
            () = stall::stalled(stall_limit, progress_made) => {
                transport::abort(&association, reason::STALLED).await;
                Err(stall_failure(&peer, stall_limit))
            }
            () = interrupted() => {
                transport::abort(&association, reason::INTERRUPTED).await;
                Err(Failure::interrupted("interrupted").hint(go_on))
            }
        };
        if let Some(record) = record {
            record.finish(recorded(&done), screen).await;
        }
        views.close().await;
        progress.end().await;
        let blocked = association.stats().receive_buffer_blocked;
        (done, Ended { association, watch, blocked })
    }

    /// Tells the result, to a person or as JSON.
    fn tell(
        self,
        done: Result<Measured>,
        ended: Option<Ended>,
        preset: &'static str,
        report: &ReportArgs,
        screen: &Screen,
    ) -> Result<()> {
        let failure = self.failure(&done);
        let error = failure.as_ref().map(|f| f.message.clone());
        let mut result = TransferResult::new(preset, self.files, error);
        let mut shares = Vec::new();
        if let Some(Ended { association, watch, blocked }) = ended {
            shares = watch.shares(&association);
            result.secured(&association);
            (result.paths, result.notices) = (watch.report(&association), watch.notices());
            result.receive_buffer_blocked_s = Some(blocked.as_secs_f64());
        }
        result.resumed_bytes = self.resumed.load(Ordering::Relaxed);
        result.files_omitted = Some(self.omitted);
        if let Ok(measured) = done {
            result.measured(&measured.summary, measured.time);
            result.message_latency_p99_s = measured.latency_p99_s;
            let sent: u64 = result.paths.iter().map(|path| path.stats.counters.bytes_sent).sum();
            result.overhead = (result.bytes > 0).then(|| sent as f64 / result.bytes as f64);
            if result.completed || result.bytes > 0 {
                result.tell(screen, &shares);
            }
        }
        result.tell_failures(screen);
        if report.json {
            output::print(&result.json_line())?;
        }
        failure.map_or(Ok(()), Err)
    }

    /// The frame that introduces us to the receiver.
    fn hello(&self, token: Token) -> Vec<u8> {
        let (entries, bytes) = self.plan.least();
        let has_unknown_size = self.plan.bytes().is_none();
        ClientFrame::Hello(Hello { has_unknown_size, ..Hello::new(token, entries, bytes) }).encode()
    }

    /// The hint after an interruption.
    fn go_on(&self) -> &'static str {
        if self.plan.bytes().is_some() { GO_ON } else { BEGIN_ANEW }
    }

    /// Leaves out what this receiver does not take.
    fn settle(&mut self, screen: &Screen) -> Result<()> {
        match self.accepts.get() {
            // A receiver that does not say it is of an earlier version.
            None if self.plan.bytes().is_none() => {
                let what = format!(
                    "{} takes no standard input or other files of unknown size: its version is older; \
                     nothing was sent",
                    self.peer
                );
                return Err(Failure::failed(what)
                    .hint("install this version there, or write a file and send that"));
            }
            Some(Accepts { hidden: false }) => {
                let hidden = self.plan.leave_out_hidden();
                self.omitted += hidden;
                if hidden > 0 {
                    let files = if hidden == 1 {
                        "1 hidden file"
                    } else {
                        &format!("{hidden} hidden files")
                    };
                    screen.line(&format!(
                        "left out {files}: the receiver takes none without `recv --hidden`"
                    ));
                }
            }
            Some(_) | None => {}
        }
        self.plan.unsent.iter().for_each(|unsent| self.files.add_unsent(unsent));
        let reads_terminal = std::io::stdin().is_terminal()
            && self.plan.entries.iter().any(|entry| entry.source == Source::StandardInput);
        if reads_terminal {
            screen.line("reading from this terminal until Ctrl-D");
        }
        Ok(())
    }

    /// Proves the token to a receiver that must prove it, too; then says hello.
    async fn prove_token(&self, association: &Association, token: &Password) -> Answer {
        let mut messages = Messages::default();
        let failure = match prove(association, &mut messages, token, WELCOME_TIME_MAX).await {
            Ok(()) => {
                return match send_frame(association, self.hello(Token::default())).await {
                    Ok(()) => self.hear_welcome(association).await,
                    Err(error) => Answer::Failed(send_failure(&error, &self.peer)),
                };
            }
            Err(NotProved::Closed(closed)) => return self.sent_away(closed),
            Err(NotProved::Unproved(closed)) => {
                self.secret.unproved(SERVER, &self.peer, closed.as_ref())
            }
            Err(NotProved::Wrong) => self.secret.not_proved(SERVER, &self.peer),
            Err(NotProved::Protocol) => protocol_error(&self.peer),
            Err(NotProved::NoRandomness) => Failure::failed("the system gives no random numbers"),
        };
        transport::abort(association, reason::NOT_AUTHORISED).await;
        Answer::Failed(failure)
    }

    /// The answer of a receiver that has ended the association.
    fn sent_away(&self, closed: AssocClosed) -> Answer {
        let failure = match &closed {
            AssocClosed::PeerAborted { reason, .. }
                if reason.starts_with(reason::NOT_AUTHORISED.as_bytes()) =>
            {
                self.secret.wrong(SERVER, &self.peer)
            }
            closed => refusal(closed, &self.peer),
        };
        Answer::Ended(closed, failure)
    }

    /// Hears what the receiver says to our hello.
    async fn hear_welcome(&self, association: &Association) -> Answer {
        let (messages, heard) = (Messages::default(), &Cell::new(0));
        let (peer, go_on) = (&self.peer, self.go_on());
        let mut answers = Answers { association, messages, peer, go_on, heard };
        let Ok(frame) = tokio::time::timeout(WELCOME_TIME_MAX, answers.message()).await else {
            transport::abort(association, reason::PROTOCOL).await;
            let what = format!("{} does not answer the transfer protocol", self.peer);
            let hint = "check that `manypath recv` listens there";
            return Answer::Failed(Failure::failed(what).hint(hint));
        };
        match frame {
            Err(closed) => self.sent_away(closed),
            Ok(Ok(ServerFrame::Welcome(accepts))) => {
                self.accepts.set(accepts);
                Answer::Welcome
            }
            Ok(Ok(_)) => Answer::Failed(protocol_error(&self.peer)),
            Ok(Err(failure)) => Answer::Failed(failure),
        }
    }

    /// `heard` counts what the receiver says.
    async fn run(&mut self, association: &Association, heard: &Cell<u64>) -> Result<Measured> {
        let (messages, go_on) = (Messages::default(), self.go_on());
        let answers = Answers { association, messages, peer: &self.peer, go_on, heard };
        let entries: Arc<[Entry]> = std::mem::take(&mut self.plan.entries).into();
        let (answers_tx, answers_rx) = mpsc::channel(ANSWERS);
        let shared = Shared {
            entries: &entries,
            sent: RefCell::default(),
            given_up: RefCell::default(),
            answers: answers_tx,
            unwanted: Unwanted::none(),
            peer: &self.peer,
            go_on,
            resumed: &self.resumed,
        };
        let wishes = Wishes { answers: answers_rx, unwanted: shared.unwanted.clone() };
        let mut pieces = read(entries.clone(), self.message_size, wishes);
        let latency = self.measures_latency.then(|| AckLatency::start(association));
        let to = Outlet { association, latency: latency.as_ref() };
        let feeding = feed(to, &shared, &mut pieces);
        let (fed, summary) =
            tokio::try_join!(feeding, answers.until_summary(&shared, &mut self.files))?;
        let settle = Duration::from_nanos(summary.settle_ns);
        let time = fed.begin.map_or(Duration::ZERO, |begin| begin.elapsed().saturating_sub(settle));
        let latency_p99_s = latency.as_ref().and_then(AckLatency::p99_s);
        transport::finish(association).await;
        Ok(Measured { summary, time, latency_p99_s })
    }

    /// Why the command fails, if it does.
    fn failure(&self, done: &Result<Measured>) -> Option<Failure> {
        match done {
            Err(failure) => Some(failure.clone()),
            Ok(_) => self.files.failure(),
        }
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
