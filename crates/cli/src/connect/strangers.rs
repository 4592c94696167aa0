//! Limits on what strangers on the network can cause: lines of output, and token guesses.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::screen::Screen;

/// Lines about strangers in each [`WINDOW`].
const LINES_MAX: u32 = 20;
/// The time that lines are counted over.
const WINDOW: Duration = Duration::from_secs(10);
/// How often a listening command calls [`StrangerLines::tick`].
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// Wrong tokens of one address that are looked at without delay.
const GUESSES: f64 = 10.0;
/// Wrong tokens of one address in a second from then on.
const GUESSES_PER_SECOND: f64 = 1.0;
/// Addresses whose wrong tokens are counted.
const GUESSERS_MAX: usize = 4096;

/// Lines that strangers cause, as many as somebody can read; the others are counted.
#[derive(Clone, Debug)]
pub(crate) struct StrangerLines {
    screen: Screen,
    count: Arc<Mutex<LineCount>>,
}

#[derive(Debug, Default)]
struct LineCount {
    /// When the window began.
    since: Option<Instant>,
    shown: u32,
    left_out: u64,
}

impl LineCount {
    /// True if a line may be shown, and how many were left out in a window that is over.
    fn line(&mut self, now: Instant) -> (bool, u64) {
        let left_out = self.end_window(now);
        self.since.get_or_insert(now);
        let may = self.shown < LINES_MAX;
        self.shown += u32::from(may);
        self.left_out += u64::from(!may);
        (may, left_out)
    }

    /// Ends a window whose time is over; how many lines were left out in it.
    fn end_window(&mut self, now: Instant) -> u64 {
        if self.since.is_none_or(|since| now.saturating_duration_since(since) < WINDOW) {
            return 0;
        }
        std::mem::take(self).left_out
    }
}

impl StrangerLines {
    pub(crate) fn new(screen: Screen) -> StrangerLines {
        StrangerLines { screen, count: Arc::default() }
    }

    /// Says a line, or counts it. Control characters in it are escaped.
    pub(crate) fn say(&self, text: &str) {
        let (may, left_out) = self.locked().line(Instant::now());
        self.tell_left_out(left_out);
        if may {
            self.screen.line(&crate::transfer::relative::printable(text));
        }
    }

    /// Tells what was left out once a window is over, even if nothing more comes. To be called
    /// every [`TICK`].
    pub(crate) fn tick(&self) {
        let left_out = self.locked().end_window(Instant::now());
        self.tell_left_out(left_out);
    }

    fn tell_left_out(&self, count: u64) {
        if count > 0 {
            self.screen.line(&format!("({count} more lines about strangers were omitted)"));
        }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, LineCount> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How often each address showed a wrong token. Of IPv6 a /64 counts as one address.
#[derive(Debug, Default)]
pub(crate) struct Guesses(Mutex<BTreeMap<Ipv6Addr, Guesser>>);

#[derive(Copy, Clone, Debug)]
struct Guesser {
    /// Guesses left, less than 0 if several were made at once.
    left: f64,
    /// The time that `left` is of.
    at: Instant,
}

impl Guesser {
    fn left(&self, now: Instant) -> f64 {
        let new = now.saturating_duration_since(self.at).as_secs_f64() * GUESSES_PER_SECOND;
        (self.left + new).min(GUESSES)
    }
}

impl Guesses {
    /// True if a token from there is to be compared.
    pub(crate) fn may(&self, from: IpAddr, now: Instant) -> bool {
        self.locked().get(&guesser(from)).is_none_or(|g| g.left(now) >= 1.0)
    }

    /// A wrong token came from there.
    pub(crate) fn wrong(&self, from: IpAddr, now: Instant) {
        let mut all = self.locked();
        let key = guesser(from);
        let left = all.get(&key).map_or(GUESSES, |g| g.left(now)) - 1.0;
        if all.len() >= GUESSERS_MAX && !all.contains_key(&key) {
            all.retain(|_, g| g.left(now) < GUESSES);
        }
        if all.len() >= GUESSERS_MAX && !all.contains_key(&key) {
            // The one that may guess soonest is forgotten.
            let mildest = all.iter().max_by(|a, b| a.1.left(now).total_cmp(&b.1.left(now)));
            if let Some(key) = mildest.map(|(key, _)| *key) {
                all.remove(&key);
            }
        }
        all.insert(key, Guesser { left, at: now });
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, BTreeMap<Ipv6Addr, Guesser>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn guesser(ip: IpAddr) -> Ipv6Addr {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_limited_and_what_is_left_out_is_counted() {
        let (mut count, start) = (LineCount::default(), Instant::now());
        let mut shown = 0;
        for i in 0..28_000 {
            let (may, left_out) = count.line(start + Duration::from_millis(i / 7));
            assert_eq!(left_out, 0);
            shown += u32::from(may);
        }
        assert_eq!(shown, LINES_MAX);
        assert_eq!(count.end_window(start + WINDOW - Duration::from_millis(1)), 0);
        assert_eq!(count.line(start + WINDOW), (true, 28_000 - u64::from(LINES_MAX)));
        assert_eq!(count.end_window(start + 2 * WINDOW), 0);
        assert_eq!(count.line(start + 3 * WINDOW), (true, 0));
    }

    #[test]
    fn an_address_guesses_once_a_second() {
        let (guesses, start) = (Guesses::default(), Instant::now());
        let (from, other) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let mut guessed = 0;
        for ms in 0..60_000 {
            let now = start + Duration::from_millis(ms);
            if guesses.may(from, now) {
                guesses.wrong(from, now);
                guessed += 1;
            }
        }
        assert!((69..=70).contains(&guessed), "{guessed}");
        assert!(guesses.may(other, start));
        // Sixteen at once, when one was allowed, are made up for.
        let now = start + Duration::from_secs(61);
        (0..16).for_each(|_| guesses.wrong(from, now));
        assert!(!guesses.may(from, now + Duration::from_secs(14)));
        assert!(guesses.may(from, now + Duration::from_secs(17)));
    }

    #[test]
    fn an_owner_of_a_64_has_no_more_guesses_and_the_table_is_bounded() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        for i in 0..100_000_u64 {
            let ip = Ipv6Addr::from_bits((0x2001_0db8_u128 << 96) | u128::from(i));
            guesses.wrong(ip.into(), now);
        }
        assert_eq!(guesses.locked().len(), 1);
        assert!(!guesses.may("2001:db8::ffff".parse().unwrap(), now + Duration::from_secs(3600)));
        for i in 0..10_000_u128 {
            let ip = Ipv6Addr::from_bits((0x2001_0db8_u128 << 96) | ((i + 1) << 64));
            guesses.wrong(ip.into(), now);
        }
        assert_eq!(guesses.locked().len(), GUESSERS_MAX);
        assert!(!guesses.may("2001:db8::1".parse().unwrap(), now), "the worst stays");
    }
}
