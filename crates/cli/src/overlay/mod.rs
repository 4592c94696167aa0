//! `manypath paths`: the candidate paths to a host, how good and how disjoint they are, which to
//! use.

mod measure;
mod picture;
mod print;

use serde::Serialize;

use crate::args::PathsArgs;
use crate::dest::Destination;
use crate::failure::{Failure, Result};
use crate::progress::Screen;
use crate::{settings, show, via};

/// The report about the candidates. The keys are a public contract.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Report {
    /// The destination's transport addresses.
    destination: Vec<String>,
    /// A path is used only if its disjointness from every better one that is used is above this.
    beta: f64,
    /// Paths that are used, at most.
    max_paths: usize,
    /// The candidates: direct ones, then those through relays.
    paths: Vec<PathLine>,
    /// Missing measurements and errors.
    notes: Vec<String>,
}

/// A candidate.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct PathLine {
    /// Its number, from 1.
    path: usize,
    /// Our transport address.
    local: String,
    /// The destination's.
    remote: String,
    /// The relay's name; null for a direct path.
    relay: Option<String>,
    /// Mean round-trip time.
    rtt_s: Option<f64>,
    /// Shortest round-trip time.
    rtt_min_s: Option<f64>,
    /// Probes sent.
    probes: u32,
    /// Share of them that was not answered.
    loss: f64,
    /// Packets a second: sqrt(1.5) / (rtt sqrt(p)), with p = (lost + 1/2) / (probes + 1).
    score: f64,
    /// The routers from here on that were seen, then the relay if there is one, and the
    /// destination.
    hops: Vec<HopLine>,
    /// The parts shared with each other candidate.
    shares: Vec<Share>,
    /// It is to be used.
    selected: bool,
    /// Why, or why not, in words.
    why: String,
}

/// A router, a relay or the destination.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct HopLine {
    /// The address it answered from; null if it did not.
    address: Option<String>,
    /// Round-trip time to it.
    rtt_s: Option<f64>,
    /// Number of the router: the same for all of its addresses that are known to be its.
    router: Option<u32>,
}

/// The links that two candidates share.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Share {
    /// The number of the other one.
    with: usize,
    /// 1 - latency of the shared links / latency of the shorter path.
    disjoint: f64,
    /// The shared links.
    links: Vec<SharedLine>,
}

/// A link of two paths.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct SharedLine {
    /// An address of where it begins.
    from: String,
    /// An address of where it ends.
    to: String,
    /// One-way latency, from round-trip times.
    latency_s: f64,
}

/// `manypath paths`.
pub(crate) async fn run(args: PathsArgs) -> Result<()> {
    let plan = measure::Plan {
        probes: args.probes,
        interval: settings::duration("--interval", &args.interval)?,
        routes: !args.no_routes,
        beta: settings::ratio("--beta", &args.beta)?,
        max_paths: args.max_paths,
    };
    if !(1..=1000).contains(&plan.probes) {
        return Err(Failure::usage("--probes: not from 1 to 1000"));
    }
    let remotes = Destination::parse(&args.dest)?.resolve().await?;
    let relays = via::relays(&args.via).await?;
    let screen = Screen::new(&args.report);
    let seconds = f64::from(plan.probes) * plan.interval.as_secs_f64();
    screen.line(&format!("Probing for {seconds:.0} s, then tracing routers ..."));
    let report = measure::measure(&plan, &args.bind.bind, relays, &remotes).await?;
    if let Some(file) = &args.svg {
        std::fs::write(file, picture::svg(&report))
            .map_err(|e| Failure::failed(format!("cannot write {}: {e}", file.display())))?;
    }
    if args.report.json {
        // Plain numbers, strings and lists: this cannot fail.
        let json = serde_json::to_string(&report).unwrap_or_default();
        show::print(&(json + "\n"))?;
    } else {
        show::print(&print::text(&report))?;
    }
    if report.paths.iter().any(|p| p.selected) {
        return Ok(());
    }
    Err(Failure::no_path("no path answers").hint(
        "check that the receiver is running, its address and port, and any firewall between (UDP \
         must pass)",
    ))
}
