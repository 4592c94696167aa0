//! Paths through TURN relays, over loopback sockets.

mod common;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use common::*;
use manypath::{
    Association, BindTo, Bytes, ConnectError, ConnectTarget, DirectPathError, Endpoint,
    EndpointOptions, PathRank, PathState, Relay, RelayStatus, RelayUse, RelayedAddress,
    SendOptions,
};
use manypath_net::{
    Limits, PeerRules, RelayServer, RelayServerOptions, ServerConfig, StunPort, User,
};
use tokio::task::JoinHandle;

/// Relays that were started.
static STARTED: AtomicU8 = AtomicU8::new(1);

/// A running TURN server; it ends when this is dropped.
struct Turn {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Turn {
    fn start(ip: &str, port: u16) -> Turn {
        Turn::start_knowing(ip, port, &[])
    }

    /// A relay that knows other relays.
    fn start_knowing(ip: &str, port: u16, relays: &[SocketAddr]) -> Turn {
        // A relay that is restarted has another one.
        let secret = STARTED.fetch_add(1, Ordering::Relaxed);
        let config = ServerConfig {
            realm: "test".into(),
            users: vec![User { name: "ann".into(), password: "secret".into() }],
            limits: Limits::default(),
            peers: PeerRules { allow: vec!["127.0.0.0/8".parse().unwrap()] },
            grants_open: true,
            secret: [secret; 32],
        };
        let mut server = RelayServer::bind(RelayServerOptions {
            config,
            listen: vec![BindTo::Address(ip.parse().unwrap())],
            port,
            ports: 49152..=65535,
            external: None,
            stun_port: StunPort::Off,
        })
        .unwrap();
        server.name_relays(relays);
        let address = server.addresses()[0];
        Turn { address, task: tokio::spawn(async move { server.run().await }) }
    }

