//! The sessions of a receiver: a peer each, from its hello to the result of its transfer.

use std::net::SocketAddr;
use std::time::Duration;

use manypath::{AssocClosed, Association, DirectPathError};
use manypath_live::Total;
use manypath_transfer::{
    DIRECT_PATH_TIME_MAX, Event, Incoming, Options, PeerReason, ReceiveError, Reception, Tally,
    TurnedAway,
};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::target::Place;
use crate::args::ReportArgs;
use crate::connect::strangers::StrangerLines;
use crate::connect::transport::{closed_failure, no_direct_path, resumable};
use crate::failure::{Failure, Result};
use crate::paths::PathWatch;
use crate::screen::Screen;
use crate::screen::figures;
use crate::screen::output::Out;
use crate::screen::progress::{Counted, Progress};
use crate::screen::report::{FileLog, TransferResult};

/// The hint after a transfer was interrupted.
const GO_ON: &str =
    "let the sender send again, to the same directory: only what is missing travels";
/// The hint if nothing was kept.
const SEND_AGAIN: &str = "let the sender send again, all of it";

/// The state that all sessions share.
#[derive(Debug)]
pub(super) struct Sessions {
    pub(super) reception: Reception<Place>,
    pub(super) options: Options,
    /// Messages about strangers.
    pub(super) lines: StrangerLines,
    /// The preset's name, for the result.
    pub(super) preset: &'static str,
    /// Messages for the user.
    pub(super) screen: Screen,
    /// How results are reported.
    pub(super) report: ReportArgs,
    /// Where results as JSON go.
    pub(super) out: Out,
    /// Prints progress as JSON records.
    pub(super) progress_records: bool,
    /// The file goes to standard output, of which nothing can be taken back.
    pub(super) is_stream: bool,
}

impl Sessions {
    /// Hears one peer out. Returns how its transfer ended, or `None` for a stranger.
    pub(super) async fn session(&self, association: Association) -> Option<Result<()>> {
        let incoming = match self.reception.meet(association, &self.options.stop).await {
            Ok(incoming) => incoming,
            Err(TurnedAway::NoDirectPath(peer)) => return Some(self.no_direct_path(peer)),
            Err(turned_away) => {
                self.tell_of_stranger(&turned_away);
                return None;
            }
        };
        // Until the result is out.
        let _place = incoming.place();
        let (result, failure) = self.receive(incoming).await;
        if self.report.json
            && let Err(failure) = self.out.print(&result.json_line())
        {
            return Some(Err(failure));
        }
        Some(failure.map_or(Ok(()), Err))
    }

    /// A sender was admitted, and no direct path to it was found.
    fn no_direct_path(&self, peer: SocketAddr) -> Result<()> {
        let error = DirectPathError::NotFound(DIRECT_PATH_TIME_MAX);
        let failure = no_direct_path(&error, &format!("the sender at {peer}"));
        self.tell_of_nobody(&failure)?;
        Err(failure)
    }

    fn tell_of_stranger(&self, turned_away: &TurnedAway) {
        match turned_away {
            TurnedAway::Rejected(peer, why) => {
                self.lines.say(&format!("rejected {peer}: {why}"));
            }
            TurnedAway::TooManyGuesses(peer) => {
                self.lines.say(&format!("rejected {peer}: too many wrong tokens from its address"));
            }
            _ => {}
        }
    }

    /// Receives everything from an admitted sender, and shows how it goes. Returns the result and
    /// why it failed, if it did.
    async fn receive(&self, incoming: Incoming<Place>) -> (TransferResult, Option<Failure>) {
        let (total, peer) = (incoming.bytes(), incoming.peer());
        let (association, received) = (incoming.association().clone(), incoming.received());
        self.screen.line(&format!("receiving from {peer}"));
        let watch = PathWatch::start(&association, self.screen.clone(), total.map(Total::Received));
        let counted = Counted::Received(received.clone());
        let progress = Progress::start(&self.screen, &self.report, &association, total, counted);
        let records = self.progress_records.then(|| progress_records(self.out, received));
        let mut files = FileLog::default();
        let received = incoming.receive(&self.options, |event| match event {
            Event::Notice(notice) => self.screen.line(notice),
            event => files.note(&event),
        });
        let received = received.await;
        if !received.has_all_events {
            // Of a disk that hangs nobody knows what it has stored.
            files = FileLog::default();
        }
        let failure = match &received.end {
            Ok(()) => files.failure(),
            Err(error) => Some(self.failure(error, peer)),
        };
        progress.end().await;
        if let Some(records) = records {
            records.abort();
        }
        let error = failure.as_ref().map(|f| f.message.clone());
        let mut result = TransferResult::new(self.preset, files, error);
        result.secured(&association);
        result.measured(&received.summary, received.time);
        result.resumed_bytes = received.resumed;
        (result.paths, result.notices) = (watch.report(&association), watch.notices());
        if failure.is_none() {
            result.tell(&self.screen, &watch.shares(&association));
        }
        result.tell_failures(&self.screen);
        (result, failure)
    }

    /// With `--json`, prints the result of a receiver that ended before a sender came.
    pub(super) fn tell_of_nobody(&self, failure: &Failure) -> Result<()> {
        if !self.report.json {
            return Ok(());
        }
        let error = Some(failure.message.clone());
        let result = TransferResult::new(self.preset, FileLog::default(), error);
        self.out.print(&result.json_line())
    }

    /// Why a transfer stopped before its end.
    fn failure(&self, error: &ReceiveError, peer: SocketAddr) -> Failure {
        let go_on = if self.is_stream { SEND_AGAIN } else { GO_ON };
        match error {
            ReceiveError::Closed(closed) => broken_off(closed, peer, go_on),
            ReceiveError::Stalled(limit) => Failure::interrupted(format!(
                "no progress for {}: the sender at {peer} answers, but sends nothing more",
                figures::time(limit.as_secs_f64())
            ))
            .hint("check the sender, and the disk here; --stall-timeout changes this limit"),
            ReceiveError::Stopped => Failure::interrupted("interrupted").hint(go_on),
            ReceiveError::Replaced => Failure::interrupted(format!(
                "the sender at {peer} fell silent; another transfer of the same file goes on"
            )),
            ReceiveError::WriterAtEnd => Failure::failed(error.to_string()),
            other => Failure::failed(format!("the sender at {peer}: {other}")),
        }
    }
}

/// The failure when the association ends before the transfer.
fn broken_off(closed: &AssocClosed, peer: SocketAddr, go_on: &str) -> Failure {
    match PeerReason::of(closed) {
        Some(PeerReason::Interrupted) => {
            Failure::interrupted(format!("the sender at {peer} was stopped")).hint(go_on)
        }
        Some(PeerReason::Stalled) => Failure::interrupted(format!(
            "the sender at {peer} gave up: the transfer made no progress"
        ))
        .hint("check whether the disk here is slow or hangs"),
        _ => {
            let failure = closed_failure(closed, &format!("the sender at {peer}"));
            resumable(closed, failure, go_on)
        }
    }
}

/// Prints a progress record every 50 ms until aborted.
fn progress_records(out: Out, received: Tally) -> JoinHandle<()> {
    let begin = Instant::now();
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(Duration::from_millis(50));
        loop {
            ticks.tick().await;
            let (bytes, elapsed) = (received.get(), begin.elapsed().as_secs_f64());
            let record =
                serde_json::json!({ "event": "progress", "elapsed_s": elapsed, "bytes": bytes });
            if out.print(&format!("{record}\n")).is_err() {
                return;
            }
        }
    })
}
