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
mod tests;
