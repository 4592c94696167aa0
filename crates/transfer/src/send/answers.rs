//! The half of a transfer that listens: what the receiver answers.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use manypath::{AssocClosed, Association};
use manypath_files::frame::{Outcome, ServerFrame, Summary};
use manypath_files::relative::printable;
use manypath_files::source::Answer;
use tokio::sync::mpsc::error::TrySendError;

use super::{SendError, Shared};
use crate::event::{EntryOutcome, Event, Events};
use crate::messages::{Incoming, Messages};

/// Reads what the receiver answers.
pub(super) struct Answers<'a> {
    association: &'a Association,
    messages: Messages,
    /// Counts what it says.
    heard: &'a AtomicU64,
}

impl<'a> Answers<'a> {
    pub(super) fn new(association: &'a Association, heard: &'a AtomicU64) -> Answers<'a> {
        Answers { association, messages: Messages::default(), heard }
    }

    /// The next frame.
    pub(super) async fn next(&mut self) -> Result<ServerFrame, SendError> {
        loop {
            let message = self.association.recv().await.map_err(SendError::Closed)?;
            let message = message.ok_or(SendError::Closed(AssocClosed::Shutdown))?;
            self.heard.fetch_add(1, Ordering::Relaxed);
            match self.messages.take(message) {
                Ok(None) => {}
                Ok(Some(Incoming::Frame(bytes))) => {
                    return ServerFrame::decode(&bytes).map_err(|_| SendError::Protocol);
                }
                Ok(Some(Incoming::Content(_))) | Err(_) => return Err(SendError::Protocol),
            }
        }
    }

    pub(super) async fn until_summary<F: FnMut(Event<'_>) + Send>(
        mut self,
        shared: &Shared,
        events: &Events<F>,
    ) -> Result<Summary, SendError> {
        loop {
            match self.next().await? {
                ServerFrame::Status(status) => {
                    let index = status.index;
                    let entry = shared.entries.get(index as usize).ok_or(SendError::Protocol)?;
                    if status.outcome != Outcome::Stored {
                        shared.unwanted.set(index);
                        shared.answer(Answer::Refused(index))?;
                    }
                    // The receiver knows only that it was given up.
                    let text = shared.given_up(index).unwrap_or_else(|| printable(&status.text));
                    let sent =
                        shared.sent.lock().unwrap_or_else(PoisonError::into_inner).remove(&index);
                    let mut header = entry.header.clone();
                    header.size = header.known_size().unwrap_or(sent.map_or(0, |s| s.length));
                    events.tell(Event::Entry(EntryOutcome {
                        header: &header,
                        outcome: status.outcome,
                        text: &text,
                        sha256: sent.map(|sent| sent.sha256),
                    }));
                }
                ServerFrame::Ready(ready) => shared.answer(Answer::Ready(ready))?,
                ServerFrame::Working => {}
                ServerFrame::Summary(summary) => return Ok(summary),
                ServerFrame::Welcome(_) | ServerFrame::Password(_) => {
                    return Err(SendError::Protocol);
                }
            }
        }
    }
}

impl Shared {
    /// Passes an answer on to the thread that reads the files.
    fn answer(&self, answer: Answer) -> Result<(), SendError> {
        match self.answers.try_send(answer) {
            // That thread may be done.
            Ok(()) | Err(TrySendError::Closed(_)) => Ok(()),
            Err(TrySendError::Full(_)) => Err(SendError::Protocol),
        }
    }

    /// Why a file was given up, if it was.
    fn given_up(&self, index: u32) -> Option<String> {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner).remove(&index)
    }
}
