//! The rate of a bottleneck over time.

use serde::Serialize;

use crate::curve::Curve;
use crate::outage::Outage;
use crate::segment::{median, pieces, quantile};

/// The shortest window in which a rate is measured, in seconds, and how many round-trip times it
/// has at least.
const WINDOW_S: f64 = 0.1;
const WINDOW_ROUND_TRIPS: f64 = 2.0;
/// The shortest time over which a rate shows what an unfilled link can carry, in seconds; a
/// round-trip time if that is longer.
const BRIEF_S: f64 = 0.05;
/// Windows at most.
const WINDOWS: f64 = 1000.0;
/// A piece is at least as long, in seconds.
const PIECE_S: f64 = 0.4;
/// How long a sender needs to fill a link again after an outage, in seconds.
const REFILL_S: f64 = 1.0;
/// Levels whose ratio is smaller count as one.
const SAME: f64 = 1.08;
/// The largest ratio of a window's rate to the median of its level, except for some windows at the
/// ends of a level.
const USUAL: f64 = 1.2;
/// SACKs cover several packets, which makes rates of windows uncertain by this ratio.
const NOISE: f64 = 0.02;
/// A queue counts as filled from this delay on, in seconds, or this part of the round-trip time.
const FILLED_S: f64 = 0.0015;
const FILLED_ROUND_TRIPS: f64 = 0.05;
/// And this part of the longest delay.
const FILLED_LONGEST: f64 = 0.1;
/// Without an acknowledgement for so long, in seconds or in windows, it may have run empty.
const GAP_S: f64 = 0.05;
const GAP_WINDOWS: f64 = 0.25;
/// And the time that this number of packets takes: a burst waits for itself on an idle link.
const BURST: f64 = 5.0;

/// The rate of a link from some time on.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct RatePiece {
    /// When it begins, in seconds since the transfer began.
    pub from_s: f64,
    /// Bits of IP packets per second.
    pub bps: f64,
}

/// The rate of a link over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rates {
    /// In the order of time; the first begins at 0.
    pub pieces: Vec<RatePiece>,
    /// The transfer never filled the link: it may be faster.
    pub is_lower_bound: bool,
}

impl Rates {
    /// The rate at a time, in bits per second.
    pub fn at(&self, time_s: f64) -> f64 {
        let piece = self.pieces.iter().rev().find(|piece| piece.from_s <= time_s);
        piece.or(self.pieces.first()).map_or(0.0, |piece| piece.bps)
    }

    /// The lowest and the highest.
    pub fn range(&self) -> (f64, f64) {
        let rates = || self.pieces.iter().map(|piece| piece.bps);
        (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max))
    }
}

/// The traffic and the queue of a path over time.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// Bits of IP packets that arrived.
    pub(crate) bits: Curve,
    /// The delay that queues added to the round-trip time, in seconds, by time.
    pub(crate) queueing: Vec<(f64, f64)>,
    /// By how much round-trip times exceeded the shortest, in seconds, by time: queues, and SACKs
    /// that came on slower paths.
    pub(crate) late: Vec<(f64, f64)>,
    pub(crate) outages: Vec<Outage>,
    /// Times in which it is unclear what arrived where, as paths carried copies, in order.
    pub(crate) unclear: Vec<(f64, f64)>,
    /// The round-trip time without queues.
    pub(crate) base: f64,
    /// Nearly the longest of these delays.
    pub(crate) longest: f64,
}

impl Load {
    /// A path whose SACKs came on itself.
    pub(crate) fn new(
        bits: Curve,
        queueing: Vec<(f64, f64)>,
        outages: Vec<Outage>,
        unclear: Vec<(f64, f64)>,
        base: f64,
    ) -> Load {
        let longest =
            quantile(&mut queueing.iter().map(|(_, delay)| *delay).collect::<Vec<_>>(), 0.98);
        Load { bits, late: queueing.clone(), queueing, outages, unclear, base, longest }
    }

