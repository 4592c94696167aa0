//! Commands are pasted into a shell, whatever an interface is called.

use super::*;
use crate::host::Link;

/// The name of an interface that Linux allows, and that a shell would obey.
const ODD_NAME: &str = "e;$(x)'1";

/// A finding, and the change of a sound host that leads to it.
type Broken<'a> = (&'static str, &'a dyn Fn(&mut Facts));

/// A host like this one, with another name of an interface.
fn renamed(mut facts: Facts, from: &str, to: &str) -> Facts {
    let rename = |name: &mut String| *name = name.replace(from, to);
    facts.host.links.iter_mut().for_each(|link| rename(&mut link.name));
    facts.uplinks.iter_mut().for_each(|uplink| rename(&mut uplink.name));
    facts.host.neighbours.iter_mut().for_each(|neighbour| rename(&mut neighbour.dev));
    let routes = facts.host.routes.iter_mut().flatten();
    routes.filter_map(|route| route.dev.as_mut()).for_each(rename);
    let chosen = facts.ways.iter_mut().filter_map(|way| way.chosen.as_mut());
    chosen.filter_map(|chosen| chosen.dev.as_mut()).for_each(rename);
    let key = |(name, value): (String, _)| (name.replace(from, to), value);
    facts.host.sysctls = facts.host.sysctls.into_iter().map(key).collect();
    facts.host.offloads =
        facts.host.offloads.into_iter().map(|(n, v)| (n.replace(from, to), v)).collect();
    facts
}

#[test]
#[expect(clippy::too_many_lines, reason = "a list of cases")]
fn a_shell_takes_the_name_of_an_interface_as_a_word_in_every_command() {
    let link = |facts: &mut Facts, change: fn(&mut Link)| {
        change(facts.host.links.iter_mut().find(|link| link.name == "eth1").unwrap());
    };
    let off = |facts: &mut Facts, feature: &str| {
        facts.host.offloads.get_mut("eth1").unwrap().insert(feature.to_owned(), false);
    };
    let set = |facts: &mut Facts, name: &str, value: &str| {
        facts.host.sysctls.insert(name.to_owned(), value.to_owned());
    };
    let no_route = |facts: &mut Facts| {
        facts.host.routes.as_mut().unwrap().retain(|route| route.table != "102");
        facts.ways[1].chosen = facts.ways[0].chosen.clone();
        silence(facts, 1);
    };
    let broken: [Broken<'_>; 11] = [
        ("no-route", &no_route),
        ("link-down", &|facts| {
            no_route(facts);
            link(facts, |link| link.is_up = false);
        }),
        ("link-down", &|facts| {
            no_route(facts);
            link(facts, |link| link.is_up = false);
            facts.host.manager = Some("nmcli");
        }),
        ("no-address", &|facts| {
            facts.uplinks.pop();
            facts.ways.pop();
            link(facts, |link| {
                link.addresses.clear();
                (link.is_device, link.has_carrier, link.kind) = (true, true, None);
            });
        }),
        ("half-duplex", &|facts| link(facts, |link| link.duplex = Some("half".to_owned()))),
        ("gro-off", &|facts| off(facts, "generic-receive-offload")),
        ("gso-off", &|facts| off(facts, "generic-segmentation-offload")),
        ("mtu-black-hole", &|facts| {
            facts.ways[1].mtu = Some(Mtu { interface: 1500, path: 1400, was_told: false });
        }),
        ("rp-filter", &|facts| {
            *facts = two_metrics();
            silence(facts, 1);
            set(facts, "net/ipv4/conf/all/rp_filter", "1");
        }),
        ("gateway-silent", &|facts| {
            let routes = facts.host.routes.as_mut().unwrap();
            let own = routes.iter_mut().find(|route| route.table == "102").unwrap();
            own.gateway = Some(ip("10.2.0.77"));
            silence(facts, 1);
            facts.host.neighbours.push(Neighbour {
                ip: ip("10.2.0.77"),
                dev: "eth1".into(),
                hardware: None,
                is_silent: true,
                is_router: false,
            });
        }),
        ("address-twice", &|facts| {
            let addresses =
                facts.host.links.iter().find(|link| link.name == "eth0").unwrap().addresses.clone();
            facts
                .host
                .links
                .iter_mut()
                .find(|link| link.name == "eth1")
                .unwrap()
                .addresses
                .extend(addresses);
        }),
    ];
    for (id, change) in broken {
        let mut facts = sound();
        change(&mut facts);
        let found = all(&renamed(facts, "eth1", ODD_NAME)).findings;
        let found =
            found.iter().find(|f| f.id == id).unwrap_or_else(|| panic!("{id} was not found"));
        let commands: Vec<_> = found.mend.iter().chain(&found.keep).collect();
        assert!(commands.iter().any(|command| command.contains("$(x)")), "{id}: {commands:?}");
        for command in commands {
            let words = shlex::split(command).unwrap_or_else(|| panic!("{id}: {command}"));
            let is_whole = |word: &String| !word.contains("$(x)") || word.contains(ODD_NAME);
            assert!(words.iter().all(is_whole), "{id}: {command}");
        }
    }
}
