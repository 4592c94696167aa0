//! Looking at the host, probing, and asking the checks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use manypath_net::BindTo;

use crate::checks::{self, Check};
use crate::facts::{Facts, Uplink, Way};
use crate::finding::{Looked, Unseen};
use crate::host::Host;
use crate::probe::{self, Behaviour, Offset};
use crate::report::Report;
use crate::system::System;

/// Ways that are probed at most: eight uplinks to an address of each family.
const WAYS_MAX: usize = 32;
/// Where packets to "anywhere" would go, to look routes up without a destination. None is sent.
const EXAMPLES: [SocketAddr; 2] = [
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9899),
    SocketAddr::new(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)), 9899),
];

/// The subjects of an examination.
#[derive(Clone, Default)]
pub struct Options {
    /// The destination's transport addresses; without one only the host is looked at.
    pub remotes: Vec<SocketAddr>,
    /// The uplinks, by interface or address; all that seem to be one, if there are none.
    pub uplinks: Vec<String>,
    /// STUN servers to be asked for our addresses, besides the destination.
    pub stun: Vec<SocketAddr>,
    /// The longest silence after which NATs are asked whether they remember; nothing asks none.
    pub long: Option<Duration>,
    /// Time servers to be asked instead of those that this host is set up with.
    pub time_servers: Vec<String>,
    /// The checks; all, if there are none.
    pub checks: Vec<&'static dyn Check>,
    /// Commands need no sudo.
    pub is_root: bool,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let checks: Vec<&str> = self.checks.iter().map(|check| check.name()).collect();
        f.debug_struct("Options")
            .field("remotes", &self.remotes)
            .field("uplinks", &self.uplinks)
            .field("stun", &self.stun)
            .field("long", &self.long)
            .field("time_servers", &self.time_servers)
            .field("checks", &checks)
            .field("is_root", &self.is_root)
            .finish()
    }
}

/// Looks at this host and at the ways to the destination. Blocks for some seconds.
pub fn examine(system: &dyn System, options: &Options) -> Report {
    let facts = gather(system, options);
    let mut looked = Looked::default();
    for unseen in facts.host.unseen.iter().chain(&facts.unseen) {
        looked.miss(unseen.clone());
    }
    let all = if options.checks.is_empty() { checks::CHECKS } else { &options.checks[..] };
    checks::look(&facts, all, &mut looked);
    if options.is_root {
        looked.findings.iter_mut().for_each(|finding| finding.without_sudo());
    }
    Report::new(&facts, looked)
}

fn gather(system: &dyn System, options: &Options) -> Facts {
    let mut host = Host::look(system);
    let destination = options.remotes.clone();
    let is_own = |ip: IpAddr| ip.is_loopback() || host.link_of(ip).is_some();
    let is_here = destination.iter().any(|remote| is_own(remote.ip()));
    let is_probed = !destination.is_empty() && !is_here;
    let remotes = if is_probed { destination.clone() } else { EXAMPLES.into() };
    let mut missing = Vec::new();
    let uplinks = uplinks(&host, options, &remotes, &mut missing);
    let names: Vec<&str> = uplinks.iter().map(|uplink| uplink.name.as_str()).collect();
    host.look_closer(system, &names);
    let mut facts = Facts {
        ways: ways(&uplinks, &remotes, system),
        destination,
        remotes,
        is_here,
        is_probed,
        stun: options.stun.clone(),
        is_long: options.long.is_some(),
        buffers: manypath_net::granted_buffers().ok(),
        now_s: probe::now() as i64,
        installed_s: installed(),
        has_timedatectl: system.has("/run/systemd/system") && system.has("/usr/bin/timedatectl"),
        uplinks,
        missing,
        host,
        ..Facts::default()
    };
    let times = if options.time_servers.is_empty() {
        facts.host.time_servers.clone()
    } else {
        options.time_servers.clone()
    };
    let offsets = thread::scope(|scope| {
        let asked: Vec<_> =
            times.iter().map(|server| scope.spawn(move || ask_time(server))).collect();
        probe_all(&mut facts, options.long, scope);
        map_ports(&mut facts);
        let offsets = asked.into_iter().filter_map(|a| a.join().ok().flatten());
        offsets.collect::<Vec<Offset>>()
    });
    if offsets.is_empty() {
        let why = if times.is_empty() {
            "this host is set up with no time server that is known".to_owned()
        } else {
            format!("no time server answers ({})", times.join(", "))
        };
        facts.unseen.push(
            Unseen::new("clock", why)
                .mend("manypath doctor --only clock --time-server pool.ntp.org"),
        );
    }
    facts.offsets = offsets;
    facts.host.look_again(system);
    facts
}

