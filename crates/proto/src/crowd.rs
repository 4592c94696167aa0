//! Places for unknown peers, shared so that no peer can take them all.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// Limits on places for unknown peers. Values of 0 count as 1.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct CrowdLimits {
    /// Most places in all.
    pub total: usize,
    /// Most places of one network: /24, or /64 of IPv6.
    pub per_network: usize,
    /// Most places of one address.
    pub per_address: usize,
}

impl CrowdLimits {
    /// Limits of `total` places in all, half of them for one network, a quarter for one address.
    pub fn of(total: usize) -> CrowdLimits {
        CrowdLimits { total, per_network: total / 2, per_address: total / 4 }
    }
}

/// Unknown peers that have a place, the oldest first. Their number stays within the limits.
///
/// No newcomer is turned away. If there is no room, it takes the place of another peer: the oldest
/// of its own address or network, if either is at its limit, or else the oldest of the network with
/// the most places. By age alone, one stranger with many handshakes a second would replace every
/// honest peer within a round trip.
#[derive(Debug)]
pub struct Crowd<Id> {
    limits: CrowdLimits,
    all: Vec<Member<Id>>,
}

#[derive(Copy, Clone, Debug)]
struct Member<Id> {
    id: Id,
    address: IpAddr,
    network: Ipv6Addr,
}

impl<Id: Copy + PartialEq> Crowd<Id> {
    /// No places taken yet.
    pub fn new(limits: CrowdLimits) -> Crowd<Id> {
        Crowd { limits, all: Vec::new() }
    }

    /// Gives a peer with this address a place. Returns the peer that loses its place for that, if
    /// any.
    pub fn add(&mut self, id: Id, ip: IpAddr) -> Option<Id> {
        let address = ip.to_canonical();
        let goes = self.next_to_go(address).map(|index| self.all.remove(index).id);
        self.all.push(Member { id, address, network: network(address) });
        goes
    }

    /// True if a peer with this address would take no other peer's place.
    pub fn has_room(&self, ip: IpAddr) -> bool {
        self.next_to_go(ip.to_canonical()).is_none()
    }

    /// The peers that have a place, the oldest first.
    pub fn ids(&self) -> impl Iterator<Item = Id> + '_ {
        self.all.iter().map(|member| member.id)
    }

    /// Keeps the peers for which this is true.
    pub fn retain(&mut self, keep: impl Fn(&Id) -> bool) {
        self.all.retain(|member| keep(&member.id));
    }

    /// Frees a peer's place. False if it had none.
    pub fn remove(&mut self, id: Id) -> bool {
        let before = self.all.len();
        self.all.retain(|member| member.id != id);
        self.all.len() < before
    }

    /// The index of the peer that makes room for a newcomer with this address, if any must.
    fn next_to_go(&self, address: IpAddr) -> Option<usize> {
        let CrowdLimits { total, per_network, per_address } = self.limits;
        let full = |count: usize, limit: usize| count >= limit.max(1);
        let own = network(address);
        let of_address = self.all.iter().filter(|member| member.address == address).count();
        if full(of_address, per_address) {
            return self.all.iter().position(|member| member.address == address);
        }
        let of_network = self.all.iter().filter(|member| member.network == own).count();
        if full(of_network, per_network) {
            return self.oldest_of(own);
        }
        if !full(self.all.len(), total) {
            return None;
        }
        let largest = self.oldest_of_largest(|member| member.network, |_| true)?;
        self.oldest_of(self.all[largest].network)
    }

    /// The oldest peer of the address with the most places, in this network.
    fn oldest_of(&self, network: Ipv6Addr) -> Option<usize> {
        self.oldest_of_largest(|member| member.address, |member| member.network == network)
    }

    /// The oldest peer of the largest group; of groups of one size, that with the oldest peer.
    fn oldest_of_largest<Key: Ord>(
        &self,
        group: impl Fn(&Member<Id>) -> Key,
        counts: impl Fn(&Member<Id>) -> bool,
    ) -> Option<usize> {
        let mut groups: BTreeMap<Key, Group> = BTreeMap::new();
        for (index, member) in self.all.iter().enumerate() {
            if counts(member) {
                groups.entry(group(member)).or_insert(Group { size: 0, oldest: index }).size += 1;
            }
        }
        let largest = groups.into_values().max_by_key(|group| (group.size, Reverse(group.oldest)));
        largest.map(|group| group.oldest)
    }
}

