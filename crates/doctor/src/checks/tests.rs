mod quoting;

use std::collections::BTreeSet;
use std::net::IpAddr;

use manypath_net::Buffers;
use manypath_net::port_mapping::{MappedBy, MappedPort, MappingState, NotMapped};

use super::*;
use crate::finding::{Finding, Severity};
use crate::host::{Neighbour, Ruleset};
use crate::probe::{Behaviour, Dependence, Mapped, Memory, Mtu, Offset, SendError};
use crate::testing::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Nothing of the second uplink's way is answered.
fn silence(facts: &mut Facts, uplink: usize) {
    for way in facts.ways.iter_mut().filter(|way| way.uplink == uplink) {
        (way.by_device, way.by_address) = (Some(silent()), Some(silent()));
        (way.mtu, way.sends_batches) = (None, None);
    }
}

#[test]
fn names_are_unique_and_every_finding_is_announced() {
    let names: BTreeSet<&str> = CHECKS.iter().map(|check| check.name()).collect();
    assert_eq!(names.len(), CHECKS.len());
    let ids: Vec<&str> = CHECKS.iter().flat_map(|check| check.ids()).copied().collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    assert!(
        ids.iter().all(|id| id
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'))
    );
    assert!(CHECKS.iter().all(|check| check_named(check.name()).is_some()));
}

#[test]
fn the_page_explains_every_finding() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/doctor.md");
    let page = std::fs::read_to_string(page).unwrap();
    for check in CHECKS {
        for id in check.ids() {
            assert!(page.contains(&format!("`{id}`")), "{id} of {}", check.name());
        }
    }
}

#[test]
fn a_sound_host_has_no_finding() {
    let looked = all(&sound());
    let bad: Vec<_> = looked.findings.iter().filter(|f| f.severity > Severity::Ok).collect();
    assert!(bad.is_empty(), "{bad:#?}");
}

#[test]
fn without_any_facts_nothing_panics_and_nothing_counts_as_sound() {
    let looked = all(&Facts::default());
    assert!(looked.findings.iter().any(|f| f.id == "no-uplink"));
    for subject in ["routes", "rp_filter", "socket buffers"] {
        assert!(looked.unseen.iter().any(|u| u.what.contains(subject)), "{subject}: {looked:?}");
    }
}

#[test]
fn one_uplink_is_a_note_and_no_uplink_an_error() {
    let mut facts = sound();
    facts.uplinks.pop();
    facts.ways.pop();
    assert!(worse_than_notes(&facts).is_empty());
    assert!(all(&facts).findings.iter().any(|f| f.id == "one-uplink"));
    (facts.uplinks, facts.ways) = Default::default();
    assert_eq!(only(&facts, "no-uplink").severity, Severity::Error);
}

#[test]
fn an_uplink_without_a_route_gets_one_of_its_own() {
    let mut facts = sound();
    let routes = facts.host.routes.as_mut().unwrap();
    routes.retain(|route| route.table != "102");
    facts.ways[1].chosen = facts.ways[0].chosen.clone();
    silence(&mut facts, 1);
    let found = only(&facts, "no-route");
    assert_eq!(found.severity, Severity::Error);
    assert_eq!(
        found.mend,
        [
            "sudo ip route replace 10.2.0.0/24 dev eth1 table 102",
            // The rule is there already.
            "sudo ip route replace default via 10.2.0.1 dev eth1 table 102",
        ]
    );
    without_rule(&mut facts, ip("10.2.0.2"));
    let found = only(&facts, "no-route");
    assert_eq!(found.mend.last().unwrap(), "sudo ip rule add from 10.2.0.2 lookup 103");
}

/// Two default routes in the main table and no rules.
fn two_metrics() -> Facts {
    let mut facts = sound();
    let routes = facts.host.routes.as_mut().unwrap();
    routes.retain(|route| route.table == "main");
    routes.push(default_route("eth1", "10.2.0.1", "main"));
    facts.host.rules.retain(|rule| rule.from.is_none());
    facts.ways[1].chosen = facts.ways[0].chosen.clone();
    facts
}