/// Asks a time server on a thread that is left behind if it takes too long: names may be looked up
/// for a long time.
fn ask_time(server: &str) -> Option<Offset> {
    let (name, (tell, told)) = (server.to_owned(), std::sync::mpsc::channel());
    thread::spawn(move || {
        let _ = tell.send(probe::offset(&name));
    });
    told.recv_timeout(Duration::from_millis(2500)).ok().flatten()
}

/// The uplinks that the user names, or all that seem to be one.
fn uplinks(
    host: &Host,
    options: &Options,
    remotes: &[SocketAddr],
    missing: &mut Vec<String>,
) -> Vec<Uplink> {
    let to: Vec<IpAddr> = remotes.iter().map(SocketAddr::ip).collect();
    let first = |link: &crate::host::Link| {
        let of = |v6: bool| {
            let mut all = link.usable().map(|a| a.prefix.ip).filter(|ip| ip.is_ipv6() == v6);
            all.next()
        };
        [of(false), of(true)].into_iter().flatten().collect::<Vec<IpAddr>>()
    };
    if options.uplinks.is_empty() {
        let candidates = host.links.iter().filter(|link| host.may_be_uplink(link, &to));
        let uplink = |link: &crate::host::Link| Uplink {
            name: link.name.clone(),
            sources: first(link),
            is_named: false,
            port_mapping: None,
        };
        return candidates.map(uplink).collect();
    }
    let mut found: Vec<Uplink> = Vec::new();
    for place in &options.uplinks {
        let (link, address) = match place.parse() {
            Ok(BindTo::Address(ip)) => (host.link_of(ip), Some(ip)),
            _ => (host.link(place), None),
        };
        let Some(link) = link else {
            missing.push(place.clone());
            continue;
        };
        let sources = address.map_or_else(|| first(link), |ip| vec![ip]);
        match found.iter_mut().find(|uplink| uplink.name == link.name) {
            Some(known) => known.sources.extend(sources),
            None => {
                let (name, port_mapping) = (link.name.clone(), None);
                found.push(Uplink { name, sources, is_named: true, port_mapping });
            }
        }
    }
    found
}

fn ways(uplinks: &[Uplink], remotes: &[SocketAddr], system: &dyn System) -> Vec<Way> {
    let mut ways = Vec::new();
    for (index, uplink) in uplinks.iter().enumerate() {
        for &source in &uplink.sources {
            for &remote in remotes.iter().filter(|r| r.is_ipv6() == source.is_ipv6()) {
                if ways.len() == WAYS_MAX {
                    return ways;
                }
                ways.push(Way {
                    uplink: index,
                    source,
                    remote,
                    chosen: Host::look_up(system, remote.ip(), Some(source)),
                    by_device: None,
                    by_address: None,
                    mtu: None,
                    sends_batches: None,
                    mapped: Vec::new(),
                    behaviour: Behaviour::default(),
                    memory: None,
                });
            }
        }
    }
    ways
}

/// Probes all ways at once.
fn probe_all<'s>(facts: &mut Facts, long: Option<Duration>, scope: &'s thread::Scope<'s, '_>) {
    if !facts.is_probed && facts.stun.is_empty() {
        return;
    }
    let (host, is_probed) = (&facts.host, facts.is_probed);
    let jobs: Vec<_> = facts
        .ways
        .iter()
        .map(|way| {
            let name = facts.uplinks[way.uplink].name.clone();
            let link = host.link(&name);
            let is_up = link.is_some_and(|link| link.is_up && link.has_carrier);
            let mtu = link.map_or(0, |link| link.mtu);
            let (way, stun) = (way.clone(), facts.stun.clone());
            scope.spawn(move || {
                let (mut way, mut unseen) = (way, None);
                if is_up && is_probed {
                    unseen = probe_one(&mut way, &name, mtu);
                }
                if is_up {
                    ask_stun(&mut way, &name, &stun, long);
                }
                (way, unseen)
            })
        })
        .collect();
    for (index, job) in jobs.into_iter().enumerate() {
        let seen = match job.join() {
            Ok((way, unseen)) => {
                facts.ways[index] = way;
                unseen
            }
            Err(_) => {
                Some(Unseen::new("a path", "its probes ended early, which is an error of manypath"))
            }
        };
        facts.unseen.extend(seen);
    }
    facts.unseen.dedup();
}

