//! Opening the sockets: which addresses, which port, and what to say when it fails.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::address::is_link_local_v6;
use crate::interfaces;
use crate::raw;

/// Wanted size of each socket's receive buffer in bytes: a full window of a fast path between two
/// turns of the driver. The system may grant less.
const RECV_BUFFER: usize = 8 << 20;

/// Wanted size of each socket's send buffer in bytes: some batches, so that the driver need not
/// wait for each, but no more. What waits in the queue of a slow interface counts against it, and
/// is late.
const SEND_BUFFER: usize = 512 << 10;

/// The buffers of sockets, in bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Wanted for what arrives.
    pub receive_wanted: usize,
    /// Wanted for what leaves.
    pub send_wanted: usize,
    /// Granted by the system for what arrives.
    pub receive: usize,
    /// Granted by the system for what leaves.
    pub send: usize,
}

/// The buffers that the system grants this process, found by opening a socket.
pub fn granted_buffers() -> io::Result<Buffers> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    size_buffers(&socket);
    // Linux counts its own records as well, and says twice of what it was asked for.
    let share = if cfg!(target_os = "linux") { 2 } else { 1 };
    Ok(Buffers {
        receive_wanted: RECV_BUFFER,
        send_wanted: SEND_BUFFER,
        receive: socket.recv_buffer_size()? / share,
        send: socket.send_buffer_size()? / share,
    })
}

/// How often another port is tried when one that was free on the first address is taken on the
/// next.
const PORT_TRIES: usize = 32;

/// One thing to bind a socket to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum BindTo {
    /// Every address of this host, and for what it connects to every uplink: each interface with a
    /// route there ([`Uplinks`](crate::Uplinks)) is kept to by a socket of its own. The default.
    Auto,
    /// Every address of this host, IPv4 and IPv6; the kernel's routes choose the source.
    Any,
    /// One address; routes decide which interface its packets leave through. The unspecified
    /// address means every address of its family, and `::ffff:192.0.2.1` means 192.0.2.1. No
    /// link-local one of IPv6: name its interface.
    Address(IpAddr),
    /// One interface by name, such as `eth0`: its first IPv4 and its first global IPv6 address. On
    /// Linux what is sent leaves through this interface whatever the routes say, so that two
    /// uplinks are two paths without any policy routing.
    Interface(String),
}

impl FromStr for BindTo {
    type Err = std::convert::Infallible;

    /// `auto` is [`BindTo::Auto`], `*` is [`BindTo::Any`], an IP address, in brackets or not, is
    /// itself, and anything else an interface's name.
    fn from_str(text: &str) -> Result<BindTo, Self::Err> {
        let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        Ok(match inner.unwrap_or(text).parse::<IpAddr>() {
            Ok(ip) => BindTo::Address(ip.to_canonical()),
            Err(_) if text == "auto" => BindTo::Auto,
            Err(_) if text == "*" => BindTo::Any,
            Err(_) => BindTo::Interface(text.to_owned()),
        })
    }
}

impl fmt::Display for BindTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BindTo::Auto => f.write_str("auto"),
            BindTo::Any => f.write_str("*"),
            BindTo::Address(ip) => ip.fmt(f),
            BindTo::Interface(name) => name.fmt(f),
        }
    }
}

/// Why the sockets could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Another socket has the port.
    #[error(
        "UDP {0} is in use; stop the other program, or choose another port (0 takes any free one)"
    )]
    InUse(SocketAddr),
    /// No port was free on all addresses at once.
    #[error("found no UDP port that is free on all the addresses; name a port, or fewer addresses")]
    NoCommonPort,
    /// The port needs a privilege.
    #[error(
        "not permitted to bind UDP {0}; use a port of 1024 or above, or run with more privilege"
    )]
    NotPermitted(SocketAddr),
    /// Raw sockets, for SCTP over IP itself, need a privilege.
    #[error(
        "not permitted to open raw sockets, which SCTP over IP needs; give the program CAP_NET_RAW \
         (`sudo setcap cap_net_raw+ep FILE`), or run it with sudo"
    )]
    RawNotPermitted,
    /// This system has no raw sockets as Linux has.
    #[error("SCTP over IP works on Linux only; leave it to UDP here")]
    NoRawIp,
    /// Another endpoint of this host has the SCTP port over IP. Each gets all packets, and both
    /// would answer.
    #[error("SCTP port {0} is in use over IP; stop the other program, or choose another SCTP port")]
    SctpPortInUse(u16),
    /// No SCTP port was found that nobody has.
    #[error("found no SCTP port that is free over IP; name one")]
    NoFreeSctpPort,
    /// The address is not one of this host's.
    #[error("{ip} is not an address of this host; it has: {}", list(.has))]
    NotLocal {
        /// The address asked for.
        ip: IpAddr,
        /// Those there are, without loopback.
        has: Vec<IpAddr>,
    },
    /// There is no such interface, or it has no address.
    #[error("there is no interface {name:?} with an address; this host has: {}", list(.has))]
    NoInterface {
        /// The interface asked for.
        name: String,
        /// Those there are, without loopback.
        has: Vec<String>,
    },
    /// A link-local address of IPv6, with its interface or without.
    #[error(
        "cannot bind to {0}: sockets are not bound to link-local addresses (fe80::…) alone; bind to \
         the interface by its name, to another address, or to every address"
    )]
    LinkLocal(String),
    /// The system refused for another reason.
    #[error("cannot open a socket on {address}: {source}")]
    System {
        /// The address tried.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The interfaces of this host cannot be listed.
    #[error("cannot list the interfaces of this host: {0}")]
    Interfaces(io::Error),
}

