//! The frames of the protocol and their bytes.
//!
//! A frame is one SCTP message with the payload protocol identifier [`PPID_FRAME`]. The bytes of a
//! connection are messages with [`PPID_DATA`] and have no header at all; datagrams are unordered
//! messages with [`PPID_DATAGRAM`]. Stream [`CONTROL`] carries the frames of the session, each
//! other stream those of one connection at a time.

use std::fmt;

use bytes::Bytes;
use manypath_trust::Token;

/// Version of the protocol.
pub const VERSION: u8 = 1;
/// The stream of the session's own frames.
pub const CONTROL: u16 = 0;
/// Payload protocol identifier of a frame ("mp", 0x11).
pub const PPID_FRAME: u32 = 0x6d70_0021;
/// Payload protocol identifier of bytes of a connection ("mp", 0x12).
pub const PPID_DATA: u32 = 0x6d70_0022;
/// Payload protocol identifier of a datagram ("mp", 0x13).
pub const PPID_DATAGRAM: u32 = 0x6d70_0023;
/// Longest frame in bytes; a longer one breaks the protocol.
pub const FRAME_MAX: usize = 2048;
/// Longest host name in bytes (RFC 1035 §2.3.4, without the final dot).
pub const HOST_MAX: usize = 253;
/// Longest token in bytes.
pub const TOKEN_MAX: usize = 255;

const MAGIC: &[u8; 4] = b"MPPX";
const TEXT_MAX: usize = 512;

/// A host and a port, as a user names them. The far side looks the name up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPort {
    /// A name or an IP address, without brackets. Empty in a frame that came without a
    /// [valid](Self::is_valid) one.
    pub host: String,
    /// The port; 0 only where a free one is asked for.
    pub port: u16,
}

impl HostPort {
    /// The host is a name or an address that may be looked up: 1 to [`HOST_MAX`] visible characters
    /// of ASCII. Others must not reach a terminal or a resolver, and no frame carries them.
    pub fn is_valid(&self) -> bool {
        is_host(self.host.as_bytes())
    }

    /// The refusal of a target whose host is none.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if self.is_valid() {
            Ok(())
        } else {
            Err(Refusal::new(Cause::HostUnreachable, "not a name or address of a host"))
        }
    }
}

fn is_host(host: &[u8]) -> bool {
    (1..=HOST_MAX).contains(&host.len()) && host.iter().all(u8::is_ascii_graphic)
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// The other end of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A TCP connection to this address.
    Tcp(HostPort),
    /// A connection that came to the remote forward of that number.
    Forwarded(u16),
    /// Datagrams, each with its address. The number tells late datagrams of an earlier use of the
    /// stream apart, because unordered messages may be late.
    Udp(u32),
}

/// Why a connection or a remote forward was refused.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    /// Anything else.
    Failed = 1,
    /// The rules of the far side do not allow it.
    NotAllowed = 2,
    /// The network is unreachable.
    NetworkUnreachable = 3,
    /// The host is unreachable or its name unknown.
    HostUnreachable = 4,
    /// The target refused the connection.
    ConnectionRefused = 5,
    /// The target did not answer in time.
    TimedOut = 6,
    /// There are too many connections.
    Busy = 7,
}

impl Cause {
    const ALL: [Cause; 7] = [
        Cause::Failed,
        Cause::NotAllowed,
        Cause::NetworkUnreachable,
        Cause::HostUnreachable,
        Cause::ConnectionRefused,
        Cause::TimedOut,
        Cause::Busy,
    ];

    /// The cause as part of a sentence.
    pub fn text(self) -> &'static str {
        match self {
            Cause::Failed => "failed",
            Cause::NotAllowed => "not allowed",
            Cause::NetworkUnreachable => "network unreachable",
            Cause::HostUnreachable => "host unreachable",
            Cause::ConnectionRefused => "connection refused",
            Cause::TimedOut => "timed out",
            Cause::Busy => "too many connections",
        }
    }
}

/// A refusal: its cause, and a text for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}{text}", .cause.text(), if .text.is_empty() { "" } else { ": " })]
pub struct Refusal {
    /// The cause.
    pub cause: Cause,
    /// Details for people; may be empty.
    pub text: String,
}

