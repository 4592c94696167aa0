//! Limits of requests by users and strangers.

use std::hash::Hasher;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use manypath_proto::Instant;

/// The limits of a relay. Memory is bounded by `allocations_total` and `peers_per_allocation`,
/// whatever clients send.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of allocations of all users.
    pub allocations_total: usize,
    /// Allocations of one user, at most.
    pub allocations_per_user: u32,
    /// Peers of one allocation: permissions, and as many channels.
    pub peers_per_allocation: usize,
    /// Bytes a second that one user's allocations forward together, both directions, with 28 bytes
    /// for the headers of each packet; 0 is no limit. What is above is dropped.
    pub user_bytes_per_s: u64,
    /// The same for all users together; 0 is no limit.
    pub total_bytes_per_s: u64,
    /// Time after which an allocation ends that is not refreshed, at most.
    pub lifetime_max: Duration,
}

impl Default for Limits {
    /// 100 allocations, 10 of one user, 32 peers each, 12.5 MB/s (100 Mbit/s) a user, 600 s.
    fn default() -> Limits {
        Limits {
            allocations_total: 100,
            allocations_per_user: 10,
            peers_per_allocation: 32,
            user_bytes_per_s: 12_500_000,
            total_bytes_per_s: 0,
            lifetime_max: Duration::from_secs(600),
        }
    }
}

/// A token bucket that holds a quarter of a second's worth, and at least one large packet.
#[derive(Debug)]
pub(super) struct Bucket {
    /// Tokens a second; 0 is no limit.
    rate: u64,
    depth: u64,
    tokens: u64,
    /// The time that `tokens` is of.
    at: Instant,
}

impl Bucket {
    pub(super) fn new(now: Instant, rate: u64) -> Bucket {
        let depth = (rate / 4).max(1 << 16);
        Bucket { rate, depth, tokens: depth, at: now }
    }

    /// One that counts events, not bytes: it holds a quarter of a second's worth and no more.
    pub(super) fn counting(now: Instant, rate: u64) -> Bucket {
        let depth = (rate / 4).max(1);
        Bucket { rate, depth, tokens: depth, at: now }
    }

    /// True if `cost` tokens are there at `now`.
    pub(super) fn has(&mut self, now: Instant, cost: u64) -> bool {
        if self.rate == 0 {
            return true;
        }
        let nanos = u64::try_from(now.saturating_since(self.at).as_nanos()).unwrap_or(u64::MAX);
        let new = u128::from(nanos) * u128::from(self.rate) / 1_000_000_000;
        // Without a whole token the time goes on counting.
        if new > 0 {
            let new = u64::try_from(new).unwrap_or(u64::MAX);
            self.tokens = self.tokens.saturating_add(new).min(self.depth);
            self.at = now;
        }
        self.tokens >= cost
    }

    /// Takes tokens that are there.
    pub(super) fn take(&mut self, cost: u64) {
        if self.rate > 0 {
            self.tokens = self.tokens.saturating_sub(cost);
        }
    }
}

/// Events of one kind, with a limit per second.
#[derive(Copy, Clone, Debug)]
pub(super) struct Rates {
    /// From one address.
    pub(super) address: u64,
    /// From one network: a /24, or a /64 of IPv6.
    pub(super) network: u64,
    /// From everywhere.
    pub(super) all: u64,
}

/// Counts events by source, so that one source cannot use up the rate of others. Its memory is
/// constant: a secret hash maps sources to places, and the sources of one place share its rate.
#[derive(Debug)]
pub(super) struct Crowd {
    secret: [u8; 32],
    addresses: Meters,
    networks: Meters,
    all: Bucket,
}

impl Crowd {
    pub(super) fn new(now: Instant, secret: [u8; 32], rates: Rates) -> Crowd {
        Crowd {
            secret,
            addresses: Meters::new(rates.address),
            networks: Meters::new(rates.network),
            all: Bucket::counting(now, rates.all),
        }
    }

    /// True if one more is allowed from there.
    pub(super) fn has(&mut self, now: Instant, from: SocketAddr) -> bool {
        let (address, network) = self.places(from);
        self.addresses.has(now, address) && self.networks.has(now, network) && self.all.has(now, 1)
    }

    /// Counts one.
    pub(super) fn take(&mut self, now: Instant, from: SocketAddr) {
        let (address, network) = self.places(from);
        self.addresses.take(now, address);
        self.networks.take(now, network);
        self.all.take(1);
    }

    fn places(&self, from: SocketAddr) -> (usize, usize) {
        let (address, network) = match from.ip().to_canonical() {
            IpAddr::V4(ip) => (ip.to_ipv6_mapped(), ip.to_ipv6_mapped().to_bits() & !0xff),
            IpAddr::V6(ip) => (ip, ip.to_bits() & !u128::from(u64::MAX)),
        };
        (self.place(0, address), self.place(1, Ipv6Addr::from_bits(network)))
    }

