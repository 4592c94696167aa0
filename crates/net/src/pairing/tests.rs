use super::*;

fn addrs(list: &[&str]) -> Vec<SocketAddr> {
    list.iter().map(|a| a.parse().unwrap()).collect()
}

/// Pairs, with the kernel's routes as (remote, source); the result as `local>remote`.
fn paired(locals: &[&str], remotes: &[&str], routes: &[(&str, &str)]) -> Vec<String> {
    let route = |remote: SocketAddr| {
        let to = remote.ip().to_string();
        routes.iter().find(|r| r.0 == to).map(|r| r.1.parse().unwrap())
    };
    pair(&addrs(locals), &addrs(remotes), route)
        .iter()
        .map(|(l, r)| format!("{}>{}", l.ip(), r.ip()))
        .collect()
}

#[test]
fn two_uplinks_to_one_address_are_two_paths() {
    let paths =
        paired(&["10.0.1.2:1", "10.0.2.2:1"], &["192.0.2.1:9"], &[("192.0.2.1", "10.0.2.2")]);
    assert_eq!(paths, ["10.0.2.2>192.0.2.1", "10.0.1.2>192.0.2.1"], "the kernel's choice first");
}

#[test]
fn one_address_to_two_is_two_paths() {
    let paths = paired(
        &["10.0.1.2:1"],
        &["192.0.2.1:9", "192.0.2.2:9"],
        &[("192.0.2.1", "10.0.1.2"), ("192.0.2.2", "10.0.1.2")],
    );
    assert_eq!(paths, ["10.0.1.2>192.0.2.1", "10.0.1.2>192.0.2.2"]);
}

#[test]
fn two_by_two_follows_the_routes_when_they_differ() {
    let paths = paired(
        &["10.0.1.2:1", "10.0.2.2:1"],
        &["10.0.2.9:9", "10.0.1.9:9"],
        &[("10.0.2.9", "10.0.2.2"), ("10.0.1.9", "10.0.1.2")],
    );
    assert_eq!(paths, ["10.0.2.2>10.0.2.9", "10.0.1.2>10.0.1.9"]);
}

#[test]
fn one_default_route_for_all_falls_back_to_order() {
    let routes = [("192.0.2.1", "10.0.1.2"), ("192.0.2.2", "10.0.1.2")];
    let paths = paired(&["10.0.1.2:1", "10.0.2.2:1"], &["192.0.2.1:9", "192.0.2.2:9"], &routes);
    assert_eq!(paths, ["10.0.1.2>192.0.2.1", "10.0.2.2>192.0.2.2"]);
}

#[test]
fn no_route_and_uneven_lists_wrap() {
    let paths =
        paired(&["10.0.1.2:1", "10.0.2.2:1"], &["1.1.1.1:9", "2.2.2.2:9", "3.3.3.3:9"], &[]);
    assert_eq!(paths, ["10.0.1.2>1.1.1.1", "10.0.2.2>2.2.2.2", "10.0.1.2>3.3.3.3"]);
}

#[test]
fn families_never_mix_and_the_first_remote_leads() {
    let paths =
        paired(&["10.0.1.2:1", "[2001:db8::2]:1"], &["[2001:db8::1]:9", "192.0.2.1:9"], &[]);
    assert_eq!(paths, ["2001:db8::2>2001:db8::1", "10.0.1.2>192.0.2.1"]);
    assert!(paired(&["10.0.1.2:1"], &["[2001:db8::1]:9"], &[]).is_empty());
}

#[test]
fn loopback_keeps_to_itself_where_it_can() {
    let paths = paired(&["10.0.1.2:1", "127.0.0.1:1"], &["127.0.0.1:9", "192.0.2.1:9"], &[]);
    assert_eq!(paths, ["127.0.0.1>127.0.0.1", "10.0.1.2>192.0.2.1"]);
    assert_eq!(paired(&["127.0.0.1:1"], &["10.0.1.2:9"], &[]), ["127.0.0.1>10.0.1.2"]);
}

#[test]
fn repeats_make_no_second_path() {
    assert_eq!(paired(&["127.0.0.2:1", "127.0.0.2:1"], &["127.0.0.3:9"; 2], &[]).len(), 1);
    assert!(paired(&[], &["127.0.0.3:9"], &[]).is_empty());
}

/// As `local>remote`.
fn shown(pairs: &[(SocketAddr, SocketAddr)]) -> Vec<String> {
    pairs.iter().map(|(l, r)| format!("{}>{}", l.ip(), r.ip())).collect()
}

#[test]
fn every_other_pair_of_a_family_is_a_candidate() {
    let locals = addrs(&["10.0.1.2:1", "10.0.2.2:1", "[fd00::1]:1"]);
    let remotes = addrs(&["192.0.2.1:9", "172.17.0.1:9", "[fd00::9]:9"]);
    let pairs = Pairs::of(&locals, &remotes, |_| None);
    let paths = ["10.0.1.2>192.0.2.1", "10.0.2.2>172.17.0.1", "fd00::1>fd00::9"];
    assert_eq!(shown(&pairs.paths), paths);
    assert_eq!(shown(&pairs.candidates), ["10.0.2.2>192.0.2.1", "10.0.1.2>172.17.0.1"]);
}

#[test]
fn an_uplink_is_paired_with_what_it_leads_to_only() {
    let uplink = |interface: &str, ip: &str, remotes: &[&str]| crate::Uplink {
        interface: interface.to_owned(),
        ip: ip.parse().unwrap(),
        remotes: addrs(remotes),
        is_metered: false,
    };
    let (public, inside) = ("192.0.2.1:9", "10.100.0.1:9");
    let used = vec![
        uplink("wlan0", "10.0.1.2", &[public]),
        uplink("tun0", "10.8.0.2", &[inside]),
        uplink("lte0", "10.0.2.2", &[public]),
    ];
    let uplinks = Uplinks { used, ..Uplinks::default() };
    let pairs = Pairs::of_uplinks(&uplinks, 1, |_| None);
    let paths = ["10.0.1.2>192.0.2.1", "10.0.2.2>192.0.2.1", "10.8.0.2>10.100.0.1"];
    assert_eq!(shown(&pairs.paths), paths);
    assert_eq!(shown(&pairs.candidates), [] as [&str; 0]);
}

#[test]
fn link_local_addresses_of_ipv6_are_matched_among_themselves_only() {
    let locals = ["[fd00::1]:1", "[fe80::a]:1"];
    let routes = [("fe80::7", "fe80::a"), ("fd00::7", "fd00::1")];
    let both = paired(&locals, &["[fe80::7%2]:9", "[fd00::7]:9"], &routes);
    assert_eq!(both, ["fe80::a>fe80::7", "fd00::1>fd00::7"]);
    assert_eq!(paired(&locals[..1], &["[fe80::7%2]:9"], &[]), [""; 0]);
    assert_eq!(paired(&locals[1..], &["[fd00::7]:9", "[::1]:9"], &[]), [""; 0]);
    let pairs = Pairs::of(&addrs(&locals), &addrs(&["[fe80::7%2]:9", "[fd00::7]:9"]), |_| None);
    assert_eq!(pairs.candidates, [], "none crosses");
}