fn list<T: ToString>(items: &[T]) -> String {
    if items.is_empty() {
        return "none".to_owned();
    }
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// An address to open a socket on, and the device to keep it to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) ip: IpAddr,
    pub(crate) device: Option<String>,
    /// An address that this host may lack without harm: IPv6 of [`BindTo::Any`].
    optional: bool,
    /// Opened because an interface leads to a peer, beside a socket on every address.
    pub(crate) is_uplink: bool,
    pub(crate) kind: PlaceKind,
}

/// The sort of socket at a place.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum PlaceKind {
    /// A UDP socket.
    Udp,
    /// A raw socket, for SCTP over IP itself.
    Raw,
    /// A raw socket that only sends: one on every address gets all that arrives.
    RawMute,
}

impl Place {
    /// An address of an interface.
    pub(crate) fn of_interface(ip: IpAddr, name: &str) -> Place {
        Place { device: Some(name.to_owned()), ..Place::of_address(ip) }
    }

    /// An uplink beside a socket on every address.
    pub(crate) fn of_uplink(ip: IpAddr, name: &str) -> Place {
        Place { is_uplink: true, ..Place::of_interface(ip, name) }
    }

    fn of_address(ip: IpAddr) -> Place {
        Place { ip, device: None, optional: false, is_uplink: false, kind: PlaceKind::Udp }
    }

    /// The place of a raw socket beside a UDP socket, where there are sockets at these addresses.
    /// Of several raw sockets that get the same packets, the one on every address is read.
    pub(crate) fn raw_beside(self, ips: &[IpAddr]) -> Place {
        let is_any = |ip: &IpAddr| ip.is_unspecified() && ip.is_ipv6() == self.ip.is_ipv6();
        let is_mute = !self.ip.is_unspecified() && ips.iter().any(is_any);
        let kind = if is_mute { PlaceKind::RawMute } else { PlaceKind::Raw };
        Place { kind, ..self }
    }

    /// True for a place of a raw socket.
    pub(crate) fn is_raw(&self) -> bool {
        self.kind != PlaceKind::Udp
    }
}

/// A socket opened and configured, not yet known to a runtime.
pub(crate) struct Bound {
    pub(crate) socket: std::net::UdpSocket,
    /// Beside a raw socket: see [`raw`].
    pub(crate) keeper: Option<Socket>,
    pub(crate) local: SocketAddr,
    pub(crate) place: Place,
    /// Why the socket is not kept to its interface, if it should be.
    pub(crate) note: Option<String>,
}

/// The places that `wanted` names, in order and each once; [`BindTo::Auto`] if it names none.
pub(crate) fn places(wanted: &[BindTo]) -> Result<Vec<Place>, BindError> {
    let wanted = if wanted.is_empty() { &[BindTo::Auto] } else { wanted };
    let mut places: Vec<Place> = Vec::new();
    for bind in wanted {
        let new = match bind {
            BindTo::Any | BindTo::Auto => vec![
                Place::of_address(Ipv4Addr::UNSPECIFIED.into()),
                Place { optional: true, ..Place::of_address(Ipv6Addr::UNSPECIFIED.into()) },
            ],
            BindTo::Address(ip) if is_link_local_v6(*ip) => {
                return Err(BindError::LinkLocal(ip.to_string()));
            }
            BindTo::Address(ip) => vec![Place::of_address(ip.to_canonical())],
            BindTo::Interface(name) if has_interface(name) => {
                return Err(BindError::LinkLocal(name.clone()));
            }
            BindTo::Interface(name) => interface_places(name)?,
        };
        for place in new {
            if !places.iter().any(|p| p.ip == place.ip) {
                places.push(place);
            }
        }
    }
    Ok(places)
}

