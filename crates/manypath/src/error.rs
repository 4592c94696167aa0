//! Errors, one enum per operation.

use std::io;
use std::net::{IpAddr, SocketAddr};

use manypath_proto::{AssocClosed, StreamId, is_raw_ip};

/// Why an endpoint could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// A socket could not be opened.
    #[error(transparent)]
    Socket(#[from] manypath_net::BindError),
    /// The configuration contradicts itself or is out of range.
    #[error(transparent)]
    Config(#[from] manypath_proto::config::ConfigError),
    /// A rank for a place that can have none.
    #[error(transparent)]
    Rank(#[from] crate::ranks::RankPlaceError),
    /// The operating system gave no random numbers, without which cookies could be forged.
    #[error("the operating system gave no random numbers")]
    Random,
    /// Called outside a tokio runtime.
    #[error("an endpoint needs a tokio runtime: call this from within one")]
    NoRuntime,
}

/// Why an association could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No remote address was given.
    #[error("no remote address given")]
    NoRemote,
    /// No local address can reach any of the remote ones.
    #[error(
        "no path: none of the local addresses ({}) can reach any of the remote ones ({}); \
         check the families (IPv4, IPv6), the routes, and what the endpoint is bound to",
        addresses(.locals), addresses(.remotes)
    )]
    NoPath {
        /// Addresses that this endpoint can send from.
        locals: Vec<SocketAddr>,
        /// Addresses that it was to connect to.
        remotes: Vec<SocketAddr>,
    },
    /// The remote address has no UDP port, so it is reached over IP itself, and the endpoint does
    /// not have that ([`EndpointOptions::raw_ip`](crate::EndpointOptions::raw_ip)).
    #[error("{remote} has no UDP port, and this endpoint does not send SCTP over IP itself")]
    NoRawIp {
        /// The address.
        remote: IpAddr,
    },
    /// Everything is to go through relays, and none leads there: those of this host gave it no
    /// address or do not forward to the peer, or it has none and the peer has no relayed address.
    #[error("no relay leads to any of the addresses ({})", addresses(.remotes))]
    NoRelay {
        /// Addresses that it was to connect to.
        remotes: Vec<SocketAddr>,
    },
    /// The endpoint was closed.
    #[error("the endpoint was closed")]
    EndpointClosed,
    /// The engine did not begin: it has that association already, or as many as it may.
    #[error(transparent)]
    Refused(#[from] manypath_proto::ConnectError),
    /// The first message cannot be sent, whoever answers.
    #[error("the first message: {0}")]
    FirstMessage(manypath_proto::SendError),
    /// The attempt failed.
    #[error(transparent)]
    Failed(#[from] AssocClosed),
}

fn addresses(list: &[SocketAddr]) -> String {
    if list.is_empty() {
        return "none".to_owned();
    }
    let name = |address: &SocketAddr| {
        if is_raw_ip(*address) { address.ip().to_string() } else { address.to_string() }
    };
    list.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Why content that is to take direct paths alone has to wait.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DirectPathError {
    /// No direct path works after this time.
    #[error("no direct path within {} s", .0.as_secs_f64())]
    NotFound(std::time::Duration),
    /// The association is over.
    #[error(transparent)]
    Closed(#[from] AssocClosed),
}

/// Why a message could not be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// Longer than the send buffer can ever hold.
    #[error(
        "the message is longer than {limit} bytes, what the send buffer may hold (send_buffer)"
    )]
    TooLarge {
        /// The longest possible message, in bytes.
        limit: usize,
    },
    /// SCTP has no messages without data (RFC 9260 §3.3.1).
    #[error("a message needs at least one byte")]
    Empty,
    /// The stream was not agreed on when the association was opened.
    #[error("there is no stream {}; the peer allows fewer streams (outbound_streams)", .0.0)]
    NoSuchStream(StreamId),
    /// This side or the peer has begun to shut down.
    #[error("the association is shutting down; no more can be sent")]
    ShutDown,
    /// The association is over.
    #[error(transparent)]
    Closed(#[from] AssocClosed),
}

impl From<SendError> for io::Error {
    fn from(error: SendError) -> io::Error {
        match error {
            SendError::Closed(closed) => closed_error(closed),
            SendError::ShutDown => io::Error::new(io::ErrorKind::BrokenPipe, error),
            SendError::TooLarge { .. } | SendError::Empty | SendError::NoSuchStream(_) => {
                io::Error::new(io::ErrorKind::InvalidInput, error)
            }
        }
    }
}

/// The end of an association as an I/O error.
pub(crate) fn closed_error(closed: AssocClosed) -> io::Error {
    let kind = match closed {
        AssocClosed::Shutdown => io::ErrorKind::BrokenPipe,
        AssocClosed::Aborted => io::ErrorKind::ConnectionAborted,
        AssocClosed::PeerAborted { .. } => io::ErrorKind::ConnectionReset,
        AssocClosed::NoSuchProtocol => io::ErrorKind::ConnectionRefused,
        AssocClosed::HandshakeTimedOut
        | AssocClosed::HandshakeUnfinished
        | AssocClosed::PathsFailed => io::ErrorKind::TimedOut,
        AssocClosed::ProtocolViolation(_) | AssocClosed::TooFewStreams { .. } => {
            io::ErrorKind::InvalidData
        }
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, closed)
}

/// Why a byte stream could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenStreamError {
    /// Its bytes are being read already.
    #[error("stream {} is open already; drop its other RecvStream first", .0.0)]
    InUse(StreamId),
}
