//! One transfer at its receiving end, from the hello to the summary.

mod order;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use manypath::{AssocClosed, Association};
use manypath_live::Total;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::frame::{
    ClientFrame, FileStatus, FrameError, Hello, Outcome, ServerFrame, VERSION, reason,
};
use super::report::{DeliveryMeter, FileLog, TransferResult};
use super::sink::{Done, Holder, Said, Work};
use super::target::Target;
use super::{resumable, stall};
use crate::args::ReportArgs;
use crate::connect::security;
use crate::connect::transport::{self, HELLO_TIME_MAX, closed_failure};
use crate::failure::Failure;
use crate::paths::PathWatch;
use crate::screen::Screen;
use crate::screen::output::Out;
use crate::screen::progress::{Counted, Progress};
use crate::signals::interrupted;
use manypath_transfer::messages::{Incoming, Messages, send_frame};
use manypath_transfer::password::Secret;
use order::{Order, Step};

/// The hint after a transfer was interrupted.
const GO_ON: &str =
    "let the sender send again, to the same directory: only what is missing travels";
/// The hint if nothing was kept.
const SEND_AGAIN: &str = "let the sender send again, all of it";
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

/// The state shared by all transfers of a receiver.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// The token that senders must have.
    pub secret: Secret,
    /// Where files go.
    pub target: Target,
    /// How long a transfer may make no progress.
    pub stall_limit: Option<Duration>,
    /// The preset's name, for the result.
    pub preset: &'static str,
    /// Messages for the user.
    pub screen: Screen,
    /// How results are reported.
    pub report: ReportArgs,
    /// Where results as JSON go.
    pub out: Out,
    /// Prints progress as JSON records.
    pub progress_records: bool,
}

/// A sender that showed the right token.
#[derive(Debug)]
pub(crate) struct Admitted {
    association: Association,
    peer: SocketAddr,
    messages: Messages,
    hello: Hello,
}

impl Admitted {
    /// Bytes that will come, if that is known.
    fn total(&self) -> Option<u64> {
        (!self.hello.has_unknown_size).then_some(self.hello.bytes)
    }
}

/// The outcome of storing what a sender sends.
struct Stored {
    files: FileLog,
    meter: DeliveryMeter,
    /// Bytes that were there before.
    resumed: u64,
    taken: std::result::Result<(), Broken>,
    has_writer_failed: bool,
}

impl Receiver {
    /// Hears the hello of whoever opened `association`. A stranger is sent away with the reason,
    /// which is returned.
    pub(crate) async fn admit(
        &self,
        association: Association,
        peer: SocketAddr,
    ) -> std::result::Result<Admitted, String> {
        let mut messages = Messages::default();
        let refused = match self.hear_hello(&association, &mut messages).await {
            Ok(hello) if hello.version != VERSION => {
                format!("{}: this side uses version {VERSION}", reason::PROTOCOL)
            }
            Ok(hello) => match self.target.refuses(&hello) {
                Some(why) => format!("{}: {why}", reason::REFUSED),
                None => return Ok(Admitted { association, peer, messages, hello }),
            },
            Err(Broken::Closed(closed)) => return Err(closed.to_string()),
            Err(Broken::Refused(why)) => why,
            Err(broken) => broken.reason(),
        };
        transport::abort(&association, &refused).await;
        Err(refused)
    }

    /// Tells a sender to begin, and what it may send, if it asks for that.
    pub(crate) async fn welcome(
        &self,
        admitted: &Admitted,
    ) -> std::result::Result<(), manypath::SendError> {
        let accepts = admitted.hello.reads_accepts.then(|| self.target.accepts());
        send_frame(&admitted.association, ServerFrame::Welcome(accepts).encode()).await
    }

    /// The hello of a sender that has the right token: it shows it there, or has proved it before.
    async fn hear_hello(
        &self,
        association: &Association,
        messages: &mut Messages,
    ) -> std::result::Result<Hello, Broken> {
        let no_hello = || Broken::Refused(format!("{}: no hello", reason::PROTOCOL));
        match next_in_time(association, messages).await? {
            ClientFrame::Password(share) => {
                let check = self.secret.begin(association, &share).await;
                let check = check.map_err(Broken::Refused)?;
                let ClientFrame::Password(proof) = next_in_time(association, messages).await?
                else {
                    return Err(no_hello());
                };
                check.end(association, &proof).await.map_err(Broken::Refused)?;
                match next_in_time(association, messages).await? {
                    ClientFrame::Hello(hello) => Ok(hello),
                    _ => Err(no_hello()),
                }
            }
            ClientFrame::Hello(hello) if security::has_certificate(association) => Ok(hello),
            ClientFrame::Hello(hello) => {
                let checked = self.secret.check(association, &hello.token).await;
                checked.map(|()| hello).map_err(Broken::Refused)
            }
            _ => Err(no_hello()),
        }
    }

