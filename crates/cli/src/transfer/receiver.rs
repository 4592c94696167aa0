//! One transfer at its receiving end, from the hello to the summary.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use manypath::{AssocClosed, Association};
use manypath_files::SystemDisk;
use manypath_live::Total;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::frame::{ClientFrame, FrameError, Hello, ServerFrame, VERSION, reason};
use super::messages::{Incoming, Messages, send_frame};
use super::password::Secret;
use super::report::{DeliveryMeter, FileLog, TransferResult};
use super::sink::{Done, Holder, Said, Store, Work};
use super::{resumable, stall};
use crate::args::ReportArgs;
use crate::failure::Failure;
use crate::paths::PathWatch;
use crate::progress::{Counted, Progress};
use crate::screen::Screen;
use crate::security;
use crate::signals::interrupted;
use crate::transport::{self, HELLO_TIME_MAX, closed_failure};

/// The hint after a transfer was interrupted.
const GO_ON: &str =
    "let the sender send again, to the same directory: only what is missing travels";
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
    pub store: Store<SystemDisk>,
    /// How long a transfer may make no progress.
    pub stall_limit: Option<Duration>,
    /// The preset's name, for the result.
    pub preset: &'static str,
    /// Messages for the user.
    pub screen: Screen,
    /// How results are reported.
    pub report: ReportArgs,
    /// Prints progress as JSON records.
    pub progress_records: bool,
}

/// A sender that showed the right token.
#[derive(Debug)]
pub(crate) struct Admitted {
    association: Association,
    peer: SocketAddr,
    messages: Messages,
    total: u64,
}

