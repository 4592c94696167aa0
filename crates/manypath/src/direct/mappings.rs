//! Ports that home routers forward to this host, asked for while direct paths are looked for.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use manypath_net::gateway_of;
use manypath_net::port_mapping::{PortMapping, is_reachable_from_elsewhere};
use manypath_proto::Instant;

/// Most routers that are asked.
const ROUTERS_MAX: usize = 4;
/// The time between two looks at the routers' answers. A router is asked for some seconds.
const LOOK: Duration = Duration::from_secs(1);

/// A local address, and its port in the router.
#[derive(Debug)]
struct Mapped {
    local: SocketAddr,
    mapping: PortMapping,
    /// The public address, as it was at the last look.
    external: Option<SocketAddr>,
}

/// The ports that routers forward to this host. They are given back when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Mappings {
    all: Vec<Mapped>,
    look_at: Option<Instant>,
}

impl Mappings {
    /// Asks the routers between these local addresses and `remote`, and no others.
    pub(super) fn follow(&mut self, now: Instant, locals: &[SocketAddr], remote: IpAddr) {
        self.all.retain(|mapped| locals.contains(&mapped.local));
        for &local in locals {
            let is_private = !is_reachable_from_elsewhere(local.ip());
            let is_known = self.all.iter().any(|mapped| mapped.local == local);
            if is_known || !is_private || self.all.len() >= ROUTERS_MAX {
                continue;
            }
            if let Ok(Some(gateway)) = gateway_of(local.ip(), remote) {
                let mapping = PortMapping::start(local, gateway);
                self.all.push(Mapped { local, mapping, external: None });
            }
        }
        self.look_at = (!self.all.is_empty()).then_some(now + LOOK);
    }

    /// Looks at the answers, if it is time. True if public addresses have changed.
    pub(super) fn look(&mut self, now: Instant) -> bool {
        if self.look_at.is_none_or(|at| now < at) {
            return false;
        }
        self.look_at = Some(now + LOOK);
        let mut has_changed = false;
        for mapped in &mut self.all {
            let external = mapped.mapping.external();
            has_changed |= std::mem::replace(&mut mapped.external, external) != external;
        }
        has_changed
    }

    /// When [`look`](Self::look) is to be called.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.look_at
    }

    /// The public addresses, each with the local one behind it.
    pub(super) fn found(&self) -> impl Iterator<Item = (SocketAddr, SocketAddr)> + '_ {
        self.all.iter().filter_map(|mapped| Some((mapped.local, mapped.external?)))
    }
}
