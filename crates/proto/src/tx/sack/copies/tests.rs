use std::time::Duration;

use bytes::Bytes;
use manypath_wire::{Checksum, Chunk, CommonHeader, Packet, PacketBuilder};

use super::*;
use crate::tx::Fragment;
use crate::tx::sack::digest::tests::RULES;

/// The covered path, the redundant one, and one beside them.
const FIRST: PathId = PathId(0);
const SECOND: PathId = PathId(1);
const THIRD: PathId = PathId(2);
/// A DATA chunk of 84 bytes with its header.
const SIZE: usize = 100;

struct Sender {
    out: Outstanding,
    digest: SackDigest,
    now: Instant,
    /// The shortest round-trip time of the path that a SACK comes in on.
    rtt_min: Option<Duration>,
}

impl Sender {
    fn new() -> Sender {
        let mut out = Outstanding::new(Tsn(1));
        [FIRST, SECOND, THIRD].into_iter().for_each(|id| out.add_path(id));
        Sender {
            out,
            digest: SackDigest::default(),
            now: Instant::from_millis(1000),
            rtt_min: None,
        }
    }

    /// Sends `count` new chunks on a path, a millisecond apart.
    fn send(&mut self, path: PathId, count: u32) {
        for _ in 0..count {
            let fragment = Fragment::whole(&[7; SIZE - 16], 0);
            self.out.push(fragment, path, self.now);
            self.now += Duration::from_millis(1);
        }
    }

    /// Copies everything on the covered path that has no copy; returns the TSNs.
    fn copy_all(&mut self) -> Vec<u32> {
        let mut copied = Vec::new();
        let sent: Vec<Tsn> = self.out.sent_after(FIRST, None).map(|(tsn, _)| tsn).collect();
        for tsn in
            sent.into_iter().rev().filter(|tsn| self.out.may_copy(*tsn, FIRST)).collect::<Vec<_>>()
        {
            self.out.copy(tsn, SECOND, self.now);
            self.now += Duration::from_millis(1);
            copied.push(tsn.0);
        }
        self.out.check_invariants();
        copied
    }

    fn sack(&mut self, via: PathId, cum: u32, gaps: &[(u16, u16)], duplicates: &[u32]) {
        let header = CommonHeader { source_port: 1, destination_port: 1, verification_tag: 1 };
        let mut bytes = Vec::new();
        let mut packet = PacketBuilder::new(&mut bytes, header, 1 << 16);
        let duplicates = duplicates.iter().copied().map(Tsn);
        packet.push_sack(Tsn(cum), 1 << 20, 0, gaps.iter().copied(), duplicates);
        packet.finish(false);
        let packet = Packet::parse(Bytes::from(bytes), Checksum::Ignore).expect("well formed");
        let Some(Ok(Chunk::Sack(sack))) = packet.chunks().next() else { panic!("a SACK") };
        let rules =
            AckRules { via: Some(SackArrival { path: via, rtt_min: self.rtt_min }), ..RULES };
        let result = self.out.acknowledge(&sack, &rules, self.now, &mut self.digest);
        assert_eq!(result, Ok(true));
        self.out.check_invariants();
    }

    /// Chunks in flight, in their sizes, on the first two paths.
    fn flights(&self) -> [usize; 2] {
        [FIRST, SECOND].map(|id| self.out.flight_size(id) / SIZE)
    }

    /// Of the last SACK, the chunks acknowledged on the first two paths.
    fn acked(&self) -> [usize; 2] {
        [0, 1].map(|i| self.digest.paths[i].newly_acked_bytes / SIZE)
    }
}

#[test]
fn a_copy_counts_in_the_flight_of_its_own_path_and_takes_no_receive_buffer() {
    let mut s = Sender::new();
    s.send(FIRST, 3);
    s.send(THIRD, 1);
    assert_eq!(s.copy_all(), [1, 2, 3], "in the order of transmission");
    assert_eq!(s.flights(), [3, 3]);
    assert_eq!(s.out.rwnd_in_use(RULES.by.room, 16), 4 * (SIZE - 16), "the receiver gets it once");
    assert_eq!(s.out.chunks_in_flight(SECOND), 3);
    assert_eq!(s.out.get(Tsn(1)).map(|sent| sent.transmissions), Some(1), "no retransmission");
}

