//! Limits on guesses at tokens.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

/// The reason for an address that showed too many wrong tokens, whatever it shows now.
pub const TOO_MANY_GUESSES: &str =
    "busy: too many wrong tokens from your address; wait some seconds";
/// Wrong tokens of one address that are looked at without delay.
const GUESSES: f64 = 10.0;
/// Wrong tokens of one address in a second from then on.
const GUESSES_PER_SECOND: f64 = 1.0;
/// Addresses whose wrong tokens are counted.
const GUESSERS_MAX: usize = 4096;

/// How often each address showed a wrong token. Of IPv6 a /64 counts as one address.
#[derive(Debug, Default)]
pub struct Guesses(Mutex<BTreeMap<Ipv6Addr, Guesser>>);

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
    pub fn may(&self, from: IpAddr, now: Instant) -> bool {
        self.locked().get(&guesser(from)).is_none_or(|g| g.left(now) >= 1.0)
    }

    /// A wrong token came from there.
    pub fn wrong(&self, from: IpAddr, now: Instant) {
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
    use std::time::Duration;

    use super::*;

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
