//! Figures in the terminal: `manypath lab show`, and after `manypath lab run`.

use std::io::IsTerminal;
use std::path::Path;

use console::Term;
use manypath_lab::experiment::Experiment;
use manypath_lab::report::{Style, TextFigure, text};

use super::find::{find, wrong};
use crate::args::lab::ShowArgs;
use crate::connect::exposed::pasted;
use crate::failure::{Failure, Result};
use crate::screen::output::print;

/// Most figures after a run; more would push its verdicts out of sight.
const MOST_AFTER_RUN: usize = 2;

/// Columns where there is no terminal.
const COLUMNS: u16 = 100;

/// Prints the figures of these experiments.
pub(super) fn show(args: &ShowArgs) -> Result<()> {
    let experiments = find(&args.experiments)?;
    let selected = experiments.select(&args.ids).map_err(wrong)?;
    let figures = text(&selected, &args.out, style()).map_err(wrong)?;
    if figures.is_empty() {
        let what = format!("{} has no figure of these experiments", args.out.display());
        let command =
            format!("manypath lab run {} --out {}", args.ids.join(" "), pasted(&args.out));
        return Err(Failure::failed(what).hint(format!("run them first: {command}")));
    }
    print(&joined(&figures))
}

/// Prints the figures of experiments that just ran, if a person looks on and they are few.
pub(super) fn show_some(selected: &[&Experiment], out: &Path) -> Result<()> {
    if !std::io::stdout().is_terminal() {
        return Ok(());
    }
    let figures = text(selected, out, style()).map_err(wrong)?;
    if figures.len() <= MOST_AFTER_RUN {
        return print(&joined(&figures));
    }
    print(&format!(
        "{} figures: manypath lab show ID, or manypath lab report --results {}\n",
        figures.len(),
        pasted(out)
    ))
}

fn joined(figures: &[TextFigure]) -> String {
    let texts: Vec<_> = figures.iter().map(|figure| figure.text.as_str()).collect();
    texts.join("\n")
}

fn style() -> Style {
    let size = Term::stdout().size_checked();
    Style {
        columns: size.map_or(COLUMNS, |(_, columns)| columns),
        colours: console::colors_enabled(),
    }
}
