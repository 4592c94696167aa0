//! Protection of packets, its keys, and a peer that lost them.

pub(super) mod keys;
pub(super) mod lost_state;
pub(super) mod protection;
