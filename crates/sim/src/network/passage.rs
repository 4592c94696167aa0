//! A packet's way: it is sent, crosses link by link, and arrives or is dropped.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;

use super::Network;
use crate::ids::{LinkId, NodeId, RouteId};
use crate::observe::{DeliveredPacket, DroppedPacket, SentPacket};
use crate::packet::{Delivery, DropCause, Handle, Packet, TooLong};
use crate::schedule::Change;
use crate::spec::LinkSpec;
use crate::trace_hash::Mark;

/// Bytes of a packet that a link's message quotes: enough for the longest IP header and 64 bits
/// behind it (RFC 792), where packets have their IP header.
const QUOTED: usize = 68;

/// Where a node's packets leave.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Outlet<'a> {
    node: NodeId,
    local: &'a SocketAddr,
    remote: &'a SocketAddr,
    /// The route they take; `None` if there is none.
    pub(crate) route: Option<RouteId>,
}

/// The part of a packet's IP header that its sender chooses.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Header {
    /// Links that it is too long for may cut it into fragments.
    pub(crate) may_fragment: bool,
    /// Links may mark it instead of dropping it: ECT(0).
    pub(crate) is_ect: bool,
}

impl Network {
    /// Sends one packet from `local` to `remote`, that no link may cut. Returns the route it takes;
    /// `None` if there is none, and the packet is gone.
    pub fn send(
        &mut self,
        node: NodeId,
        local: SocketAddr,
        remote: SocketAddr,
        payload: Bytes,
    ) -> Option<RouteId> {
        let outlet = self.outlet(node, &local, &remote);
        self.send_from(&outlet, Header::default(), payload);
        outlet.route
    }

    /// The same for a packet that links which it is too long for may cut into fragments: one
    /// without the DF bit.
    pub fn send_without_df(
        &mut self,
        node: NodeId,
        local: SocketAddr,
        remote: SocketAddr,
        payload: Bytes,
    ) -> Option<RouteId> {
        let outlet = self.outlet(node, &local, &remote);
        self.send_from(&outlet, Header { may_fragment: true, is_ect: false }, payload);
        outlet.route
    }

