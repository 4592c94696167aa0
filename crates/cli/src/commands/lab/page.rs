//! `manypath lab report`.

use manypath_lab::report::{Options, write};
use serde_json::json;

use super::find::{find, wrong};
use crate::args::lab::PageArgs;
use crate::failure::Result;
use crate::screen::output::print;

/// Writes the page, and the pictures if asked.
pub(super) fn run(args: &PageArgs) -> Result<()> {
    let experiments = find(&args.experiments)?;
    let options = Options {
        results: args.results.clone(),
        out: args.out.clone(),
        figures: args.figures.clone(),
        claims: args.claims.clone(),
    };
    let written = write(experiments.all(), &options).map_err(wrong)?;
    if args.report.json {
        let object = json!({
            "page": args.out,
            "bytes": written.bytes,
            "experiments": written.experiments,
            "figures": written.figures,
            "pictures": written.pictures,
        });
        return print(&format!("{object}\n"));
    }
    if args.report.quiet {
        return Ok(());
    }
    let of = experiments.all().len();
    let mut text = format!(
        "{}: {} of {of} experiments, {} figures\n",
        args.out.display(),
        written.experiments,
        written.figures
    );
    if let Some(folder) = &args.figures {
        text += &format!("{}: {} pictures\n", folder.display(), written.pictures);
    }
    if let Some(file) = &args.claims {
        text += &format!("{}: the claims\n", file.display());
    }
    print(&text)
}
