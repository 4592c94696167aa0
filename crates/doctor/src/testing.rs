//! Hosts that were written down, for tests.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::facts::{Facts, Uplink, Way};
use crate::finding::{Finding, Looked};
use crate::host::{Host, Lookup, Prefix, Route, Rule};
use crate::probe::{Behaviour, Mtu, Reach};
use crate::system::{RunError, System};

/// Files and the output of commands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Written {
    files: BTreeMap<String, String>,
    commands: BTreeMap<String, String>,
}

impl System for Written {
    fn read(&self, path: &str) -> io::Result<String> {
        self.files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<String, RunError> {
        let command = format!("{program} {}", arguments.join(" "));
        self.commands.get(&command).cloned().ok_or(RunError::Missing)
    }

    fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }
}

impl Written {
    pub(crate) fn file(&mut self, path: &str, text: &str) {
        self.files.insert(path.to_owned(), text.to_owned());
    }

    pub(crate) fn command(&mut self, command: &str, output: &str) {
        self.commands.insert(command.to_owned(), output.to_owned());
    }

    /// Two uplinks with a table and a rule each, as iproute2 6.1 prints them.
    pub(crate) fn two_uplinks() -> Written {
        let mut system = Written::default();
        let link = |name: &str, index: u32, net: &str| {
            format!(
                r#"{{"ifindex":{index},"ifname":"{name}","flags":["BROADCAST","MULTICAST","UP","LOWER_UP"],"mtu":1500,"operstate":"UP","link_type":"ether","linkinfo":{{"info_kind":"veth"}},"addr_info":[{{"family":"inet","local":"10.{net}.0.2","prefixlen":24,"scope":"global","label":"{name}"}},{{"family":"inet6","local":"fe80::{net}","prefixlen":64,"scope":"link"}}]}}"#
            )
        };
        let lo = r#"{"ifindex":1,"ifname":"lo","flags":["LOOPBACK","UP","LOWER_UP"],"mtu":65536,"link_type":"loopback","addr_info":[{"family":"inet","local":"127.0.0.1","prefixlen":8,"scope":"host"}]}"#;
        system.command(
            "ip -j -d address show",
            &format!("[{lo},{},{}]", link("eth0", 2, "1"), link("eth1", 3, "2")),
        );
        system.command(
            "ip -j -4 route show table all",
            r#"[{"dst":"default","gateway":"10.1.0.1","dev":"eth0","table":"101","flags":[]},
                {"dst":"default","gateway":"10.2.0.1","dev":"eth1","table":"102","flags":[]},
                {"dst":"default","gateway":"10.1.0.1","dev":"eth0","flags":[]},
                {"dst":"10.1.0.0/24","dev":"eth0","protocol":"kernel","scope":"link","prefsrc":"10.1.0.2","flags":[]},
                {"dst":"10.2.0.0/24","dev":"eth1","protocol":"kernel","scope":"link","prefsrc":"10.2.0.2","flags":[]},
                {"type":"local","dst":"10.1.0.2","dev":"eth0","table":"local","flags":[]}]"#,
        );
        system.command("ip -j -6 route show table all", "[]");
        system.command(
            "ip -j -4 rule show",
            r#"[{"priority":0,"src":"all","table":"local"},
                {"priority":101,"src":"10.1.0.2","table":"101"},
                {"priority":102,"src":"10.2.0.2","table":"102"},
                {"priority":32766,"src":"all","table":"main"}]"#,
        );
        system.command("ip -j -6 rule show", "[]");
        for (from, dev, gateway) in
            [("10.1.0.2", "eth0", "10.1.0.1"), ("10.2.0.2", "eth1", "10.2.0.1")]
        {
            system.command(
                &format!("ip -j route get 192.0.2.9 from {from}"),
                &format!(r#"[{{"dst":"192.0.2.9","from":"{from}","gateway":"{gateway}","dev":"{dev}","flags":[],"uid":0,"cache":[]}}]"#),
            );
        }
        system
    }
}