    /// Where packets from `local` to `remote` leave now.
    #[inline]
    pub(crate) fn outlet<'a>(
        &mut self,
        node: NodeId,
        local: &'a SocketAddr,
        remote: &'a SocketAddr,
    ) -> Outlet<'a> {
        let mut route = self.find_plain_route(node, local, remote);
        if route.is_none() && self.nats.have_ways() {
            route = self.route_outwards(node, *local, *remote);
        }
        Outlet { node, local, remote, route }
    }

    /// Sends one packet.
    #[inline]
    pub(crate) fn send_from(&mut self, outlet: &Outlet<'_>, header: Header, payload: Bytes) {
        let Header { may_fragment, is_ect } = header;
        let &Outlet { node, local, remote, route } = outlet;
        let id = self.packets_sent;
        self.packets_sent += 1;
        let number = route.map_or(u32::MAX, |route| route.0);
        self.trace.packet_sent(self.queue.now(), id, number, &payload);
        if let Some(log) = &mut self.log {
            log.sent(self.queue.now(), node, route, &payload);
        }
        if let Some(observer) = &mut self.observer {
            let (local, remote) = (*local, *remote);
            let packet = SentPacket { id, node, local, remote, route, payload: &payload };
            observer.packet_sent(self.queue.now(), &packet);
        }
        let Some(route) = route else {
            self.unroutable += 1;
            self.dropped(DroppedPacket { id, node, cause: DropCause::NoRoute, link: None });
            return;
        };
        let size = payload.len() as u32 + self.header_bytes;
        let payload = Some(payload);
        let packet = Packet {
            id,
            payload,
            damaged: None,
            route,
            size,
            hop: 0,
            may_fragment,
            is_ect,
            has_ce: false,
            fate: None,
        };
        let packet = self.packets.add(packet);
        if self.has_fixed_links {
            self.cross(packet)
        } else {
            self.enter(self.routes[route.0 as usize].spec.links[0], packet)
        }
    }

    #[inline]
    pub(super) fn enter(&mut self, link: LinkId, packet: Handle) {
        self.catch_up_on(link);
        let state = &mut self.links[link.0 as usize];
        let was = state.link.next_arrival();
        let verdict =
            state.link.accept(self.queue.now(), packet, &mut self.packets, &mut self.queue);
        let is = state.link.next_arrival();
        if is != was {
            self.queue.set(state.slot, is);
        }
        if let Err(cause) = verdict {
            self.refuse(packet, cause, link);
        }
    }

    /// Drops a packet that a link does not take.
    pub(super) fn refuse(&mut self, packet: Handle, cause: DropCause, link: LinkId) {
        let Packet { id, route, hop, .. } = *self.packets.get(packet);
        let payload = self.packets.remove(packet);
        if cause == DropCause::TooLong {
            self.tell_too_long(route, usize::from(hop), link, &payload);
        }
        let route = &self.routes[route.0 as usize];
        if route.is_blank {
            return;
        }
        let node = route.spec.from;
        if let Some(path) = route.path {
            self.count_drop(path, &payload);
        }
        self.pool.recycle(payload);
        self.dropped(DroppedPacket { id, node, cause, link: Some(link) });
    }

    /// Sends the message of a link that did not take a packet back to where that came from, if the
    /// link sends such. It takes as long as the packet had been under way, without its time in
    /// queues.
    #[cold]
    fn tell_too_long(&mut self, route: RouteId, hop: usize, link: LinkId, payload: &Bytes) {
        let LinkSpec { mtu: Some(mtu), icmp: true, .. } = *self.link_spec(link) else { return };
        let spec = &self.routes[route.0 as usize].spec;
        let message = TooLong {
            node: spec.from,
            local: spec.source,
            remote: spec.destination,
            mtu,
            quoted: Bytes::copy_from_slice(&payload[..payload.len().min(QUOTED)]),
        };
        let back: Duration = spec.links.iter().take(hop).map(|&l| self.link_spec(l).delay).sum();
        let due = self.queue.plan(self.queue.now() + back);
        self.schedule.add(due, Change::Tell(message));
        self.queue.set(self.schedule_slot, self.schedule.next());
    }

    /// Takes the packet that has arrived off the link, and puts it on the next or delivers it.
    #[inline]
    pub(super) fn leave(&mut self, link: LinkId) -> Option<Delivery> {
        let state = &mut self.links[link.0 as usize];
        let handle = state.link.pop();
        self.queue.set(state.slot, state.link.next_arrival());
        let handle = handle?;
        let packet = self.packets.get_mut(handle);
        if self.has_fixed_links {
            self.events += u64::from(packet.hop); // on the links before
        }
        packet.hop += 1;
        let route = &self.routes[packet.route.0 as usize];
        if let Some(&next) = route.spec.links.get(usize::from(packet.hop)) {
            let ends_there =
                route.is_blank && usize::from(packet.hop) + 1 == route.spec.links.len();
            if let Some(cause) = packet.fate {
                self.refuse(handle, cause, next);
            } else if ends_there {
                let size = packet.size;
                self.packets.remove(handle);
                self.catch_up_on(next);
                let _ = self.links[next.0 as usize].link.accept_blank(self.queue.now(), size);
            } else {
                self.enter(next, handle);
            }
            return None;
        }
        // Most packets need these, so they are read once.
        let (id, is_damaged) = (packet.id, packet.damaged.is_some());
        let (mut number, mut node) = (packet.route, route.spec.to);
        if !route.is_mapped {
            number = self.pass_nats(handle, link)?;
            node = self.routes[number.0 as usize].spec.to;
        }
        if is_damaged && !self.hides_damage(handle, link) {
            return None;
        }
        self.trace.packet_fate(Mark::Delivered, self.queue.now(), id, 0);
        if let Some(log) = &mut self.log {
            log.delivered(self.queue.now(), id);
        }
        if let (Some(observer), Some(payload)) =
            (&mut self.observer, &self.packets.get(handle).payload)
        {
            let (local, remote) = self.routes[number.0 as usize].seen_ends;
            let packet = DeliveredPacket { id, node, local, remote, payload };
            observer.packet_delivered(self.queue.now(), &packet);
        }
        let has_ce = self.packets.get(handle).has_ce;
        let payload = self.packets.remove(handle);
        Some(Delivery { node, route: number, id, payload, has_ce })
    }

    /// Takes a packet that has crossed its last link in through the NATs there, and returns the
    /// route that its receiver sees. `None` if they have no mapping for it, and it is gone.
    #[cold]
    fn pass_nats(&mut self, handle: Handle, link: LinkId) -> Option<RouteId> {
        if let Some(cause) = self.take_inwards(handle) {
            self.lose(handle, cause, link);
            return None;
        }
        Some(self.packets.get(handle).route)
    }

    /// False if the receiver of a damaged packet finds that out, and it is gone.
    #[cold]
    fn hides_damage(&mut self, handle: Handle, link: LinkId) -> bool {
        let packet = self.packets.get_mut(handle);
        if packet.is_found_damaged() {
            self.lose(handle, DropCause::Corrupt, link);
            return false;
        }
        // A damage in 2^32 is not found, or two cancelled each other.
        packet.payload = packet.damaged.take().map(Bytes::from);
        true
    }

    /// Drops a packet that has crossed its last link.
    #[cold]
    fn lose(&mut self, handle: Handle, cause: DropCause, link: LinkId) {
        let Packet { id, route, .. } = *self.packets.get(handle);
        let route = &self.routes[route.0 as usize];
        let (path, node) = (route.path, route.spec.from);
        let payload = self.packets.remove(handle);
        if let Some(path) = path {
            self.count_drop(path, &payload);
        }
        self.dropped(DroppedPacket { id, node, cause, link: Some(link) });
    }

    fn dropped(&mut self, packet: DroppedPacket) {
        let DroppedPacket { id, cause, .. } = packet;
        self.trace.packet_fate(Mark::Dropped, self.queue.now(), id, cause as u8);
        if let Some(log) = &mut self.log {
            log.dropped(self.queue.now(), id, cause);
        }
        if let Some(observer) = &mut self.observer {
            observer.packet_dropped(self.queue.now(), &packet);
        }
    }
}