impl Admitted {
    /// Tells the sender to begin.
    pub(crate) async fn welcome(&self) -> std::result::Result<(), manypath::SendError> {
        send_frame(&self.association, ServerFrame::Welcome.encode()).await
    }
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
            Ok(hello) => match self.store.refuses(hello.bytes) {
                Some((outcome, why)) => format!("{}: {}: {why}", reason::REFUSED, outcome.name()),
                None => return Ok(Admitted { association, peer, messages, total: hello.bytes }),
            },
            Err(Broken::Closed(closed)) => return Err(closed.to_string()),
            Err(Broken::Refused(why)) => why,
            Err(broken) => broken.reason(),
        };
        transport::abort(&association, &refused).await;
        Err(refused)
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
        let Admitted { association, peer, mut messages, total } = admitted;
        self.screen.line(&format!("receiving from {peer}"));
        let watch =
            PathWatch::start(&association, self.screen.clone(), Some(Total::Received(total)));
        let received = Arc::new(AtomicU64::new(0));
        let counted = Counted::Received(received.clone());
        let progress = Progress::start(&self.screen, &self.report, &association, total, counted);
        let records = self.progress_records.then(|| progress_records(received.clone()));

        let meter = DeliveryMeter::new(Instant::now());
        let (work_tx, work_rx) = mpsc::channel(WRITE_BEHIND);
        let (said_tx, said_rx) = mpsc::channel(ANSWERS_WAITING);
        let store = self.store.clone();
        let holder = Arc::<Holder>::default();
        let held = holder.clone();
        let writing = tokio::task::spawn_blocking(move || store.write_all(held, work_rx, &said_tx));
        let answering = tokio::spawn(answer(association.clone(), said_rx));
        let order = Order::default();
        let heard = Arc::new(AtomicU64::new(0));
        let progress_made = || heard.load(Ordering::Relaxed) + association.stats().bytes_acked;
        let mut intake = Intake {
            association: &association,
            work: work_tx,
            meter,
            received: received.clone(),
            heard: &heard,
            resumed: 0,
            order,
        };
        let taken = tokio::select! {
            taken = intake.run(&mut messages) => taken,
            () = stall::stalled(self.stall_limit, progress_made) => Err(Broken::Stalled(self.stall_limit)),
            () = interrupted() => Err(Broken::Interrupted),
            () = replaced(&holder, &heard) => Err(Broken::Replaced),
        };
        let (meter, resumed) = intake.end();
        // Both tasks end once the work's channel is closed, and an unfinished file is gone before
        // we are; but the disk may hang, and a peer may take no answers.
        let stored = match &taken {
            Err(Broken::Stalled(_)) => {
                transport::abort(&association, reason::STALLED).await;
                tokio::time::timeout(STALLED_WRITER_TIME_MAX, writing).await.unwrap_or(Ok(()))
            }
            _ => writing.await,
        };
        let (taken, files) = tokio::select! {
            files = answering => (taken, files.unwrap_or_default()),
            () = stall::stalled(self.stall_limit, || association.stats().bytes_acked) => {
                (taken.and(Err(Broken::Stalled(self.stall_limit))), FileLog::default())
            }
        };
        let failure = match (&taken, stored) {
            (Ok(()), Ok(())) => self.conclude(&association, &meter, &files).await,
            (Ok(()), Err(_)) => Some(Failure::failed("the writing thread failed")),
            (Err(broken), _) => {
                if !matches!(broken, Broken::Closed(_)) {
                    transport::abort(&association, &broken.reason()).await;
                }
                Some(broken.failure(peer))
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
        (result, failure)
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
        let (outcome, text) = files.first_failure.as_ref()?;
        let what = format!("{} of {} not stored; the first: {text}", files.failed, files.total);
        let failure = Failure::failed(what);
        Some(match outcome.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        })
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

    fn failure(&self, peer: SocketAddr) -> Failure {
        match self {
            Broken::Closed(AssocClosed::PeerAborted { reason, .. })
                if reason.starts_with(reason::INTERRUPTED.as_bytes()) =>
            {
                Failure::interrupted(format!("the sender at {peer} was stopped")).hint(GO_ON)
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
                resumable(closed, failure, GO_ON)
            }
            Broken::Stalled(limit) => Failure::interrupted(format!(
                "no progress for {}: the sender at {peer} answers, but sends nothing more",
                stall::shown(*limit)
            ))
            .hint("check the sender, and the disk here; --stall-timeout changes this limit"),
            Broken::Interrupted => Failure::interrupted("interrupted").hint(GO_ON),
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

/// The step that a frame asks for.
#[derive(Debug)]
enum Step {
    /// The disk has something to do.
    Work(Work),
    /// Nothing: the sender is still there.
    Nothing,
    /// It was the last.
    End,
}

/// The order that a sender keeps.
#[derive(Debug, Default)]
struct Order {
    /// The index of the file whose content comes.
    current: Option<u32>,
    /// The next header's index.
    next: u32,
    /// The least index of the next file that begins.
    least: u32,
}

impl Order {
    /// Content came.
    fn content(&self) -> std::result::Result<(), Broken> {
        self.current.map(|_| ()).ok_or(Broken::Order("content outside a file"))
    }

    fn frame(&mut self, bytes: &[u8]) -> std::result::Result<Step, Broken> {
        match ClientFrame::decode(bytes).map_err(Broken::Frame)? {
            ClientFrame::File(header) => {
                if header.index != self.next {
                    return Err(Broken::Order("a file out of order"));
                }
                self.next = self.next.checked_add(1).ok_or(Broken::Order("too many files"))?;
                Ok(Step::Work(Work::Announce(header)))
            }
            ClientFrame::Begin { index, offset } => {
                if self.current.is_some() || index < self.least || index >= self.next {
                    return Err(Broken::Order("the beginning of a file out of order"));
                }
                self.current = Some(index);
                self.least = index + 1;
                Ok(Step::Work(Work::Begin { index, offset }))
            }
            ClientFrame::End { index, sha256 } => match self.current.take() {
                Some(current) if current == index => Ok(Step::Work(Work::End(sha256))),
                _ => Err(Broken::Order("the end of another file")),
            },
            ClientFrame::Working => Ok(Step::Nothing),
            ClientFrame::Finish { entries } if self.current.is_none() && entries == self.next => {
                Ok(Step::End)
            }
            ClientFrame::Finish { .. } => Err(Broken::Order("an end before all files")),
            ClientFrame::Hello(_) | ClientFrame::Password(_) => {
                Err(Broken::Order("a second hello"))
            }
        }
    }
}

/// Tells the sender what is there and what becomes of each file, and keeps the list.
async fn answer(association: Association, mut said: mpsc::Receiver<Said>) -> FileLog {
    let mut files = FileLog::default();
    while let Some(said) = said.recv().await {
        let frame = match said {
            Said::Ready(ready) => ServerFrame::Ready(ready),
            Said::Working => ServerFrame::Working,
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
fn progress_records(received: Arc<AtomicU64>) -> JoinHandle<()> {
    let begin = Instant::now();
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(Duration::from_millis(50));
        loop {
            ticks.tick().await;
            let bytes = received.load(Ordering::Relaxed);
            let elapsed = begin.elapsed().as_secs_f64();
            let record =
                serde_json::json!({ "event": "progress", "elapsed_s": elapsed, "bytes": bytes });
            if crate::show::print(&format!("{record}\n")).is_err() {
                return;
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::frame::{FileHeader, Hello, Kind};
    use crate::transfer::relative::RelativePath;

    fn announce(index: u32, kind: Kind) -> ClientFrame {
        let name = RelativePath::from_bytes(b"x").unwrap();
        ClientFrame::File(FileHeader { index, kind, size: 1, mode: None, modified: None, name })
    }

    fn begin(index: u32) -> ClientFrame {
        ClientFrame::Begin { index, offset: 0 }
    }

    fn end(index: u32) -> ClientFrame {
        ClientFrame::End { index, sha256: None }
    }

    /// Takes `frames` in order; the text of the first refusal.
    fn take(frames: &[ClientFrame]) -> std::result::Result<Order, &'static str> {
        let mut order = Order::default();
        for frame in frames {
            match order.frame(&frame.encode()) {
                Ok(_) => {}
                Err(Broken::Order(what)) => return Err(what),
                Err(other) => panic!("{other:?}"),
            }
        }
        Ok(order)
    }

    #[test]
    fn content_is_taken_within_a_file_only() {
        let has_content = |frames: &[ClientFrame]| take(frames).unwrap().content().is_ok();
        let file = announce(0, Kind::File);
        assert!(!has_content(&[]));
        assert!(!has_content(&[announce(0, Kind::Directory)]));
        assert!(!has_content(std::slice::from_ref(&file)));
        assert!(has_content(&[file.clone(), begin(0)]));
        assert!(has_content(&[file.clone(), begin(0), announce(1, Kind::File)]));
        assert!(!has_content(&[file, begin(0), end(0)]));
    }

    #[test]
    fn frames_out_of_order_are_refused() {
        let (file, directory) = (|n| announce(n, Kind::File), |n| announce(n, Kind::Directory));
        let finish = |entries| ClientFrame::Finish { entries };
        let hello =
            ClientFrame::Hello(Hello { version: VERSION, token: vec![], entries: 0, bytes: 0 });
        let all = [directory(0), file(1), file(2), file(3), begin(1), ClientFrame::Working, end(1)];
        assert!(take(&[&all[..], &[begin(3), end(3), finish(4)]].concat()).is_ok());
        let beginning = "the beginning of a file out of order";
        for (frames, what) in [
            (vec![file(1)], "a file out of order"),
            (vec![file(0), file(0)], "a file out of order"),
            (vec![begin(0)], beginning),
            (vec![file(0), begin(0), begin(0)], beginning),
            (vec![file(0), file(1), begin(1), end(1), begin(0)], beginning),
            (vec![file(0), begin(0), end(0), begin(0)], beginning),
            (vec![file(0), begin(1)], beginning),
            (vec![end(0)], "the end of another file"),
            (vec![file(0), end(0)], "the end of another file"),
            (vec![file(0), begin(0), end(1)], "the end of another file"),
            (vec![file(0), begin(0), end(0), end(0)], "the end of another file"),
            (vec![file(0), begin(0), finish(1)], "an end before all files"),
            (vec![file(0), begin(0), end(0), finish(2)], "an end before all files"),
            (vec![hello], "a second hello"),
        ] {
            assert_eq!(take(&frames).unwrap_err(), what, "{frames:?}");
        }
    }
}
