//! The scenario files that users start from are right and do what they say.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use manypath_sim::scenario::{Point, RunOptions, RunResult, Scenario};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios").join(name)
}

fn points(name: &str) -> Vec<Point> {
    let scenario = Scenario::load(file(name)).unwrap_or_else(|error| panic!("{error}"));
    scenario.points().unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a point with the first seed; the same run again gives the same.
fn run(point: &Point) -> RunResult {
    let run = |options: &RunOptions| point.run.run(1, options).unwrap().result;
    let result = run(&RunOptions::default());
    let lean = run(&RunOptions { is_lean: true, ..RunOptions::default() });
    assert_eq!(lean.transfer.trace_hash, result.transfer.trace_hash);
    assert!(result.transfer.completed, "{:?}", point.params);
    result
}

#[test]
fn two_paths() {
    let points = points("two-paths.toml");
    assert_eq!(points.len(), 6);
    let times: Vec<f64> = points.iter().map(|point| run(point).transfer.transfer_time_s).collect();
    for policy in times.chunks(2) {
        assert!(policy[1] > policy[0], "more loss takes longer: {times:?}");
    }
}

#[test]
fn dumbbell() {
    for point in points("dumbbell.toml") {
        let transfer = run(&point).transfer;
        assert!(transfer.paths.iter().all(|path| path.packets_dropped > 0), "queues overflow");
        // The second bottleneck has a fifth of what the first has left.
        assert!(
            transfer.paths[0].stats.counters.data_chunks_sent
                > transfer.paths[1].stats.counters.data_chunks_sent
        );
    }
}

#[test]
fn failure() {
    let points = points("failure.toml");
    let time = |system: &str, failure: &str| {
        let wanted = [system, failure];
        let is_it = |p: &&Point| p.params.iter().map(|(_, value)| value.as_str()).eq(wanted);
        run(points.iter().find(is_it).unwrap()).transfer.transfer_time_s
    };
    assert!(time("cmt-pf", "for good") < time("cmt", "for good"));
    assert!(time("cmt", "5 s") < time("cmt", "for good"));
}

#[test]
fn routers() {
    let result = run(&points("routers.toml")[0]);
    let (name, download) = &result.flows[0];
    assert_eq!(name, "download");
    assert!(download.completed);
    let state = result.transfer.paths[0].stats.state.name();
    assert_eq!(state, "potentially_failed", "the phone left");
}

#[test]
fn protected() {
    let point = &points("protected.toml")[0];
    let transfer = run(point).transfer;
    assert!(transfer.paths.iter().all(|path| path.stats.counters.data_chunks_sent > 300));
}

#[test]
fn uplinks() {
    let point = &points("uplinks.toml")[0];
    let transfer = run(point).transfer;
    // One uplink alone takes 1.6 s.
    assert!(transfer.transfer_time_s < 1.3, "{} s", transfer.transfer_time_s);
}

#[test]
fn archipelago() {
    let result = run(&points("archipelago.toml")[0]);
    let (name, many) = &result.groups[0];
    assert_eq!((name.as_str(), many.completed, many.bytes), ("many", 20, 20 * 500_000));
    let (name, one) = &result.flows[0];
    assert_eq!((name.as_str(), one.completed, one.paths.len()), ("one", true, 2));
}

#[test]
fn behind_nats() {
    for (point, is_direct) in points("behind-nats.toml").iter().zip([true, false]) {
        let result = run(point);
        let names: Vec<&str> = result.nats.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["near", "far.2", "far"]);
        assert_eq!(result.nats[2].1.reboots, 1, "the home's router");
        assert!(result.nats[0].1.inbound > 1000, "answers come through it");
        let is_relays = |remote: IpAddr| remote == IpAddr::from([192, 0, 2, 9]);
        let paths = result.transfer.paths.iter().map(|path| &path.stats);
        let direct = paths.filter(|path| !is_relays(path.remote.ip()));
        let bytes: u64 = direct.map(|path| path.counters.bytes_sent).sum();
        assert_eq!(bytes > 30_000_000, is_direct, "{bytes} bytes");
        assert_eq!(bytes < 1_000_000, !is_direct, "{bytes} bytes");
    }
}

#[test]
fn no_example_is_left_out() {
    let folder = std::fs::read_dir(file("")).unwrap();
    let mut names: Vec<String> =
        folder.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    assert_eq!(
        names,
        [
            "archipelago.graphml",
            "archipelago.toml",
            "behind-nats.toml",
            "dumbbell.toml",
            "failure.toml",
            "lifetimes.toml",
            "protected.toml",
            "roaming.toml",
            "routers.toml",
            "two-paths.toml",
            "uplinks.toml"
        ]
    );
}

#[test]
fn roaming() {
    let points = points("roaming.toml");
    assert_eq!(points.len(), 6);
    let gaps: Vec<f64> = points.iter().map(|p| run(p).transfer.max_delivery_gap_s).collect();
    for (pair, away) in gaps.chunks(2).zip([0.0, 1.0, 5.0]) {
        assert!((away..away + 1.0).contains(&pair[0]), "away for {away} s: {gaps:?}");
    }
}

#[test]
fn lifetimes() {
    let result = run(&points("lifetimes.toml")[0]).transfer;
    let messages = result.messages.as_ref().expect("they have a lifetime");
    assert_eq!((result.completed, messages.sent), (true, 10_000));
    assert!(messages.in_time > 9_900, "{messages:?}");
}