    /// Receives everything from an admitted sender. Returns the result and why it failed, if it
    /// did.
    pub(crate) async fn receive(&self, admitted: Admitted) -> (TransferResult, Option<Failure>) {
        let total = admitted.total();
        let Admitted { association, peer, mut messages, .. } = admitted;
        self.screen.line(&format!("receiving from {peer}"));
        let watch = PathWatch::start(&association, self.screen.clone(), total.map(Total::Received));
        let received = Arc::new(AtomicU64::new(0));
        let counted = Counted::Received(received.clone());
        let progress = Progress::start(&self.screen, &self.report, &association, total, counted);
        let records = self.progress_records.then(|| progress_records(self.out, received.clone()));

        let stored = self.store(&association, &mut messages, &received).await;
        let Stored { files, meter, resumed, .. } = stored;
        let failure = match stored.taken {
            Ok(()) if stored.has_writer_failed => {
                Some(Failure::failed("the writing thread failed"))
            }
            Ok(()) => self.conclude(&association, &meter, &files).await,
            Err(broken) => {
                if !matches!(broken, Broken::Closed(_)) {
                    transport::abort(&association, &broken.reason()).await;
                }
                Some(broken.failure(peer, if self.target.is_stream() { SEND_AGAIN } else { GO_ON }))
            }
        };
        progress.end().await;
        if let Some(records) = records {
            records.abort();
        }
        let error = failure.as_ref().map(|f| f.message.clone());
        let summary = meter.summary(Instant::now(), &files);
        let mut result = TransferResult::new(self.preset, files, error);
        result.secured(&association);
        result.measured(&summary, meter.transfer_time());
        result.resumed_bytes = resumed;
        (result.paths, result.notices) = (watch.report(&association), watch.notices());
        if failure.is_none() {
            result.tell(&self.screen, &watch.shares(&association));
        }
        result.tell_failures(&self.screen);
        (result, failure)
    }

    /// Takes messages and writes what is in them, until the sender has said all or something breaks
    /// it off. `received` counts the bytes.
    async fn store(
        &self,
        association: &Association,
        messages: &mut Messages,
        received: &Arc<AtomicU64>,
    ) -> Stored {
        let (work_tx, work_rx) = mpsc::channel(WRITE_BEHIND);
        let (said_tx, said_rx) = mpsc::channel(ANSWERS_WAITING);
        let (target, unnamed) = (self.target.clone(), said_tx.clone());
        let holder = Arc::<Holder>::default();
        let held = holder.clone();
        let writing = tokio::task::spawn_blocking(move || target.write(held, work_rx, &said_tx));
        let answering = tokio::spawn(answer(association.clone(), said_rx, self.screen.clone()));
        let heard = Arc::new(AtomicU64::new(0));
        let progress_made = || heard.load(Ordering::Relaxed) + association.stats().bytes_acked;
        let mut intake = Intake {
            association,
            work: work_tx,
            unnamed,
            meter: DeliveryMeter::new(Instant::now()),
            received: received.clone(),
            heard: &heard,
            resumed: 0,
            order: Order::default(),
        };
        let taken = tokio::select! {
            taken = intake.run(messages) => taken,
            () = stall::stalled(self.stall_limit, progress_made) => Err(Broken::Stalled(self.stall_limit)),
            () = interrupted() => Err(Broken::Interrupted),
            () = replaced(&holder, &heard) => Err(Broken::Replaced),
        };
        let (meter, resumed) = intake.end();
        // Both tasks end once the work's channel is closed, and an unfinished file is gone before
        // we are; but the disk may hang, whoever reads a stream, too, and a peer may take no
        // answers.
        if let Err(Broken::Stalled(_)) = &taken {
            transport::abort(association, reason::STALLED).await;
        }
        let may_hang = matches!(&taken, Err(Broken::Stalled(_)))
            || (taken.is_err() && self.target.is_stream());
        let written = if may_hang {
            tokio::time::timeout(STALLED_WRITER_TIME_MAX, writing).await.ok()
        } else {
            Some(writing.await)
        };
        let (taken, files) = tokio::select! {
            files = answering => (taken, files.unwrap_or_default()),
            () = std::future::ready(()), if written.is_none() => (taken, FileLog::default()),
            () = stall::stalled(self.stall_limit, || association.stats().bytes_acked) => {
                (taken.and(Err(Broken::Stalled(self.stall_limit))), FileLog::default())
            }
        };
        let has_writer_failed = written.is_some_and(|written| written.is_err());
        Stored { files, meter, resumed, taken, has_writer_failed }
    }