    fn place(&self, kind: u8, ip: Ipv6Addr) -> usize {
        let mut hasher = std::hash::DefaultHasher::new();
        hasher.write(&self.secret);
        hasher.write_u8(kind);
        hasher.write(&ip.octets());
        (hasher.finish() % PLACES as u64) as usize
    }
}

/// Places of a [`Crowd`] for addresses, and for networks: 64 KiB each.
const PLACES: usize = 8192;

/// Many counters of one rate, each of which lets two seconds' worth through at once (the generic
/// cell rate algorithm).
#[derive(Debug)]
struct Meters {
    /// Nanoseconds between two events at the rate.
    interval: u64,
    /// For each, when it will have made up for what it let through, in nanoseconds.
    even_at: Vec<u64>,
}

impl Meters {
    fn new(rate: u64) -> Meters {
        Meters { interval: 1_000_000_000 / rate.max(1), even_at: vec![0; PLACES] }
    }

    fn has(&self, now: Instant, place: usize) -> bool {
        let ahead = self.even_at[place].saturating_sub(now.as_nanos());
        ahead.saturating_add(self.interval) <= 2_000_000_000
    }

    fn take(&mut self, now: Instant, place: usize) {
        let even_at = &mut self.even_at[place];
        *even_at = (*even_at).max(now.as_nanos()).saturating_add(self.interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Rates = Rates { address: 10, network: 30, all: 1000 };

    fn passed(crowd: &mut Crowd, seconds: u64, from: impl Fn(u64) -> Vec<String>) -> u64 {
        let mut passed = 0;
        for ms in 0..seconds * 1000 {
            let now = Instant::from_millis(ms);
            for from in from(ms) {
                let from = SocketAddr::new(from.parse().unwrap(), (ms % 60_000) as u16);
                if crowd.has(now, from) {
                    crowd.take(now, from);
                    passed += 1;
                }
            }
        }
        passed
    }

    #[test]
    fn an_address_a_network_and_all_have_their_rates() {
        let crowd = || Crowd::new(Instant::ZERO, [3; 32], RATES);
        let one = passed(&mut crowd(), 10, |_| vec!["192.0.2.1".into(); 3]);
        assert!((110..=120).contains(&one), "10 a second and two seconds' worth: {one}");
        let mapped = |ms: u64| vec![["192.0.2.1", "::ffff:192.0.2.1"][(ms % 2) as usize].into()];
        assert!((110..=120).contains(&passed(&mut crowd(), 10, mapped)));
        let network = passed(&mut crowd(), 10, |ms| vec![format!("192.0.2.{}", ms % 200); 3]);
        assert!((330..=360).contains(&network), "{network}");
        let v6 = passed(&mut crowd(), 10, |ms| vec![format!("2001:db8::{ms:x}"); 3]);
        assert!((330..=360).contains(&v6), "{v6}");
        let all = passed(&mut crowd(), 10, |ms| {
            (0..10).map(|i| format!("{}.{}.{i}.1", 1 + ms % 200, ms / 200)).collect()
        });
        assert!((9_000..=10_250).contains(&all), "{all}");
    }

    #[test]
    fn a_crowd_in_one_place_leaves_others_theirs() {
        let mut crowd = Crowd::new(Instant::ZERO, [3; 32], RATES);
        for ms in 0..10_000 {
            let now = Instant::from_millis(ms);
            for i in 0..10_u8 {
                let from = SocketAddr::new([192, 0, 2, i].into(), 1);
                if crowd.has(now, from) {
                    crowd.take(now, from);
                }
            }
            if ms % 200 == 0 {
                let other = SocketAddr::new([198, 51, 100, 7].into(), 1);
                assert!(crowd.has(now, other), "at {ms} ms");
                crowd.take(now, other);
            }
        }
    }

    #[test]
    fn events_do_not_come_in_bursts_of_thousands() {
        let mut bucket = Bucket::counting(Instant::ZERO, 1000);
        let mut passed = 0;
        while bucket.has(Instant::ZERO, 1) {
            bucket.take(1);
            passed += 1;
        }
        assert_eq!(passed, 250);
    }

    #[test]
    fn a_bucket_passes_its_rate_and_no_more() {
        let rate = 1_000_000;
        let mut bucket = Bucket::new(Instant::ZERO, rate);
        let mut passed = 0;
        for ms in 0..4000 {
            for _ in 0..10 {
                if bucket.has(Instant::from_millis(ms), 1000) {
                    bucket.take(1000);
                    passed += 1000;
                }
            }
        }
        let most = 4 * rate + rate / 4;
        assert!((4 * rate..=most).contains(&passed), "{passed} of 40 MB offered in 4 s");
    }

    #[test]
    fn no_limit_is_no_limit() {
        let mut bucket = Bucket::new(Instant::ZERO, 0);
        assert!(bucket.has(Instant::ZERO, u64::MAX));
    }
}
