//! The half of a transfer that listens: what the receiver answers, and what its end means.

use std::cell::Cell;
use std::time::Duration;

use manypath::{AssocClosed, Association};
use tokio::sync::mpsc::error::TrySendError;

use super::Shared;
use crate::connect::transport::closed_failure;
use crate::failure::{Failure, Result};
use crate::transfer::frame::{Outcome, ServerFrame, Summary, reason};
use crate::transfer::relative::printable;
use crate::transfer::report::FileLog;
use crate::transfer::source::Answer as Wish;
use crate::transfer::{resumable, stall};
use manypath_transfer::messages::{Incoming, Messages};

/// Reads what the receiver answers.
pub(super) struct Answers<'a> {
    pub(super) association: &'a Association,
    pub(super) messages: Messages,
    pub(super) peer: &'a str,
    /// The hint after an interruption.
    pub(super) go_on: &'static str,
    /// Counts what it says.
    pub(super) heard: &'a Cell<u64>,
}

impl Answers<'_> {
    async fn next(&mut self) -> Result<ServerFrame> {
        self.message().await.map_err(|closed| broken_off(&closed, self.peer, self.go_on))?
    }

    /// The next frame; how the association ended, if it did.
    pub(super) async fn message(
        &mut self,
    ) -> std::result::Result<Result<ServerFrame>, AssocClosed> {
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

    pub(super) async fn until_summary(
        mut self,
        shared: &Shared<'_>,
        files: &mut FileLog,
    ) -> Result<Summary> {
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
                    // The receiver knows only that it was given up.
                    let given_up = shared.given_up.borrow_mut().remove(&index);
                    let text = given_up.unwrap_or_else(|| printable(&status.text));
                    let sent = shared.sent.borrow_mut().remove(&index);
                    let mut header = entry.header.clone();
                    header.size = header.known_size().unwrap_or(sent.map_or(0, |s| s.length));
                    files.add(&header, status.outcome, &text, sent.map(|sent| sent.sha256));
                }
                ServerFrame::Ready(ready) => self.answer(shared, Wish::Ready(ready))?,
                ServerFrame::Working => {}
                ServerFrame::Summary(summary) => return Ok(summary),
                ServerFrame::Welcome(_) | ServerFrame::Password(_) => {
                    return Err(protocol_error(self.peer));
                }
            }
        }
    }
}

pub(super) fn stall_failure(peer: &str, limit: Option<Duration>) -> Failure {
    let what = format!(
        "no progress for {}: {peer} answers, but accepts no more data",
        stall::shown(limit)
    );
    Failure::interrupted(what)
        .hint("check the receiver and its disk; --stall-timeout changes this limit")
}

pub(super) fn protocol_error(peer: &str) -> Failure {
    Failure::failed(format!("{peer} does not speak this version of the transfer protocol"))
        .hint("use the same version of manypath on both sides, and `manypath recv` on the other")
}

/// The failure when the association ends during a transfer.
pub(super) fn broken_off(closed: &AssocClosed, peer: &str, go_on: &str) -> Failure {
    resumable(closed, refusal(closed, peer), go_on)
}

/// The failure that the receiver's ABORT means, but for a wrong secret.
pub(super) fn refusal(closed: &AssocClosed, peer: &str) -> Failure {
    let text = match closed {
        AssocClosed::PeerAborted { reason, .. } => String::from_utf8_lossy(reason),
        other => return closed_failure(other, peer),
    };
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
