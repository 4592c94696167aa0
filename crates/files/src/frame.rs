//! The transfer protocol's control frames; `docs/protocol-transfer.md` shows them byte by byte.
//!
//! One frame is one SCTP message with the payload protocol identifier [`PPID_CONTROL`]; the bytes
//! of a file are messages with [`PPID_CONTENT`]. All travel on one ordered stream, so a content
//! message belongs to the file that began last, and needs no header of its own: it can be written
//! to the file as it arrived.

mod hello;
mod outcome;
mod reader;
mod ready;

use manypath_proto::StreamId;
use manypath_trust::password::Message;

use crate::relative::{RelativePath, shown_bytes};
pub use hello::{Accepts, ENTRIES_MAX, Hello};
pub use outcome::Outcome;
pub use reader::{FrameError, Reader, Unnamed};
pub use ready::{BEGINNINGS_MAX, Beginning, Ready};

/// Version of the protocol.
pub const VERSION: u8 = 2;
/// The stream that carries everything, in both directions.
pub const STREAM: StreamId = StreamId(0);
/// Payload protocol identifier of a control frame ("mp", 1).
pub const PPID_CONTROL: u32 = 0x6d70_0001;
/// Payload protocol identifier of file content ("mp", 2).
pub const PPID_CONTENT: u32 = 0x6d70_0002;
/// Longest control frame in bytes; a longer one breaks the protocol.
pub const FRAME_MAX: usize = 8 * 1024;
/// Longest token in bytes.
pub const TOKEN_MAX: usize = 255;
/// Files that may be announced and not begun, at most.
pub const AHEAD: usize = 256;
/// The size in the header of a file whose size is not known: its content ends at its end.
pub const SIZE_UNKNOWN: u64 = u64::MAX;
/// A side that reads a file to compare it sends `Working` each time it has read this many bytes.
pub const WORKING_AFTER: u64 = 256 << 20;

/// Longest explanation in bytes, in frames that carry one.
const TEXT_MAX: usize = 1024;
/// The mode of a file whose permissions are not known.
const MODE_UNKNOWN: u32 = u32::MAX;

/// The first words of this protocol's abort reasons; the rest is for humans.
pub mod reason {
    /// The token is wrong.
    pub const NOT_AUTHORISED: &str = "not authorised";
    /// The receiver serves as many senders as it will.
    pub const BUSY: &str = "busy";
    /// The other side was stopped by its user.
    pub const INTERRUPTED: &str = "interrupted";
    /// The receiver does not accept this transfer: it is too large, or the disk is too full.
    pub const REFUSED: &str = "refused";
    /// The other side waited for progress in vain.
    pub const STALLED: &str = "stalled";
    /// No direct path works, and one side lets no relay carry content.
    pub const NO_DIRECT_PATH: &str = "no direct path";
    /// The other side did something this protocol does not know.
    pub const PROTOCOL: &str = "protocol error";
}

/// A frame from the sender of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientFrame {
    /// The first frame.
    Hello(Hello),
    /// Before the first: a message of the proof that this end knows the token.
    Password(Message),
    /// Announces a file or directory. The receiver answers a file with [`ServerFrame::Ready`], or
    /// with the status of one that it does not want.
    File(FileHeader),
    /// The content of a file follows.
    Begin {
        /// The file's index.
        index: u32,
        /// Where the content begins: 0, or where one of the beginnings ends that the receiver has.
        offset: u64,
    },
    /// This side still reads a file to compare it, or waits for content that is not there yet.
    Working,
    /// The content of the file is over.
    End {
        /// The file's index.
        index: u32,
        /// The SHA-256 of the content, or none if the sender gave the file up.
        sha256: Option<[u8; 32]>,
    },
    /// No more files.
    Finish {
        /// How many headers were sent.
        entries: u32,
    },
}

/// Introduces a file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// Counts from 0, one up for each header.
    pub index: u32,
    /// A directory has no content and no [`ClientFrame::End`].
    pub kind: Kind,
    /// Length of the content in bytes, or [`SIZE_UNKNOWN`].
    pub size: u64,
    /// Unix permission bits (the lower nine), if known.
    pub mode: Option<u32>,
    /// Time of the last change, seconds and nanoseconds since 1970 UTC, if known.
    pub modified: Option<(i64, u32)>,
    /// Where it goes.
    pub name: RelativePath,
}

