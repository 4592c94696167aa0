//! Receiving: from a packet to its chunks, data and SACKs.

pub(super) mod input;
pub(super) mod receiving;
pub(super) mod sack_path;