struct Group {
    size: usize,
    oldest: usize,
}

/// The network of an address: /24, or /64 of IPv6. It may well have one owner.
fn network(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => Ipv6Addr::from_bits(ip.to_ipv6_mapped().to_bits() & !0xff),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crowd() -> Crowd<u32> {
        Crowd::new(CrowdLimits { total: 10, per_network: 6, per_address: 3 })
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_oldest_of_an_address_and_of_a_network_make_room_for_their_own() {
        let mut all = crowd();
        assert!((0..3).all(|id| all.add(id, ip("192.0.2.1")).is_none()));
        assert!(!all.has_room(ip("192.0.2.1")) && all.has_room(ip("192.0.2.2")));
        assert_eq!(all.add(3, ip("192.0.2.1")), Some(0));
        assert_eq!(all.add(4, ip("::ffff:192.0.2.1")), Some(1), "the same address");
        assert!((10..13).all(|id| all.add(id, ip("192.0.2.9")).is_none()));
        assert_eq!(all.add(13, ip("192.0.2.200")), Some(2), "the oldest of 192.0.2.0/24");
        assert_eq!(all.add(14, ip("192.0.3.1")), None);
    }

    #[test]
    fn a_crowd_from_one_network_takes_no_place_of_others() {
        let mut all = crowd();
        assert_eq!(all.add(1000, ip("198.51.100.7")), None);
        for id in 0..500u32 {
            let address = format!("2001:db8::{:x}", id % 7);
            assert_ne!(all.add(id, ip(&address)), Some(1000));
        }
        assert!(all.remove(1000));
    }

    #[test]
    fn a_neighbour_with_few_places_loses_none_to_one_with_many() {
        let mut all = crowd();
        assert_eq!(all.add(1000, ip("192.0.2.7")), None);
        for id in 0..500u32 {
            let address = format!("192.0.2.{}", 100 + id % 2);
            assert_ne!(all.add(id, ip(&address)), Some(1000));
        }
        assert!(all.remove(1000));
    }

    #[test]
    fn when_all_places_are_taken_the_oldest_of_the_largest_network_goes() {
        let mut all = crowd();
        for (id, address) in
            ["192.0.2.1", "198.51.100.1", "203.0.113.1"].iter().cycle().take(9).enumerate()
        {
            assert_eq!(all.add(id as u32, ip(address)), None);
        }
        assert_eq!(all.add(9, ip("198.51.100.2")), None);
        assert_eq!(all.add(10, ip("2001:db8::1")), Some(1), "198.51.100.0/24 has four");
        assert_eq!(all.add(11, ip("2001:db8:1::1")), Some(0), "all have three: the oldest of all");
        assert!(all.remove(2) && !all.remove(2));
        assert_eq!(all.add(12, ip("2001:db8:2::1")), None);
        assert_eq!(all.all.len(), 10);
    }

    #[test]
    fn limits_of_zero_keep_the_newest() {
        let mut all = Crowd::new(CrowdLimits::of(0));
        assert_eq!(all.add(1, ip("192.0.2.1")), None);
        assert_eq!(all.add(2, ip("192.0.2.1")), Some(1));
        assert_eq!(all.add(3, ip("198.51.100.1")), Some(2));
    }

    #[test]
    fn places_that_are_given_back_are_free() {
        let mut all = crowd();
        assert!((0..3).all(|id| all.add(id, ip("192.0.2.1")).is_none()));
        all.retain(|id| *id == 1);
        assert!(all.has_room(ip("192.0.2.1")));
        assert_eq!(all.add(3, ip("192.0.2.1")), None);
    }
}
