//! Which chunk is copied where, on paths and with chunks written by hand.

use std::time::Duration;

use manypath_wire::Tsn;

use super::super::*;
use super::*;
use crate::view::Estimate;

const CHUNK: usize = 1000;

/// A path of the fake, and the room in its window.
struct FakePath {
    path: FlightPath,
    has_room: bool,
}

/// Paths and chunks, in order of transmission. TSNs up to 100 are acknowledged.
struct Fake {
    paths: Vec<FakePath>,
    chunks: Vec<SentChunk>,
    /// TSNs that are in flight on a second path.
    copied: Vec<u32>,
    last_progress: Instant,
    bytes_acked: u64,
    bytes_copied: u64,
}

impl Flights for Fake {
    fn cum_tsn_ack_point(&self) -> Tsn {
        Tsn(100)
    }

    fn last_progress(&self) -> Instant {
        self.last_progress
    }

    fn awaited(&self) -> Option<SentChunk> {
        self.chunks.iter().find(|chunk| chunk.tsn == Tsn(101)).copied()
    }

    fn find_on(
        &self,
        path: PathId,
        accepts: &mut dyn FnMut(&SentChunk) -> bool,
    ) -> Option<SentChunk> {
        self.chunks.iter().filter(|chunk| chunk.path == path).copied().find(accepts)
    }

    fn is_alone(&self, chunk: &SentChunk) -> bool {
        !self.copied.contains(&chunk.tsn.0)
    }

    fn path(&self, id: PathId) -> Option<FlightPath> {
        self.paths.get(id.index()).map(|fake| fake.path)
    }

    fn path_after(&self, after: Option<PathId>) -> Option<FlightPath> {
        self.path(PathId(after.map_or(0, |after| after.0 + 1)))
    }

    fn has_room(&self, path: PathId) -> bool {
        self.paths.get(path.index()).is_some_and(|fake| fake.has_room)
    }

    fn bytes_acked(&self) -> u64 {
        self.bytes_acked
    }

    fn bytes_copied(&self) -> u64 {
        self.bytes_copied
    }
}

impl Fake {
    /// Usable paths with room, with these round-trip times in milliseconds, which vary by 4 ms.
    /// Nothing is in flight, and all paths proved to work at the beginning.
    fn with_rtts(rtts: &[u64]) -> Fake {
        let path = |(id, &rtt): (u8, &u64)| FlightPath {
            id: PathId(id),
            usable: true,
            srtt: Some(ms(rtt)),
            rtt_variation: ms(4),
            estimate: None,
            last_active: Instant::ZERO,
        };
        let with_room = |path| FakePath { path, has_room: true };
        Fake {
            paths: (0..).zip(rtts).map(path).map(with_room).collect(),
            chunks: Vec::new(),
            copied: Vec::new(),
            last_progress: Instant::ZERO,
            bytes_acked: 0,
            bytes_copied: 0,
        }
    }

    /// A chunk sent once, on this path at this time in milliseconds.
    fn sent(mut self, tsn: u32, path: u8, at: u64) -> Fake {
        let sent_at = Instant::from_millis(at);
        let (tsn, path) = (Tsn(tsn), PathId(path));
        self.chunks.push(SentChunk { tsn, path, sent_at, size: CHUNK, is_first: true });
        self
    }

    /// TSN and path of the copy that is chosen at this time in milliseconds.
    fn copy_at(&self, at: u64, turn: CopyTurn) -> Option<(u32, u8)> {
        let copy = Late.copy(Instant::from_millis(at), turn, self)?;
        assert!(copy.asks_for_sack, "the SACK comes back on the path of the copy");
        Some((copy.tsn.0, copy.on.0))
    }

