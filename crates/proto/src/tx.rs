//! The sending side: queued messages, outstanding chunks, and the SACKs that report on them.

mod outstanding;
mod sack;
mod send_queue;

pub(crate) use outstanding::Outstanding;
pub(crate) use outstanding::abandoned::{GivenUp, MessageId};
pub(crate) use outstanding::ring::{Sent, TsnState};
pub(crate) use sack::digest::{
    AckRules, PathDigest, SACK_FLAG_TWO_PACKETS, SackArrival, SackDigest, SackError,
};
pub(crate) use sack::echo::Echo;
pub(crate) use send_queue::{Dropped, Fragment, SendQueue};
pub use send_queue::{SendError, SendOptions};
