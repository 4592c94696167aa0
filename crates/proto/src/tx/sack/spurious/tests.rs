use bytes::Bytes;
use manypath_wire::{Checksum, Chunk, CommonHeader, Packet, PacketBuilder};
use proptest::prelude::*;

use super::*;
use crate::tx::Fragment;
use crate::tx::sack::digest::SackError;
use crate::tx::sack::digest::tests::RULES;
use crate::tx::sack::doubts::{Doubts, REMEMBERED_MAX};

const PATH: PathId = PathId(0);
/// The round-trip time of the path.
const RTT: Duration = Duration::from_millis(50);

/// A sender on one path that takes a chunk for lost after three missing reports.
struct Sender {
    out: Outstanding,
    digest: SackDigest,
    now: Instant,
    /// SACKs have hardly room for more gap ack blocks.
    is_full: bool,
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

impl Sender {
    /// TSNs from 1 on are in flight, and the round-trip time was measured with TSN 0.
    fn with_in_flight(count: u32) -> Sender {
        let mut out = Outstanding::new(Tsn(0));
        out.add_path(PATH);
        out.watch_for_spurious_losses();
        let now = Instant::from_millis(1000);
        let mut s = Sender { out, digest: SackDigest::default(), now, is_full: false };
        s.send(1);
        s.now += RTT;
        s.sack(0, &[], &[]);
        s.send(count);
        s.now += RTT;
        s
    }

    fn send(&mut self, count: u32) {
        for _ in 0..count {
            let fragment = Fragment::whole(b"data", 0);
            self.out.push(fragment, PATH, self.now);
        }
    }

    fn try_sack(
        &mut self,
        cum: u32,
        gaps: &[(u16, u16)],
        duplicates: &[u32],
    ) -> Result<bool, SackError> {
        let header = CommonHeader { source_port: 1, destination_port: 1, verification_tag: 1 };
        let mut bytes = Vec::new();
        let mut packet = PacketBuilder::new(&mut bytes, header, 60_000);
        let duplicates = duplicates.iter().map(|&tsn| Tsn(tsn));
        packet.push_sack(Tsn(cum), 1 << 20, 0, gaps.iter().copied(), duplicates);
        packet.finish(false);
        let packet = Packet::parse(Bytes::from(bytes), Checksum::Ignore).expect("well formed");
        let Some(Ok(Chunk::Sack(sack))) = packet.chunks().next() else { panic!("not a SACK") };
        self.digest.reset(&self.out);
        let rules = AckRules { is_full: self.is_full, ..RULES };
        let result = self.out.acknowledge(&sack, &rules, self.now, &mut self.digest);
        self.out.check_invariants();
        result
    }

    /// The episode that a SACK shows to be spurious.
    fn sack(&mut self, cum: u32, gaps: &[(u16, u16)], duplicates: &[u32]) -> Option<u64> {
        self.try_sack(cum, gaps, duplicates).expect("a SACK that can be");
        self.digest.paths[0].spurious
    }

    /// Three SACKs report TSNs 1 to `count` missing.
    fn lose(&mut self, count: u16) -> u64 {
        for n in 1..=3 {
            assert_eq!(self.sack(0, &[(count + 1, count + n)], &[]), None);
        }
        assert_eq!(self.digest.paths[0].lost, usize::from(count));
        self.out.loss_episode(PATH)
    }

