//! SCTP over IP itself, on real raw sockets: each test has a network namespace, in which this user
//! may open them.
#![cfg(target_os = "linux")]

mod common;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use common::namespace::is_inside;
use common::*;
use manypath::{
    AssocClosed, Association, BindError, BindTo, Bytes, ConnectError, ConnectTarget, DEFAULT_PORT,
    Endpoint, EndpointOptions, SocketError,
};

const V4: &str = "127.0.0.1";
const V6: &str = "fd00::1";

/// Runs a test in its namespace.
fn raw(name: &str, test: impl Future<Output = ()>) {
    if is_inside(name) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(test);
    }
}

fn over_ip(ips: &[&str], sctp_port: u16, accept: bool) -> EndpointOptions {
    EndpointOptions { raw_ip: true, sctp_port, ..options(ips, accept) }
}

fn raw_server(ips: &[&str], sctp_port: u16) -> Endpoint {
    Endpoint::bind(over_ip(ips, sctp_port, true)).expect("a server")
}

fn raw_client(ips: &[&str]) -> Endpoint {
    Endpoint::bind(over_ip(ips, 0, false)).expect("a client")
}

fn at(ips: &[&str], sctp_port: u16) -> ConnectTarget {
    let remotes = ips.iter().map(|ip| SocketAddr::new(ip.parse().expect("an address"), 0));
    ConnectTarget { sctp_port, ..ConnectTarget::new(remotes) }
}

/// Sends bytes, and checks that they arrive.
async fn transfer(from: &Association, to: &Association, size: usize) {
    let data = Bytes::from(pattern(size));
    let sending = async {
        for start in (0..size).step_by(50_000) {
            from.send(on(0), data.slice(start..size.min(start + 50_000))).await.expect("queued");
        }
    };
    let receiving = async {
        let mut got = Vec::new();
        while got.len() < size {
            let message = to.recv().await.expect("more").expect("more");
            got.extend_from_slice(&message.payload.to_vec());
        }
        got
    };
    let ((), got) = within("the transfer", async { tokio::join!(sending, receiving) }).await;
    assert!(got == data, "all bytes in order");
}

#[test]
fn data_goes_over_ipv4_and_ipv6_without_udp() {
    raw("data_goes_over_ipv4_and_ipv6_without_udp", async {
        for (near, far) in [("127.0.0.2", V4), ("fd00::2", V6)] {
            let (z, a) = (raw_server(&[far], DEFAULT_PORT), raw_client(&[near]));
            assert_eq!(z.raw_ip_port(), Some(DEFAULT_PORT));
            assert!(a.raw_ip_port().is_some_and(|port| port >= 49_152));
            let (from, to) = connected_to(&a, at(&[far], DEFAULT_PORT), &z).await;
            transfer(&from, &to, 3_000_000).await;
            transfer(&to, &from, 3_000_000).await;
            for path in from.paths().iter().chain(&to.paths()) {
                assert_eq!((path.local.port(), path.remote.port()), (0, 0));
            }
            assert_eq!(a.send_failures().total() + z.send_failures().total(), 0);
            within("shutdown", from.shutdown()).await.expect("everything is delivered");
        }
    });
}

#[test]
fn an_endpoint_on_every_address_takes_each_packet_once() {
    raw("an_endpoint_on_every_address_takes_each_packet_once", async {
        let (z, a) = (raw_server(&[], DEFAULT_PORT), raw_client(&[]));
        for far in [V4, "127.0.0.9", V6, "fd00::2"] {
            let (from, to) = connected_to(&a, at(&[far], DEFAULT_PORT), &z).await;
            transfer(&from, &to, 1_000_000).await;
            assert_eq!(to.paths()[0].local.ip(), far.parse::<IpAddr>().expect("an address"));
            let (sent, got) = (from.paths().remove(0).counters, to.paths().remove(0).counters);
            assert!(got.packets_received <= sent.packets_sent, "{sent:?} {got:?}");
            within("shutdown", from.shutdown()).await.expect("everything is delivered");
        }
    });
}

