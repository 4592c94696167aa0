//! The state of one connection: what may be sent, what may arrive, and when it is over.
//!
//! Each direction of a stream is *data and credits, then one last frame*. After its last frame a
//! side sends nothing until the next `Open`. A connection is over when both last frames have
//! passed.

use std::sync::Arc;
use std::time::Duration;

use crate::frame::{Frame, Refusal};
use crate::window::{Budget, WINDOW_INITIAL, Window};

/// The peer broke the protocol. The session ends with this.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Violation(pub &'static str);

/// The news of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing for the connection.
    Nothing,
    /// The target is connected.
    Accepted,
    /// The target is not connected.
    Refused(Refusal),
    /// More may be sent.
    Credit,
    /// The peer sends no more data.
    Fin,
    /// The peer reset the connection.
    Reset,
}

/// One connection on one side.
#[derive(Debug)]
pub struct Flow {
    is_opener: bool,
    is_accepted: bool,
    /// Bytes that may be sent.
    credit: u32,
    window: Window,
    sent_fin: bool,
    sent_last: bool,
    got_fin: bool,
    got_last: bool,
}

impl Flow {
    /// A connection that opens at `now`; `is_opener` on the side that sends `Open`.
    pub fn new(is_opener: bool, budget: &Arc<Budget>, now: Duration) -> Flow {
        Flow {
            is_opener,
            is_accepted: false,
            credit: WINDOW_INITIAL,
            window: Window::new(budget, now),
            sent_fin: false,
            sent_last: false,
            got_fin: false,
            got_last: false,
        }
    }

    // ---- What arrives ----

    /// A frame has arrived; not an `Open`.
    pub fn heard(&mut self, frame: Frame) -> Result<Heard, Violation> {
        if self.got_last {
            return Err(Violation("a frame after the last one"));
        }
        self.got_last = frame.is_last();
        let heard = match frame {
            Frame::Accepted => {
                self.answer()?;
                Heard::Accepted
            }
            Frame::Refused(why) => {
                self.answer()?;
                Heard::Refused(why)
            }
            Frame::Credit(bytes) => {
                let credit = if bytes > 0 { self.credit.checked_add(bytes) } else { None };
                self.credit = credit.ok_or(Violation("a credit without sense"))?;
                Heard::Credit
            }
            Frame::Fin if self.got_fin => return Err(Violation("two ends of the data")),
            Frame::Fin => {
                self.got_fin = true;
                Heard::Fin
            }
            Frame::Reset => Heard::Reset,
            // In order after both ends; as the answer to our last frame; or too early.
            Frame::Close if self.sent_last || (self.got_fin && self.sent_fin) => Heard::Nothing,
            _ => return Err(Violation("a frame out of place")),
        };
        // After our last frame nothing concerns us any more.
        Ok(if self.sent_last { Heard::Nothing } else { heard })
    }

    fn answer(&mut self) -> Result<(), Violation> {
        if !self.is_opener || self.is_accepted {
            return Err(Violation("an answer that nobody asked for"));
        }
        self.is_accepted = true;
        Ok(())
    }

    /// Data has arrived; false if it is to be dropped, because this side has ended the connection.
    pub fn received(&mut self, bytes: usize) -> Result<bool, Violation> {
        if self.got_last || self.got_fin {
            return Err(Violation("data after its end"));
        }
        if self.is_opener && !self.is_accepted {
            return Err(Violation("data before the answer"));
        }
        self.window.received(bytes).map_err(|_| Violation("more data than the window allows"))?;
        Ok(!self.sent_last)
    }

    /// Notes that `bytes` of the received data were passed on. Returns the frame to send, if any.
    pub fn taken(&mut self, bytes: usize, now: Duration) -> Option<Frame> {
        let credit = self.window.taken(bytes, now);
        // A peer that sends no more needs none.
        (credit > 0 && !self.got_fin && !self.got_last && !self.sent_last)
            .then_some(Frame::Credit(credit))
    }

    // ---- What is sent ----

    /// Bytes of data that may be sent now.
    pub fn sendable(&self) -> usize {
        if self.sent_fin || self.sent_last { 0 } else { self.credit as usize }
    }

    /// Notes that `bytes` of data are sent, at most [`sendable`](Flow::sendable).
    pub fn sending(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.sendable());
        self.credit = self.credit.saturating_sub(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// No more data follows. Returns the frame to send.
    pub fn fin(&mut self) -> Option<Frame> {
        let send = !self.sent_fin && !self.sent_last;
        self.sent_fin = true;
        send.then_some(Frame::Fin)
    }

    /// This side is done. Returns its last frame, to send unless it was sent before: a `Close` if
    /// all is in order or the peer has ended the connection, and otherwise a `Reset`.
    pub fn end(&mut self) -> Option<Frame> {
        if std::mem::replace(&mut self.sent_last, true) {
            return None;
        }
        let in_order = self.got_last || (self.got_fin && self.sent_fin);
        Some(if in_order { Frame::Close } else { Frame::Reset })
    }

    /// The target could not be connected. Returns the last frame of this side.
    pub fn refuse(&mut self, why: Refusal) -> Option<Frame> {
        if std::mem::replace(&mut self.sent_last, true) {
            return None;
        }
        Some(if self.got_last { Frame::Close } else { Frame::Refused(why) })
    }

    /// Both last frames have passed.
    pub fn is_over(&self) -> bool {
        self.sent_last && self.got_last
    }

    /// This side sends no more.
    pub fn has_ended(&self) -> bool {
        self.sent_last
    }
}

#[cfg(test)]
mod tests;