    /// With `--json`, prints the result of a receiver that ended before a sender came.
    pub(crate) fn tell_of_nobody(&self, failure: &Failure) -> crate::failure::Result<()> {
        if !self.report.json {
            return Ok(());
        }
        let error = Some(failure.message.clone());
        let result = TransferResult::new(self.preset, FileLog::default(), error);
        self.out.print(&result.json_line())
    }

    /// Tells the sender what became of its files, and lets it end the association.
    async fn conclude(
        &self,
        association: &Association,
        meter: &DeliveryMeter,
        files: &FileLog,
    ) -> Option<Failure> {
        let summary = ServerFrame::Summary(meter.summary(Instant::now(), files));
        // A sender that is gone before it hears this changes nothing about what is stored.
        let _ = send_frame(association, summary.encode()).await;
        tokio::select! {
            () = transport::let_peer_finish(association) => {}
            () = stall::stalled(self.stall_limit, || association.stats().bytes_acked) => {}
        }
        files.failure()
    }
}

/// Why a transfer stopped before its end.
#[derive(Debug)]
enum Broken {
    /// The association is over.
    Closed(AssocClosed),
    /// A frame that is not understood.
    Frame(FrameError),
    /// Something out of order.
    Order(&'static str),
    /// Our user stopped us.
    Interrupted,
    /// Another transfer of the same file came while this one had nothing to say.
    Replaced,
    /// It is sent away for this reason.
    Refused(String),
    /// Nothing went on for this time.
    Stalled(Option<Duration>),
    /// The writing thread is gone.
    Writer,
}

impl Broken {
    /// The reason for the peer.
    fn reason(&self) -> String {
        match self {
            Broken::Interrupted => reason::INTERRUPTED.to_owned(),
            Broken::Replaced => {
                format!("{}: another transfer takes its place", reason::INTERRUPTED)
            }
            Broken::Stalled(_) => reason::STALLED.to_owned(),
            Broken::Frame(e) => format!("{}: {e}", reason::PROTOCOL),
            Broken::Order(what) => format!("{}: {what}", reason::PROTOCOL),
            Broken::Refused(why) => why.clone(),
            Broken::Closed(_) | Broken::Writer => "the receiver failed".to_owned(),
        }
    }