#[test]
fn without_a_rule_it_depends_on_the_answers() {
    let mut facts = two_metrics();
    assert!(worse_than_notes(&facts).is_empty(), "all is answered");
    facts.ways[1].by_address = Some(silent());
    let found = only(&facts, "no-source-route");
    assert_eq!(found.severity, Severity::Warning);
    assert!(
        found.sentence.contains("--bind eth1") && found.sentence.contains("leave through eth0")
    );
    facts.ways[1].by_device = Some(silent());
    let found = worse_than_notes(&facts);
    assert!(found.iter().any(|f| f.id == "no-source-route" && f.severity == Severity::Error));
}

#[test]
fn an_address_of_the_destination_that_nobody_reaches_is_no_fault_of_routes() {
    let mut facts = two_metrics();
    let docker = "172.17.0.1:9899".parse().unwrap();
    let mut unreachable = facts.ways.clone();
    for way in &mut unreachable {
        (way.remote, way.by_device, way.by_address) = (docker, Some(silent()), Some(silent()));
    }
    facts.remotes.insert(0, docker);
    facts.ways.splice(0..0, unreachable);
    let found = all(&facts).findings;
    let of = |id: &str| found.iter().filter(|f| f.id == id).map(|f| f.severity).max();
    assert_ne!(of("no-source-route"), Some(Severity::Error));
    assert_eq!(of("dest-address-silent"), Some(Severity::Note));
}

#[test]
fn a_strict_rp_filter_is_named_instead_of_what_it_causes() {
    let mut facts = two_metrics();
    silence(&mut facts, 1);
    facts.host.sysctls.insert("net/ipv4/conf/all/rp_filter".into(), "1".into());
    let found = only(&facts, "rp-filter");
    assert_eq!(found.mend, ["sudo sysctl -w net.ipv4.conf.eth1.rp_filter=2"]);
    assert!(found.keep[0].contains("net.ipv4.conf.eth1.rp_filter = 2"));
    // 2 wins over 1.
    facts.host.sysctls.insert("net/ipv4/conf/eth1/rp_filter".into(), "2".into());
    assert!(!all(&facts).findings.iter().any(|f| f.id == "rp-filter"));
}

#[test]
fn strict_filters_do_no_harm_where_routes_go_by_source() {
    let mut facts = sound();
    facts.host.sysctls.insert("net/ipv4/conf/all/rp_filter".into(), "1".into());
    assert!(worse_than_notes(&facts).is_empty());
}

#[test]
fn a_tunnel_that_takes_everything_is_named_once() {
    let mut facts = two_metrics();
    facts.host.links.push(crate::host::Link {
        name: "tun0".into(),
        index: 9,
        is_up: true,
        kind: Some("tun".into()),
        ..Default::default()
    });
    for way in &mut facts.ways {
        way.chosen.as_mut().unwrap().dev = Some("tun0".into());
        way.by_address = Some(silent());
    }
    let found = only(&facts, "tunnel");
    assert!(found.sentence.contains("eth0 and eth1"), "{}", found.sentence);
    assert_eq!(found.mend.iter().filter(|c| c.contains("rule add")).count(), 2);
}

#[test]
fn the_router_of_another_uplink_is_no_router_of_this_one() {
    let mut facts = sound();
    let routes = facts.host.routes.as_mut().unwrap();
    let wrong = routes.iter_mut().find(|route| route.table == "102").unwrap();
    wrong.gateway = Some(ip("10.1.0.1"));
    silence(&mut facts, 1);
    let found = only(&facts, "wrong-gateway");
    assert!(
        found
            .mend
            .iter()
            .any(|c| c == "sudo ip route replace default via 10.2.0.1 dev eth1 table 102")
    );
    assert_eq!(found.place.as_deref(), Some("eth1"));
}

#[test]
fn a_router_that_does_not_answer_is_named() {
    let mut facts = sound();
    let routes = facts.host.routes.as_mut().unwrap();
    routes.iter_mut().find(|route| route.table == "102").unwrap().gateway = Some(ip("10.2.0.77"));
    silence(&mut facts, 1);
    facts.host.neighbours.push(Neighbour {
        ip: ip("10.2.0.77"),
        dev: "eth1".into(),
        hardware: None,
        is_silent: true,
        is_router: false,
    });
    assert!(only(&facts, "gateway-silent").sentence.contains("10.2.0.77"));
}