#[test]
fn the_path_that_a_sack_came_in_on_is_the_one_that_delivered() {
    let mut s = Sender::new();
    s.send(FIRST, 3);
    s.copy_all();
    s.sack(FIRST, 1, &[], &[]);
    assert_eq!((s.acked(), s.flights()), ([1, 0], [2, 3]), "its copy is still under way");
    s.sack(SECOND, 2, &[], &[]);
    assert_eq!(
        (s.acked(), s.flights()),
        ([0, 1], [2, 2]),
        "the copy of TSN 1 has a missing report"
    );
}

#[test]
fn a_sack_from_a_third_path_leaves_both_transmissions_open() {
    let mut s = Sender::new();
    s.send(FIRST, 2);
    s.copy_all();
    s.sack(THIRD, 1, &[], &[]);
    assert_eq!((s.acked(), s.flights()), ([0, 0], [2, 2]));
    s.sack(FIRST, 2, &[], &[]);
    assert_eq!((s.acked(), s.flights()), ([2, 0], [0, 2]), "what was sent later there arrived");
}

#[test]
fn the_report_of_a_duplicate_tsn_settles_both() {
    let mut s = Sender::new();
    s.send(FIRST, 2);
    s.copy_all();
    s.sack(THIRD, 1, &[], &[]);
    s.sack(SECOND, 1, &[], &[1]);
    assert_eq!((s.acked(), s.flights()), ([1, 1], [1, 1]), "both arrived");
}

#[test]
fn a_round_trip_is_measured_where_it_is_known_which_transmission_a_sack_answers() {
    let mut s = Sender::new();
    s.send(FIRST, 4); // at 1000 to 1003 ms
    s.send(THIRD, 1);
    s.copy_all(); // at 1005 to 1008 ms
    let mut rtts = |via, cum, gaps: &[(u16, u16)], dups: &[u32], at_ms| {
        s.now = Instant::from_millis(at_ms);
        s.sack(via, cum, gaps, dups);
        [0, 1].map(|i| s.digest.paths[i].rtt.map(|rtt| rtt.as_millis()))
    };
    // The packet came in on path 1, and only TSN 1 of what the SACK acknowledges was sent there.
    assert_eq!(rtts(FIRST, 1, &[(4, 4)], &[], 1050), [Some(50), None]);
    assert_eq!(rtts(FIRST, 3, &[(2, 2)], &[], 1052), [None, None], "2 or 3, which of them?");
    // The second arrival of TSN 1, on path 2, draws a SACK at once.
    assert_eq!(rtts(SECOND, 3, &[(2, 2)], &[1], 1080), [None, Some(75)]);
    assert_eq!(rtts(SECOND, 3, &[(2, 2)], &[2], 1081), [None, None], "once per round trip");
    assert_eq!(rtts(FIRST, 5, &[], &[3], 1082), [None, None], "a SACK with both says neither");
}

/// A duplicate draws a SACK on the path of the copies just after they were sent. It acknowledges
/// what arrived on the other path.
#[test]
fn a_sack_that_comes_too_soon_is_no_answer_to_a_copy() {
    let at_ms = |s: &mut Sender, ms| s.now = Instant::from_millis(ms);
    let mut s = Sender::new();
    s.rtt_min = Some(Duration::from_millis(40));
    s.send(FIRST, 3); // at 1000 to 1002 ms
    at_ms(&mut s, 1040);
    s.copy_all(); // at 1040 to 1042 ms
    at_ms(&mut s, 1043);
    s.sack(SECOND, 1, &[], &[]);
    assert_eq!((s.acked(), s.flights()), ([1, 0], [2, 3]), "it arrived on the first path");
    assert_eq!(s.digest.paths[1].rtt, None);
    s.sack(SECOND, 1, &[], &[1]);
    assert_eq!((s.acked(), s.flights()), ([0, 0], [2, 3]), "the copy has not arrived yet");
    s.sack(FIRST, 2, &[], &[]);
    assert_eq!((s.acked(), s.flights()), ([1, 0], [1, 3]));
    at_ms(&mut s, 1079);
    s.sack(SECOND, 2, &[], &[1]);
    assert_eq!(s.acked(), [0, 1], "late enough");
    assert_eq!(s.digest.paths[1].rtt, None, "not to be the shortest round trip");
    at_ms(&mut s, 1081);
    s.sack(SECOND, 2, &[], &[2]);
    assert_eq!(s.digest.paths[1].rtt, Some(Duration::from_millis(40)));
}

