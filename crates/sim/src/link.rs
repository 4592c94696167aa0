//! One direction of a link: a queue, a sender of some rate, a propagation delay, and faults.

use std::collections::VecDeque;
use std::time::Duration;

use manypath_proto::sizes::IPV4_HEADER;
use manypath_proto::{Instant, Rng};
use serde::Serialize;

use crate::packet::{DropCause, Handle, Packet, Packets};
use crate::queue::{Due, SlotQueue};
use crate::spec::{LinkChange, LinkSpec, Loss, QueueLimit};
use loss_range::LossRange;
use pauses::PausesNs;
use policer::Bucket;
use red::RedState;

pub(crate) mod loss_range;
pub(crate) mod lost;
pub(crate) mod pauses;
pub(crate) mod policer;
mod red;
#[cfg(test)]
mod tests;

/// The IP header that each fragment has.
const IP_HEADER: u32 = IPV4_HEADER as u32;

/// Counters of a link so far.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkStats {
    /// Packets that got in.
    pub packets: u64,
    /// Their bytes, IP header included.
    pub bytes: u64,
    /// Packets lost at random.
    pub lost: u64,
    /// Packets that found the queue full.
    pub overflowed: u64,
    /// Packets dropped early by RED.
    pub early: u64,
    /// Packets marked by RED instead of dropped (CE). Those count in `packets`. Results have it
    /// unless it is 0.
    #[serde(skip_serializing_if = "crate::result::is_zero")]
    pub marked: u64,
    /// Packets dropped by the policer.
    pub policed: u64,
    /// Packets that came while the link was down.
    pub cut: u64,
    /// Packets that were longer than the link's MTU and had the DF bit.
    pub too_long: u64,
    /// Packets that it cut into fragments.
    pub fragmented: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets damaged.
    pub corrupted: u64,
    /// Nanoseconds spent sending.
    pub busy_ns: u64,
    /// Most packets held at once, the one being sent included.
    pub longest_queue: usize,
}

impl LinkStats {
    /// Packets that came to the link.
    pub fn offered(&self) -> u64 {
        self.packets + self.dropped()
    }

    /// Packets dropped for whatever cause.
    pub fn dropped(&self) -> u64 {
        self.lost + self.overflowed + self.early + self.policed + self.cut + self.too_long
    }
}

/// A packet between its entry and its arrival.
#[derive(Debug)]
struct Underway {
    arrival: Due,
    /// When its last bit leaves.
    departure: Instant,
    packet: Handle,
}

/// One direction of a link.
///
/// Everything about a packet's passage is known when it enters, so a hop costs one event: its
/// arrival. Nothing is done at departure; the queue's length is brought up to date when the next
/// packet asks for it.
#[derive(Debug)]
pub(crate) struct Link {
    spec: LinkSpec,
    limit: QueueLimit,
    /// Nanoseconds a byte takes, times 2^32.
    byte_time: u64,
    delay_ns: u64,
    /// True if a packet's passage needs a draw beyond loss.
    is_irregular: bool,
    is_down: bool,
    may_lose: bool,
    /// The loss model's bad state.
    is_bad: bool,
    counted: lost::Counted,
    loss_range: LossRange,
    red: Option<RedState>,
    /// The packet that enters may be marked instead of dropped.
    admits_ect: bool,
    /// It was.
    has_marked: bool,
    policer: Option<Bucket>,
    pauses: Option<PausesNs>,
    /// When the last packet's last bit leaves.
    busy_until: Instant,
    /// By time of arrival.
    underway: VecDeque<Underway>,
    /// Departure and size of the packets that had not left at the last look.
    backlog: VecDeque<(Instant, u32)>,
    backlog_bytes: usize,
    rng: Rng,
    stats: LinkStats,
}

impl Link {
    pub(crate) fn new(spec: LinkSpec, default_queue: QueueLimit, rng: Rng) -> Link {
        let mut link = Link {
            limit: spec.queue.unwrap_or(default_queue),
            byte_time: 0,
            delay_ns: 0,
            is_irregular: false,
            is_down: false,
            may_lose: false,
            is_bad: false,
            counted: lost::Counted::default(),
            loss_range: LossRange::ANY,
            red: spec.red.map(RedState::new),
            admits_ect: false,
            has_marked: false,
            policer: spec.policer.map(Bucket::new),
            pauses: spec.pauses.map(PausesNs::from),
            busy_until: Instant::ZERO,
            underway: VecDeque::new(),
            backlog: VecDeque::new(),
            backlog_bytes: 0,
            rng,
            stats: LinkStats::default(),
            spec,
        };
        link.update_derived();
        link.loss_range = match link.spec.loss {
            Loss::Bernoulli(_) if link.spec.loss.is_possible() => LossRange::DRAWN,
            _ => LossRange::OWN,
        };
        link
    }

