//! Questions to the kernel about interfaces and routes (rtnetlink(7)). They need no privilege.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::link::{InfoKind, LinkAttribute, LinkFlags, LinkInfo, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use crate::uplinks::{Link, LinkKind, Routes, SystemRoute};

/// Messages of one answer at most. A router of the Internet has a million routes, and the kernel
/// sends only those of the interface that is asked about.
const MESSAGES_MAX: usize = 100_000;

/// A socket to the kernel's tables.
#[derive(Debug)]
pub(crate) struct Kernel {
    socket: Socket,
    sequence: u32,
}

impl Kernel {
    /// Opens the socket.
    pub(crate) fn open() -> io::Result<Kernel> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // Without it the kernel ignores which interface's routes are wanted, and sends all.
        let _ = socket.set_netlink_get_strict_chk(true);
        Ok(Kernel { socket, sequence: 0 })
    }

    /// All interfaces.
    pub(crate) fn links(&mut self) -> io::Result<Vec<Link>> {
        let mut links = Vec::new();
        let all = RouteNetlinkMessage::GetLink(LinkMessage::default());
        self.ask(all, NLM_F_DUMP, |answer| {
            if let RouteNetlinkMessage::NewLink(message) = answer {
                links.extend(link(&message));
            }
        })?;
        Ok(links)
    }

    /// The kernel's route for packets to `to`; `None` if it has none, or refuses them.
    fn lookup(&mut self, to: IpAddr, wanted: Wanted) -> Option<RouteMessage> {
        let mut found = None;
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: family(to),
            destination_prefix_length: bits(to),
            source_prefix_length: wanted.from.map_or(0, bits),
            flags: wanted.flags,
            ..RouteHeader::default()
        };
        message.attributes.push(RouteAttribute::Destination(to.into()));
        message.attributes.extend(wanted.from.map(|ip| RouteAttribute::Source(ip.into())));
        message.attributes.extend(wanted.link.map(RouteAttribute::Oif));
        let asked = self.ask(RouteNetlinkMessage::GetRoute(message), 0, |answer| {
            if let RouteNetlinkMessage::NewRoute(route) = answer {
                found.get_or_insert(route);
            }
        });
        asked
            .ok()
            .and(found)
            .filter(|route| matches!(route.header.kind, RouteType::Unicast | RouteType::Local))
    }

    /// Sends a request, and passes each message of the answer on.
    ///
    /// # Errors
    /// The socket failed, or the kernel answers that there is no such thing.
    fn ask(
        &mut self,
        request: RouteNetlinkMessage,
        flags: u16,
        mut each: impl FnMut(RouteNetlinkMessage),
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut messages = 0;
        loop {
            let (answer, _) = self.socket.recv_from_full()?;
            let mut rest = answer.as_slice();
            while !rest.is_empty() {
                messages += 1;
                let Some(length) = self.take_one(rest, &mut each)? else { return Ok(()) };
                // A single answer has no message that says that it ends.
                if messages >= MESSAGES_MAX || flags & NLM_F_DUMP != NLM_F_DUMP {
                    return Ok(());
                }
                rest = rest.get(length..).unwrap_or_default();
            }
        }
    }

    /// Passes the first message of `bytes` on. Returns the length to go on after; `None` at the end
    /// of the answer.
    fn take_one(
        &self,
        bytes: &[u8],
        each: &mut impl FnMut(RouteNetlinkMessage),
    ) -> io::Result<Option<usize>> {
        let invalid = |e: &dyn std::fmt::Display| io::Error::other(e.to_string());
        let message =
            NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes).map_err(|e| invalid(&e))?;
        // Messages begin at multiples of four bytes.
        let length = (message.header.length as usize).next_multiple_of(4);
        if length == 0 || message.header.sequence_number != self.sequence {
            return Ok(Some(length.max(4)));
        }
        match message.payload {
            NetlinkPayload::Done(_) => Ok(None),
            NetlinkPayload::Error(error) => Err(error.to_io()),
            NetlinkPayload::InnerMessage(inner) => {
                each(inner);
                Ok(Some(length))
            }
            _ => Ok(Some(length)),
        }
    }
}

