use proptest::collection::vec;
use proptest::prelude::*;

use super::answer::{Unreachable, read};
use super::*;

const IPS: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];

/// The verdict on identifications of answers from A, B, A, B, ...; `None` is lost.
fn of(ids: &[Option<u16>]) -> Counter {
    let turns = ids.iter().zip([Side::A, Side::B].into_iter().cycle());
    compare(&turns.filter_map(|(id, side)| Some((side, (*id)?))).collect::<Vec<_>>())
}

fn all(ids: &[u16]) -> Counter {
    of(&ids.iter().copied().map(Some).collect::<Vec<_>>())
}

#[test]
fn one_counter_is_found_also_where_it_wraps() {
    assert_eq!(all(&[10, 11, 12, 13, 14, 15]), Counter::Same);
    assert_eq!(all(&[65_400, 65_500, 65_534, 3, 150, 350]), Counter::Same);
    assert_eq!(all(&[65_400, 65_500, 65_534, 3, 150, 351]), Counter::Different);
}

#[test]
fn two_counters_are_told_apart() {
    assert_eq!(all(&[10, 900, 11, 901, 12, 902]), Counter::Different);
    assert_eq!(all(&[10, 10, 11, 11, 12, 12]), Counter::Different);
    assert_eq!(all(&[10, 11, 11, 12, 12, 13]), Counter::Different);
}

#[test]
fn without_a_counter_there_is_no_verdict() {
    assert_eq!(all(&[0; 6]), Counter::Unknown);
    assert_eq!(all(&[7, 8, 7, 8, 7, 8]), Counter::Unknown, "constant");
    assert_eq!(all(&[7, 0, 8, 0, 9, 0]), Counter::Unknown, "one is constant");
    assert_eq!(all(&[7, 40_123, 23_456, 91, 60_000, 17]), Counter::Unknown, "random");
}

#[test]
fn lost_answers_are_made_up_for_by_others() {
    let lost = [Some(1), Some(2), None, Some(4), Some(5), Some(6), Some(7)];
    assert_eq!(of(&lost[..6]), Counter::Unknown, "two of A");
    assert_eq!(of(&lost), Counter::Same);
    let sides = [Side::A, Side::A, Side::A, Side::B, Side::B, Side::B];
    let one_change: Vec<_> = sides.into_iter().zip(1..).collect();
    assert_eq!(compare(&one_change), Counter::Unknown, "they hardly alternate");
    assert_eq!(all(&[]), Counter::Unknown);
}

#[test]
fn all_are_asked_until_each_has_answered_three_times_or_is_silent() {
    let questions = IPS.map(|ip| (Ipv4Addr::LOCALHOST, ip));
    let twice = vec![(IPS[0], 1), (IPS[1], 2), (IPS[0], 3), (IPS[1], 4)];
    assert_eq!(wanted(&questions, &twice, 2), questions);
    let first_only = vec![(IPS[0], 1), (IPS[0], 2)];
    assert_eq!(wanted(&questions, &first_only, 1), questions);
    assert_eq!(wanted(&questions, &first_only, 2), questions[..1]);
    let thrice = [&twice[..], &[(IPS[0], 5), (IPS[1], 6)]].concat();
    assert_eq!(wanted(&questions, &thrice, 3), []);
    assert_eq!(judge(&thrice, IPS[0], IPS[1]), Counter::Same);
    assert_eq!(judge(&thrice, IPS[0], Ipv4Addr::LOCALHOST), Counter::Unknown);
}

#[test]
fn pairs_and_addresses_are_bounded() {
    let ip = |n: u8| Ipv4Addr::new(192, 0, 2, n);
    let pairs = (0..100).flat_map(|a| (a + 1..100).map(move |b| (ip(a), ip(b))));
    let (chosen, addresses) = within_bounds(pairs, 32);
    assert_eq!((chosen.len(), addresses.len()), (32, ADDRESSES_MAX));
    let apart = (0..50).map(|n| (ip(2 * n), ip(2 * n + 1)));
    assert_eq!(within_bounds(apart, 32).0.len(), ADDRESSES_MAX / 2);
}

