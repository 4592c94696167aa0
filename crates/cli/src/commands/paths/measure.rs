//! Measuring, and what follows from it.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use manypath::measure::{Leg, ProbeOptions, ProbedPath, Prober, Routes, Seen, TraceOptions, route};
use manypath::overlay::{
    Aliases, Candidate, Choice, Route, RouterId, disjoint, select, shared_links,
};
use manypath::{DEFAULT_PORT, Relay, preferred_source};

use super::report::{HopLine, PathLine, Report, Share, SharedLine};
use crate::connect::bind::Bind;
use crate::connect::transport::bind_to;
use crate::failure::{Failure, Result};

/// How long the answer to a probe is waited for.
const WAIT: Duration = Duration::from_secs(1);
/// How long relays may take to be ready.
const RELAY_WAIT: Duration = Duration::from_secs(5);
/// How long relays may take to trace their routes to the destination.
const TRACE_WAIT: Duration = Duration::from_secs(10);

/// The measurements and the rules of the choice.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Probes on each path.
    pub(super) probes: u32,
    /// Time between two on one path.
    pub(super) interval: Duration,
    /// Look for routers.
    pub(super) routes: bool,
    /// The threshold of disjointness.
    pub(super) beta: f64,
    /// Paths at most.
    pub(super) max_paths: usize,
}

/// Measures and chooses.
pub(super) async fn measure(
    plan: &Plan,
    bind: &[Bind],
    relays: Vec<Relay>,
    remotes: &[SocketAddr],
) -> Result<Report> {
    let bind = bind_to(bind);
    let mut prober =
        Prober::bind_with(&bind, &relays).map_err(|e| Failure::failed(e.to_string()))?;
    let options = ProbeOptions {
        count: plan.probes,
        interval: plan.interval,
        wait: WAIT,
        relay_wait: RELAY_WAIT,
        sctp_port: DEFAULT_PORT,
    };
    let paths = prober.probe(remotes, options).await;
    if plan.routes {
        prober.trace_relays(TRACE_WAIT).await;
    }
    let told = prober.relays();
    prober.close().await;
    let mut notes = prober.notes().to_vec();
    let mut routes = Routes::new();
    routes.learn_from(&told);
    for relay in told {
        notes.extend(relay.error.map(|error| format!("relay {}: {error}", relay.name)));
    }
    if plan.routes {
        for path in &paths {
            let leg = first_leg(path, &relays);
            if !routes.knows(leg)
                && let Err(error) = routes.find(leg, TraceOptions::default()).await
            {
                notes.push(format!("no route to {} was found: {error}", leg.1));
            }
        }
        routes.find_aliases().await;
    }
    Ok(report(plan, remotes, &relays, &paths, &routes, notes))
}

/// The part of a path that can be traced from here: to the destination, or to the relay.
fn first_leg(path: &ProbedPath, relays: &[Relay]) -> Leg {
    match path.relay.and_then(|index| relays.get(index)) {
        Some(relay) => {
            let from = preferred_source(relay.address).unwrap_or(path.local.ip());
            (from, relay.address.ip())
        }
        None => (path.local.ip(), path.remote.ip()),
    }
}

/// Everything about a candidate before it is put into words.
struct Measured {
    seen: Vec<Seen>,
    candidate: Candidate,
}

fn report(
    plan: &Plan,
    remotes: &[SocketAddr],
    relays: &[Relay],
    paths: &[ProbedPath],
    routes: &Routes,
    mut notes: Vec<String>,
) -> Report {
    // All of the destination's addresses are one host.
    let host: Vec<IpAddr> = remotes.iter().map(SocketAddr::ip).collect();
    let mut aliases = routes.aliases(&host);
    let measured: Vec<Measured> = paths
        .iter()
        .map(|path| {
            let leg = first_leg(path, relays);
            let rtt = path.probes.rtt_min.unwrap_or_default();
            let seen = routes.hops(leg, path.relay.is_some(), path.remote.ip(), rtt);
            let route = if plan.routes { route(&seen, &mut aliases) } else { Route::default() };
            Measured { seen, candidate: Candidate { score: path.probes.score(), route } }
        })
        .collect();
    let candidates: Vec<Candidate> = measured.iter().map(|m| m.candidate.clone()).collect();
    let choices = select(&candidates, plan.beta, plan.max_paths);
    let lines = (0..paths.len())
        .map(|index| line(index, paths, relays, &measured, &choices, plan, &mut aliases));
    let lines: Vec<PathLine> = lines.collect();
    if plan.routes {
        notes.extend(hidden_halves(relays, paths, routes));
    }
    if !plan.routes {
        notes.push("routers were not traced: all paths count as disjoint".to_owned());
    }
    Report {
        destination: remotes.iter().map(ToString::to_string).collect(),
        beta: plan.beta,
        max_paths: plan.max_paths,
        paths: lines,
        notes,
    }
}

