use super::firewall::{Ruleset, Trial, Verdict};
use super::*;
use crate::testing::Written;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn prefix(text: &str) -> Prefix {
    let (ip, len) = text.split_once('/').unwrap();
    Prefix { ip: ip.parse().unwrap(), len: len.parse().unwrap() }
}

#[test]
fn networks_contain_their_addresses_and_have_a_first_host() {
    assert!(prefix("10.1.2.3/24").contains(ip("10.1.2.250")));
    assert!(!prefix("10.1.2.3/24").contains(ip("10.1.3.3")));
    assert!(prefix("0.0.0.0/0").contains(ip("192.0.2.1")));
    assert!(!prefix("0.0.0.0/0").contains(ip("::1")));
    assert!(prefix("::/0").contains(ip("2001:db8::1")));
    for (of, network, first) in [
        ("10.1.2.3/24", "10.1.2.0/24", "10.1.2.1"),
        ("10.1.2.7/31", "10.1.2.6/31", "10.1.2.6"),
        ("10.1.2.6/31", "10.1.2.6/31", "10.1.2.7"),
        ("2001:db8::77/64", "2001:db8::/64", "2001:db8::1"),
    ] {
        assert_eq!(prefix(of).network(), prefix(network));
        assert_eq!(prefix(of).first_host(), ip(first), "{of}");
    }
}

#[test]
fn what_ip_prints_is_read() {
    let system = Written::two_uplinks();
    let host = Host::look(&system);
    let names: Vec<&str> = host.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names, ["lo", "eth0", "eth1"]);
    let eth1 = host.link("eth1").unwrap();
    assert!(eth1.is_up && eth1.has_carrier && !eth1.is_loopback && !eth1.is_tunnel());
    assert_eq!((eth1.index, eth1.mtu), (3, 1500));
    assert_eq!(eth1.usable().next().unwrap().prefix, prefix("10.2.0.2/24"));
    assert_eq!(host.rule_for(ip("10.2.0.2")).unwrap().table.as_deref(), Some("102"));
    assert!(host.rule_for(ip("10.9.0.2")).is_none());
    let to = ip("192.0.2.9");
    let gateways = host.routes_through("eth1", ip("10.2.0.2"), to).map(|r| r.gateway);
    assert_eq!(gateways.collect::<Vec<_>>(), [Some(ip("10.2.0.1"))]);
    // The table is for the other source only.
    assert_eq!(host.routes_through("eth1", ip("10.1.0.2"), to).count(), 0);
    let found = Host::look_up(&system, to, Some(ip("10.2.0.2"))).unwrap();
    assert_eq!(found.dev.as_deref(), Some("eth1"));
}

#[test]
fn without_the_command_ip_that_is_said() {
    let host = Host::look(&Written::default());
    assert_eq!(host.routes, None);
    assert!(host.unseen[0].what.contains("routes"), "{:?}", host.unseen);
}

#[test]
fn features_are_read_with_and_without_their_remarks() {
    let text = "Features for eth0:\nrx-checksumming: on\n\ttx-checksum-ipv4: off [fixed]\n\
                generic-receive-offload: off\n";
    let found = parse::offloads(text);
    assert_eq!(found.get("rx-checksumming"), Some(&true));
    assert_eq!(found.get("tx-checksum-ipv4"), Some(&false));
    assert_eq!(found.get("generic-receive-offload"), Some(&false));
}

#[test]
fn time_servers_are_found_in_the_files_of_three_programs() {
    let mut system = Written::default();
    system.file("/etc/systemd/timesyncd.conf", "[Time]\n#NTP=no\nNTP=a.example b.example\n");
    system
        .file("/etc/chrony/chrony.conf", "# server no\npool c.example iburst\nserver d.example\n");
    assert_eq!(parse::time_servers(&system), ["a.example", "b.example", "c.example"]);
}

#[test]
fn nonsense_of_commands_is_no_facts() {
    for text in ["", "null", "[]", "[{}]", "[1,[]]", "{\"a\":1}", "[{\"dst\":\"x/y\"}]"] {
        assert!(parse::links(text).is_empty() && parse::neighbours(text).is_empty(), "{text}");
        assert!(parse::routes(text, false).is_empty() && parse::rules(text, true).is_empty());
        assert_eq!(parse::lookup(text), Lookup::default());
        assert!(Ruleset::parse(text).is_none_or(|rules| rules.is_empty()));
    }
}

