//! Worlds of many associations over few shared links, in which every association has the same
//! share whatever their number: to see how time and memory grow.

use std::sync::Arc;
use std::time::Duration;

use manypath_proto::Instant;
use manypath_proto::config::{Config, ConfigError};

use crate::ids::LinkId;
use crate::paths::PathLinks;
use crate::spec::{LinkSpec, QueueLimit, Rate};
use crate::world::{Flow, FlowSpec, World};

/// Associations for each shared link.
const PER_LINK: usize = 50;

/// Paths of an association.
const PATHS: usize = 2;

/// Links of a path.
const HOPS: usize = 2;

/// A path's share of each of its links, in bits per second.
const SHARE_BPS: u64 = 1_000_000;

/// Packets of a link's queue for each path over it: about 25 ms.
const QUEUE: usize = 2;

/// The time in which all associations begin, one after the other.
const BEGINNING: Duration = Duration::from_secs(1);

/// Makes what all worlds share, so that nobody counts it as memory of the first: the content of
/// messages.
pub fn warm_up() {
    crate::traffic::make_pattern();
}

/// A world of many associations.
#[derive(Clone, Debug)]
pub struct Many {
    /// How many associations.
    pub associations: usize,
    /// The preset of both ends, in the profile `rfc9260`.
    pub preset: String,
    /// Parameters of the engine that differ from the profile and the preset, by name.
    pub overrides: Vec<(String, String)>,
    /// User bytes that each sends; `None` for no end.
    pub bytes: Option<u64>,
    /// Where all randomness comes from.
    pub seed: u64,
}

impl Many {
    /// Shared links: one for each fifty associations, at least two.
    pub fn links(&self) -> usize {
        self.associations.div_ceil(PER_LINK).max(2)
    }

    /// Builds it. Every association has two paths, and each of them crosses two of the shared
    /// links. A link has room for 1 Mbit/s of each path over it and a queue of 25 ms; its delay is
    /// 5 to 24 ms. The associations begin within a second.
    ///
    /// # Errors
    ///
    /// If there is no such preset.
    pub fn build(&self) -> Result<(World, Vec<Flow>), ConfigError> {
        let config = Arc::new(Config::build("rfc9260", &self.preset, &self.overrides)?);
        let mut world = World::new(self.seed, 28);
        let count = self.links();
        let crossings = self.associations * PATHS * HOPS / count;
        let rate = Rate::bps(crossings as u64 * SHARE_BPS);
        let mut add = |millis: u64| -> LinkId {
            let link = LinkSpec::new(rate, Duration::from_millis(millis));
            world.net.add_link(link, QueueLimit::Packets((QUEUE * crossings).max(20)))
        };
        let links: Vec<[LinkId; 2]> =
            (0..count).map(|link| [0; 2].map(|_| add(5 + (link as u64 * 7) % 20))).collect();
        let mut flows = Vec::with_capacity(self.associations);
        for number in 0..self.associations {
            let paths = (0..PATHS).map(|path| {
                // A hop of one lap around all links, and one that strides.
                let first = (number + path * count / PATHS) % count;
                let second = (first + 1 + number / count % (count - 1)) % count;
                let way = [links[first], links[second]];
                PathLinks {
                    forward: way.map(|[there, _]| there).to_vec(),
                    reverse: way.iter().rev().map(|[_, back]| *back).collect(),
                }
            });
            let start = Instant::ZERO + BEGINNING * number as u32 / self.associations as u32;
            let flow = world.add_flow(FlowSpec {
                name: number.to_string(),
                sender: Arc::clone(&config),
                receiver: Arc::clone(&config),
                paths: paths.collect(),
                start,
                keys: None,
                has_ledger: false,
            });
            world.host_mut(flow.from).send_file_at(start, self.bytes.unwrap_or(u64::MAX));
            flows.push(flow);
        }
        Ok((world, flows))
    }
}