#[test]
fn two_uplinks_in_one_network_are_one_path() {
    let mut facts = sound();
    let link = facts.host.links.iter_mut().find(|link| link.name == "eth1").unwrap();
    link.addresses[0].prefix.ip = ip("10.1.0.3");
    let routes = facts.host.routes.as_mut().unwrap();
    routes
        .iter_mut()
        .filter(|r| r.dev.as_deref() == Some("eth1"))
        .for_each(|r| r.gateway = Some(ip("10.1.0.1")));
    facts
        .host
        .rules
        .iter_mut()
        .filter_map(|r| r.from.as_mut())
        .filter(|f| f.ip == ip("10.2.0.2"))
        .for_each(|f| f.ip = ip("10.1.0.3"));
    facts.uplinks[1].sources = vec![ip("10.1.0.3")];
    facts.ways[1].source = ip("10.1.0.3");
    let found = only(&facts, "same-network");
    assert_eq!(found.mend, ["sudo ip address flush dev eth1", "sudo ip link set dev eth1 down"]);
}

#[test]
fn an_interface_that_is_off_is_switched_on_with_its_routes() {
    let mut facts = sound();
    facts.host.links.iter_mut().find(|link| link.name == "eth1").unwrap().is_up = false;
    facts.host.routes.as_mut().unwrap().retain(|r| r.dev.as_deref() != Some("eth1"));
    facts.ways[1].chosen = facts.ways[0].chosen.clone();
    (facts.ways[1].by_device, facts.ways[1].by_address) = (None, None);
    let found = only(&facts, "link-down");
    assert_eq!(found.mend[0], "sudo ip link set dev eth1 up");
    assert_eq!(found.mend.len(), 3, "{:?}", found.mend);
    facts.host.manager = Some("nmcli");
    assert_eq!(only(&facts, "link-down").mend, ["sudo nmcli device connect eth1"]);
}

#[test]
fn a_firewall_of_this_host_is_named_with_its_chain() {
    let chain = |hook: &str| {
        Ruleset::parse(&format!(
            r#"{{"nftables":[{{"chain":{{"family":"inet","table":"filter","name":"c","type":"filter","hook":"{hook}","prio":0,"policy":"drop"}}}}]}}"#
        ))
    };
    let mut facts = sound();
    (0..2).for_each(|uplink| silence(&mut facts, uplink));
    facts.host.firewall = chain("input");
    let found = only(&facts, "firewall-in");
    assert_eq!(
        found.mend,
        ["sudo nft insert rule inet filter c ct state established,related accept"]
    );
    facts.host.firewall = chain("output");
    let found = only(&facts, "firewall-out");
    assert_eq!(found.mend, ["sudo nft insert rule inet filter c udp dport 9899 accept"]);
    // Without root there is only the refusal.
    facts.host.firewall = None;
    for way in &mut facts.ways {
        way.by_device.as_mut().unwrap().error = Some(SendError::Denied);
    }
    assert!(!only(&facts, "firewall-out").mend.is_empty());
}

#[test]
fn a_destination_that_is_silent_is_told_from_a_network_that_blocks() {
    let mut facts = sound();
    silence(&mut facts, 1);
    let found = only(&facts, "udp-blocked");
    assert_eq!(found.mend_at_destination, ["manypath recv --port 443"]);
    silence(&mut facts, 0);
    assert_eq!(only(&facts, "dest-silent").mend_at_destination[0], "manypath recv --port 9899");
    for way in &mut facts.ways {
        way.by_device.as_mut().unwrap().error = Some(SendError::Refused);
    }
    only(&facts, "dest-refused");
}

#[test]
fn a_black_hole_is_worse_than_a_router_that_says_so() {
    let mut facts = sound();
    facts.ways[1].mtu = Some(Mtu { interface: 1500, path: 1400, was_told: true });
    assert!(worse_than_notes(&facts).is_empty());
    facts.ways[1].mtu = Some(Mtu { interface: 1500, path: 1400, was_told: false });
    assert_eq!(only(&facts, "mtu-black-hole").mend, ["sudo ip link set dev eth1 mtu 1400"]);
}

