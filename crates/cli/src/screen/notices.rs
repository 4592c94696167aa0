//! Events about paths, and the engine's decisions: as sentences and in results.

use std::net::SocketAddr;

use manypath::overlay::BETA;
use manypath::sizes::ETHERNET_MTU;
use manypath::{
    Association, ElectReason, Event, MtuReason, PathId, PathRank, RestoreReason, SuppressReason,
};
use manypath_live::Interfaces;
use serde::Serialize;

use crate::connect::via;
use crate::screen::labels::{Ends, label};

pub(crate) mod states;

/// How much a sentence says.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// As much as somebody needs who sends a file: paths have the names of their interfaces.
    Brief,
    /// All there is to know, with `-v`: addresses, grounds, decisions that change nothing for a
    /// user.
    Full,
}

impl Detail {
    /// As `-v` asks.
    pub(crate) fn new(is_verbose: bool) -> Detail {
        if is_verbose { Detail::Full } else { Detail::Brief }
    }
}

/// A path as it was when something happened to it. The keys are a public contract.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct PathName {
    /// Its number, from 1.
    pub path: u16,
    /// The name of the path beside the others of the association; none if it was gone.
    #[serde(skip)]
    pub label: Option<String>,
    /// The interface that has our address, or null as in results.
    pub interface: Option<String>,
    /// Our transport address; null if the path was gone by the time it was looked at.
    pub local: Option<String>,
    /// The peer's transport address, or null as well.
    pub remote: Option<String>,
    /// The relay that our address is on; null for a direct path.
    pub relay: Option<String>,
}

impl PathName {
    /// The name of path `id` as it is now.
    pub(crate) fn of(
        association: &Association,
        id: PathId,
        interfaces: &mut Interfaces,
    ) -> PathName {
        let paths = association.paths();
        let all: Vec<_> =
            paths.iter().map(|path| Ends::of(path, association, interfaces)).collect();
        let this = paths.iter().position(|path| path.id == id).map(|index| &all[index]);
        PathName {
            path: u16::from(id.0) + 1,
            label: this.map(|ends| label(ends, &all)),
            interface: this.and_then(|ends| ends.interface.clone()),
            relay: this.and_then(|ends| ends.relay.clone()),
            local: this.map(|ends| ends.local.to_string()),
            remote: this.map(|ends| ends.remote.to_string()),
        }
    }

    /// The name with these addresses.
    fn between(self, local: SocketAddr, remote: SocketAddr) -> PathName {
        PathName { local: Some(local.to_string()), remote: Some(remote.to_string()), ..self }
    }

    /// "path 2 (wlan0)"; in full, "path 2 (wlan0 192.0.2.1:5000 - 192.0.2.9:9899)".
    pub(crate) fn text(&self, detail: Detail) -> String {
        let number = format!("path {}", self.path);
        match (detail, &self.label, &self.local, &self.remote) {
            (Detail::Brief, Some(label), ..) => format!("{number} ({label})"),
            (_, _, Some(local), Some(remote)) => {
                let relay = via::text(self.relay.as_deref());
                let interface = self.interface.as_ref().map_or(String::new(), |i| format!("{i} "));
                format!("{number} ({interface}{local} - {remote}{relay})")
            }
            _ => number,
        }
    }
}

