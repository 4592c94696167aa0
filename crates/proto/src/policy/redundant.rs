//! Chunks that are sent on a second path while they are in flight on one: which, where and when.

mod flights;
mod late;
mod msacmt_rt;
mod msacmt_rt_once;
mod msacmt_rtv2;
mod off;
mod rank;

pub use flights::{FlightPath, Flights, SentChunk};
pub use late::Late;
pub use msacmt_rt::MsacmtRt;
pub use msacmt_rt_once::MsacmtRtOnce;
pub use msacmt_rtv2::MsacmtRtv2;
pub use off::Off;

use manypath_wire::Tsn;

use super::{Needs, PolicyCx, registry};
use crate::time::Instant;
use crate::view::PathId;

/// One path sends again what another sends, and no new data.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Cover {
    /// The path that carries the copies.
    pub redundant: PathId,
    /// The path whose DATA chunks are duplicated.
    pub covered: PathId,
}

/// A chunk that is to be sent on a second path.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ChunkCopy {
    /// TSN of the chunk. It must be in flight, and on one path only.
    pub tsn: Tsn,
    /// Another path than its own, which is usable and has room.
    pub on: PathId,
    /// Sets the I bit, so that the receiver sends a SACK at once (RFC 9260 §3.3.1).
    pub asks_for_sack: bool,
}

/// The moment at which a policy is asked for a copy.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum CopyTurn {
    /// Nothing waits for retransmission, and new data would be next.
    BeforeNewData,
    /// There is no new data, or the peer has no room for it.
    Idle,
}

/// When a policy is asked again although nothing is sent or arrives.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NextLook {
    /// At this time, or earlier if an earlier look is still to come. A time that is over counts for
    /// nothing.
    At(Instant),
    /// When pacing lets another path than this one send, of those whose congestion window has room.
    Paced {
        /// This path does not count.
        except: PathId,
    },
}

/// Sends chunks on a second path while they are in flight on one.
///
/// It does so by roles or chunk by chunk. *Roles* ([`cover`](Self::cover)) let one path duplicate
/// all that another sends. The engine tells such a policy of *flights*. A flight of a path is all
/// that is in flight there at one moment; the next one begins when all of it is acknowledged, or
/// found missing and sent again. It failed if T3-rtx expired meanwhile.
///
/// *Chunk by chunk* ([`copy`](Self::copy)), the policy looks at all [`Flights`] before each chunk
/// of new data, and again when nothing else can be sent.
pub trait RedundancyPolicy: std::fmt::Debug + Send {
    /// Of [`Needs`], `roles` and `copies` are its own. A policy that never duplicates anything has
    /// neither.
    fn needs(&self) -> Needs {
        Needs { roles: true, ..Needs::default() }
    }

    /// The paths' roles from now on. Asked with `roles` only, before anything is sent, after what
    /// happened was told.
    fn cover(&mut self, _cx: &mut PolicyCx<'_>) -> Option<Cover> {
        None
    }

    /// A flight of this path ended without a timeout. Told with `roles` only.
    fn flight_succeeded(&mut self, _path: PathId) {}

    /// T3-rtx expired on this path.
    fn flight_failed(&mut self, _path: PathId) {}

    /// The chunk to copy now, if any. Asked with `copies` only, while something is outstanding. The
    /// engine ignores a copy that [`ChunkCopy`] does not allow.
    ///
    /// The answer is no promise that the copy leaves: the packet may have no room for it. Copies
    /// that left are in [`Flights::bytes_copied`].
    fn copy(
        &mut self,
        _now: Instant,
        _turn: CopyTurn,
        _flights: &dyn Flights,
    ) -> Option<ChunkCopy> {
        None
    }

    /// When to ask for a copy again although nothing happens. Asked with `copies` only, when
    /// nothing can be sent; `None` if any copy would follow from what arrives.
    fn next_look(&mut self, _now: Instant, _flights: &dyn Flights) -> Option<NextLook> {
        None
    }
}

registry!(RedundancyPolicy {
    "off" => |_| Box::new(Off),
    "late" => |_| Box::new(Late),
    "msacmt_rt" => |config| Box::new(MsacmtRt::new(config.redundancy_order)),
    "msacmt_rt_once" => |config| Box::new(MsacmtRtOnce::new(config.redundancy_order)),
    "msacmt_rtv2" => |config| {
        let (review, cycle) = (config.redundancy_review, config.redundancy_cycle);
        Box::new(MsacmtRtv2::new(review, cycle, config.redundancy_order))
    },
});

#[cfg(test)]
mod tests;
