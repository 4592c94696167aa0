//! Events that the engine reports to its driver.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use manypath_wire::{ReConfigResult, StreamId};

use crate::path::MtuReason;
use crate::policy::path_set::shared::SharedEvidence;
use crate::view::{ElectReason, PathId, PathRank, PathState, RestoreReason, SuppressReason};

/// Something that happened to an association.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The association is established: data may flow.
    Connected {
        /// True if the peer opened it.
        incoming: bool,
    },
    /// At least one message can be received. Sent once until the messages are all received.
    Readable,
    /// The send buffer has room again after a send found it full.
    Writable,
    /// A path was added.
    PathAdded {
        /// The path.
        path: PathId,
        /// Our transport address on it.
        local: SocketAddr,
        /// The peer's transport address on it.
        remote: SocketAddr,
    },
    /// A path that the application gave brought no answer during its trial: a second, or without
    /// candidates until the next timer after that. Sent once for each pair of addresses. If a
    /// candidate replaces the path, [`Event::PathRemoved`] and [`Event::PathAdded`] follow.
    NoAnswer {
        /// The path.
        path: PathId,
        /// Our transport address on it.
        local: SocketAddr,
        /// The peer's transport address on it.
        remote: SocketAddr,
    },
    /// A path changed state (RFC 9260 §8.2, RFC 7829 §4).
    PathState {
        /// The path.
        path: PathId,
        /// The state that the path left.
        from: PathState,
        /// The state that the path entered.
        to: PathState,
    },
    /// The size of a path's largest packets was found more exactly, or has become smaller (RFC
    /// 8899).
    PathMtu {
        /// The path.
        path: PathId,
        /// The size of an IP packet in bytes.
        mtu: usize,
        /// The reason for that size.
        reason: MtuReason,
    },
    /// A path has another rank: paths of lesser ranks carry data before it.
    PathRank {
        /// The path.
        path: PathId,
        /// Its new rank.
        rank: PathRank,
    },
    /// Two paths share a bottleneck (mTCP paper, section 3.2). Together they take a larger share of
    /// it than one flow should. So the slower one carries no more data, unless `paths_min` keeps it
    /// in use.
    SharedBottleneck {
        /// The two paths, and the evidence.
        evidence: SharedEvidence,
        /// The path that carries no more data because of it; [`Event::PathSuppressed`] follows.
        suppressed: Option<PathId>,
    },
    /// Two paths share too many of their hops (mTCP paper, section 3.3). The one with the lower
    /// score carries no more data; [`Event::PathSuppressed`] follows.
    SharedHops {
        /// The path that carries no more data.
        path: PathId,
        /// The path that it shares its hops with.
        with: PathId,
        /// Their [disjointness](crate::overlay::disjoint), 0 to 1.
        disjoint: f64,
    },
    /// A working path carries no data from now on (mTCP paper, section 3.4.1; ranks).
    PathSuppressed {
        /// The path.
        path: PathId,
        /// The reason for that.
        reason: SuppressReason,
    },
    /// A path that was suppressed may carry data again (mTCP paper, section 3.4.2; ranks).
    PathRestored {
        /// The path.
        path: PathId,
        /// The reason for that.
        reason: RestoreReason,
    },
    /// Both ends announced SACK PATH chunks when the association was opened. By these an end tells
    /// which path all of its SACKs take (mTCP paper, section 3.5.2). Follows [`Event::Connected`].
    SackPathAgreed {
        /// True if our SACKs take one path; false if only the peer's may.
        ours: bool,
        /// True if the peer asked for that (`ack_path_as_asked`), whatever `ack_path` is.
        as_asked: bool,
    },
    /// All SACKs of one side take another path from now on (mTCP paper, section 3.5.2).
    PrimaryElected {
        /// The new path.
        path: PathId,
        /// True for the peer's SACKs, false for ours.
        by_peer: bool,
        /// The reason for leaving the old path, as far as this side knows.
        reason: ElectReason,
    },
    /// This host no longer has the local address of a path. The path is removed, or stays without
    /// sending until another path exists.
    AddressGone {
        /// The path.
        path: PathId,
        /// The address.
        local: SocketAddr,
    },
    /// A path was removed, and its id may be used again.
    PathRemoved {
        /// The path.
        path: PathId,
    },
    /// A message was given up: its lifetime is over, it was retransmitted often enough, or a more
    /// important one took its place in the send buffer (RFC 3758, RFC 7496).
    MessageAbandoned {
        /// The stream.
        stream: StreamId,
        /// The payload protocol identifier.
        ppid: u32,
        /// Something of it was sent; it may even have arrived. False if nothing was.
        was_sent: bool,
    },
    /// Everything sent so far has been acknowledged cumulatively by the peer.
    SendBufferEmpty,
    /// The peer began a graceful shutdown. Queued data is still delivered, but no more may be sent.
    PeerShutdown,
    /// The peer restarted (RFC 9260 §5.2.4, action A). Unacknowledged data is lost.
    Restarted,
    /// A request to reset or add streams was answered (RFC 6525 §5.2.7).
    StreamsReconfigured {
        /// The request.
        request: StreamRequest,
        /// The answer.
        outcome: RequestOutcome,
        /// True if the peer asked this end to make the request.
        by_peer: bool,
    },
    /// The peer has reset streams that it sends on (RFC 6525 §5.2.2): all their messages that can
    /// be received now are from before, and those to come are numbered from 0 again.
    IncomingStreamsReset {
        /// The streams; all if there are none.
        streams: Vec<StreamId>,
    },
    /// The peer has added streams that it sends on (RFC 6525 §5.2.5).
    IncomingStreamsAdded {
        /// The number of new streams.
        added: u16,
        /// The number of streams that the peer may send on now.
        streams: u16,
    },
    /// The peer answered a request of this end to change addresses (RFC 5061 §5.1).
    AddressRequest {
        /// The request, by this host's address.
        change: AddressChange,
        /// The answer.
        outcome: AddressOutcome,
    },
    /// The peer has added or deleted an address of its own, or this end now prefers one because the
    /// peer asked for that (RFC 5061 §5.2). Paths to the address come and go with events of their
    /// own.
    PeerAddress(AddressChange),
    /// The peer's authentication of chunks (RFC 4895, RFC 6458 §6.1.8).
    Authentication(AuthReport),
    /// The peer reported an error that does not end the association.
    PeerError {
        /// The error cause code, RFC 9260 §3.3.10.
        cause: u16,
    },
    /// The association is over; no event follows.
    Closed(AssocClosed),
}

