//! Cross-traffic: packets of which only the size counts, that share links with those of the hosts.
//!
//! A source stands for one node. Its generators share the node's own link to the network, which
//! nobody else uses; so a packet's arrival at the first shared link is known when it is made, and
//! that arrival is its only event there. It is dropped or queued on the links that it crosses, and
//! forgotten once it is in the queue of the last. No host, log or trace hash sees it.

use std::time::Duration;

use manypath_proto::{Instant, Rng};

use crate::ids::LinkId;
use crate::spec::Rate;

#[cfg(test)]
mod tests;

/// When a generator makes packets.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Pattern {
    /// One after the other at equal distances.
    Cbr,
    /// At equal distances in bursts, with pauses between. The lengths of both have a Pareto
    /// distribution, so that many such generators together are self-similar. The semantics are
    /// those of ns-2's `Application/Traffic/Pareto`: a burst is a whole number of packets, at least
    /// one, and a pause begins a packet's distance after the last of them.
    ParetoOnOff {
        /// Shape of both distributions; above 1, or they have no mean.
        shape: f64,
        /// Mean length of a burst.
        mean_on: Duration,
        /// Mean length of a pause.
        mean_off: Duration,
    },
}

/// One generator of packets of one size.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct GeneratorSpec {
    /// Rate within a burst, in bits per second of IP packets; finite.
    pub rate: Rate,
    /// Length of each packet on the wire in bytes, at least 1.
    pub packet_bytes: u32,
    /// When it makes packets.
    pub pattern: Pattern,
    /// When it begins.
    pub start: Instant,
}

/// A node that sends cross-traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceSpec {
    /// Rate and propagation delay of its own link to the network, which holds all that comes;
    /// `None` for packets that are on the first shared link at once.
    pub access: Option<(Rate, Duration)>,
    /// The links that its packets cross and share with others, in order. What lies beyond the last
    /// of them can be left out.
    pub links: Vec<LinkId>,
    /// Generators of the packets at that node.
    pub generators: Vec<GeneratorSpec>,
}

/// Counters of a source so far.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceStats {
    /// Packets offered to the first shared link.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The cross-traffic of a shared way: nodes with generators, as both CMT-PF's and Caro's papers
/// have it.
///
/// ```
/// use manypath_proto::Rng;
/// use manypath_sim::{CrossTraffic, LinkSpec, Network, QueueLimit, secs};
///
/// let mut net = Network::new(Rng::from_number(1), 20);
/// let core = net.add_link(LinkSpec::mbps_ms(10.0, 25.0), QueueLimit::Packets(42));
/// net.add_cross_traffic(&[core], &CrossTraffic::papers(0.5));
/// net.poll(secs(200)); // no host is there that something could happen to
/// let share = net.link_stats(core).bytes as f64 * 8.0 / 200.0 / 10e6;
/// assert!((0.35..0.65).contains(&share), "{share}");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CrossTraffic {
    /// Its mean, as a share of the rate of the slowest of its links; not below 0.
    pub load: f64,
    /// How many nodes send it.
    pub nodes: usize,
    /// The sizes of the packets in bytes, one generator each at every node. All make as many
    /// packets.
    pub packet_sizes: Vec<u32>,
    /// When they make packets.
    pub pattern: Pattern,
    /// The rate of each node's own link.
    pub access_rate: Rate,
    /// The propagation delay of each node's own link is uniform between these.
    pub access_delay: (Duration, Duration),
    /// Each generator begins at a time uniform between these.
    pub start: (Instant, Instant),
}

impl CrossTraffic {
    /// That of the papers (Natarajan et al., section V; Caro et al., figure 2) at this load: four
    /// nodes, eight generators each of which half make packets of 44 bytes, a quarter of 576 and a
    /// quarter of 1500, in Pareto bursts and pauses of shape 1.5 and 0.5 s, over links of 100
    /// Mbit/s and 5 to 20 ms.
    pub fn papers(load: f64) -> CrossTraffic {
        let half = Duration::from_millis(500);
        CrossTraffic {
            load,
            nodes: 4,
            packet_sizes: vec![44, 44, 44, 44, 576, 576, 1500, 1500],
            pattern: Pattern::ParetoOnOff { shape: 1.5, mean_on: half, mean_off: half },
            access_rate: Rate::mbps(100.0),
            access_delay: (Duration::from_millis(5), Duration::from_millis(20)),
            start: (Instant::ZERO, Instant::from_millis(5000)),
        }
    }
}

/// A generator at work. Times are nanoseconds.
#[derive(Debug)]
struct Generator {
    /// When it makes its next packet.
    next: u64,
    size: u32,
    /// From packet to packet within a burst.
    distance: u64,
    bursts: Option<Bursts>,
    rng: Rng,
}