impl Refusal {
    /// A refusal with details.
    pub fn new(cause: Cause, text: impl Into<String>) -> Refusal {
        Refusal { cause, text: text.into() }
    }
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Control: the first frame of the side that connects.
    Hello {
        /// Protocol version.
        version: u8,
        /// Proof that it may connect, unless it was proved before.
        token: Token,
    },
    /// Control: the answer.
    Welcome {
        /// A random number of this run of the program, by which a restart is noticed.
        instance: u64,
    },
    /// Control: asks for a remote forward.
    Listen {
        /// Its number.
        id: u16,
        /// Where the far side is to listen.
        at: HostPort,
    },
    /// Control: the far side listens.
    Listening {
        /// The forward's number.
        id: u16,
        /// The port it listens on.
        port: u16,
    },
    /// Control: the far side does not listen.
    NotListening {
        /// The forward's number.
        id: u16,
        /// The reason.
        why: Refusal,
    },
    /// Control: asks for nothing; its acknowledgement shows that the far side is alive.
    Ping,
    /// The first frame of a connection.
    Open(Target),
    /// The target is connected.
    Accepted,
    /// The target is not connected. The last frame of its sender.
    Refused(Refusal),
    /// The number of further bytes that the receiver of this may send.
    Credit(u32),
    /// No more data follows; the other direction goes on.
    Fin,
    /// The connection was reset. The last frame of its sender.
    Reset,
    /// The last frame of a sender whose connection ended in order, or was reset by the peer.
    Close,
}

/// Why bytes are no frame.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// It ends too early.
    #[error("a frame ends too early")]
    Short,
    /// There are bytes behind its end.
    #[error("a frame is longer than its content")]
    Long,
    /// Its type is unknown.
    #[error("a frame of unknown type {0}")]
    Type(u8),
    /// It does not begin as this protocol does.
    #[error("not the proxy protocol")]
    Magic,
    /// A field has a value that it must not have.
    #[error("a frame with a wrong field: {0}")]
    Field(&'static str),
}

const HELLO: u8 = 1;
const WELCOME: u8 = 2;
const LISTEN: u8 = 3;
const LISTENING: u8 = 4;
const NOT_LISTENING: u8 = 5;
const PING: u8 = 6;
const OPEN: u8 = 16;
const ACCEPTED: u8 = 17;
const REFUSED: u8 = 18;
const CREDIT: u8 = 19;
const FIN: u8 = 20;
const RESET: u8 = 21;
const CLOSE: u8 = 22;

impl Frame {
    /// The frame's bytes.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        match self {
            Frame::Hello { version, token } => {
                out.push(HELLO);
                out.extend_from_slice(MAGIC);
                out.push(*version);
                let token = &token[..token.len().min(TOKEN_MAX)];
                out.push(token.len() as u8);
                out.extend_from_slice(token);
            }
            Frame::Welcome { instance } => {
                out.push(WELCOME);
                out.extend_from_slice(&instance.to_be_bytes());
            }
            Frame::Listen { id, at } => {
                out.push(LISTEN);
                out.extend_from_slice(&id.to_be_bytes());
                put_address(&mut out, at);
            }
            Frame::Listening { id, port } => {
                out.push(LISTENING);
                out.extend_from_slice(&id.to_be_bytes());
                out.extend_from_slice(&port.to_be_bytes());
            }
            Frame::NotListening { id, why } => {
                out.push(NOT_LISTENING);
                out.extend_from_slice(&id.to_be_bytes());
                put_refusal(&mut out, why);
            }
            Frame::Ping => out.push(PING),
            Frame::Open(Target::Tcp(to)) => {
                out.extend_from_slice(&[OPEN, 1]);
                put_address(&mut out, to);
            }
            Frame::Open(Target::Forwarded(id)) => {
                out.extend_from_slice(&[OPEN, 2]);
                out.extend_from_slice(&id.to_be_bytes());
            }
            Frame::Open(Target::Udp(number)) => {
                out.extend_from_slice(&[OPEN, 3]);
                out.extend_from_slice(&number.to_be_bytes());
            }
            Frame::Accepted => out.push(ACCEPTED),
            Frame::Refused(why) => {
                out.push(REFUSED);
                put_refusal(&mut out, why);
            }
            Frame::Credit(bytes) => {
                out.push(CREDIT);
                out.extend_from_slice(&bytes.to_be_bytes());
            }
            Frame::Fin => out.push(FIN),
            Frame::Reset => out.push(RESET),
            Frame::Close => out.push(CLOSE),
        }
        out.into()
    }

    /// Reads a frame. Never panics, whatever the bytes are.
    pub fn decode(bytes: &[u8]) -> Result<Frame, FrameError> {
        let mut reader = Reader(bytes);
        let frame = match reader.byte()? {
            HELLO => {
                if reader.take(4)? != MAGIC {
                    return Err(FrameError::Magic);
                }
                let version = reader.byte()?;
                let length = reader.byte()?;
                Frame::Hello { version, token: reader.take(length.into())?.into() }
            }
            WELCOME => Frame::Welcome { instance: u64::from_be_bytes(reader.array()?) },
            LISTEN => Frame::Listen { id: reader.number()?, at: reader.address()? },
            LISTENING => Frame::Listening { id: reader.number()?, port: reader.number()? },
            NOT_LISTENING => Frame::NotListening { id: reader.number()?, why: reader.refusal()? },
            PING => Frame::Ping,
            OPEN => Frame::Open(match reader.byte()? {
                1 => Target::Tcp(reader.address()?),
                2 => Target::Forwarded(reader.number()?),
                3 => Target::Udp(u32::from_be_bytes(reader.array()?)),
                _ => return Err(FrameError::Field("kind")),
            }),
            ACCEPTED => Frame::Accepted,
            REFUSED => Frame::Refused(reader.refusal()?),
            CREDIT => Frame::Credit(u32::from_be_bytes(reader.array()?)),
            FIN => Frame::Fin,
            RESET => Frame::Reset,
            CLOSE => Frame::Close,
            other => return Err(FrameError::Type(other)),
        };
        if reader.0.is_empty() { Ok(frame) } else { Err(FrameError::Long) }
    }

    /// Nothing of its sender follows on the stream until the next [`Frame::Open`].
    pub fn is_last(&self) -> bool {
        matches!(self, Frame::Refused(_) | Frame::Reset | Frame::Close)
    }
}

