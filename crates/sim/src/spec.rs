//! What a test or a scenario says about links and paths.

use std::time::Duration;

use manypath_proto::Instant;

/// How fast a link sends, in bits per second of IP packets.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Rate(Option<u64>);

impl Rate {
    /// Sending takes no time.
    pub const INFINITE: Rate = Rate(None);

    /// `bits` per second; at least 1.
    pub fn bps(bits: u64) -> Rate {
        Rate(Some(bits.max(1)))
    }

    /// `megabits` times 10^6 bits per second.
    pub fn mbps(megabits: f64) -> Rate {
        Rate::bps((megabits * 1e6).round() as u64)
    }

    /// Bits per second; `None` if infinite.
    pub fn bits_per_second(self) -> Option<u64> {
        self.0
    }
}

/// How much a link holds, the packet that it is sending included. What finds it full is dropped.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// At most this many packets.
    Packets(usize),
    /// At most this many bytes of IP packets.
    Bytes(usize),
    /// Everything is kept.
    Unlimited,
}

/// One direction of a link.
///
/// A packet that enters is dropped if the link is down, by loss, or by a full queue; otherwise it
/// waits for those before it, is sent at the link's rate, and arrives a delay later.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// How fast it sends.
    pub rate: Rate,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// What it holds; `None` for one bandwidth-delay product of the path it is part of, at least 50
    /// packets.
    pub queue: Option<QueueLimit>,
    /// Probability in 0..=1 that a packet is lost, each by itself (Bernoulli).
    pub loss: f64,
    /// Probability in 0..=1 that a packet arrives twice.
    pub duplicate: f64,
    /// Probability in 0..=1 that a packet is held back by `reorder_by`, so that later ones pass it.
    pub reorder: f64,
    /// How long a reordered packet is held back.
    pub reorder_by: Duration,
    /// A uniform random delay from zero to this is added to each packet; it reorders too.
    pub jitter: Duration,
}

impl LinkSpec {
    /// A faultless link of this rate and one-way delay.
    pub fn new(rate: Rate, delay: Duration) -> LinkSpec {
        LinkSpec {
            rate,
            delay,
            queue: None,
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            reorder_by: Duration::ZERO,
            jitter: Duration::ZERO,
        }
    }

    /// A faultless link by megabits per second and milliseconds one way.
    pub fn mbps_ms(megabits: f64, millis: f64) -> LinkSpec {
        LinkSpec::new(Rate::mbps(megabits), Duration::from_secs_f64(millis / 1e3))
    }

    /// The same with this probability of loss.
    pub fn loss(mut self, loss: f64) -> LinkSpec {
        self.loss = loss;
        self
    }

    /// The same with this queue.
    pub fn queue(mut self, queue: QueueLimit) -> LinkSpec {
        self.queue = Some(queue);
        self
    }
}

/// Something that changes on a link while the run goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkChange {
    /// What enters from now on is lost. What is inside already goes on, as with an ns-2 error model
    /// of rate 1 at the link's head.
    Cut,
    /// The end of a cut.
    Restore,
    /// A new rate, for all packets but the one being sent.
    Rate(Rate),
    /// A new propagation delay, for all packets not yet sent. A shorter one lets them overtake.
    Delay(Duration),
    /// A new probability of loss.
    Loss(f64),
    /// A new probability of duplication.
    Duplicate(f64),
    /// A new probability of reordering, and how long such a packet is held back.
    Reorder(f64, Duration),
    /// A new bound of the random extra delay.
    Jitter(Duration),
}

/// A time at which a link goes down, and for how long; `None` for good.
pub type Outage = (Instant, Option<Duration>);

/// One hop of a path: a link each way.
#[derive(Clone, Debug, PartialEq)]
pub struct HopSpec {
    /// From the associating side to the other.
    pub forward: LinkSpec,
    /// Back.
    pub reverse: LinkSpec,
}

