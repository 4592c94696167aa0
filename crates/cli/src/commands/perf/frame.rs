//! The measurement protocol's frames; `docs/protocol-transfer.md` shows them byte by byte.

use std::num::NonZeroU64;
use std::time::Duration;

use manypath::StreamId;

use manypath_files::frame::{FrameError, Reader};

/// Version of the protocol.
const VERSION: u8 = 2;
/// The stream that carries everything, in both directions.
pub(crate) const STREAM: StreamId = StreamId(0);
/// Payload protocol identifier of a frame ("mp", 0x11).
pub(crate) const PPID_CONTROL: u32 = 0x6d70_0011;
/// Payload protocol identifier of content ("mp", 0x12).
pub(crate) const PPID_CONTENT: u32 = 0x6d70_0012;
/// Largest message of content in bytes.
pub(crate) const MESSAGE_MAX: usize = 1 << 20;
/// Longest measurement.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(3600);
/// Longest frame in bytes.
pub(crate) const FRAME_MAX: usize = 64;

const MAGIC: &[u8; 4] = b"MPPF";

/// Who sends content.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The client.
    Up,
    /// The server.
    Down,
    /// Both.
    Both,
}

/// The requested measurement.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Who sends.
    pub direction: Direction,
    /// Size of each message in bytes, 1 to [`MESSAGE_MAX`].
    pub message_size: usize,
    /// How long is sent, at most [`TIME_MAX`].
    pub time: Duration,
    /// How many bytes each sender sends, if that ends it earlier.
    pub bytes: Option<u64>,
    /// Bits per second that each sender offers, evenly; `None` if as many as the network takes.
    pub rate: Option<NonZeroU64>,
}

/// The measurements of one end.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Content bytes received.
    pub bytes: u64,
    /// From the beginning to the last content received.
    pub time: Duration,
    /// The longest pause between two deliveries of content.
    pub longest_gap: Duration,
    /// Processor time this end's process used meanwhile.
    pub cpu: Duration,
}

/// A frame of either side.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// The client's first.
    Request(Request),
    /// The server's first: begin.
    Accept,
    /// No more content.
    End,
    /// The last.
    Report(Report),
}

impl Frame {
    /// The frame's bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Frame::Request(request) => {
                out.push(1);
                out.extend(MAGIC);
                out.push(VERSION);
                out.push(request.direction as u8);
                out.extend((request.message_size as u32).to_be_bytes());
                out.extend(nanos(request.time));
                out.extend(request.bytes.unwrap_or(u64::MAX).to_be_bytes());
                out.extend(request.rate.map_or(0, NonZeroU64::get).to_be_bytes());
            }
            Frame::Accept => out.extend([16, VERSION]),
            Frame::End => out.push(3),
            Frame::Report(report) => {
                out.push(18);
                out.extend(report.bytes.to_be_bytes());
                out.extend(nanos(report.time));
                out.extend(nanos(report.longest_gap));
                out.extend(nanos(report.cpu));
            }
        }
        out
    }

    /// Reads a frame.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Frame, FrameError> {
        let mut r = Reader(bytes);
        let frame = match r.u8()? {
            1 => {
                if r.take(4)? != MAGIC {
                    return Err(FrameError::Magic);
                }
                if r.u8()? != VERSION {
                    return Err(FrameError::Value("version"));
                }
                let direction = match r.u8()? {
                    0 => Direction::Up,
                    1 => Direction::Down,
                    2 => Direction::Both,
                    _ => return Err(FrameError::Value("direction")),
                };
                let message_size = r.u32()? as usize;
                let time = Duration::from_nanos(r.u64()?);
                let bytes = Some(r.u64()?).filter(|b| *b != u64::MAX);
                let rate = NonZeroU64::new(r.u64()?);
                if message_size == 0 || message_size > MESSAGE_MAX {
                    return Err(FrameError::Value("message size"));
                }
                if time > TIME_MAX {
                    return Err(FrameError::Value("time"));
                }
                Frame::Request(Request { direction, message_size, time, bytes, rate })
            }
            16 if r.u8()? == VERSION => Frame::Accept,
            16 => return Err(FrameError::Value("version")),
            3 => Frame::End,
            18 => Frame::Report(Report {
                bytes: r.u64()?,
                time: Duration::from_nanos(r.u64()?),
                longest_gap: Duration::from_nanos(r.u64()?),
                cpu: Duration::from_nanos(r.u64()?),
            }),
            other => return Err(FrameError::Type(other)),
        };
        r.end()?;
        Ok(frame)
    }
}

fn nanos(duration: Duration) -> [u8; 8] {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn frames_read_back_and_no_other_length_is_taken() {
        let request = Request {
            direction: Direction::Both,
            message_size: 46_208,
            time: Duration::from_secs(10),
            bytes: Some(5),
            rate: NonZeroU64::new(20_000_000),
        };
        let report = Report {
            bytes: 1,
            time: Duration::from_nanos(2),
            longest_gap: Duration::from_nanos(3),
            cpu: Duration::from_nanos(4),
        };
        for frame in [
            Frame::Request(request),
            Frame::Request(Request { bytes: None, ..request }),
            Frame::Request(Request { rate: None, ..request }),
            Frame::Accept,
            Frame::End,
            Frame::Report(report),
        ] {
            let bytes = frame.encode();
            assert!(bytes.len() <= FRAME_MAX);
            assert_eq!(Frame::decode(&bytes), Ok(frame));
            for end in 0..bytes.len() {
                assert!(Frame::decode(&bytes[..end]).is_err());
            }
            assert_eq!(Frame::decode(&[&bytes[..], &[0]].concat()), Err(FrameError::Length));
        }
    }

    proptest! {
        #[test]
        fn bytes_that_are_a_frame_are_those_of_the_frame(
            kind in prop_oneof![Just(1_u8), Just(3), Just(16), Just(18), any::<u8>()],
            head in prop_oneof![Just(b"MPPF\x02\x00\x00\x00\x05".to_vec()), Just(vec![])],
            rest in prop::collection::vec(any::<u8>(), 0..FRAME_MAX),
        ) {
            let bytes = [&[kind], &head[..], &rest].concat();
            if let Ok(frame) = Frame::decode(&bytes) {
                prop_assert_eq!(frame.encode(), bytes);
            }
        }
    }

    #[test]
    fn a_request_beyond_the_limits_is_refused() {
        let request = Request {
            direction: Direction::Up,
            message_size: 1,
            time: TIME_MAX,
            bytes: None,
            rate: None,
        };
        for (request, field) in [
            (Request { message_size: 0, ..request }, "message size"),
            (Request { message_size: MESSAGE_MAX + 1, ..request }, "message size"),
            (Request { time: TIME_MAX + Duration::from_nanos(1), ..request }, "time"),
        ] {
            let bytes = Frame::Request(request).encode();
            assert_eq!(Frame::decode(&bytes), Err(FrameError::Value(field)));
        }
        assert!(Frame::decode(&Frame::Request(request).encode()).is_ok());
    }
}