/// A datagram: the number of its association, where it goes or comes from, and its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The number of [`Target::Udp`].
    pub number: u32,
    /// The other end.
    pub address: HostPort,
    /// Its data; may be empty.
    pub data: Bytes,
}

impl Datagram {
    /// The datagram's bytes.
    pub fn encode(&self) -> Bytes {
        let mut out = self.number.to_be_bytes().to_vec();
        put_address(&mut out, &self.address);
        out.extend_from_slice(&self.data);
        out.into()
    }

    /// Reads a datagram. Never panics, whatever the bytes are.
    pub fn decode(bytes: &Bytes) -> Result<Datagram, FrameError> {
        let mut reader = Reader(bytes);
        let number = u32::from_be_bytes(reader.array()?);
        let address = reader.address()?;
        let data = bytes.slice(bytes.len() - reader.0.len()..);
        Ok(Datagram { number, address, data })
    }
}

fn put_address(out: &mut Vec<u8>, address: &HostPort) {
    let host = address.host.as_bytes();
    let host = &host[..host.len().min(HOST_MAX)];
    out.push(host.len() as u8);
    out.extend_from_slice(host);
    out.extend_from_slice(&address.port.to_be_bytes());
}

fn put_refusal(out: &mut Vec<u8>, why: &Refusal) {
    out.push(why.cause as u8);
    let mut end = why.text.len().min(TEXT_MAX);
    while !why.text.is_char_boundary(end) {
        end -= 1;
    }
    out.extend_from_slice(&(end as u16).to_be_bytes());
    out.extend_from_slice(&why.text.as_bytes()[..end]);
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], FrameError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(FrameError::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, FrameError> {
        Ok(self.take(1)?[0])
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        self.take(N)?.try_into().map_err(|_| FrameError::Short)
    }

    fn number(&mut self) -> Result<u16, FrameError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    fn address(&mut self) -> Result<HostPort, FrameError> {
        let length = self.byte()?;
        let host = self.take(length.into())?;
        // A single user may have asked for it: only that connection is refused.
        let host = if is_host(host) { String::from_utf8_lossy(host) } else { "".into() };
        Ok(HostPort { host: host.into_owned(), port: self.number()? })
    }

    fn refusal(&mut self) -> Result<Refusal, FrameError> {
        let cause = self.byte()?;
        let cause = Cause::ALL.into_iter().find(|c| *c as u8 == cause);
        let cause = cause.ok_or(FrameError::Field("cause"))?;
        let length = usize::from(self.number()?);
        if length > TEXT_MAX {
            return Err(FrameError::Field("text"));
        }
        let text = std::str::from_utf8(self.take(length)?);
        let text = text.map_err(|_| FrameError::Field("text"))?.to_owned();
        Ok(Refusal { cause, text })
    }
}

#[cfg(test)]
mod tests;
