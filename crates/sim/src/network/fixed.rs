//! Networks whose links stay as they are: a packet's whole way is known when it is sent.

use super::Network;
use crate::ids::LinkId;
use crate::packet::Handle;

impl Network {
    /// Says that no link, route or source will be added or changed while packets are under way.
    /// Ways through NATs make routes, so with them nothing is saved.
    ///
    /// If also each link but the first of a route gets packets from one other link alone, and
    /// delivers them in their order, then nothing can happen to a packet on its way that is not
    /// known when it is sent: it costs one event, that of its arrival or loss, in place of one for
    /// each link. Everything else is as it would be, down to the trace hash, but that
    /// [`link_stats`](Self::link_stats) counts a packet on all its links when it is sent.
    pub fn fix_links(&mut self) {
        let mut feeders: Vec<Option<Option<LinkId>>> = vec![None; self.links.len()];
        let mut has_one_feeder = |links: &[LinkId]| {
            let mut before = None;
            links.iter().all(|link| {
                let feeder = *feeders[link.0 as usize].get_or_insert(before);
                before.replace(*link) == feeder
            })
        };
        self.has_fixed_links = self.packets.is_empty()
            && self.sources.is_empty()
            && !self.nats.have_ways()
            && self.schedule.next().is_none()
            && self.links.iter().all(|state| state.link.is_regular())
            && self.routes.iter().all(|route| has_one_feeder(&route.spec.links));
    }

    /// Takes [`fix_links`](Self::fix_links) back.
    pub(super) fn release_links(&mut self) {
        let may_change = !self.has_fixed_links || self.packets.is_empty();
        assert!(may_change, "a change on the way of packets, but `fix_links` said there is none");
        self.has_fixed_links = false;
    }

    /// Takes a packet over all the links of its way at once.
    pub(super) fn cross(&mut self, handle: Handle) {
        let packet = self.packets.get_mut(handle);
        let links = &self.routes[packet.route.0 as usize].spec.links;
        let mut due = self.queue.turn();
        let mut last = None;
        for &link in links {
            match self.links[link.0 as usize].link.cross(due.at(), packet.size) {
                Ok(arrival) => due = due.then(arrival),
                Err(cause) if last.is_none() => return self.refuse(handle, cause, link),
                Err(cause) => {
                    packet.fate = Some(cause);
                    break;
                }
            }
            packet.hop += u16::from(last.is_some());
            last = Some(link);
        }
        let Some(last) = last else { return };
        let state = &mut self.links[last.0 as usize];
        if state.link.next_arrival().is_none() {
            self.queue.set(state.slot, Some(due));
        }
        state.link.put(due, handle);
    }
}
