//! The states of an association (RFC 9260 §4).

use bytes::Bytes;

use crate::event::AssocClosed;
use crate::path::PathId;

/// The state, with what exists in that state only.
#[derive(Clone, Debug)]
pub(crate) enum State {
    /// INIT is sent.
    CookieWait {
        attempts: u32,
        /// Cookies that were too old when the peer got them.
        stale_cookies: u32,
    },
    /// COOKIE ECHO is sent.
    CookieEchoed { cookie: Bytes, attempts: u32, stale_cookies: u32 },
    /// Data flows.
    Established,
    /// The application has shut down; data is outstanding.
    ShutdownPending,
    /// SHUTDOWN is sent.
    ShutdownSent { attempts: u32 },
    /// SHUTDOWN was received; data is outstanding.
    ShutdownReceived {
        /// The path of the answer.
        answer_on: PathId,
    },
    /// SHUTDOWN ACK is sent.
    ShutdownAckSent {
        attempts: u32,
        /// The path of the one that T2 watches.
        on: PathId,
    },
    /// Over.
    Closed(AssocClosed),
}

impl State {
    /// New and retransmitted DATA may be sent (RFC 9260 §9.2: until SHUTDOWN or SHUTDOWN ACK is
    /// sent).
    pub(crate) fn may_send_data(&self) -> bool {
        matches!(self, State::Established | State::ShutdownPending | State::ShutdownReceived { .. })
    }

    /// DATA from the peer is accepted.
    pub(crate) fn may_receive_data(&self) -> bool {
        matches!(self, State::Established | State::ShutdownPending | State::ShutdownSent { .. })
    }

    /// The application may still give messages to send.
    pub(crate) fn accepts_messages(&self) -> bool {
        matches!(self, State::CookieWait { .. } | State::CookieEchoed { .. } | State::Established)
    }

    /// SHUTDOWN or SHUTDOWN ACK is sent: no more heartbeats are (RFC 9260 §8.3).
    pub(crate) fn is_ending(&self) -> bool {
        matches!(self, State::ShutdownSent { .. } | State::ShutdownAckSent { .. })
    }

    /// The handshake is complete and the association not over.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self, State::CookieWait { .. } | State::CookieEchoed { .. } | State::Closed(_))
    }
}
