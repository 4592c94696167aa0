//! The long form, extending files, and explanations.

use manypath_proto::Config;

use super::*;
use crate::spec::{QueueLimit, Rate};

/// A client with two uplinks, a server with one, and a neighbour on the first uplink.
const NETWORK: &str = r#"
    transport.preset = "cmt"
    [[node]]
    name = "client"
    [[node]]
    name = "wifi"
    [[node]]
    name = "lte"
    [[node]]
    name = "server"
    [[link]]
    from = "client"
    to = "wifi"
    rate = "10 Mbit/s"
    delay = "5 ms"
    [[link]]
    from = "lte"
    to = "client"
    rate = { forward = "8 Mbit/s", reverse = "2 Mbit/s" }
    delay = "20 ms"
    [[link]]
    from = "wifi"
    to = "server"
    rate = "100 Mbit/s"
    delay = "10 ms"
    [[link]]
    name = "backhaul"
    from = "lte"
    to = "server"
    rate = "100 Mbit/s"
    delay = "10 ms"
    queue = "2 bdp"
    [[flow]]
    from = "client"
    to = "server"
    size = "1 MB"
"#;

fn points(text: &str) -> Vec<Point> {
    let scenario = Scenario::parse("test.toml", text).unwrap_or_else(|error| panic!("{error}"));
    scenario.points().unwrap_or_else(|error| panic!("{error}"))
}

fn run(text: &str) -> RunResult {
    points(text)[0].run.run(1, &RunOptions::default()).unwrap().result
}

#[test]
fn a_flow_has_a_shortest_path_over_each_link_of_its_host() {
    let run = &points(NETWORK)[0].run;
    let crossings = |path: usize| {
        let crossings = &run.flows[0].paths[path].crossings;
        crossings.iter().map(|c| (c.cable, c.is_reversed)).collect::<Vec<_>>()
    };
    assert_eq!(run.flows[0].paths.len(), 2);
    assert_eq!(crossings(0), [(0, false), (2, false)]);
    assert_eq!(crossings(1), [(1, true), (3, false)]);
    // From the client the second uplink sends with the reverse rate of its link.
    assert_eq!(run.bottleneck(&run.flows[0].paths[1].crossings), Rate::mbps(2.0));
    // Two products of 100 Mbit/s and a base round trip of 60 ms.
    assert_eq!(run.cables[3].forward.queue, Some(QueueLimit::Packets(1000)));
}

#[test]
fn both_uplinks_carry_data_and_the_transfer_ends() {
    let result = self::run(NETWORK).transfer;
    assert!(result.completed);
    assert!(
        result.paths.iter().all(|path| path.stats.counters.data_chunks_sent > 50),
        "{:?}",
        result.paths
    );
}

#[test]
fn flows_that_share_a_link_share_its_rate() {
    let single =
        NETWORK.replace("size = \"1 MB\"", "size = \"4 MB\"\n path = [{ via = [\"wifi\"] }]");
    let second = "[[flow]]\nname = \"other\"\nfrom = \"client\"\nto = \"server\"\nsize = \"4 MB\"\npath = [{ via = [\"client-wifi\", \"server\"] }]\n";
    let alone = self::run(&single).transfer.transfer_time_s;
    let both = self::run(&format!("{single}{second}"));
    assert_eq!(both.flows[0].0, "other");
    assert!(both.transfer.completed && both.flows[0].1.completed);
    let last = both.transfer.transfer_time_s.max(both.flows[0].1.transfer_time_s);
    assert!(last > 1.8 * alone, "{last} against {alone}");
}

#[test]
fn traffic_slows_a_transfer() {
    let single =
        NETWORK.replace("size = \"1 MB\"", "size = \"8 MB\"\n path = [{ via = [\"wifi\"] }]");
    let alone = self::run(&single).transfer.transfer_time_s;
    for traffic in
        ["load = \"60 %\"", "model = \"cbr\"\nrate = \"6 Mbit/s\"", "model = \"responsive\""]
    {
        let text = format!(
            "{single}[[traffic]]\nfrom = \"client\"\nto = \"server\"\nvia = [\"wifi\"]\n{traffic}\n"
        );
        let slowed = self::run(&text).transfer;
        assert!(slowed.completed, "{traffic}");
        assert!(slowed.transfer_time_s > 1.4 * alone, "{traffic}: {slowed:?}");
    }
}

