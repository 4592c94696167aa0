//! Transitions of the associations of a host, for the comparison with a model of the protocol.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use manypath_proto::testing::Observed;
use manypath_proto::{AssocId, Association, Datagram, Endpoint};
use manypath_wire::chunk_type;

/// Bytes of the common header (RFC 9260 §3.1).
const COMMON_HEADER: usize = 12;
/// Cause of the ERROR "Stale Cookie" (RFC 9260 §3.3.10.3).
const STALE_COOKIE: [u8; 2] = [0, 3];
/// State of an association that does not exist.
const CLOSED: &str = "CLOSED";

/// A step of the state machine of an association.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Transition {
    /// The state before, as RFC 9260 §4 names it.
    pub from: &'static str,
    /// The chunks of the packet that arrived, or the name of another cause, with `+` between.
    pub causes: String,
    /// The tag of the packet: `own`, `reflected` (the peer's, with the T bit), `other`, or `-` for
    /// none, a packet with the tag 0, and one that met no association.
    pub tag: &'static str,
    /// The state after.
    pub to: &'static str,
    /// The tags of an open association that stayed open: `same`, `peer` (the peer's changed),
    /// `both`. Otherwise `-`.
    pub change: &'static str,
}

/// The line of a table: the fields, with commas between.
impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Transition { from, causes, tag, to, change } = self;
        write!(f, "{from},{causes},{tag},{to},{change}")
    }
}

/// The transitions of one host or many, and how often each was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transitions {
    counts: BTreeMap<Transition, u64>,
}

impl Transitions {
    /// Adds those of `other`.
    pub fn merge(&mut self, other: &Transitions) {
        for (transition, count) in &other.counts {
            *self.counts.entry(transition.clone()).or_default() += count;
        }
    }

    /// Each transition, and how often it was made.
    pub fn iter(&self) -> impl Iterator<Item = (&Transition, u64)> {
        self.counts.iter().map(|(transition, count)| (transition, *count))
    }

    fn note(&mut self, transition: Transition) {
        *self.counts.entry(transition).or_default() += 1;
    }
}

/// An input of the engine.
#[derive(Debug)]
pub(crate) enum Cause {
    /// A call, or a timer, by its name.
    Named(&'static str),
    Packet {
        chunks: Vec<&'static str>,
        tag: u32,
        is_reflected: bool,
        /// The associations that have verified the path that it came on.
        trusting: BTreeSet<AssocId>,
    },
}

impl Cause {
    /// The chunks and the tag of a datagram.
    pub(crate) fn of(datagram: &Datagram, endpoint: &Endpoint) -> Cause {
        let (chunks, is_reflected) = chunks_of(&datagram.payload);
        let tag = datagram.payload.get(4..8).and_then(|tag| tag.try_into().ok());
        let Datagram { local, remote, .. } = *datagram;
        let trusts = |id: &AssocId| {
            endpoint.assoc(*id).is_some_and(|assoc| assoc.has_verified(local, remote))
        };
        Cause::Packet {
            chunks,
            tag: tag.map_or(0, u32::from_be_bytes),
            is_reflected,
            trusting: endpoint.associations().filter(trusts).collect(),
        }
    }

    fn name(&self) -> String {
        match self {
            Cause::Named(name) => (*name).to_owned(),
            Cause::Packet { chunks, .. } => chunks.join("+"),
        }
    }

    /// The relation of the packet's tag to an association.
    fn tag(&self, before: Observed) -> &'static str {
        match self {
            Cause::Packet { tag, .. } if *tag == 0 || before.state == CLOSED => "-",
            Cause::Packet { tag, is_reflected: false, .. } if *tag == before.local_tag => "own",
            Cause::Packet { tag, is_reflected: true, .. } if *tag == before.peer_tag => "reflected",
            Cause::Packet { .. } => "other",
            Cause::Named(_) => "-",
        }
    }

    /// True for a packet that concerns the association and may move it: it has its tag, comes on a
    /// verified path if the association is open, and is more than data, acknowledgements and
    /// heartbeats.
    fn may_move(&self, id: AssocId, before: Observed) -> bool {
        match self {
            Cause::Packet { chunks, trusting, .. } => {
                let is_flow = |c: &&str| matches!(*c, "DATA" | "SACK" | "HEARTBEAT" | "other");
                !chunks.iter().all(is_flow)
                    && (trusting.contains(&id) || !is_open(before))
                    && matches!(self.tag(before), "own" | "reflected")
            }
            Cause::Named(_) => false,
        }
    }
}

