//! The interfaces of this host by their addresses.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use manypath::interface_names;
use tokio::time::Instant;

/// How often the interfaces are read, at most.
const EVERY: Duration = Duration::from_secs(2);
/// Addresses that are remembered; an interface that is renumbered without end must not fill memory.
const REMEMBERED_MAX: usize = 1024;

/// The names of interfaces by address. An address that left this host keeps the last name it had,
/// so that a path can still be called by its interface after that went away.
#[derive(Debug, Default)]
pub struct Interfaces {
    names: BTreeMap<IpAddr, String>,
    read: Option<Instant>,
}

impl Interfaces {
    /// The name of the interface that has `address`, or had it last; `None` if none is known, as of
    /// an address on a relay.
    pub fn of(&mut self, address: IpAddr) -> Option<String> {
        if self.read.is_none_or(|read| read.elapsed() >= EVERY) {
            self.read = Some(Instant::now());
            self.learn(interface_names());
        }
        self.names.get(&address).cloned()
    }

    fn learn(&mut self, now: BTreeMap<IpAddr, String>) {
        if self.names.len() + now.len() > REMEMBERED_MAX {
            self.names.clear();
        }
        self.names.extend(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_gone_keeps_the_name_it_had_last() {
        let address = |last| IpAddr::from([192, 0, 2, last]);
        let mut all = Interfaces { read: Some(Instant::now()), ..Interfaces::default() };
        all.learn([(address(1), "wlan0".to_owned()), (address(2), "lte0".to_owned())].into());
        all.learn([(address(2), "wwan0".to_owned())].into());
        let names = [1, 2, 3].map(|last| all.of(address(last)));
        assert_eq!(names, [Some("wlan0".to_owned()), Some("wwan0".to_owned()), None]);
    }

    #[test]
    fn the_memory_for_names_is_bounded() {
        let mut all = Interfaces::default();
        for n in 0..5000_u32 {
            all.learn([(IpAddr::from(n.to_be_bytes()), "eth0".to_owned())].into());
        }
        assert!(all.names.len() <= REMEMBERED_MAX);
        assert_eq!(all.names.values().next_back().map(String::as_str), Some("eth0"));
    }
}
