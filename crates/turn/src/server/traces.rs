//! Routes that users ask for: which are to be traced, and what was found.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use manypath_proto::Instant;

use super::AllocationId;
use crate::route::RelayRoute;

/// Routes that are traced at a time.
const TOGETHER: usize = 4;
/// Routes that are kept; with the longest one some 1.5 KiB each.
const KEPT_MAX: usize = 256;
/// Time for which a route is told before it is traced again.
const FRESH: Duration = Duration::from_secs(20);

/// From an address of the relay to a peer.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ends {
    relayed: IpAddr,
    peer: IpAddr,
}

/// A route that is to be traced, see [`Server::poll_trace`](super::Server::poll_trace).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TraceWanted {
    /// The allocation whose socket's address it begins at.
    pub allocation: AllocationId,
    /// The peer.
    pub peer: IpAddr,
    relayed: IpAddr,
}

#[derive(Debug)]
struct Found {
    at: Instant,
    route: RelayRoute,
}

/// The answer to a request for a route.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Known(RelayRoute),
    /// It is being traced.
    Later,
    /// There are too many.
    Full,
}

/// The routes that are known, and those to find.
#[derive(Default)]
pub(super) struct Traces {
    known: BTreeMap<Ends, Found>,
    /// Those that wait, and those that are being traced.
    waiting: VecDeque<TraceWanted>,
    running: Vec<Ends>,
}

impl Traces {
    /// Takes the request for the route from an allocation, at this address of the relay, to a peer.
    pub(super) fn ask(
        &mut self,
        now: Instant,
        allocation: AllocationId,
        relayed: IpAddr,
        peer: IpAddr,
    ) -> Asked {
        let ends = Ends { relayed, peer };
        if let Some(found) = self.known.get(&ends)
            && found.at + FRESH > now
        {
            return Asked::Known(found.route.clone());
        }
        let is_waiting = |w: &TraceWanted| (w.relayed, w.peer) == (relayed, peer);
        if self.running.contains(&ends) || self.waiting.iter().any(is_waiting) {
            return Asked::Later;
        }
        if self.waiting.len() >= KEPT_MAX {
            return Asked::Full;
        }
        self.waiting.push_back(TraceWanted { allocation, peer, relayed });
        Asked::Later
    }

    /// The next route to trace, if there are not enough at work.
    pub(super) fn poll(&mut self) -> Option<TraceWanted> {
        if self.running.len() >= TOGETHER {
            return None;
        }
        let next = self.waiting.front().copied()?;
        self.waiting.pop_front();
        self.running.push(Ends { relayed: next.relayed, peer: next.peer });
        Some(next)
    }

    /// Takes the result of a trace.
    pub(super) fn found(&mut self, now: Instant, wanted: TraceWanted, route: RelayRoute) {
        let ends = Ends { relayed: wanted.relayed, peer: wanted.peer };
        self.running.retain(|running| *running != ends);
        if self.known.len() >= KEPT_MAX
            && let Some(oldest) = self.known.iter().min_by_key(|(_, found)| found.at)
        {
            let oldest = *oldest.0;
            self.known.remove(&oldest);
        }
        self.known.insert(ends, Found { at: now, route });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    fn ip(n: u8) -> IpAddr {
        [198, 51, 100, n].into()
    }

    fn ask(traces: &mut Traces, now: u64, peer: u8) -> Asked {
        traces.ask(at(now), AllocationId(1), [203, 0, 113, 1].into(), ip(peer))
    }

    #[test]
    fn a_route_is_traced_once_for_all_that_ask_and_again_when_it_is_old() {
        let mut traces = Traces::default();
        assert_eq!(ask(&mut traces, 0, 1), Asked::Later);
        assert_eq!(ask(&mut traces, 1, 1), Asked::Later);
        let wanted = traces.poll().unwrap();
        assert_eq!((wanted.peer, traces.poll()), (ip(1), None));
        assert_eq!(ask(&mut traces, 2, 1), Asked::Later);
        let route = RelayRoute { hops: vec![None], reached: false };
        traces.found(at(3000), wanted, route.clone());
        assert_eq!(ask(&mut traces, 22_999, 1), Asked::Known(route));
        assert_eq!(ask(&mut traces, 23_000, 1), Asked::Later);
        assert_eq!(traces.poll(), Some(wanted));
    }

    #[test]
    fn few_are_traced_at_a_time_and_few_wait_or_are_kept() {
        let mut traces = Traces::default();
        for n in 0..=u8::MAX {
            assert_eq!(ask(&mut traces, 0, n), Asked::Later);
        }
        let full = traces.ask(at(0), AllocationId(1), ip(0), ip(0));
        assert_eq!(full, Asked::Full);
        let begun: Vec<_> = std::iter::from_fn(|| traces.poll()).collect();
        assert_eq!(begun.len(), TOGETHER);
        for (n, wanted) in begun.into_iter().enumerate() {
            traces.found(at(n as u64), wanted, RelayRoute::default());
        }
        while let Some(wanted) = traces.poll() {
            traces.found(at(10), wanted, RelayRoute::default());
        }
        assert_eq!(traces.known.len(), KEPT_MAX);
        assert_eq!(traces.ask(at(10), AllocationId(1), ip(0), ip(0)), Asked::Later);
        let wanted = traces.poll().unwrap();
        traces.found(at(11), wanted, RelayRoute::default());
        assert_eq!(traces.known.len(), KEPT_MAX, "the oldest made room");
        assert_eq!(ask(&mut traces, 11, 0), Asked::Later, "it was this");
    }
}
