//! Changes of paths while data flows: they fail, come back, and change under a NAT.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::relay::Relay;
use common::*;
use manypath::{
    AssocClosed, Association, Bytes, Config, ConnectTarget, Endpoint, EndpointOptions, Event,
    PathState,
};

/// Failure is noticed within a second or so.
fn quick() -> Arc<Config> {
    config(&[
        ("rto_initial", "100 ms"),
        ("rto_min", "100 ms"),
        ("rto_max", "400 ms"),
        ("hb_interval", "200 ms"),
        ("path_max_retrans", "3"),
        ("association_timeout", "2 s"),
        ("receive_buffer", "256 kB"),
        ("send_buffer", "256 kB"),
    ])
}

fn bind(ips: &[&str], accept: bool) -> Endpoint {
    Endpoint::bind(EndpointOptions { config: quick(), ..options(ips, accept) }).unwrap()
}

/// Client and server with a relay on each of two paths.
struct TwoPaths {
    relays: [Relay; 2],
    from: Association,
    to: Association,
    _endpoints: [Endpoint; 2],
}

async fn two_paths() -> TwoPaths {
    let (a, z) = (bind(&["127.0.0.3", "127.0.0.4"], false), bind(&["127.0.0.1"], true));
    let relays = [
        Relay::start("127.0.0.5", address(&z)).await,
        Relay::start("127.0.0.6", address(&z)).await,
    ];
    let target = ConnectTarget::new(relays.iter().map(|r| r.address));
    let (from, to) = connected_to(&a, target, &z).await;
    TwoPaths { relays, from, to, _endpoints: [a, z] }
}

/// Sends numbered messages as fast as the association takes them, until told to stop.
fn send_numbers(
    from: Association,
) -> (tokio::sync::oneshot::Sender<()>, tokio::task::JoinHandle<u64>) {
    let (stop, mut stopped) = tokio::sync::oneshot::channel();
    let task = tokio::spawn(async move {
        let mut next = 0u64;
        while stopped.try_recv().is_err() {
            let mut message = vec![0; 10_000];
            message[..8].copy_from_slice(&next.to_be_bytes());
            from.send(on(0), Bytes::from(message)).await.unwrap();
            next += 1;
        }
        from.shutdown().await.unwrap();
        next
    });
    (stop, task)
}

/// Receives all of them in order; the count, and the longest wait for one.
fn receive_numbers(to: Association) -> tokio::task::JoinHandle<(u64, Duration)> {
    tokio::spawn(async move {
        let (mut next, mut longest) = (0u64, Duration::ZERO);
        loop {
            let start = tokio::time::Instant::now();
            let Some(message) = to.recv().await.unwrap() else { return (next, longest) };
            longest = longest.max(start.elapsed());
            assert_eq!(message.payload.to_vec()[..8], next.to_be_bytes(), "in order, each once");
            next += 1;
        }
    })
}