impl FileHeader {
    /// The length of the content in bytes, if it is known before its end.
    pub fn known_size(&self) -> Option<u64> {
        (self.size != SIZE_UNKNOWN).then_some(self.size)
    }
}

/// The kind of entry that a header introduces.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A directory; created if it does not exist.
    Directory,
}

/// A frame from the receiver of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerFrame {
    /// A message of the proof that this end knows the token.
    Password(Message),
    /// The token is right; send. A sender that asks for it is told what the receiver accepts.
    Welcome(Option<Accepts>),
    /// The parts of an announced file that are there.
    Ready(Ready),
    /// This side still reads a file to compare it.
    Working,
    /// The outcome of one file. Sent once per file, at its end or as soon as it failed.
    Status(FileStatus),
    /// The outcome of the transfer; the last frame.
    Summary(Summary),
}

/// The outcome of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// The file's index.
    pub index: u32,
    /// Stored, or why not.
    pub outcome: Outcome,
    /// An explanation for people if it was not stored.
    pub text: String,
}

/// Measurements of the receiver.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files and directories stored.
    pub stored: u32,
    /// Files and directories not stored.
    pub failed: u32,
    /// Content bytes delivered to the application.
    pub bytes: u64,
    /// From Welcome to the first content byte, in ns; 0 without content.
    pub first_byte_ns: u64,
    /// Longest time between two deliveries of content, from the first to the last, in ns.
    pub max_delivery_gap_ns: u64,
    /// From the last content byte's delivery to this frame (the disk's time), in ns.
    pub settle_ns: u64,
}

const HELLO: u8 = 1;
const FILE: u8 = 2;
const END: u8 = 3;
const FINISH: u8 = 4;
const CLIENT_PASSWORD: u8 = 5;
const BEGIN: u8 = 6;
const CLIENT_WORKING: u8 = 7;
const WELCOME: u8 = 16;
const STATUS: u8 = 17;
const SUMMARY: u8 = 18;
const SERVER_PASSWORD: u8 = 19;
const READY: u8 = 20;
const SERVER_WORKING: u8 = 21;

impl ClientFrame {
    /// The frame's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            ClientFrame::Hello(hello) => {
                out.push(HELLO);
                hello.encode(&mut out);
            }
            ClientFrame::Password(message) => {
                out.push(CLIENT_PASSWORD);
                out.extend(message);
            }
            ClientFrame::File(header) => encode_header(header, &mut out),
            ClientFrame::Begin { index, offset } => {
                out.push(BEGIN);
                out.extend(index.to_be_bytes());
                out.extend(offset.to_be_bytes());
            }
            ClientFrame::Working => out.push(CLIENT_WORKING),
            ClientFrame::End { index, sha256 } => {
                out.push(END);
                out.extend(index.to_be_bytes());
                out.push(u8::from(sha256.is_none()));
                out.extend(sha256.unwrap_or_default());
            }
            ClientFrame::Finish { entries } => {
                out.push(FINISH);
                out.extend(entries.to_be_bytes());
            }
        }
        out
    }

    /// Reads a frame.
    pub fn decode(bytes: &[u8]) -> Result<ClientFrame, FrameError> {
        let mut r = Reader(bytes);
        let frame = match r.u8()? {
            HELLO => {
                let hello = Hello::decode(&mut r)?;
                if hello.version != VERSION {
                    // Of another version's hello only the beginning is known.
                    return Ok(ClientFrame::Hello(hello));
                }
                ClientFrame::Hello(hello)
            }
            CLIENT_PASSWORD => ClientFrame::Password(r.array()?),
            FILE => ClientFrame::File(decode_header(&mut r)?),
            BEGIN => ClientFrame::Begin { index: r.u32()?, offset: r.u64()? },
            CLIENT_WORKING => ClientFrame::Working,
            END => {
                let index = r.u32()?;
                let abandoned = match r.u8()? {
                    0 => false,
                    1 => true,
                    _ => return Err(FrameError::Value("outcome")),
                };
                let sha256 = r.array::<32>()?;
                ClientFrame::End { index, sha256: (!abandoned).then_some(sha256) }
            }
            FINISH => ClientFrame::Finish { entries: r.u32()? },
            other => return Err(FrameError::Type(other)),
        };
        r.end()?;
        Ok(frame)
    }
}

