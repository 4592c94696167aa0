//! Reading ahead in large networks.
//!
//! Where thousands of associations take turns, all that an event needs has left the processor's
//! caches since the last time: the packet, its route, the host and its association. Each is found
//! by the one before it, so that an event waits for the memory a dozen times. But the queue knows
//! several events ahead whose turn it is. Reading the packets of all of them, then their routes,
//! then their hosts, lets the memory fetch those of one kind at the same time. Nothing is changed.

use std::hint::black_box;
use std::time::Duration;

use super::{Network, Owner};
use crate::ids::NodeId;
use crate::packet::Handle;
use crate::queue::Slot;
use manypath_proto::Instant;

/// Events that are read ahead at most.
pub(crate) const AHEAD: usize = 24;

/// Nodes from which on it is worth it.
const MANY_NODES: usize = 128;

/// Until when was read ahead, and how far that is done at a time.
#[derive(Debug)]
pub(super) struct Ahead {
    until: Instant,
    width: Duration,
}

impl Default for Ahead {
    fn default() -> Ahead {
        Ahead { until: Instant::ZERO, width: Duration::from_micros(10) }
    }
}

impl Network {
    /// The nodes that act on the next events, if it is time to read ahead.
    #[inline]
    pub(crate) fn look_ahead(&mut self, nodes: &mut [NodeId; AHEAD]) -> usize {
        match self.queue.next() {
            Some((at, _)) if at > self.ahead.until && self.nodes.len() >= MANY_NODES => {
                self.read_ahead(at, nodes)
            }
            _ => 0,
        }
    }

    #[inline(never)]
    fn read_ahead(&mut self, next: Instant, nodes: &mut [NodeId; AHEAD]) -> usize {
        let mut slots = [Slot::default(); AHEAD];
        self.ahead.until = next + self.ahead.width;
        let count = self.queue.until(self.ahead.until, &mut slots);
        let (mut handles, mut packets) = ([Handle::default(); AHEAD], 0);
        let mut found = 0;
        for slot in &slots[..count] {
            match self.owners[slot.index()] {
                Owner::Timer(node) => {
                    nodes[found] = node;
                    found += 1;
                }
                Owner::Link(link) => {
                    let link = &self.links[link.0 as usize].link;
                    for handle in link.arriving_until(self.ahead.until).take(AHEAD - packets) {
                        handles[packets] = handle;
                        packets += 1;
                    }
                }
                Owner::Schedule | Owner::Source(_) => {}
            }
        }
        match packets.max(found) {
            0..10 => self.ahead.width = (self.ahead.width * 5 / 4).min(Duration::from_millis(10)),
            AHEAD => self.ahead.width = (self.ahead.width * 3 / 4).max(Duration::from_nanos(100)),
            _ => {}
        }
        let handles = &handles[..packets];
        let mut sum = 0;
        for &handle in handles {
            sum += usize::from(self.packets.get(handle).hop);
        }
        for &handle in handles {
            let packet = self.packets.get(handle);
            sum += self.routes[packet.route.0 as usize].spec.links.len();
        }
        for &handle in handles {
            let packet = self.packets.get(handle);
            let route = &self.routes[packet.route.0 as usize];
            if usize::from(packet.hop) + 1 == route.spec.links.len() {
                if found < AHEAD {
                    nodes[found] = route.spec.to;
                    found += 1;
                }
                sum += packet.payload.as_ref().map_or(0, |payload| {
                    let lines = payload.iter().step_by(64).map(|byte| usize::from(*byte));
                    lines.sum::<usize>() + usize::from(payload.is_unique())
                });
            } else {
                sum +=
                    route.spec.links[usize::from(packet.hop) % route.spec.links.len()].0 as usize;
            }
        }
        black_box(sum);
        found
    }
}