#[test]
fn a_program_configures_both_ends_of_flows_but_not_responsive_traffic() {
    let traffic = "[[traffic]]\nfrom = \"client\"\nto = \"server\"\nmodel = \"responsive\"\n";
    let mut run = points(&format!("{NETWORK}{traffic}")).remove(0).run;
    run.configure(|config| config.set("max_burst", "17").unwrap());
    let is_set = |config: &Config| config.get("max_burst").unwrap() == "17";
    let ends = run.flows.iter().map(|flow| (is_set(&flow.config_a), is_set(&flow.config_z)));
    assert_eq!(ends.collect::<Vec<_>>(), [(true, true), (false, false)]);
}

#[test]
fn cross_traffic_of_a_path_crosses_its_slowest_hop_both_ways() {
    let text = "transfer.size = \"1 MB\"\n[[path]]\nhops = [\n\
        { rate = \"100 Mbit/s\", delay = \"1 ms\" },\n { rate = \"10 Mbit/s\", delay = \"1 ms\" }]\n\
        cross = { load = { forward = \"50 %\", reverse = \"20 %\" }, generators = 3, model = \"cbr\" }\n";
    let cross = &points(text)[0].run.cross;
    let facts =
        |i: usize| (cross[i].crossings[0].cable, cross[i].is_reverse, cross[i].traffic.load);
    assert_eq!([facts(0), facts(1)], [(1, false, 0.5), (1, true, 0.2)]);
    assert_eq!(cross[0].traffic.packet_sizes, [44, 44, 44]);
}

#[test]
fn a_link_s_events_are_of_its_directions() {
    // Which paths lost packets of the sender.
    let cut = |more: &str| {
        // So little is on its way that no queue overflows.
        let buffer = "\n[set]\ntransport.receive_buffer = \"32 KiB\"\n";
        let event = "[[event]]\nat = \"300 ms\"\nchange = \"cut\"\n";
        let text = format!("{NETWORK}{buffer}{event}{more}\n");
        let paths = self::run(&text).transfer.paths;
        [paths[0].packets_dropped > 0, paths[1].packets_dropped > 0]
    };
    assert_eq!(cut("link = \"backhaul\""), [false, true]);
    assert_eq!(cut("path = 1"), [true, false]);
    // Forward on this link is towards the client: only answers are lost.
    assert_eq!(
        cut("link = \"lte-client\"\ndirection = \"forward\"\nfor = \"10 ms\""),
        [false, false]
    );
    assert_eq!(
        cut("link = \"lte-client\"\ndirection = \"reverse\"\nfor = \"50 ms\""),
        [false, true]
    );
}

#[test]
fn a_file_extends_another_and_sets_what_it_swept() {
    let dir = tempfile::tempdir().unwrap();
    let base = "seeds = 3\nname = \"base\"\n[transfer]\nsize = \"1 MB\"\n[transport]\nprofile = \"2006\"\npreset = \"cmt\"\n\
        [[path]]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n[sweep]\n\"path.1.loss\" = [\"1 %\", \"2 %\"]\n";
    let over = "extends = \"base.toml\"\nname = \"over\"\ntransport.preset = \"sctp\"\n[set]\n\"path.1.loss\" = \"2 %\"\n";
    std::fs::write(dir.path().join("base.toml"), base).unwrap();
    std::fs::write(dir.path().join("over.toml"), over).unwrap();
    let scenario = Scenario::load(dir.path().join("over.toml")).unwrap();
    let points = scenario.points().unwrap();
    assert_eq!((scenario.seeds().len(), points.len()), (3, 1));
    assert_eq!(points[0].params, [("path.1.loss".to_owned(), "2 %".to_owned())]);
    let run = &points[0].run;
    assert_eq!((run.name(), run.preset()), ("over", "sctp"));
    assert_eq!(run.config().unwrap().profile.name(), "2006");
}