/// Conditions on the route that is asked for.
#[derive(Copy, Clone, Debug, Default)]
struct Wanted {
    from: Option<IpAddr>,
    link: Option<u32>,
    flags: RouteFlags,
}

impl Routes for Kernel {
    fn of_system(&mut self, to: IpAddr) -> Option<SystemRoute> {
        let flags = RouteFlags::LookupTable;
        let route = self.lookup(to, Wanted { flags, ..Wanted::default() })?;
        let table = route.attributes.iter().find_map(|a| match a {
            RouteAttribute::Table(table) => Some(*table),
            _ => None,
        });
        Some(SystemRoute {
            link: outgoing(&route)?,
            source: source(&route),
            table: table.unwrap_or_else(|| route.header.table.into()),
        })
    }

    fn source_through(&mut self, to: IpAddr, link: u32, own: &[IpAddr]) -> Option<IpAddr> {
        let any = Wanted { link: Some(link), ..Wanted::default() };
        let preferred = self.lookup(to, any).filter(|route| outgoing(route) == Some(link));
        // Rules by source lead to routes that only packets with that source have.
        let mut sources: Vec<_> = preferred.as_ref().and_then(source).into_iter().collect();
        sources.extend(own.iter().filter(|ip| ip.is_ipv6() == to.is_ipv6()));
        sources.retain(|ip| own.contains(ip));
        sources.into_iter().find(|from| self.has_route(to, *from, link))
    }

    fn leads_elsewhere(&mut self, link: u32) -> bool {
        let mut leads = false;
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut wanted = RouteMessage::default();
            wanted.header.address_family = family;
            wanted.attributes.push(RouteAttribute::Oif(link));
            let all = RouteNetlinkMessage::GetRoute(wanted);
            // A kernel without IPv6 has no routes of it.
            let _ = self.ask(all, NLM_F_DUMP, |answer| {
                if let RouteNetlinkMessage::NewRoute(route) = answer {
                    leads |= goes_beyond(&route, link);
                }
            });
        }
        leads
    }
}

impl Kernel {
    /// The router of packets from `from` to `to` that are kept to an interface.
    #[cfg(feature = "port-mapping")]
    pub(crate) fn gateway(&mut self, to: IpAddr, from: IpAddr, link: u32) -> Option<IpAddr> {
        let wanted = Wanted { from: Some(from), link: Some(link), ..Wanted::default() };
        let route = self.lookup(to, wanted).filter(|route| outgoing(route) == Some(link))?;
        let of_route = next_hop(&route.attributes);
        of_route.or_else(|| {
            let hops = route.attributes.iter().find_map(|attribute| match attribute {
                RouteAttribute::MultiPath(hops) => Some(hops),
                _ => None,
            })?;
            hops.iter()
                .find(|hop| hop.interface_index == link)
                .and_then(|h| next_hop(&h.attributes))
        })
    }

    /// True if packets from `from` that are kept to an interface have a route to `to`.
    fn has_route(&mut self, to: IpAddr, from: IpAddr, link: u32) -> bool {
        // Of IPv4 the kernel takes every address for a neighbour where an interface is named that
        // has no route; with this flag it says which route it took.
        let flags = if to.is_ipv4() { RouteFlags::FibMatch } else { RouteFlags::empty() };
        let to_link = Wanted { from: Some(from), link: Some(link), flags };
        let is_there = |route: RouteMessage| outgoing(&route) == Some(link);
        // Of IPv6 the kernel keeps strictly to the interface only where no source is named.
        let from_any = Wanted { from: None, ..to_link };
        self.lookup(to, to_link).is_some_and(is_there)
            || (to.is_ipv6() && self.lookup(to, from_any).is_some_and(is_there))
    }
}

