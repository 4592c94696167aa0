//! Random operations on two engines, run by run, each from its seed.
//!
//! ```text
//! cargo run --release -p manypath-sim --example random_ops -- --runs 10000 --jobs 2
//! cargo run --release -p manypath-sim --example random_ops -- --seed 4711 --runs 1
//! cargo run --release -p manypath-sim --example random_ops -- --family combined --runs 10000
//! ```
//!
//! `--transitions FILE` writes the transitions of all associations to a file, a line each: state,
//! cause, tag of the packet, next state, change of the tags, number. `tests/model` compares them
//! with the model.
//!
//! A failing run is shrunk and printed as a plan; the exit code is 1 then.

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use manypath_sim::Transitions;
use manypath_sim::testing::{Failure, Family, Plan, catch_panics};

/// Failures after which no more runs begin.
const ENOUGH_FAILURES: usize = 5;

struct Options {
    family: Family,
    seed: u64,
    runs: u64,
    jobs: u64,
    /// File for the transitions of all runs.
    transitions: Option<PathBuf>,
}

impl Options {
    fn plan(&self, seed: u64) -> Plan {
        Plan::of_family(self.family, seed)
    }
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut options =
        Options { family: Family::Plain, seed: 1, runs: 1000, jobs: 1, transitions: None };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
        let field = match name.as_str() {
            "--family" => {
                let known = Family::ALL.iter().find(|(name, _)| *name == value);
                let names = || Family::ALL.map(|(name, _)| name).join(", ");
                options.family = known.ok_or_else(|| format!("--family is one of {}", names()))?.1;
                continue;
            }
            "--transitions" => {
                options.transitions = Some(value.into());
                continue;
            }
            "--seed" => &mut options.seed,
            "--runs" => &mut options.runs,
            "--jobs" => &mut options.jobs,
            _ => {
                return Err(format!(
                    "{name}: give --family with a name, --transitions with a file, or --seed, --runs or --jobs with a number"
                )
                .into());
            }
        };
        *field = value.parse().map_err(|error| format!("{name} {value}: {error}"))?;
    }
    Ok(options)
}

fn lines(transitions: &Transitions) -> String {
    transitions.iter().fold(String::new(), |mut text, (transition, count)| {
        let _ = writeln!(text, "{transition},{count}"); // Writing to a String does not fail.
        text
    })
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let options = options()?;
    let last = options.seed.wrapping_add(options.runs.saturating_sub(1));
    println!("seeds {} to {last}", options.seed);
    catch_panics();
    let next = AtomicU64::new(0);
    let steps = AtomicU64::new(0);
    let transitions = Mutex::new(Transitions::default());
    let failures: Vec<Failure> = std::thread::scope(|scope| {
        let job = || {
            let mut failures = Vec::new();
            let mut seen = Transitions::default();
            loop {
                let run = next.fetch_add(1, Ordering::Relaxed);
                if run >= options.runs || failures.len() >= ENOUGH_FAILURES {
                    transitions.lock().expect("jobs do not panic").merge(&seen);
                    return failures;
                }
                match options.plan(options.seed.wrapping_add(run)).run() {
                    Ok(outcome) => {
                        steps.fetch_add(outcome.steps, Ordering::Relaxed);
                        seen.merge(&outcome.transitions);
                    }
                    Err(failure) => failures.push(failure),
                }
            }
        };
        let jobs: Vec<_> = (0..options.jobs.max(1)).map(|_| scope.spawn(job)).collect();
        jobs.into_iter().flat_map(|job| job.join().expect("plans catch panics")).collect()
    });
    let steps = steps.into_inner();
    println!("{} runs, {steps} steps, {} failures", options.runs, failures.len());
    if let Some(path) = &options.transitions {
        std::fs::write(path, lines(&transitions.into_inner().expect("jobs do not panic")))?;
    }
    for failure in &failures {
        let least = options.plan(failure.seed).shrink();
        println!("\n{failure}\nshrunk to {least:#?}\nwhich gives: {:?}", least.run());
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