/// Probes the destination on a way.
fn probe_one(way: &mut Way, name: &str, mtu: usize) -> Option<Unseen> {
    let (source, remote) = (way.source, way.remote);
    let mut unseen = None;
    thread::scope(|scope| {
        let by_address = scope.spawn(move || probe::reach(source, None, remote));
        match probe::reach(source, Some(name), remote) {
            Ok(reach) => way.by_device = Some(reach),
            Err(error) => {
                let why = if cfg!(target_os = "linux") {
                    format!("a socket could not be kept to {name} ({error})")
                } else {
                    "sockets are kept to an interface on Linux only".to_owned()
                };
                unseen = Some(Unseen::new("interfaces one by one", why));
            }
        }
        way.by_address = by_address.join().ok().and_then(Result::ok);
    });
    let device = way.by_device.is_some().then_some(name);
    if let Some(rtt) = way.reach().and_then(|reach| reach.rtt) {
        way.mtu = probe::search(source, device, remote, mtu, rtt);
        way.sends_batches = probe::sends_batches(source, device, remote);
    }
    unseen
}

/// Asks STUN servers about a way.
fn ask_stun(way: &mut Way, name: &str, stun: &[SocketAddr], long: Option<Duration>) {
    let (source, remote) = (way.source, way.remote);
    // Of destinations only a relay answers; others are not waited for.
    let itself = [remote];
    let servers = match (stun.is_empty(), remote.port() == STUN_PORT) {
        (true, true) => &itself[..],
        _ => stun,
    };
    if servers.is_empty() {
        return;
    }
    let device = probe::open(source, Some(name)).is_ok().then_some(name);
    way.mapped = probe::mapped(source, device, servers);
    let Some(first) = way.mapped.first().map(|mapped| mapped.server) else { return };
    // In the order of the user, not of the answers.
    let answers = |server: &&SocketAddr| way.mapped.iter().any(|m| m.server == **server);
    let answering: Vec<SocketAddr> = servers.iter().filter(answers).copied().collect();
    thread::scope(|scope| {
        let behaviour = scope.spawn(|| probe::behaviour(source, device, &answering));
        way.memory = long.and_then(|long| probe::memory(source, device, first, long));
        way.behaviour = behaviour.join().unwrap_or_default();
    });
}

/// Asks the router of each uplink that is behind a NAT for a mapping, and deletes it again.
fn map_ports(facts: &mut Facts) {
    let mut wanted = Vec::new();
    for uplink in 0..facts.uplinks.len() {
        let translated = facts.ways_of(uplink).find_map(|way| {
            let mapped = way.mapped.iter().find(|m| m.local != m.seen)?;
            Some((way.source, mapped.server.ip()))
        });
        let Some((source, server)) = translated else { continue };
        match manypath_net::gateway_of(source, server) {
            Ok(Some(gateway)) => wanted.push((uplink, source, gateway)),
            Ok(None) => {}
            Err(error) => {
                let why = format!("the router that packets leave through is not known ({error})");
                facts.unseen.push(Unseen::new("port mapping", why));
            }
        }
    }
    let found: Vec<_> = thread::scope(|scope| {
        let ask = |(uplink, source, gateway)| {
            let asking = scope.spawn(move || probe::port_mapping(source, gateway));
            (uplink, asking)
        };
        let asking: Vec<_> = wanted.into_iter().map(ask).collect();
        asking.into_iter().map(|(uplink, job)| (uplink, job.join().ok().flatten())).collect()
    });
    for (uplink, state) in found {
        facts.uplinks[uplink].port_mapping = state;
    }
}

/// The UDP port of STUN and TURN.
const STUN_PORT: u16 = 3478;

/// The time at which this program was installed.
fn installed() -> Option<i64> {
    let file = std::fs::metadata(std::env::current_exe().ok()?).ok()?;
    let since = file.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sound;

    #[test]
    fn uplinks_are_named_by_interface_or_address_in_any_form() {
        let host = sound().host;
        for place in ["eth0", "10.1.0.2", "::ffff:10.1.0.2", "[::ffff:10.1.0.2]"] {
            let options = Options { uplinks: vec![place.to_owned()], ..Options::default() };
            let mut missing = Vec::new();
            let found = uplinks(&host, &options, &[], &mut missing);
            assert_eq!((found.len(), missing), (1, Vec::new()), "{place}");
            let uplink = (found[0].name.as_str(), &found[0].sources[..]);
            assert_eq!(uplink, ("eth0", &[IpAddr::from([10, 1, 0, 2])][..]), "{place}");
        }
    }
}