/// True for an address with its interface (RFC 4007 §11), in brackets or not: `fe80::7%eth0`.
fn has_interface(text: &str) -> bool {
    let address = text.trim_start_matches('[').split_once('%');
    address.is_some_and(|(ip, _)| ip.parse::<Ipv6Addr>().is_ok())
}

fn interface_places(name: &str) -> Result<Vec<Place>, BindError> {
    let Some(all) = interfaces::addresses_of(name).map_err(BindError::Interfaces)? else {
        let mut has: Vec<_> = local_interfaces().into_iter().map(|i| i.name).collect();
        has.dedup();
        return Err(BindError::NoInterface { name: name.to_owned(), has });
    };
    let v4 = all.iter().find(|ip| ip.is_ipv4());
    let v6 = all.iter().find(|ip| ip.is_ipv6());
    Ok(v4.into_iter().chain(v6).map(|ip| Place::of_interface(*ip, name)).collect())
}

fn local_interfaces() -> Vec<interfaces::InterfaceAddress> {
    interfaces::interfaces().unwrap_or_default()
}

/// Opens a socket on each of `places`, all with `port`; port 0 picks one that is free on all.
pub(crate) fn open(places: &[Place], port: u16) -> Result<Vec<Bound>, BindError> {
    if port != 0 {
        return open_all(places, port);
    }
    for _ in 0..PORT_TRIES {
        // The system picks for the first address; the others may find that port taken.
        let Some((first, rest)) = places.split_first() else { return Ok(Vec::new()) };
        let first = open_one(first, 0)?;
        match open_all(rest, first.local.port()) {
            Ok(others) => return Ok(std::iter::once(first).chain(others).collect()),
            Err(BindError::InUse(_)) => {}
            Err(other) => return Err(other),
        }
    }
    Err(BindError::NoCommonPort)
}

pub(crate) fn open_all(places: &[Place], port: u16) -> Result<Vec<Bound>, BindError> {
    let mut bound = Vec::with_capacity(places.len());
    for place in places {
        match open_one(place, port) {
            Ok(socket) => bound.push(socket),
            Err(BindError::System { .. } | BindError::NotLocal { .. }) if place.optional => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bound)
}

/// Opens a socket at one place. Raw sockets have no port.
pub(crate) fn open_one(place: &Place, port: u16) -> Result<Bound, BindError> {
    if place.is_raw() {
        return raw::open(place);
    }
    let address = SocketAddr::new(place.ip, port);
    let system = |source| BindError::System { address, source };
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))
        .map_err(system)?;
    if address.is_ipv6() {
        // IPv4 has its own socket; mapped addresses would be a second name for the same path.
        socket.set_only_v6(true).map_err(system)?;
    }
    let note = place.device.as_deref().and_then(|device| keep_to_device(&socket, device));
    if place.is_uplink {
        share_port(SockRef::from(&socket), true).map_err(system)?;
    }
    socket.bind(&address.into()).map_err(|source| refused(address, source))?;
    size_buffers(&socket);
    let socket = std::net::UdpSocket::from(socket);
    let local = socket.local_addr().map_err(system)?;
    Ok(Bound { socket, keeper: None, local, place: place.clone(), note })
}

pub(crate) fn refused(address: SocketAddr, source: io::Error) -> BindError {
    match source.kind() {
        io::ErrorKind::AddrInUse => BindError::InUse(address),
        io::ErrorKind::PermissionDenied => BindError::NotPermitted(address),
        io::ErrorKind::AddrNotAvailable => {
            let has = local_interfaces().into_iter().map(|i| i.ip).collect();
            BindError::NotLocal { ip: address.ip(), has }
        }
        _ => BindError::System { address, source },
    }
}