/// Disjointness is a finite number.
impl Eq for Event {}

/// A change of the addresses of an end (RFC 5061 §4.2).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum AddressChange {
    /// The end has this address, too.
    Added(IpAddr),
    /// The end does not have this address any more.
    Deleted(IpAddr),
    /// The end wants packets to come to this address by preference.
    Primary(IpAddr),
}

/// The answer to a request to change addresses (RFC 5061 §5.1).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressOutcome {
    /// The peer has done it.
    Done,
    /// The peer has not done it.
    Refused {
        /// The error cause code, RFC 5061 §4.3; 0 if the peer gave none.
        cause: u16,
    },
    /// The peer does not know such requests. No more of them are sent.
    NotSupported,
}

/// Something about the authentication of chunks (RFC 6458 §6.1.8).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthReport {
    /// The peer does not have the extension: nothing is authenticated. Follows
    /// [`Event::Connected`].
    NotSupported,
    /// The peer authenticates with another key from now on. Not told of the key that it used
    /// before that one, because packets with it may still come.
    NewKey {
        /// The number of the key.
        key: u16,
    },
    /// A key that was deactivated is used no more.
    KeyFree {
        /// The number of the key.
        key: u16,
    },
}

/// A request to reset or add streams (RFC 6525 §5.1).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamRequest {
    /// To reset streams that this end sends on; all, if the list is empty.
    ResetOutgoing(Vec<StreamId>),
    /// To reset streams that the peer sends on; all, if the list is empty.
    ResetIncoming(Vec<StreamId>),
    /// To add this number of streams that this end sends on.
    AddOutgoing(u16),
    /// To add this number of streams that the peer sends on.
    AddIncoming(u16),
}

impl StreamRequest {
    /// The word of results and traces.
    pub fn name(&self) -> &'static str {
        match self {
            StreamRequest::ResetOutgoing(_) => "reset_outgoing",
            StreamRequest::ResetIncoming(_) => "reset_incoming",
            StreamRequest::AddOutgoing(_) => "add_outgoing",
            StreamRequest::AddIncoming(_) => "add_incoming",
        }
    }
}

/// The answer to a request to reset or add streams (RFC 6525 §4.4).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestOutcome {
    /// It was done.
    Performed,
    /// There was nothing to do.
    NothingToDo,
    /// The peer does not want it.
    Denied,
    /// A stream does not exist, or its messages are not complete.
    WrongStream,
    /// Another request is in progress.
    RequestInProgress,
    /// The ends number the requests differently.
    BadSequenceNumber,
    /// It was not sent, because the association began to shut down.
    Cancelled,
    /// The peer gave a result that RFC 6525 does not have.
    Other(u32),
}

impl RequestOutcome {
    pub(crate) fn of(result: ReConfigResult) -> RequestOutcome {
        match result {
            ReConfigResult::PERFORMED => RequestOutcome::Performed,
            ReConfigResult::NOTHING_TO_DO => RequestOutcome::NothingToDo,
            ReConfigResult::DENIED => RequestOutcome::Denied,
            ReConfigResult::WRONG_SSN => RequestOutcome::WrongStream,
            ReConfigResult::REQUEST_IN_PROGRESS => RequestOutcome::RequestInProgress,
            ReConfigResult::BAD_SEQUENCE_NUMBER => RequestOutcome::BadSequenceNumber,
            ReConfigResult(other) => RequestOutcome::Other(other),
        }
    }

