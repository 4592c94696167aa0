//! Specifications of links and paths, for tests and scenarios.

use std::time::Duration;

use manypath_proto::Instant;
use manypath_proto::sizes::ETHERNET_MTU;

use crate::link::lost::LostPackets;
use crate::link::pauses::Pauses;
use crate::link::policer::Policer;

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

    /// Nanoseconds a byte takes, times 2^32.
    pub(crate) fn byte_time(self) -> u64 {
        self.0.map_or(0, |bits| {
            let nanos = (8_000_000_000_u128 << 32) / u128::from(bits);
            u64::try_from(nanos).unwrap_or(u64::MAX)
        })
    }
}

/// How much a link holds, the packet that it is sending included. What finds it full is dropped.
///
/// A drop-tail queue of ns-2 with `queue-limit` n holds as much as `Packets(n)`: it counts the
/// packets that wait and the one that wants in, and refuses that one from n on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// At most this many packets.
    Packets(usize),
    /// At most this many bytes of IP packets.
    Bytes(usize),
    /// Everything is kept.
    Unlimited,
}

/// Which packets a link loses, before they reach its queue.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Loss {
    /// Each by itself with this probability in 0..=1.
    Bernoulli(f64),
    /// In bursts.
    GilbertElliott(GilbertElliott),
}

impl Loss {
    /// No packet is lost.
    pub const NONE: Loss = Loss::Bernoulli(0.0);

    /// The share of packets lost in the long run.
    pub fn mean(self) -> f64 {
        match self {
            Loss::Bernoulli(loss) => loss,
            Loss::GilbertElliott(model) => {
                let bad = model.time_in_bad();
                (1.0 - bad) * model.loss_in_good + bad * model.loss_in_bad
            }
        }
    }

    /// True if a packet may be lost.
    pub fn is_possible(self) -> bool {
        match self {
            Loss::Bernoulli(loss) => loss > 0.0,
            Loss::GilbertElliott(model) => model.loss_in_good > 0.0 || model.loss_in_bad > 0.0,
        }
    }
}

impl From<f64> for Loss {
    fn from(probability: f64) -> Loss {
        Loss::Bernoulli(probability)
    }
}

impl From<GilbertElliott> for Loss {
    fn from(model: GilbertElliott) -> Loss {
        Loss::GilbertElliott(model)
    }
}

/// The loss model of Gilbert and Elliott: a link is in a good or a bad state, may change it before
/// each packet, and loses that packet with the probability of its state. It begins in the good one.
///
/// ```
/// use manypath_sim::{GilbertElliott, Loss};
///
/// // Bursts of four packets in the mean, 2 % of all packets.
/// let (to_bad, to_good) = (0.005, 0.25);
/// let bursts = GilbertElliott { to_bad, to_good, loss_in_good: 0.0, loss_in_bad: 1.0 };
/// assert!((Loss::from(bursts).mean() - 0.0196).abs() < 1e-4);
/// ```
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Probability in 0..=1 to go from the good state to the bad.
    pub to_bad: f64,
    /// Probability in 0..=1 to go from the bad state to the good.
    pub to_good: f64,
    /// Probability of loss in the good state, in 0..=1.
    pub loss_in_good: f64,
    /// Probability of loss in the bad state, in 0..=1.
    pub loss_in_bad: f64,
}

impl GilbertElliott {
    /// The share of packets that find the link in its bad state, in the long run.
    pub fn time_in_bad(self) -> f64 {
        if self.to_bad > 0.0 { self.to_bad / (self.to_bad + self.to_good) } else { 0.0 }
    }
}

/// Random early detection (Floyd and Jacobson, 1993): packets are dropped with a probability that
/// grows with the average length of the queue. Lengths are in packets, the one being sent included.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Red {
    /// Average length up to which nothing is dropped.
    pub min: f64,
    /// Average length at which the probability reaches `max_probability`; above `min`.
    pub max: f64,
    /// Probability of a drop at `max`, before drops are spaced evenly; in 0..=1.
    pub max_probability: f64,
    /// Weight of a new sample in the average, in 0..=1.
    pub weight: f64,
    /// From `max` to twice that the probability grows on to 1; else everything is dropped from
    /// `max` on.
    pub gentle: bool,
    /// Packets whose senders take marks (ECT) are marked instead of dropped, until everything would
    /// be dropped.
    pub marks: bool,
    /// Bytes of a typical packet: how fast the average of an idle link falls.
    pub mean_packet: u32,
}