    /// Queueing delays in a window.
    pub(crate) fn delays(&self, from: f64, to: f64) -> impl Iterator<Item = f64> + '_ {
        let begin = self.queueing.partition_point(|(at, _)| *at < from);
        let inside = self.queueing[begin..].iter().take_while(move |(at, _)| *at < to);
        inside.map(|(_, delay)| *delay)
    }

    /// By how much acknowledgements before or after a time were late.
    fn late_at(&self, time: f64) -> f64 {
        let next = self.late.partition_point(|(at, _)| *at < time);
        let beside = [next.checked_sub(1), Some(next)].into_iter().flatten();
        beside.filter_map(|n| self.late.get(n)).map(|(_, delay)| *delay).fold(0.0, f64::max)
    }

    /// The bits of a window that a link without a queue carried: fewer than are
    /// acknowledged in it where acknowledgements were late and then came at once.
    fn carried(&self, from: f64, to: f64) -> f64 {
        let sent = self.bits.grown(from + self.late_at(from), to + self.late_at(to));
        sent.min(self.bits.grown(from, to))
    }

    /// The path was out, or what came was what had waited for its return.
    pub(crate) fn is_out(&self, from: f64, to: f64) -> bool {
        self.outages.iter().any(|outage| outage.touches(from, to, self.base))
    }

    /// The queue was never empty.
    fn is_filled(&self, from: f64, to: f64, packet_s: f64) -> bool {
        let least = FILLED_S.max(FILLED_ROUND_TRIPS * self.base).max(packet_s);
        let least = least.max(FILLED_LONGEST * self.longest);
        let gap = GAP_S.max(GAP_WINDOWS * (to - from));
        let begin = self.queueing.partition_point(|(at, _)| *at < from);
        let mut last = from;
        for (at, delay) in self.queueing[begin..].iter().take_while(|(at, _)| *at < to) {
            if *delay <= least || at - last > gap {
                return false;
            }
            last = *at;
        }
        let is_back = || !self.outages.iter().any(|o| o.touches(from, to, REFILL_S + self.base));
        to - last <= gap && !self.is_unclear(from, to) && is_back()
    }

    /// Some of the time is unclear.
    pub(crate) fn is_unclear(&self, from: f64, to: f64) -> bool {
        let begin = self.unclear.partition_point(|(_, end)| *end <= from);
        self.unclear.get(begin).is_some_and(|(begin, _)| *begin < to)
    }
}

/// The rate in a window.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Window {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) bps: f64,
    pub(crate) is_filled: bool,
    pub(crate) is_out: bool,
    pub(crate) is_unclear: bool,
}

/// The width of windows for paths of that round-trip time, in a transfer that long.
pub(crate) fn width(base: f64, until: f64) -> f64 {
    WINDOW_S.max(WINDOW_ROUND_TRIPS * base).max(until / WINDOWS)
}

/// The windows of a link that these paths share. `packet_s` is the time that a packet takes.
pub(crate) fn windows(loads: &[&Load], width: f64, until: f64, packet_s: f64) -> Vec<Window> {
    let count = (until / width).floor() as usize;
    let window = |n: usize| {
        let (from, to) = (n as f64 * width, (n + 1) as f64 * width);
        let bits: f64 = loads.iter().map(|load| load.bits.grown(from, to)).sum();
        Window {
            from,
            to,
            bps: bits / width,
            is_filled: loads.iter().any(|load| load.is_filled(from, to, packet_s)),
            is_out: loads.iter().all(|load| load.is_out(from, to)),
            is_unclear: loads.iter().any(|load| load.is_unclear(from, to)),
        }
    };
    (0..count).map(window).collect()
}

/// A level of the rate: windows that show it.
#[derive(Clone, Debug)]
struct Level {
    first: Window,
    last: Window,
    bits: f64,
    seconds: f64,
}

impl Level {
    fn of(windows: &[Window]) -> Level {
        let middle = median(&mut windows.iter().map(|w| w.bps).collect::<Vec<_>>());
        // Without those of a change, which have some of both levels.
        let mut those = windows.iter().filter(|w| is_same_by(USUAL, w.bps, middle));
        let first = *those.next().unwrap_or(&windows[0]);
        let mut level = Level { first, last: first, bits: 0.0, seconds: 0.0 };
        for window in [&first].into_iter().chain(those) {
            level.last = *window;
            level.bits += window.bps * (window.to - window.from);
            level.seconds += window.to - window.from;
        }
        level
    }

    fn bps(&self) -> f64 {
        self.bits / self.seconds
    }
}

