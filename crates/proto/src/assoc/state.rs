//! The states of an association (RFC 9260 §4).

use bytes::Bytes;

use crate::event::AssocClosed;
use crate::time::Instant;
use crate::view::PathId;

/// The state of an association, with the facts that exist only in that state.
#[derive(Clone, Debug)]
pub(crate) enum State {
    /// INIT is sent.
    CookieWait(Opening),
    /// COOKIE ECHO is sent.
    CookieEchoed { cookie: Bytes, opening: Opening },
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
        /// The path of the SHUTDOWN ACK that T2 watches.
        on: PathId,
    },
    /// Over.
    Closed(AssocClosed),
}

/// The attempts to open the association.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Opening {
    /// INITs or COOKIE ECHOs that were not answered.
    pub(super) attempts: u32,
    /// Cookies that were too old when they reached the peer.
    pub(super) stale_cookies: u32,
    /// When the first INIT of this attempt was sent.
    pub(super) init_sent: Instant,
    /// When a change of the network last repeated an attempt.
    pub(super) repeated_at: Option<Instant>,
}

impl State {
    /// The attempts, while the association is being opened.
    pub(super) fn opening_mut(&mut self) -> Option<&mut Opening> {
        match self {
            State::CookieWait(opening) | State::CookieEchoed { opening, .. } => Some(opening),
            _ => None,
        }
    }

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
        matches!(self, State::CookieWait(_) | State::CookieEchoed { .. } | State::Established)
    }

    /// A shutdown has begun, and data is outstanding: the application gives no more.
    pub(crate) fn is_shutting_down(&self) -> bool {
        matches!(self, State::ShutdownPending | State::ShutdownReceived { .. })
    }

    /// SHUTDOWN or SHUTDOWN ACK is sent: no more heartbeats are (RFC 9260 §8.3).
    pub(crate) fn is_ending(&self) -> bool {
        matches!(self, State::ShutdownSent { .. } | State::ShutdownAckSent { .. })
    }

    /// The handshake is complete and the association not over.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self, State::CookieWait(_) | State::CookieEchoed { .. } | State::Closed(_))
    }
}

impl super::Association {
    /// The name of the state in RFC 9260 §4, such as `ESTABLISHED`.
    pub fn state_name(&self) -> &'static str {
        match self.state {
            State::CookieWait(_) => "COOKIE-WAIT",
            State::CookieEchoed { .. } => "COOKIE-ECHOED",
            State::Established => "ESTABLISHED",
            State::ShutdownPending => "SHUTDOWN-PENDING",
            State::ShutdownSent { .. } => "SHUTDOWN-SENT",
            State::ShutdownReceived { .. } => "SHUTDOWN-RECEIVED",
            State::ShutdownAckSent { .. } => "SHUTDOWN-ACK-SENT",
            State::Closed(_) => "CLOSED",
        }
    }
}