#[test]
fn an_explanation_says_what_follows_from_the_file() {
    let text = format!(
        "{NETWORK}\n[sweep]\n\"flow.1.size\" = [\"1 MB\", \"2 MB\"]\n[[event]]\nat = \"1 s\"\nlink = \"backhaul\"\nrate = \"1 Mbit/s\"\n"
    );
    let mut scenario = Scenario::parse("network.toml", &text).unwrap();
    scenario.set("seeds", "30").unwrap();
    let points = scenario.points().unwrap();
    let words = scenario.explain(&points[1], points.len());
    for expected in [
        "2 points of 30 seeds, 1 to 30: 60 runs",
        "flow.1.size: 1 MB, 2 MB",
        "client to server: 2 MB",
        "client ──[10 Mbit/s, 5 ms]── wifi ──[100 Mbit/s, 10 ms]── server",
        "client ──[2 Mbit/s and 8 Mbit/s back, 20 ms]── lte",
        "lowest rate 10 Mbit/s, base RTT 30 ms, 1 bdp = 37500 B = 25 packets; queues 50 packets, 250 packets",
        "1 s: link backhaul has 1 Mbit/s",
        "scheduler                    fill_first   not primary",
    ] {
        assert!(words.contains(expected), "{expected}\nis not in\n{words}");
    }
}

#[test]
fn the_reference_of_keys_is_that_of_the_parser() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenarios.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (head, rest) = page.split_once("<!-- keys: made by the parser -->\n").unwrap();
    let (keys, tail) = rest.split_once("<!-- end of keys -->").unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let new = key_reference();
        let page =
            format!("{head}<!-- keys: made by the parser -->\n{new}<!-- end of keys -->{tail}");
        std::fs::write(path, page).unwrap();
        return;
    }
    assert!(
        keys == key_reference(),
        "docs/scenarios.md is stale: run this test with UPDATE_DOCS=1"
    );
}

#[test]
fn a_long_row_of_files_is_not_called_a_circle() {
    let folder = tempfile::tempdir().unwrap();
    let file = |number: usize| folder.path().join(format!("{number}.toml"));
    for number in 0..20 {
        std::fs::write(file(number), format!("extends = \"{}.toml\"\n", number + 1)).unwrap();
    }
    let error = Scenario::load(file(0)).expect_err("too long");
    assert_eq!(error.what, "extends: more than 16 files in a row");
}

/// Twenty flows of one kind over one link, one more beside them, and what is known of each.
const COPIES: &str = r#"
    time_limit = "20 s"
    [[node]]
    name = "left"
    [[node]]
    name = "right"
    [[link]]
    from = "left"
    to = "right"
    rate = "10 Mbit/s"
    delay = "20 ms"
    [[flow]]
    name = "all"
    from = "left"
    to = "right"
    size = "endless"
    until = "20 s"
    copies = 20
    spread = "1 s"
    [[flow]]
    name = "one"
    from = "left"
    to = "right"
    size = "100 kB"
    start = "5 s"
"#;

#[test]
fn copies_of_a_flow_share_a_link_and_their_results_are_put_together() {
    let scenario = Scenario::parse("test.toml", COPIES).unwrap();
    let points = scenario.points().unwrap();
    let run = |seed| points[0].run.run(seed, &RunOptions::default()).unwrap().result;
    let result = run(1);
    let [(name, all)] = &result.groups[..] else { panic!("{:?}", result.groups) };
    assert_eq!((name.as_str(), all.flows, all.completed), ("all", 20, 20));
    assert_eq!(all.jain_by_tenth.len(), 10);
    let (half, bps) = (all.jain_second_half.unwrap(), all.second_half_bps.unwrap());
    assert!(half > 0.8, "they share the link: {half}");
    assert!((8.5e6..10e6).contains(&bps), "and fill it: {bps}");
    assert_eq!(all.starved, Some(0));
    assert!(all.goodput_min_bps < all.goodput_median_bps);
    assert!(all.goodput_median_bps < all.goodput_max_bps);
    // The first stands for itself, too; the flow that has no copies has its own result.
    assert!(result.transfer.bytes < all.bytes);
    let [(name, one)] = &result.flows[..] else { panic!("{} flows", result.flows.len()) };
    assert_eq!((name.as_str(), one.completed, one.bytes), ("one", true, 100_000));
    assert_eq!(run(1), result);
    assert_ne!(run(2).groups, result.groups, "they start at other times");
}

#[test]
fn copies_that_end_themselves_end_the_run() {
    let text = COPIES.replace("size = \"endless\"\n    until = \"20 s\"", "size = \"20 kB\"");
    let scenario = Scenario::parse("test.toml", &text).unwrap();
    let result = scenario.points().unwrap()[0].run.run(1, &RunOptions::default()).unwrap().result;
    let (_, all) = &result.groups[0];
    assert_eq!((all.completed, all.bytes), (20, 20 * 20_000));
    assert!(all.jain_index > 0.3);
    assert_eq!(all.jain_second_half, None, "the run is over before half of its time");
}
