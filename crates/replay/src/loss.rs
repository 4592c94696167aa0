//! Losses: those of a full queue, and those beyond.

use serde::Serialize;

use crate::curve::{Curve, Step};
use crate::rate::{Load, Rates};

/// A queue with this part of its largest length counts as nearly full.
const NEARLY_FULL: f64 = 0.7;
/// Losses are those of a full queue if they are more frequent by this factor when it is nearly
/// full.
const MORE_FREQUENT: f64 = 3.0;
/// Twice the logarithm of the ratio of likelihoods from which on two times have two ratios of loss:
/// 1 in 10,000 by chance.
const EVIDENCE: f64 = 15.0;
/// A piece has at least this number of chunks and this length, in seconds.
const PIECE_CHUNKS: u64 = 200;
const PIECE_S: f64 = 0.5;
/// Losses that are listed one by one, at most. Of more the ratio says enough.
const MOST_NUMBERS: u64 = 2000;
/// Pieces at most, by halvings.
const HALVINGS: u32 = 5;

/// The ratio of random losses from some time on.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct LossPiece {
    /// When it begins, in seconds since the transfer began.
    pub from_s: f64,
    /// Packets lost of those sent, 0 to 1.
    pub ratio: f64,
}

/// The losses of a path, and its queue as they show it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Losses {
    /// Random losses, in the order of time.
    pub(crate) random: Vec<LossPiece>,
    /// Chunks lost at random, and by a full queue.
    pub(crate) counts: (u64, u64),
    /// The longest queue, in bytes.
    pub(crate) longest_queue: f64,
    /// True if a full queue has lost packets.
    pub(crate) is_full: bool,
    /// Numbers of the packets lost at random, of how many; `None` if there were too many for that.
    pub(crate) numbers: Option<(Vec<u64>, u64)>,
}

/// The losses of a path whose link has these rates, in a transfer that ended then.
pub(crate) fn losses(steps: &[Step], load: &Load, rates: &Rates, until: f64) -> Losses {
    let queue: Vec<(f64, f64)> =
        load.queueing.iter().map(|(at, delay)| (*at, waiting(*at, *delay, load, rates))).collect();
    // A single sample may be one that a busy machine delayed.
    let longest_queue = queue.windows(2).map(|w| w[0].1.min(w[1].1)).fold(0.0, f64::max);
    let longest = |from: f64, to: f64| {
        let begin = queue.partition_point(|(at, _)| *at < from);
        let those = queue[begin..].iter().take_while(|(at, _)| *at <= to);
        those.map(|(_, bytes)| *bytes).fold(0.0, f64::max)
    };
    // From when the chunks that are lost now were sent, until now.
    let recent = |step: &Step| {
        let since = step.from - 1.5 * load.base - 0.02;
        let waits = longest(since, step.to) * 8.0 / rates.at(step.from).max(1.0);
        longest(since - waits, step.to)
    };
    let counted: Vec<Count> = steps
        .iter()
        .filter(|step| step.to <= until && !load.is_unclear(step.from, step.to))
        .filter(|step| {
            let margin = 2.0 * load.base + 0.2;
            !load.outages.iter().any(|outage| outage.touches(step.from, step.to, margin))
        })
        .map(|step| Count {
            at: step.at(),
            sent: step.chunks_sent,
            // A timeout takes all in flight for lost; one packet at least was.
            lost: if step.timeouts > 0 { step.lost.min(1) } else { step.lost },
            is_full: longest_queue > 0.0 && recent(step) >= NEARLY_FULL * longest_queue,
        })
        .collect();
    let sum = |is_full: bool| {
        let those = counted.iter().filter(|count| count.is_full == is_full);
        those.fold((0, 0), |(sent, lost), count| (sent + count.sent, lost + count.lost))
    };
    let ratio = |(sent, lost): (u64, u64)| lost as f64 / sent.max(1) as f64;
    let (at_full, otherwise) = (sum(true), sum(false));
    let is_full = at_full.1 > 0 && ratio(at_full) > MORE_FREQUENT * ratio(otherwise);
    let low: Vec<Count> = counted.into_iter().filter(|count| !(is_full && count.is_full)).collect();
    let mut random = Vec::new();
    split(&low, HALVINGS, &mut random);
    // A loss is noticed a round trip later.
    for piece in &mut random {
        piece.from_s = (piece.from_s - load.base).max(0.0);
    }
    if let Some(first) = random.first_mut() {
        first.from_s = 0.0;
    }
    let at_random = low.iter().map(|count| count.lost).sum();
    let counts = (at_random, if is_full { at_full.1 } else { 0 });
    let numbers = numbers(&low, steps, load);
    Losses { random, counts, longest_queue, is_full, numbers }
}

/// Numbers of the packets that were lost at random, of all that were sent while the path was not
/// out. Those of a step are taken as spread evenly over what was sent a round trip earlier.
fn numbers(lossy: &[Count], steps: &[Step], load: &Load) -> Option<(Vec<u64>, u64)> {
    let total: u64 = lossy.iter().map(|count| count.lost).sum();
    if total == 0 || total > MOST_NUMBERS {
        return None;
    }
    let is_out = |step: &Step| load.outages.iter().any(|o| o.touches(step.from, step.to, 0.0));
    let sent = Curve::new(steps, |step| if is_out(step) { 0.0 } else { step.packets_sent as f64 });
    let mut delays = load.queueing.iter().peekable();
    let (mut delay, mut last, mut numbers) = (0.0, 0, Vec::new());
    for count in lossy {
        while let Some((_, now)) = delays.next_if(|(at, _)| *at <= count.at) {
            delay = *now;
        }
        let sent_at = count.at - load.base - delay;
        let around = (sent.at(sent_at) - count.lost as f64 / 2.0).round().max(0.0) as u64;
        for n in 0..count.lost {
            last = (around + n).max(last) + 1;
            numbers.push(last);
        }
    }
    let all = sent.at(f64::INFINITY) as u64;
    Some((numbers, all.max(last)))
}