#[test]
fn batches_that_are_off_are_switched_on() {
    let mut facts = sound();
    let off = |facts: &mut Facts, feature: &str, on: bool| {
        let features = facts.host.offloads.get_mut("eth1").unwrap();
        features.insert(feature.to_owned(), on);
    };
    off(&mut facts, "generic-receive-offload", false);
    assert_eq!(only(&facts, "gro-off").mend, ["sudo ethtool -K eth1 gro on"]);
    off(&mut facts, "generic-receive-offload", true);
    off(&mut facts, "generic-segmentation-offload", false);
    off(&mut facts, "tx-checksumming", false);
    assert_eq!(only(&facts, "gso-off").mend, ["sudo ethtool -K eth1 gso on tx on"]);
}

#[test]
fn small_buffers_are_a_warning_and_smaller_ones_than_wanted_a_note() {
    let mut facts = sound();
    let of =
        |receive| Buffers { receive_wanted: 8 << 20, send_wanted: 1 << 19, receive, send: 1 << 19 };
    facts.buffers = Some(of(212_992));
    let found = only(&facts, "udp-buffers");
    assert!(found.sentence.contains("208 KiB of the 8 MiB"), "{}", found.sentence);
    #[cfg(target_os = "linux")]
    assert_eq!(found.mend, ["sudo sysctl -w net.core.rmem_max=8388608"]);
    facts.buffers = Some(of(4 << 20));
    assert!(worse_than_notes(&facts).is_empty());
}

/// Our address on eth1 as a server sees it.
fn mapped(server: &str, seen: &str) -> Mapped {
    Mapped {
        local: "10.2.0.2:4000".parse().unwrap(),
        server: server.parse().unwrap(),
        seen: seen.parse().unwrap(),
    }
}

/// The finding of this name.
#[track_caller]
fn finding(facts: &Facts, id: &str) -> Finding {
    let found = all(facts).findings;
    found.iter().find(|f| f.id == id).unwrap_or_else(|| panic!("{found:#?}")).clone()
}

#[test]
fn kinds_of_nat_are_told_apart() {
    let mut facts = sound();
    facts.ways[1].mapped = vec![mapped("192.0.2.1:3478", "203.0.113.7:4000")];
    assert_eq!(finding(&facts, "nat").severity, Severity::Note);
    facts.ways[1].mapped.push(mapped("192.0.2.2:3478", "203.0.113.7:4001"));
    only(&facts, "nat-symmetric");
    facts.ways[1].mapped = vec![mapped("192.0.2.1:3478", "10.2.0.2:4000")];
    finding(&facts, "nat-none");
}

#[test]
fn what_a_nat_leaves_to_peers_follows_from_its_behaviour() {
    use Dependence::*;
    let direct = "direct with all peers";
    let most = "direct with most peers, but not with those";
    let few = "direct only with peers that let in packets from any port";
    for (mapping, filtering, severity, expected) in [
        (EndpointIndependent, EndpointIndependent, Severity::Note, direct),
        (EndpointIndependent, AddressDependent, Severity::Note, direct),
        (PortIndependent, PortIndependent, Severity::Note, direct),
        (EndpointIndependent, AddressAndPortDependent, Severity::Note, most),
        (PortIndependent, AddressAndPortDependent, Severity::Note, most),
        (AddressDependent, AddressDependent, Severity::Warning, few),
        (AddressAndPortDependent, AddressAndPortDependent, Severity::Warning, few),
    ] {
        let mut facts = sound();
        facts.ways[1].mapped = vec![mapped("192.0.2.1:3478", "203.0.113.7:4000")];
        let behaviour = Behaviour { mapping: Some(mapping), filtering: Some(filtering) };
        facts.ways[1].behaviour = behaviour;
        let id = if severity == Severity::Warning { "nat-symmetric" } else { "nat" };
        let found = finding(&facts, id);
        assert_eq!(found.severity, severity, "{behaviour:?}");
        assert!(found.sentence.contains(expected), "{behaviour:?}: {}", found.sentence);
    }
    // A firewall without translation.
    let mut facts = sound();
    facts.ways[1].mapped = vec![mapped("192.0.2.1:3478", "10.2.0.2:4000")];
    facts.ways[1].behaviour.filtering = Some(AddressAndPortDependent);
    let found = finding(&facts, "nat-none");
    assert!(found.sentence.contains(most), "{}", found.sentence);
}

