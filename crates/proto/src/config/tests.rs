use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::policy::rtx::RtxPolicy;
use crate::policy::{Factory, known};

const RTX_POLICIES: &[&str] = Factory::<dyn RtxPolicy>::NAMES;
const NONE: &[(String, String)] = &[];

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn build(overrides: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let owned: Vec<_> = overrides.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Config::build("rfc9260", "cmt-pf", &owned)
}

/// The value of a parameter in each of the profiles.
fn row(name: &str) -> [String; 8] {
    Profile::ALL.map(|profile| Config::from_profile(profile).get(name).unwrap())
}

#[test]
fn profiles_hold_their_constants() {
    for (name, rfc9260, fast, papers, ns2) in [
        ("missing_reports", "3", "3", "4", "4"),
        ("rto_initial", "1 s", "1 s", "3 s", "3 s"),
        ("rto_min", "1 s", "200 ms", "1 s", "1 s"),
        ("rto_max", "60 s", "10 s", "60 s", "60 s"),
        ("path_max_retrans", "5", "5", "5", "5"),
        ("association_max_retrans", "10", "off", "10", "10"),
        ("association_timeout", "off", "60 s", "off", "off"),
        ("hb_interval", "30 s", "5 s", "30 s", "30 s"),
        ("initial_cwnd", "rfc9260", "10 pmdcs", "2 mtu", "4380 B"),
        ("initial_ssthresh", "unlimited", "unlimited", "peer_rwnd", "64 KiB"),
        ("ssthresh_floor", "4 pmdcs", "4 pmdcs", "2 mtu", "2 pmdcs"),
        ("idle_cwnd_floor", "4 pmdcs", "4 pmdcs", "2 mtu", "4 pmdcs"),
        ("slow_start_increase_max", "1 pmdcs", "16 pmdcs", "1 mtu", "1 pmdcs"),
        ("data_before_verification", "false", "false", "true", "true"),
        ("hb_max_burst", "1", "32", "1", "32"),
        ("sack_delay", "200 ms", "25 ms", "200 ms", "200 ms"),
        ("sack_every", "2", "2", "2", "2"),
        ("sack_every_max", "2", "16", "2", "2"),
        ("tail_loss_probe", "false", "true", "false", "false"),
        ("max_burst", "4", "0", "4", "4"),
        ("max_burst_rule", "rfc9260", "rfc9260", "per_sack", "after_fast_retransmit"),
        ("pacing", "false", "true", "false", "false"),
        ("mtu", "1500 B", "1500 B", "1500 B", "1500 B"),
        ("pmdcs_limit", "off", "off", "1452 B", "1452 B"),
        ("receive_buffer", "1 MiB", "8 MiB", "64 KiB", "64 KiB"),
        ("hb_first_probe", "off", "250 ms", "off", "off"),
        ("congestion_control", "rfc9260", "rfc9260", "rfc2960", "rfc2960"),
        ("recovery", "standard", "standard", "standard", "ns2"),
        ("recovery_without", "none", "none", "none", "none"),
        ("window_updates", "true", "true", "false", "false"),
        ("sack_first_at_once", "true", "true", "false", "false"),
        ("max_init_retransmits", "8", "64", "8", "8"),
        ("handshake_rto", "off", "250 ms", "off", "off"),
        ("handshake_rto_max", "60 s", "1 s", "60 s", "60 s"),
        ("handshake_on_all_paths", "false", "true", "false", "false"),
        ("pad_repeated_init", "false", "true", "false", "false"),
        ("data_with_cookie", "false", "true", "false", "false"),
        ("probe_with_data", "false", "true", "false", "false"),
        ("one_way_paths", "false", "true", "false", "false"),
        ("ack_tests", "false", "true", "false", "false"),
        ("stateless_answers", "off", "1000", "off", "off"),
        ("verify_all_paths_first", "false", "false", "false", "true"),
        ("rtx_when_path_answers", "false", "true", "false", "false"),
    ] {
        let r37 = match name {
            "initial_cwnd" | "idle_cwnd_floor" => "2 pmdcs",
            _ => ns2,
        };
        let r36 = if name == "verify_all_paths_first" { "false" } else { r37 };
        assert_eq!(row(name), [rfc9260, fast, papers, ns2, r37, r36, r36, r36], "{name}");
    }
}