/// Makes everything the socket sends leave through `device`. If that is not permitted, the socket
/// works by routes alone, and the reason is returned.
#[cfg(target_os = "linux")]
pub(crate) fn keep_to_device(socket: &Socket, device: &str) -> Option<String> {
    let error = socket.bind_device(Some(device.as_bytes())).err()?;
    Some(format!(
        "cannot keep a socket to interface {device} ({error}); its address is used, and the routing \
         table decides where packets leave"
    ))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn keep_to_device(_: &Socket, device: &str) -> Option<String> {
    Some(format!(
        "sockets are kept to an interface on Linux only; for {device} its address is used, and the \
         routing table decides where packets leave"
    ))
}

/// Lets a socket have its port although another of this user has it on every address, or no longer.
/// Both must say so, and the other one only while an uplink is opened beside it: nobody else may
/// share its port.
#[cfg(target_os = "linux")]
pub(crate) fn share_port(socket: SockRef<'_>, share: bool) -> io::Result<()> {
    socket.set_reuse_port(share)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn share_port(_: SockRef<'_>, _: bool) -> io::Result<()> {
    Ok(())
}

/// Asks for the buffers; the privileged way first, since the other is capped by the system's limit.
/// Whatever is granted will do.
pub(crate) fn size_buffers(socket: &Socket) {
    #[cfg(target_os = "linux")]
    {
        use rustix::net::sockopt;
        let forced = sockopt::set_socket_recv_buffer_size_force(socket, RECV_BUFFER).is_ok()
            && sockopt::set_socket_send_buffer_size_force(socket, SEND_BUFFER).is_ok();
        if forced {
            return;
        }
    }
    let _ = socket.set_recv_buffer_size(RECV_BUFFER);
    let _ = socket.set_send_buffer_size(SEND_BUFFER);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ips: &[&str]) -> Vec<Place> {
        let wanted: Vec<BindTo> = ips.iter().map(|ip| ip.parse().unwrap()).collect();
        places(&wanted).unwrap()
    }

    #[test]
    fn names_are_told_from_addresses() {
        assert_eq!("eth0".parse(), Ok(BindTo::Interface("eth0".into())));
        assert_eq!("::1".parse(), Ok(BindTo::Address(Ipv6Addr::LOCALHOST.into())));
        assert_eq!("*".parse(), Ok(BindTo::Any));
        assert_eq!("auto".parse(), Ok(BindTo::Auto));
        assert_eq!(BindTo::Interface("eth0".into()).to_string(), "eth0");
    }

    #[test]
    fn port_0_is_one_port_on_all() {
        let bound = open(&at(&["127.0.0.1", "127.0.0.2", "127.0.0.3"]), 0).unwrap();
        assert_eq!(bound.len(), 3);
        assert!(bound.iter().all(|b| b.local.port() == bound[0].local.port()));
        assert_ne!(bound[0].local.port(), 0);
    }

    #[test]
    fn a_port_in_use_is_named() {
        let first = open(&at(&["127.0.0.1"]), 0).unwrap();
        let port = first[0].local.port();
        let error = open(&at(&["127.0.0.2", "127.0.0.1"]), port).err().unwrap();
        assert!(matches!(error, BindError::InUse(a) if a == first[0].local), "{error}");
        assert!(error.to_string().contains(&format!("127.0.0.1:{port}")));
    }

    #[test]
    fn foreign_addresses_and_unknown_interfaces_are_named() {
        let error = open(&at(&["192.0.2.77"]), 0).err().unwrap();
        assert!(matches!(error, BindError::NotLocal { .. }), "{error}");
        let error = places(&[BindTo::Interface("no-such0".into())]).err().unwrap();
        assert!(error.to_string().contains("no-such0"), "{error}");
    }

    #[test]
    fn the_system_grants_some_of_the_buffers() {
        let granted = granted_buffers().unwrap();
        assert!((1..=granted.receive_wanted).contains(&granted.receive), "{granted:?}");
        assert!((1..=granted.send_wanted).contains(&granted.send), "{granted:?}");
    }

    #[test]
    fn the_same_address_twice_is_one_socket() {
        assert_eq!(at(&["127.0.0.1", "127.0.0.1"]).len(), 1);
        assert!(!places(&[]).unwrap().is_empty(), "nothing named means every address");
    }

    #[test]
    fn an_ipv4_address_in_an_ipv6_one_is_the_ipv4_address() {
        let text = "::ffff:127.0.0.1";
        let given = BindTo::Address(text.parse().unwrap());
        let expected = [Place::of_address(Ipv4Addr::LOCALHOST.into())];
        assert_eq!(places(&[text.parse().unwrap(), given]).unwrap(), expected);
        assert_eq!(text.parse::<BindTo>().unwrap().to_string(), "127.0.0.1");
    }

    #[test]
    fn link_local_addresses_are_refused_with_the_remedy() {
        for text in ["fe80::7", "fe80::7%lo", "fe80::7%1", "[fe80::7%lo]", "[fe80::7]"] {
            let error = places(&[text.parse().unwrap()]).unwrap_err().to_string();
            assert!(error.contains("bind to the interface by its name"), "{error}");
        }
        let ip = "fe80::7".parse().unwrap();
        let error = places(&[BindTo::Address(ip)]).unwrap_err().to_string();
        assert!(error.contains("link-local"), "{error}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_interface_gives_its_address() {
        let bound = open(&places(&[BindTo::Interface("lo".into())]).unwrap(), 0).unwrap();
        assert_eq!(bound[0].local.ip(), IpAddr::from(Ipv4Addr::LOCALHOST));
        let note = bound[0].note.as_deref().unwrap_or("lo");
        assert!(note.contains("lo"), "a note names the interface: {note}");
    }
}
