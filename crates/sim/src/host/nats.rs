//! Facts that a host behind NATs can learn of itself.

use std::net::SocketAddr;

use super::Host;
use crate::network::Network;

/// An address of a host, and how a STUN server sees it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ReflexiveAddress {
    /// The address as the host has it.
    pub local: SocketAddr,
    /// The address as the server sees it: the same if it is behind no NAT.
    pub seen: SocketAddr,
}

impl Host {
    /// Asks a STUN server how it sees each of the host's addresses now; see
    /// [`Network::reflexive`](crate::Network::reflexive). Nobody tells the host when that changes:
    /// it has to ask again, as programs do.
    pub fn reflexive_addresses(&self, net: &mut Network) -> Vec<ReflexiveAddress> {
        let own = self.setup.addresses.iter();
        let seen = own.filter_map(|&local| {
            let seen = net.reflexive(self.node, local)?;
            Some(ReflexiveAddress { local, seen })
        });
        seen.collect()
    }
}