#[test]
fn a_router_that_maps_ports_makes_the_kind_of_nat_harmless() {
    let symmetric = Some(Dependence::AddressAndPortDependent);
    let mut facts = sound();
    facts.ways[1].mapped = vec![mapped("192.0.2.1:3478", "203.0.113.7:4000")];
    facts.ways[1].behaviour = Behaviour { mapping: symmetric, filtering: symmetric };
    let state = |external: &str| {
        let external = external.parse().unwrap();
        Some(MappingState::Mapped(MappedPort { external, by: MappedBy::Pcp, lifetime: None }))
    };
    facts.uplinks[1].port_mapping = state("203.0.113.7:4000");
    assert!(worse_than_notes(&facts).is_empty());
    let found = finding(&facts, "nat-symmetric").sentence;
    assert!(found.contains("PCP: direct with all peers"), "{found}");
    assert_eq!(finding(&facts, "port-mapping").severity, Severity::Ok);

    // A carrier's NAT before the router: its mappings are of no use.
    facts.uplinks[1].port_mapping = state("100.64.3.4:4000");
    only(&facts, "nat-symmetric");
    let found = finding(&facts, "port-mapping-inner").sentence;
    assert!(found.contains("100.64.3.4"), "{found}");
    facts.uplinks[1].port_mapping = Some(MappingState::NotMapped(NotMapped::Silent));
    only(&facts, "nat-symmetric");
    assert_eq!(finding(&facts, "port-mapping-none").severity, Severity::Note);
}

#[test]
fn a_network_without_udp_is_told_from_a_silent_server() {
    let mut facts = sound();
    facts.stun = vec!["192.0.2.1:3478".parse().unwrap()];
    // The destination answers: the server does not run.
    assert!(worse_than_notes(&facts).is_empty());
    assert!(all(&facts).unseen.iter().any(|unseen| unseen.what == "NAT"));
    silence(&mut facts, 0);
    silence(&mut facts, 1);
    let found = only(&facts, "udp-silent");
    assert!(found.sentence.contains("from the destination and 192.0.2.1:3478"), "{found:?}");
    assert_eq!(found.mend_at_destination, ["manypath relay --port 443"]);

    // Without a destination the servers alone are asked.
    (facts.is_probed, facts.destination) = (false, Vec::new());
    for way in &mut facts.ways {
        (way.by_device, way.by_address) = (None, None);
    }
    only(&facts, "udp-silent");
    facts.ways[1].mapped = vec![mapped("192.0.2.1:3478", "10.2.0.2:4000")];
    assert_eq!(only(&facts, "udp-silent").place.as_deref(), Some("eth0"));
}

#[test]
fn a_nat_that_forgets_before_the_next_heartbeat_is_a_warning() {
    let mut facts = sound();
    let memory = |kept, forgotten: Option<u64>| {
        let of = std::time::Duration::from_secs;
        Some(Memory { kept: of(kept), forgotten: forgotten.map(of) })
    };
    facts.ways[1].memory = memory(4, Some(8));
    assert!(only(&facts, "nat-timeout").sentence.contains("hb_interval=2000ms"));
    for (kept, forgotten, severity) in [(20, Some(40), Severity::Note), (60, None, Severity::Ok)] {
        facts.ways[1].memory = memory(kept, forgotten);
        let found = all(&facts).findings;
        let found = found.iter().find(|f| f.id == "nat-remembers").unwrap();
        assert_eq!(found.severity, severity, "{found:?}");
    }
    (facts.ways[1].memory, facts.is_long) = (None, true);
    assert!(all(&facts).unseen.iter().any(|u| u.what == "how long NATs remember"));
}

