//! Peers that opened an association and that the application knows nothing of yet.

use std::net::{IpAddr, Ipv6Addr};

/// Limits on peers that opened an association and were not
/// [admitted](crate::Association::admit) yet.
///
/// Nobody is turned away for them: a newcomer takes the place of the one that came first. So peers
/// that open associations and stay silent cost others nothing, as long as an honest one says who it
/// is before enough newer ones come to take its place. Values of 0 count as 1.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct StrangerLimits {
    /// Receive buffer of each, in bytes, if the configured one is larger: what it can make this
    /// host hold.
    pub receive_buffer: usize,
    /// Strangers at a time. When there are more, the oldest of the network (/24, or /64 of IPv6)
    /// with most of them goes.
    pub total: usize,
    /// Strangers of one network (/24, or /64 of IPv6) at a time. When there are more, its oldest
    /// goes.
    pub per_network: usize,
    /// Strangers of one address at a time. When there are more, its oldest goes.
    pub per_address: usize,
}

impl Default for StrangerLimits {
    /// 64 KiB each; 64 in all, 32 of a network, 16 of an address.
    fn default() -> StrangerLimits {
        StrangerLimits { receive_buffer: 64 << 10, total: 64, per_network: 32, per_address: 16 }
    }
}

/// The strangers there are, oldest first; never more than the limits allow.
#[derive(Debug)]
pub(crate) struct Strangers<Id> {
    limits: StrangerLimits,
    all: Vec<(Id, IpAddr)>,
}

impl<Id: Copy + PartialEq> Strangers<Id> {
    pub(crate) fn new(limits: StrangerLimits) -> Strangers<Id> {
        Strangers { limits, all: Vec::new() }
    }

    /// Takes a stranger in; who has to go for it, if anybody.
    pub(crate) fn add(&mut self, id: Id, ip: IpAddr) -> Option<Id> {
        let ip = ip.to_canonical();
        let StrangerLimits { total, per_network, per_address, .. } = self.limits;
        let full = |count: usize, limit: usize| count >= limit.max(1);
        let of_address = self.all.iter().filter(|&&(_, other)| other == ip).count();
        let goes = if full(of_address, per_address) {
            self.all.iter().position(|&(_, other)| other == ip)
        } else if full(self.in_network(network(ip)), per_network) {
            self.all.iter().position(|&(_, other)| network(other) == network(ip))
        } else if full(self.all.len(), total) {
            // Of networks with the same number, that of the oldest: `max_by_key` would take the
            // last one.
            let mut most = (0, 0);
            for (i, &(_, other)) in self.all.iter().enumerate() {
                let count = self.in_network(network(other));
                if count > most.0 {
                    most = (count, i);
                }
            }
            Some(most.1)
        } else {
            None
        };
        let goes = goes.map(|i| self.all.remove(i).0);
        self.all.push((id, ip));
        goes
    }

    /// No stranger any more; false if it was none.
    pub(crate) fn remove(&mut self, id: Id) -> bool {
        let before = self.all.len();
        self.all.retain(|&(other, _)| other != id);
        self.all.len() < before
    }

    fn in_network(&self, of: Ipv6Addr) -> usize {
        self.all.iter().filter(|&&(_, ip)| network(ip) == of).count()
    }
}

/// The network of an address, which may well be one owner's: /24, or /64 of IPv6.
fn network(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => Ipv6Addr::from_bits(ip.to_ipv6_mapped().to_bits() & !0xff),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strangers() -> Strangers<u32> {
        let limits =
            StrangerLimits { total: 10, per_network: 6, per_address: 3, receive_buffer: 0 };
        Strangers::new(limits)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_oldest_of_an_address_and_of_a_network_make_room_for_their_own() {
        let mut all = strangers();
        assert!((0..3).all(|id| all.add(id, ip("192.0.2.1")).is_none()));
        assert_eq!(all.add(3, ip("192.0.2.1")), Some(0));
        assert_eq!(all.add(4, ip("::ffff:192.0.2.1")), Some(1), "the same address");
        assert!((10..13).all(|id| all.add(id, ip("192.0.2.9")).is_none()));
        assert_eq!(all.add(13, ip("192.0.2.200")), Some(2), "the oldest of 192.0.2.0/24");
        assert_eq!(all.add(14, ip("192.0.3.1")), None);
    }

    #[test]
    fn a_crowd_from_one_network_takes_no_place_of_others() {
        let mut all = strangers();
        assert_eq!(all.add(1000, ip("198.51.100.7")), None);
        for id in 0..500u32 {
            let address = format!("2001:db8::{:x}", id % 7);
            assert_ne!(all.add(id, ip(&address)), Some(1000));
        }
        assert!(all.all.iter().any(|&(id, _)| id == 1000));
    }

    #[test]
    fn when_all_places_are_taken_the_oldest_of_the_largest_network_goes() {
        let mut all = strangers();
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
        let limits = StrangerLimits { total: 0, per_network: 0, per_address: 0, receive_buffer: 0 };
        let mut all = Strangers::new(limits);
        assert_eq!(all.add(1, ip("192.0.2.1")), None);
        assert_eq!(all.add(2, ip("192.0.2.1")), Some(1));
        assert_eq!(all.add(3, ip("198.51.100.1")), Some(2));
    }
}
