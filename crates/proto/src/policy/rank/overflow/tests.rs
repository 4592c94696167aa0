//! Scenarios: one cheap path of 20 ms, and dearer ones.

use super::*;
use crate::config::Config;
use crate::policy::tests::view;

const CHEAP: PathRank = PathRank::NORMAL;
const DEAR: PathRank = PathRank::Cost(3);
const DEARER: PathRank = PathRank::Cost(9);

/// A path of 20 ms that is out of slow start.
fn path(id: u8, rank: PathRank, cwnd_space: usize) -> PathView {
    let srtt = Some(Duration::from_millis(20));
    PathView { rank, srtt, cwnd: 40_000, ssthresh: 20_000, cwnd_space, ..view(id) }
}

struct Case {
    policy: Overflow,
    paths: Vec<PathView>,
}

impl Case {
    /// The first path has no room, the others have.
    fn of(ranks: &[PathRank]) -> Case {
        let paths = ranks.iter().enumerate();
        let paths = paths.map(|(i, &rank)| path(i as u8, rank, if i == 0 { 0 } else { 9000 }));
        Case { policy: Overflow::new(&Config::default()), paths: paths.collect() }
    }

    /// The answer at a millisecond, if data waits since another one.
    fn at(&mut self, ms: u64, waits_since: Option<u64>) -> Ceiling {
        let usable = self.paths.iter().filter(|p| p.usable);
        let base = usable.map(|p| p.rank).min().expect("a path works");
        let waits_since = waits_since.map(Instant::from_millis);
        let now = Instant::from_millis(ms);
        self.policy.ceiling(&RankCx { now, paths: &self.paths, base, waits_since })
    }

    /// The ranks in use, and for the next packet, while data waits without end from 0 ms on.
    fn overload(&mut self, ms: u64) -> (PathRank, PathRank) {
        let Ceiling { open, next, .. } = self.at(ms, Some(0));
        (open, next)
    }

    fn carries(&mut self, ms: u64, rank: PathRank) {
        self.policy.sent(Instant::from_millis(ms), rank);
    }
}

fn ms(ms: u64) -> Option<Instant> {
    Some(Instant::from_millis(ms))
}

#[test]
fn data_that_waits_long_enough_overflows_to_the_dearer_path() {
    let mut case = Case::of(&[CHEAP, DEAR]);
    assert_eq!(case.at(1, Some(0)), Ceiling { open: CHEAP, next: CHEAP, again: ms(500) });
    assert_eq!(case.overload(499), (CHEAP, CHEAP));
    assert_eq!(case.overload(500), (DEAR, DEAR));
    case.paths[0].cwnd_space = 1500;
    assert_eq!(case.overload(501), (DEAR, CHEAP), "the cheap path comes first");
}

#[test]
fn bursts_that_the_cheap_path_carries_in_time_stay_there() {
    let mut case = Case::of(&[CHEAP, DEAR]);
    for second in 0..20 {
        let begins = 1000 * second;
        for waited in [0, 100, 300, 499] {
            let now = case.at(begins + waited, Some(begins));
            assert_eq!((now.open, now.next), (CHEAP, CHEAP), "{second} s and {waited} ms");
        }
        assert_eq!(case.at(begins + 500, None).open, CHEAP);
    }
}

#[test]
fn a_slow_start_and_a_long_round_trip_have_more_time() {
    let mut case = Case::of(&[CHEAP, DEAR]);
    case.paths[0].srtt = Some(Duration::from_millis(200));
    assert_eq!(case.at(1, Some(0)).again, ms(800), "four round trips");
    case.paths[0].ssthresh = usize::MAX;
    assert_eq!(case.at(1, Some(0)).again, ms(2000), "ten while the window doubles");
}

#[test]
fn while_in_use_the_dearer_path_gets_what_has_waited_for_a_round_trip() {
    let mut case = Case::of(&[CHEAP, DEAR]);
    assert_eq!(case.overload(500), (DEAR, DEAR));
    case.carries(500, DEAR);
    assert_eq!(case.at(600, Some(595)), Ceiling { open: DEAR, next: CHEAP, again: ms(615) });
    assert_eq!(case.at(615, Some(595)).next, DEAR);
}

#[test]
fn the_dearer_path_is_out_of_use_when_it_carried_nothing_for_a_while() {
    let mut case = Case::of(&[CHEAP, DEAR]);
    case.overload(500);
    case.carries(700, DEAR);
    assert_eq!(case.at(1199, None).open, DEAR);
    assert_eq!(case.at(1200, None).open, CHEAP);
    assert_eq!(case.at(1300, Some(1250)).again, ms(1750), "and waits as at first");
}

#[test]
fn ranks_come_into_use_one_after_the_other() {
    let mut case = Case::of(&[CHEAP, DEARER, DEAR]);
    assert_eq!(case.overload(500), (DEAR, DEAR));
    case.carries(900, DEAR);
    assert_eq!(case.overload(1200), (DEAR, DEAR), "it has room");
    case.paths[2].cwnd_space = 0;
    assert_eq!(case.overload(1300), (DEARER, DEARER));
    case.carries(1700, DEAR);
    assert_eq!(case.overload(1799).0, DEARER);
    assert_eq!(case.overload(1800).0, DEAR, "the dearest carried nothing");
}

#[test]
fn a_backup_path_carries_no_overflow() {
    let mut case = Case::of(&[CHEAP, PathRank::Backup]);
    assert_eq!(case.at(10_000, Some(0)), Ceiling { open: CHEAP, next: CHEAP, again: None });
    case.paths[0].usable = false;
    assert_eq!(case.overload(10_001), (PathRank::Backup, PathRank::Backup));
}

#[test]
fn a_cheaper_path_that_comes_back_takes_over_at_once() {
    let mut case = Case::of(&[CHEAP, DEAR]);
    case.paths[0].usable = false;
    assert_eq!(case.at(1, Some(1)).next, DEAR, "no cheaper path works");
    case.carries(900, DEAR);
    case.paths[0].usable = true;
    case.paths[0].cwnd_space = 1500;
    let now = case.at(1000, Some(990));
    assert_eq!((now.open, now.next), (CHEAP, CHEAP));
    case.paths[0].cwnd_space = 0;
    assert_eq!(case.at(1001, Some(0)).again, ms(1500), "old data does not count against it");
}