    fn next_look_at(&self, at: u64) -> Option<NextLook> {
        Late.next_look(Instant::from_millis(at), self)
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

use CopyTurn::{BeforeNewData, Idle};

#[test]
fn an_idle_path_copies_what_a_slower_one_delivers_later() {
    // Due at 200 ms on the slow path, at 140 ms by a copy, give or take 4 ms.
    let two = Fake::with_rtts(&[20, 200]).sent(101, 1, 0).sent(102, 1, 0);
    assert_eq!(two.copy_at(120, Idle), Some((101, 0)));
    assert_eq!(two.copy_at(120, BeforeNewData), None, "new data comes before what is not overdue");
    assert_eq!(two.copy_at(175, Idle), Some((101, 0)));
    assert_eq!(two.copy_at(176, Idle), None, "the original is as soon as the copy");
    assert_eq!(two.copy_at(204, Idle), None, "delays vary");
    assert_eq!(two.copy_at(205, Idle), Some((101, 0)), "it should have arrived");
}

#[test]
fn a_faster_path_is_never_waited_for_by_copies_on_a_slower_one() {
    let two = Fake::with_rtts(&[20, 200]).sent(101, 0, 0);
    assert_eq!(two.copy_at(10, Idle), None);
    assert_eq!(two.copy_at(45, Idle), None, "20 ms are over, and the path has no slower one");
}

#[test]
fn the_chunk_that_holds_back_most_is_copied_first() {
    let three = Fake::with_rtts(&[20, 200, 300]).sent(102, 1, 0).sent(101, 2, 0).sent(103, 2, 0);
    assert_eq!(three.copy_at(50, Idle), Some((101, 0)));
}

#[test]
fn a_full_path_delivers_its_chunks_one_after_the_other() {
    let mut two = Fake::with_rtts(&[20, 30]).sent(101, 1, 0).sent(102, 1, 0).sent(103, 1, 0);
    assert_eq!(two.copy_at(9, Idle), None, "all due at 30 ms");
    let estimate = Estimate { rate: 50_000.0, min_rtt: ms(30), is_settled: true };
    two.paths[1].path.estimate = Some(estimate);
    assert_eq!(two.copy_at(9, Idle), Some((102, 0)), "a chunk takes 20 ms");
    two.paths[1].path.estimate = Some(Estimate { is_settled: false, ..estimate });
    assert_eq!(two.copy_at(9, Idle), None, "the path may be faster than that");
}

#[test]
fn a_chunk_that_has_a_copy_or_was_sent_again_is_not_copied_by_an_idle_path() {
    let mut two = Fake::with_rtts(&[20, 200]).sent(101, 1, 0).sent(102, 1, 0).sent(103, 1, 0);
    two.copied = vec![101];
    two.chunks[1].is_first = false;
    assert_eq!(two.copy_at(100, Idle), Some((103, 0)));
    two.copied.push(103);
    assert_eq!(two.copy_at(100, Idle), None);
}

#[test]
fn a_path_without_room_or_not_in_use_carries_no_copies() {
    let three = || Fake::with_rtts(&[20, 40, 200]).sent(101, 2, 0);
    assert_eq!(three().copy_at(100, Idle), Some((101, 0)));
    for change in [
        |fake: &mut Fake| fake.paths[0].has_room = false,
        |fake: &mut Fake| fake.paths[0].path.usable = false,
        |fake: &mut Fake| fake.paths[0].path.srtt = None,
    ] {
        let mut changed = three();
        change(&mut changed);
        assert_eq!(changed.copy_at(100, Idle), Some((101, 1)));
    }
}

#[test]
fn an_overdue_chunk_is_copied_before_new_data() {
    // Overdue after two round-trip times: at 80 ms.
    let mut two = Fake::with_rtts(&[200, 40]).sent(101, 1, 0).sent(102, 1, 1);
    assert_eq!(two.copy_at(79, BeforeNewData), None);
    assert_eq!(two.copy_at(80, BeforeNewData), Some((101, 0)), "also on a slower path");
    two.copied = vec![101];
    assert_eq!(two.copy_at(80, BeforeNewData), None, "the next one was sent later");
    assert_eq!(two.copy_at(81, BeforeNewData), Some((102, 0)));
    two.chunks[1].is_first = false;
    assert_eq!(two.copy_at(81, BeforeNewData), Some((102, 0)), "also one that was sent again");
    two.paths[0].has_room = false;
    assert_eq!(two.copy_at(81, BeforeNewData), None);
}

#[test]
fn nothing_is_overdue_while_its_path_and_the_ack_point_make_progress() {
    let mut two = Fake::with_rtts(&[200, 40]).sent(101, 1, 0);
    two.paths[1].path.last_active = Instant::from_millis(70);
    assert_eq!(two.copy_at(80, BeforeNewData), Some((101, 0)), "acks that leave a gap");
    two.last_progress = Instant::from_millis(30);
    assert_eq!(two.copy_at(109, BeforeNewData), None);
    assert_eq!(two.copy_at(110, BeforeNewData), Some((101, 0)));
    two.paths[1].path.last_active = Instant::ZERO;
    assert_eq!(two.copy_at(80, BeforeNewData), Some((101, 0)), "progress by copies alone");
}

#[test]
fn a_short_pause_is_no_stall() {
    let two = Fake::with_rtts(&[20, 5]).sent(101, 1, 0);
    assert_eq!(two.copy_at(49, BeforeNewData), None);
    assert_eq!(two.copy_at(50, BeforeNewData), Some((101, 0)));
}

#[test]
fn copies_end_when_their_budget_is_used_up() {
    let mut two = Fake::with_rtts(&[20, 200]).sent(101, 1, 0);
    two.bytes_copied = 512 * 1024 - 1;
    assert_eq!(two.copy_at(100, Idle), Some((101, 0)));
    assert_eq!(two.copy_at(400, BeforeNewData), Some((101, 0)));
    two.bytes_copied += 1;
    assert_eq!(two.copy_at(100, Idle), None);
    assert_eq!(two.copy_at(400, BeforeNewData), None);
    two.bytes_acked = 50;
    assert_eq!(two.copy_at(100, Idle), Some((101, 0)), "2 % of what is acknowledged");
}

#[test]
fn it_looks_again_when_the_awaited_chunk_is_overdue() {
    let two = Fake::with_rtts(&[20, 40]).sent(101, 1, 5);
    assert_eq!(two.next_look_at(10), Some(NextLook::At(Instant::from_millis(85))));
    assert_eq!(Fake::with_rtts(&[20, 40]).next_look_at(10), None, "nothing is awaited");
}

#[test]
fn an_overdue_chunk_waits_for_the_pacers_of_the_other_paths() {
    let two = Fake::with_rtts(&[20, 40]).sent(101, 1, 5);
    assert_eq!(two.next_look_at(85), Some(NextLook::Paced { except: PathId(1) }));
}