/// A port unreachable message; it quotes a UDP packet from port 5000 to port 33434.
fn message() -> Vec<u8> {
    let ip = |protocol, id: [u8; 2], from: [u8; 4], to: [u8; 4]| {
        let start = [0x45, 0, 0, 0, id[0], id[1], 0, 0, 64, protocol, 0, 0];
        [&start[..], &from, &to].concat()
    };
    let outer = ip(1, [0xab, 0xcd], [192, 0, 2, 1], [192, 0, 2, 9]);
    let inner = ip(17, [0, 7], [192, 0, 2, 9], [192, 0, 2, 2]);
    let udp = [5000u16.to_be_bytes(), 33434u16.to_be_bytes()].concat();
    [&outer[..], &[3, 3, 0, 0, 0, 0, 0, 0], &inner, &udp].concat()
}

#[test]
fn a_message_is_read() {
    let (from, asked) = (IPS[0], IPS[1]);
    let read_as = Unreachable { from, id: 0xabcd, quoted_id: 7, asked, ports: (5000, 33434) };
    assert_eq!(read(&message()), Some(read_as));
}

#[test]
fn other_messages_are_not() {
    // Version, header length, fragment, protocol, ICMP type and code; then those that are quoted.
    let changes = [(0, 0x65), (0, 0x44), (0, 0x4f), (7, 1), (9, 6), (20, 11), (21, 1)];
    let quoted = [(28, 0x65), (28, 0x46), (35, 1), (37, 6)];
    for (at, value) in changes.into_iter().chain(quoted) {
        let mut bytes = message();
        bytes[at] = value;
        assert_eq!(read(&bytes), None, "byte {at}");
    }
    for length in 0..message().len() {
        assert_eq!(read(&message()[..length]), None, "{length} bytes");
    }
}

/// The loopback's identifications are of no use, but its answers are read where that is allowed.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn answers_are_read_where_raw_sockets_are_allowed() {
    let question = (Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 77));
    let samples = sample(&[question]).await;
    match platform::Asker::open() {
        Ok(_) => assert!(samples.iter().any(|(from, _)| *from == question.1), "{samples:?}"),
        Err(_) => assert_eq!(samples, []),
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in vec(any::<u8>(), 0..128)) {
        let _ = read(&bytes);
    }

    #[test]
    fn any_changed_message_is_read(changes in vec((0usize..60, any::<u8>()), 0..8)) {
        let mut bytes = message();
        for (at, value) in changes {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        let _ = read(&bytes);
    }

    #[test]
    fn one_counter_is_one_from_any_start(start: u16, steps in vec(1u16..=200, 6..12)) {
        let count = |id: &mut u16, step: u16| { *id = id.wrapping_add(step); Some(*id) };
        let ids: Vec<u16> = steps.into_iter().scan(start, count).collect();
        prop_assert_eq!(all(&ids), Counter::Same);
    }

    #[test]
    fn idle_counters_are_two_from_any_starts(a: u16, b: u16, rounds in 3u16..6) {
        let ids = (0..rounds).flat_map(|n| [a.wrapping_add(n), b.wrapping_add(n)]);
        prop_assert_eq!(all(&ids.collect::<Vec<_>>()), Counter::Different);
    }

    #[test]
    fn random_identifications_are_no_counter(ids in vec(any::<u16>(), 6..12)) {
        prop_assert_ne!(all(&ids), Counter::Same);
    }

    #[test]
    fn the_order_of_a_pair_does_not_matter(ids in vec((any::<bool>(), 0u16..40), 0..12)) {
        let sides = |swap: bool| -> Vec<_> {
            let side = |is_a| if is_a { Side::A } else { Side::B };
            ids.iter().map(|&(is_a, id)| (side(is_a != swap), id)).collect()
        };
        prop_assert_eq!(compare(&sides(false)), compare(&sides(true)));
    }
}
