//! The part that relays play for an endpoint: beside other paths, for everything, or to meet only.

use std::net::SocketAddr;
#[cfg(feature = "relay")]
use std::sync::Arc;
use std::time::Duration;

use manypath_proto::{AssocClosed, Datagram, Directness, Instant};
use tokio::time::{sleep, timeout};

use crate::association::Association;
use crate::error::DirectPathError;
use crate::shared::Inner;
#[cfg(feature = "relay")]
use crate::shared::Shared;

/// How long a way through a relay of this host is waited for.
#[cfg(feature = "relay")]
const WAY_TIME_MAX: Duration = Duration::from_secs(5);
/// How often an association is looked at that waits for a direct path.
const LOOK: Duration = Duration::from_millis(10);

/// The part that relays play.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[cfg(feature = "relay")]
pub enum RelayUse {
    /// Relayed paths are some among others. Where [direct
    /// paths](crate::EndpointOptions::direct_paths) are looked for, they are the backup.
    #[default]
    Beside,
    /// Everything goes through relays. An endpoint that has
    /// [relays](crate::EndpointOptions::relays) sends and takes packets through them alone. One
    /// that has none reaches peers at their [relayed addresses](crate::ConnectTarget::relayed)
    /// alone. No peer is told an address of this host, and no direct path is looked for. A peer
    /// behind the relay still sees the address that this host's packets come to it from: of an
    /// endpoint without relays that is its own.
    Only,
    /// Relays are there to meet only. The peers are told, and it holds for both ends: relayed paths
    /// carry no user data once a direct one has worked. Until then the application has to hold its
    /// content back, which [`Association::direct_path`] waits for.
    ToMeet,
}

impl Inner {
    /// Takes out what did not come through a relay, if everything has to.
    pub(crate) fn keep_relayed(&self, received: &mut Vec<Datagram>) {
        if self.takes_relays_only {
            received.retain(|datagram| self.relay_paths.is_relayed(datagram.local));
        }
    }

    /// False if everything has to leave from addresses on relays, and this is none.
    pub(crate) fn may_leave_from(&self, local: SocketAddr) -> bool {
        !self.takes_relays_only || self.relay_paths.is_relayed(local)
    }
}

/// Waits until a relay of this host leads to one of these addresses. The pairs of addresses; none
/// if no relay does within five seconds.
#[cfg(feature = "relay")]
pub(crate) async fn ways_to(
    shared: &Arc<Shared>,
    remotes: &[SocketAddr],
) -> Vec<(SocketAddr, SocketAddr)> {
    let ways = || shared.with(|inner, _| inner.relay_paths.ways_to(remotes));
    shared.with(|inner, _| {
        inner.relay_paths.want(remotes);
        inner.assocs.kick();
    });
    let mut changes = shared.relays.subscribe();
    let waiting = async {
        loop {
            let found = ways();
            let has_failed = changes.borrow_and_update().iter().all(|relay| relay.error.is_some());
            if !found.is_empty() || has_failed || changes.changed().await.is_err() {
                return found;
            }
        }
    };
    timeout(WAY_TIME_MAX, waiting).await.unwrap_or_default()
}

/// Waits until an association says something of its directness that is wanted.
async fn until(
    association: &Association,
    limit: Duration,
    is_wanted: impl Fn(Directness) -> bool,
) -> Result<(), DirectPathError> {
    let look = |inner: &mut Inner, _: Instant| {
        let assoc = inner.assocs.engine.assoc(association.id());
        let open = assoc.filter(|assoc| assoc.closed().is_none());
        open.map(manypath_proto::Association::directness)
    };
    let looking = async {
        loop {
            match association.shared().with(look) {
                Some(directness) if is_wanted(directness) => return Ok(()),
                Some(_) => sleep(LOOK).await,
                None => {
                    let closed = association.close_reason();
                    return Err(DirectPathError::Closed(closed.unwrap_or(AssocClosed::Shutdown)));
                }
            }
        }
    };
    timeout(limit, looking).await.unwrap_or(Err(DirectPathError::NotFound(limit)))
}

/// See [`Association::direct_path`].
pub(crate) async fn direct_path(
    association: &Association,
    limit: Duration,
) -> Result<(), DirectPathError> {
    let may_flow = |directness| matches!(directness, Directness::Unwanted | Directness::Direct);
    until(association, limit, may_flow).await
}

/// See [`Association::direct_only_told`].
pub(crate) async fn direct_only_told(
    association: &Association,
    limit: Duration,
) -> Result<(), DirectPathError> {
    until(association, limit, |directness| directness != Directness::Untold).await
}