    fn retransmit(&mut self) {
        while let Some(tsn) = self.out.next_marked(PATH) {
            self.out.retransmit(tsn, PATH, self.now);
        }
    }
}

#[test]
fn a_chunk_that_arrives_before_it_is_sent_again_was_not_lost() {
    let mut s = Sender::with_in_flight(10);
    let episode = s.lose(1);
    assert_eq!(s.sack(4, &[], &[]), Some(episode));
}

#[test]
fn what_a_full_sack_left_out_does_not_widen_the_reordering_window() {
    for (is_full, widens) in [(false, true), (true, false)] {
        let mut s = Sender::with_in_flight(10);
        let before = s.out.queues[0].rack.window();
        s.is_full = is_full;
        let episode = s.lose(1);
        s.is_full = false;
        assert_eq!(s.sack(4, &[], &[]), Some(episode));
        assert_eq!(s.out.queues[0].rack.window() > before, widens, "full: {is_full}");
    }
}

#[test]
fn an_answer_much_sooner_than_a_round_trip_is_that_of_the_original() {
    for (after, is_spurious) in [(ms(37), true), (ms(38), false), (ms(51), false)] {
        let mut s = Sender::with_in_flight(10);
        let episode = s.lose(1);
        s.retransmit();
        s.now += after;
        assert_eq!(s.sack(4, &[], &[]), is_spurious.then_some(episode), "{after:?}");
    }
}

#[test]
fn a_duplicate_shows_that_both_arrived() {
    let mut s = Sender::with_in_flight(10);
    let episode = s.lose(1);
    s.retransmit();
    s.now += ms(60);
    assert_eq!(s.sack(4, &[], &[]), None);
    assert_eq!(s.sack(5, &[], &[]), None);
    assert_eq!(s.sack(5, &[], &[1]), Some(episode), "RFC 3708");
    assert_eq!(s.sack(5, &[], &[1]), None, "once");
    // The same in one SACK.
    let mut s = Sender::with_in_flight(10);
    let episode = s.lose(1);
    s.retransmit();
    s.now += ms(60);
    assert_eq!(s.sack(4, &[], &[1]), Some(episode));
    // And in one that was overtaken.
    let mut s = Sender::with_in_flight(10);
    let episode = s.lose(1);
    s.retransmit();
    s.now += ms(60);
    assert_eq!(s.sack(8, &[], &[]), None);
    assert_eq!(s.sack(4, &[], &[1]), Some(episode));
    assert!(s.digest.stale);
    assert_eq!(s.try_sack(4, &[], &[1]), Ok(false), "it says nothing any more");
}

#[test]
fn one_real_loss_makes_the_episode_real() {
    let mut s = Sender::with_in_flight(10);
    let episode = s.lose(2);
    s.retransmit();
    s.now += ms(60);
    assert_eq!(s.sack(5, &[], &[]), None);
    assert_eq!(s.sack(5, &[], &[2]), None, "TSN 1 was lost");
    assert_eq!(s.sack(5, &[], &[1]), Some(episode), "unless it was not");
}

#[test]
fn later_losses_of_the_same_flight_belong_to_the_episode() {
    let mut s = Sender::with_in_flight(10);
    let episode = s.lose(1);
    // TSN 5 is missing, too.
    for n in 6..=8 {
        assert_eq!(s.sack(0, &[(2, 4), (6, n)], &[]), None);
    }
    assert_eq!(s.out.loss_episode(PATH), episode);
    assert_eq!(s.sack(4, &[(2, 4)], &[]), None, "TSN 1 is here; 5 is not");
    assert_eq!(s.sack(8, &[], &[]), Some(episode));
    // What is sent from now on is another matter.
    s.send(5);
    for n in 4..=6 {
        s.sack(10, &[(2, n - 2)], &[]);
    }
    assert!(s.out.loss_episode(PATH) > episode);
}

#[test]
fn three_transmissions_prove_nothing() {
    let mut s = Sender::with_in_flight(10);
    s.lose(1);
    s.retransmit();
    s.now += ms(60);
    let (marked, _) = s.out.mark_path(PATH, None);
    assert!(marked > 0);
    s.retransmit();
    assert_eq!(s.sack(4, &[], &[]), None, "the first or the second");
    assert_eq!(s.sack(4, &[], &[1]), None, "two of three");
}

#[test]
fn a_tail_loss_probe_is_no_loss() {
    let mut s = Sender::with_in_flight(3);
    s.out.mark_for_probe(Tsn(3));
    s.retransmit();
    assert_eq!(s.sack(3, &[], &[]), None);
    assert_eq!(s.sack(3, &[], &[3]), None);
    assert_eq!(s.out.loss_episode(PATH), 0);
}

#[test]
fn a_timeout_in_vain_is_found() {
    let mut s = Sender::with_in_flight(3);
    assert_eq!(s.out.mark_path(PATH, None).0, 3);
    let episode = s.out.loss_episode(PATH);
    s.out.retransmit(Tsn(1), PATH, s.now);
    s.now += ms(60);
    assert_eq!(s.sack(2, &[], &[]), None, "TSN 1 may have been lost");
    assert_eq!(s.out.next_marked(PATH), None, "RFC 5682: TSN 3 is under way");
    assert_eq!(s.out.chunks_in_flight(PATH), 1);
    assert_eq!(s.sack(3, &[], &[1]), Some(episode));
}

#[test]
fn after_a_timeout_what_was_sent_before_an_arrival_is_sent_again() {
    let mut s = Sender::with_in_flight(4);
    s.out.mark_path(PATH, None);
    let episode = s.out.loss_episode(PATH);
    assert_eq!(s.sack(0, &[(3, 3)], &[]), None);
    assert_eq!(s.out.chunks_in_flight(PATH), 1, "TSN 4");
    s.retransmit();
    s.now += ms(60);
    assert_eq!(s.sack(4, &[], &[]), None);
    assert_eq!((s.sack(4, &[], &[2]), s.sack(4, &[], &[1])), (None, Some(episode)));
}

#[test]
fn nothing_is_kept_unless_somebody_wants_to_know() {
    let mut s = Sender::with_in_flight(10);
    s.out.doubts = Doubts::default();
    s.lose(1);
    s.retransmit();
    s.now += ms(60);
    assert_eq!(s.sack(4, &[], &[1]), None);
    assert_eq!((s.out.loss_episode(PATH), s.out.doubts.remembered.len()), (0, 0));
}

#[test]
fn a_peer_cannot_make_it_remember_more_than_so_much() {
    let mut s = Sender::with_in_flight(0);
    for round in 0..5000 {
        s.send(1);
        s.out.mark_path(PATH, None);
        s.retransmit();
        s.now += ms(60);
        assert_eq!(s.sack(round + 1, &[], &[]), None);
    }
    assert_eq!(s.out.doubts.in_order.len(), REMEMBERED_MAX);
    assert_eq!(s.out.doubts.remembered.len(), REMEMBERED_MAX);
    let all: Vec<u32> = (0..5001).collect();
    s.sack(5000, &[], &all);
    assert_eq!(s.out.doubts.remembered.len(), 0);
    assert_eq!(s.out.queues[0].episode.open, 0);
}

#[derive(Clone, Debug)]
enum Step {
    Send(u32),
    Wait(u64),
    Retransmit,
    TimeOut,
    Probe,
    Sack { cum: u32, gaps: Vec<(u16, u16)>, duplicates: Vec<u32> },
}

fn step() -> impl Strategy<Value = Step> {
    let gaps = proptest::collection::vec((1u16..4, 0u16..4), 0..4).prop_map(|gaps| {
        let mut at = 0;
        let ends = |(gap, length): (u16, u16)| {
            let start = at + gap + 1;
            at = start + length;
            (start, at)
        };
        gaps.into_iter().map(ends).collect()
    });
    let duplicates = proptest::collection::vec(0u32..60, 0..6);
    prop_oneof![
        (1u32..8).prop_map(Step::Send),
        (0u64..80).prop_map(Step::Wait),
        Just(Step::Retransmit),
        Just(Step::TimeOut),
        Just(Step::Probe),
        (0u32..40, gaps, duplicates).prop_map(|(cum, gaps, duplicates)| Step::Sack {
            cum,
            gaps,
            duplicates
        }),
    ]
}

proptest! {
    #[test]
    fn whatever_a_peer_says_the_books_are_right(
        steps in proptest::collection::vec(step(), 0..200),
    ) {
        let mut s = Sender::with_in_flight(3);
        for step in steps {
            match step {
                Step::Send(count) => s.send(count),
                Step::Wait(time) => s.now += ms(time),
                Step::Retransmit => s.retransmit(),
                Step::TimeOut => drop(s.out.mark_path(PATH, None)),
                Step::Probe => {
                    for tsn in s.out.last_in_flight(PATH, 2000) {
                        s.out.mark_for_probe(tsn);
                    }
                }
                Step::Sack { cum, gaps, duplicates } => {
                    let before = s.out.queues[0].episode;
                    if s.try_sack(cum, &gaps, &duplicates) == Ok(true)
                        && let Some(spurious) = s.digest.paths[0].spurious
                    {
                        prop_assert_eq!(spurious, before.number);
                        prop_assert!(before.open > 0);
                    }
                }
            }
            s.out.check_invariants();
            let remembered = s.out.doubts.remembered.len();
            prop_assert!(remembered <= s.out.doubts.in_order.len());
        }
    }
}
