//! `manypath lab run --on dask://HOST:PORT`: the Python package makes the runs on a cluster, and
//! this program collects them.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use manypath_lab::experiment::Experiments;
use manypath_lab::lab::{Options, Outcome};
use manypath_lab::shard::{Work, collect};
use serde_json::json;

use super::find::wrong;
use crate::args::lab::RunArgs;
use crate::failure::{Failure, Result};
use crate::runs::RunsBar;

/// The interpreter that has the Python package, if it is not `python3`.
const PYTHON: &str = "MANYPATH_PYTHON";

/// Makes the runs on a cluster, then writes and judges the results.
pub(super) fn run(
    experiments: &Experiments,
    on: &str,
    args: &RunArgs,
    options: &mut Options<'_>,
    bar: &mut RunsBar,
) -> Result<Vec<Outcome>> {
    // Before anything is sent: its errors are those of a run here.
    let work = Work::new(experiments, &args.ids, options).map_err(wrong)?;
    let folder = args.out.join("tasks");
    let path = work.open(&folder).map_err(wrong)?.path;
    let is_built_in = experiments.all().first().is_some_and(|e| e.is_built_in);
    let asked = json!({
        "on": on,
        "ids": args.ids,
        "quick": args.quick,
        "seeds": args.seeds.as_ref().map(|seeds| &seeds.0),
        "experiments": (!is_built_in).then(|| experiments.root()),
        "out": args.out,
    });
    make(&asked.to_string(), bar)?;
    let parts = [path];
    collect(experiments, &parts, options, &mut |_| {}).map_err(wrong)
}

/// Runs the Python package's side; its messages go where this program's do.
fn make(asked: &str, bar: &mut RunsBar) -> Result<()> {
    let python = std::env::var_os(PYTHON).map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let cannot = |error: std::io::Error| missing(&python, &error.to_string());
    let found = Command::new(&python)
        .args(["-c", "import manypath._spread"])
        .stdin(Stdio::null())
        .output()
        .map_err(cannot)?;
    if !found.status.success() {
        let error = String::from_utf8_lossy(&found.stderr);
        return Err(missing(&python, error.lines().last().unwrap_or("it has no manypath")));
    }
    let mut child = Command::new(&python)
        // Run as a module it would have another name, and workers would not find its functions.
        .args(["-c", "import sys; from manypath._spread import main; sys.exit(main())"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(cannot)?;
    if let Some(mut input) = child.stdin.take() {
        // If it ended before, its exit code says so.
        let _ = input.write_all(asked.as_bytes());
    }
    let lines = child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines);
    for line in lines.map_while(std::result::Result::ok) {
        if let Ok((done, planned)) = serde_json::from_str::<(usize, usize)>(&line) {
            bar.set(done, planned, String::new());
        }
    }
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        _ => Err(Failure::failed("the runs are not complete; those that were made are kept")
            .hint("repeat the command to make the others")),
    }
}

fn missing(python: &Path, why: &str) -> Failure {
    Failure::failed(format!("{} cannot spread runs: {why}", python.display())).hint(format!(
        "pip install 'manypath[dask]', or name the interpreter that has it with {PYTHON}"
    ))
}
