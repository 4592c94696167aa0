//! Overlay paths: their scores, the routers that two of them share, and the choice among them.
//!
//! Two hosts with one uplink each have further paths through relays. The decisions here are those
//! of mTCP (Zhang, Lai, Krishnamurthy, Peterson, Wang, §3.3): a path's score from probes
//! ([`Probes`]), the disjointness of two paths from their routers ([`disjoint`]), and a greedy
//! choice of at most k paths that are disjoint enough ([`select`]). They are functions of
//! measurements; measuring needs sockets, and is done elsewhere. The association itself reviews
//! which paths carry data, and considers their hops if it is told of them
//! ([`Association::set_routes`](crate::Association::set_routes)).

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