/// Programs, bindings and text files that name neither a profile nor a preset have this one.
#[test]
fn one_default_is_adaptive_on_fast() {
    let config = Config::default();
    assert_eq!((config.profile, config.preset), (Profile::Fast, "adaptive"));
    assert_eq!(Config::build("fast", "adaptive", NONE), Ok(config.clone()));
    assert_eq!(Config::default_with(NONE), Ok(config.clone()));
    assert_eq!(Config::from_toml_str(""), Ok(config));
    let preset = Config::from_toml_str("preset = \"cmt\"").unwrap();
    assert_eq!((preset.profile, preset.preset), (Profile::Fast, "cmt"));
    let profile = Config::from_toml_str("profile = \"2006\"").unwrap();
    assert_eq!((profile.profile, profile.preset), (Profile::Papers2006, "adaptive"));
}

#[test]
fn constants_of_rfc_9260_section_16_are_a_profile() {
    let config = build(&[]).unwrap();
    assert_eq!([config.rto_initial, config.rto_min, config.rto_max], [secs(1), secs(1), secs(60)]);
    assert_eq!((config.max_burst, config.rto_alpha, config.rto_beta), (4, 0.125, 0.25));
    assert_eq!(config.valid_cookie_life, secs(60));
    assert_eq!((config.association_max_retrans, config.path_max_retrans), (Some(10), 5));
    assert_eq!((config.max_init_retransmits, config.hb_max_burst), (8, 1));
    assert_eq!((config.hb_interval, config.sack_delay), (secs(30), ms(200)));
}

#[test]
fn every_profile_with_every_preset_is_valid() {
    for profile in Profile::ALL {
        for preset in Preset::ALL {
            let config = Config::build(profile.name(), preset.name, NONE).unwrap();
            assert_eq!((config.profile, config.preset), (profile, preset.name));
        }
    }
}

#[test]
fn where_one_path_takes_all_sacks_the_fast_profile_sends_few() {
    let of = |profile, preset: &str| {
        let config = Config::of(profile, Preset::from_name(preset).unwrap());
        (config.sack_gaps_wait, config.cut_once_per_flight)
    };
    assert_eq!(of(Profile::Fast, "mtcp"), (true, true));
    assert_eq!(of(Profile::Fast, "cmt-pf"), (false, true), "its SACKs come back on every path");
    assert_eq!(of(Profile::Rfc9260, "mtcp"), (false, false));
    assert_eq!(of(Profile::Papers2006, "mtcp"), (false, true));
}

#[test]
fn the_profiles_of_ns2_have_an_agent_for_one_path_and_one_for_cmt() {
    let of = |profile, preset: &str| {
        let config = Config::of(profile, Preset::from_name(preset).unwrap());
        let names = ["ssthresh_floor", "congestion_control", "rtx_past_cwnd"];
        names.map(|name| config.get(name).unwrap())
    };
    assert_eq!(of(Profile::Ns2, "all-rtx-alt"), ["4 pmdcs", "rfc9260", "any"]);
    let older = Profile::ALL.into_iter().filter(|p| p.name().starts_with("ns2-"));
    for profile in older {
        assert_eq!(of(profile, "all-rtx-alt"), ["2 pmdcs", "rfc9260", "any"], "{profile:?}");
        assert_eq!(of(profile, "cmt"), ["2 pmdcs", "rfc2960", "loser"], "{profile:?}");
    }
    assert_eq!(of(Profile::Ns2, "cmt"), ["2 pmdcs", "rfc2960", "loser"]);
}

#[test]
fn each_release_of_ns2_has_a_profile_with_its_rules() {
    let release = |name: &str| Config::build(name, "sctp", NONE).unwrap().ns2_release.name();
    for number in Ns2Release::NAMES {
        assert_eq!(release(&format!("ns2-{number}")), *number);
    }
    assert_eq!((release("ns2"), release("2006")), ("3.8", "3.8"), "the latest");
    assert_eq!(Profile::from_name("ns2-3.8"), Ok(Profile::Ns2), "another name");
}