/// The rates of a link that these paths share, over a transfer that long. `packet_bits` is the
/// length of a full packet.
///
/// While the queue is filled, what arrives is the rate. What arrives otherwise is a lower bound.
pub(crate) fn rates(loads: &[&Load], until: f64, packet_bits: f64) -> Rates {
    let base = loads.iter().map(|load| load.base).fold(0.0, f64::max);
    let width = width(base, until);
    let carried = |width: f64, share: f64, bits: fn(&Load, f64, f64) -> f64| {
        let mut rates: Vec<f64> = (0..(until / width).floor() as usize)
            .map(|n| (n as f64 * width, (n + 1) as f64 * width))
            .filter(|&(from, to)| !loads.iter().all(|load| load.is_out(from, to)))
            .map(|(from, to)| loads.iter().map(|load| bits(load, from, to)).sum::<f64>() / width)
            .collect();
        quantile(&mut rates, share).max(1000.0)
    };
    let most = carried(width, 0.95, |load, from, to| load.bits.grown(from, to));
    let all = windows(loads, width, until, BURST * packet_bits / most);
    let filled: Vec<Window> = all.iter().filter(|w| w.is_filled).copied().collect();
    if filled.len() < 3 {
        let most = carried(base.max(BRIEF_S), 0.98, Load::carried);
        let pieces = vec![RatePiece { from_s: 0.0, bps: most }];
        return Rates { pieces, is_lower_bound: true };
    }
    let shortest = (PIECE_S / width).ceil().max(3.0) as usize;
    let mut rates = fitted(loads, &all, &filled, shortest, base);
    // Windows that were not filled and yet carried more, two or more in a row, show that the link
    // was faster by then.
    let is_above =
        |w: &Window| !w.is_filled && !w.is_out && !w.is_unclear && w.bps > SAME * rates.at(w.from);
    let counts = |n: usize| {
        let beside = [n.checked_sub(1), Some(n + 1)].into_iter().flatten();
        is_above(&all[n]) && beside.filter_map(|n| all.get(n)).any(is_above)
    };
    let is_seen = |n: &usize| all[*n].is_filled || counts(*n);
    let more: Vec<Window> = (0..all.len()).filter(is_seen).map(|n| all[n]).collect();
    if more.len() > filled.len() {
        rates = fitted(loads, &all, &more, shortest, base);
    }
    rates
}

/// The rates that the windows in `seen` show.
fn fitted(loads: &[&Load], all: &[Window], seen: &[Window], shortest: usize, base: f64) -> Rates {
    let values: Vec<f64> = seen.iter().map(|w| w.bps.max(1.0).ln()).collect();
    let mut levels: Vec<Level> = Vec::new();
    for range in pieces(&values, shortest, NOISE) {
        let level = Level::of(&seen[range]);
        match levels.last_mut() {
            Some(last) if is_same(last.bps(), level.bps()) => {
                last.last = level.last;
                last.bits += level.bits;
                last.seconds += level.seconds;
            }
            _ => levels.push(level),
        }
    }
    let mut found: Vec<RatePiece> = Vec::new();
    for (n, level) in levels.iter().enumerate() {
        let from_s = match n.checked_sub(1).map(|before| &levels[before]) {
            None => 0.0,
            // What is acknowledged passed the bottleneck half a round trip earlier.
            Some(before) => (changed(loads, all, before, level) - base / 2.0).max(0.0),
        };
        let from_s = found.last().map_or(from_s, |last| from_s.max(last.from_s + 1e-3));
        found.push(RatePiece { from_s, bps: level.bps() });
    }
    Rates { pieces: found, is_lower_bound: false }
}

fn is_same(a: f64, b: f64) -> bool {
    is_same_by(SAME, a, b)
}

fn is_same_by(ratio: f64, a: f64, b: f64) -> bool {
    a.max(b) <= ratio * a.min(b)
}