#[test]
fn connection_tracking_counts_only_where_it_is_used() {
    let mut facts = sound();
    let set = |facts: &mut Facts, name: &str, value: &str| {
        facts.host.sysctls.insert(format!("net/netfilter/nf_conntrack_{name}"), value.to_owned());
    };
    set(&mut facts, "udp_timeout", "5");
    set(&mut facts, "udp_timeout_stream", "120");
    set(&mut facts, "count", "0");
    assert!(worse_than_notes(&facts).is_empty());
    set(&mut facts, "count", "3");
    let found = only(&facts, "nat-forgets");
    assert_eq!(found.mend, ["sudo sysctl -w net.netfilter.nf_conntrack_udp_timeout=30"]);
}

#[test]
fn ipv6_matters_where_the_destination_has_it() {
    let mut facts = sound();
    for name in ["all", "eth0"] {
        facts.host.sysctls.insert(format!("net/ipv6/conf/{name}/disable_ipv6"), "1".to_owned());
    }
    assert!(worse_than_notes(&facts).is_empty());
    facts.remotes.push("[2001:db8::9]:9899".parse().unwrap());
    let found = worse_than_notes(&facts);
    assert!(found.iter().all(|f| f.id == "ipv6-off"), "{found:?}");
    assert!(found[0].mend.iter().any(|c| c == "sudo sysctl -w net.ipv6.conf.eth0.disable_ipv6=0"));
    facts.host.sysctls.retain(|name, _| !name.contains("disable"));
    assert!(worse_than_notes(&facts).is_empty());
    assert_eq!(all(&facts).findings.iter().filter(|f| f.id == "no-ipv6").count(), 2);
}

#[test]
fn the_clock_goes_by_the_server_in_the_middle() {
    let mut facts = sound();
    let offset = |server: &str, ahead_s| Offset { server: server.to_owned(), ahead_s };
    facts.offsets = vec![offset("a", 9000.0), offset("b", 0.2), offset("c", -0.1)];
    assert!(worse_than_notes(&facts).is_empty());
    facts.offsets = vec![offset("a", 3600.4)];
    let found = only(&facts, "clock-wrong");
    assert!(found.sentence.contains("60 min behind that of a"), "{}", found.sentence);
    assert_eq!(found.mend, ["sudo date -s \"@$(($(date +%s) + 3600))\""]);
    facts.has_timedatectl = true;
    assert_eq!(only(&facts, "clock-wrong").mend, ["sudo timedatectl set-ntp true"]);
    // Without a server at least the program's own age is known.
    (facts.offsets, facts.installed_s, facts.now_s) = (Vec::new(), Some(90_000), 0);
    assert!(only(&facts, "clock-wrong").sentence.contains("25 h"));
}

#[test]
fn addresses_and_rules_that_are_wrong_are_removed() {
    let mut facts = sound();
    let twice = facts.host.link("eth0").unwrap().addresses[0];
    facts.host.links.iter_mut().find(|l| l.name == "eth1").unwrap().addresses.push(twice);
    assert_eq!(only(&facts, "address-twice").mend, ["sudo ip address del 10.1.0.2/24 dev eth1"]);
    let mut facts = sound();
    let mut stale = facts.host.rule_for(ip("10.2.0.2")).unwrap().clone();
    stale.from.as_mut().unwrap().ip = ip("10.9.0.2");
    facts.host.rules.push(stale);
    let found = all(&facts).findings.into_iter().find(|f| f.id == "stale-rule").unwrap();
    assert_eq!(found.mend, ["sudo ip rule del from 10.9.0.2 lookup 102"]);
}

#[test]
fn a_device_without_an_address_is_told_from_a_port_of_a_bridge() {
    let mut facts = sound();
    let link = crate::host::Link {
        name: "eth2".into(),
        is_up: true,
        has_carrier: true,
        is_device: true,
        duplex: Some("full".into()),
        ..Default::default()
    };
    facts.host.links.push(link);
    assert_eq!(only(&facts, "no-address").mend, ["sudo dhclient eth2"]);
    facts.host.links.last_mut().unwrap().master = Some("br0".into());
    assert!(worse_than_notes(&facts).is_empty());
    let eth0 = facts.host.links.iter_mut().find(|l| l.name == "eth0").unwrap();
    eth0.duplex = Some("half".into());
    only(&facts, "half-duplex");
}
