use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::packet::{Delivery, DropCause};
use crate::packet_log::Fate;
use crate::paths::PathEnds;
use crate::spec::PathSpec;

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

struct World {
    net: Network,
    a: NodeId,
    z: NodeId,
    near: SocketAddr,
    far: SocketAddr,
}

/// Three hops; at 8 Mbit/s in the middle a byte takes 1 us, on the edges nothing.
fn world() -> World {
    let mut net = Network::new(Rng::from_number(1), 20);
    net.keep_packet_log();
    let (a, z) = (net.add_node(), net.add_node());
    let (near, far) = (address("10.0.0.1:9899"), address("10.0.0.2:9899"));
    let edge = || LinkSpec::new(crate::spec::Rate::INFINITE, Duration::from_millis(1));
    let spec = PathSpec::hops([edge(), LinkSpec::mbps_ms(8.0, 10.0), edge()]);
    net.add_path(PathEnds { near: (a, near), far: (z, far) }, &spec);
    World { net, a, z, near, far }
}

impl World {
    fn send(&mut self, length: usize) {
        self.net.send(self.a, self.near, self.far, Bytes::from(vec![0; length]));
    }

    fn run(&mut self, limit: Instant) -> Vec<(Instant, Delivery)> {
        let mut deliveries = Vec::new();
        while let Some(happening) = self.net.poll(limit) {
            let Happening::Packet(delivery) = happening else { panic!("no timer is set") };
            deliveries.push((self.net.now(), delivery));
        }
        deliveries
    }
}

const LATER: Instant = Instant::from_millis(1000);

#[test]
fn a_packet_crosses_all_hops() {
    let mut w = world();
    w.send(980);
    w.send(980);
    let seen: Vec<Instant> = w.run(LATER).into_iter().map(|(at, _)| at).collect();
    assert_eq!(seen, [Instant::from_millis(13), Instant::from_millis(14)]);
    assert_eq!((w.net.events(), w.net.now()), (6, LATER), "one event per packet and hop");
}

#[test]
fn time_stops_at_the_limit() {
    let mut w = world();
    w.send(980);
    assert!(w.run(Instant::from_millis(5)).is_empty());
    assert_eq!(w.net.now(), Instant::from_millis(5));
    assert_eq!(w.run(LATER).len(), 1);
}

#[test]
fn timers_fire_once_in_order_and_not_in_the_past() {
    let mut w = world();
    w.net.poll(Instant::from_millis(5));
    w.net.set_timer(w.z, Some(Instant::from_millis(7)));
    w.net.set_timer(w.a, Some(Instant::from_millis(1)));
    let Some(Happening::Timer(first)) = w.net.poll(LATER) else { panic!("a timer is due") };
    assert_eq!((first, w.net.now()), (w.a, Instant::from_millis(5)));
    w.net.set_timer(w.z, None);
    assert!(w.net.poll(LATER).is_none());
}

#[test]
fn a_packet_without_a_route_is_counted_and_logged() {
    let mut w = world();
    let nowhere = address("10.9.9.9:1");
    assert_eq!(w.net.send(w.a, w.near, nowhere, Bytes::from_static(b"x")), None);
    assert_eq!(w.net.unroutable(), 1);
    let fate = w.net.packet_log().expect("kept").packets()[0].fate;
    assert_eq!(fate, Fate::Dropped(Instant::ZERO, DropCause::NoRoute));
}

#[test]
fn planned_changes_take_place_in_time() {
    let mut w = world();
    w.net.path(0).at(Instant::from_millis(20)).hop(1).cut_for(Duration::from_millis(10));
    w.net.path(0).hop(0).at(Instant::from_millis(40)).set_delay(Duration::from_millis(6));
    let mut arrived = Vec::new();
    for at in [18, 19, 28, 29, 50] {
        arrived.extend(w.run(Instant::from_millis(at)));
        w.send(980);
    }
    arrived.extend(w.run(LATER));
    let times: Vec<u64> = arrived.iter().map(|(at, _)| at.as_nanos() / 1_000_000).collect();
    assert_eq!(w.net.link_stats(w.net.paths[0].forward[1]).cut, 2, "those of 19 and 28 ms");
    assert_eq!(times, [31, 42, 68]);
}

#[test]
fn after_a_rebinding_the_far_end_sees_and_reaches_the_new_address_only() {
    let mut w = world();
    let public = address("192.0.2.7:40000");
    let answer = |w: &mut World, to| w.net.send(w.z, w.far, to, Bytes::from_static(b"y"));
    let near = w.near;
    answer(&mut w, near).expect("routed");
    w.send(10);
    w.net.path(0).rebind_source(public);
    w.send(10);
    let seen: Vec<Delivery> = w.run(LATER).into_iter().map(|(_, d)| d).collect();
    let seen: Vec<SocketAddr> = seen.iter().map(|d| w.net.seen_ends(d.route).1).collect();
    assert_eq!(seen, [near, public], "the answer to the old mapping is gone");

    answer(&mut w, near).expect("the far end cannot know");
    answer(&mut w, public).expect("routed");
    let arrived = w.run(Instant::from_millis(2000));
    assert_eq!(arrived.len(), 1);
    let answer = &arrived[0].1;
    assert_eq!((answer.node, w.net.seen_ends(answer.route).0), (w.a, near), "translated back");
}

#[test]
fn the_log_knows_the_fate_of_each_packet() {
    let mut w = world();
    w.send(980);
    w.net.path(0).reverse().cut();
    w.net.send(w.z, w.far, w.near, Bytes::from_static(b"y"));
    w.run(LATER);
    let log = w.net.packet_log().expect("kept");
    let fates: Vec<Fate> = log.packets().iter().map(|p| p.fate).collect();
    let cut = Fate::Dropped(Instant::ZERO, DropCause::Cut);
    assert_eq!(fates, [Fate::Delivered(Instant::from_millis(13)), cut]);
}