/// A path between two nodes: hops in a row, independent of all other paths.
///
/// ```
/// use manypath_sim::{LinkSpec, PathSpec};
///
/// // The CMT paper's path: 10 Mbit/s in the middle, 45 ms one way.
/// let path = PathSpec::hops([
///     LinkSpec::mbps_ms(100.0, 10.0),
///     LinkSpec::mbps_ms(10.0, 25.0).loss(0.01),
///     LinkSpec::mbps_ms(100.0, 10.0),
/// ]);
/// assert_eq!(path.one_way_delay().as_millis(), 45);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PathSpec {
    /// The hops, in the order in which the forward direction crosses them.
    pub hops: Vec<HopSpec>,
    /// When all its links are down, both ways.
    pub outages: Vec<Outage>,
}

impl PathSpec {
    /// One hop of 10 Mbit/s and 45 ms each way.
    pub fn new() -> PathSpec {
        PathSpec::hops([LinkSpec::mbps_ms(10.0, 45.0)])
    }

    /// These hops, each the same both ways.
    pub fn hops(links: impl IntoIterator<Item = LinkSpec>) -> PathSpec {
        let hops = links.into_iter().map(|l| HopSpec { forward: l.clone(), reverse: l }).collect();
        PathSpec { hops, outages: Vec::new() }
    }

    /// The same with this rate on every hop, both ways.
    pub fn rate_mbps(self, megabits: f64) -> PathSpec {
        self.each(|link| link.rate = Rate::mbps(megabits))
    }

    /// The same with this one-way delay, all of it on the first hop.
    pub fn delay_ms(mut self, millis: f64) -> PathSpec {
        let delay = Duration::from_secs_f64(millis / 1e3);
        for (i, hop) in self.hops.iter_mut().enumerate() {
            hop.forward.delay = if i == 0 { delay } else { Duration::ZERO };
            hop.reverse.delay = hop.forward.delay;
        }
        self
    }

    /// The same with this loss probability on its slowest hop, both ways.
    pub fn loss(mut self, loss: f64) -> PathSpec {
        let hop = self.slowest_hop();
        self.hops[hop].forward.loss = loss;
        self.hops[hop].reverse.loss = loss;
        self
    }

    /// The same with this queue on every hop, both ways.
    pub fn queue(self, queue: QueueLimit) -> PathSpec {
        self.each(|link| link.queue = Some(queue))
    }

    /// The same with an outage from `at` on, for `length`; for good if that is `None`.
    pub fn down(mut self, at: Instant, length: Option<Duration>) -> PathSpec {
        self.outages.push((at, length));
        self
    }

    /// Changes every link, both ways.
    pub fn each(mut self, mut change: impl FnMut(&mut LinkSpec)) -> PathSpec {
        for hop in &mut self.hops {
            change(&mut hop.forward);
            change(&mut hop.reverse);
        }
        self
    }

    /// The sum of the forward delays.
    pub fn one_way_delay(&self) -> Duration {
        self.hops.iter().map(|hop| hop.forward.delay).sum()
    }

    /// The rate of the slowest forward link.
    pub fn bottleneck(&self) -> Rate {
        self.hops.get(self.slowest_hop()).map_or(Rate::INFINITE, |hop| hop.forward.rate)
    }

    /// The queue of a link that names none: one bandwidth-delay product of this path in packets of
    /// 1500 bytes, at least 50.
    pub fn default_queue(&self) -> QueueLimit {
        let Some(bits) = self.bottleneck().bits_per_second() else { return QueueLimit::Unlimited };
        let back: Duration = self.hops.iter().map(|hop| hop.reverse.delay).sum();
        let round_trip = (self.one_way_delay() + back).as_secs_f64();
        let packets = (bits as f64 * round_trip / (8.0 * 1500.0)).ceil() as usize;
        QueueLimit::Packets(packets.max(50))
    }

    /// The hop whose forward link is slowest; the first of several.
    pub fn slowest_hop(&self) -> usize {
        let rate = |hop: &HopSpec| hop.forward.rate.bits_per_second().unwrap_or(u64::MAX);
        (0..self.hops.len()).min_by_key(|&i| rate(&self.hops[i])).unwrap_or(0)
    }
}

impl Default for PathSpec {
    fn default() -> PathSpec {
        PathSpec::new()
    }
}