/// Something that was found or decided about paths, as [traces](../../../docs/trace.md) call it.
/// The keys are a public contract.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Notice {
    /// Two paths share a bottleneck.
    SharedBottleneck {
        /// The two.
        paths: [PathName; 2],
        /// The kind of evidence: `fast_retransmits`, `delays` or `delay_statistics`.
        sign: &'static str,
        /// How many of these signs each of them showed.
        events: [u32; 2],
        /// How many of them came on both together.
        matched: u32,
        /// That number over the smaller of theirs.
        ratio: f64,
        /// The ratio above which a bottleneck counts as shared.
        threshold: f64,
        /// The number of events that the path with fewer of them needed.
        needed: Option<u32>,
        /// An upper bound of the probability with which this many come together by chance.
        chance: f64,
        /// How much later the events of the second path came than those of the first, in seconds.
        lag_s: f64,
        /// The number of the path that carries no more data because of it; null if both stay in
        /// use.
        suppressed: Option<u16>,
        #[serde(skip)]
        grounds: String,
    },
    /// Two paths have too many of their hops in common.
    SharedHops {
        /// The two.
        paths: [PathName; 2],
        /// Their disjointness: 1 - latency of the shared links / latency of the shorter path.
        disjoint: f64,
        /// The number of the path that carries no more data because of it.
        suppressed: u16,
    },
    /// Our address of a path is not ours any more.
    AddressGone {
        /// Which path.
        path: u16,
        /// The address.
        local: String,
    },
    /// A path was added, or has other addresses.
    PathAdded {
        /// Which.
        #[serde(flatten)]
        name: PathName,
    },
    /// A path had no answer in its trial. If another address of the peer is tried in its place,
    /// `path_removed` and `path_added` follow.
    NoAnswer {
        /// Which, with the addresses that it had.
        #[serde(flatten)]
        name: PathName,
    },
    /// A path was removed: its address is gone and others work, or another took its place.
    PathRemoved {
        /// Which.
        path: u16,
    },
    /// A path has another rank.
    PathRank {
        /// Which.
        #[serde(flatten)]
        name: PathName,
        /// `normal`, `cost=N` or `backup`.
        rank: PathRank,
    },
    /// A path that works carries no data from now on.
    PathSuppressed {
        /// Which.
        #[serde(flatten)]
        name: PathName,
        /// `shared_bottleneck`, `slow`, `spare`, `shares_hops` or `dearer`.
        reason: SuppressReason,
    },
    /// A path that was suppressed carries data again.
    PathRestored {
        /// Which.
        #[serde(flatten)]
        name: PathName,
        /// `better`, `too_few`, `disjoint`, `again`, `failover`, `overflow` or `ranked`.
        reason: RestoreReason,
    },
    /// The largest packets that a path carries, as far as is known.
    PathMtu {
        /// Which.
        #[serde(flatten)]
        name: PathName,
        /// Bytes of an IP packet.
        mtu_bytes: u64,
        /// `confirmed`, `black_hole`, `packet_too_big` or `interface`.
        reason: MtuReason,
    },
    /// All SACKs of one side take another path.
    PrimaryElected {
        /// Which.
        #[serde(flatten)]
        name: PathName,
        /// True if they are the peer's, false if ours.
        by_peer: bool,
        /// The state of the previous path, as far as this side knows: `failed`, `set_aside` or
        /// `silent`.
        reason: ElectReason,
    },
}

impl Notice {
    /// The notice for an event; `name` gives a path's name. `None` for all other events.
    pub(crate) fn of(event: &Event, name: impl Fn(PathId) -> PathName) -> Option<Notice> {
        Some(match event {
            Event::SharedBottleneck { evidence, suppressed } => Notice::SharedBottleneck {
                paths: [name(evidence.paths.0), name(evidence.paths.1)],
                sign: evidence.sign.name(),
                events: [evidence.events.0, evidence.events.1],
                matched: evidence.matched,
                ratio: evidence.ratio(),
                threshold: evidence.threshold,
                needed: evidence.needed,
                chance: evidence.chance,
                lag_s: evidence.lag_s,
                suppressed: suppressed.map(|id| u16::from(id.0) + 1),
                grounds: evidence.grounds(),
            },
            Event::SharedHops { path, with, disjoint } => Notice::SharedHops {
                paths: [name(*path), name(*with)],
                disjoint: *disjoint,
                suppressed: u16::from(path.0) + 1,
            },
            Event::AddressGone { path, local } => {
                Notice::AddressGone { path: u16::from(path.0) + 1, local: local.to_string() }
            }
            // With the addresses of that time: it may have others by now.
            Event::PathAdded { path, local, remote } => {
                Notice::PathAdded { name: name(*path).between(*local, *remote) }
            }
            Event::NoAnswer { path, local, remote } => {
                Notice::NoAnswer { name: name(*path).between(*local, *remote) }
            }
            Event::PathRemoved { path } => Notice::PathRemoved { path: u16::from(path.0) + 1 },
            Event::PathRank { path, rank } => Notice::PathRank { name: name(*path), rank: *rank },
            Event::PathSuppressed { path, reason } => {
                Notice::PathSuppressed { name: name(*path), reason: *reason }
            }
            Event::PathRestored { path, reason } => {
                Notice::PathRestored { name: name(*path), reason: *reason }
            }
            Event::PathMtu { path, mtu, reason } => {
                Notice::PathMtu { name: name(*path), mtu_bytes: *mtu as u64, reason: *reason }
            }
            Event::PrimaryElected { path, by_peer, reason } => {
                Notice::PrimaryElected { name: name(*path), by_peer: *by_peer, reason: *reason }
            }
            _ => return None,
        })
    }

