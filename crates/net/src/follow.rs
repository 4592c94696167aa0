//! Sockets that follow the addresses of this host.

use std::net::{IpAddr, SocketAddr};

use crate::bind::{self, BindError, Place};
use crate::interfaces::{HostAddress, host_addresses};
use crate::sockets::{Socket, UdpSockets};

/// A local address that a socket has from now on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct NewAddress {
    /// The address.
    pub address: SocketAddr,
    /// The one that the socket had before; the same if that one is back.
    pub instead_of: Option<SocketAddr>,
}

/// Changes that [`UdpSockets::follow`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Followed {
    /// Addresses that sockets of one address had, and have no longer.
    pub gone: Vec<SocketAddr>,
    /// Addresses that they have now.
    pub came: Vec<NewAddress>,
    /// IP addresses that this host has no longer, as far as sockets on every address are concerned.
    pub vanished: Vec<IpAddr>,
    /// A socket could not be opened on an address that is there: look again soon.
    pub retry: bool,
}

impl UdpSockets {
    /// Looks at the addresses of this host, and brings the sockets up to date with them. A socket
    /// of an interface takes the interface's new address when its own is gone, and is opened again
    /// when the interface was created again. A socket of one address waits for it. Sockets on every
    /// address stay as they are. Must be called within a tokio runtime; the first call finds
    /// nothing.
    pub fn follow(&mut self) -> Followed {
        match host_addresses() {
            Ok(now) => self.follow_to(now),
            Err(_) => Followed { retry: true, ..Followed::default() },
        }
    }

    fn follow_to(&mut self, now: Vec<HostAddress>) -> Followed {
        let Some(before) = self.seen.replace(now.clone()) else {
            self.note_interfaces();
            return Followed::default();
        };
        let mut found = Followed::default();
        for index in 0..self.sockets.len() {
            self.follow_one(index, &before, &now, &mut found);
        }
        self.open_new_families(&now, &mut found);
        let has = |list: &[HostAddress], ip| list.iter().any(|a| a.ip == ip);
        found.vanished = before.iter().map(|a| a.ip).filter(|ip| !has(&now, *ip)).collect();
        self.renew_bound();
        found
    }

    /// Notes the kernel's numbers of the interfaces as they were at the last look.
    pub(crate) fn note_interfaces(&mut self) {
        let Some(now) = &self.seen else { return };
        for socket in self.sockets.iter_mut().filter(|socket| socket.interface == 0) {
            socket.interface = index_of(&socket.place, socket.local.ip(), now);
        }
    }

    fn follow_one(
        &mut self,
        index: usize,
        before: &[HostAddress],
        now: &[HostAddress],
        found: &mut Followed,
    ) {
        let socket = &mut self.sockets[index];
        let (old, place) = (socket.local, socket.place.clone());
        if socket.is_wildcard() {
            return;
        }
        let is_at = |a: &&HostAddress| place.device.as_ref().is_none_or(|name| a.name == *name);
        let has = |list: &[HostAddress]| list.iter().filter(is_at).any(|a| a.ip == old.ip());
        let is_same = socket.interface == index_of(&place, old.ip(), now);
        if has(now) {
            // The interface of that name is another one: the old socket speaks to nobody any more.
            let was_lost = socket.is_lost;
            if !is_same && self.reopen(index, old.ip(), now).is_err() {
                found.retry = true;
                return;
            }
            self.sockets[index].is_lost = false;
            if was_lost {
                found.came.push(NewAddress { address: old, instead_of: Some(old) });
            }
            return;
        }
        // An address that never was in the list, such as one of 127.0.0.0/8, works nevertheless.
        if !socket.is_lost && has(before) {
            socket.is_lost = true;
            found.gone.push(old);
        }
        let same_family = |a: &&HostAddress| a.is_usable() && a.ip.is_ipv6() == old.is_ipv6();
        if socket.is_lost
            && place.device.is_some()
            && let Some(new) = now.iter().filter(is_at).find(same_family)
        {
            match self.reopen(index, new.ip, now) {
                Ok(address) => {
                    self.sockets[index].is_lost = false;
                    found.came.push(NewAddress { address, instead_of: Some(old) });
                }
                // Such as an IPv6 address that is not known to be unique yet (RFC 4862 §5.4).
                Err(_) => found.retry = true,
            }
        }
    }

    /// Opens the socket again on an address of the same interface. If the old one, which need not
    /// be on the interface, is in the way, it does as well.
    fn reopen(
        &mut self,
        index: usize,
        ip: IpAddr,
        now: &[HostAddress],
    ) -> Result<SocketAddr, BindError> {
        let old = &self.sockets[index];
        let mut place = old.place.clone();
        place.ip = ip;
        let interface = index_of(&place, ip, now);
        let opened = if place.is_uplink {
            self.open_beside(&place)
        } else {
            bind::open_one(&place, self.port).and_then(Socket::new)
        };
        match opened {
            Ok(socket) => self.sockets[index] = Socket { interface, ..socket },
            Err(BindError::InUse(_)) if old.local.ip() == ip => {
                self.sockets[index].interface = interface;
            }
            Err(error) => return Err(error),
        }
        self.keep_fragments();
        Ok(self.sockets[index].local)
    }

    /// An interface may have had addresses of one family only, and get the other later.
    fn open_new_families(&mut self, now: &[HostAddress], found: &mut Followed) {
        let named = self.sockets.iter().filter(|s| !s.place.is_uplink);
        let mut devices: Vec<String> = named.filter_map(|s| s.place.device.clone()).collect();
        devices.sort();
        devices.dedup();
        for name in devices {
            for &is_raw in self.kinds() {
                for is_v6 in [false, true] {
                    self.open_new_family(&name, FamilyAndKind { is_v6, is_raw }, now, found);
                }
            }
        }
        self.keep_fragments();
    }

    fn open_new_family(
        &mut self,
        name: &str,
        kind: FamilyAndKind,
        now: &[HostAddress],
        found: &mut Followed,
    ) {
        let FamilyAndKind { is_v6, is_raw } = kind;
        let is_there = |s: &Socket| {
            s.place.device.as_deref() == Some(name)
                && s.local.is_ipv6() == is_v6
                && s.is_raw() == is_raw
        };
        let wanted = |a: &&HostAddress| a.name == name && a.is_usable() && a.ip.is_ipv6() == is_v6;
        let Some(new) = now.iter().find(wanted) else { return };
        if self.sockets.iter().any(is_there) {
            return;
        }
        let place = self.place_for(Place::of_interface(new.ip, name), is_raw);
        match bind::open_one(&place, self.port).and_then(Socket::new) {
            Ok(socket) => {
                let interface = index_of(&place, new.ip, now);
                let address = socket.local;
                self.sockets.push(Socket { interface, ..socket });
                found.came.push(NewAddress { address, instead_of: None });
            }
            Err(_) => found.retry = true,
        }
    }
}

/// The family of a socket, and if it is for SCTP over IP itself.
#[derive(Copy, Clone)]
struct FamilyAndKind {
    is_v6: bool,
    is_raw: bool,
}

/// The kernel's number of the interface at a place; 0 if the socket is of no interface.
fn index_of(place: &Place, ip: IpAddr, list: &[HostAddress]) -> u32 {
    let Some(device) = &place.device else { return 0 };
    list.iter().find(|a| a.name == *device && a.ip == ip).map_or(0, |a| a.index)
}

#[cfg(test)]
mod tests;
