//! Ranks of paths by the interface or the address that they leave from.

use std::collections::BTreeMap;
use std::net::IpAddr;

use manypath_net::{BindTo, addresses_of};
use manypath_proto as proto;
use manypath_proto::{Instant, PathRank};

/// The ranks that an application has asked for, and those that the engine has.
#[derive(Debug, Default)]
pub(crate) struct Ranks {
    /// The latest of each place, in the order in which places were first named.
    wanted: Vec<(BindTo, PathRank)>,
    /// Those that the engine was told, without those that are normal.
    told: BTreeMap<IpAddr, PathRank>,
}

/// A rank was asked for of a place that can have none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RankPlaceError {
    /// Every address.
    #[error("{0} means every address, and paths from all of them have no rank in common; name one")]
    EveryAddress(BindTo),
    /// There is no such interface, or it has no address.
    #[error("there is no interface {0:?} with an address")]
    NoInterface(String),
}

impl Ranks {
    /// Wants a rank for the paths from there.
    ///
    /// # Errors
    /// The place stands for every address.
    pub(crate) fn want(&mut self, place: BindTo, rank: PathRank) -> Result<(), RankPlaceError> {
        let place = match place {
            BindTo::Address(ip) => BindTo::Address(ip.to_canonical()),
            other => other,
        };
        let is_any = match &place {
            BindTo::Auto | BindTo::Any => true,
            BindTo::Address(ip) => ip.is_unspecified(),
            BindTo::Interface(_) => false,
        };
        if is_any {
            return Err(RankPlaceError::EveryAddress(place));
        }
        match self.wanted.iter_mut().find(|(known, _)| *known == place) {
            Some(known) => known.1 = rank,
            None => self.wanted.push((place, rank)),
        }
        Ok(())
    }

    /// Wants a rank for the paths from a place that nobody has asked for a rank of.
    pub(crate) fn want_unless_set(&mut self, place: BindTo, rank: PathRank) {
        if self.wanted.iter().all(|(known, _)| *known != place) {
            self.wanted.push((place, rank));
        }
    }

    /// Tells the engine the ranks of the addresses that the places have now. Of an address that two
    /// places have, the rank that differs from normal counts, and the dearer one of two.
    pub(crate) fn apply(&mut self, now: Instant, engine: &mut proto::Endpoint) {
        self.apply_with(addresses_of_interface, |ip, rank| {
            engine.set_local_rank(now, ip, rank);
        });
    }

    fn apply_with(
        &mut self,
        addresses: impl Fn(&str) -> Vec<IpAddr>,
        mut tell: impl FnMut(IpAddr, PathRank),
    ) {
        let mut ranks: BTreeMap<IpAddr, PathRank> = BTreeMap::new();
        for (place, rank) in self.wanted.iter().filter(|(_, rank)| !rank.is_normal()) {
            let ips = match place {
                BindTo::Auto | BindTo::Any => Vec::new(),
                BindTo::Address(ip) => vec![*ip],
                BindTo::Interface(name) => addresses(name),
            };
            for ip in ips {
                let known = ranks.entry(ip).or_default();
                *known = (*known).max(*rank);
            }
        }
        for &ip in self.told.keys().filter(|ip| !ranks.contains_key(ip)) {
            tell(ip, PathRank::NORMAL);
        }
        for (&ip, &rank) in &ranks {
            if self.told.get(&ip) != Some(&rank) {
                tell(ip, rank);
            }
        }
        self.told = ranks;
    }
}

/// The addresses of an interface; none if there is no such interface now.
pub(crate) fn addresses_of_interface(name: &str) -> Vec<IpAddr> {
    addresses_of(name).ok().flatten().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn place(text: &str) -> BindTo {
        text.parse().unwrap()
    }

    /// The ranks that the engine is told if the interfaces have these addresses.
    fn told(ranks: &mut Ranks, interfaces: &[(&str, &str)]) -> Vec<(IpAddr, PathRank)> {
        let mut told = Vec::new();
        let of = |name: &str| {
            let own = interfaces.iter().filter(|(known, _)| *known == name);
            own.map(|(_, address)| ip(address)).collect()
        };
        ranks.apply_with(of, |ip, rank| told.push((ip, rank)));
        told
    }

    #[test]
    fn an_interface_takes_its_rank_to_its_next_address() {
        let mut ranks = Ranks::default();
        ranks.want(place("wlan0"), PathRank::Backup).unwrap();
        assert_eq!(told(&mut ranks, &[]), [], "it has no address yet");
        let first = [("wlan0", "10.0.0.1"), ("eth0", "10.0.0.9")];
        assert_eq!(told(&mut ranks, &first), [(ip("10.0.0.1"), PathRank::Backup)]);
        assert_eq!(told(&mut ranks, &first), [], "nothing is new");
        let (normal, backup) = (PathRank::NORMAL, PathRank::Backup);
        let moved = told(&mut ranks, &[("wlan0", "10.0.0.2")]);
        assert_eq!(moved, [(ip("10.0.0.1"), normal), (ip("10.0.0.2"), backup)]);
    }

    #[test]
    fn the_latest_rank_of_a_place_counts_and_the_dearer_one_of_two_places() {
        let mut ranks = Ranks::default();
        let eth0 = [("eth0", "10.0.0.1")];
        ranks.want(place("10.0.0.1"), PathRank::Cost(3)).unwrap();
        ranks.want(place("eth0"), PathRank::Backup).unwrap();
        assert_eq!(told(&mut ranks, &eth0), [(ip("10.0.0.1"), PathRank::Backup)]);
        ranks.want(place("eth0"), PathRank::NORMAL).unwrap();
        assert_eq!(told(&mut ranks, &eth0), [(ip("10.0.0.1"), PathRank::Cost(3))]);
        ranks.want(place("10.0.0.1"), PathRank::NORMAL).unwrap();
        assert_eq!(told(&mut ranks, &eth0), [(ip("10.0.0.1"), PathRank::NORMAL)]);
    }

    #[test]
    fn every_address_has_no_rank() {
        for any in ["*", "0.0.0.0", "::"] {
            let error = Ranks::default().want(place(any), PathRank::Backup).unwrap_err();
            assert_eq!(error, RankPlaceError::EveryAddress(place(any)));
        }
    }
}