/// The first answer of a near host took long, because it was busy. Copies are answered sooner, here
/// after the original has arrived. If that settled nothing, the path would run into T3-rtx.
#[test]
fn a_near_host_may_answer_a_copy_sooner_than_anything_before() {
    let mut s = Sender::new();
    s.rtt_min = Some(Duration::from_millis(6));
    s.send(FIRST, 3);
    s.copy_all();
    s.sack(SECOND, 3, &[], &[1, 2, 3]);
    assert_eq!((s.acked(), s.flights()), ([3, 3], [0, 0]));
}

#[test]
fn an_overtaken_sack_still_settles_copies() {
    let mut s = Sender::new();
    s.send(FIRST, 3);
    s.copy_all();
    s.sack(FIRST, 3, &[], &[]);
    s.now = Instant::from_millis(1100);
    s.sack(SECOND, 1, &[], &[1]); // the slow path's, of before
    assert_eq!((s.acked(), s.flights()), ([0, 1], [0, 2]));
    assert!(s.digest.stale && s.digest.paths[1].rtt.is_some());
}

#[test]
fn early_arrivals_on_one_path_are_no_missing_reports_on_the_other() {
    let mut s = Sender::new();
    s.send(FIRST, 8);
    s.copy_all();
    for tsn in 4..=8 {
        s.sack(SECOND, 0, &[(4, tsn)], &[]);
        assert_eq!(s.digest.paths[0].lost, 0, "SFR: nothing sent later on path 1 arrived");
    }
    assert_eq!(s.out.get(Tsn(1)).map(|sent| sent.missing_reports), Some(0));
    // On path 2 the copies of 1 to 3 were overtaken.
    assert_eq!(s.digest.paths[1].lost_extra + s.flights()[1], 0);
}

#[test]
fn a_lost_copy_is_a_loss_of_its_path_and_nothing_is_sent_again() {
    let mut s = Sender::new();
    s.send(FIRST, 5);
    s.copy_all();
    s.sack(FIRST, 5, &[], &[]);
    let mut lost = Vec::new();
    for tsn in 2..=4 {
        s.sack(SECOND, 5, &[], &[tsn]); // the copy of TSN 1 does not arrive
        lost.push(s.digest.paths[1].lost_extra);
    }
    assert_eq!(lost, [0, 0, 1]);
    assert_eq!(s.digest.paths[1].lost, 0);
    assert!(!s.out.has_marked());
}

#[test]
fn the_copy_takes_the_place_of_a_lost_chunk() {
    let mut s = Sender::new();
    s.send(FIRST, 5);
    assert!(s.out.may_copy(Tsn(1), FIRST) && !s.out.may_copy(Tsn(1), SECOND));
    s.out.copy(Tsn(1), SECOND, s.now);
    assert!(!s.out.may_copy(Tsn(1), FIRST), "it has a copy");
    s.sack(FIRST, 0, &[(2, 2)], &[]);
    s.sack(FIRST, 0, &[(2, 3)], &[]);
    s.sack(FIRST, 0, &[(2, 4)], &[]);
    assert_eq!(s.digest.paths[0].lost, 1, "its own path cuts its window");
    assert!(!s.out.has_marked(), "but the copy is under way");
    assert_eq!(s.flights(), [1, 1]);
    assert_eq!(s.out.get(Tsn(1)).map(|sent| sent.path), Some(SECOND));
    s.sack(SECOND, 4, &[], &[]);
    assert_eq!(s.acked(), [0, 1]);
}

#[test]
fn a_silent_path_times_out_though_all_of_its_data_arrives() {
    let mut s = Sender::new();
    s.send(FIRST, 3);
    s.copy_all();
    s.sack(SECOND, 3, &[], &[]);
    assert_eq!(s.flights(), [3, 0]);
    let (count, _) = s.out.mark_path(FIRST, None);
    assert_eq!((count, s.flights()), (3, [0, 0]));
    assert!(!s.out.has_marked(), "it arrived");
}

#[test]
fn after_a_timeout_only_what_has_no_copy_is_sent_again() {
    let mut s = Sender::new();
    s.send(FIRST, 2);
    s.copy_all();
    s.send(FIRST, 1);
    assert_eq!(s.out.mark_path(FIRST, None).0, 3);
    assert_eq!(s.flights(), [0, 2]);
    assert_eq!(s.out.next_marked(FIRST), Some(Tsn(3)));
    s.out.check_invariants();
    assert_eq!(s.out.mark_path(SECOND, None).0, 2, "copies that took the places of the chunks");
    assert_eq!(s.out.next_marked(SECOND), Some(Tsn(1)));
    s.out.check_invariants();
}

