//! The state machine of an association as tests see it.

use std::net::SocketAddr;

use crate::Association;
use crate::path::PathStats;
use crate::view::PathState;

/// The state and the tags of an association.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The name of the state in RFC 9260 §4.
    pub state: &'static str,
    /// Our verification tag.
    pub local_tag: u32,
    /// The peer's verification tag, 0 until it is known.
    pub peer_tag: u32,
}

impl Association {
    /// The state of the association, and its tags.
    pub fn observed(&self) -> Observed {
        let id = self.identity();
        Observed { state: self.state_name(), local_tag: id.local_tag, peer_tag: id.peer_tag }
    }

    /// True if a path between these addresses is verified.
    pub fn has_verified(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        let is_it = |p: &PathStats| p.local == local && p.remote == remote;
        self.paths().any(|p| is_it(&p) && p.state != PathState::Unconfirmed)
    }
}
