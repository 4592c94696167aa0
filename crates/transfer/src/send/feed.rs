//! The half of a transfer that sends: what is read of the files, to the association.

use std::sync::PoisonError;
use std::time::Duration;

use bytes::Bytes;
use manypath::{Association, SendError};
use manypath_files::frame::ClientFrame;
use manypath_files::source::Piece;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::{SentFile, Shared};
use crate::event::{Event, Events};
use crate::messages::{send_content, send_frame};

/// How often a receiver hears that content of unknown size is still waited for.
const WAITING: Duration = Duration::from_secs(1);

/// Where everything goes, and who hears of each message.
#[derive(Copy, Clone)]
pub(super) struct Outlet<'a> {
    pub(super) association: &'a Association,
    pub(super) handed_over: Option<&'a (dyn Fn(usize) + Send + Sync)>,
}

impl Outlet<'_> {
    async fn frame(&self, frame: ClientFrame) -> Result<(), SendError> {
        let bytes = frame.encode();
        let length = bytes.len();
        send_frame(self.association, bytes).await?;
        self.note(length);
        Ok(())
    }

    async fn content(&self, content: Bytes) -> Result<(), SendError> {
        let length = content.len();
        send_content(self.association, content).await?;
        self.note(length);
        Ok(())
    }

    fn note(&self, bytes: usize) {
        if let Some(handed_over) = self.handed_over {
            handed_over(bytes);
        }
    }
}

/// The content that was handed to the association.
#[derive(Debug, Default)]
pub(super) struct Fed {
    /// When the first content was.
    pub(super) begin: Option<Instant>,
}

/// The file whose content is sent.
#[derive(Copy, Clone)]
struct Current {
    index: u32,
    /// Bytes so far, with those that the receiver had.
    length: u64,
    has_unknown_size: bool,
}

/// Hands everything to the association.
pub(super) async fn feed<F: FnMut(Event<'_>) + Send>(
    to: Outlet<'_>,
    shared: &Shared,
    pieces: &mut mpsc::Receiver<Piece>,
    events: &Events<F>,
) -> Result<Fed, super::SendError> {
    let failed = |e: SendError| match e {
        SendError::Closed(closed) => super::SendError::Closed(closed),
        other => super::SendError::Send(other),
    };
    let mut feeding = Feeding { to, shared, events, current: None, fed: Fed::default() };
    loop {
        let piece = match feeding.next(pieces).await.map_err(failed)? {
            Next::Piece(piece) => piece,
            Next::Refused(index) => {
                // Whoever writes to standard input may never write again: nobody waits for that,
                // and nothing comes behind it.
                let end = ClientFrame::End { index, sha256: None };
                to.frame(end).await.map_err(failed)?;
                break;
            }
            Next::End => break,
        };
        feeding.hand_over(piece).await.map_err(failed)?;
    }
    let finish = ClientFrame::Finish { entries: shared.entries.len() as u32 };
    to.frame(finish).await.map_err(failed)?;
    Ok(feeding.fed)
}

/// The state of this half.
struct Feeding<'a, F> {
    to: Outlet<'a>,
    shared: &'a Shared,
    events: &'a Events<F>,
    current: Option<Current>,
    fed: Fed,
}

enum Next {
    Piece(Piece),
    /// The receiver does not want the file of this index, which still waits for content.
    Refused(u32),
    End,
}

impl<F: FnMut(Event<'_>) + Send> Feeding<'_, F> {
    /// Waits for the next piece. If that takes long, tells the receiver that it will come.
    async fn next(&self, pieces: &mut mpsc::Receiver<Piece>) -> Result<Next, SendError> {
        let unknown = self.current.filter(|current| current.has_unknown_size);
        let Some(Current { index, .. }) = unknown else {
            return Ok(pieces.recv().await.map_or(Next::End, Next::Piece));
        };
        loop {
            match timeout(WAITING, pieces.recv()).await {
                Ok(piece) => return Ok(piece.map_or(Next::End, Next::Piece)),
                Err(_) if self.shared.unwanted.contains(index) => return Ok(Next::Refused(index)),
                Err(_) => self.to.frame(ClientFrame::Working).await?,
            }
        }
    }

    async fn hand_over(&mut self, piece: Piece) -> Result<(), SendError> {
        let Feeding { to, shared, events, current, fed } = self;
        let entry = |index: u32| &shared.entries[index as usize];
        match piece {
            Piece::Announce(index) => {
                let header = entry(index).header.clone();
                to.frame(ClientFrame::File(header)).await
            }
            Piece::Begin { index, offset } => {
                let header = &entry(index).header;
                if offset > 0 {
                    shared.resumed.add(offset);
                    let (name, size) = (header.name.as_str(), header.size);
                    events.tell(Event::Resumed { name, offset, size });
                }
                let has_unknown_size = header.known_size().is_none();
                *current = Some(Current { index, length: offset, has_unknown_size });
                to.frame(ClientFrame::Begin { index, offset }).await
            }
            Piece::Working => to.frame(ClientFrame::Working).await,
            Piece::Content(content) => {
                fed.begin.get_or_insert_with(Instant::now);
                if let Some(current) = current {
                    current.length += content.len() as u64;
                }
                to.content(content).await
            }
            Piece::End { index, result } => {
                let length = current.take().map_or(0, |current| current.length);
                let sha256 = result.unwrap_or_else(|why| {
                    let why = format!("cannot read {}: {why}", entry(index).source);
                    shared.note_given_up(index, why);
                    None
                });
                if let Some(sha256) = sha256 {
                    shared.note_sent(index, SentFile { sha256, length });
                }
                to.frame(ClientFrame::End { index, sha256 }).await
            }
        }
    }
}

impl Shared {
    fn note_given_up(&self, index: u32, why: String) {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner).insert(index, why);
    }

    fn note_sent(&self, index: u32, sent: SentFile) {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).insert(index, sent);
    }
}