    pub(crate) fn spec(&self) -> &LinkSpec {
        &self.spec
    }

    pub(crate) fn is_down(&self) -> bool {
        self.is_down
    }

    pub(crate) fn stats(&self) -> LinkStats {
        self.stats
    }

    /// The loss rates that would have lost the same packets so far.
    pub(crate) fn loss_range(&self) -> LossRange {
        if self.stats.offered() == 0 { LossRange::ANY } else { self.loss_range }
    }

    /// When the next packet arrives at the far end.
    pub(crate) fn next_arrival(&self) -> Option<Due> {
        self.underway.front().map(|head| head.arrival)
    }

    /// The packets that arrive until then, the first first.
    pub(crate) fn arriving_until(&self, limit: Instant) -> impl Iterator<Item = Handle> {
        let arriving = self.underway.iter().take_while(move |head| head.arrival.at() <= limit);
        arriving.map(|head| head.packet)
    }

    /// Takes the packet that arrives next.
    pub(crate) fn pop(&mut self) -> Option<Handle> {
        self.underway.pop_front().map(|head| head.packet)
    }

    /// True if packets leave in the order in which they enter, each once, whatever their length.
    pub(crate) fn is_regular(&self) -> bool {
        !self.is_irregular && self.spec.mtu.is_none() && !self.spec.red.is_some_and(|red| red.marks)
    }

    /// Lets a packet in at `at`, and says when it arrives, or why not. It may be a time to come, if
    /// nothing else enters before; then [`put`](Self::put) follows on the last link of its way.
    #[inline]
    pub(crate) fn cross(&mut self, at: Instant, size: u32) -> Result<Instant, DropCause> {
        self.admit(at, size).map(|departure| later(departure, self.delay_ns))
    }

    /// Puts a packet at the far end, where it arrives at that time and after all others.
    #[inline]
    pub(crate) fn put(&mut self, arrival: Due, packet: Handle) {
        self.underway.push_back(Underway { arrival, departure: arrival.at(), packet });
    }

    /// Lets a packet in, or says why not; then the caller forgets it.
    pub(crate) fn accept(
        &mut self,
        now: Instant,
        packet: Handle,
        packets: &mut Packets,
        plans: &mut SlotQueue,
    ) -> Result<(), DropCause> {
        let Packet { size, may_fragment, is_ect, .. } = *packets.get(packet);
        self.admits_ect = is_ect;
        let departure = match self.spec.mtu {
            Some(mtu) if size > mtu => self.admit_long(now, size, mtu, may_fragment)?,
            _ => self.admit(now, size)?,
        };
        if std::mem::take(&mut self.has_marked) {
            self.stats.marked += 1;
            packets.get_mut(packet).has_ce = true;
        }
        let arrival = later(departure, self.delay_ns);
        if self.is_irregular {
            self.launch_irregular(departure, arrival, packet, packets, plans);
        } else {
            let arrival = plans.plan(arrival);
            self.insert(Underway { arrival, departure, packet });
        }
        Ok(())
    }

    /// Lets in a packet whose arrival nobody waits for, or says why not. It takes its turn and its
    /// time to be sent like any other.
    pub(crate) fn accept_blank(&mut self, now: Instant, size: u32) -> Result<(), DropCause> {
        self.admits_ect = false;
        self.admit(now, size).map(drop)
    }

    /// A packet longer than the link's: its fragments enter one behind the other, and one that is
    /// lost takes the packet with it.
    #[cold]
    fn admit_long(
        &mut self,
        now: Instant,
        size: u32,
        mtu: u32,
        may_fragment: bool,
    ) -> Result<Instant, DropCause> {
        if !may_fragment && !self.is_down {
            self.stats.too_long += 1;
            return Err(DropCause::TooLong);
        }
        let most = (mtu.saturating_sub(IP_HEADER) & !7).max(8);
        let mut left = size.saturating_sub(IP_HEADER);
        self.stats.fragmented += 1;
        loop {
            let piece = left.min(most);
            left -= piece;
            let departure = self.admit(now, IP_HEADER + piece)?;
            if left == 0 {
                return Ok(departure);
            }
        }
    }

