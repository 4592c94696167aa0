//! Transmissions of requests over UDP, repeated until they are answered (RFC 8489 §6.2.1).

use std::collections::VecDeque;
use std::time::Duration;

use manypath_proto::Instant;
use turn_types::stun::message::TransactionId;

use super::request::Request;

/// Wait for an answer after the first transmission of a request; it doubles with each.
const RTO: Duration = Duration::from_millis(500);
/// Transmissions of a request. The wait after the last is as long as all before together.
const TRANSMISSIONS: u32 = 6;

/// Requests that are not answered yet, and datagrams to send.
#[derive(Default)]
pub(super) struct Transmissions {
    pending: Vec<Pending>,
    out: VecDeque<Vec<u8>>,
}

struct Pending {
    request: Request,
    id: TransactionId,
    bytes: Vec<u8>,
    signed: bool,
    sent: u32,
    next_at: Instant,
}

/// A request whose wait for an answer is over.
pub(super) enum Overdue {
    /// It was sent again; the number of its transmissions.
    Repeated(Request, u32),
    /// All its transmissions stayed without an answer: it is given up.
    GivenUp(Request),
}

impl Transmissions {
    /// Sends a request, and again until it is answered.
    pub(super) fn start(
        &mut self,
        now: Instant,
        request: Request,
        id: TransactionId,
        bytes: Vec<u8>,
        signed: bool,
    ) {
        self.out.push_back(bytes.clone());
        self.pending.push(Pending { request, id, bytes, signed, sent: 1, next_at: now + RTO });
    }

    /// The next datagram for the relay.
    pub(super) fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    /// When the next request is overdue.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.pending.iter().map(|p| p.next_at).min()
    }

    /// Repeats a request that is overdue, or gives it up; `None` if there is none.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> Option<Overdue> {
        let index = self.pending.iter().position(|p| p.next_at <= now)?;
        let pending = &mut self.pending[index];
        if pending.sent < TRANSMISSIONS {
            pending.next_at = now + RTO * (1 << pending.sent.min(TRANSMISSIONS - 2));
            pending.sent += 1;
            self.out.push_back(pending.bytes.clone());
            Some(Overdue::Repeated(pending.request, pending.sent))
        } else {
            Some(Overdue::GivenUp(self.pending.swap_remove(index).request))
        }
    }

    pub(super) fn is_pending(&self, request: Request) -> bool {
        self.pending.iter().any(|p| p.request == request)
    }

    /// True if the pending request with this transaction ID is signed; `None` if there is none.
    pub(super) fn is_signed(&self, id: TransactionId) -> Option<bool> {
        self.pending.iter().find(|p| p.id == id).map(|p| p.signed)
    }

    /// Takes the request with this transaction ID: it is answered.
    pub(super) fn take(&mut self, id: TransactionId) -> Option<Request> {
        let index = self.pending.iter().position(|p| p.id == id)?;
        Some(self.pending.swap_remove(index).request)
    }

    /// Waits for no answers any more, but still sends what is queued.
    pub(super) fn give_up(&mut self) {
        self.pending.clear();
    }

    /// Waits for no answers any more, and drops what is queued.
    pub(super) fn clear(&mut self) {
        self.pending.clear();
        self.out.clear();
    }
}