fn encode_header(header: &FileHeader, out: &mut Vec<u8>) {
    let (seconds, nanos) = header.modified.unwrap_or((0, u32::MAX));
    out.push(FILE);
    out.extend(header.index.to_be_bytes());
    out.push(u8::from(header.kind == Kind::Directory));
    out.extend(header.size.to_be_bytes());
    out.extend(header.mode.unwrap_or(MODE_UNKNOWN).to_be_bytes());
    out.extend(seconds.to_be_bytes());
    out.extend(nanos.to_be_bytes());
    out.extend((header.name.as_str().len() as u16).to_be_bytes());
    out.extend(header.name.as_str().as_bytes());
}

fn decode_header(r: &mut Reader<'_>) -> Result<FileHeader, FrameError> {
    let index = r.u32()?;
    let kind = match r.u8()? {
        0 => Kind::File,
        1 => Kind::Directory,
        _ => return Err(FrameError::Value("kind")),
    };
    let size = r.u64()?;
    let mode = r.u32()?;
    let seconds = i64::from_be_bytes(r.array()?);
    let nanos = r.u32()?;
    let name_len = r.u16()?;
    let bytes = r.take(usize::from(name_len))?;
    r.end()?;
    let name = RelativePath::from_bytes(bytes).map_err(|why| {
        FrameError::Name(Unnamed { index, kind, size, name: shown_bytes(bytes), why })
    })?;
    Ok(FileHeader {
        index,
        kind,
        size,
        mode: (mode != MODE_UNKNOWN).then_some(mode & 0o777),
        modified: (nanos < 1_000_000_000).then_some((seconds, nanos)),
        name,
    })
}

impl ServerFrame {
    /// The frame's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            ServerFrame::Password(message) => {
                out.push(SERVER_PASSWORD);
                out.extend(message);
            }
            ServerFrame::Welcome(accepts) => {
                out.extend([WELCOME, VERSION]);
                out.extend(accepts.map(Accepts::to_byte));
            }
            ServerFrame::Ready(ready) => {
                out.push(READY);
                ready.encode(&mut out);
            }
            ServerFrame::Working => out.push(SERVER_WORKING),
            ServerFrame::Status(status) => {
                let text = cut(&status.text, TEXT_MAX);
                out.push(STATUS);
                out.extend(status.index.to_be_bytes());
                out.push(status.outcome as u8);
                out.extend((text.len() as u16).to_be_bytes());
                out.extend(text.as_bytes());
            }
            ServerFrame::Summary(s) => {
                out.push(SUMMARY);
                out.extend(s.stored.to_be_bytes());
                out.extend(s.failed.to_be_bytes());
                for value in [s.bytes, s.first_byte_ns, s.max_delivery_gap_ns, s.settle_ns] {
                    out.extend(value.to_be_bytes());
                }
            }
        }
        out
    }

    /// Reads a frame.
    pub fn decode(bytes: &[u8]) -> Result<ServerFrame, FrameError> {
        let mut r = Reader(bytes);
        let frame = match r.u8()? {
            SERVER_PASSWORD => ServerFrame::Password(r.array()?),
            WELCOME => {
                if r.u8()? != VERSION {
                    return Err(FrameError::Value("version"));
                }
                // Later receivers may say more.
                return Ok(ServerFrame::Welcome(r.rest().first().copied().map(Accepts::from_byte)));
            }
            READY => ServerFrame::Ready(Ready::decode(&mut r)?),
            SERVER_WORKING => ServerFrame::Working,
            STATUS => {
                let index = r.u32()?;
                let outcome = Outcome::from_byte(r.u8()?).ok_or(FrameError::Value("outcome"))?;
                let len = usize::from(r.u16()?).min(TEXT_MAX);
                let text = String::from_utf8_lossy(r.take(len)?).into_owned();
                ServerFrame::Status(FileStatus { index, outcome, text })
            }
            SUMMARY => ServerFrame::Summary(Summary {
                stored: r.u32()?,
                failed: r.u32()?,
                bytes: r.u64()?,
                first_byte_ns: r.u64()?,
                max_delivery_gap_ns: r.u64()?,
                settle_ns: r.u64()?,
            }),
            other => return Err(FrameError::Type(other)),
        };
        r.end()?;
        Ok(frame)
    }
}

/// The beginning of `text`, at most `max` bytes, cut between characters.
pub fn cut(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rfind(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
mod tests;
