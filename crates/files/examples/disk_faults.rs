//! Transfers onto a disk that fails, fills, lies and loses power, run by run, each from its seed.
//!
//! ```text
//! cargo run --profile checks -p manypath-files --features testing \
//!     --example disk_faults -- --runs 10000
//! cargo run --profile checks -p manypath-files --features testing \
//!     --example disk_faults -- --seed 4711 --runs 1
//! ```
//!
//! A failing run is named with its seed; the exit code is 1 then.

use std::error::Error;
use std::process::ExitCode;

use manypath_files::testing::{Outcomes, run};

/// Failures after which no more runs begin.
const ENOUGH_FAILURES: usize = 5;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let (mut seed, mut runs) = (1u64, 1000u64);
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
        let field = match name.as_str() {
            "--seed" => &mut seed,
            "--runs" => &mut runs,
            _ => return Err(format!("{name}: give --seed or --runs with a number").into()),
        };
        *field = value.parse().map_err(|error| format!("{name} {value}: {error}"))?;
    }
    let (mut all, mut failures) = (Outcomes::default(), 0);
    for seed in seed..seed.saturating_add(runs) {
        match run(seed) {
            Ok(outcomes) => all.add(&outcomes),
            Err(why) => {
                println!("seed {seed}: {why}");
                failures += 1;
            }
        }
        if failures == ENOUGH_FAILURES {
            break;
        }
    }
    let Outcomes { runs, kills, power_losses, stored, refused, cleaned, resumed, .. } = all;
    println!(
        "{runs} runs hold: {kills} receivers killed, {power_losses} losses of power, {} operations, {stored} \
         entries stored and {refused} refused before; {cleaned} unfinished files removed at the next start, {resumed} bytes of others gone on from; {} disks whose lies cost a file",
        all.operations, all.lies_that_cost
    );
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
