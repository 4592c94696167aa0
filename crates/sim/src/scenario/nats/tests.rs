use std::time::Duration;

use super::*;
use crate::scenario::{Point, RunOptions, Scenario};

/// Two hosts behind NATs, the far one behind two, and a relay.
const TEXT: &str = r#"
    transfer.size = "2 MB"
    [nat.near]
    mapping = "address-dependent"
    filtering = "endpoint-independent"
    ports = "random"
    timeout = "30 s"
    hairpin = true
    [[nat.far]]
    [[nat.far]]
    timeout = "300 s"
    [[path]]
    relay = true
    rate = "20 Mbit/s"
    delay = "20 ms"
    [[path]]
    rate = "20 Mbit/s"
    delay = "20 ms"
    [[event]]
    at = "500 ms"
    after = "first data"
    nat = "near"
    change = "reboot"
    [[event]]
    at = "300 ms"
    nat = "far.2"
    change = "reboot"
"#;

fn scenario(text: &str) -> Scenario {
    Scenario::parse("test.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

fn point(text: &str) -> Point {
    scenario(text).points().unwrap_or_else(|error| panic!("{error}")).remove(0)
}

#[test]
fn nats_are_as_the_file_says_and_stand_behind_each_other() {
    let nats = point(TEXT).run.nats;
    assert_eq!(nats.names(), ["near", "far.2", "far"]);
    let near = NatSpec {
        public: "198.51.100.1".parse().unwrap(),
        mapping: NatBehaviour::AddressDependent,
        filtering: NatBehaviour::EndpointIndependent,
        ports: PortAssignment::Random,
        timeout: Duration::from_secs(30),
        hairpin: true,
    };
    assert_eq!(nats.all[0].spec, near);
    let carrier = NatSpec {
        timeout: Duration::from_secs(300),
        ..NatSpec::new("198.51.100.2".parse().unwrap())
    };
    assert_eq!(nats.all[1].spec, carrier);
    assert_eq!(nats.all[2].spec, NatSpec::new("100.64.0.3".parse().unwrap()), "the default");
    assert_eq!((nats.all[2].outer, nats.near, nats.far), (Some(1), Some(0), Some(2)));
}

#[test]
fn results_count_what_the_nats_did() {
    let run = point(TEXT).run;
    let result = run.run(1, &RunOptions::default()).unwrap().result;
    assert!(result.transfer.completed);
    let [(near, stats), (carrier, outer), (far, _)] = &result.nats[..] else {
        panic!("{:?}", result.nats)
    };
    assert_eq!((near.as_str(), carrier.as_str(), far.as_str()), ("near", "far.2", "far"));
    assert_eq!((stats.reboots, outer.reboots), (1, 1));
    assert!(stats.mappings >= 2 && stats.unmapped > 0, "the reboot cost answers: {stats:?}");
    let json = serde_json::to_value(&result).unwrap();
    assert_eq!(json["nats"]["near"]["mappings"], stats.mappings);
}

#[test]
fn a_file_without_nats_has_none_in_its_results() {
    let text = "transfer.size = \"1 kB\"\n[[path]]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
    let result = point(text).run.run(1, &RunOptions::default()).unwrap().result;
    assert!(serde_json::to_value(&result).unwrap().get("nats").is_none());
}

/// A host behind the NAT that is around both is known to the other from the start.
#[test]
fn hosts_behind_one_nat_need_no_relay() {
    let text = r#"
        transfer.size = "1 MB"
        [nat.shared]
        [[path]]
        rate = "10 Mbit/s"
        delay = "2 ms"
    "#;
    let result = point(text).run.run(1, &RunOptions::default()).unwrap().result;
    assert!(result.transfer.completed);
    assert_eq!(result.nats[0].1.outbound, 0, "nothing came to the NAT");
}

#[test]
fn an_explanation_names_nats_and_reboots() {
    let scenario = scenario(TEXT);
    let text = scenario.explain(&scenario.points().unwrap()[0], 1);
    for line in [
        "NAT near: mapping address-dependent, filtering endpoint-independent, ports random",
        "NAT far behind far.2: mapping endpoint-independent",
        "path 1, the primary, a relay's",
        "300 ms: NAT far.2 reboots",
        "500 ms after the first data: NAT near reboots",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn what_is_not_the_simulator_s_refuses_nats_and_relays() {
    let run = point(TEXT).run;
    assert_eq!(run.plain().unwrap_err(), "it has NATs");
    let address = |_, _| "10.0.0.1:0".parse().unwrap();
    assert_eq!(run.bare(1, address).unwrap_err(), "it has NATs");
    let relay = r#"
        transfer.size = "1 MB"
        [[path]]
        relay = true
        rate = "10 Mbit/s"
        delay = "2 ms"
    "#;
    assert_eq!(point(relay).run.plain().unwrap_err(), "it has a relay");
}
