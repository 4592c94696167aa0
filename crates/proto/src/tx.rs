//! The sending side: what waits to be sent, what is outstanding, and what a SACK says about it.

mod copies;
mod cuc;
mod digest;
mod doubts;
mod echo;
mod extra;
mod flight;
mod kept;
mod late;
mod marked;
mod missing;
mod outstanding;
mod pipe;
mod rack;
mod ranges;
mod ring;
mod send_queue;
mod spurious;
mod virtual_queue;

pub(crate) use digest::{AckRules, PathDigest, SACK_FLAG_TWO_PACKETS, SackDigest, SackError, Via};
pub(crate) use echo::Echo;
pub(crate) use outstanding::Outstanding;
pub(crate) use ring::{Sent, TsnState};
pub(crate) use send_queue::{Fragment, SendQueue};
pub use send_queue::{SendError, SendOptions};
