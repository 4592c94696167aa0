use std::sync::Arc;

use manypath_proto::config::Config;

use super::*;
use crate::pair::{millis, secs};
use crate::spec::{PathSpec, QueueLimit};
use crate::world::{Flow, FlowSpec, World};

/// Two lossy paths and four megabytes on them, from 1 s on.
fn world() -> (World, Flow) {
    let mut world = World::new(5, 20);
    let spec = PathSpec::new().loss(0.02).queue(QueueLimit::Packets(50));
    let paths = (0..2).map(|_| world.net.add_path_links(&spec)).collect();
    let config = Arc::new(Config::build("2006", "cmt", &[]).expect("valid"));
    let (sender, receiver) = (Arc::clone(&config), config);
    let name = "watched".to_owned();
    let start = secs(1);
    let flow = world.add_flow(FlowSpec {
        name,
        sender,
        receiver,
        paths,
        start,
        keys: None,
        has_ledger: false,
    });
    world.host_mut(flow.from).send_file_at(secs(1), 4_000_000);
    (world, flow)
}

/// Samples of a whole run, and its trace hash.
fn run(times: SampleTimes, most: usize) -> (Vec<Sample>, String) {
    let (mut world, flow) = world();
    world.watch(flow.from, flow.to, Sampling { times, most });
    assert!(world.run_to_end(secs(200)));
    let samples = world.take_samples(flow.from, flow.to).expect("watched");
    (samples.into_vec(), world.result(flow.from, flow.to).trace_hash)
}

fn hash_alone() -> String {
    let (mut world, flow) = world();
    assert!(world.run_to_end(secs(200)));
    world.result(flow.from, flow.to).trace_hash
}

#[test]
fn samples_at_set_times_show_what_a_run_to_each_time_shows() {
    let (samples, hash) = run(SampleTimes::Every(Duration::from_millis(250)), 10_000);
    assert_eq!(hash, hash_alone(), "being watched changes nothing");
    let (mut world, flow) = world();
    assert_eq!(samples[0].at_s, 1.0, "none before there is an association");
    for (i, sample) in samples.iter().enumerate() {
        let at = millis(1000 + 250 * i as u64);
        world.run_until(at);
        let wanted = Sample::of(world.host(flow.from), world.host(flow.to), at);
        assert_eq!(Some(sample), wanted.as_ref());
    }
    assert!(samples.len() > 20 && samples.last().is_some_and(|s| s.delivered_bytes > 3_000_000));
}

#[test]
fn samples_on_change_miss_nothing_and_repeat_nothing() {
    let (samples, hash) = run(SampleTimes::OnChange, usize::MAX);
    assert_eq!(hash, hash_alone());
    assert!(samples.windows(2).all(|pair| pair[0].differs(&pair[1])));
    assert!(samples.is_sorted_by_key(|sample| sample.at_s));
    let last = samples.last().expect("many");
    assert_eq!((last.delivered_bytes, last.acked_bytes), (4_000_000, 4_000_000));
    // Each timeout shows, with the window it leaves: one MTU (RFC 2960 section 7.2.3).
    for path in 0..2 {
        let timeouts = last.paths[path].timeouts;
        let seen = samples.windows(2).filter(|pair| {
            let (before, after) = (&pair[0].paths[path], &pair[1].paths[path]);
            after.timeouts > before.timeouts && after.cwnd_bytes <= 1500
        });
        assert_eq!(seen.count() as u64, timeouts);
    }
    assert!(last.paths.iter().any(|path| path.timeouts > 0), "some were there to see");
}

#[test]
fn no_more_samples_are_kept_than_asked_for_and_they_stay_evenly_spread() {
    for most in [32, 33] {
        let (samples, _) = run(SampleTimes::Every(Duration::from_millis(10)), most);
        assert!((most / 2..most).contains(&samples.len()), "{} of {most}", samples.len());
        let times: Vec<i64> = samples.iter().map(|s| (s.at_s * 1e3).round() as i64).collect();
        let distance = times[1] - times[0];
        assert!(distance > 10 && times.windows(2).all(|t| t[1] - t[0] == distance), "{times:?}");

        let (all, _) = run(SampleTimes::OnChange, usize::MAX);
        let (few, _) = run(SampleTimes::OnChange, most);
        assert!((most / 2..most).contains(&few.len()), "{} of {most}", few.len());
        let places: Vec<usize> =
            few.iter().map(|s| all.iter().position(|a| a == s).expect("one of all")).collect();
        let stride = places[1] - places[0];
        assert!(stride > 1 && places.windows(2).all(|p| p[1] - p[0] == stride), "{places:?}");
    }
}
