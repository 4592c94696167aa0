use std::net::Ipv4Addr;

use super::*;
use crate::bind::BindTo;

fn ip(last: u8) -> IpAddr {
    Ipv4Addr::new(127, 0, 0, last).into()
}

/// Loopback addresses can all be bound, so that a test can say which of them the host has.
fn host(addresses: &[(&str, u32, u8)]) -> Vec<HostAddress> {
    let address = |&(name, index, last): &(&str, u32, u8)| HostAddress::new(name, index, ip(last));
    addresses.iter().map(address).collect()
}

fn sockets(bind: &[BindTo], addresses: &[(&str, u32, u8)]) -> UdpSockets {
    let mut sockets = UdpSockets::bind(bind, 0).unwrap();
    assert_eq!(sockets.follow_to(host(addresses)), Followed::default(), "nothing to compare");
    sockets
}

fn at(last: u8, sockets: &UdpSockets) -> SocketAddr {
    SocketAddr::new(ip(last), sockets.bound().port())
}

/// IPv4 only: loopback may have an IPv6 address, too, which the tests' lists leave out.
fn bound(sockets: &UdpSockets) -> Vec<IpAddr> {
    sockets.bound().as_slice().iter().map(SocketAddr::ip).filter(IpAddr::is_ipv4).collect()
}

#[tokio::test]
async fn a_socket_of_an_address_waits_for_it_and_harms_no_other() {
    let both = [BindTo::Address(ip(41)), BindTo::Address(ip(42))];
    let all = [("a", 1, 41), ("b", 2, 42)];
    let mut s = sockets(&both, &all);
    let found = s.follow_to(host(&all[..1]));
    assert_eq!((found.gone, found.came.len()), (vec![at(42, &s)], 0));
    assert_eq!((bound(&s), s.count()), (vec![ip(41)], 2));
    assert_eq!(s.follow_to(host(&all[..1])), Followed::default(), "said once");
    let found = s.follow_to(host(&all));
    let back = NewAddress { address: at(42, &s), instead_of: Some(at(42, &s)) };
    assert_eq!((found.gone.len(), found.came), (0, vec![back]));
    assert_eq!(bound(&s), [ip(41), ip(42)]);
}

#[tokio::test]
async fn an_address_that_no_interface_lists_is_never_missed() {
    let mut s = sockets(&[BindTo::Address(ip(43))], &[("a", 1, 1)]);
    assert!(s.follow_to(host(&[("b", 2, 2)])).gone.is_empty());
    assert_eq!(bound(&s), [ip(43)]);
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_socket_of_an_interface_takes_its_new_address_on_the_same_port() {
    let mut s = sockets(&[BindTo::Interface("lo".to_owned())], &[("lo", 1, 1)]);
    let (old, port) = (at(1, &s), s.bound().port());
    // An address beside its own changes nothing, nor does its own on another interface help.
    assert_eq!(s.follow_to(host(&[("lo", 1, 51), ("lo", 1, 1)])), Followed::default());
    let found = s.follow_to(host(&[("lo", 1, 51), ("eth7", 9, 1)]));
    let new = NewAddress { address: at(51, &s), instead_of: Some(old) };
    assert_eq!((found.gone, found.came), (vec![old], vec![new]));
    assert_eq!((bound(&s), s.bound().port()), (vec![ip(51)], port));
    assert_eq!(s.socket_for(at(51, &s)), Some(0));
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn the_socket_of_an_interface_made_anew_is_opened_anew() {
    let mut s = sockets(&[BindTo::Interface("lo".to_owned())], &[("lo", 1, 1)]);
    let old = at(1, &s);
    assert_eq!(s.follow_to(host(&[])).gone, [old]);
    assert!(bound(&s).is_empty());
    assert_eq!(s.bound().port(), old.port(), "kept for its return");
    // The old one is kept to an interface that is no more: it is not in the way of the new one.
    let elsewhere = Place::of_interface(ip(71), "lo");
    s.sockets[0].io = bind::open_one(&elsewhere, 0).and_then(Socket::new).unwrap().io;
    let found = s.follow_to(host(&[("lo", 8, 1)]));
    assert_eq!(found.came, [NewAddress { address: old, instead_of: Some(old) }]);
    assert_eq!((s.sockets[0].interface, s.sockets[0].is_lost), (8, false));
    // Between two looks: nobody noticed that it was away, and nothing is said.
    assert_eq!(s.follow_to(host(&[("lo", 9, 1)])), Followed::default());
    assert_eq!(s.sockets[0].interface, 9);
}

#[tokio::test]
async fn sockets_on_every_address_stay_and_say_what_vanished() {
    let mut s = sockets(&[BindTo::Any], &[("a", 1, 61), ("b", 2, 62)]);
    let found = s.follow_to(host(&[("b", 2, 62), ("b", 2, 63)]));
    assert_eq!(found, Followed { vanished: vec![ip(61)], ..Followed::default() });
    assert!(s.is_on_any(at(61, &s)));
}

#[tokio::test]
async fn an_address_that_cannot_be_opened_yet_is_tried_again() {
    let mut s = sockets(&[BindTo::Interface("lo".to_owned())], &[("lo", 1, 1)]);
    let foreign = HostAddress::new("lo", 1, Ipv4Addr::new(192, 0, 2, 77).into());
    let found = s.follow_to(vec![foreign.clone()]);
    assert!(found.retry && found.gone.len() == 1 && found.came.is_empty(), "{found:?}");
    assert!(s.follow_to(vec![foreign]).retry, "until it can");
}
