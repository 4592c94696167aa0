use super::*;

/// A host as routes see it: interfaces with their addresses, and routes.
struct Host {
    homes: Vec<Home>,
    /// The number of the interface that the system prefers, by destination.
    system: Vec<(IpAddr, SystemRoute)>,
    /// Interfaces with a route to everything, and those with one to a single address.
    through: Vec<(u32, Option<IpAddr>)>,
}

impl Routes for Host {
    fn of_system(&mut self, to: IpAddr) -> Option<SystemRoute> {
        self.system.iter().find(|(ip, _)| *ip == to).map(|(_, route)| *route)
    }

    fn source_through(&mut self, to: IpAddr, link: u32, own: &[IpAddr]) -> Option<IpAddr> {
        let leads = |route: &&(u32, Option<IpAddr>)| {
            route.0 == link && route.1.is_none_or(|only| only == to)
        };
        self.through.iter().find(leads)?;
        own.iter().copied().find(|ip| ip.is_ipv6() == to.is_ipv6())
    }

    fn leads_elsewhere(&mut self, link: u32) -> bool {
        self.through.contains(&(link, None))
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn remote(text: &str) -> SocketAddr {
    SocketAddr::new(ip(text), 9899)
}

const SERVER: &str = "192.0.2.7";

/// Interfaces 1, 2, … with a kind and addresses.
fn host(links: &[(&str, LinkKind, &[&str])]) -> Host {
    let home = |(at, (name, kind, own)): (usize, &(&str, LinkKind, &[&str]))| Home {
        link: Link { index: at as u32 + 1, name: (*name).to_owned(), kind: *kind, is_up: true },
        own: own.iter().map(|a| ip(a)).collect(),
    };
    let homes = links.iter().enumerate().map(home).collect();
    Host { homes, system: Vec::new(), through: Vec::new() }
}

impl Host {
    fn prefers(mut self, to: &str, link: u32) -> Host {
        self.system.push((ip(to), SystemRoute { link, source: None, table: 254 }));
        self
    }

    fn leads(mut self, link: u32) -> Host {
        self.through.push((link, None));
        self
    }

    fn choose(mut self, remotes: &[&str]) -> Uplinks {
        let remotes: Vec<_> = remotes.iter().map(|r| remote(r)).collect();
        let homes = std::mem::take(&mut self.homes);
        choose(&homes, &remotes, &mut self)
    }
}

/// The laptop of the README: Wi-Fi that the system prefers, and LTE.
fn laptop() -> Host {
    let (wifi, lte): (&[_], &[_]) = (&["192.168.1.5"], &["10.64.0.9"]);
    host(&[("wlan0", LinkKind::Plain, wifi), ("lte0", LinkKind::Plain, lte)])
        .prefers(SERVER, 1)
        .leads(1)
        .leads(2)
}

fn left_out(uplinks: &Uplinks) -> Vec<(&str, NotUsed)> {
    uplinks.left_out.iter().map(|left| (left.interface.as_str(), left.why.clone())).collect()
}

#[test]
fn every_interface_with_a_route_is_an_uplink_the_systems_choice_first() {
    let found = laptop().choose(&[SERVER]);
    assert_eq!(found.interfaces(), ["wlan0", "lte0"]);
    assert_eq!(found.left_out, []);
    let mut other = laptop();
    other.system.clear();
    let found = other.prefers(SERVER, 2).choose(&[SERVER]);
    assert_eq!(found.interfaces(), ["lte0", "wlan0"]);
}

#[test]
fn metered_uplinks_are_spared_unless_all_are() {
    let mut found = laptop().choose(&[SERVER]);
    found.set_metered(&BTreeSet::from(["lte0".to_owned()]));
    assert_eq!(found.spared(), ["lte0"]);
    found.set_metered(&BTreeSet::from(["lte0".to_owned(), "wlan0".to_owned()]));
    assert_eq!(found.spared(), [] as [&str; 0], "there is nothing else");
}

#[test]
fn a_lone_uplink_needs_no_socket_of_its_own() {
    assert_eq!(laptop().choose(&[SERVER]).places().len(), 2);
    let mut lone = laptop();
    lone.through.retain(|(link, _)| *link == 1);
    assert_eq!(lone.choose(&[SERVER]).places(), []);
}

#[test]
fn an_interface_without_a_route_is_left_out_with_its_reason() {
    let wifi = ("wlan0", LinkKind::Plain, &["192.168.1.5"][..]);
    let spare = ("eth9", LinkKind::Plain, &["10.9.0.1"][..]);
    let docker = ("docker0", LinkKind::Inside, &["172.17.0.1"][..]);
    let found = host(&[wifi, spare, docker]).prefers(SERVER, 1).leads(1).choose(&[SERVER]);
    assert_eq!(found.interfaces(), ["wlan0"]);
    assert_eq!(left_out(&found), [("eth9", NotUsed::NoRoute)], "and no word of a bridge");
}

#[test]
fn nothing_leaves_beside_a_tunnel_that_the_system_uses() {
    let wifi = ("wlan0", LinkKind::Plain, &["192.168.1.5"][..]);
    let vpn = ("tun0", LinkKind::Tunnel, &["10.8.0.2"][..]);
    let found = host(&[wifi, vpn]).prefers(SERVER, 2).leads(1).leads(2).choose(&[SERVER]);
    assert_eq!(found.interfaces(), ["tun0"]);
    assert_eq!(left_out(&found), [("wlan0", NotUsed::BesideTunnel("tun0".to_owned()))]);
    assert_eq!(found.tunnel(), Some("tun0"));
    assert_eq!(found.beside_tunnel, BTreeSet::from([ip("192.168.1.5")]));
}

#[test]
fn a_tunnel_that_the_system_does_not_use_is_no_uplink() {
    let wifi = ("wlan0", LinkKind::Plain, &["192.168.1.5"][..]);
    let vpn = ("wg0", LinkKind::Tunnel, &["10.8.0.2"][..]);
    let found = host(&[wifi, vpn]).prefers(SERVER, 1).leads(1).leads(2).choose(&[SERVER]);
    assert_eq!(found.interfaces(), ["wlan0"]);
    assert_eq!(left_out(&found), [("wg0", NotUsed::Tunnel)]);
}

#[test]
fn where_there_are_only_tunnels_they_are_the_uplinks() {
    let a = ("tun0", LinkKind::Tunnel, &["10.1.0.2"][..]);
    let b = ("tun1", LinkKind::Tunnel, &["10.2.0.2"][..]);
    let found = host(&[a, b]).prefers(SERVER, 1).leads(1).leads(2).choose(&[SERVER]);
    assert_eq!(found.interfaces(), ["tun0", "tun1"]);
}

#[test]
fn a_route_of_ipsec_keeps_its_source_and_is_alone() {
    let mut both = laptop();
    let own = Some(ip("10.8.0.2"));
    both.system = vec![(ip(SERVER), SystemRoute { link: 1, source: own, table: IPSEC_TABLE })];
    let found = both.choose(&[SERVER]);
    assert_eq!(found.used.len(), 1);
    assert_eq!(found.used[0].ip, ip("10.8.0.2"));
    assert_eq!(left_out(&found), [("lte0", NotUsed::BesideTunnel("wlan0".to_owned()))]);
}

#[test]
fn each_address_of_the_destination_has_its_own_uplinks() {
    let inside = "10.100.0.1";
    let wifi = ("wlan0", LinkKind::Plain, &["192.168.1.5"][..]);
    let lte = ("lte0", LinkKind::Plain, &["10.64.0.9"][..]);
    let vpn = ("tun0", LinkKind::Tunnel, &["10.8.0.2"][..]);
    let all = host(&[wifi, lte, vpn]).leads(1).leads(2).leads(3);
    let found = all.prefers(SERVER, 1).prefers(inside, 3).choose(&[SERVER, inside]);
    let remotes = |name: &str| {
        let of = found.used.iter().filter(|uplink| uplink.interface == name);
        of.flat_map(|uplink| uplink.remotes.clone()).collect::<Vec<_>>()
    };
    assert_eq!(remotes("wlan0"), [remote(SERVER)]);
    assert_eq!(remotes("lte0"), [remote(SERVER)]);
    assert_eq!(remotes("tun0"), [remote(inside)], "and nobody else has it");
}

#[test]
fn addresses_of_this_host_and_of_many_need_no_uplink() {
    let found = laptop().prefers("10.64.0.9", 99).choose(&["127.0.0.1", "10.64.0.9", "224.0.0.1"]);
    assert_eq!(found.used, []);
}

/// The interfaces that are told to peers, where those named lead elsewhere.
fn told(links: &[(&str, LinkKind, &[&str])], leading: &[u32]) -> (Vec<String>, Vec<String>) {
    let mut host = leading.iter().fold(host(links), |host, &link| host.leads(link));
    let homes = std::mem::take(&mut host.homes);
    let found = keep_reachable(&homes, &mut host);
    let told = found.addresses.into_iter().map(|address| address.name).collect();
    (told, found.left_out.into_iter().map(|left| left.interface).collect())
}

#[test]
fn peers_are_told_what_they_can_reach() {
    let eth = ("eth0", LinkKind::Plain, &["192.0.2.7"][..]);
    let lan = ("eth1", LinkKind::Plain, &["192.168.77.1"][..]);
    let docker = ("docker0", LinkKind::Inside, &["172.17.0.1"][..]);
    let bridge = ("br0", LinkKind::Inside, &["192.0.2.8"][..]);
    let vpn = ("wg0", LinkKind::Tunnel, &["10.8.0.2"][..]);
    let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();

    let (all, out) = told(&[eth, lan, docker, vpn], &[1]);
    assert_eq!((all, out), (names(&["eth0"]), names(&["eth1", "docker0", "wg0"])));
    let (all, _) = told(&[eth, bridge, docker], &[1, 2]);
    assert_eq!(all, names(&["br0", "eth0"]), "a bridge with a route leads outside");
    let (all, out) = told(&[eth, lan, docker], &[]);
    assert_eq!(
        (all, out),
        (names(&["eth0", "eth1"]), names(&["docker0"])),
        "two cables, no router"
    );
    let (all, out) = told(&[docker], &[]);
    assert_eq!((all, out), (names(&["docker0"]), vec![]), "better than nothing");
    let router = ("lo", LinkKind::Loopback, &["198.51.100.1"][..]);
    let (all, _) = told(&[eth, router], &[1]);
    assert_eq!(all, names(&["eth0", "lo"]), "an address of the host itself");
    let (all, _) = told(&[vpn], &[1]);
    assert_eq!(all, names(&["wg0"]), "a container that has nothing else");
    let (all, _) = told(&[eth, vpn], &[]);
    assert_eq!(all, names(&["eth0", "wg0"]), "without a router nothing is under a tunnel");
}

#[test]
fn link_local_addresses_name_their_interface() {
    let (eth, wifi) =
        (("eth0", LinkKind::Plain, &["fd00::1"][..]), ("wlan0", LinkKind::Plain, &["fd01::1"][..]));
    let uplinks = host(&[eth, wifi]).leads(1).leads(2).choose(&["fe80::7"]);
    assert_eq!(uplinks.used, [], "every interface has a route to them");
}
