//! All that the checks know.

use std::net::{IpAddr, SocketAddr};

use manypath_net::Buffers;
use manypath_net::port_mapping::MappingState;

use crate::causes::has_no_route;
use crate::finding::Unseen;
use crate::host::{Host, Link, Lookup, Neighbour, Route};
use crate::probe::{Behaviour, Mapped, Memory, Mtu, Offset, Reach};

/// An interface through which packets leave for the destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uplink {
    /// Its name.
    pub name: String,
    /// Its addresses to send from: the first of each family.
    pub sources: Vec<IpAddr>,
    /// The user named it.
    pub is_named: bool,
    /// The router's answer to the request for a mapping, if there is a NAT.
    pub port_mapping: Option<MappingState>,
}

/// From an address of an uplink to an address of the destination.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// The number of the uplink.
    pub uplink: usize,
    /// Our address.
    pub source: IpAddr,
    /// The destination's transport address.
    pub remote: SocketAddr,
    /// The kernel's route for packets from that address that are not kept to the interface.
    pub chosen: Option<Lookup>,
    /// Probes that were kept to the interface, as with `--bind eth0`.
    pub by_device: Option<Reach>,
    /// Probes from the address, as with `--bind 192.0.2.7`.
    pub by_address: Option<Reach>,
    /// The largest packets.
    pub mtu: Option<Mtu>,
    /// The kernel takes batches of packets (GSO).
    pub sends_batches: Option<bool>,
    /// Our transport address as STUN servers see it.
    pub mapped: Vec<Mapped>,
    /// The behaviour of the NAT or firewall on the way.
    pub behaviour: Behaviour,
    /// How long silence is remembered on the way.
    pub memory: Option<Memory>,
}

impl Way {
    /// True if a probe was answered: one that was kept to the interface, where that can be done.
    pub fn answers(&self) -> bool {
        self.reach().is_some_and(Reach::is_answered)
    }

    /// True if the probes show whether it works.
    pub fn is_probed(&self) -> bool {
        self.by_device.is_some() || self.by_address.is_some()
    }

    /// The probes that show most: those kept to the interface, if there are any. From the address
    /// alone packets may leave through another uplink and be answered.
    pub fn reach(&self) -> Option<&Reach> {
        self.by_device.as_ref().or(self.by_address.as_ref())
    }
}

/// All that the checks know.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// This host's network.
    pub host: Host,
    /// The destination's transport addresses, as the user named them.
    pub destination: Vec<SocketAddr>,
    /// The destination's transport addresses, or public examples if the user named none on another
    /// host.
    pub remotes: Vec<SocketAddr>,
    /// Probes were sent to it.
    pub is_probed: bool,
    /// The destination is this host.
    pub is_here: bool,
    /// The uplinks.
    pub uplinks: Vec<Uplink>,
    /// Interfaces and addresses that the user named and this host does not have.
    pub missing: Vec<String>,
    /// The ways from all uplinks to all addresses of the destination.
    pub ways: Vec<Way>,
    /// It was to be found out how long NATs remember.
    pub is_long: bool,
    /// The STUN servers that were asked for our address.
    pub stun: Vec<SocketAddr>,
    /// The buffers of sockets.
    pub buffers: Option<Buffers>,
    /// By how much the clocks of time servers differ from this one's.
    pub offsets: Vec<Offset>,
    /// This host's time, in seconds since 1970.
    pub now_s: i64,
    /// The time at which this program was installed.
    pub installed_s: Option<i64>,
    /// systemd sets the clock here.
    pub has_timedatectl: bool,
    /// Subjects that could not be looked at while probing.
    pub unseen: Vec<Unseen>,
}

impl Facts {
    /// The interface of an uplink.
    pub fn link(&self, uplink: usize) -> Option<&Link> {
        self.host.link(&self.uplinks.get(uplink)?.name)
    }

    /// The name of an uplink.
    pub fn name(&self, uplink: usize) -> &str {
        self.uplinks.get(uplink).map_or("", |u| &u.name)
    }

    /// The ways from an uplink.
    pub fn ways_of(&self, uplink: usize) -> impl Iterator<Item = &Way> {
        self.ways.iter().filter(move |way| way.uplink == uplink)
    }

    /// True if an uplink reaches the destination, at any of its addresses.
    pub fn reaches(&self, uplink: usize) -> bool {
        self.ways_of(uplink).any(Way::answers)
    }

    /// True if an uplink with a route asked STUN servers, and none has answered.
    pub fn is_silent_to_stun(&self, uplink: usize) -> bool {
        let is_asked = |way: &&Way| {
            let mut same_family = self.stun.iter().filter(|s| s.is_ipv6() == way.source.is_ipv6());
            same_family.next().is_some() && !has_no_route(self, way)
        };
        let mut asked = self.ways_of(uplink).filter(is_asked).peekable();
        self.is_up(uplink) && asked.peek().is_some() && asked.all(|way| way.mapped.is_empty())
    }

    /// True if nothing answers by UDP on any uplink: neither STUN servers, which were asked, nor
    /// the destination.
    pub fn is_udp_silent(&self) -> bool {
        let mut up = (0..self.uplinks.len()).filter(|uplink| self.is_up(*uplink)).peekable();
        up.peek().is_some() && up.all(|u| self.is_silent_to_stun(u) && !self.reaches(u))
    }

    fn is_up(&self, uplink: usize) -> bool {
        self.link(uplink).is_some_and(|link| link.is_up && link.has_carrier)
    }

    /// The route that packets kept to the uplink take: that of the table for their source, or else
    /// one of the main table.
    pub fn route(&self, way: &Way) -> Option<&Route> {
        let name = self.name(way.uplink);
        let routes = || self.host.routes_through(name, way.source, way.remote.ip());
        // The table is asked first; within one the longest prefix counts.
        let of = |main: bool| {
            routes().filter(move |r| (r.table == "main") == main).max_by_key(|r| r.to.len)
        };
        of(false).or_else(|| of(true))
    }

    /// The neighbour at an address of an uplink's network.
    pub fn neighbour(&self, uplink: usize, ip: IpAddr) -> Option<&Neighbour> {
        let name = self.name(uplink);
        self.host.neighbours.iter().find(|n| n.dev == name && n.ip == ip)
    }
}
