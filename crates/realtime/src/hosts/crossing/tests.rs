use std::net::Ipv4Addr;

use etherparse::PacketBuilder;
use manypath_sim::scenario::Scenario;

use super::super::plan::Plan;
use super::*;

fn crossing(text: &str) -> Crossing {
    let scenario = Scenario::parse("test.toml", text).unwrap();
    Crossing::new(Plan::new(&scenario.points().unwrap()[0].run, 1).unwrap().bare)
}

/// A UDP packet of that length in bytes, IP header included.
fn packet(from: [u8; 4], to: [u8; 4], length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let packet = PacketBuilder::ipv4(from, to, 64).udp(1, 2);
    packet.write(&mut bytes, &vec![7; length - 28]).unwrap();
    bytes
}

fn millis(count: u64) -> Instant {
    Instant::from_millis(count)
}

/// Interfaces and times in milliseconds of all arrivals until `until`.
fn arrivals(crossing: &mut Crossing, until: Instant) -> Vec<(usize, u64)> {
    let next = || crossing.poll(until);
    let arrivals = std::iter::from_fn(next);
    arrivals.map(|a| (a.interface, (a.planned - Instant::ZERO).as_millis() as u64)).collect()
}

const NEAR: [u8; 4] = [10, 77, 1, 1];
const FAR: [u8; 4] = [10, 77, 1, 2];
const SECOND: [u8; 4] = [10, 77, 2, 2];

const TEXT: &str = r#"
    transfer.size = "1 MB"
    [[path]]
    rate = "8 Mbit/s"
    delay = "5 ms"
    mtu = 1200
    [[path]]
    rate = "8 Mbit/s"
    delay = "50 ms"
    down = [{ at = "100 ms", after = "first data" }]
"#;

#[test]
fn packets_leave_at_the_other_end_of_their_path_when_the_link_says() {
    let mut crossing = crossing(TEXT);
    for _ in 0..3 {
        crossing.enter(0, &packet(NEAR, FAR, 1000));
    }
    crossing.enter(1, &packet(FAR, NEAR, 1000));
    crossing.enter(3, &packet(SECOND, [10, 77, 2, 1], 1000));
    let mut all = arrivals(&mut crossing, millis(100));
    all.sort_unstable();
    assert_eq!(all, [(0, 6), (1, 6), (1, 7), (1, 8), (2, 51)]);
    assert_eq!(crossing.report(Duration::ZERO).links[0].stats.bytes, 3000);
}

#[test]
fn the_plan_does_not_wait_for_a_late_caller() {
    let mut crossing = crossing(TEXT);
    crossing.enter(0, &packet(NEAR, FAR, 1000));
    // The caller slept from 0 to 40 ms; another packet came meanwhile and enters now.
    assert_eq!(arrivals(&mut crossing, millis(40)), [(1, 6)]);
    crossing.enter(0, &packet(NEAR, FAR, 1000));
    assert_eq!(crossing.next_event(), Some(millis(46)));
    assert_eq!(arrivals(&mut crossing, millis(100)), [(1, 46)]);
}

#[test]
fn packets_between_addresses_of_two_paths_go_nowhere() {
    let mut crossing = crossing(TEXT);
    crossing.enter(0, &packet(NEAR, SECOND, 1000));
    crossing.enter(0, &packet([192, 0, 2, 1], FAR, 1000));
    crossing.enter(0, &[0x60; 40]);
    crossing.enter(0, &[]);
    assert_eq!(arrivals(&mut crossing, millis(1000)), []);
    assert_eq!(crossing.report(Duration::ZERO).unroutable, 4);
}

#[test]
fn a_packet_that_is_too_long_draws_a_message_or_is_cut() {
    let mut crossing = crossing(TEXT);
    let mut long = packet(NEAR, FAR, 1400);
    long[6] = 0x40; // DF
    crossing.enter(0, &long);
    let message = crossing.poll(millis(10)).unwrap();
    assert_eq!(message.interface, 0);
    let header = ip::read(&message.packet).unwrap();
    assert_eq!(header.destination, Ipv4Addr::from(NEAR));
    assert_eq!(u16::from_be_bytes([message.packet[26], message.packet[27]]), 1200);
    crossing.poll(millis(10));
    long[6] = 0;
    crossing.enter(0, &long);
    let arrival = crossing.poll(millis(30)).unwrap();
    assert_eq!((arrival.interface, &arrival.packet[..]), (1, &long[..]));
    let stats = crossing.report(Duration::ZERO).links[0].stats;
    assert_eq!((stats.too_long, stats.fragmented), (1, 1));
}

#[test]
fn changes_after_the_first_data_count_from_the_first_packet() {
    let mut crossing = crossing(TEXT);
    crossing.poll(millis(500));
    crossing.enter(3, &packet(SECOND, [10, 77, 2, 1], 500));
    assert_eq!(arrivals(&mut crossing, millis(590)), [(2, 550)]);
    crossing.enter(3, &packet(SECOND, [10, 77, 2, 1], 500));
    assert_eq!(arrivals(&mut crossing, millis(650)), [(2, 640)]);
    crossing.enter(3, &packet(SECOND, [10, 77, 2, 1], 500));
    assert_eq!(arrivals(&mut crossing, millis(1000)), []);
    assert_eq!(crossing.report(Duration::ZERO).links[3].stats.cut, 1);
}

#[test]
fn lateness_is_what_passed_since_the_plan() {
    let mut crossing = crossing(TEXT);
    for late in 0..100 {
        crossing.note_delivery(millis(10), millis(10 + late), true);
    }
    crossing.note_delivery(millis(10), millis(900), false);
    let report = crossing.report(Duration::from_secs(2));
    let Lateness { packets, p50_s, p99_s, max_s } = report.lateness;
    assert_eq!((packets, max_s, report.undelivered), (100, Some(0.099), 1));
    assert!((p50_s.unwrap() - 0.049).abs() < 3e-4, "{p50_s:?}");
    assert!((p99_s.unwrap() - 0.098).abs() < 5e-4, "{p99_s:?}");
}