#[derive(Debug)]
struct Bursts {
    /// Packets of the present burst still to come.
    left: u64,
    /// Least length of a burst, in packets.
    least_on: f64,
    /// Least length of a pause.
    least_off: f64,
    /// One over the shape.
    exponent: f64,
}

impl Generator {
    fn new(spec: &GeneratorSpec, rng: Rng, now: Instant) -> Generator {
        let bits = spec.rate.bits_per_second().expect("a generator has a finite rate");
        let distance = (u128::from(spec.packet_bytes) * 8_000_000_000 / u128::from(bits)).max(1);
        let bursts = match spec.pattern {
            Pattern::Cbr => None,
            Pattern::ParetoOnOff { shape, mean_on, mean_off } => {
                // The mean of a Pareto distribution is least * shape / (shape - 1).
                let least = |mean: f64| mean * (shape - 1.0) / shape;
                let packets = mean_on.as_nanos() as f64 / distance as f64;
                let (least_on, least_off) = (least(packets), least(mean_off.as_nanos() as f64));
                Some(Bursts { left: 0, least_on, least_off, exponent: shape.recip() })
            }
        };
        let next = spec.start.max(now).as_nanos();
        let distance = u64::try_from(distance).unwrap_or(u64::MAX);
        let mut generator = Generator { next, size: spec.packet_bytes, distance, bursts, rng };
        generator.plan();
        generator
    }

    /// Moves on to the packet after the one planned.
    fn plan(&mut self) {
        let mut wait = self.distance;
        if let Some(bursts) = &mut self.bursts {
            if bursts.left == 0 {
                let on = bursts.least_on * pareto(&mut self.rng, bursts.exponent);
                bursts.left = (on.round() as u64).max(1);
                let off = bursts.least_off * pareto(&mut self.rng, bursts.exponent);
                wait = wait.saturating_add(off as u64);
            }
            bursts.left -= 1;
        }
        self.next = self.next.saturating_add(wait);
    }
}

/// A sample of the Pareto distribution whose least value is 1. `libm` gives the same bits
/// everywhere.
fn pareto(rng: &mut Rng, exponent: f64) -> f64 {
    let unit = 1.0 - rng.unit(); // in (0, 1]
    libm::pow(unit, -exponent)
}

/// A source at work.
#[derive(Debug)]
pub(crate) struct Source {
    generators: Vec<Generator>,
    /// When each of them makes its next packet, in nanoseconds: side by side, because all are
    /// looked at for every packet.
    nexts: Vec<u64>,
    /// Nanoseconds a byte takes on its own link, times 2^32.
    byte_time: u64,
    delay: u64,
    /// When its own link is free.
    busy_until: u64,
    /// The size of the packet that arrives next at the first shared link.
    size: u32,
    stats: SourceStats,
}

impl Source {
    pub(crate) fn new(spec: SourceSpec, rng: &Rng, now: Instant) -> Source {
        let (rate, delay) = spec.access.unwrap_or((Rate::INFINITE, Duration::ZERO));
        let fork =
            |(i, generator)| Generator::new(generator, rng.fork(&format!("generator {i}")), now);
        let generators: Vec<Generator> = spec.generators.iter().enumerate().map(fork).collect();
        Source {
            nexts: generators.iter().map(|generator| generator.next).collect(),
            generators,
            byte_time: rate.byte_time(),
            delay: u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX),
            busy_until: 0,
            size: 0,
            stats: SourceStats::default(),
        }
    }

    pub(crate) fn stats(&self) -> SourceStats {
        self.stats
    }

    /// Makes the next packet, and says when it arrives at the first shared link.
    pub(crate) fn next_arrival(&mut self) -> Option<Instant> {
        // Few generators, so looking at each is as fast as any queue.
        let (mut index, mut at) = (0, *self.nexts.first()?);
        for (other, &next) in self.nexts.iter().enumerate() {
            if next < at {
                (index, at) = (other, next);
            }
        }
        let generator = &mut self.generators[index];
        let size = generator.size;
        generator.plan();
        self.nexts[index] = generator.next;
        let sending = ((u128::from(self.byte_time) * u128::from(size)) >> 32) as u64;
        self.busy_until = self.busy_until.max(at).saturating_add(sending);
        self.size = size;
        Some(Instant::from_nanos(self.busy_until.saturating_add(self.delay)))
    }

    /// The packet that was made last has arrived there; returns its size.
    pub(crate) fn emit(&mut self) -> u32 {
        self.stats.packets += 1;
        self.stats.bytes += u64::from(self.size);
        self.size
    }
}