#[test]
fn endpoints_of_one_host_do_not_disturb_each_other() {
    raw("endpoints_of_one_host_do_not_disturb_each_other", async {
        // All of them get all packets of all of them.
        let ports = [DEFAULT_PORT, 5001, 5002];
        let servers = ports.map(|port| raw_server(&[], port));
        let clients = ports.map(|_| raw_client(&[]));
        let mut ends = Vec::new();
        for ((a, z), port) in clients.iter().zip(&servers).zip(ports) {
            ends.push(connected_to(a, at(&[V4], port), z).await);
        }
        let transfers = ends.iter().map(|(from, to)| transfer(from, to, 1_000_000));
        for transfer in transfers {
            transfer.await;
        }
        let [(a, b), (c, d), (e, f)] = &ends[..] else { panic!("three") };
        tokio::join!(transfer(a, b, 500_000), transfer(d, c, 500_000), transfer(e, f, 500_000));
        for (from, _) in &ends {
            within("shutdown", from.shutdown()).await.expect("everything is delivered");
        }
    });
}

#[test]
fn nobody_answers_for_a_port_that_nobody_has() {
    raw("nobody_answers_for_a_port_that_nobody_has", async {
        let (_z, a) = (raw_server(&[], DEFAULT_PORT), raw_client(&[]));
        let target = at(&[V4], 7777).within(Duration::from_secs(2));
        let error = a.connect(target).await.expect_err("nobody is there");
        assert_eq!(error, ConnectError::Failed(AssocClosed::HandshakeTimedOut));
    });
}

#[test]
fn peers_are_answered_over_udp_and_over_ip_as_they_ask() {
    raw("peers_are_answered_over_udp_and_over_ip_as_they_ask", async {
        let z = raw_server(&[V4], DEFAULT_PORT);
        let (over_udp, over_ip) = (client(&["127.0.0.2"]), raw_client(&["127.0.0.3"]));
        let (a, to_a) = connected(&over_udp, &z).await;
        let (b, to_b) = connected_to(&over_ip, at(&[V4], DEFAULT_PORT), &z).await;
        for (from, to, is_raw) in [(&a, &to_a, false), (&b, &to_b, true)] {
            transfer(from, to, 500_000).await;
            transfer(to, from, 500_000).await;
            assert_eq!(to.paths()[0].remote.port() == 0, is_raw);
        }
    });
}

#[test]
fn a_host_without_sctp_is_named_at_once() {
    raw("a_host_without_sctp_is_named_at_once", async {
        // A socket on one address leaves the others to the kernel, which knows no SCTP.
        for (near, far) in [(V4, "127.0.0.2"), (V6, "fd00::2")] {
            let a = raw_client(&[near]);
            let target = at(&[far], DEFAULT_PORT).within(LONG);
            let begun = tokio::time::Instant::now();
            let error = a.connect(target).await.expect_err("nobody is there");
            assert_eq!(error, ConnectError::Failed(AssocClosed::NoSuchProtocol), "{far}");
            assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
        }
    });
}

#[test]
fn an_sctp_port_is_one_endpoints() {
    raw("an_sctp_port_is_one_endpoints", async {
        let _z = raw_server(&[V4], DEFAULT_PORT);
        let error = Endpoint::bind(over_ip(&[], DEFAULT_PORT, true)).expect_err("it is taken");
        let is_named = matches!(error, BindError::Socket(SocketError::SctpPortInUse(DEFAULT_PORT)));
        assert!(is_named, "{error}");
        let _other_address = raw_server(&["127.0.0.2"], DEFAULT_PORT);
        let _other_port = raw_server(&[], 5001);
    });
}

#[tokio::test]
async fn without_raw_ip_addresses_need_a_udp_port() {
    let a = client(&[V4]);
    let error = a.connect(at(&["127.0.0.2"], DEFAULT_PORT)).await.expect_err("no way there");
    assert_eq!(error, ConnectError::NoRawIp { remote: [127, 0, 0, 2].into() });
    assert!(error.to_string().contains("127.0.0.2 has no UDP port"), "{error}");
}

#[test]
fn an_interface_named_is_used_over_ip() {
    raw("an_interface_named_is_used_over_ip", async {
        let z = raw_server(&[V4], DEFAULT_PORT);
        let bind = vec![BindTo::Interface("lo".to_owned())];
        let a = EndpointOptions { bind, sctp_port: 5001, ..over_ip(&[], 0, false) };
        let a = Endpoint::bind(a).expect("a client");
        let z_at = at(&[V4], DEFAULT_PORT);
        let (from, to) = connected_to(&a, z_at, &z).await;
        transfer(&from, &to, 500_000).await;
        assert_eq!(a.notes(), [] as [&str; 0]);
    });
}
