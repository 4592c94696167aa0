//! `manypath paths`: the candidate paths to a host, how good and how disjoint they are, which to
//! use.

mod measure;
mod picture;
mod print;
mod report;

use crate::args::PathsArgs;
use crate::connect::dest::Destination;
use crate::connect::transport;
use crate::connect::via;
use crate::failure::{Failure, Result};
use crate::screen::Screen;
use crate::screen::output;
use crate::settings;

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
    let screen = Screen::new(&args.report);
    let dest = Destination::parse(&args.dest)?.without_code()?;
    dest.warn_of_file(&args.dest, &screen);
    via::warn_of_files(&args.via.via, &screen);
    let remotes = transport::places(&dest.target(dest.resolve().await?.told(&screen)));
    let relays = via::relays(&args.via.via).await?.told(&screen);
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
        output::print(&(json + "\n"))?;
    } else {
        output::print(&print::text(&report))?;
    }
    if report.paths.iter().any(|p| p.selected) {
        return Ok(());
    }
    Err(Failure::no_path("no path answers").hint(
        "check that the receiver is running, its address and port, and any firewall between (UDP \
         must pass)",
    ))
}
