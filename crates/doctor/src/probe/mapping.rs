//! A mapping of a port in the router, made for a moment.

use std::net::IpAddr;
use std::time::Duration;

use manypath_net::port_mapping::{MappingState, PortMapping};
use tokio::time::timeout;

use super::open;

/// Time for a router that answers slowly; a silent one is known as such after 2 s.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Has the router map a port of the address, and deletes the mapping again; `None` if this host
/// cannot ask.
pub(crate) fn port_mapping(source: IpAddr, gateway: IpAddr) -> Option<MappingState> {
    // It keeps the port while it is mapped.
    let socket = open(source, None).ok()?;
    let local = socket.local_addr().ok()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(async {
        let mut mapping = PortMapping::start(local, gateway);
        let state = timeout(TIME_MAX, mapping.changed()).await;
        mapping.close().await;
        state.ok()
    })
}
