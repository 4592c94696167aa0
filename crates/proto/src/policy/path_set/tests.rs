//! Path sets against paths written by hand.

use std::time::Duration;

use super::*;
use crate::Rng;
use crate::config::Config;
use crate::overlay::RouterId;
use crate::policy::tests::{cx, view};
use crate::view::PathState;
use shared::{SharedPolicy, SharedSign};

/// A detector that finds what it is told to.
#[derive(Debug, Default)]
struct Told {
    found: Vec<(u8, u8)>,
}

impl SharedPolicy for Told {
    fn begin(&mut self, _now: Instant, _path: PathId) {}

    fn end(&mut self, _path: PathId) {}

    fn on_fast_retransmit(&mut self, _cx: &PolicyCx<'_>, _path: PathId) -> Vec<SharedEvidence> {
        self.found.drain(..).map(|(a, b)| evidence(a, b)).collect()
    }
}

fn evidence(a: u8, b: u8) -> SharedEvidence {
    SharedEvidence {
        paths: (PathId(a), PathId(b)),
        sign: SharedSign::FastRetransmits,
        events: (8, 8),
        matched: 8,
        lag_s: 0.0,
        threshold: 0.5,
        needed: Some(3),
        chance: 0.01,
        is_shared: true,
    }
}

fn config(overrides: &[(&str, &str)]) -> Config {
    let owned: Vec<_> = overrides.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Config::build("rfc9260", "mtcp", &owned).expect("valid")
}

/// An active path that has acknowledged so much in the first seconds.
fn path(id: u8, acked_bytes: u64) -> Standing {
    Standing {
        id: PathId(id),
        state: PathState::Active,
        is_away: false,
        is_probed: false,
        srtt: Some(Duration::from_millis(100)),
        loss_rate: 0.01,
        is_loss_certain: true,
        acked_bytes,
        chunks_sent: 1000,
        chunks_lost: 10,
    }
}

fn at(ms: u64, paths: &[Standing]) -> Standings<'_> {
    Standings { now: Instant::from_millis(ms), paths }
}

/// Paths that are in use since the beginning.
fn begin(set: &mut dyn PathSet, paths: &[Standing]) {
    for p in paths {
        set.added(Instant::ZERO, p.id);
        set.began(Instant::ZERO, &Standing { acked_bytes: 0, ..p.clone() });
    }
}

/// The decisions after the detector has found its pairs.
fn found(set: &mut Mtcp, paths: &[Standing]) -> Vec<Decision> {
    let views = [view(0), view(1), view(2)];
    let mut rng = Rng::from_number(1);
    set.on_fast_retransmit(&cx(&views, 0, &mut rng), at(5000, paths), PathId(0))
}

fn suppressed(made: &[Decision]) -> Vec<(u8, &'static str)> {
    let of = |decision: &Decision| match decision {
        Decision::Suppress { path, why } => Some((path.0, why.reason().name())),
        Decision::Restore { path, why } => Some((path.0, why.name())),
        _ => None,
    };
    made.iter().filter_map(of).collect()
}

#[test]
fn what_is_configured_chooses_the_set() {
    let of = |settings: &[(&str, &str)]| {
        let settings: Vec<_> =
            settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let config = Config::build("rfc9260", "cmt-pf", &settings).expect("valid");
        format!("{:?}", config.policies().path_set)
    };
    assert!(of(&[]).starts_with("All"));
    for (name, value) in [
        ("shared_congestion", "mtcp"),
        ("paths_max", "2"),
        ("suppress_below", "10"),
        ("path_review_interval", "10 s"),
    ] {
        assert!(of(&[(name, value)]).starts_with("Mtcp"), "{name}");
    }
}

#[test]
fn the_slower_of_two_paths_with_one_bottleneck_goes() {
    let paths = [path(0, 2_000_000), path(1, 1_000_000)];
    let mut set = Mtcp::new(&config(&[]), Box::new(Told { found: vec![(0, 1)] }));
    begin(&mut set, &paths);
    let made = found(&mut set, &paths);
    let why = SetAside::SharedBottleneck(evidence(0, 1));
    assert_eq!(made, [Decision::Suppress { path: PathId(1), why }], "mTCP paper, section 3.4.1");
    assert_eq!(set.evidence(), [evidence(0, 1)]);
    set.removed(PathId(1));
    assert_eq!(set.evidence(), [], "it may be another path that comes with this number");
}

