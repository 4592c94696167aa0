//! A host's reaction when its system reports that its addresses or routes changed.

use manypath_proto::Instant;

use super::Host;
use crate::network::{AddressChange, Network};

impl Host {
    /// Tells the engine that routes may have changed.
    pub fn network_changed(&mut self, now: Instant) {
        self.endpoint.network_changed(now);
        self.pending.commands = true;
    }

    /// Tells the engine that an address is gone, or that there is a new one: then it adds the paths
    /// from there.
    pub fn handle_address(&mut self, change: &AddressChange, net: &mut Network) {
        let now = net.now();
        match change {
            AddressChange::Gone { address, .. } => {
                self.setup.addresses.retain(|a| a != address);
                self.endpoint.local_gone(now, *address);
            }
            AddressChange::Came { old, address, remotes, .. } => {
                self.setup.addresses.push(*address);
                let all = self.setup.connect.iter_mut().chain(&mut self.setup.candidates);
                for (local, _) in all.filter(|(local, _)| local == old) {
                    *local = *address;
                }
                self.endpoint.set_local_addresses(self.setup.addresses.clone());
                if let Some(assoc) = self.assoc.and_then(|id| self.endpoint.assoc_mut(id)) {
                    for remote in remotes {
                        assoc.add_path(now, *address, *remote);
                    }
                    for (local, remote) in &self.setup.candidates {
                        assoc.add_candidate(now, *local, *remote);
                    }
                }
                self.endpoint.network_changed(now);
            }
        }
        self.drive(net);
    }
}