/// A note on the relays that did not tell their route to the destination.
fn hidden_halves(relays: &[Relay], paths: &[ProbedPath], routes: &Routes) -> Option<String> {
    let names: Vec<&str> = paths
        .iter()
        .filter_map(|path| {
            let relay = relays.get(path.relay?)?;
            let is_known = routes.knows_beyond(relay.address.ip(), path.remote.ip());
            (!is_known).then_some(relay.name.as_str())
        })
        .collect();
    let names = names.join(", ");
    (!names.is_empty()).then(|| {
        format!("not visible: the route from {names} to the destination, which counts as one link")
    })
}

fn line(
    index: usize,
    paths: &[ProbedPath],
    relays: &[Relay],
    measured: &[Measured],
    choices: &[Choice],
    plan: &Plan,
    aliases: &mut Aliases,
) -> PathLine {
    let (path, own) = (&paths[index], &measured[index]);
    let hops = own.seen.iter().map(|seen| HopLine {
        address: seen.map(|(ip, _)| ip.to_string()),
        rtt_s: seen.map(|(_, rtt)| rtt.as_secs_f64()),
        router: seen.map(|(ip, _)| aliases.router(ip).0),
    });
    let hops: Vec<HopLine> = hops.collect();
    let names: BTreeMap<u32, String> = hops
        .iter()
        .filter_map(|hop| Some((hop.router?, hop.address.clone()?)))
        .chain([(u32::MAX, "here".to_owned())])
        .collect();
    let name = |router: RouterId| names.get(&router.0).cloned().unwrap_or_default();
    let others = measured.iter().enumerate().filter(|&(other, _)| other != index && plan.routes);
    let shares = others.map(|(other, theirs)| {
        let (x, y) = (&own.candidate.route, &theirs.candidate.route);
        let links = shared_links(x, y).into_iter().map(|link| SharedLine {
            from: name(link.from),
            to: name(link.to),
            latency_s: link.latency.as_secs_f64(),
        });
        Share { with: other + 1, disjoint: disjoint(x, y), links: links.collect() }
    });
    let probes = path.probes;
    PathLine {
        path: index + 1,
        local: path.local.to_string(),
        remote: path.remote.to_string(),
        relay: path.relay.and_then(|r| relays.get(r)).map(|r| r.name.clone()),
        rtt_s: probes.rtt().map(|rtt| rtt.as_secs_f64()),
        rtt_min_s: probes.rtt_min.map(|rtt| rtt.as_secs_f64()),
        probes: probes.sent,
        loss: probes.lost(),
        score: own.candidate.score,
        shares: shares.collect(),
        hops,
        selected: matches!(choices[index], Choice::Selected { .. }),
        why: why(choices[index], plan),
    }
}

fn why(choice: Choice, plan: &Plan) -> String {
    match choice {
        Choice::Selected { rank: 1 } => "the best score".to_owned(),
        Choice::Selected { rank } => format!("rank {rank} by score among the disjoint paths"),
        Choice::Overlaps { with, disjoint } => {
            format!("disjointness from path {} is {disjoint:.2}, not above {}", with + 1, plan.beta)
        }
        Choice::Enough => format!("{} better paths are used already", plan.max_paths),
        Choice::Dead => "no probe was answered".to_owned(),
    }
}

#[cfg(test)]
mod tests;
