//! Ranks of paths: what a dear path or a last resort carries, and when.

use std::time::Duration;

use manypath_proto::PathState::{Active, PotentiallyFailed};
use manypath_proto::{Event, Instant, PathId, PathRank, RestoreReason, SuppressReason};
use manypath_sim::chunk_type::{COOKIE_ECHO, DATA, HEARTBEAT_ACK, INIT, SACK};
use manypath_sim::scenario::{RunOptions, Scenario};
use manypath_sim::{MessageKind, Pair, PairBuilder, millis, path_state, secs};

use crate::MIB;

const CHEAP: usize = 0;
const DEAR: usize = 1;
const COST: PathRank = PathRank::Cost(3);

/// Two paths of 20 Mbit/s and 20 ms; the second one has this rank at the sender.
fn pair(rank: PathRank) -> PairBuilder {
    let pair = Pair::two_paths("cmt-pf").profile("fast").rate_mbps(20.0).delay_ms(20.0);
    pair.rank_a(DEAR, rank)
}

fn id(path: usize) -> PathId {
    PathId(path as u8)
}

/// Bytes of SCTP packets that host `a` sent on a path.
fn sent_on(t: &Pair, path: usize) -> u64 {
    t.a.paths()[path].counters.bytes_sent
}

/// The part of all that `a` sent that the dear path carried.
fn share_of_dear(t: &Pair) -> f64 {
    let (cheap, dear) = (sent_on(t, CHEAP) as f64, sent_on(t, DEAR) as f64);
    dear / (cheap + dear)
}

/// Messages of 1250 bytes, one `every` so often.
fn send_every(t: &mut Pair, every: Duration, bytes: u64) {
    let kind = MessageKind { length: Some(1250), ..MessageKind::default() };
    t.a.send_messages_at(t.net.now(), bytes, kind, Some(every));
}

/// 5 Mbit/s in messages of 1250 bytes for that many seconds.
fn send_messages(t: &mut Pair, seconds: u64) {
    send_every(t, Duration::from_millis(2), seconds * 625_000);
}

#[test]
fn half_a_load_stays_on_the_cheap_path() {
    for (seed, loss) in [(1, 0.0), (2, 0.0), (3, 0.001)] {
        let mut t = pair(COST).loss(loss).seed(seed).connect();
        send_messages(&mut t, 20);
        t.run_to_end(secs(40));
        let share = share_of_dear(&t);
        assert!(share < 0.01, "seed {seed}, loss {loss}: {share}");
        assert_eq!(t.sent(DATA).on(id(DEAR)).count(), 0, "seed {seed}, loss {loss}");
    }
}

#[test]
fn bulk_fills_both_paths_as_without_ranks() {
    let time = |rank| {
        let mut t = pair(rank).connect();
        t.a.send_file(40 * MIB);
        let result = t.run_to_end(secs(60)).result();
        assert!(result.completed);
        (result.transfer_time_s, share_of_dear(&t))
    };
    let ((normal, _), (ranked, share)) = (time(PathRank::NORMAL), time(COST));
    assert!((0.4..0.5).contains(&share), "{share}");
    assert!(ranked < normal + 1.2, "the dear path comes half a second later: {normal}, {ranked}");
}

/// The worst path carries copies only. If that is the cheapest one, which has room for ever, new
/// data would find no path.
#[test]
fn data_overflows_where_the_cheapest_path_is_the_one_for_copies() {
    for preset in ["msacmt-rt", "msacmt-rtv2"] {
        let paths = Pair::two_paths(preset).profile("fast").rate_mbps(20.0).delay_ms(20.0);
        let mut t = paths.path(CHEAP, |p| p.delay_ms(60.0)).rank_a(DEAR, COST).connect();
        t.a.send_file(10 * MIB);
        let result = t.run_to_end(secs(60)).result();
        assert!(result.completed && result.transfer_time_s < 8.0, "{}", result.transfer_time_s);
    }
}

