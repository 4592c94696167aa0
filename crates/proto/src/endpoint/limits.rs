//! Limits the answers per second to strangers: packets that belong to no association, and may have
//! a forged source.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::rng::Rng;
use crate::time::Instant;

/// A kind of answer to a stranger. Each kind has a bucket of its own, so that packets which draw
/// one kind do not use up another.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// INIT ACK.
    InitAck,
    /// ABORT, to an INIT that is refused or a packet out of the blue.
    Abort,
    /// SHUTDOWN COMPLETE, to SHUTDOWN ACK out of the blue.
    ShutdownComplete,
    /// ERROR "Stale Cookie".
    StaleCookie,
}

/// A bucket's share of the answers per second, in hundredths: its tokens per second, and its
/// capacity. All shares together are 100, so no second brings more answers than the limit.
#[derive(Copy, Clone)]
struct Share {
    refill: u64,
    holds: u64,
}

const FIRST_INIT: Share = Share { refill: 35, holds: 5 };
const REPEATED_INIT: Share = Share { refill: 25, holds: 5 };
const ABORT: Share = Share { refill: 15, holds: 5 };
const SHUTDOWN_COMPLETE: Share = Share { refill: 5, holds: 2 };
const STALE_COOKIE: Share = Share { refill: 2, holds: 1 };

/// A token bucket that counts in time: a token is worth `interval`.
#[derive(Debug)]
struct Bucket {
    interval: Duration,
    holds: u32,
    /// When the bucket is full again.
    full_at: Instant,
}

impl Bucket {
    fn new(limit: u32, Share { refill, holds }: Share) -> Bucket {
        let of = |share: u64| (u64::from(limit) * share / 100).max(1);
        Bucket {
            interval: Duration::from_nanos(1_000_000_000 / of(refill)),
            holds: u32::try_from(of(holds)).unwrap_or(u32::MAX),
            full_at: Instant::ZERO,
        }
    }

    /// Takes a token, if there is one.
    fn take(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.max(now);
        if full_at - now > self.interval * (self.holds - 1) {
            return false;
        }
        self.full_at = full_at + self.interval;
        true
    }

    /// Puts a token back.
    fn give_back(&mut self) {
        self.full_at = self.full_at.saturating_sub(self.interval);
    }
}

/// Bits of one generation of remembered INITs, a power of two: half a megabyte.
const SEEN_BITS: usize = 1 << 22;
/// How long a generation lasts. Each INIT is remembered for at least this time, which is longer
/// than an honest client waits before it repeats INIT.
const SEEN_FOR: Duration = Duration::from_millis(1250);
/// Number of counters of answers to repeated INITs, by network.
const PREFIXES: usize = 1024;

/// INITs that got no answer lately, in two generations of a Bloom filter. The memory does not grow
/// with the length of a flood.
#[derive(Debug)]
struct Seen {
    generations: [Vec<u64>; 2],
    begun: Instant,
}

impl Seen {
    fn new(now: Instant) -> Seen {
        let empty = || vec![0; SEEN_BITS / 64];
        Seen { generations: [empty(), empty()], begun: now }
    }

    /// True if this INIT came before. It is remembered in any case.
    fn repeated(&mut self, now: Instant, hash: [u64; 2]) -> bool {
        if now - self.begun >= SEEN_FOR {
            self.generations.swap(0, 1);
            self.generations[0].fill(0);
            if now - self.begun >= 2 * SEEN_FOR {
                self.generations[1].fill(0);
            }
            self.begun = now;
        }
        let bits = hash.map(|h| [h as u32, (h >> 32) as u32]);
        let bits = bits.as_flattened();
        let place = |bit: u32| (bit as usize % SEEN_BITS / 64, 1u64 << (bit % 64));
        let holds = |g: &Vec<u64>| bits.iter().all(|&bit| g[place(bit).0] & place(bit).1 != 0);
        let was_seen = self.generations.iter().any(holds);
        for &bit in bits {
            let (word, mask) = place(bit);
            self.generations[0][word] |= mask;
        }
        was_seen
    }
}

/// Decides which strangers get an answer.
///
/// Below the limit, all do. In a flood, a random choice would almost never answer one honest client
/// among a hundred thousand forged INITs. So an INIT for which the first bucket has no token is
/// answered when it is repeated from the same address with the same tag. Honest clients repeat
/// theirs, forgers do not. Each network has a limit of its own for that.
///
/// An INIT ACK whose cookie came back went to no forged address, and does not count. So honest
/// clients may come at any rate.
#[derive(Debug)]
pub(super) struct AnswerLimits {
    first_init: Bucket,
    repeated_init: Bucket,
    abort: Bucket,
    shutdown_complete: Bucket,
    stale_cookie: Bucket,
    /// Made when an INIT first gets no answer.
    seen: Option<Box<Seen>>,
    prefixes: Vec<u16>,
    prefixes_since: Instant,
    per_prefix: u16,
    secret: u64,
}

impl AnswerLimits {
    /// At most `limit` answers in any second.
    pub(super) fn new(limit: u32, mut rng: Rng) -> AnswerLimits {
        let bucket = |share| Bucket::new(limit, share);
        AnswerLimits {
            first_init: bucket(FIRST_INIT),
            repeated_init: bucket(REPEATED_INIT),
            abort: bucket(ABORT),
            shutdown_complete: bucket(SHUTDOWN_COMPLETE),
            stale_cookie: bucket(STALE_COOKIE),
            seen: None,
            prefixes: Vec::new(),
            prefixes_since: Instant::ZERO,
            per_prefix: u16::try_from(limit / 50).unwrap_or(u16::MAX).max(2),
            secret: rng.next_u64(),
        }
    }

