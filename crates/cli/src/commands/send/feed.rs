//! The half of a transfer that sends: what is read of the files, to the association.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use manypath::{Association, SendError};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::answers::broken_off;
use super::{Sent, Shared};
use crate::connect::transport::send_failure;
use crate::failure::Result;
use crate::latency::AckLatency;
use crate::transfer::frame::ClientFrame;
use crate::transfer::source::Piece;
use manypath_transfer::messages::{send_content, send_frame};

/// How often a receiver hears that content of unknown size is still waited for.
const WAITING: Duration = Duration::from_secs(1);

/// Where everything goes, and what times it.
#[derive(Copy, Clone)]
pub(super) struct Outlet<'a> {
    pub(super) association: &'a Association,
    pub(super) latency: Option<&'a AckLatency>,
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
pub(super) async fn feed(
    to: Outlet<'_>,
    shared: &Shared<'_>,
    pieces: &mut mpsc::Receiver<Piece>,
) -> Result<Fed> {
    let failed = |e: SendError| match e {
        SendError::Closed(closed) => broken_off(&closed, shared.peer, shared.go_on),
        other => send_failure(&other, shared.peer),
    };
    let (mut fed, mut current) = (Fed::default(), None);
    loop {
        let piece = match next(to, shared, pieces, current).await.map_err(failed)? {
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
        hand_over(to, shared, piece, &mut current, &mut fed).await.map_err(failed)?;
    }
    let finish = ClientFrame::Finish { entries: shared.entries.len() as u32 };
    to.frame(finish).await.map_err(failed)?;
    Ok(fed)
}

enum Next {
    Piece(Piece),
    /// The receiver does not want the file of this index, which still waits for content.
    Refused(u32),
    End,
}

/// Waits for the next piece. If that takes long, tells the receiver that it will come.
async fn next(
    to: Outlet<'_>,
    shared: &Shared<'_>,
    pieces: &mut mpsc::Receiver<Piece>,
    current: Option<Current>,
) -> std::result::Result<Next, SendError> {
    let Some(Current { index, .. }) = current.filter(|current| current.has_unknown_size) else {
        return Ok(pieces.recv().await.map_or(Next::End, Next::Piece));
    };
    loop {
        match timeout(WAITING, pieces.recv()).await {
            Ok(piece) => return Ok(piece.map_or(Next::End, Next::Piece)),
            Err(_) if shared.unwanted.contains(index) => return Ok(Next::Refused(index)),
            Err(_) => to.frame(ClientFrame::Working).await?,
        }
    }
}

async fn hand_over(
    to: Outlet<'_>,
    shared: &Shared<'_>,
    piece: Piece,
    current: &mut Option<Current>,
    fed: &mut Fed,
) -> std::result::Result<(), SendError> {
    let entry = |index: u32| &shared.entries[index as usize];
    match piece {
        Piece::Announce(index) => {
            let header = entry(index).header.clone();
            to.frame(ClientFrame::File(header)).await
        }
        Piece::Begin { index, offset } => {
            shared.resumed.fetch_add(offset, Ordering::Relaxed);
            let has_unknown_size = entry(index).header.known_size().is_none();
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
                shared.given_up.borrow_mut().insert(index, why);
                None
            });
            if let Some(sha256) = sha256 {
                shared.sent.borrow_mut().insert(index, Sent { sha256, length });
            }
            to.frame(ClientFrame::End { index, sha256 }).await
        }
    }
}
