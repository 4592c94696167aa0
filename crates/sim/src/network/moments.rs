//! The instants at which a driver notes what its hosts have received.
//!
//! Results tell what was delivered during the first outage of a path: until its links were up
//! again, or until the sender found the path inactive. So a link that goes down or up concerns
//! every host, and from the first outage on a path that changes its state concerns its host and
//! those that it has routes to. In a network without outages nothing is noted.

use manypath_proto::Instant;

use super::Network;
use crate::ids::NodeId;

/// An instant, and the hosts that are to note what they have received by then.
#[derive(Debug)]
pub(crate) struct Moment {
    pub(crate) at: Instant,
    pub(crate) concerned: Concerned,
}

/// Hosts that a moment concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Concerned {
    All,
    These(Vec<NodeId>),
}

/// The moments that the driver has not seen to yet.
#[derive(Debug, Default)]
pub(super) struct Moments {
    new: Vec<Moment>,
    /// The latest of all. Those that it concerns are concerned by all that follow at its instant:
    /// what counts is what was received by the last of an instant.
    latest: Option<(Instant, Concerned)>,
}

impl Moments {
    /// A moment that concerns every host.
    pub(super) fn of_all(&mut self, at: Instant) {
        self.add(at, Concerned::All);
    }

    fn add(&mut self, at: Instant, mut concerned: Concerned) {
        match self.latest.take().filter(|(latest, _)| *latest == at) {
            Some((_, Concerned::All)) => concerned = Concerned::All,
            Some((_, Concerned::These(before))) => {
                if let Concerned::These(nodes) = &mut concerned {
                    nodes.extend(before);
                    nodes.sort_unstable();
                    nodes.dedup();
                }
            }
            None => {}
        }
        self.latest = Some((at, concerned.clone()));
        self.new.push(Moment { at, concerned });
    }
}

impl Network {
    /// A path of this node has changed its state.
    pub(crate) fn note_path_state(&mut self, node: NodeId) {
        if self.outages.is_empty() {
            return;
        }
        let routes = self.nodes[node.0 as usize].routes.iter().map(|(.., route)| *route);
        let routes = routes.chain(self.nats.ways_of(node));
        let peers = routes.map(|route| self.routes[route.0 as usize].spec.to);
        let mut concerned: Vec<NodeId> = peers.chain([node]).collect();
        concerned.sort_unstable();
        concerned.dedup();
        self.moments.add(self.queue.now(), Concerned::These(concerned));
    }

    /// The moments since the last call.
    #[inline]
    pub(crate) fn new_moments(&mut self) -> Option<Vec<Moment>> {
        (!self.moments.new.is_empty()).then(|| std::mem::take(&mut self.moments.new))
    }
}