    /// True if a stranger at `from` gets this answer; `tag` is the initiate tag of its INIT.
    pub(super) fn allows(
        &mut self,
        now: Instant,
        answer: Answer,
        from: SocketAddr,
        tag: u32,
    ) -> bool {
        match answer {
            Answer::Abort => self.abort.take(now),
            Answer::ShutdownComplete => self.shutdown_complete.take(now),
            Answer::StaleCookie => self.stale_cookie.take(now),
            Answer::InitAck => self.first_init.take(now) || self.allows_repeated(now, from, tag),
        }
    }

    /// Does not count an INIT ACK whose cookie came back for the first time: its address was not
    /// forged.
    pub(super) fn cookie_returned(&mut self) {
        self.first_init.give_back();
    }

    #[cold]
    fn allows_repeated(&mut self, now: Instant, from: SocketAddr, tag: u32) -> bool {
        let hash = [0, 1].map(|n: u8| self.hash(&(n, from, tag)));
        let seen = self.seen.get_or_insert_with(|| Box::new(Seen::new(now)));
        if !seen.repeated(now, hash) {
            return false;
        }
        if self.prefixes.is_empty() || now - self.prefixes_since >= Duration::from_secs(1) {
            self.prefixes.clear();
            self.prefixes.resize(PREFIXES, 0);
            self.prefixes_since = now;
        }
        let prefix = self.hash(&prefix(from.ip())) as usize % PREFIXES;
        let allowed = self.prefixes[prefix] < self.per_prefix && self.repeated_init.take(now);
        self.prefixes[prefix] += u16::from(allowed);
        allowed
    }

    /// Hashes with a secret key, so that strangers cannot cause collisions.
    fn hash(&self, what: &impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.secret.hash(&mut hasher);
        what.hash(&mut hasher);
        hasher.finish()
    }
}

/// The network of an address, in which one attacker may have many addresses.
fn prefix(ip: IpAddr) -> [u8; 6] {
    let mut prefix = [0; 6];
    match ip {
        IpAddr::V4(ip) => prefix[..3].copy_from_slice(&ip.octets()[..3]),
        IpAddr::V6(ip) => prefix.copy_from_slice(&ip.octets()[..6]),
    }
    prefix
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u32 = 1000;

    fn limits() -> AnswerLimits {
        AnswerLimits::new(LIMIT, Rng::from_number(1))
    }

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(1_000_000_000 + micros * 1000)
    }

    fn somebody(n: u32) -> SocketAddr {
        SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::from(0x0100_0000 + n * 7919)), 9899)
    }

    #[test]
    fn no_second_brings_more_answers_than_the_limit() {
        let mut limits = limits();
        let mut times = Vec::new();
        for n in 0..300_000 {
            let now = at(u64::from(n) * 10); // 100,000 a second of everything
            use Answer::*;
            for kind in [InitAck, Abort, ShutdownComplete, StaleCookie] {
                // Half of the INITs come again.
                if limits.allows(now, kind, somebody(n / 2), n / 2) {
                    times.push(now);
                }
            }
        }
        let in_a_second = |i: usize| {
            let end = times[i] + Duration::from_secs(1);
            times[i..].iter().take_while(|at| **at < end).count()
        };
        let most = (0..times.len()).map(in_a_second).max().unwrap();
        assert!(most <= LIMIT as usize, "{most} in a second");
        assert!(times.len() > 2000, "{} in three seconds: the limit is used", times.len());
    }

    #[test]
    fn clients_that_return_their_cookies_are_not_limited() {
        let mut limits = limits();
        for n in 0..50_000 {
            assert!(limits.allows(at(n), Answer::InitAck, somebody(1), n as u32), "client {n}");
            limits.cookie_returned();
        }
        // Nothing was saved up for a flood.
        let answered = |n: &u32| limits.allows(at(50_000), Answer::InitAck, somebody(*n), 1);
        let answered = (0..1000).filter(answered).count();
        assert_eq!(answered as u64, u64::from(LIMIT) * FIRST_INIT.holds / 100);
    }

    #[test]
    fn packets_that_draw_aborts_take_no_answer_from_inits() {
        let mut limits = limits();
        for n in 0..100_000 {
            limits.allows(at(n), Answer::Abort, somebody(1), 0);
        }
        assert!(!limits.allows(at(99_999), Answer::Abort, somebody(1), 0));
        assert!(limits.allows(at(99_999), Answer::InitAck, somebody(1), 1));
    }

    #[test]
    fn one_network_that_repeats_itself_leaves_room_for_others() {
        let mut limits = limits();
        let mut honest = 0;
        for n in 0..200_000u32 {
            let now = at(u64::from(n) * 10);
            limits.allows(now, Answer::InitAck, somebody(3), n % 64);
            if n % 25_000 == 24_999 {
                let tag = n / 50_000;
                honest += u32::from(limits.allows(now, Answer::InitAck, somebody(9000), tag));
            }
        }
        assert!(honest >= 4, "of four clients that ask twice {honest} answers");
    }
}
