//! The events of a run, step by step: typed, declared once, and the same wherever the engine
//! runs.
//!
//! - [`Event`] is what can happen; `docs/trace.md` describes it, `docs/trace.schema.json` is its
//!   JSON Schema.
//! - [`JsonLines`] writes a [`Record`] a line, [`Records`] reads them.
//! - [`Watch`] sees what changed in an association from one look to the next.
//! - [`Recorder`] samples a transfer: a record, bounded in size, for `manypath replay`.
//! - [`Capture`] writes packets as a pcapng file for Wireshark and tshark.
//! - [`rewrite_capture`] copies a capture and replaces protected packets by opened ones.
//!
//! Nothing here keeps more than what is on its way through the network: a run may be as long as it
//! likes.
//!
//! ```
//! use manypath_proto::Instant;
//! use manypath_trace::{Event, JsonLines, Records};
//!
//! let mut lines = JsonLines::new(Vec::new());
//! let event = Event::Delivered { bytes: 1452, total_bytes: 2904 };
//! lines.write(Instant::from_millis(45), "z", &event)?;
//! let file = lines.into_inner();
//! assert_eq!(
//!     String::from_utf8_lossy(&file),
//!     concat!(
//!         r#"{"time_s":0.045,"host":"z","event":"delivered","bytes":1452,"total_bytes":2904}"#,
//!         "\n"
//!     ),
//! );
//!
//! let record = Records::new(file.as_slice()).next().expect("one line")?;
//! assert_eq!(record.time, Instant::from_millis(45));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod chunk;
mod event;
mod json_lines;
mod pcapng;
mod recorder;
mod recording;
mod rewrite;
mod watch;

pub use chunk::ChunkSummary;
pub use event::{Event, PacketSummary, PathMetrics, Record, SCHEMA_VERSION};
pub use json_lines::{JsonLines, MAX_LINE, ReadError, ReadErrorKind, Records};
pub use pcapng::{Capture, Encapsulation};
pub use recorder::Recorder;
pub use recording::{PathSample, RECORD_HOST, Recorded, Recording, TransferSample};
pub use rewrite::{Answer, OPENED, RewriteError, Rewritten, rewrite_capture};
pub use watch::Watch;

#[cfg(test)]
mod tests;