fn trial(arrives: bool) -> Trial<'static> {
    let (local, remote) = (ip("10.2.0.2"), ip("192.0.2.9"));
    Trial { arrives, dev: "eth1", local, remote, port: 9899 }
}

fn rules(chains_and_rules: &str) -> Ruleset {
    Ruleset::parse(&format!("{{\"nftables\":[{chains_and_rules}]}}")).unwrap()
}

fn chain(name: &str, hook: &str, policy: &str) -> String {
    format!(
        r#"{{"chain":{{"family":"inet","table":"f","name":"{name}","type":"filter","hook":"{hook}","prio":0,"policy":"{policy}"}}}}"#
    )
}

fn rule(chain: &str, expressions: &str) -> String {
    format!(
        r#",{{"rule":{{"family":"inet","table":"f","chain":"{chain}","expr":[{expressions}]}}}}"#
    )
}

const ESTABLISHED: &str = r#"{"match":{"op":"in","left":{"ct":{"key":"state"}},"right":["established","related"]}},{"accept":null}"#;
const UDP: &str = r#"{"match":{"op":"==","left":{"meta":{"key":"l4proto"}},"right":"udp"}}"#;

#[test]
fn a_policy_that_drops_is_found_unless_answers_are_accepted() {
    let drops = Verdict::Drops { chain: "inet f in".to_owned() };
    assert_eq!(rules(&chain("in", "input", "drop")).decide(&trial(true)), drops);
    assert_eq!(rules(&chain("in", "input", "drop")).decide(&trial(false)), Verdict::Passes);
    assert_eq!(rules(&chain("in", "input", "accept")).decide(&trial(true)), Verdict::Passes);
    let with = chain("in", "input", "drop") + &rule("in", ESTABLISHED);
    assert_eq!(rules(&with).decide(&trial(true)), Verdict::Passes);
    let map = r#"{"vmap":{"key":{"ct":{"key":"state"}},"data":{"set":[["invalid",{"drop":null}],["established",{"accept":null}]]}}}"#;
    let with = chain("in", "input", "drop") + &rule("in", map);
    assert_eq!(rules(&with).decide(&trial(true)), Verdict::Passes);
}

#[test]
fn rules_are_tried_in_order_with_what_they_ask_for() {
    let ports = |right: &str| {
        let left = r#"{"payload":{"protocol":"udp","field":"dport"}}"#;
        format!(r#"{{"match":{{"op":"==","left":{left},"right":{right}}}}},{{"drop":null}}"#)
    };
    for (expressions, drops) in [
        (format!("{UDP},{{\"counter\":{{}}}},{{\"drop\":null}}"), true),
        (ports("9899"), true),
        (ports("53"), false),
        (ports(r#"{"set":[53,{"range":[9000,9999]}]}"#), true),
        (r#"{"match":{"op":"==","left":{"meta":{"key":"oifname"}},"right":"eth0"}},{"drop":null}"#.to_owned(), false),
        (r#"{"match":{"op":"!=","left":{"meta":{"key":"oifname"}},"right":"eth0"}},{"reject":null}"#.to_owned(), true),
        (r#"{"match":{"op":"==","left":{"payload":{"protocol":"ip","field":"daddr"}},"right":{"prefix":{"addr":"192.0.2.0","len":24}}}},{"drop":null}"#.to_owned(), true),
        (r#"{"match":{"op":"==","left":{"socket":{"key":"mark"}},"right":1}},{"drop":null}"#.to_owned(), false),
        (r#"{"jump":{"target":"other"}}"#.to_owned(), true),
    ] {
        let text = chain("out", "output", "accept")
            + r#",{"chain":{"family":"inet","table":"f","name":"other"}}"#
            + &rule("other", &format!("{UDP},{{\"drop\":null}}"))
            + &rule("out", &expressions);
        let verdict = rules(&text).decide(&trial(false));
        assert_eq!(verdict != Verdict::Passes, drops, "{expressions}");
    }
}
