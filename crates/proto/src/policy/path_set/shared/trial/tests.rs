//! Two paths whose delays are made up.

use super::*;
use crate::config::Config;
use crate::policy::tests::{cx, view};
use crate::{Instant, Rng};

const RTT_MS: u64 = 100;

/// Delay of each path, in milliseconds beyond 60, by the time and whether each path is tried.
type Queue = fn(ms: u64, tried: [bool; 2]) -> [f64; 2];

/// The queue falls and rises once in 2 s as others come and go.
fn of_others(ms: u64) -> f64 {
    15.0 * (ms as f64 / 2000.0 * std::f64::consts::TAU).sin()
}

/// Both paths through one queue, which is lower while one of them is tried.
fn one_queue(ms: u64, tried: [bool; 2]) -> [f64; 2] {
    let less = if tried[0] || tried[1] { 12.0 } else { 0.0 };
    [40.0 - less + of_others(ms) / 2.0; 2]
}

/// A queue each, of the same kind and filled at the same time.
fn two_in_step(ms: u64, tried: [bool; 2]) -> [f64; 2] {
    let filled = 30.0 + (ms % 3000) as f64 / 100.0;
    tried.map(|tried| if tried { filled - 15.0 } else { filled })
}

/// A queue each; the delay of the way back, which both have in common, is as unsteady as in
/// `one_queue`.
fn common_way_back(ms: u64, tried: [bool; 2]) -> [f64; 2] {
    tried.map(|tried| 40.0 + of_others(ms) / 2.0 - if tried { 12.0 } else { 0.0 })
}

/// A queue each, that differ as their others do.
fn two_apart(ms: u64, tried: [bool; 2]) -> [f64; 2] {
    let others = [of_others(ms), of_others(ms * 7 / 3 + 400)];
    [0, 1].map(|n| 40.0 + others[n] / 2.0 - if tried[n] { 12.0 } else { 0.0 })
}

/// Runs the trials of the preset `mtcp` for `seconds`, see [`run_by`].
fn run(seconds: u64, queue: Queue) -> (Option<(u64, SharedEvidence)>, [u64; 2]) {
    run_by(Trial::new, seconds, queue)
}

/// Runs for `seconds`, with a packet on each path every 5 ms. Returns the first verdict with its
/// time, and for how many milliseconds each path was tried.
fn run_by(
    policy: fn(&Params) -> Trial,
    seconds: u64,
    queue: Queue,
) -> (Option<(u64, SharedEvidence)>, [u64; 2]) {
    let config = Config::build("fast", "mtcp", &[]).expect("valid");
    let mut policy = policy(&config);
    let srtt = Some(Duration::from_millis(RTT_MS));
    let full = |id| PathView { srtt, cwnd: 60_000, flight_size: 60_000, ..view(id) };
    let paths = [full(0), full(1)];
    let mut rng = Rng::from_number(1);
    let ids = [PathId(0), PathId(1)];
    ids.iter().for_each(|&id| policy.begin(Instant::ZERO, id));
    let (mut first, mut tried_ms, mut under_way) =
        (None, [0; 2], std::collections::BTreeMap::new());
    for ms in (0..seconds * 1000).step_by(5) {
        let tried = ids.map(|id| policy.tried() == Some(id));
        let delays = queue(ms, tried);
        for (index, delay) in delays.into_iter().enumerate() {
            tried_ms[index] += u64::from(tried[index]) * 5;
            under_way.insert((ms * 1000 + ((60.0 + delay) * 1e3) as u64, index), ms);
        }
        while let Some(((at_us, index), sent)) = under_way.pop_first() {
            if at_us > ms * 1000 {
                under_way.insert((at_us, index), sent);
                break;
            }
            let now = Instant::from_nanos(at_us * 1000);
            if policy.on_delay(now, PathId(index as u8), Instant::from_millis(sent)) {
                let mut at = cx(&paths, 0, &mut rng);
                at.now = now;
                let found = policy.review(&mut at).into_iter().find(|e| e.is_shared);
                first = first.or(found.map(|evidence| (at_us / 1000, evidence)));
            }
        }
    }
    (first, tried_ms)
}