/// The names of the chunks, and true if one has the T bit.
fn chunks_of(packet: &[u8]) -> (Vec<&'static str>, bool) {
    let (mut names, mut is_reflected) = (Vec::new(), false);
    let mut rest = packet.get(COMMON_HEADER..).unwrap_or_default();
    while let [kind, flags, high, low, value @ ..] = rest {
        let has_t_bit = flags & 1 != 0;
        names.push(match *kind {
            chunk_type::DATA | chunk_type::I_DATA => "DATA",
            chunk_type::INIT => "INIT",
            chunk_type::INIT_ACK => "INIT-ACK",
            chunk_type::SACK | chunk_type::NR_SACK => "SACK",
            chunk_type::HEARTBEAT | chunk_type::HEARTBEAT_ACK => "HEARTBEAT",
            chunk_type::ABORT => "ABORT",
            chunk_type::SHUTDOWN => "SHUTDOWN",
            chunk_type::SHUTDOWN_ACK => "SHUTDOWN-ACK",
            chunk_type::ERROR if value.starts_with(&STALE_COOKIE) => "STALE-COOKIE",
            chunk_type::COOKIE_ECHO => "COOKIE-ECHO",
            chunk_type::COOKIE_ACK => "COOKIE-ACK",
            chunk_type::SHUTDOWN_COMPLETE => "SHUTDOWN-COMPLETE",
            chunk_type::DTLS => "sealed",
            _ => "other",
        });
        let ends = matches!(*kind, chunk_type::ABORT | chunk_type::SHUTDOWN_COMPLETE);
        is_reflected |= has_t_bit && ends;
        let length = usize::from(u16::from_be_bytes([*high, *low])).max(4).next_multiple_of(4);
        rest = rest.get(length..).unwrap_or_default();
    }
    names.dedup();
    (names, is_reflected)
}

/// The associations of an endpoint as they were last seen, and their transitions so far.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    seen: BTreeMap<AssocId, Observed>,
    transitions: Transitions,
}

impl Watched {
    pub(crate) fn transitions(&self) -> &Transitions {
        &self.transitions
    }

    /// Compares the associations with those seen last, and puts the changes down to `cause`.
    pub(crate) fn look(&mut self, endpoint: &Endpoint, cause: &Cause) {
        let now = |id| endpoint.assoc(id).map(Association::observed).map(|seen| (id, seen));
        let now: BTreeMap<_, _> = endpoint.associations().filter_map(now).collect();
        let before = std::mem::replace(&mut self.seen, now);
        let ids: BTreeSet<_> = before.keys().chain(self.seen.keys()).copied().collect();
        let none = Observed { state: CLOSED, local_tag: 0, peer_tag: 0 };
        for id in ids {
            let was = before.get(&id).copied().unwrap_or(none);
            let is = self.seen.get(&id).copied().unwrap_or(none);
            if was.state == CLOSED && is.state == CLOSED || was == is && !cause.may_move(id, was) {
                continue;
            }
            self.transitions.note(Transition {
                from: was.state,
                causes: cause.name(),
                tag: cause.tag(was),
                to: is.state,
                change: change(was, is),
            });
        }
    }
}

fn is_open(seen: Observed) -> bool {
    !matches!(seen.state, CLOSED | "COOKIE-WAIT" | "COOKIE-ECHOED")
}

fn change(was: Observed, is: Observed) -> &'static str {
    if !is_open(was) || !is_open(is) {
        "-"
    } else if was.local_tag != is.local_tag {
        "both"
    } else if was.peer_tag != is.peer_tag {
        "peer"
    } else {
        "same"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_of_a_packet_have_names_in_their_order() {
        let header = [0; COMMON_HEADER];
        let packet =
            [&header[..], &[10, 0, 0, 6, 1, 2, 0, 0], &[0, 3, 0, 4], &[0, 3, 0, 4], &[6, 1, 0, 4]];
        let names = vec!["COOKIE-ECHO", "DATA", "ABORT"];
        assert_eq!(chunks_of(&packet.concat()), (names, true), "equal neighbours count once");
        assert_eq!(chunks_of(&header[..7]), (Vec::new(), false));
        let stale = [&header[..], &[9, 0, 0, 12, 0, 3, 0, 8, 0, 0, 0, 1]].concat();
        assert_eq!(chunks_of(&stale).0, ["STALE-COOKIE"]);
    }
}