    fn relay(&self, name: &str, password: &str) -> Relay {
        let (user, password) = ("ann".into(), password.into());
        Relay { name: name.into(), address: self.address, user, password }
    }
}

fn client_via(relays: Vec<Relay>) -> Endpoint {
    let quick = config(&[
        ("preset", "cmt"),
        ("rto_initial", "100 ms"),
        ("rto_min", "100 ms"),
        ("rto_max", "400 ms"),
        ("hb_interval", "200 ms"),
        ("path_max_retrans", "2"),
    ]);
    let options = options(&["127.0.0.1"], false);
    Endpoint::bind(EndpointOptions { relays, config: quick, ..options }).unwrap()
}

/// Waits until `count` paths are active, and gives their relays.
async fn active(from: &Association, count: usize) -> Vec<Option<String>> {
    within("the paths are active", async {
        loop {
            let paths = from.paths();
            let usable: Vec<_> = paths.iter().filter(|p| p.state == PathState::Active).collect();
            if usable.len() == count {
                return usable.iter().map(|p| from.relay(p.local)).collect();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
}

/// Sends and receives `bytes` bytes.
async fn carry(from: &Association, to: &Association, bytes: usize) {
    let content = pattern(50_000);
    let sending = async {
        for _ in 0..bytes / content.len() {
            from.send(SendOptions::default(), Bytes::from(content.clone())).await.unwrap();
        }
    };
    let receiving = async {
        let mut left = bytes / content.len() * content.len();
        while left > 0 {
            let message = to.recv().await.unwrap().expect("more is to come");
            assert!(content.starts_with(&message.payload.to_vec()));
            left -= message.payload.len();
        }
    };
    within("all arrives", async { tokio::join!(sending, receiving) }).await;
}

fn named(name: &str) -> Option<String> {
    Some(name.to_owned())
}

#[tokio::test]
async fn data_flows_directly_and_through_every_relay() {
    let relays = [Turn::start("127.0.0.21", 0), Turn::start("127.0.0.22", 0)];
    let client =
        client_via(vec![relays[0].relay("one", "secret"), relays[1].relay("two", "secret")]);
    let server = server(&["127.0.0.2"]);
    let (from, to) = connected(&client, &server).await;
    let mut names = active(&from, 3).await;
    names.sort();
    assert_eq!(names, [None, named("one"), named("two")]);
    carry(&from, &to, 20_000_000).await;
    for path in from.paths() {
        assert!(path.counters.acked_bytes > 100_000, "every path carries data: {path:?}");
    }
    // To the peer, a relay's address is one more address of ours.
    let status = client.relays();
    for relay in &status {
        let relayed = relay.relayed.expect("allocated");
        assert!(to.paths().iter().any(|p| p.remote == relayed), "{relayed}");
        assert_eq!(relay.error, None);
    }
}

#[tokio::test]
async fn a_relay_that_dies_takes_one_path_and_comes_back_with_another() {
    let mut turn = Turn::start("127.0.0.23", 0);
    let client = client_via(vec![turn.relay("one", "secret")]);
    let server = server(&["127.0.0.2"]);
    let (from, to) = connected(&client, &server).await;
    active(&from, 2).await;
    let old = client.relays()[0].relayed.unwrap();
    carry(&from, &to, 2_000_000).await;

    let port = turn.address.port();
    turn.task.abort();
    let _ = (&mut turn.task).await;
    carry(&from, &to, 2_000_000).await;
    assert_eq!(active(&from, 1).await, [None], "only the direct path is left");

    let _turn = Turn::start("127.0.0.23", port);
    assert_eq!(active(&from, 2).await.last(), Some(&named("one")));
    let new = client.relays()[0].relayed.unwrap();
    assert_ne!(old, new);
    assert!(from.paths().iter().all(|p| p.local != old), "the old path is gone");
    carry(&from, &to, 2_000_000).await;
}

#[tokio::test]
async fn a_relay_that_joins_the_others_during_an_association_is_used() {
    let one = Turn::start("127.0.0.28", 0);
    let client = client_via(vec![one.relay("one", "secret")]);
    let server = server(&["127.0.0.2"]);
    let (from, to) = connected(&client, &server).await;
    active(&from, 2).await;
    let two = Turn::start_knowing("127.0.0.29", 0, &[one.address]);
    let mut names = active(&from, 3).await;
    names.sort();
    assert_eq!(names, [None, named(&two.address.to_string()), named("one")]);
    carry(&from, &to, 20_000_000).await;
    for path in from.paths() {
        assert!(path.counters.acked_bytes > 100_000, "every path carries data: {path:?}");
    }
    let known: Vec<_> = client.relays().iter().map(|relay| relay.address).collect();
    assert_eq!(known, [one.address, two.address]);
}

#[tokio::test]
async fn a_relay_that_refuses_us_holds_nothing_up_and_says_why() {
    let turn = Turn::start("127.0.0.24", 0);
    let silent = Relay {
        name: "silent".into(),
        address: "127.0.0.25:9".parse().unwrap(),
        user: "ann".into(),
        password: "secret".into(),
    };
    let client = client_via(vec![turn.relay("one", "guess"), silent]);
    let server = server(&["127.0.0.2"]);
    let (from, to) = connected(&client, &server).await;
    carry(&from, &to, 1_000_000).await;
    let status =
        within("an error", client.relays_until(|all| all.iter().any(|r| r.error.is_some()))).await;
    assert_eq!(status[0].relayed, None);
    assert!(status[0].error.as_ref().unwrap().contains("401"), "{status:?}");
    assert_eq!(from.paths().len(), 1);
}

#[tokio::test]
async fn an_endpoint_that_ends_gives_its_relays_back() {
    let turn = Turn::start("127.0.0.26", 0);
    let client = client_via(vec![turn.relay("one", "secret")]);
    let server = server(&["127.0.0.2"]);
    let (from, _to) =
        connected_to(&client, ConnectTarget::new(server.local_addresses()), &server).await;
    active(&from, 2).await;
    let relayed = client.relays()[0].relayed.unwrap();
    assert!(std::net::UdpSocket::bind(relayed).is_err(), "in use");
    within("the end", from.shutdown()).await.unwrap();
    drop((from, client));
    within("the relay's socket closes", async {
        while std::net::UdpSocket::bind(relayed).is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

/// A server behind relays that uses no other paths.
fn server_via(relays: Vec<Relay>) -> Endpoint {
    let options = EndpointOptions { direct_paths: false, ..behind_relays(relays) };
    Endpoint::bind(options).unwrap()
}

fn behind_relays(relays: Vec<Relay>) -> EndpointOptions {
    EndpointOptions { relays, relay_peers: false, ..options(&["127.0.0.2"], true) }
}

/// The address that the only relay of an endpoint gave it, once that is known.
async fn relayed_of(endpoint: &Endpoint) -> SocketAddr {
    let is_there = |all: &[RelayStatus]| all.iter().all(|relay| relay.relayed.is_some());
    let status = within("an address", endpoint.relays_until(is_there)).await;
    assert!(status[0].is_open, "{status:?}");
    status[0].relayed.unwrap()
}

/// A peer at a relayed address alone.
fn behind(relay: &Turn, address: SocketAddr) -> ConnectTarget {
    ConnectTarget::new([]).through([RelayedAddress { address, relay: relay.address }])
}

#[tokio::test]
async fn an_endpoint_is_reached_through_its_relay() {
    let turn = Turn::start("127.0.0.31", 0);
    let server = server_via(vec![turn.relay("one", "secret")]);
    let relayed = relayed_of(&server).await;
    let client = client(&["127.0.0.1"]);
    let (from, to) = connected_to(&client, behind(&turn, relayed), &server).await;
    carry(&from, &to, 5_000_000).await;
    carry(&to, &from, 5_000_000).await;
    let paths = to.paths();
    assert_eq!(paths.len(), 1, "{paths:?}");
    assert_eq!((paths[0].local, to.relay(paths[0].local)), (relayed, named("one")));
    assert_eq!(paths[0].remote, address(&client), "the peer itself uses no relay");
    assert_eq!(from.paths()[0].remote, relayed);
}

/// The ends know only the relayed address at first, and open a direct path while data flows.
#[tokio::test]
async fn ends_that_meet_at_a_relay_open_a_direct_path_and_keep_the_relay_as_a_backup() {
    let turn = Turn::start("127.0.0.36", 0);
    let server = Endpoint::bind(behind_relays(vec![turn.relay("one", "secret")])).unwrap();
    let relayed = relayed_of(&server).await;
    let client = client(&["127.0.0.1"]);
    let (from, to) = connected_to(&client, behind(&turn, relayed), &server).await;
    active(&from, 2).await;
    carry(&from, &to, 5_000_000).await;
    let paths = from.paths();
    let direct = paths.iter().find(|path| path.remote == address(&server)).expect("a path");
    let through = paths.iter().find(|path| path.remote == relayed).expect("a path");
    assert_eq!((direct.rank, through.rank), (PathRank::NORMAL, PathRank::Backup));
    let [direct, through] = [direct, through].map(|path| path.counters.bytes_sent);
    assert!(direct > 4_000_000 && through < 1_000_000, "{direct} {through}");
}

#[tokio::test]
async fn the_relayed_address_of_a_peer_comes_first_and_its_own_join() {
    let turn = Turn::start("127.0.0.32", 0);
    let server = server_via(vec![turn.relay("one", "secret")]);
    let relayed = relayed_of(&server).await;
    let client = client(&["127.0.0.1"]);
    let target = ConnectTarget { remotes: server.local_addresses(), ..behind(&turn, relayed) };
    let (from, to) = connected_to(&client, target, &server).await;
    active(&from, 2).await;
    let remotes: Vec<_> = from.paths().iter().map(|path| path.remote).collect();
    assert_eq!(remotes, [relayed, address(&server)]);
    carry(&from, &to, 5_000_000).await;
}

#[tokio::test]
async fn more_peers_than_channels_are_served_through_one_relay() {
    let turn = Turn::start("127.0.0.33", 0);
    let server = server_via(vec![turn.relay("one", "secret")]);
    let relayed = relayed_of(&server).await;
    let mut pairs = Vec::new();
    for _ in 0..40 {
        let client = client(&["127.0.0.1"]);
        let (from, to) = connected_to(&client, behind(&turn, relayed), &server).await;
        pairs.push((client, from, to));
    }
    for (_, from, to) in &pairs {
        carry(from, to, 100_000).await;
        carry(to, from, 100_000).await;
    }
}

#[tokio::test]
async fn a_relay_that_was_restarted_gives_another_address_and_associations_move_there() {
    let mut turn = Turn::start("127.0.0.34", 0);
    let server = server_via(vec![turn.relay("one", "secret")]);
    let old = relayed_of(&server).await;
    let client = client(&["127.0.0.1"]);
    let (from, to) = connected_to(&client, behind(&turn, old), &server).await;
    carry(&from, &to, 1_000_000).await;

    let port = turn.address.port();
    turn.task.abort();
    let _ = (&mut turn.task).await;
    let _turn = Turn::start("127.0.0.34", port);
    // The server's packets tell it that the relay has lost its address.
    carry(&to, &from, 1_000_000).await;
    let new = relayed_of(&server).await;
    assert_ne!(new, old);
    assert!(to.paths().iter().all(|path| path.local == new), "{:?}", to.paths());
    carry(&from, &to, 1_000_000).await;
}

#[tokio::test]
async fn a_sender_that_knows_a_number_alone_reaches_the_endpoint_also_after_a_restart() {
    let turn = Turn::start("127.0.0.37", 0);
    let options = |name: &str| EndpointOptions {
        relay_numbers: true,
        direct_paths: false,
        ..behind_relays(vec![turn.relay(name, "secret")])
    };
    let [one, two] = ["one", "two"].map(|name| Endpoint::bind(options(name)).unwrap());
    let first = relayed_of(&one).await;
    relayed_of(&two).await;
    let number = one.relays()[0].number.expect("a number");
    assert_ne!(two.relays()[0].number, Some(number));
    let look_up = || manypath::look_up_number(turn.address, number, &[]);
    assert_eq!(within("an answer", look_up()).await.unwrap(), first);
    let [before, after] = [client(&["127.0.0.1"]), client(&["127.0.0.1"])];
    let (from, to) = connected_to(&before, behind(&turn, first), &one).await;
    carry(&from, &to, 10_000).await;

    // The relay is restarted at the same port.
    let port = turn.address.port();
    drop(turn);
    let again = within("the port is free", async {
        while std::net::UdpSocket::bind(("127.0.0.37", port)).is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Turn::start("127.0.0.37", port)
    })
    .await;
    let has_moved = |all: &[RelayStatus]| all[0].relayed.is_some_and(|relayed| relayed != first);
    let status = within("another address", one.relays_until(has_moved)).await;
    assert_eq!(status[0].number, Some(number));
    let second = manypath::look_up_number(again.address, number, &[]).await.unwrap();
    assert_eq!(Some(second), status[0].relayed);
    let (from, to) = connected_to(&after, behind(&again, second), &one).await;
    carry(&from, &to, 10_000).await;
}

// ---- Relays to meet only, and relays for everything ----

/// Longer than a direct path takes here.
const SOON: Duration = Duration::from_secs(10);

fn with_use(relay_use: RelayUse, options: EndpointOptions) -> Endpoint {
    Endpoint::bind(EndpointOptions { relay_use, ..options }).unwrap()
}

/// Bytes that left through the relay.
fn relayed_bytes(association: &Association, relayed: SocketAddr) -> u64 {
    let paths = association.paths();
    let through = paths.iter().filter(|p| p.remote == relayed || p.local == relayed);
    through.map(|path| path.counters.bytes_sent).sum()
}

/// Either end alone may want it: both hold their content back.
#[tokio::test]
async fn no_content_goes_through_a_relay_that_is_there_to_meet() {
    let turn = Turn::start("127.0.0.41", 0);
    for (here, there) in
        [(RelayUse::ToMeet, RelayUse::Beside), (RelayUse::Beside, RelayUse::ToMeet)]
    {
        let server = with_use(there, behind_relays(vec![turn.relay("one", "secret")]));
        let relayed = relayed_of(&server).await;
        let client = with_use(here, options(&["127.0.0.1"], false));
        let (from, to) = connected_to(&client, behind(&turn, relayed), &server).await;
        to.direct_path(SOON).await.unwrap();
        within("a wish", async {
            while from.paths().len() < 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        from.direct_path(SOON).await.unwrap();
        let before = [relayed_bytes(&from, relayed), relayed_bytes(&to, relayed)];
        carry(&from, &to, 2_000_000).await;
        carry(&to, &from, 2_000_000).await;
        let after = [relayed_bytes(&from, relayed), relayed_bytes(&to, relayed)];
        let more = after[0] - before[0] + after[1] - before[1];
        assert!(more < 20_000, "{here:?} {there:?}: {more} bytes of SACKs and heartbeats");
    }
}

#[tokio::test]
async fn content_that_no_relay_may_carry_waits_for_a_direct_path_in_vain() {
    let turn = Turn::start("127.0.0.42", 0);
    let server = with_use(RelayUse::Only, behind_relays(vec![turn.relay("one", "secret")]));
    let relayed = relayed_of(&server).await;
    let client = with_use(RelayUse::ToMeet, options(&["127.0.0.1"], false));
    let (from, to) = connected_to(&client, behind(&turn, relayed), &server).await;
    let limit = Duration::from_millis(500);
    assert_eq!(from.direct_path(limit).await, Err(DirectPathError::NotFound(limit)));
    assert_eq!(to.direct_path(limit).await, Ok(()), "it does not know of the wish");
    let paths = [from.paths(), to.paths()].concat();
    assert!(paths.iter().all(|p| p.local == relayed || p.remote == relayed), "{paths:?}");
    let ending = async { tokio::join!(from.direct_path(SOON), async { to.abort("enough") }) };
    let (ended, ()) = within("an end", ending).await;
    assert!(matches!(ended, Err(DirectPathError::Closed(_))), "{ended:?}");
}

/// It has two addresses, which INIT ACK would list.
#[tokio::test]
async fn an_endpoint_that_takes_relays_alone_tells_nobody_where_it_is() {
    let turn = Turn::start("127.0.0.43", 0);
    let relays = vec![turn.relay("one", "secret")];
    let at_two = EndpointOptions { relays, ..options(&["127.0.0.2", "127.0.0.3"], true) };
    let server = with_use(RelayUse::Only, EndpointOptions { relay_peers: false, ..at_two });
    let relayed = relayed_of(&server).await;
    let client = client(&["127.0.0.1", "127.0.0.4"]);
    let (from, to) = connected_to(&client, behind(&turn, relayed), &server).await;
    carry(&from, &to, 1_000_000).await;
    carry(&to, &from, 1_000_000).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(from.paths().iter().all(|p| p.remote == relayed), "{:?}", from.paths());
    assert!(to.paths().iter().all(|p| p.local == relayed), "{:?}", to.paths());
    // Whoever knows its address meets silence there.
    let directly = ConnectTarget::new(server.local_addresses()).within(Duration::from_secs(1));
    assert!(client.connect(directly).await.is_err());
}

#[tokio::test]
async fn an_endpoint_with_relays_for_everything_reaches_peers_from_relay_to_relay() {
    let turn = Turn::start("127.0.0.44", 0);
    let server = Endpoint::bind(behind_relays(vec![turn.relay("one", "secret")])).unwrap();
    let relayed = relayed_of(&server).await;
    let relays = vec![turn.relay("own", "secret")];
    let at_two = EndpointOptions { relays, ..options(&["127.0.0.1", "127.0.0.4"], false) };
    let client = with_use(RelayUse::Only, EndpointOptions { relay_peers: false, ..at_two });
    let target = ConnectTarget { remotes: server.local_addresses(), ..behind(&turn, relayed) };
    let (from, to) = connected_to(&client, target, &server).await;
    carry(&from, &to, 1_000_000).await;
    carry(&to, &from, 1_000_000).await;
    let own = client.relays()[0].relayed.unwrap();
    let is_relayed = |p: &manypath::PathStats| (p.local, p.remote) == (own, relayed);
    assert!(from.paths().iter().all(is_relayed), "{:?}", from.paths());
    assert!(to.paths().iter().all(|p| p.remote == own), "{:?}", to.paths());
}

#[tokio::test]
async fn an_endpoint_without_relays_that_takes_them_alone_reaches_relayed_addresses_alone() {
    let turn = Turn::start("127.0.0.45", 0);
    let server = Endpoint::bind(behind_relays(vec![turn.relay("one", "secret")])).unwrap();
    let relayed = relayed_of(&server).await;
    let client = with_use(RelayUse::Only, options(&["127.0.0.1"], false));
    let directly = ConnectTarget::new(server.local_addresses());
    let refused = client.connect(directly).await.unwrap_err();
    assert!(matches!(refused, ConnectError::NoRelay { .. }), "{refused}");
    let target = ConnectTarget { remotes: server.local_addresses(), ..behind(&turn, relayed) };
    let (from, to) = connected_to(&client, target, &server).await;
    carry(&from, &to, 1_000_000).await;
    assert!(from.paths().iter().all(|p| p.remote == relayed), "{:?}", from.paths());
}
