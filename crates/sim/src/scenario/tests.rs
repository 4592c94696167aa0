use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::{LinkSpec, Pair, PathSpec, secs};

const TWO_PATHS: &str = r#"
    name = "two lossy paths"
    time_limit = "500 s"
    seeds = "3..5"
    [transport]
    profile = "2006"
    preset = "cmt"
    receive_buffer = "64 KiB"
    [transfer]
    size = "1 MB"
    [[path]]
    hops = [
        { rate = "100 Mbit/s", delay = "10 ms" },
        { rate = "10 Mbit/s", delay = "25 ms", loss = "1 %" },
        { rate = "100 Mbit/s", delay = "10 ms" },
    ]
    [[path]]
    rate = "10 Mbit/s"
    delay = "45 ms"
    loss = { forward = "3 %", reverse = "2 %" }
    queue = "2 bdp"
"#;

fn points(text: &str) -> Vec<Point> {
    let scenario = Scenario::parse("test.toml", text).unwrap_or_else(|error| panic!("{error}"));
    scenario.points().unwrap_or_else(|error| panic!("{error}"))
}

fn run(text: &str, seed: u64) -> RunResult {
    points(text)[0].run.run(seed, &RunOptions::default()).unwrap().result
}

#[test]
fn a_cancelled_run_has_no_result() {
    let cancel = Arc::new(AtomicBool::new(true));
    let options = RunOptions { cancel: Some(Arc::clone(&cancel)), ..RunOptions::default() };
    let point = &points(TWO_PATHS)[0];
    assert_eq!(point.run.run(3, &options).unwrap_err(), RunError::Cancelled);
    cancel.store(false, Ordering::Relaxed);
    assert!(point.run.run(3, &options).is_ok());
}

#[test]
fn a_scenario_runs_as_the_pair_it_describes() {
    let text = TWO_PATHS.replace("1 %", "0 %").replace("3 %", "0 %").replace("2 %", "0 %");
    let first = PathSpec::hops([
        LinkSpec::mbps_ms(100.0, 10.0),
        LinkSpec::mbps_ms(10.0, 25.0),
        LinkSpec::mbps_ms(100.0, 10.0),
    ]);
    // Two bandwidth-delay products: 2 x 10 Mbit/s x 90 ms in packets of 1500 bytes.
    let second = PathSpec::new().queue(crate::QueueLimit::Packets(150));
    let mut pair = Pair::paths("cmt", vec![first, second])
        .profile("2006")
        .set("receive_buffer", "64 KiB")
        .seed(4)
        .start();
    pair.a.send_file(1_000_000);
    let expected = pair.run_to_end(secs(500)).result();
    let result = run(&text, 4).transfer;
    assert!(expected.completed && result.completed);
    assert_eq!(result.transfer_time_s, expected.transfer_time_s);
    let sent = |result: &crate::TransferResult| {
        result.paths.iter().map(|p| p.stats.counters.data_chunks_sent).collect::<Vec<_>>()
    };
    assert_eq!(sent(&result), sent(&expected));
}

