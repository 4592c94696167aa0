//! A mapping of a UDP port in the home router, so that peers elsewhere can reach it.
//!
//! The router is asked by PCP (RFC 6887), NAT-PMP (RFC 6886) and UPnP IGD (UPnP Forum,
//! WANIPConnection:1 and :2), the last two for IPv4 only. A mapping is renewed at half of its
//! lifetime, asked for again when the router has restarted, and deleted at the end.
//!
//! Everything that a router says is untrusted. Answers count only from the router's own address,
//! are bounded in size and number, and lead to no other host: a description or a control URL of
//! UPnP elsewhere is refused, and so is a redirect.
//!
//! No crate for these protocols is used. A host with several uplinks must ask each router from the
//! socket of its own interface, which `crab_nat` and `igd-next` cannot do; and `igd-next` would add
//! HTTP/2 and internationalised names to a program that has a client for HTTP/1 and a reader of XML
//! already.

mod epoch;
mod igd;
mod keep;
mod nat_pmp;
mod pcp;
mod place;
mod reach;
mod udp;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use keep::Pace;
use place::Place;
pub use reach::{is_reachable_from_elsewhere, is_shared};

/// Time for deleting a mapping in [`PortMapping::close`], beside that of an answer still awaited.
const CLOSE_MAX: Duration = Duration::from_secs(6);

/// The protocol by which a router made a mapping.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum MappedBy {
    /// Port Control Protocol (RFC 6887).
    Pcp,
    /// NAT Port Mapping Protocol (RFC 6886).
    NatPmp,
    /// Universal Plug and Play, Internet Gateway Device.
    UpnpIgd,
}

impl fmt::Display for MappedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MappedBy::Pcp => "PCP",
            MappedBy::NatPmp => "NAT-PMP",
            MappedBy::UpnpIgd => "UPnP IGD",
        })
    }
}

/// A port that a router forwards to this host.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct MappedPort {
    /// The address that the router has on its other side, and the port there.
    pub external: SocketAddr,
    /// The protocol that made the mapping.
    pub by: MappedBy,
    /// The lifetime without a renewal; `None` if it lasts until it is deleted.
    pub lifetime: Option<Duration>,
}

impl MappedPort {
    /// True if the router is itself behind a NAT, such as a carrier's: peers elsewhere cannot use
    /// its external address, which is private or shared (RFC 1918, RFC 6598).
    pub fn is_behind_another_nat(&self) -> bool {
        !is_reachable_from_elsewhere(self.external.ip())
    }
}

/// The reason why a router made no mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotMapped {
    /// It answers to none of the protocols.
    Silent,
    /// It refuses.
    Refused {
        /// The protocol of its answer.
        by: MappedBy,
        /// The reason, in words of ours.
        why: &'static str,
        /// The number of the reason in that protocol.
        code: u16,
    },
    /// The answers make no sense, or would lead to another host.
    Nonsense(MappedBy),
    /// It has no address on its other side.
    NoExternalAddress(MappedBy),
    /// The local address has no port, or is of another family than the router's.
    BadAddress,
    /// This host cannot send to it; the system's words.
    System(String),
}

impl fmt::Display for NotMapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotMapped::Silent => f.write_str("it answers to none of PCP, NAT-PMP and UPnP IGD"),
            NotMapped::Refused { by, why, code } => write!(f, "{by}: {why} ({code})"),
            NotMapped::Nonsense(by) => write!(f, "{by}: its answers make no sense"),
            NotMapped::NoExternalAddress(by) => {
                write!(f, "{by}: it has no address on its other side")
            }
            NotMapped::BadAddress => f.write_str("the local address cannot be mapped there"),
            NotMapped::System(why) => f.write_str(why),
        }
    }
}

/// The state of a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MappingState {
    /// The router is being asked for the first time: some 2 s if it is silent, up to 5 s if it is
    /// slow.
    Asking,
    /// There is a mapping.
    Mapped(MappedPort),
    /// There is none. The router is asked again after half a minute, later less often.
    NotMapped(NotMapped),
}

/// A mapping that is kept while this exists, by a task of the runtime.
#[derive(Debug)]
pub struct PortMapping {
    state: watch::Receiver<MappingState>,
    task: JoinHandle<()>,
}

impl PortMapping {
    /// Begins to ask the router `gateway` for a mapping to the UDP port of `local`, an address of
    /// this host. An unspecified address means the one that packets to the router leave from.
    /// [`gateway_of`](crate::gateway_of) knows routers. Must be called within a tokio runtime whose
    /// I/O and time drivers are enabled.
    pub fn start(local: SocketAddr, gateway: IpAddr) -> PortMapping {
        PortMapping::start_at(local, gateway, Pace::default())
    }

    fn start_at(local: SocketAddr, gateway: IpAddr, pace: Pace) -> PortMapping {
        let (tell, state) = watch::channel(MappingState::Asking);
        let place = Place::new(local, gateway);
        let task = tokio::spawn(keep::keep(place, pace, tell));
        PortMapping { state, task }
    }

    /// The state now.
    pub fn state(&self) -> MappingState {
        self.state.borrow().clone()
    }

    /// The transport address that peers elsewhere can reach the port at. `None` without a mapping,
    /// and with one in a router that is itself behind a NAT.
    pub fn external(&self) -> Option<SocketAddr> {
        self.mapped().filter(|mapped| !mapped.is_behind_another_nat()).map(|m| m.external)
    }

    /// The protocol of the mapping, if there is one.
    pub fn how(&self) -> Option<MappedBy> {
        self.mapped().map(|mapped| mapped.by)
    }

    fn mapped(&self) -> Option<MappedPort> {
        match &*self.state.borrow() {
            MappingState::Mapped(mapped) => Some(*mapped),
            _ => None,
        }
    }

    /// Waits for a state that was not returned by this function yet, and returns it. Cancelling it
    /// loses nothing.
    pub async fn changed(&mut self) -> MappingState {
        // The sender lives as long as the task, which lives as long as this receiver.
        if self.state.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        self.state.borrow_and_update().clone()
    }

    /// Deletes the mapping and waits for that, some seconds at most. Dropping it does the same
    /// without waiting, if the runtime goes on.
    pub async fn close(self) {
        let PortMapping { state, task } = self;
        drop(state);
        // A router that is silent now lets the mapping expire.
        let _ = tokio::time::timeout(CLOSE_MAX, task).await;
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