/// Waits until some path enters `state`.
async fn until(events: &mut manypath::EventStream, state: PathState) {
    let wait = async {
        while let Some(event) = events.next().await {
            if matches!(event, Event::PathState { to, .. } if to == state) {
                return;
            }
        }
        panic!("the association ended before a path was {}", state.name());
    };
    within(state.name(), wait).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_outlives_one_path_and_uses_it_again() {
    let t = two_paths().await;
    let mut events = t.from.events();
    let receiver = receive_numbers(t.to.clone());
    let (stop, sender) = send_numbers(t.from.clone());
    tokio::time::sleep(Duration::from_millis(500)).await;

    t.relays[0].cut(true);
    until(&mut events, PathState::PotentiallyFailed).await;
    let before = t.relays[1].forwarded();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(t.relays[1].forwarded() > before + 50, "the other path carries on");

    t.relays[0].cut(false);
    until(&mut events, PathState::Active).await;
    let before = t.relays[0].forwarded();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(t.relays[0].forwarded() > before + 50, "the path is in use again");

    stop.send(()).unwrap();
    let sent = within("the sender ends", sender).await.unwrap();
    let (received, longest) = within("the receiver ends", receiver).await.unwrap();
    assert_eq!(received, sent);
    assert!(longest < Duration::from_secs(1), "the longest pause was {longest:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nat_that_rebinds_interrupts_nothing() {
    let (a, z) = (bind(&["127.0.0.3"], false), bind(&["127.0.0.1"], true));
    let relay = Relay::start("127.0.0.5", address(&z)).await;
    let (ours, theirs) = connected_to(&a, ConnectTarget::new([relay.address]), &z).await;

    // Both ways at once: the server must find the client again, too.
    let up = receive_numbers(theirs.clone());
    let down_from = theirs.clone();
    let (stop_down, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let down = tokio::spawn(async move {
        let mut sent = 0u64;
        while stopped.try_recv().is_err() {
            let mut message = vec![0; 10_000];
            message[..8].copy_from_slice(&sent.to_be_bytes());
            down_from.send(on(1), Bytes::from(message)).await.unwrap();
            sent += 1;
        }
        sent
    });
    let (stop_up, sender) = send_numbers(ours.clone());
    let down_receiver = receive_numbers(ours.clone());

    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(400)).await;
        relay.rebind().await;
    }
    tokio::time::sleep(Duration::from_millis(800)).await;
    let before = relay.forwarded();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(relay.forwarded() > before + 50, "data flows after the last change");

    stop_down.send(()).unwrap();
    let sent_down = within("the server's sender ends", down).await.unwrap();
    stop_up.send(()).unwrap();
    let sent_up = within("the client's sender ends", sender).await.unwrap();
    assert_eq!(within("up", up).await.unwrap().0, sent_up);
    assert_eq!(within("down", down_receiver).await.unwrap().0, sent_down);
    assert!(sent_up > 50 && sent_down > 50, "{sent_up} up, {sent_down} down");
}

#[tokio::test]
async fn a_peer_that_vanishes_ends_the_association() {
    let t = two_paths().await;
    t.from.send(on(0), "x".into()).await.unwrap();
    assert!(within("a message", t.to.recv()).await.unwrap().is_some());
    t.relays.iter().for_each(|r| r.cut(true));
    t.from.send(on(0), "into the dark".into()).await.unwrap();
    assert_eq!(within("ours ends", t.from.closed()).await, AssocClosed::PathsFailed);
    assert_eq!(within("theirs ends", t.to.closed()).await, AssocClosed::PathsFailed);
    assert_eq!(t.to.recv().await.unwrap_err(), AssocClosed::PathsFailed);
}

#[tokio::test]
async fn a_path_can_be_added_and_removed_while_data_flows() {
    let (a, z) =
        (bind(&["127.0.0.3", "127.0.0.4"], false), bind(&["127.0.0.1", "127.0.0.2"], true));
    let (from, to) = connected_to(&a, address(&z).into(), &z).await;
    let receiver = receive_numbers(to);
    let (stop, sender) = send_numbers(from.clone());

    let (local, remote) = (a.local_addresses()[1], z.local_addresses()[1]);
    from.add_path(local, remote);
    let verified = async {
        let is_it = |p: &manypath::PathStats| (p.local, p.remote) == (local, remote);
        while !from.paths().iter().any(|p| is_it(p) && p.state == PathState::Active) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within("the path is verified", verified).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut events = from.events();
    let first = from.paths().into_iter().find(|p| p.local != local).expect("the first path");
    from.remove_path(first.id);
    let removed = async {
        while let Some(event) = events.next().await {
            if event == (Event::PathRemoved { path: first.id }) {
                return;
            }
        }
        panic!("the association ended");
    };
    within("the path is removed", removed).await;
    tokio::time::sleep(Duration::from_millis(300)).await;

    stop.send(()).unwrap();
    let sent = within("the sender ends", sender).await.unwrap();
    assert_eq!(within("the receiver ends", receiver).await.unwrap().0, sent);
}

#[tokio::test]
async fn told_of_a_change_an_endpoint_asks_its_idle_paths() {
    for follow_network in [true, false] {
        let config = config(&[("hb_interval", "1 h")]);
        let of = |ip, accept| EndpointOptions {
            config: Arc::clone(&config),
            follow_network,
            ..options(&[ip], accept)
        };
        let a = Endpoint::bind(of("127.0.0.3", false)).unwrap();
        let z = Endpoint::bind(of("127.0.0.1", true)).unwrap();
        let (from, _to) = connected_to(&a, address(&z).into(), &z).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        let asked = |assoc: &Association| assoc.paths()[0].counters.heartbeats_sent;
        let before = asked(&from);
        let answered = async {
            while asked(&from) == before || from.paths()[0].state != PathState::Active {
                a.network_changed();
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        within("a heartbeat is sent", answered).await;
        assert_eq!(a.local_addresses().len(), 1, "no socket has changed");
    }
}