#[test]
fn a_short_file_costs_nothing() {
    let mut t = pair(COST).connect();
    t.a.send_file(MIB / 4);
    t.run_to_end(secs(20));
    assert_eq!(t.sent(DATA).on(id(DEAR)).count(), 0, "the cheap path takes 0.3 seconds");
}

#[test]
fn somewhat_more_than_the_cheap_path_carries_overflows_and_no_more() {
    // 25 Mbit/s over 20.
    let mut t = pair(COST).connect();
    send_every(&mut t, Duration::from_micros(400), 20 * 3_125_000);
    let begin = t.net.now();
    t.run_to_end(secs(60));
    let share = share_of_dear(&t);
    assert!((0.15..0.35).contains(&share), "a fifth is too much for the cheap path: {share}");
    let last = t.z.last_received().expect("data") - begin;
    assert!(last < Duration::from_secs(21), "nothing is left behind: {last:?}");
}

#[test]
fn a_backup_carries_nothing_while_another_path_works() {
    let mut t = pair(PathRank::Backup).connect();
    t.a.send_file(20 * MIB);
    t.run_to_end(secs(60));
    assert_eq!(t.sent(DATA).on(id(DEAR)).count(), 0);
    assert_eq!(t.z.received_bytes(), 20 * MIB);
}

#[test]
fn a_dear_path_answers_and_is_asked_while_it_is_idle() {
    let mut t = pair(PathRank::Backup).set("hb_interval", "5 s").connect();
    send_messages(&mut t, 30);
    t.run_to_end(secs(60));
    let answers = t.sent(HEARTBEAT_ACK).by(t.z.node()).on(id(DEAR)).count();
    assert!(answers >= 5, "{answers} answers in 30 s");
    let dear = &t.a.paths()[DEAR];
    assert_eq!((dear.state, dear.suppressed), (Active, Some(SuppressReason::Dearer)));
}

/// The longest time without delivery, in seconds, if the cheap path fails at 5 s.
fn gap_of_a_failure(rank: PathRank) -> (Pair, f64) {
    let mut t = pair(rank).connect();
    let begin = t.net.now();
    t.net.path(CHEAP).at(begin + Duration::from_secs(5)).cut();
    send_messages(&mut t, 10);
    let result = t.run_to_end(secs(60)).result();
    assert!(result.completed);
    (t, result.max_delivery_gap_s)
}

#[test]
fn a_dear_path_takes_over_when_the_cheap_one_fails() {
    let (_, normal) = gap_of_a_failure(PathRank::NORMAL);
    for rank in [COST, PathRank::Backup] {
        let (t, gap) = gap_of_a_failure(rank);
        assert!(gap < normal + 0.1, "{rank}: {gap} s, {normal} s without ranks");
        let failed = t.a.events().iter().find(|(_, e)| path_state(id(CHEAP), PotentiallyFailed)(e));
        let failed = failed.expect("it fails").0;
        assert_eq!(t.sent(DATA).on(id(DEAR)).until(failed).count(), 0, "{rank}");
        assert!(t.sent(DATA).on(id(DEAR)).since(failed).count() > 1000, "{rank}");
        let tells = t.a.events().iter().any(|(at, event)| {
            let why = RestoreReason::Failover;
            *at == failed && *event == Event::PathRestored { path: id(DEAR), reason: why }
        });
        assert!(tells, "{rank}: {:?}", t.a.events());
    }
}

#[test]
fn data_moves_back_when_the_cheap_path_returns() {
    for rank in [COST, PathRank::Backup] {
        let mut t = pair(rank).connect();
        let begin = t.net.now();
        t.net.path(CHEAP).at(begin + Duration::from_secs(5)).cut();
        t.net.path(CHEAP).at(begin + Duration::from_secs(10)).restore();
        send_messages(&mut t, 20);
        t.run_until(begin + Duration::from_secs(10));
        let back = t.run_until_event(path_state(id(CHEAP), Active));
        t.run_to_end(secs(60));
        let late = t.sent(DATA).by(t.a.node()).on(id(DEAR)).since(back + Duration::from_secs(1));
        assert_eq!(late.count(), 0, "{rank}: the path answers at {back:?}");
        let early = t.sent(DATA).on(id(CHEAP)).since(back).until(back + Duration::from_secs(1));
        assert!(early.count() > 300, "{rank}: {} packets", early.count());
    }
}