#[test]
fn a_path_with_a_shared_bottleneck_is_tried_again_after_longer_and_longer() {
    let paths = [path(0, 2_000_000), path(1, 1_000_000)];
    let settings = [("shared_retry", "30 s"), ("path_review_interval", "off")];
    let mut set = Mtcp::new(&config(&settings), Box::<Told>::default());
    begin(&mut set, &paths);
    let mut since_ms = 5000;
    for wait_ms in [30_000, 60_000, 120_000, 240_000, 480_000, 480_000] {
        let made = set.judge(at(since_ms, &paths), vec![evidence(0, 1)]);
        assert_eq!(suppressed(&made), [(1, "shared_bottleneck")]);
        assert_eq!(suppressed(&set.review(at(since_ms + wait_ms - 1, &paths))), []);
        since_ms += wait_ms;
        assert_eq!(suppressed(&set.review(at(since_ms, &paths))), [(1, "again")]);
        assert_eq!(set.evidence(), [], "it is looked for anew");
    }
    let mut failed = paths;
    set.judge(at(since_ms, &failed), vec![evidence(0, 1)]);
    failed[1].state = PathState::Inactive;
    assert_eq!(suppressed(&set.review(at(since_ms + 3_600_000, &failed))), [], "it does not work");
}

#[test]
fn paths_min_stay_in_use_and_the_bottleneck_is_told_once() {
    let paths = [path(0, 2_000_000), path(1, 1_000_000)];
    let told = Told { found: vec![(0, 1)] };
    let mut set = Mtcp::new(&config(&[("paths_min", "2")]), Box::new(told));
    begin(&mut set, &paths);
    assert_eq!(found(&mut set, &paths), [Decision::Tell(evidence(0, 1))]);
    assert_eq!(set.judge(at(6000, &paths), vec![evidence(0, 1)]), [], "known");
}

#[test]
fn the_best_spare_takes_the_place_of_a_path_that_is_suppressed_or_fails() {
    let mut paths = [path(0, 2_000_000), path(1, 1_000_000), path(2, 0), path(3, 0)];
    paths[2].srtt = Some(Duration::from_millis(400));
    paths[3].srtt = Some(Duration::from_millis(300));
    let told = Told { found: vec![(0, 1)] };
    let mut set = Mtcp::new(&config(&[("paths_max", "2")]), Box::new(told));
    begin(&mut set, &paths);
    let made = set.settle(at(1000, &paths));
    assert_eq!(suppressed(&made), [(2, "spare"), (3, "spare")], "the worst first");
    let made = found(&mut set, &paths);
    assert_eq!(suppressed(&made), [(1, "shared_bottleneck"), (3, "too_few")]);
    paths[0].state = PathState::PotentiallyFailed;
    assert_eq!(suppressed(&set.settle(at(6000, &paths))), [(2, "too_few")]);
    paths[0].state = PathState::Active;
    assert_eq!(suppressed(&set.settle(at(7000, &paths))), [(2, "spare")]);
}

#[test]
fn a_review_drops_slow_paths_and_probes_unused_ones() {
    let mut paths = [path(0, 2_000_000), path(1, 150_000)];
    let mut set = Mtcp::new(&config(&[]), Box::<Told>::default());
    begin(&mut set, &paths);
    let made = set.review(at(10_000, &paths));
    assert_eq!(suppressed(&made), [(1, "slow")], "less than a tenth");
    assert_eq!(made.last(), Some(&Decision::Probe(PathId(1))));
    paths[1].is_probed = true;
    assert_eq!(set.review(at(15_000, &paths)), [], "it promises as much as the other");
    paths[1].srtt = Some(Duration::from_millis(40));
    assert_eq!(suppressed(&set.review(at(20_000, &paths))), [(1, "better")], "2.5 times");
}

#[test]
fn without_limits_hops_alone_set_a_path_aside() {
    let ms = |ms| Duration::from_millis(ms);
    let route = |far: u64| {
        let hops = [(0, 0), (1, 38), (2, far)].map(|(id, at)| (Some(RouterId(id)), ms(at)));
        Route::from_rtts(hops)
    };
    let mut paths = [path(0, 0), path(1, 0)];
    paths[1].srtt = Some(ms(120));
    let mut set = All::new(&config(&[]));
    begin(&mut set, &paths);
    assert_eq!(set.settle(at(1000, &paths)), []);
    set.set_route(PathId(0), route(40));
    set.set_route(PathId(1), route(60));
    assert_eq!(suppressed(&set.settle(at(2000, &paths))), [(1, "shares_hops")]);
    paths[0].state = PathState::PotentiallyFailed;
    assert_eq!(suppressed(&set.settle(at(3000, &paths))), [(1, "disjoint")]);
}
