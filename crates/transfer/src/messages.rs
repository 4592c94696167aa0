//! Frames and content as messages of an association.

use bytes::Bytes;
use manypath::{Association, Message, SendError, SendOptions};

use manypath_files::frame::{FRAME_MAX, PPID_CONTENT, PPID_CONTROL, STREAM};

/// The contents of one message.
#[derive(Debug)]
pub enum Incoming {
    /// A whole control frame.
    Frame(Vec<u8>),
    /// Content in the slices it arrived in.
    Content(Vec<Bytes>),
}

/// Messages that a peer of this protocol never sends.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Unexpected {
    /// A message on another stream or of another kind.
    Kind,
    /// A control frame that is too long.
    TooLong,
}

/// Puts messages that were delivered in parts together again where that matters.
#[derive(Debug, Default)]
pub struct Messages {
    /// The parts so far of a control frame.
    partial: Vec<u8>,
}

impl Messages {
    /// Takes a message, or a part of one; `None` if more parts are needed.
    ///
    /// # Errors
    /// It is no message of this protocol.
    pub fn take(&mut self, message: Message) -> Result<Option<Incoming>, Unexpected> {
        // No message of this protocol is given up.
        if message.stream != STREAM || message.is_cut_off {
            return Err(Unexpected::Kind);
        }
        match message.ppid {
            // The parts of a content message are content like any other.
            PPID_CONTENT => Ok(Some(Incoming::Content(message.payload.into_iter().collect()))),
            PPID_CONTROL => {
                if self.partial.len() + message.payload.len() > FRAME_MAX {
                    return Err(Unexpected::TooLong);
                }
                message.payload.chunks().iter().for_each(|c| self.partial.extend_from_slice(c));
                Ok(message
                    .end_of_message
                    .then(|| Incoming::Frame(std::mem::take(&mut self.partial))))
            }
            _ => Err(Unexpected::Kind),
        }
    }
}

/// Sends a control frame. Waits while the send buffer is full.
///
/// # Errors
/// The association takes no more messages.
pub async fn send_frame(to: &Association, frame: Vec<u8>) -> Result<(), SendError> {
    to.send(options(PPID_CONTROL), frame.into()).await
}

/// A control frame as the first message of an association.
pub fn first_frame(frame: Vec<u8>) -> (SendOptions, Bytes) {
    (options(PPID_CONTROL), frame.into())
}

/// Sends content, at least one byte. Waits while the send buffer is full.
///
/// # Errors
/// The association takes no more messages, or never one of this length.
pub async fn send_content(to: &Association, content: Bytes) -> Result<(), SendError> {
    to.send(options(PPID_CONTENT), content).await
}

fn options(ppid: u32) -> SendOptions {
    SendOptions { stream: STREAM, ppid, unordered: false, ..SendOptions::default() }
}
