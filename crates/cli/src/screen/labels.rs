//! Names of paths for a person: the interface, and as much of the addresses as tells paths apart.

use std::net::SocketAddr;

use manypath::{Association, PathStats};
use manypath_live::Interfaces;

/// The ends of a path, and what they are part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    /// The interface that has our address, or had it.
    pub interface: Option<String>,
    /// The relay that our address is on.
    pub relay: Option<String>,
    /// Our transport address.
    pub local: SocketAddr,
    /// The peer's transport address.
    pub remote: SocketAddr,
}

impl Ends {
    /// The ends of a path of `association`.
    pub(crate) fn of(
        path: &PathStats,
        association: &Association,
        interfaces: &mut Interfaces,
    ) -> Ends {
        let relay = association.relay(path.local);
        let interface = if relay.is_none() { interfaces.of(path.local.ip()) } else { None };
        Ends { interface, relay, local: path.local, remote: path.remote }
    }

    /// The name of the path if no other leaves from the same place.
    fn place(&self) -> String {
        match (&self.relay, &self.interface) {
            (Some(relay), _) => format!("via {relay}"),
            (None, Some(interface)) => interface.clone(),
            (None, None) => self.local.ip().to_string(),
        }
    }

    /// Both addresses, and the relay.
    pub(crate) fn addresses(&self) -> String {
        format!(
            "{} - {}{}",
            self.local,
            self.remote,
            crate::connect::via::text(self.relay.as_deref())
        )
    }
}

/// A name for each path of an association, in their order.
pub(crate) fn labels(all: &[Ends]) -> Vec<String> {
    all.iter().map(|ends| label(ends, all)).collect()
}

/// The name of a path among `all` of its association: an address only if another path leaves from
/// the same place, and of the addresses the one in which those paths differ.
pub(crate) fn label(ends: &Ends, all: &[Ends]) -> String {
    let place = ends.place();
    let others: Vec<_> = all.iter().filter(|o| *o != ends && o.place() == place).collect();
    let (local, remote) = (ends.local.ip(), ends.remote.ip());
    if others.is_empty() {
        place
    } else if ends.relay.is_none() && others.iter().all(|other| other.local.ip() != local) {
        format!("{place} {local}")
    } else if others.iter().all(|other| other.remote.ip() != remote) {
        format!("{place} to {remote}")
    } else {
        format!("{place} {local} to {remote}")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A direct path.
    pub(crate) fn ends(interface: &str, local: &str, remote: &str) -> Ends {
        let address = |ip: &str| SocketAddr::new(ip.parse().unwrap(), 9899);
        let interface = (!interface.is_empty()).then(|| interface.to_owned());
        Ends { interface, relay: None, local: address(local), remote: address(remote) }
    }

    #[test]
    fn paths_are_called_by_their_interface() {
        let all = [ends("wlan0", "192.0.2.1", "198.51.100.1"), ends("lte0", "2001:db8::1", "::1")];
        assert_eq!(labels(&all), ["wlan0", "lte0"]);
        let all = [ends("", "192.0.2.1", "198.51.100.1")];
        assert_eq!(labels(&all), ["192.0.2.1"]);
    }

    #[test]
    fn paths_of_one_interface_have_the_address_in_which_they_differ() {
        let wlan = |local, remote| ends("wlan0", local, remote);
        let lte = ends("lte0", "192.0.2.9", "198.51.100.1");
        let two = [wlan("192.0.2.1", "198.51.100.1"), wlan("192.0.2.2", "198.51.100.1"), lte];
        assert_eq!(labels(&two), ["wlan0 192.0.2.1", "wlan0 192.0.2.2", "lte0"]);
        let two = [wlan("192.0.2.1", "198.51.100.1"), wlan("192.0.2.1", "198.51.100.2")];
        assert_eq!(labels(&two), ["wlan0 to 198.51.100.1", "wlan0 to 198.51.100.2"]);
        let three = [
            wlan("192.0.2.1", "198.51.100.1"),
            wlan("192.0.2.1", "198.51.100.2"),
            wlan("192.0.2.2", "198.51.100.2"),
        ];
        let expected =
            ["wlan0 to 198.51.100.1", "wlan0 192.0.2.1 to 198.51.100.2", "wlan0 192.0.2.2"];
        assert_eq!(labels(&three), expected);
    }

    #[test]
    fn a_relay_has_its_name() {
        let relayed = |remote| Ends {
            relay: Some("relay.example:3478".to_owned()),
            ..ends("", "203.0.113.5", remote)
        };
        assert_eq!(labels(&[relayed("192.0.2.9")]), ["via relay.example:3478"]);
        let two = [relayed("192.0.2.9"), relayed("192.0.2.10")];
        assert_eq!(labels(&two)[1], "via relay.example:3478 to 192.0.2.10");
        assert!(two[0].addresses().ends_with("192.0.2.9:9899 via relay.example:3478"));
    }
}