impl Default for Red {
    /// 5 to 15 packets, 0.1, 0.002, gentle, without marks, 500 bytes.
    fn default() -> Red {
        Red {
            min: 5.0,
            max: 15.0,
            max_probability: 0.1,
            weight: 0.002,
            gentle: true,
            marks: false,
            mean_packet: 500,
        }
    }
}

/// One direction of a link.
///
/// A packet that enters is dropped if the link is down, if it is too long, by loss, by the policer,
/// early by RED, or by a full queue; otherwise it waits for those before it, is sent at the link's
/// rate, and arrives a delay later.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// How fast it sends.
    pub rate: Rate,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// Capacity of its queue; `None` for one bandwidth-delay product of the path it is part of, at
    /// least 50 packets.
    pub queue: Option<QueueLimit>,
    /// Drops packets before the queue is full, if any.
    pub red: Option<Red>,
    /// Drops packets that come faster than it lets through, if any.
    pub policer: Option<Policer>,
    /// Times in which it sends nothing, if any.
    pub pauses: Option<Pauses>,
    /// Which packets are lost.
    pub loss: Loss,
    /// Which packets are lost besides, by their number.
    pub lost: LostPackets,
    /// Probability in 0..=1 that a packet arrives twice.
    pub duplicate: f64,
    /// Probability in 0..=1 that a packet is held back by `reorder_by`, so that later ones pass it.
    pub reorder: f64,
    /// How long a reordered packet is held back.
    pub reorder_by: Duration,
    /// A uniform random delay from zero to this is added to each packet; it reorders too.
    pub jitter: Duration,
    /// Probability in 0..=1 that some bits of a packet are flipped. It goes on, and its receiver
    /// drops it for its checksum.
    pub corrupt: f64,
    /// The longest IP packet it takes, in bytes; `None` if it takes all. Cross-traffic is never too
    /// long.
    pub mtu: Option<u32>,
    /// A packet that is too long draws a message to the host that sent it, which names `mtu`; else
    /// it is lost in silence.
    pub icmp: bool,
    /// Its planned changes: outages, and new rates, delays and losses.
    pub changes: Vec<(Instant, LinkChange)>,
}

impl LinkSpec {
    /// A faultless link of this rate and one-way delay.
    pub fn new(rate: Rate, delay: Duration) -> LinkSpec {
        LinkSpec {
            rate,
            delay,
            queue: None,
            red: None,
            policer: None,
            pauses: None,
            loss: Loss::NONE,
            lost: LostPackets::default(),
            duplicate: 0.0,
            reorder: 0.0,
            reorder_by: Duration::ZERO,
            jitter: Duration::ZERO,
            corrupt: 0.0,
            mtu: None,
            icmp: true,
            changes: Vec::new(),
        }
    }

    /// A faultless link by megabits per second and milliseconds one way.
    pub fn mbps_ms(megabits: f64, millis: f64) -> LinkSpec {
        LinkSpec::new(Rate::mbps(megabits), Duration::from_secs_f64(millis / 1e3))
    }

    /// The same with this loss: a probability, or a model.
    pub fn loss(mut self, loss: impl Into<Loss>) -> LinkSpec {
        self.loss = loss.into();
        self
    }

    /// The same with random early detection.
    pub fn red(mut self, red: Red) -> LinkSpec {
        self.red = Some(red);
        self
    }

    /// The same with a policer.
    pub fn policer(mut self, policer: Policer) -> LinkSpec {
        self.policer = Some(policer);
        self
    }

    /// The same with pauses.
    pub fn pauses(mut self, pauses: Pauses) -> LinkSpec {
        self.pauses = Some(pauses);
        self
    }