#[test]
fn ranks_change_while_data_flows() {
    let mut t = pair(PathRank::NORMAL).connect();
    t.a.send_file(200 * MIB);
    t.run_until(secs(4));
    assert!(t.sent(DATA).on(id(DEAR)).count() > 1000, "normal: both carry data");

    let set = |t: &mut Pair, path: usize, rank| {
        let now = t.net.now();
        assert!(t.a.command(|assoc| assoc.set_path_rank(now, id(path), rank)));
    };
    let carried = |t: &mut Pair, path: usize, seconds: u64| {
        let before = t.net.now();
        t.run_until(before + Duration::from_secs(seconds));
        t.sent(DATA).on(id(path)).since(before + Duration::from_millis(1)).count()
    };
    set(&mut t, DEAR, PathRank::Backup);
    assert_eq!(carried(&mut t, DEAR, 2), 0, "from then on nothing");
    set(&mut t, DEAR, COST);
    assert!(carried(&mut t, DEAR, 4) > 1000, "bulk overflows");
    set(&mut t, CHEAP, PathRank::Backup);
    assert_eq!(carried(&mut t, CHEAP, 2), 0, "the other one is the last resort now");
    set(&mut t, CHEAP, PathRank::NORMAL);
    set(&mut t, DEAR, PathRank::NORMAL);
    assert!(carried(&mut t, CHEAP, 4) > 1000 && carried(&mut t, DEAR, 4) > 1000);

    let told: Vec<_> = (t.a.events().iter())
        .filter_map(|(_, event)| match event {
            Event::PathRank { path, rank } => Some((path.0, *rank)),
            _ => None,
        })
        .collect();
    let normal = PathRank::NORMAL;
    let backup = PathRank::Backup;
    assert_eq!(told, [(1, backup), (1, COST), (0, backup), (0, normal), (1, normal)]);
}

#[test]
fn costs_are_used_one_after_the_other() {
    let paths = vec![Default::default(); 3];
    let t = Pair::paths("cmt-pf", paths).profile("fast").rate_mbps(10.0).delay_ms(20.0);
    let mut t = t.rank_a(1, PathRank::Cost(9)).rank_a(2, PathRank::Cost(1)).connect();
    // 15 Mbit/s over 10 and 10.
    send_every(&mut t, Duration::from_nanos(666_667), 20 * 1_875_000);
    t.run_to_end(secs(60));
    let sent: Vec<u64> = (0..3).map(|path| sent_on(&t, path)).collect();
    assert!(sent[2] > 5_000_000, "{sent:?}");
    assert!(sent[1] < sent[2] / 50, "two carry it: {sent:?}");
}

#[test]
fn a_peer_that_does_not_read_makes_nothing_overflow() {
    let mut t = pair(COST).connect();
    t.z.pause_reading();
    t.a.send_file(20 * MIB);
    t.run_until(secs(12)); // 8 MiB at 20 Mbit/s take four seconds
    let before = t.sent(DATA).on(id(DEAR)).count();
    let paused: Instant = t.net.now();
    t.run_until(secs(30));
    t.z.resume_reading();
    t.run_until(secs(30) + Duration::from_millis(400));
    let after = t.sent(DATA).on(id(DEAR)).since(paused).count();
    assert_eq!(after, 0, "it is the peer that held data back; {before} packets before");
}

#[test]
fn retransmissions_stay_on_the_cheap_path() {
    let mut t = pair(PathRank::Backup).loss(0.01).seed(3).connect();
    t.a.send_file(10 * MIB);
    t.run_to_end(secs(120));
    assert!(t.a.paths()[CHEAP].counters.retransmissions > 20);
    assert_eq!(t.a.paths()[DEAR].counters.retransmissions, 0);
    assert_eq!(t.z.received_bytes(), 10 * MIB);
}