    /// A sentence for the user; `None` if another notice says it already, or if there is no news in
    /// it for somebody who did not ask for details.
    pub(crate) fn sentence(&self, detail: Detail) -> Option<String> {
        let called = |name: &PathName| name.text(detail);
        Some(match self {
            Notice::SharedBottleneck { paths: [a, b], suppressed, grounds, .. } => {
                let (a, b) = (called(a), called(b));
                let grounds = match detail {
                    Detail::Brief => String::new(),
                    Detail::Full => format!(": {grounds}"),
                };
                let done = match suppressed {
                    Some(path) => format!("path {path}, the slower one, carries no more data"),
                    None => "both stay in use".to_owned(),
                };
                format!("{a} and {b} share a bottleneck{grounds}; {done}")
            }
            Notice::SharedHops { paths: [path, with], disjoint, suppressed } => {
                let grounds = match detail {
                    Detail::Brief => String::new(),
                    Detail::Full => format!(" (disjointness {disjoint:.2}, not above {BETA})"),
                };
                let (path, with) = (called(path), called(with));
                let done = format!("path {suppressed} carries no more data");
                format!("{path} shares too many hops with {with}{grounds}; {done}")
            }
            Notice::PathSuppressed {
                reason: SuppressReason::SharedBottleneck | SuppressReason::SharesHops,
                ..
            } => return None,
            Notice::AddressGone { path, local } => {
                format!("path {path}: {local} is no address of this host any more")
            }
            Notice::PathAdded { name } => format!("{} is new", called(name)),
            Notice::NoAnswer { name } => {
                let remote = name.remote.as_deref().unwrap_or("the peer");
                format!("{} has no answer from {remote} yet", called(name))
            }
            Notice::PathRemoved { path } => format!("path {path} is removed"),
            Notice::PathRank { name, rank } => {
                format!("{} has the rank {rank} from now on", called(name))
            }
            Notice::PathSuppressed { name, reason } => {
                format!("{} carries no more data: {reason}", called(name))
            }
            Notice::PathRestored { name, reason } => {
                format!("{} carries data again: {reason}", called(name))
            }
            // Both change nothing for a user, whose data arrives all the same.
            Notice::PathMtu { .. } | Notice::PrimaryElected { .. } if detail == Detail::Brief => {
                return None;
            }
            // What most paths carry is no news.
            Notice::PathMtu { mtu_bytes, reason: MtuReason::Confirmed, .. }
                if *mtu_bytes >= ETHERNET_MTU as u64 =>
            {
                return None;
            }
            Notice::PathMtu { name, mtu_bytes, reason } => {
                format!("{} has packets of {mtu_bytes} bytes from now on: {reason}", called(name))
            }
            Notice::PrimaryElected { name, by_peer, reason } => {
                let whose = if *by_peer { "the peer's" } else { "our" };
                format!("{whose} SACKs take {} from now on: {reason}", called(name))
            }
        })
    }
}

#[cfg(test)]
mod tests;
