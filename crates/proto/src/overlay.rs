//! Overlay paths: how good each is, how much two of them have in common, and which to use.
//!
//! Two hosts with one uplink each have further paths through relays. These decisions are those of
//! mTCP (Zhang, Lai, Krishnamurthy, Peterson, Wang, §3.3): a path's score from probes ([`Probes`]),
//! the disjointness of two paths from their routers ([`disjoint`]), a greedy choice of at most k
//! paths that are disjoint enough ([`select`]). Which paths carry data is reviewed by the
//! association itself, with their hops if it is told
//! ([`Association::set_routes`](crate::Association::set_routes)). They are functions of what was
//! measured; measuring needs sockets, and is elsewhere.

mod disjoint;
mod score;
mod select;

pub use disjoint::{
    Aliases, BETA, Hop, RESOLUTION, Route, RouterId, SharedLink, disjoint, shared_links,
};
pub use score::{Probes, score};
pub use select::{Candidate, Choice, select};

#[cfg(test)]
mod tests;
