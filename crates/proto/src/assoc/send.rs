//! Sending: what goes into the next packet, and where.

pub(super) mod abandon;
pub(super) mod choice;
pub(super) mod control;
pub(super) mod data;
pub(super) mod flights;
mod immediate;
pub(super) mod outgoing;
pub(super) mod output;
pub(super) mod peer_window;
pub(super) mod redundant;
pub(super) mod room;