/// Facts of a sound host with two uplinks, to be broken by a test.
pub(crate) fn sound() -> Facts {
    let mut host = Host::look(&Written::two_uplinks());
    host.firewall = Some(crate::host::Ruleset::default());
    for (name, value) in [
        ("net/core/rmem_max", "16777216"),
        ("net/ipv4/conf/all/rp_filter", "0"),
        ("net/ipv4/conf/eth0/rp_filter", "0"),
        ("net/ipv4/conf/eth1/rp_filter", "0"),
    ] {
        host.sysctls.insert(name.to_owned(), value.to_owned());
    }
    for dev in ["eth0", "eth1"] {
        let on = ["generic-receive-offload", "generic-segmentation-offload", "tx-checksumming"];
        host.offloads.insert(dev.to_owned(), on.map(|name| (name.to_owned(), true)).into());
    }
    let remote: SocketAddr = "192.0.2.9:9899".parse().unwrap();
    let uplink = |name: &str, net: u8| Uplink {
        name: name.to_owned(),
        sources: vec![IpAddr::from([10, net, 0, 2])],
        is_named: false,
        port_mapping: None,
    };
    let way = |index: usize, net: u8| Way {
        uplink: index,
        source: IpAddr::from([10, net, 0, 2]),
        remote,
        chosen: Some(Lookup {
            dev: Some(format!("eth{index}")),
            gateway: Some(IpAddr::from([10, net, 0, 1])),
            error: None,
        }),
        by_device: Some(answered()),
        by_address: Some(answered()),
        mtu: Some(Mtu { interface: 1500, path: 1500, was_told: false }),
        sends_batches: Some(true),
        mapped: Vec::new(),
        behaviour: Behaviour::default(),
        memory: None,
    };
    Facts {
        host,
        destination: vec![remote],
        remotes: vec![remote],
        is_probed: true,
        uplinks: vec![uplink("eth0", 1), uplink("eth1", 2)],
        ways: vec![way(0, 1), way(1, 2)],
        ..Facts::default()
    }
}

/// A probe that was answered.
pub(crate) fn answered() -> Reach {
    Reach { sent: 1, rtt: Some(Duration::from_millis(20)), error: None }
}

/// Probes that were not.
pub(crate) fn silent() -> Reach {
    Reach { sent: 4, rtt: None, error: None }
}

/// The findings of all checks that are more than notes.
pub(crate) fn worse_than_notes(facts: &Facts) -> Vec<Finding> {
    let looked = all(facts);
    let bad = |f: &Finding| f.severity > crate::finding::Severity::Note;
    looked.findings.into_iter().filter(bad).collect()
}

/// The results of all checks.
pub(crate) fn all(facts: &Facts) -> Looked {
    let mut looked = Looked::default();
    crate::checks::look(facts, crate::checks::CHECKS, &mut looked);
    looked
}

/// The only finding that is more than a note.
#[track_caller]
pub(crate) fn only(facts: &Facts, id: &str) -> Finding {
    let found = worse_than_notes(facts);
    let ids: Vec<&str> = found.iter().map(|f| f.id).collect();
    assert_eq!(ids, [id], "{found:#?}");
    found.into_iter().next().unwrap()
}

/// A route through a router.
pub(crate) fn default_route(dev: &str, gateway: &str, table: &str) -> Route {
    Route {
        to: Prefix { ip: IpAddr::from([0, 0, 0, 0]), len: 0 },
        gateway: gateway.parse().ok(),
        dev: Some(dev.to_owned()),
        table: table.to_owned(),
        is_unicast: true,
    }
}

/// Forgets the rules for `source`.
pub(crate) fn without_rule(facts: &mut Facts, source: IpAddr) {
    facts.host.rules.retain(|rule: &Rule| rule.from.is_none_or(|from| from.ip != source));
}