/// Profile and preset of both ends of a flow with this transport.
fn transport(text: &str) -> [(&'static str, String); 2] {
    let text = format!(
        "{text}\n[transfer]\nsize = \"1 MB\"\n[[path]]\nrate = \"1 Mbit/s\"\ndelay = \"9 ms\"\n"
    );
    let flow = &points(&text)[0].run.flows[0];
    [&flow.config_a, &flow.config_z].map(|end| (end.profile.name(), end.preset.to_owned()))
}

#[test]
fn a_scenario_without_profile_and_preset_runs_the_default_of_the_programs() {
    let default = manypath_proto::Config::default();
    let both = |profile, preset: &str| [(profile, preset.to_owned()), (profile, preset.to_owned())];
    for text in ["", "[transport]\nrto_min = \"100 ms\"\n[transport.receiver]\nsack_every = 1"] {
        assert_eq!(transport(text), both(default.profile.name(), default.preset), "{text}");
    }
    let text = TWO_PATHS.replace("preset = \"cmt\"", "").replace("profile = \"2006\"", "");
    assert_eq!(run(&text, 3).transfer.preset, default.preset);
}

/// Files of the papers name one of them only, and their results are known.
#[test]
fn beside_a_profile_the_preset_is_cmt_pf_and_beside_a_preset_the_profile_rfc9260() {
    let of = |text: &str| transport(&format!("[transport]\n{text}"));
    let both = |profile, preset: &str| [(profile, preset.to_owned()), (profile, preset.to_owned())];
    assert_eq!(of("preset = \"adaptive\""), both("rfc9260", "adaptive"));
    assert_eq!(of("profile = \"fast\""), both("fast", "cmt-pf"));
    let ends = [("rfc9260", "cmt-pf".to_owned()), ("fast", "cmt-pf".to_owned())];
    assert_eq!(of("receiver = { profile = \"fast\" }"), ends, "one end names it for both");
}

#[test]
fn the_network_is_as_the_file_says() {
    let run = &points(TWO_PATHS)[0].run;
    let links: Vec<_> = run.cables.iter().map(|cable| cable.forward.clone()).collect();
    let queue = |packets| Some(crate::QueueLimit::Packets(packets));
    let expected = [
        // One bandwidth-delay product: 10 Mbit/s x 90 ms in packets of 1500 bytes.
        LinkSpec { queue: queue(75), ..LinkSpec::mbps_ms(100.0, 10.0) },
        LinkSpec { queue: queue(75), ..LinkSpec::mbps_ms(10.0, 25.0).loss(0.01) },
        LinkSpec { queue: queue(75), ..LinkSpec::mbps_ms(100.0, 10.0) },
        LinkSpec { queue: queue(150), ..LinkSpec::mbps_ms(10.0, 45.0).loss(0.03) },
    ];
    assert_eq!(links, expected);
    assert_eq!(
        run.cables[3].reverse,
        LinkSpec { queue: queue(150), ..LinkSpec::mbps_ms(10.0, 45.0).loss(0.02) }
    );
    assert_eq!(run.time_limit().as_secs(), 500);
}

#[test]
fn the_result_names_scenario_seed_and_swept_parameters() {
    let swept = format!("{TWO_PATHS}\n[sweep]\n\"path.2.delay\" = [\"45 ms\", \"5 ms\"]\n");
    let result = run(&swept, 9);
    let json = serde_json::to_value(&result).unwrap();
    assert_eq!(json["scenario"], "two lossy paths");
    assert_eq!((&json["preset"], &json["seed"]), (&"cmt".into(), &9.into()));
    assert_eq!(json["parameters"]["path.2.delay"], "45 ms");
    assert_eq!(json["paths"].as_array().map(Vec::len), Some(2));
}

#[test]
fn seeds_are_a_number_a_range_or_a_list() {
    let seeds = |value: &str| {
        let mut scenario = Scenario::parse("test.toml", TWO_PATHS).unwrap();
        scenario.set("seeds", value).map(|()| scenario.seeds())
    };
    assert_eq!(Scenario::parse("test.toml", TWO_PATHS).unwrap().seeds(), [3, 4, 5]);
    assert_eq!(seeds("3").unwrap(), [1, 2, 3]);
    assert_eq!(seeds("[7, 2]").unwrap(), [7, 2]);
    for wrong in ["0", "5..3", "x", "[]", "[1, -2]", "[3, 4, 3]", "1..99999999999"] {
        assert!(seeds(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_sweep_of_very_many_values_is_refused_before_they_are_compared() {
    let values: Vec<String> = (0..300_000).map(|n| format!("\"{n} us\"")).collect();
    let text = format!("{TWO_PATHS}\n[sweep]\n\"path.2.delay\" = [{}]\n", values.join(", "));
    let error = Scenario::parse("test.toml", &text).expect_err("too many");
    assert_eq!(error.what, "the sweep has more than 100000 points");
}

#[test]
fn a_setting_that_would_do_nothing_is_refused() {
    let mut scenario = Scenario::parse("test.toml", TWO_PATHS).unwrap();
    for name in ["set.path.2.loss", "extends", "sweep"] {
        let error = scenario.set(name, "1 %").expect_err(name);
        assert_eq!(error.what, format!("`{name}` cannot be set"));
    }
    scenario.set("sweep.seeds", "[1, 2]").expect_err("every point runs with the same seeds");
}

#[test]
fn every_combination_of_a_sweep_is_a_point() {
    let text = format!(
        "{TWO_PATHS}\n[sweep]\npath.2.loss = [\"1 %\", \"2 %\"]\n\
         [[sweep.case]]\nname = \"same\"\n\"transport.rtx_policy\" = \"same\"\n\
         [[sweep.case]]\nname = \"fast\"\ntransport.rtx_policy = \"cwnd\"\ntransport.mfr = true\n"
    );
    let points = points(&text);
    let params: Vec<Vec<&str>> =
        points.iter().map(|p| p.params.iter().map(|(_, value)| value.as_str()).collect()).collect();
    assert_eq!(params, [["1 %", "same"], ["1 %", "fast"], ["2 %", "same"], ["2 %", "fast"]]);
    assert_eq!(points[0].params[0].0, "path.2.loss");
    let last = &points[3].run;
    assert_eq!(last.cables[3].forward.loss, 0.02.into());
    let config = last.config().unwrap();
    assert_eq!((config.rtx_policy.name(), config.mfr), ("cwnd", true));
    assert!(!points[2].run.config().unwrap().mfr);
}

#[test]
fn a_group_may_be_named_like_a_key() {
    let text = format!(
        "{TWO_PATHS}\n[[sweep.topology]]\nname = \"near\"\n\"path.2.delay\" = \"1 ms\"\n\
         [[sweep.topology]]\nname = \"far\"\n\"path.2.delay\" = \"9 ms\"\n"
    );
    let points = points(&text);
    let params: Vec<_> = points.iter().map(|p| p.params[0].clone()).collect();
    assert_eq!(params, ["near", "far"].map(|label| ("topology".to_owned(), label.to_owned())));
    let mut scenario = Scenario::parse("test.toml", &text).unwrap();
    scenario.set("topology", "far").unwrap();
    assert_eq!(scenario.points().unwrap().len(), 1);
}

#[test]
fn a_setting_wins_over_the_file_and_chooses_swept_values() {
    let text = format!(
        "{TWO_PATHS}\n[sweep]\n\"path.2.loss\" = [\"1 %\", \"2 %\"]\n\
         [[sweep.case]]\nname = \"a\"\n\"transfer.size\" = \"1 kB\"\n\
         [[sweep.case]]\nname = \"b\"\n\"transfer.size\" = \"2 kB\"\n"
    );
    let mut scenario = Scenario::parse("test.toml", &text).unwrap();
    scenario.set("path.2.loss", "7 %").unwrap();
    scenario.set("case", "b").unwrap();
    scenario.set("path.1.hops.2.loss", "{ forward = \"1 %\", reverse = \"0 %\" }").unwrap();
    scenario.set("transport.sender.rto_min", "2 s").unwrap();
    let points = scenario.points().unwrap();
    assert_eq!(points.len(), 1);
    assert_eq!(points[0].params[0].1, "7 %");
    let run = &points[0].run;
    assert_eq!(run.cables[3].reverse.loss, 0.07.into());
    assert_eq!((run.cables[1].forward.loss, run.cables[1].reverse.loss), (0.01.into(), 0.0.into()));
    assert_eq!(run.flows[0].transfers[0].bytes, Some(2000));
    assert_eq!(run.flows[0].config_a.rto_min.as_secs(), 2);
    assert_eq!(run.flows[0].config_z.rto_min.as_secs(), 1);
    let error = scenario.set("case", "c").unwrap_err();
    assert_eq!(error.to_string(), "--set case: case has no row `c`; did you mean `b`?");
}

#[test]
fn a_cut_after_the_first_data_counts_from_it() {
    // The transfer begins at 3 s; a cut of both paths at 0 s of the run would be long over.
    let cut = "{ at = \"100 ms\", for = \"5 s\", after = \"first data\" }";
    let gap = |cut: &str| {
        let text = format!(
            "{TWO_PATHS}\n[set]\n\"path.1.down\" = [{cut}]\n\"path.2.down\" = [{cut}]\n\"transfer.start\" = \"8 s\"\n"
        );
        run(&text, 1).transfer.max_delivery_gap_s
    };
    assert!(gap(cut) > 5.0, "{}", gap(cut));
    assert!(gap(&cut.replace("first data", "start")) < 5.0);
}

#[test]
fn an_outage_is_of_its_path_direction_and_time() {
    let down = |more: &str| {
        let text = format!("{TWO_PATHS}\n[set]\n\"path.1.down\" = [{{ at = \"500 ms\"{more} }}]\n");
        let result = run(&text, 2).transfer;
        assert!(result.completed, "{more}");
        result.paths[0].stats.state.name()
    };
    assert_eq!(down(""), "inactive");
    assert_eq!(down(", for = \"1 s\""), "active");
    assert_eq!(down(", direction = \"forward\""), "inactive");
    assert_eq!(down(", hop = 2"), "inactive");
}

#[test]
fn events_change_rates_delays_and_losses() {
    let time = |event: &str| {
        let text = format!("{TWO_PATHS}\n[[event]]\nat = \"0 s\"\npath = 2\n{event}\n");
        run(&text, 3).transfer.transfer_time_s
    };
    let plain = time("delay = \"45 ms\"");
    assert!(time("rate = \"100 kbit/s\"") > plain);
    assert!(time("delay = \"450 ms\"") > plain);
    assert!(time("loss = \"50 %\"") > plain);
}

#[test]
fn events_renumber_the_ends_of_paths() {
    let event = |more: &str| {
        format!(
            "{TWO_PATHS}\n[[event]]\nafter = \"first data\"\nchange = \"renumber\"\npath = 2\n{more}\n"
        )
    };
    let plain = run(TWO_PATHS, 3).transfer;
    for end in ["", "end = \"far\""] {
        let moved = event(&format!("at = \"200 ms\"\nfor = \"100 ms\"\n{end}"));
        let result = run(&moved, 3).transfer;
        assert!(result.completed, "{end}");
        assert_ne!(result.trace_hash, plain.trace_hash, "{end}");
        assert_eq!(result, run(&moved, 3).transfer, "as repeatable as any");
    }
    let later = Scenario::parse("test.toml", &event("at = \"2 s\"")).unwrap().points().unwrap();
    let now = Scenario::parse("test.toml", &event("at = \"1 s\"")).unwrap().points().unwrap();
    assert_ne!(later[0].run.identity().group(), now[0].run.identity().group());
    assert!(later[0].run.plain().unwrap_err().contains("addresses"));
}

#[test]
fn appstripe_ends_when_the_sums_of_the_stripes_reach_the_size() {
    let text = format!(
        "{TWO_PATHS}\n[set]\ntransport.preset = \"appstripe\"\n\"path.2.loss\" = \"0 %\"\n\"path.1.hops.2.loss\" = \"0 %\"\n"
    );
    let striped = run(&text, 1).transfer;
    assert!(striped.completed);
    assert_eq!(
        (striped.preset.as_str(), striped.bytes, striped.paths.len()),
        ("appstripe", 1_000_000, 2)
    );
    // Two equal loss-free paths carry half each: the time of half the file over one of them.
    let half = text.replace("appstripe", "sctp").replace("1 MB", "500 kB");
    let half = run(&half, 1).transfer.transfer_time_s;
    assert!((striped.transfer_time_s - half).abs() < 0.1, "{} {half}", striped.transfer_time_s);
}

#[test]
fn a_run_ends_at_its_time_limit() {
    let result = run(&TWO_PATHS.replace("500 s", "800 ms"), 1).transfer;
    assert!(!result.completed);
    assert!(result.transfer_time_s <= 0.8);
}

#[test]
fn a_transfer_can_go_back_and_both_ways() {
    let back = run(&format!("{TWO_PATHS}\n[set]\ntransfer.direction = \"reverse\"\n"), 1).transfer;
    assert!(back.completed);
    assert!(back.paths.iter().all(|path| path.stats.local.ip().to_string().ends_with(".2")));
    let both = TWO_PATHS.replace(
        "[transfer]\n    size = \"1 MB\"",
        "[[transfer]]\n    size = \"1 MB\"\n    [[transfer]]\n    size = \"50 kB\"\n    count = 4\n    direction = \"reverse\"",
    );
    let points = points(&both);
    assert_eq!(points[0].run.flows[0].transfers[1].bytes, Some(200_000));
    assert!(run(&both, 1).transfer.completed);
}

#[test]
fn samples_of_a_run_end_with_its_result() {
    let text = "[transport]\npreset = \"cmt\"\n[transfer]\nsize = \"1 MB\"\n[[path]]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\n";
    let scenario = Scenario::parse("watched", text).expect("valid");
    let run = &scenario.points().expect("valid")[0].run;
    let samples = Some(crate::Sampling { times: crate::SampleTimes::OnChange, most: 100_000 });
    let watched = run.run(1, &RunOptions { samples, ..RunOptions::default() }).expect("it runs");
    let alone = run.run(1, &RunOptions::default()).expect("it runs");
    assert_eq!(watched.result, alone.result);
    let samples = watched.samples.expect("asked for").into_vec();
    assert_eq!(samples.last().map(|sample| sample.acked_bytes), Some(1_000_000));
    assert!(samples.len() > 300 && alone.samples.is_none());
}

/// One path of 8 Mbit/s of IP packets and 50 ms each way that nothing disturbs.
const QUIET: &str = r#"
    transport = { preset = "sctp", profile = "2006" }
    path = [{ rate = "8 Mbit/s", delay = "50 ms" }]
"#;

#[test]
fn latencies_are_measured_where_they_are_asked_for_and_change_nothing() {
    let of =
        |keys: &str| run(&format!("transfer = {{ size = \"1 MB\", {keys} }}\n{QUIET}"), 1).transfer;
    let (without, with) = (of(""), of("latency = true"));
    assert_eq!(without.message_latency_p99_s, None);
    let json = serde_json::to_string(&without).unwrap();
    assert!(!json.contains("latency"), "{json}");
    assert_eq!(without.trace_hash, with.trace_hash);
    // All of it was handed over at the beginning: 99 % of the file takes nearly as long as all.
    let latency = with.message_latency_p99_s.unwrap();
    assert!((0.97..1.0).contains(&(latency / with.transfer_time_s)), "{latency} {with:#?}");
}

#[test]
fn an_application_keeps_its_pace() {
    let of = |size| {
        let keys =
            format!("size = \"{size}\", rate = \"400 kbit/s\", start = \"2 s\", latency = true");
        run(&format!("transfer = {{ {keys} }}\n{QUIET}"), 1).transfer
    };
    // 50 messages a second: the last of five thousand leaves after 99.98 s.
    let result = of("5 MB");
    assert!(result.completed && result.bytes == 5_000_000);
    assert!((100.02..100.04).contains(&result.transfer_time_s), "{result:#?}");
    // A packet of 1048 bytes takes 1.05 ms and 50 ms; handshake and slow start hold up fewer than 1
    // %.
    let latency = result.message_latency_p99_s.unwrap();
    assert!((0.0505..0.06).contains(&latency), "{latency}");
    assert_eq!(of("2500 B").bytes, 2500, "two messages and a half");
}

/// Messages of 200 bytes at half of what the path carries, which loses a tenth.
#[test]
fn messages_with_a_lifetime_come_in_time_or_are_given_up() {
    let of = |keys: &str| {
        let message = "size = \"1 MB\", rate = \"4 Mbit/s\", message = \"200 B\", stream = 3";
        let path = "rate = \"8 Mbit/s\", delay = \"10 ms\", loss = \"10 %\"";
        let text = format!("transfer = {{ {message}, {keys} }}\npath = [{{ {path} }}]");
        run(&text, 1).transfer
    };
    let all = of("latency = true");
    assert!(all.completed && all.messages.is_none() && all.bytes == 1_000_000);
    let json = serde_json::to_string(&all).unwrap();
    assert!(!json.contains("\"messages\"") && !json.contains("ecn"), "{json}");
    let limited = of("lifetime = \"60 ms\", unordered = true");
    let messages = limited.messages.clone().expect("they may be given up");
    assert_eq!(messages.sent, 5000);
    assert!(limited.completed && messages.delivered < messages.sent, "{limited:#?}");
    assert!(messages.in_time * 100 >= messages.delivered * 99, "{messages:?}");
    let given_up = (messages.dropped + messages.abandoned) as usize;
    assert!(given_up >= messages.sent - messages.delivered, "{messages:?}");
    let once = of("max_retransmissions = 0").messages.expect("they may be given up");
    assert!((0.85..0.95).contains(&(once.delivered as f64 / 5000.0)), "{once:?}");
    assert_eq!(once.in_time, once.delivered, "none has a lifetime");
}

#[test]
fn messages_that_no_association_takes_are_refused() {
    let of = |keys: &str| {
        let transport = "transport = { send_buffer = \"64 KiB\", outbound_streams = 4 }";
        let path = "path = [{ rate = \"8 Mbit/s\", delay = \"50 ms\" }]";
        let text = format!("transfer = {{ size = \"1 MB\", {keys} }}\n{transport}\n{path}");
        Scenario::parse("x", &text).and_then(|s| s.points().map(|_| ())).map_err(|e| e.to_string())
    };
    let is_refused = |keys: &str, because: &str| {
        let error = of(keys).expect_err(keys);
        assert!(error.contains(because), "{keys}: {error}");
    };
    assert_eq!(of("stream = 3, message = \"64 KiB\""), Ok(()));
    is_refused("stream = 4", "stream 4 of 4");
    is_refused("message = \"65 KiB\"", "send buffer");
    is_refused("message = \"2 MiB\"", "1 MiB");
    is_refused("message = \"0 B\"", "1 MiB");
    is_refused("message = \"1 B\", rate = \"1 Tbit/s\"", "nanosecond");
}

#[test]
fn marks_are_results_where_there_are_any() {
    let of = |keys: &str| {
        let path = "rate = \"8 Mbit/s\", delay = \"10 ms\", red = { marks = true }";
        let text = format!("transfer = {{ size = \"5 MB\" }}\npath = [{{ {path} }}]\n{keys}");
        run(&text, 1)
    };
    let marked = of("transport = { ecn = true }").transfer;
    assert!(marked.ecn_marks_received > 0, "{marked:#?}");
    let json = serde_json::to_string(&marked).unwrap();
    assert!(json.contains("\"ecn_cuts\":") && json.contains("\"ecn_marks_received\":"), "{json}");
    assert!(!serde_json::to_string(&of("").transfer).unwrap().contains("ecn"));
}

#[test]
fn later_settings_replace_what_the_sweep_sets_where_they_are_wanted() {
    let text =
        format!("{TWO_PATHS}\n[sweep]\n\"transport.rtx_policy\" = [\"same\", \"cwnd\", \"asap\"]");
    let scenario = Scenario::parse("test.toml", &text).unwrap();
    let set = [("transport.rtx_policy".to_owned(), "same".to_owned())];
    let is_cwnd = |params: &[(String, String)]| params[0].1 == "cwnd";
    let points = scenario.points_with(&set, &is_cwnd).unwrap();
    let labels: Vec<_> = points.iter().map(|point| point.params[0].1.as_str()).collect();
    assert_eq!(labels, ["same", "cwnd", "asap"], "labels stay");
    let hash =
        |n: usize| points[n].run.run(3, &RunOptions::default()).unwrap().result.transfer.trace_hash;
    assert_eq!(hash(1), hash(0));
    assert_ne!(hash(2), hash(0));
    for (name, value) in [("transport.rtx_police", "same"), ("seeds", "3")] {
        let set = [(name.to_owned(), value.to_owned())];
        scenario.points_with(&set, &|_| true).expect_err(name);
    }
}

#[test]
fn pauses_and_policers_hold_in_the_directions_that_the_file_names() {
    let run_with = |keys: &str| {
        let text = format!(
            "name = \"one path\"\nseeds = 1\n[transport]\npreset = \"sctp\"\nprofile = \"fast\"\n\
             [transfer]\nsize = \"4 MB\"\n[[path]]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n{keys}\n"
        );
        run(&text, 1).transfer.transfer_time_s
    };
    let plain = run_with("");
    // Half of the time, from 50 ms on: the handshake is over by then.
    let pauses = "{ length = \"50 ms\", every = \"100 ms\" }";
    let paused = run_with(&format!("pauses = {pauses}\nqueue = \"unlimited\""));
    assert!((1.9..2.2).contains(&(paused / plain)), "{paused} and {plain}");
    let never = "{ length = \"1 s\", every = \"1001 s\" }";
    let back = run_with(&format!("pauses = {{ forward = {never}, reverse = {pauses} }}"));
    assert!(back < 0.85 * paused, "{back} and {paused}");
    let policed = run_with("policer = { rate = \"5 Mbit/s\", burst = \"64 KiB\" }");
    assert!((1.7..4.0).contains(&(policed / plain)), "{policed} and {plain}");
}