    /// Drops a packet or puts it in the queue; returns when its last bit leaves.
    #[inline(always)] // a packet asks every link of its way
    fn admit(&mut self, now: Instant, size: u32) -> Result<Instant, DropCause> {
        if self.is_down {
            self.stats.cut += 1;
            return Err(DropCause::Cut);
        }
        if self.may_lose && self.is_lost() {
            self.stats.lost += 1;
            return Err(DropCause::Loss);
        }
        if self.policer.is_some() && !self.is_conforming(now, size) {
            self.stats.policed += 1;
            return Err(DropCause::Policed);
        }
        self.forget_departed(now);
        if self.red.is_some() && self.is_dropped_early(now) {
            self.stats.early += 1;
            return Err(DropCause::Early);
        }
        let is_full = match self.limit {
            QueueLimit::Packets(limit) => self.backlog.len() >= limit,
            QueueLimit::Bytes(limit) => self.backlog_bytes + size as usize > limit,
            QueueLimit::Unlimited => false,
        };
        if is_full {
            self.stats.overflowed += 1;
            if let Some(red) = &mut self.red {
                red.on_drop();
            }
            return Err(DropCause::QueueFull);
        }
        let sending = self.sending_ns(size);
        let departure = self.departure(self.busy_until.max(now), sending);
        self.busy_until = departure;
        self.backlog.push_back((departure, size));
        self.backlog_bytes += size as usize;
        self.stats.packets += 1;
        self.stats.bytes += u64::from(size);
        self.stats.busy_ns += sending;
        self.stats.longest_queue = self.stats.longest_queue.max(self.backlog.len());
        Ok(departure)
    }

    #[inline(never)] // what most links do must stay small
    fn is_lost(&mut self) -> bool {
        if self.spec.lost.is_possible() && self.counted.loses(&self.spec.lost) {
            return true;
        }
        match self.spec.loss {
            Loss::Bernoulli(loss) => {
                let draw = self.rng.unit();
                let is_lost = draw < loss;
                self.loss_range.note(draw, is_lost);
                is_lost
            }
            Loss::GilbertElliott(model) => {
                let leave = if self.is_bad { model.to_good } else { model.to_bad };
                self.is_bad ^= self.rng.chance(leave);
                let loss = if self.is_bad { model.loss_in_bad } else { model.loss_in_good };
                self.rng.chance(loss)
            }
        }
    }

    #[inline(never)]
    fn is_conforming(&mut self, now: Instant, size: u32) -> bool {
        self.policer.as_mut().is_none_or(|policer| policer.admits(now, size))
    }

    /// The departure of a packet whose sending may begin at `from` and takes `sending` nanoseconds.
    #[inline]
    fn departure(&self, from: Instant, sending: u64) -> Instant {
        match self.pauses {
            Some(pauses) => pauses.send(from, sending),
            None => later(from, sending),
        }
    }

    #[inline(never)]
    fn is_dropped_early(&mut self, now: Instant) -> bool {
        let Some(red) = &mut self.red else { return false };
        if self.backlog.is_empty() {
            let idle_ns = now.saturating_since(self.busy_until).as_nanos();
            let packet_ns = (u128::from(self.byte_time) * u128::from(red.mean_packet())) >> 32;
            let missed = idle_ns.checked_div(packet_ns).unwrap_or(u128::MAX);
            red.idle(u64::try_from(missed).unwrap_or(u64::MAX));
        }
        let is_chosen = red.drops(self.backlog.len(), &mut self.rng);
        self.has_marked = is_chosen && self.admits_ect && red.may_mark();
        is_chosen && !self.has_marked
    }

    /// Changes the link from `now` on.
    pub(crate) fn change(&mut self, now: Instant, change: &LinkChange) {
        let old_delay = self.spec.delay;
        match *change {
            LinkChange::Cut => self.is_down = true,
            LinkChange::Restore => self.is_down = false,
            LinkChange::Rate(rate) => self.spec.rate = rate,
            LinkChange::Delay(delay) => self.spec.delay = delay,
            LinkChange::Loss(loss) => {
                (self.spec.loss, self.is_bad) = (loss, false);
                self.loss_range = LossRange::OWN;
            }
            LinkChange::Duplicate(duplicate) => self.spec.duplicate = duplicate,
            LinkChange::Reorder(reorder, by) => {
                (self.spec.reorder, self.spec.reorder_by) = (reorder, by);
            }
            LinkChange::Jitter(jitter) => self.spec.jitter = jitter,
            LinkChange::Corrupt(corrupt) => self.spec.corrupt = corrupt,
            LinkChange::Mtu(mtu) => self.spec.mtu = mtu,
        }
        self.update_derived();
        if matches!(change, LinkChange::Rate(_) | LinkChange::Delay(_)) {
            self.reschedule(now, old_delay);
        }
    }

