//! Questions to the log of all packets.

use manypath_proto::{Instant, PathId};
use manypath_wire::Chunk;

use crate::ids::NodeId;
use crate::network::Network;
use crate::packet_log::LoggedPacket;

/// A question to the log: packets with a chunk of one type, narrowed step by step.
///
/// ```
/// use manypath_sim::{Pair, chunk_type::DATA, secs};
/// use manypath_proto::PathId;
///
/// let mut t = Pair::two_paths("cmt-pf").connect();
/// t.a.send_file(100_000);
/// let on_second = t.run_to_end(secs(60)).sent(DATA).on(PathId(1)).since(secs(1));
/// assert!(on_second.count() < 50);
/// ```
#[derive(Clone, Debug)]
pub struct Sent<'n> {
    net: &'n Network,
    chunk: u8,
    from: Option<NodeId>,
    path: Option<usize>,
    since: Instant,
    until: Instant,
}

impl<'n> Sent<'n> {
    pub(crate) fn new(net: &'n Network, chunk: u8) -> Sent<'n> {
        let until = Instant::from_nanos(u64::MAX);
        Sent { net, chunk, from: None, path: None, since: Instant::ZERO, until }
    }

    /// Only what that node sent.
    pub fn by(mut self, node: NodeId) -> Self {
        self.from = Some(node);
        self
    }

    /// Only what was sent over that path.
    pub fn on(mut self, path: PathId) -> Self {
        self.path = Some(usize::from(path.0));
        self
    }

    /// Only what was sent at `at` or later.
    pub fn since(mut self, at: Instant) -> Self {
        self.since = at;
        self
    }

    /// Only what was sent before `at`.
    pub fn until(mut self, at: Instant) -> Self {
        self.until = at;
        self
    }

    /// The packets.
    ///
    /// # Panics
    ///
    /// If the run kept no log.
    pub fn packets(&self) -> impl Iterator<Item = &'n LoggedPacket> {
        let query = self.clone();
        let log = self.net.packet_log().expect("this run kept no packet log");
        let start = log.packets().partition_point(|packet| packet.at < query.since);
        log.packets()[start..].iter().take_while(move |packet| packet.at < query.until).filter(
            move |packet| {
                query.from.is_none_or(|from| packet.from == from)
                    && query.path.is_none_or(|path| {
                        packet.route.and_then(|route| query.net.route_path(route)) == Some(path)
                    })
                    && packet.chunks().iter().any(|chunk| chunk.ty() == query.chunk)
            },
        )
    }

    /// The chunks of the type asked for, each with the time its packet was sent.
    pub fn chunks(&self) -> impl Iterator<Item = (Instant, Chunk)> {
        let wanted = self.chunk;
        self.packets().flat_map(move |packet| {
            let chunks = packet.chunks().into_iter().filter(move |chunk| chunk.ty() == wanted);
            chunks.map(|chunk| (packet.at, chunk))
        })
    }

    /// How many packets.
    pub fn count(&self) -> usize {
        self.packets().count()
    }

    /// How many of them the network dropped.
    pub fn dropped(&self) -> usize {
        self.packets().filter(|packet| packet.is_dropped()).count()
    }

    /// When the first was sent.
    pub fn first(&self) -> Option<Instant> {
        self.packets().next().map(|packet| packet.at)
    }

    /// When the last was sent.
    pub fn last(&self) -> Option<Instant> {
        self.packets().last().map(|packet| packet.at)
    }

    /// When each was sent.
    pub fn times(&self) -> Vec<Instant> {
        self.packets().map(|packet| packet.at).collect()
    }
}