#[test]
fn rules_of_ns2_are_left_out_by_their_names() {
    let mut config = Config::build("ns2", "cmt-pf", NONE).unwrap();
    for (text, printed) in [
        ("none", "none"),
        ("t3_covers_waiting", "t3_covers_waiting"),
        ("har_lowers_floor,rwnd_counts_headers", "rwnd_counts_headers, har_lowers_floor"),
    ] {
        config.set("recovery_without", text).unwrap();
        assert_eq!(config.get("recovery_without").as_deref(), Ok(printed));
        assert_eq!(config.validate(), Ok(()));
    }
    assert!(config.set("recovery_without", "t3_covers_waiting, nothing").is_err());
    config.set("recovery", "standard").unwrap();
    let error = config.validate().unwrap_err();
    assert_eq!(error.field, "recovery_without", "{error}");
}

#[test]
fn presets_set_known_parameters_in_canonical_form() {
    for preset in Preset::ALL {
        for profile in Profile::ALL {
            let config = Config::of(profile, preset);
            let mut values: Vec<_> = preset.values(profile).collect();
            values.reverse();
            for (at, (name, value)) in values.iter().enumerate() {
                let wins = values[..at].iter().all(|(later, _)| later != name);
                let set = config.get(name);
                assert!(!wins || set.as_deref() == Ok(*value), "{}: {name}", preset.name);
            }
        }
    }
}

#[test]
fn presets_select_their_systems() {
    for (preset, scheduler, failure, cmt) in [
        ("sctp", "primary", "pmr", false),
        ("sctp-pf", "primary", "pf", false),
        ("all-rtx-alt", "primary", "pmr", false),
        ("all-rtx-same", "primary", "pmr", false),
        ("fr-same-rto-alt", "primary", "pmr", false),
        ("cmt", "fill_first", "pmr", true),
        ("cmt-pf", "fill_first", "pf", true),
        ("msacmt-rt", "fill_first", "pf", true),
        ("msacmt-rtv2", "fill_first", "pf", true),
    ] {
        let config = Config::build("2006", preset, NONE).unwrap();
        assert_eq!(
            (config.scheduler.name(), config.failure.name()),
            (scheduler, failure),
            "{preset}"
        );
        assert_eq!([config.sfr, config.dac, config.rtx_age_heuristic], [cmt; 3], "{preset}");
        assert_eq!(config.cuc, if cmt { Cuc::V2 } else { Cuc::Off }, "{preset}");
        let rtx = match preset {
            "cmt" | "cmt-pf" | "msacmt-rt" | "msacmt-rtv2" => "ssthresh".to_owned(),
            "sctp" | "sctp-pf" => "same".to_owned(),
            caro => caro.replace('-', "_"),
        };
        assert_eq!(config.rtx_policy.name(), rtx, "{preset}");
        let redundancy =
            if preset.starts_with("msacmt") { preset.replace('-', "_") } else { "off".into() };
        assert_eq!(config.redundancy.name(), redundancy, "{preset}");
        assert_eq!(config.nr_sack, preset.starts_with("msacmt"), "{preset}");
        assert_eq!(config.redundancy_cycle, RedundancyCycle::Keep, "{preset}: Algorithm 1");
    }
    assert_eq!(build(&[]).unwrap().pf_recovery_cwnd, 2, "CMT-PF2");
}

/// The ten combinations of the retransmission policies paper's Figure 7, and the policies alone,
/// are valid; the others are errors that name both sides.
#[test]
fn extensions_go_with_policies_as_the_paper_says() {
    const EXTENSIONS: [&str; 3] = ["har", "timestamp", "mfr"];
    let sets: [(&str, &[&[&str]]); 3] = [
        ("all-rtx-alt", &[&[], &["har"], &["timestamp"]]),
        ("all-rtx-same", &[&[], &["timestamp"], &["mfr"], &["timestamp", "mfr"]]),
        (
            "fr-same-rto-alt",
            &[&[], &["har"], &["timestamp"], &["mfr"], &["har", "mfr"], &["timestamp", "mfr"]],
        ),
    ];
    for (preset, allowed) in sets {
        for mask in 0..8 {
            let on: Vec<_> =
                (0..3).filter(|bit| mask & (1 << bit) != 0).map(|bit| EXTENSIONS[bit]).collect();
            let set: Vec<_> = on.iter().map(|&e| (e.to_owned(), "true".to_owned())).collect();
            let built = Config::build("2006", preset, &set);
            assert_eq!(
                built.is_ok(),
                allowed.contains(&&on[..]),
                "{preset} with {on:?}: {built:?}"
            );
            if let Err(error) = built {
                let text = error.to_string();
                let names = ["har", "mfr", "timestamp", "rtx_policy"];
                let named = names.iter().filter(|&name| text.contains(name)).count();
                assert!(named >= 2, "{text}");
            }
        }
    }
}