    /// True if what was asked for is so now.
    pub fn is_success(self) -> bool {
        matches!(self, RequestOutcome::Performed | RequestOutcome::NothingToDo)
    }

    /// The word of results and traces.
    pub fn name(self) -> &'static str {
        match self {
            RequestOutcome::Performed => "performed",
            RequestOutcome::NothingToDo => "nothing_to_do",
            RequestOutcome::Denied => "denied",
            RequestOutcome::WrongStream => "wrong_stream",
            RequestOutcome::RequestInProgress => "request_in_progress",
            RequestOutcome::BadSequenceNumber => "bad_sequence_number",
            RequestOutcome::Cancelled => "cancelled",
            RequestOutcome::Other(_) => "other",
        }
    }
}

/// The words for a user. [`SuppressReason::name`] is the word of results and traces.
impl fmt::Display for SuppressReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SuppressReason::SharedBottleneck => "it shares a bottleneck with a faster path",
            SuppressReason::Slow => "it is much slower than the fastest path (suppress_below)",
            SuppressReason::Spare => "enough better paths are in use (paths_max)",
            SuppressReason::SharesHops => "it shares its hops with a better path",
            SuppressReason::Dearer => "cheaper paths work",
        })
    }
}

/// The words for a user. [`RestoreReason::name`] is the word of results and traces.
impl fmt::Display for RestoreReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RestoreReason::Better => "it is better than the worst path in use",
            RestoreReason::TooFew => "too few others work",
            RestoreReason::Disjoint => "it shares its hops with no other path that works",
            RestoreReason::Again => "it is tried again, as it may have a bottleneck of its own now",
            RestoreReason::Failover => "no cheaper path works",
            RestoreReason::Overflow => "cheaper paths cannot carry what is offered",
            RestoreReason::Ranked => "no path that works is cheaper now",
        })
    }
}

/// The words for a user. [`MtuReason::name`] is the word of results and traces.
impl fmt::Display for MtuReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MtuReason::Confirmed => "probes of this size arrive",
            MtuReason::BlackHole => "longer ones get lost",
            MtuReason::PacketTooBig => "a router takes no longer ones",
            MtuReason::Interface => "this host's interface takes no longer ones",
        })
    }
}

/// The words for a user, about the old path of the SACKs. [`ElectReason::name`] is the word of
/// results and traces.
impl fmt::Display for ElectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ElectReason::Failed => "the path that had them has failed",
            ElectReason::SetAside => "the path that had them carries no more data",
            ElectReason::Silent => "no data comes any more on the path that had them",
            ElectReason::Better => "this path is better",
        })
    }
}

/// The reason why an association ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssocClosed {
    /// Gracefully: both sides have everything (RFC 9260 §9.2).
    #[error("the association was shut down; everything was delivered")]
    Shutdown,
    /// The application called `abort`.
    #[error("aborted by this side")]
    Aborted,
    /// The peer sent ABORT.
    #[error("the peer aborted the association (cause {cause}{})", reason_text(.reason))]
    PeerAborted {
        /// First error cause code in the ABORT, 0 if it carried none (RFC 9260 §3.3.10).
        cause: u16,
        /// The reason's text if the peer's user gave one (cause 12), cut to 256 bytes.
        reason: Vec<u8>,
    },
    /// No peer answered the handshake (`max_init_retransmits`, RFC 9260 §5.1).
    #[error("no answer from the peer; check its address, its port and any firewall between")]
    HandshakeTimedOut,
    /// The peer answered INIT, but not COOKIE ECHO (RFC 9260 §5.1). COOKIE ECHO is longer, so
    /// packets of its size may not pass.
    #[error("the peer answered the first packet, and none of the longer ones after it")]
    HandshakeUnfinished,
    /// The peer's host says that it has no SCTP (ICMP "protocol unreachable", RFC 9260 §10).
    #[error(
        "the peer's host has no SCTP over IP (it says so by ICMP); start an SCTP program there, or \
         use UDP"
    )]
    NoSuchProtocol,
    /// Every path failed for longer than the configuration allows (RFC 9260 §8.1).
    #[error("no usable path to the peer is left")]
    PathsFailed,
    /// The peer allows fewer streams than messages were queued for before the association was open.
    #[error(
        "the peer allows {allowed} streams, and messages wait for others; use stream numbers below that"
    )]
    TooFewStreams {
        /// Outgoing streams that the peer allows.
        allowed: u16,
    },
    /// The association could not be protected, or no longer.
    #[error("the association cannot be protected{}: {reason}", if *.by_peer { ", says the peer" } else { "" })]
    NotProtected {
        /// The reason, in words.
        reason: String,
        /// True if the peer refused.
        by_peer: bool,
    },
    /// The peer broke the protocol; we sent ABORT.
    #[error("the peer broke the protocol: {0}")]
    ProtocolViolation(&'static str),
}

fn reason_text(reason: &[u8]) -> String {
    if reason.is_empty() {
        String::new()
    } else {
        format!(": {}", String::from_utf8_lossy(reason).escape_debug())
    }
}
