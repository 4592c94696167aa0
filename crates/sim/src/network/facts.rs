//! Facts from the network that a driver needs and the engine cannot know: outages, and the true
//! loss.

use std::net::SocketAddr;

use manypath_proto::Instant;

use super::Network;
use crate::ids::{LinkId, NodeId};

impl Network {
    /// Links that went down (true) or up again, and when.
    pub(crate) fn outages(&self) -> &[(Instant, LinkId, bool)] {
        &self.outages
    }

    /// How often the loss of a link was changed.
    pub(crate) fn loss_changes(&self) -> u64 {
        self.loss_changes
    }

    /// The share of packets that the links from `local` to `remote` lose in the long run.
    pub(crate) fn true_loss(
        &self,
        node: NodeId,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Option<f64> {
        let links = self.route_links(self.find_route(node, &local, &remote)?);
        let passed = links.iter().map(|&link| 1.0 - self.link_spec(link).loss.mean());
        Some(1.0 - passed.product::<f64>())
    }
}