    /// The same for packets of at most `bytes` bytes. With `icmp` it tells the sender when one is
    /// longer.
    pub fn mtu(mut self, bytes: u32, icmp: bool) -> LinkSpec {
        (self.mtu, self.icmp) = (Some(bytes), icmp);
        self
    }

    /// The same with this queue.
    pub fn queue(mut self, queue: QueueLimit) -> LinkSpec {
        self.queue = Some(queue);
        self
    }

    /// The same with an outage from `at` for `length`, or for good if that is `None`.
    pub fn down(mut self, at: Instant, length: Option<Duration>) -> LinkSpec {
        self.changes.push((at, LinkChange::Cut));
        self.changes.extend(length.map(|length| (at + length, LinkChange::Restore)));
        self
    }

    /// The begin and the end of its first outage. The end is `None` if it lasts for good.
    pub fn first_outage(&self) -> Option<(Instant, Option<Instant>)> {
        let first = |wanted: LinkChange, from: Instant| {
            let those = self.changes.iter().filter(|(at, change)| *at >= from && *change == wanted);
            those.map(|(at, _)| *at).min()
        };
        let begin = first(LinkChange::Cut, Instant::ZERO)?;
        Some((begin, first(LinkChange::Restore, begin)))
    }
}

/// Something that changes on a link while the run goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkChange {
    /// Packets that enter from now on are lost. Those already inside go on, as with an ns-2 error
    /// model of rate 1 at the link's head.
    Cut,
    /// The end of a cut.
    Restore,
    /// A new rate, for all packets but the one being sent.
    Rate(Rate),
    /// A new propagation delay, for all packets not yet sent. A shorter one lets them overtake.
    Delay(Duration),
    /// A new loss model, in its good state if it has one.
    Loss(Loss),
    /// A new probability of duplication.
    Duplicate(f64),
    /// A new probability of reordering, and how long such a packet is held back.
    Reorder(f64, Duration),
    /// A new bound of the random extra delay.
    Jitter(Duration),
    /// A new probability of damage.
    Corrupt(f64),
    /// Another longest packet; `None` for no bound. What is inside already goes on.
    Mtu(Option<u32>),
}

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
}

impl PathSpec {
    /// One hop of 10 Mbit/s and 45 ms each way.
    pub fn new() -> PathSpec {
        PathSpec::hops([LinkSpec::mbps_ms(10.0, 45.0)])
    }

    /// These hops, each the same both ways.
    pub fn hops(links: impl IntoIterator<Item = LinkSpec>) -> PathSpec {
        let hops = links.into_iter().map(|l| HopSpec { forward: l.clone(), reverse: l }).collect();
        PathSpec { hops }
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

    /// The same with this loss on its slowest hop, both ways.
    pub fn loss(mut self, loss: impl Into<Loss>) -> PathSpec {
        let loss = loss.into();
        let hop = self.slowest_hop();
        self.hops[hop].forward.loss = loss;
        self.hops[hop].reverse.loss = loss;
        self
    }

    /// The same with this queue on every hop, both ways.
    pub fn queue(self, queue: QueueLimit) -> PathSpec {
        self.each(|link| link.queue = Some(queue))
    }

    /// The same for packets of at most `bytes` bytes on its slowest hop, both ways. With `icmp`
    /// that hop tells the sender when one is longer.
    pub fn mtu(mut self, bytes: u32, icmp: bool) -> PathSpec {
        let hop = self.slowest_hop();
        let HopSpec { forward, reverse } = &mut self.hops[hop];
        for link in [forward, reverse] {
            (link.mtu, link.icmp) = (Some(bytes), icmp);
        }
        self
    }

    /// The same with an outage of all its links, both ways, from `at` for `length`, or for good if
    /// that is `None`.
    pub fn down(self, at: Instant, length: Option<Duration>) -> PathSpec {
        self.each(|link| *link = link.clone().down(at, length))
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
        let packets = (bits as f64 * round_trip / (8.0 * ETHERNET_MTU as f64)).ceil() as usize;
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
