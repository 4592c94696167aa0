//! A limit on how fast passwords can be guessed.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Wrong attempts of one network that are answered at once.
const FREE_PER_NETWORK: u32 = 5;
/// Wrong attempts of all networks that are answered at once. More than of one, lest a single
/// stranger delay everybody.
const FREE_IN_ALL: u32 = 50;
/// The delay of the first answer after those, doubled for each that follows.
const DELAY_MIN: Duration = Duration::from_secs(1);
/// The longest delay.
const DELAY_MAX: Duration = Duration::from_secs(60);
/// An attempt that would wait longer, behind others, is refused.
const WAIT_MAX: Duration = Duration::from_secs(120);
/// Wrong attempts are forgotten when none came for this time. Fewer passwords can be tried by
/// waiting for that than by going on.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3600);
/// Networks whose attempts are counted.
const NETWORKS_MAX: usize = 4096;

/// Counts wrong attempts at a password for each network (/24, or /64 of IPv6) and in all, and
/// delays the answers when there are many.
///
/// From one network five attempts are answered at once. The answer to the sixth is delayed by 1 s,
/// to each that follows by twice as long, up to a minute, and they wait for one another. In all,
/// the same begins after 50. So all networks together get 50 guesses and then at most 60 an hour: a
/// million passwords take them almost two years.
///
/// Somebody with many networks can so keep everybody waiting. Do not use it for long random tokens,
/// which nobody guesses.
#[derive(Debug, Default)]
pub struct Attempts {
    networks: BTreeMap<Ipv6Addr, Count>,
    all: Count,
}

/// An attempt that was admitted. It counts as wrong, unless it is given to [`Attempts::right`].
#[derive(Debug)]
#[must_use = "its answer must wait until `answer_at`"]
pub struct Attempt {
    /// The earliest time for the answer. Before, nothing may tell a right attempt from a wrong one.
    pub answer_at: Instant,
    network: Ipv6Addr,
}

#[derive(Copy, Clone, Debug, Default)]
struct Count {
    /// Attempts that were wrong or are under way.
    wrong: u32,
    /// The time of the last answer.
    last: Option<Instant>,
}

impl Count {
    /// When the next attempt is to be answered.
    fn answer_at(&self, free: u32, now: Instant) -> Instant {
        let Some(beyond) = self.wrong.checked_sub(free) else { return now };
        let delay = DELAY_MIN.saturating_mul(1 << beyond.min(16)).min(DELAY_MAX);
        self.last.map_or(now, |last| last.max(now)) + delay
    }

    fn add(&mut self, answer_at: Instant) {
        self.wrong = self.wrong.saturating_add(1);
        self.last = Some(self.last.map_or(answer_at, |last| last.max(answer_at)));
    }

    fn remove(&mut self) {
        self.wrong = self.wrong.saturating_sub(1);
    }

    fn is_forgotten(&self, now: Instant) -> bool {
        self.wrong == 0
            || self.last.is_none_or(|last| now.saturating_duration_since(last) >= FORGOTTEN_AFTER)
    }
}

impl Attempts {
    /// Admits an attempt from this address, to be called when its first message arrives.
    ///
    /// # Errors
    /// The attempt must be refused unseen, because too many wait already. It may come again after
    /// this time.
    pub fn begin(&mut self, from: IpAddr, now: Instant) -> Result<Attempt, Duration> {
        let network = network(from);
        self.forget(network, now);
        let count = self.networks.get(&network).copied().unwrap_or_default();
        let answer_at =
            count.answer_at(FREE_PER_NETWORK, now).max(self.all.answer_at(FREE_IN_ALL, now));
        let wait = answer_at.saturating_duration_since(now);
        if wait > WAIT_MAX {
            return Err(wait - WAIT_MAX);
        }
        self.make_room(network);
        self.networks.entry(network).or_default().add(answer_at);
        self.all.add(answer_at);
        Ok(Attempt { answer_at, network })
    }

    /// The attempt had the right password: it does not count.
    pub fn right(&mut self, attempt: Attempt) {
        self.all.remove();
        if let Some(count) = self.networks.get_mut(&attempt.network) {
            count.remove();
        }
    }

    fn forget(&mut self, network: Ipv6Addr, now: Instant) {
        if self.all.is_forgotten(now) {
            *self = Attempts::default();
        }
        if self.networks.get(&network).is_some_and(|count| count.is_forgotten(now)) {
            self.networks.remove(&network);
        }
        if self.networks.len() >= NETWORKS_MAX {
            self.networks.retain(|_, count| !count.is_forgotten(now));
        }
    }

    /// Forgets the network with the fewest wrong attempts, the oldest of those, if there are too
    /// many.
    fn make_room(&mut self, network: Ipv6Addr) {
        if self.networks.len() < NETWORKS_MAX || self.networks.contains_key(&network) {
            return;
        }
        let mildest = self.networks.iter().min_by_key(|(_, count)| (count.wrong, count.last));
        if let Some(network) = mildest.map(|(network, _)| *network) {
            self.networks.remove(&network);
        }
    }
}

/// The first address of the network of `ip`: a /24, or a /64 of IPv6.
fn network(ip: IpAddr) -> Ipv6Addr {
    match ip.to_canonical() {
        IpAddr::V4(ip) => {
            let [a, b, c, _] = ip.octets();
            Ipv4Addr::new(a, b, c, 0).to_ipv6_mapped()
        }
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)),
    }
}

#[cfg(test)]
mod tests;