#[test]
fn parameters_are_named_once_and_described() {
    for (i, param) in PARAMS.iter().enumerate() {
        assert!(PARAMS[..i].iter().all(|other| other.name != param.name), "{}", param.name);
        assert!(param.doc.ends_with('.') && !param.doc.contains("  "), "{}", param.doc);
        assert!(!param.source.is_empty() && !param.unit.is_empty(), "{}", param.name);
    }
}

#[test]
fn values_out_of_range_or_form_are_refused_and_change_nothing() {
    for (name, value, allowed) in [
        ("mtu", "511", "512 B to 65535 B"),
        ("mtu", "1500 bytes", "such as \"64 KiB\""),
        ("receive_buffer", "1499", "1500 B"), // RFC 9260 §3.3.2
        ("sack_delay", "501 ms", "500 ms"),   // RFC 9260 §6.2
        ("rto_min", "0 s", "1 ms"),
        ("rto_min", "200", "such as \"200 ms\""),
        ("rto_min", "off", "1 ms to 600 s"),
        ("rto_alpha", "0", "0.001 to 1"),
        ("rto_alpha", "2", "0.001 to 1"),
        ("path_max_retrans", "-1", "0 to 255"),
        ("path_max_retrans", "2.5", "a whole number"),
        ("inbound_streams", "65536", "1 to 65535"),
        ("max_paths", "33", "1 to 32"),
        ("sfr", "maybe", "true or false"),
        ("cuc", "v3", "off, v1 or v2"),
        (
            "rtx_policy",
            "random",
            "lossrate, soonest, csl, all_rtx_alt, all_rtx_same, fr_same_rto_alt or pipe_cwnd",
        ),
        ("initial_cwnd", "0 mtu", "1 mtu or more"),
        ("initial_cwnd", "4 packets", "pmdcs"),
        ("initial_ssthresh", "100 B", "512 B"),
        ("association_timeout", "1 ms", "or off"),
        ("preset", "cmt", "when a configuration is built"),
    ] {
        let mut config = Config::default();
        let error = config.set(name, value).unwrap_err();
        assert_eq!((error.field.as_str(), error.value.as_str()), (name, value));
        assert!(error.to_string().contains(allowed), "{error}");
        assert_eq!(config, Config::default());
    }
}

#[test]
fn fields_set_in_rust_are_checked_too() {
    let valid = Config::default();
    for (field, config) in [
        ("mtu", valid.clone().with(|c| c.mtu = 100)),
        ("rto_alpha", valid.clone().with(|c| c.rto_alpha = f64::NAN)),
        ("ssthresh_floor", valid.clone().with(|c| c.ssthresh_floor = Units::Pmdcs(0))),
    ] {
        assert_eq!(config.validate().unwrap_err().field, field);
    }
    assert_eq!(valid.validate(), Ok(()));
}

#[test]
fn impossible_combinations_name_both_parameters() {
    for (overrides, one, other) in [
        (&[("rto_min", "2 s")][..], "rto_min", "rto_initial"),
        (&[("rto_initial", "61 s")], "rto_initial", "rto_max"),
        (&[("sack_every", "3")], "sack_every", "sack_every_max"),
        (&[("association_max_retrans", "off")], "association_max_retrans", "association_timeout"),
        (
            &[("pf_max_retrans", "2"), ("primary_switchover_max_retrans", "1")],
            "primary_switchover_max_retrans",
            "pf_max_retrans",
        ),
    ] {
        let error = build(overrides).unwrap_err();
        assert_eq!(error.field, one);
        assert!(error.allowed.contains(other), "{error}");
    }
    // Settings that belong together may come in any order.
    assert!(build(&[("rto_min", "2 s"), ("rto_initial", "2 s")]).is_ok());
}