/// When the rate went from one level to the next.
fn changed(loads: &[&Load], all: &[Window], before: &Level, after: &Level) -> f64 {
    let (slow, fast) = (before.bps(), after.bps());
    let (a, b) = (before.last, after.first);
    let width = a.to - a.from;
    let is_lossless = !all.iter().any(|w| w.is_out && w.from >= a.to && w.to <= b.from);
    if b.from - a.to < 0.5 * width || (fast < slow && is_lossless) {
        // One follows the other, or the queue grew in between: the link was always busy, and the
        // amount that arrived says how long each rate lasted.
        let bits: f64 = loads.iter().map(|load| load.bits.grown(a.from, b.to)).sum();
        let at = (bits - fast * b.to + slow * a.from) / (slow - fast);
        return at.clamp(a.from, b.to);
    }
    let between = || all.iter().filter(|w| w.from >= a.to && w.to <= b.from && !w.is_out);
    if fast > slow {
        // The queue ran empty, or something came faster than before.
        between().find(|w| w.bps > SAME * slow).map_or(a.to, |w| w.from)
    } else {
        let last = between().rfind(|w| w.bps > SAME * fast);
        last.map_or(a.to.midpoint(b.from), |w| w.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::Step;

    const PACKET: f64 = 12_000.0;

    /// A path whose acknowledgements come as these rates in bit/s say, each for that many seconds,
    /// with that queueing delay.
    fn load(pieces: &[(f64, f64, f64)]) -> Load {
        let (mut steps, mut queueing, mut at) = (Vec::new(), Vec::new(), 0.0);
        for (bps, seconds, delay) in pieces {
            for _ in 0..(seconds / 0.01_f64).round() as usize {
                let acked = (bps * 0.01) as u64;
                steps.push(Step { from: at, to: at + 0.01, acked, ..Step::default() });
                queueing.push((at + 0.005, *delay));
                at += 0.01;
            }
        }
        let bits = Curve::new(&steps, |step| step.acked as f64);
        Load::new(bits, queueing, Vec::new(), Vec::new(), 0.04)
    }

    fn found(load: &Load, until: f64) -> Rates {
        rates(&[load], until, PACKET)
    }

    #[test]
    fn a_filled_link_shows_its_rate_and_when_it_changes() {
        let rates = found(&load(&[(20e6, 2.03, 0.02), (5e6, 3.0, 0.05), (40e6, 1.0, 0.01)]), 6.0);
        assert_eq!(rates.pieces.len(), 3, "{rates:?}");
        for (piece, (from, bps)) in
            rates.pieces.iter().zip([(0.0, 20e6), (2.01, 5e6), (5.01, 40e6)])
        {
            assert!((piece.bps / bps - 1.0).abs() < 0.02, "{rates:?}");
            assert!((piece.from_s - from).abs() < 0.03, "{rates:?}");
        }
        assert!(!rates.is_lower_bound);
    }

    #[test]
    fn a_link_that_is_never_filled_has_a_lower_bound() {
        let rates = found(&load(&[(3e6, 2.0, 0.0), (4e6, 2.0, 0.0)]), 4.0);
        assert!(rates.is_lower_bound);
        assert_eq!(rates.pieces.len(), 1);
        assert!((rates.pieces[0].bps / 4e6 - 1.0).abs() < 0.02, "{rates:?}");
    }

    #[test]
    fn acknowledgements_that_were_held_up_do_not_make_an_unfilled_link_faster() {
        // Now and then, acknowledgements of 40 ms come at once.
        let mut pieces = Vec::new();
        for _ in 0..20 {
            pieces.extend([(20e6, 0.16, 0.0), (0.0, 0.04, 0.04), (100e6, 0.01, 0.04)]);
        }
        let rates = found(&load(&pieces), 4.0);
        assert!(rates.is_lower_bound);
        assert!((rates.pieces[0].bps / 20e6 - 1.0).abs() < 0.05, "{rates:?}");
    }

    #[test]
    fn a_sender_that_slows_down_does_not_slow_the_link() {
        let rates = found(&load(&[(20e6, 2.0, 0.02), (5e6, 2.0, 0.0), (20e6, 2.0, 0.02)]), 6.0);
        assert_eq!(rates.pieces.len(), 1, "{rates:?}");
    }

    #[test]
    fn an_empty_queue_behind_more_than_before_is_a_faster_link() {
        let rates = found(&load(&[(5e6, 2.0, 0.02), (18e6, 3.0, 0.0)]), 5.0);
        assert_eq!(rates.pieces.len(), 2, "{rates:?}");
        assert!((rates.pieces[1].from_s - 1.98).abs() < 0.1, "{rates:?}");
    }
}