#[test]
fn sacks_take_a_cheap_path_that_works() {
    // The sender knows no ranks: it uses both paths. The receiver pays for the second one.
    let pair = || Pair::two_paths("cmt-pf").profile("fast").rate_mbps(20.0).delay_ms(20.0);
    let sacks = |t: &Pair, path| t.sent(SACK).by(t.z.node()).on(id(path)).count() as f64;
    let run = |pair: PairBuilder| {
        let mut t = pair.connect();
        t.a.send_file(20 * MIB);
        let result = t.run_to_end(secs(60)).result();
        (result.transfer_time_s, sacks(&t, DEAR) / (sacks(&t, CHEAP) + sacks(&t, DEAR)))
    };
    let (normal, ranked) = (run(pair()), run(pair().rank_z(DEAR, COST)));
    assert!(normal.1 > 0.3, "half of them answer on the second path: {normal:?}");
    assert!(ranked.1 < 0.02, "{ranked:?}");
    assert!(ranked.0 < 1.05 * normal.0, "{normal:?} {ranked:?}");

    // The cheap path fails: SACKs do not get lost there for longer than a round trip.
    let gap = |pair: PairBuilder| {
        let mut t = pair.connect();
        let begin = t.net.now();
        t.net.path(CHEAP).at(begin + Duration::from_secs(2)).cut();
        t.a.send_file(20 * MIB);
        let result = t.run_to_end(secs(60)).result();
        assert!(result.completed);
        result.max_delivery_gap_s
    };
    let (normal, ranked) = (gap(pair()), gap(pair().rank_z(DEAR, COST)));
    assert!(ranked < normal + 0.1, "{normal} s, {ranked} s");
}

#[test]
fn the_handshake_takes_a_cheap_path() {
    let pair = pair(COST).rank_a(CHEAP, PathRank::Cost(200));
    let mut t = pair.set("handshake_on_all_paths", "false").start();
    t.a.send_file(MIB / 4);
    t.run_until(millis(2000));
    assert_eq!(t.z.received_bytes(), MIB / 4);
    for chunk in [INIT, COOKIE_ECHO, DATA] {
        assert_eq!(t.sent(chunk).by(t.a.node()).on(id(CHEAP)).count(), 0, "the dearer one now");
    }
}

const FILE: &str = r#"
name = "a metered path"
time_limit = "60 s"
[transport]
profile = "fast"
preset = "cmt-pf"
[transfer]
size = "12.5 MB"
rate = "5 Mbit/s"
[[path]]
name = "wifi"
rate = "20 Mbit/s"
delay = "20 ms"
down = [{ at = "12 s", for = "3 s" }]
[[path]]
name = "lte"
rate = "20 Mbit/s"
delay = "30 ms"
rank = "cost=3"
[[event]]
path = "wifi"
at = "5 s"
rank = "backup"
[[event]]
path = "wifi"
at = "8 s"
rank = "normal"
"#;

/// The megabytes that the sender of a scenario sent on the first and on the second path.
fn carried(text: &str) -> (f64, f64) {
    let scenario = Scenario::parse("ranks.toml", text).expect("a scenario");
    let point = scenario.points().expect("points").remove(0);
    let output = point.run.run(1, &RunOptions::default()).expect("it runs");
    let paths = &output.result.transfer.paths;
    let sent = |path: usize| paths[path].stats.counters.bytes_sent as f64 / 1e6;
    assert!(output.result.transfer.completed);
    (sent(0), sent(1))
}

#[test]
fn scenario_files_have_ranks_and_change_them() {
    // 20 s of 5 Mbit/s: the dear path carries the 3 s of each event.
    let (wifi, lte) = carried(FILE);
    assert!((3.4..4.6).contains(&lte), "{wifi} MB, {lte} MB");
    let (_, lte) = carried(&FILE.replace("at = \"12 s\"", "at = \"40 s\""));
    assert!((1.7..2.3).contains(&lte), "without the outage: {lte} MB");
    let from_data = FILE.replace("rank = \"backup\"", "after = \"first data\"\nrank = \"backup\"");
    let (_, lte) = carried(&from_data);
    assert!((3.4..4.6).contains(&lte), "counted from the first data: {lte} MB");
}