#[test]
fn unknown_names_suggest_the_nearest() {
    for (name, nearest) in [
        ("rto_mim", "rto_min"),
        ("rto-max", "rto_max"),
        ("recieve_buffer", "receive_buffer"),
        ("hb_intervall", "hb_interval"),
        ("presett", "preset"),
    ] {
        let error = build(&[(name, "1 s")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{name} = 1 s: no such parameter; did you mean {nearest}?")
        );
    }
    let error = Config::default().get("sack").unwrap_err();
    assert!(error.to_string().starts_with("sack: no such parameter"), "{error}");
}

#[test]
fn unknown_profiles_and_presets_list_the_known() {
    let profile = Config::build("rfc4960", "cmt", NONE).unwrap_err();
    assert_eq!(
        profile.to_string(),
        "profile = rfc4960: must be rfc9260, fast, 2006, ns2, ns2-3.7, ns2-3.6, ns2-3.5 or ns2-3.4"
    );
    let preset = Config::build("fast", "cmt_pf", NONE).unwrap_err();
    assert_eq!(
        preset.to_string(),
        "preset = cmt_pf: must be sctp, sctp-pf, all-rtx-alt, all-rtx-same, \
                fr-same-rto-alt, cmt, cmt-pf, adaptive, mtcp, msacmt-rt or msacmt-rtv2"
    );
}

#[test]
fn redundancy_needs_sfr() {
    let error = build(&[("redundancy", "msacmt_rt"), ("sfr", "false")]).unwrap_err();
    assert!(error.to_string().starts_with("redundancy = msacmt_rt: needs sfr = true"), "{error}");
    build(&[("redundancy", "msacmt_rt"), ("redundancy_review", "3")]).expect("valid with cmt-pf");
    let restart = build(&[("redundancy_cycle", "restart")]).expect("a cycle");
    assert_eq!(restart.redundancy_cycle, RedundancyCycle::Restart);
    let loss = build(&[("redundancy_order", "loss")]).expect("an order");
    assert_eq!(loss.redundancy_order, RedundancyOrder::Loss);
    build(&[("redundancy_cycle", "never")]).expect_err("no such cycle");
}

#[test]
fn the_last_override_counts() {
    let config =
        build(&[("mtu", "600"), ("preset", "sctp"), ("mtu", "700"), ("profile", "fast")]).unwrap();
    assert_eq!((config.mtu, config.preset, config.profile), (700, "sctp", Profile::Fast));
}

#[test]
fn toml_takes_strings_with_units_and_bare_numbers() {
    let config = Config::from_toml_str(
        r#"
            profile = "2006"
            preset = "cmt"
            rtx_policy = "cwnd"
            receive_buffer = "128 KiB"
            send_buffer = 65536
            hb_interval = "7 s"
            sack_delay = 0
            rto_alpha = 0.25
            path_max_retrans = 2
            association_timeout = "30 s"
            rtx_age_heuristic = false
            heartbeats = "off"
        "#,
    )
    .unwrap();
    let expected = Config::build("2006", "cmt", NONE).unwrap().with(|c| {
        c.rtx_policy = known("cwnd");
        c.receive_buffer = 131_072;
        c.send_buffer = 65_536;
        c.hb_interval = secs(7);
        c.sack_delay = Duration::ZERO;
        c.rto_alpha = 0.25;
        c.path_max_retrans = 2;
        c.association_timeout = Some(secs(30));
        c.rtx_age_heuristic = false;
        c.heartbeats = false;
    });
    assert_eq!(config, expected);
}

#[test]
fn toml_errors_say_where() {
    let error = |text| Config::from_toml_str(text).unwrap_err().to_string();
    assert!(error("mtu = [1500]").contains("mtu = [1500]: must be a string"));
    assert!(error("[rto]\nmin = 1").contains("must be a string"));
    assert!(error("mtu = ").contains("line 1"));
    assert!(error("rto_mn = 1").contains("did you mean rto_min"));
    assert!(error("sack_delay = nan").contains("sack_delay"));
    assert!(error("hb_interval = -1").contains("10 ms to 24 h"));
    for bare in ["rto_min = 200", "sack_delay = 0.1", "association_timeout = 30"] {
        assert!(error(bare).contains("ms, s, min or h"), "{bare}: {}", error(bare));
    }
}

#[test]
fn what_carries_the_packets_decides_some_parameters() {
    let papers = Config::build("2006", "cmt-pf", NONE).unwrap();
    let on_sockets = papers.for_sockets(0).unwrap();
    assert_eq!((papers.udp_encapsulation, on_sockets.udp_encapsulation), (false, true));
    assert_eq!(on_sockets.for_sockets(0), Ok(on_sockets.clone()));
    assert_eq!(papers.for_sockets(4).unwrap().mtu, 1496, "room for a relay's header");
    let fast = Config::of(Profile::Fast, Preset::DEFAULT);
    assert_eq!(fast.for_sockets(4).unwrap(), fast, "the size of each path is found out");

    let simulated = fast.for_simulation();
    assert_eq!(simulated, fast.clone().with(|c| c.checksum = false));
    assert_eq!(simulated.for_sockets(0).unwrap_err().field, "checksum");
    let emulated = simulated.for_emulation();
    assert_eq!(emulated, fast.with(|c| c.advertise_addresses = false));
}

#[test]
fn explains_where_each_value_comes_from() {
    let config = build(&[]).unwrap().with(|c| {
        c.mtu = 9000;
        c.cuc = Cuc::V1;
    });
    let rows = config.explain();
    assert_eq!(rows.len(), PARAMS.len());
    let find = |name| rows.iter().find(|row| row.name == name).unwrap();
    assert_eq!((find("mtu").origin, find("mtu").default.as_str()), (Origin::Override, "1500 B"));
    assert_eq!(find("cuc").origin, Origin::Override, "changed from what the preset set");
    assert_eq!(find("sfr").origin, Origin::Preset);
    assert_eq!(
        (find("rto_min").origin, find("rto_min").range.as_str()),
        (Origin::Profile, "1 ms to 600 s")
    );

    let text = config.to_string();
    assert!(PARAMS.iter().all(|param| text.contains(param.name) && text.contains(param.source)));
    let json_like = toml::Value::try_from(find("mtu")).unwrap();
    assert_eq!(json_like["origin"].as_str(), Some("override"));
    assert_eq!(json_like["group"].as_str(), Some("packets"));
}

/// The first words of the rows of a table, without its headings.
fn names(table: &str) -> Vec<&str> {
    let first = table.lines().filter_map(|line| line.split_whitespace().next());
    first.filter(|word| Param::by_name(word).is_some()).collect()
}

#[test]
fn what_users_set_is_shown_under_headings() {
    let config = Config::of(Profile::Fast, Preset::DEFAULT);
    let table = config.table(Rows::Usual, false);
    let shown = names(&table);
    assert!((50..=65).contains(&shown.len()), "{}", shown.len());
    assert!(shown.contains(&"rto_min") && !shown.contains(&"rto_alpha"), "{shown:?}");
    assert_eq!(names(&config.to_string()), PARAMS.iter().map(|p| p.name).collect::<Vec<_>>());
    for (i, param) in PARAMS.iter().enumerate() {
        let title = format!("\n{}:\n", param.group.title());
        assert_eq!(table.matches(&title).count(), 1, "{title}");
        let is_new = i == 0 || PARAMS[i - 1].group != param.group;
        let is_first = PARAMS[..i].iter().all(|earlier| earlier.group != param.group);
        assert!(!is_new || is_first, "{} is away from its group", param.name);
    }
    let config = config.with(|c| c.rto_alpha = 0.5);
    let table = config.table(Rows::Usual, false);
    assert!(names(&table).contains(&"rto_alpha"), "it was overridden");
}

#[test]
fn serialises_to_what_overrides_take() {
    let config = build(&[]).unwrap().with(|c| {
        c.rto_min = ms(50);
        c.pmdcs_limit = Some(1000);
    });
    let table = toml::Table::try_from(&config).unwrap();
    let read = Config::build("fast", "sctp", &Config::overrides(&table).unwrap());
    assert_eq!(read, Ok(config));
}

#[test]
fn windows_in_bytes() {
    // RFC 9260 §7.2.1: four small chunks, 4404 bytes of usual ones, two large ones.
    for (pmdcs, cwnd) in [(500, 2000), (1452, 4404), (8948, 17_896)] {
        assert_eq!(InitialCwnd::Rfc9260.bytes(pmdcs, pmdcs + 48, false), cwnd);
    }
    assert_eq!(InitialCwnd::Fixed(Units::Mtu(2)).bytes(1452, 1500, false), 3000);
    assert_eq!(Units::Pmdcs(4).bytes(1452, 1500), 5808);
    assert_eq!(Units::Bytes(5000).bytes(1452, 1500), 5000);
    assert_eq!(InitialSsthresh::PeerRwnd.bytes(65_536), 65_536);
    assert_eq!(InitialSsthresh::Unlimited.bytes(65_536), u64::MAX);
}

fn any_units() -> impl Strategy<Value = Units> {
    prop_oneof![
        (1_u32..=1_000_000).prop_map(Units::Pmdcs),
        (1_u32..=1_000_000).prop_map(Units::Mtu),
        (512_u64..=1 << 32).prop_map(Units::Bytes),
    ]
}

prop_compose! {
    /// Valid configurations with at least one parameter of every type at random.
    fn any_config()(
        profile in 0_usize..3,
        preset in 0_usize..Preset::ALL.len(),
        times in proptest::collection::vec(1_000_000_u64..600_000_000_000, 3),
        sizes in (512_usize..=65_535, 1500_usize..=1 << 31),
        limit in proptest::option::of(64_usize..=65_487),
        counts in (1_u16..=u16::MAX, 0_u32..=255),
        floor in any_units(),
        cwnd in proptest::option::of(any_units()),
        ssthresh in prop_oneof![
            Just(InitialSsthresh::PeerRwnd),
            Just(InitialSsthresh::Unlimited),
            (512_u64..=1 << 32).prop_map(InitialSsthresh::Bytes),
        ],
        alpha in 0.001..=1.0_f64,
        switches: (bool, bool),
        policy in 0_usize..RTX_POLICIES.len(),
        timeout in proptest::option::of(1_000_000_000_u64..86_400_000_000_000),
    ) -> Config {
        let mut times = times.into_iter().map(Duration::from_nanos).collect::<Vec<_>>();
        times.sort();
        Config::of(Profile::ALL[profile], &Preset::ALL[preset]).with(|c| { c.rto_min = times[0]; c.rto_initial = times[1]; c.rto_max = times[2]; c.mtu = sizes.0; c.receive_buffer = sizes.1; c.pmdcs_limit = limit; c.outbound_streams = counts.0; c.path_max_retrans = counts.1; c.association_max_retrans = Some(counts.1); c.association_timeout = timeout.map(Duration::from_nanos); c.ssthresh_floor = floor; c.initial_cwnd = cwnd.map_or(InitialCwnd::Rfc9260, InitialCwnd::Fixed); c.initial_ssthresh = ssthresh; c.rto_alpha = alpha; c.pacing = switches.0; c.max_burst_rule = if switches.1 { MaxBurstRule::PerSack } else { MaxBurstRule::Rfc9260 }; c.rtx_policy = Factory::named(RTX_POLICIES[policy]).expect("a name"); c.mfr = false; })
    }
}

proptest! {
    #[test]
    fn toml_reads_back_every_configuration(config in any_config()) {
        let text = config.to_toml();
        let read = Config::from_toml_str(&text);
        prop_assert_eq!(&read, &Ok(config));
        prop_assert_eq!(read.map(|config| config.to_toml()), Ok(text));
    }

    #[test]
    fn no_text_panics(param in 0..PARAMS.len(), value in "\\PC*", toml in "\\PC*") {
        let mut config = Config::default();
        if config.set(PARAMS[param].name, &value).is_err() {
            prop_assert_eq!(config, Config::default());
        }
        let _ = Config::from_toml_str(&toml);
    }
}