    fn failure(&self, peer: SocketAddr, go_on: &str) -> Failure {
        match self {
            Broken::Closed(AssocClosed::PeerAborted { reason, .. })
                if reason.starts_with(reason::INTERRUPTED.as_bytes()) =>
            {
                Failure::interrupted(format!("the sender at {peer} was stopped")).hint(go_on)
            }
            Broken::Closed(AssocClosed::PeerAborted { reason, .. })
                if reason.starts_with(reason::STALLED.as_bytes()) =>
            {
                Failure::interrupted(format!(
                    "the sender at {peer} gave up: the transfer made no progress"
                ))
                .hint("check whether the disk here is slow or hangs")
            }
            Broken::Closed(closed) => {
                let failure = closed_failure(closed, &format!("the sender at {peer}"));
                resumable(closed, failure, go_on)
            }
            Broken::Stalled(limit) => Failure::interrupted(format!(
                "no progress for {}: the sender at {peer} answers, but sends nothing more",
                stall::shown(*limit)
            ))
            .hint("check the sender, and the disk here; --stall-timeout changes this limit"),
            Broken::Interrupted => Failure::interrupted("interrupted").hint(go_on),
            Broken::Replaced => Failure::interrupted(format!(
                "the sender at {peer} fell silent; another transfer of the same file goes on"
            )),
            other => Failure::failed(format!("the sender at {peer}: {}", other.reason())),
        }
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

/// The next frame of a peer that has not shown its token, if it comes soon.
async fn next_in_time(
    association: &Association,
    messages: &mut Messages,
) -> std::result::Result<ClientFrame, Broken> {
    let frame = tokio::time::timeout(HELLO_TIME_MAX, next_frame(association, messages));
    let late = |_| Broken::Refused(format!("{}: no hello in time", reason::PROTOCOL));
    frame.await.map_err(late)?
}

/// The next frame, where no content may come.
async fn next_frame(
    association: &Association,
    messages: &mut Messages,
) -> std::result::Result<ClientFrame, Broken> {
    match next(association, messages).await? {
        Incoming::Frame(bytes) => ClientFrame::decode(&bytes).map_err(Broken::Frame),
        Incoming::Content(_) => Err(Broken::Order("content before a file")),
    }
}

async fn next(
    association: &Association,
    messages: &mut Messages,
) -> std::result::Result<Incoming, Broken> {
    loop {
        let message = association.recv().await.map_err(Broken::Closed)?;
        let message = message.ok_or(Broken::Closed(AssocClosed::Shutdown))?;
        match messages.take(message) {
            Ok(Some(incoming)) => return Ok(incoming),
            Ok(None) => {}
            Err(_) => return Err(Broken::Order("a message of another protocol")),
        }
    }
}

/// Takes what arrives and passes it to the disk.
struct Intake<'a> {
    association: &'a Association,
    work: mpsc::Sender<Work>,
    /// For entries that the disk never sees.
    unnamed: mpsc::Sender<Said>,
    meter: DeliveryMeter,
    /// Content, and what was there before.
    received: Arc<AtomicU64>,
    /// Messages.
    heard: &'a AtomicU64,
    /// Content that was there before.
    resumed: u64,
    order: Order,
}

impl Intake<'_> {
    /// Runs until the sender has nothing more.
    async fn run(&mut self, messages: &mut Messages) -> std::result::Result<(), Broken> {
        loop {
            let incoming = next(self.association, messages).await?;
            self.heard.fetch_add(1, Ordering::Relaxed);
            let work = match incoming {
                Incoming::Content(pieces) => {
                    self.order.content()?;
                    let bytes = pieces.iter().map(bytes::Bytes::len).sum();
                    self.meter.delivered(Instant::now(), bytes);
                    self.received.fetch_add(bytes as u64, Ordering::Relaxed);
                    Work::Content(pieces)
                }
                Incoming::Frame(bytes) => match self.order.frame(&bytes)? {
                    Step::Work(work) => work,
                    Step::Unnamed(unnamed) => {
                        let said = self.unnamed.send(Said::Unnamed(unnamed)).await;
                        said.map_err(|_| Broken::Writer)?;
                        continue;
                    }
                    Step::Nothing => continue,
                    Step::End => return Ok(()),
                },
            };
            if let Work::Begin { offset, .. } = &work {
                self.resumed += offset;
                self.received.fetch_add(*offset, Ordering::Relaxed);
            }
            self.work.send(work).await.map_err(|_| Broken::Writer)?;
        }
    }

    /// Closes the work's channel; the measurements, and the content that was there before.
    fn end(self) -> (DeliveryMeter, u64) {
        (self.meter, self.resumed)
    }
}

/// Tells the sender what is there and what becomes of each file, and keeps the list.
async fn answer(
    association: Association,
    mut said: mpsc::Receiver<Said>,
    screen: Screen,
) -> FileLog {
    let mut files = FileLog::default();
    while let Some(said) = said.recv().await {
        let frame = match said {
            Said::Ready(ready) => ServerFrame::Ready(ready),
            Said::Working => ServerFrame::Working,
            Said::Notice(notice) => {
                screen.line(&notice);
                continue;
            }
            Said::Unnamed(unnamed) => {
                files.add_unnamed(&unnamed);
                let (index, text) = (unnamed.index, unnamed.why.to_string());
                ServerFrame::Status(FileStatus { index, outcome: Outcome::NameRefused, text })
            }
            Said::Done(Done { status, header, sha256 }) => {
                files.add(&header, status.outcome, &status.text, sha256);
                ServerFrame::Status(status)
            }
        };
        // If the association is over, its end is noticed elsewhere; the list still grows.
        let _ = send_frame(&association, frame.encode()).await;
    }
    files
}

/// Prints a progress record every 50 ms until aborted.
fn progress_records(out: Out, received: Arc<AtomicU64>) -> JoinHandle<()> {
    let begin = Instant::now();
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(Duration::from_millis(50));
        loop {
            ticks.tick().await;
            let bytes = received.load(Ordering::Relaxed);
            let elapsed = begin.elapsed().as_secs_f64();
            let record =
                serde_json::json!({ "event": "progress", "elapsed_s": elapsed, "bytes": bytes });
            if out.print(&format!("{record}\n")).is_err() {
                return;
            }
        }
    })
}