#[test]
fn a_path_can_go_with_its_copies_and_with_what_they_cover() {
    let mut s = Sender::new();
    s.send(FIRST, 3);
    s.copy_all();
    s.out.abandon_path(SECOND, THIRD);
    assert_eq!(s.flights(), [3, 0]);
    s.out.check_invariants();
    let mut s = Sender::new();
    s.send(FIRST, 3);
    s.copy_all();
    s.out.abandon_path(FIRST, THIRD);
    assert_eq!(s.flights(), [0, 3]);
    s.out.check_invariants();
}

#[test]
fn a_chunk_that_is_sent_again_leaves_its_copy_behind() {
    let mut s = Sender::new();
    s.send(FIRST, 2);
    s.copy_all();
    s.out.mark_for_probe(Tsn(2));
    assert_eq!(s.flights(), [1, 1]);
    s.out.retransmit(Tsn(2), SECOND, s.now);
    assert_eq!(s.flights(), [1, 2], "where the copy was, it is in flight once");
    s.out.check_invariants();
    s.out.abandon_path(SECOND, THIRD);
    assert_eq!((s.flights(), s.out.next_marked(THIRD)), ([1, 0], Some(Tsn(2))));
    s.out.check_invariants();
}

#[test]
fn a_copy_is_found_without_a_look_at_the_others() {
    let mut s = Sender::new();
    s.send(FIRST, 2000);
    s.copy_all();
    let copies = &s.out.queues[SECOND.index()].extra;
    let looks = std::cell::Cell::new(0);
    for tsn in (1..=2000).map(Tsn) {
        let is_live = |c: &Transmission| {
            looks.set(looks.get() + 1);
            c.claim == Claim::Live
        };
        assert!(copies.find(tsn, is_live).is_some());
        assert!(copies.find(Tsn(5000), is_live).is_none());
    }
    assert_eq!(looks.get(), 2000, "one each");
}

#[test]
fn a_sack_of_64_kib_of_duplicates_settles_what_it_names_and_no_more() {
    let mut s = Sender::new();
    s.send(FIRST, 16_000);
    s.copy_all();
    // From a third path: all transmissions stay open.
    s.sack(THIRD, 15_000, &[], &[]);
    assert_eq!(s.flights(), [16_000, 16_000]);
    let (unknown, known) = ((100_000..115_000).collect::<Vec<_>>(), (1..=16_000).rev());
    s.sack(THIRD, 15_000, &[], &unknown);
    assert_eq!(s.flights(), [16_000, 16_000]);
    s.sack(THIRD, 15_000, &[], &known.collect::<Vec<_>>());
    assert_eq!(s.flights(), [1000, 1000], "what is not acknowledged is no duplicate");
}

#[test]
fn lost_chunks_take_their_copies_places_among_what_was_sent_later() {
    let mut s = Sender::new();
    s.send(FIRST, 400);
    // New data between the copies, and after all of them: their places are in the middle of the
    // queue.
    for tsn in (1..=400).map(Tsn) {
        s.out.copy(tsn, SECOND, s.now);
        s.send(SECOND, 1);
    }
    s.send(SECOND, 400);
    assert_eq!(s.flights(), [400, 1200]);
    assert_eq!(s.out.mark_path(FIRST, None).0, 400);
    assert_eq!(s.flights(), [0, 1200]);
    s.out.check_invariants();
    let orders: Vec<u64> = s.out.sent_after(SECOND, None).map(|(_, sent)| sent.order).collect();
    assert!(orders.len() == 1200 && orders.is_sorted_by(|a, b| a > b), "last first");
}

#[test]
fn a_path_is_out_of_order_from_a_revoked_chunk_until_it_is_empty() {
    let mut s = Sender::new();
    s.send(FIRST, 4);
    assert!(s.out.is_in_order(FIRST));
    s.sack(FIRST, 0, &[(2, 2)], &[]);
    s.sack(FIRST, 1, &[(2, 2)], &[]);
    let order: Vec<Tsn> = s.out.sent_after(FIRST, None).map(|(tsn, _)| tsn).collect();
    assert_eq!(order, [Tsn(2), Tsn(4)], "2 was dropped by the receiver, and is behind 4");
    assert!(!s.out.is_in_order(FIRST) && s.out.is_in_order(SECOND));
    s.sack(FIRST, 4, &[], &[]);
    assert!(s.out.is_in_order(FIRST));
}