    /// Applies a new rate to what waits and a new delay to what has not left. The packet that is
    /// being sent keeps its departure.
    fn reschedule(&mut self, now: Instant, old_delay: Duration) {
        self.forget_departed(now);
        let mut moves: Vec<(Instant, Instant)> = Vec::with_capacity(self.backlog.len());
        for i in 0..self.backlog.len() {
            let (old, size) = self.backlog[i];
            let new = match moves.last() {
                None => old,
                Some(&(_, before)) => self.departure(before, self.sending_ns(size)),
            };
            self.backlog[i].0 = new;
            moves.push((old, new));
        }
        let Some(&(_, last)) = moves.last() else { return };
        self.busy_until = last;
        for packet in self.underway.iter_mut().filter(|packet| packet.departure > now) {
            let extra = packet.arrival.at() - (packet.departure + old_delay);
            let index = moves.partition_point(|&(old, _)| old < packet.departure);
            packet.departure = moves[index].1;
            packet.arrival = packet.arrival.moved_to(packet.departure + self.spec.delay + extra);
        }
        self.underway.make_contiguous().sort_by_key(|packet| packet.arrival);
    }

    fn update_derived(&mut self) {
        let spec = &self.spec;
        self.byte_time = spec.rate.byte_time();
        self.delay_ns = u64::try_from(spec.delay.as_nanos()).unwrap_or(u64::MAX);
        self.may_lose = spec.loss.is_possible() || spec.lost.is_possible();
        self.is_irregular = spec.duplicate > 0.0
            || spec.reorder > 0.0
            || spec.jitter > Duration::ZERO
            || spec.corrupt > 0.0;
    }

    fn sending_ns(&self, size: u32) -> u64 {
        scaled(self.byte_time, size)
    }

    #[inline]
    fn forget_departed(&mut self, now: Instant) {
        if self.busy_until <= now {
            self.backlog.clear();
            self.backlog_bytes = 0;
            return;
        }
        while let Some(&(departure, size)) = self.backlog.front() {
            if departure > now {
                break;
            }
            self.backlog_bytes -= size as usize;
            self.backlog.pop_front();
        }
    }

    fn launch_irregular(
        &mut self,
        departure: Instant,
        mut arrival: Instant,
        packet: Handle,
        packets: &mut Packets,
        plans: &mut SlotQueue,
    ) {
        if self.spec.jitter > Duration::ZERO {
            arrival += Duration::from_nanos(self.rng.below(self.spec.jitter.as_nanos() as u64 + 1));
        }
        if self.rng.chance(self.spec.reorder) {
            arrival += self.spec.reorder_by;
        }
        if self.rng.chance(self.spec.corrupt) {
            self.stats.corrupted += 1;
            packets.damage(packet, &mut self.rng);
        }
        if self.rng.chance(self.spec.duplicate) {
            self.stats.duplicated += 1;
            let (arrival, packet) = (plans.plan(arrival), packets.copy(packet));
            self.insert(Underway { arrival, departure, packet });
        }
        let arrival = plans.plan(arrival);
        self.insert(Underway { arrival, departure, packet });
    }

    /// Keeps `underway` in the order of arrival.
    #[inline(always)] // else what is put in the queue is written to the stack first
    fn insert(&mut self, new: Underway) {
        if self.underway.back().is_none_or(|last| last.arrival < new.arrival) {
            self.underway.push_back(new);
        } else {
            let index = self.underway.partition_point(|other| other.arrival < new.arrival);
            self.underway.insert(index, new);
        }
    }
}

/// The nanoseconds that a number of bytes takes. `byte_time` is that of a byte, times 2^32.
#[inline]
fn scaled(byte_time: u64, bytes: u32) -> u64 {
    let nanos = (u128::from(byte_time) * u128::from(bytes)) >> 32;
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

/// `at` plus nanoseconds; the hot path's way round `Duration`, which divides by 10^9.
#[inline]
fn later(at: Instant, nanos: u64) -> Instant {
    Instant::from_nanos(at.as_nanos().saturating_add(nanos))
}