#[test]
fn paths_through_one_queue_are_found_soon() {
    let (found, _) = run(15, one_queue);
    let (at_ms, evidence) = found.expect("found");
    assert!(at_ms < 8000, "after {at_ms} ms");
    assert_eq!(evidence.sign, SharedSign::Delays);
    assert!(evidence.ratio() > 0.5 && evidence.chance <= 0.05, "{evidence:?}");
    let said = evidence.to_string();
    assert!(said.contains("times the delays of both changed together"), "{said}");
}

#[test]
fn equal_queues_that_fill_in_step_are_not_taken_for_one() {
    assert_eq!(run(60, two_in_step).0, None);
}

#[test]
fn what_paths_have_in_common_on_the_way_back_does_not_count() {
    assert_eq!(run(60, common_way_back).0, None);
}

#[test]
fn paths_whose_delays_are_alike_are_tried_and_found() {
    let (found, tried_ms) = run_by(Trial::of_alike, 15, one_queue);
    assert!(found.is_some_and(|(at_ms, _)| at_ms < 10_000), "{found:?}");
    assert!(tried_ms.iter().sum::<u64>() > 0, "{tried_ms:?}");
    // The way back alone makes them alike: trials tell.
    assert_eq!(run_by(Trial::of_alike, 60, common_way_back).0, None);
}

#[test]
fn paths_whose_delays_differ_are_not_tried_if_only_alike_ones_are() {
    let tried_ms = |policy| run_by(policy, 60, two_apart).1.iter().sum::<u64>();
    let (alike, all) = (tried_ms(Trial::of_alike), tried_ms(Trial::new));
    assert!(alike * 4 < all, "{alike} of {all} ms");
}

#[test]
fn losses_at_the_same_times_prove_nothing_where_only_alike_paths_are_tried() {
    let config = Config::build("fast", "mtcp", &[]).expect("valid");
    for (mut policy, is_found) in [(Trial::new(&config), true), (Trial::of_alike(&config), false)] {
        let paths = [view(0), view(1)];
        let mut rng = Rng::from_number(1);
        [PathId(0), PathId(1)].iter().for_each(|&id| policy.begin(Instant::ZERO, id));
        let mut found = Vec::new();
        for ms in (20_000..60_000).step_by(2000) {
            for id in [PathId(0), PathId(1)] {
                let mut at = cx(&paths, 0, &mut rng);
                at.now = Instant::from_millis(ms);
                found.extend(policy.on_fast_retransmit(&at, id));
            }
        }
        assert_eq!(!found.is_empty(), is_found, "{found:?}");
    }
}

#[test]
fn trials_become_rare_once_paths_are_known_to_be_apart() {
    let early = run(10, two_in_step).1;
    let late = run(110, two_in_step).1;
    let in_between = [late[0] - early[0], late[1] - early[1]];
    assert!(early.iter().all(|&ms| ms > 200), "{early:?}");
    // About one in 6 s on average, of 225 ms each; both paths in turn.
    let sum: u64 = in_between.iter().sum();
    assert!((2_000..10_000).contains(&sum), "{in_between:?} ms in 100 s");
}

#[test]
fn a_path_that_ends_during_its_trial_is_tried_no_longer() {
    let config = Config::build("fast", "mtcp", &[]).expect("valid");
    let mut policy = Trial::new(&config);
    policy.begin(Instant::ZERO, PathId(0));
    let rtt = Duration::from_millis(RTT_MS);
    policy.round = Some(Round { begun: Instant::ZERO, rtt, path: Some(PathId(0)), is_trial: true });
    assert_eq!(policy.tried(), Some(PathId(0)));
    policy.end(PathId(0));
    assert_eq!(policy.tried(), None);
}

#[test]
fn paths_that_are_not_full_are_left_alone() {
    let config = Config::build("fast", "mtcp", &[]).expect("valid");
    let mut policy = Trial::new(&config);
    let srtt = Some(Duration::from_millis(RTT_MS));
    let paths = [0, 1].map(|id| PathView { srtt, cwnd: 60_000, flight_size: 20_000, ..view(id) });
    let mut rng = Rng::from_number(1);
    [PathId(0), PathId(1)].iter().for_each(|&id| policy.begin(Instant::ZERO, id));
    for ms in (0..20_000).step_by(10) {
        let mut at = cx(&paths, 0, &mut rng);
        at.now = Instant::from_millis(ms);
        policy.on_delay(at.now, PathId(0), Instant::from_millis(ms.saturating_sub(RTT_MS)));
        assert_eq!(policy.review(&mut at), []);
        assert_eq!(policy.tried(), None);
    }
}
