//! Protection of packets, its keys, and a peer that lost them.

pub(super) mod doubt;
pub(super) mod keys;
pub(super) mod protection;
