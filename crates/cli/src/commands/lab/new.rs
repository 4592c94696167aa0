//! `manypath lab new`.

use std::path::PathBuf;

use manypath_lab::experiment::Experiments;
use manypath_lab::template;
use serde_json::json;

use super::find::wrong;
use crate::args::lab::NewArgs;
use crate::connect::exposed::pasted;
use crate::failure::Result;
use crate::screen::output::print;
use crate::screen::sheet::{columns, wrapped};

/// Makes the folder.
pub(super) fn run(args: &NewArgs) -> Result<()> {
    // A folder that is to be made has none yet.
    let dir = args.experiments.as_deref().filter(|dir| dir.exists());
    let known = Experiments::find(dir).map_err(wrong)?;
    let is_built_in = known.all().first().is_some_and(|experiment| experiment.is_built_in);
    let nearest =
        || if is_built_in { PathBuf::from("experiments") } else { known.root().to_owned() };
    let root = args.experiments.clone().unwrap_or_else(nearest);
    let folder = template::create(&root, &args.group, &args.name, &known).map_err(wrong)?;
    let command = match &args.experiments {
        Some(dir) => format!("manypath lab run {} --experiments {}", args.name, pasted(dir)),
        None => format!("manypath lab run {}", args.name),
    };
    if args.report.json {
        return print(&format!("{}\n", json!({ "folder": folder, "command": command })));
    }
    if args.report.quiet {
        return Ok(());
    }
    let files =
        format!("{}: scenario.toml, claims.toml, figures.toml, README.md", folder.display());
    // The command stays in one line, so that it can be pasted.
    print(&format!("{}\nrun it: {command}\n", wrapped(&files, columns(), 2)))
}