fn family(ip: IpAddr) -> AddressFamily {
    match ip {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

/// Bits of a whole address.
fn bits(ip: IpAddr) -> u8 {
    match ip {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// The interface that a route leaves through.
fn outgoing(route: &RouteMessage) -> Option<u32> {
    route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Oif(link) => Some(*link),
        RouteAttribute::MultiPath(hops) => hops.first().map(|hop| hop.interface_index),
        _ => None,
    })
}

/// The router of a route or of one of its hops.
#[cfg(feature = "port-mapping")]
fn next_hop(attributes: &[RouteAttribute]) -> Option<IpAddr> {
    attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Gateway(RouteAddress::Inet(ip)) => Some((*ip).into()),
        RouteAttribute::Gateway(RouteAddress::Inet6(ip)) => Some((*ip).into()),
        _ => None,
    })
}

/// The source that the kernel prefers on a route.
fn source(route: &RouteMessage) -> Option<IpAddr> {
    route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::PrefSource(RouteAddress::Inet(ip)) => Some((*ip).into()),
        RouteAttribute::PrefSource(RouteAddress::Inet6(ip)) => Some((*ip).into()),
        _ => None,
    })
}

/// True if this route of an interface leads to a gateway, or to any address.
fn goes_beyond(route: &RouteMessage, link: u32) -> bool {
    let is_ours = route.attributes.iter().any(|attribute| match attribute {
        RouteAttribute::Oif(oif) => *oif == link,
        RouteAttribute::MultiPath(hops) => hops.iter().any(|hop| hop.interface_index == link),
        _ => false,
    });
    let has_gateway = route.attributes.iter().any(|attribute| {
        use RouteAttribute::{Gateway, MultiPath, Via};
        matches!(attribute, Gateway(_) | Via(_) | MultiPath(_))
    });
    let is_unicast = route.header.kind == RouteType::Unicast;
    is_ours && is_unicast && (has_gateway || route.header.destination_prefix_length == 0)
}

/// An interface as the kernel describes it; `None` without a name.
fn link(message: &LinkMessage) -> Option<Link> {
    let name = message.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name.clone()),
        _ => None,
    })?;
    let kind = message.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::LinkInfo(infos) => infos.iter().find_map(|info| match info {
            LinkInfo::Kind(kind) => Some(InfoKind::to_string(kind)),
            _ => None,
        }),
        _ => None,
    });
    let flags = message.header.flags;
    let kind = match kind {
        _ if flags.contains(LinkFlags::Loopback) => LinkKind::Loopback,
        Some(kind) => LinkKind::of(&kind),
        None => LinkKind::Plain,
    };
    // An interface without a carrier is up, but not running.
    let is_up = flags.contains(LinkFlags::Up | LinkFlags::Running);
    Some(Link { index: message.header.index, name, kind, is_up })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_knows_loopback_and_that_it_leads_nowhere_else() {
        let mut kernel = Kernel::open().unwrap();
        let links = kernel.links().unwrap();
        let lo = links.iter().find(|link| link.name == "lo").unwrap();
        assert_eq!(lo.kind, LinkKind::Loopback);
        let home = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(kernel.of_system(home).map(|route| route.link), Some(lo.index));
        let elsewhere = IpAddr::from([192, 0, 2, 1]);
        assert_eq!(kernel.source_through(elsewhere, lo.index, &[home]), None);
        assert!(!kernel.leads_elsewhere(lo.index));
    }

    #[test]
    fn an_interface_that_is_not_there_is_no_answer_and_no_error() {
        let mut kernel = Kernel::open().unwrap();
        let elsewhere = IpAddr::from([192, 0, 2, 1]);
        assert_eq!(kernel.source_through(elsewhere, u32::MAX >> 1, &[elsewhere]), None);
        assert!(!kernel.leads_elsewhere(u32::MAX >> 1));
    }
}