/// Bytes that were in a queue, by the delay that an acknowledgement at some time showed. The rate
/// may have changed since.
fn waiting(at: f64, delay: f64, load: &Load, rates: &Rates) -> f64 {
    let began = at - delay - load.base;
    let later = rates.pieces.iter().filter(|piece| (began..=at).contains(&piece.from_s));
    let least = later.map(|piece| piece.bps).fold(rates.at(began), f64::min);
    delay * least / 8.0
}

/// Chunks sent and lost about some time.
#[derive(Copy, Clone, Debug)]
struct Count {
    at: f64,
    sent: u64,
    lost: u64,
    /// The queue was nearly full.
    is_full: bool,
}

/// Splits where the ratio changes, as long as that is certain.
fn split(counts: &[Count], halvings: u32, pieces: &mut Vec<LossPiece>) {
    let (sent, lost) = counts.iter().fold((0, 0), |(s, l), c| (s + c.sent, l + c.lost));
    if sent == 0 {
        return;
    }
    let Some((first, last)) = counts.first().zip(counts.last()) else { return };
    let mut best = (EVIDENCE, None);
    let (mut left_sent, mut left_lost) = (0, 0);
    if halvings > 0 {
        for (n, count) in counts.iter().enumerate().skip(1) {
            left_sent += counts[n - 1].sent;
            left_lost += counts[n - 1].lost;
            let parts =
                likelihood(left_lost, left_sent) + likelihood(lost - left_lost, sent - left_sent);
            let evidence = 2.0 * (parts - likelihood(lost, sent));
            let is_long = left_sent.min(sent - left_sent) >= PIECE_CHUNKS
                && count.at - first.at >= PIECE_S
                && last.at - count.at >= PIECE_S;
            if is_long && evidence > best.0 {
                best = (evidence, Some(n));
            }
        }
    }
    match best.1 {
        Some(at) => {
            split(&counts[..at], halvings - 1, pieces);
            split(&counts[at..], halvings - 1, pieces);
        }
        None => {
            pieces.push(LossPiece { from_s: first.at, ratio: (lost as f64 / sent as f64).min(1.0) })
        }
    }
}

/// The logarithm of the likelihood of these losses at their most likely ratio (Poisson), without
/// what is equal for all ratios.
fn likelihood(lost: u64, sent: u64) -> f64 {
    match lost {
        0 => 0.0,
        _ => lost as f64 * ((lost as f64 / sent.max(1) as f64).ln() - 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::RatePiece;

    /// Ten seconds of 10 chunks each 10 ms, with these losses.
    fn steps(lost: impl Fn(usize) -> u64) -> Vec<Step> {
        let step = |n: usize| Step {
            from: n as f64 * 0.01,
            to: (n + 1) as f64 * 0.01,
            chunks_sent: 10,
            lost: lost(n),
            ..Step::default()
        };
        (0..1000).map(step).collect()
    }

    fn found(steps: &[Step], queueing: impl Fn(f64) -> f64) -> Losses {
        let queueing = steps.iter().map(|s| (s.at(), queueing(s.at()))).collect();
        let load = Load::new(Curve::default(), queueing, Vec::new(), Vec::new(), 0.04);
        let pieces = vec![RatePiece { from_s: 0.0, bps: 8e6 }];
        losses(steps, &load, &Rates { pieces, is_lower_bound: false }, 10.0)
    }

    #[test]
    fn losses_at_any_length_of_the_queue_are_random() {
        let found = found(&steps(|n| u64::from(n % 10 == 0)), |at| 0.02 * (1.0 + (at * 3.0).sin()));
        assert!(!found.is_full);
        assert_eq!(found.random.len(), 1, "{found:?}");
        assert!((found.random[0].ratio - 0.01).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn lost_packets_have_the_numbers_of_a_round_trip_earlier() {
        let with_packets = |n: usize| u64::from(n % 100 == 50);
        let mut steps = steps(with_packets);
        steps.iter_mut().for_each(|step| step.packets_sent = 10);
        let (numbers, of) = found(&steps, |_| 0.0).numbers.unwrap();
        assert_eq!((numbers.len(), of), (10, 10_000));
        // Noticed at 505 ms, sent 40 ms earlier.
        assert!(numbers[0].abs_diff(465) <= 1, "{numbers:?}");
        assert!(numbers[9].abs_diff(9465) <= 1, "{numbers:?}");
    }

    #[test]
    fn losses_at_the_longest_queue_are_those_of_a_full_one() {
        let phase = |n: usize| n % 100;
        let lossy = steps(|n| if phase(n) == 99 { 5 } else { 0 });
        let found = found(&lossy, |at| phase((at * 100.0) as usize) as f64 * 1e-3);
        assert!(found.is_full, "{found:?}");
        assert!((found.longest_queue - 98e-3 * 1e6).abs() < 3e3, "{found:?}");
        assert!(found.random.iter().all(|piece| piece.ratio < 1e-3), "{found:?}");
    }

    #[test]
    fn a_ratio_that_changes_has_two_pieces() {
        let found = found(&steps(|n| u64::from(n > 500 && n % 5 == 0)), |_| 0.0);
        assert_eq!(found.random.len(), 2, "{found:?}");
        assert!((found.random[1].from_s - 5.0).abs() < 0.1, "{found:?}");
        assert!((found.random[1].ratio - 0.02).abs() < 2e-3, "{found:?}");
    }
}
