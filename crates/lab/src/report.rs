//! The report: one page, and one picture a figure, made from the files that a run of the laboratory
//! wrote.
//!
//! [`write()`] reads the results and each experiment's `figures.toml`, and writes one HTML file
//! that needs no network, and if asked an SVG and a PNG file for each figure. [`text()`] draws the
//! figures for a terminal.

mod chapter;
mod figure;
mod list;
mod page;
mod palette;
mod parts;
mod picture;
mod results;
mod scale;
mod series;
mod spec;
mod sweep;
#[cfg(test)]
mod tests;
mod text;
mod value;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use chapter::Chapter;
use figure::{Figure, Wrong};
use palette::Palette;
use results::Results;
use spec::{FigureSpec, Kind};
pub use text::Style;

use crate::error::LabError;
use crate::experiment::{Experiment, read as read_text};
use crate::results::{About, load_runs_of};

/// Where to read and write.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder that runs were written to.
    pub results: PathBuf,
    /// The page to write.
    pub out: PathBuf,
    /// The folder for SVG and PNG files; none are drawn without it.
    pub figures: Option<PathBuf>,
    /// The list of claims to write, as Markdown; none is written without it.
    pub claims: Option<PathBuf>,
}

/// The files written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Experiments with results.
    pub experiments: usize,
    /// Figures on the page.
    pub figures: usize,
    /// SVG and PNG files.
    pub pictures: usize,
    /// Size of the page, in bytes.
    pub bytes: usize,
}

/// Writes the report of those of these experiments that have results, in their order.
pub fn write(experiments: &[Experiment], options: &Options) -> Result<Written, LabError> {
    let mut chapters = read(experiments, &options.results)?;
    chapters.retain(|chapter| chapter.results.is_some());
    let page = page::render(&chapters, experiments.len());
    save(&options.out, page.as_bytes())?;
    if let Some(file) = &options.claims {
        save(file, list::render(&chapters).as_bytes())?;
    }
    let figures = || chapters.iter().flat_map(|c| &c.figures);
    let mut pictures = 0;
    if let Some(folder) = &options.figures {
        for figure in figures() {
            pictures += draw(figure, folder)?;
        }
    }
    Ok(Written {
        experiments: chapters.len(),
        figures: figures().count(),
        pictures,
        bytes: page.len(),
    })
}

/// A figure as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFigure {
    /// The figure's name.
    pub id: String,
    /// Its lines: title, plot, names.
    pub text: String,
}

/// The figures of these experiments as text, from the results in a folder; none of an experiment
/// that has not been run.
///
/// # Errors
///
/// If a file cannot be read or is wrong.
pub fn text(
    experiments: &[&Experiment],
    results: &Path,
    style: Style,
) -> Result<Vec<TextFigure>, LabError> {
    let mut palette = Palette::default();
    let mut figures = Vec::new();
    for entry in experiments {
        for figure in chapter(entry, results, &mut palette)?.figures {
            let text = text::draw(&figure, style);
            figures.push(TextFigure { id: figure.id, text });
        }
    }
    Ok(figures)
}

fn read(experiments: &[Experiment], results: &Path) -> Result<Vec<Chapter>, LabError> {
    let mut palette = Palette::default();
    let mut homes: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut chapters = Vec::new();
    for entry in experiments {
        let chapter = chapter(entry, results, &mut palette)?;
        for figure in &chapter.figures {
            let file = entry.folder.join("figures.toml");
            if let Some(before) = homes.insert(figure.id.clone(), file.clone()) {
                let what = format!("figure {:?} is also in {}", figure.id, before.display());
                return Err(LabError::line(&file, 0, what, "give every figure its own id"));
            }
        }
        chapters.push(chapter);
    }
    Ok(chapters)
}

fn chapter(entry: &Experiment, out: &Path, palette: &mut Palette) -> Result<Chapter, LabError> {
    let mut results = Results::load(out, &entry.id, &entry.folder)?;
    let file = entry.folder.join("figures.toml");
    let specs = if file.exists() { spec::parse(&file, &read_text(&file)?)? } else { Vec::new() };
    if let Some(results) = &mut results {
        add_runs(entry, out, specs.iter().map(|(_, spec)| spec), results)?;
    }
    let mut figures = Vec::new();
    if let Some(results) = &results {
        for (line, spec) in &specs {
            let figure = build(spec, results, palette)
                .map_err(|(what, remedy)| LabError::line(&file, *line, what, remedy))?;
            figures.push(figure);
        }
    }
    let readme = entry.folder.join("README.md");
    let notes = if readme.exists() { read_text(&readme)? } else { String::new() };
    let info = results.as_ref().map(|r| &r.info);
    let told = |field: fn(&About) -> &String, otherwise: &String| {
        info.map(field).filter(|t| !t.trim().is_empty()).unwrap_or(otherwise).trim().to_owned()
    };
    Ok(Chapter {
        title: told(|i| &i.title, &entry.title),
        figure: told(|i| &i.figure, &entry.figure),
        says: told(|i| &i.says, &entry.says),
        command: told(|i| &i.command, &format!("manypath lab run {}", entry.id)),
        id: entry.id.clone(),
        paper: entry.paper.clone(),
        notes,
        results,
        figures,
    })
}

/// Builds the figure that `spec` describes. Without any point to draw it has no panels.
fn build(spec: &FigureSpec, results: &Results, palette: &mut Palette) -> Result<Figure, Wrong> {
    match spec.kind {
        Kind::Time => series::build(spec, results, palette),
        _ => sweep::build(spec, results, palette),
    }
}

/// Reads the single runs behind the figures that compare points, which have seeds in common.
fn add_runs<'s>(
    entry: &Experiment,
    out: &Path,
    specs: impl Iterator<Item = &'s FigureSpec>,
    results: &mut Results,
) -> Result<(), LabError> {
    let relative = specs.filter(|spec| !spec.relative_to.is_empty());
    let fields: BTreeSet<String> = relative.flat_map(|spec| spec.y.list()).collect();
    if fields.is_empty() {
        return Ok(());
    }
    let owner = results.info.runs_of.clone().unwrap_or_else(|| entry.id.clone());
    if let Some((_, runs)) = load_runs_of(out, &owner, entry)? {
        for field in fields {
            results.add_runs(&field, &runs);
        }
    }
    Ok(())
}

/// Writes a figure's pictures: `ID.svg` and `ID.png` of the papers' rules, `ID-packaged.…` of the
/// other variant.
fn draw(figure: &Figure, folder: &Path) -> Result<usize, LabError> {
    for (i, view) in figure.views.iter().enumerate() {
        let name =
            if i == 0 { figure.id.clone() } else { format!("{}-{}", figure.id, view.variant) };
        let svg = folder.join(format!("{name}.svg"));
        let png = folder.join(format!("{name}.png"));
        let failed = |file: &Path, e: picture::DrawError| {
            LabError::line(file, 0, e.to_string(), "leave --figures out to get the page alone")
        };
        let text = picture::svg(figure, view).map_err(|e| failed(&svg, e))?;
        save(&svg, text.as_bytes())?;
        let pixels = picture::png(figure, view).map_err(|e| failed(&png, e))?;
        save(&png, &pixels)?;
    }
    Ok(2 * figure.views.len())
}

fn save(file: &Path, bytes: &[u8]) -> Result<(), LabError> {
    let folder = file.parent().filter(|f| !f.as_os_str().is_empty());
    folder
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| std::fs::write(file, bytes))
        .map_err(|e| LabError::line(file, 0, e.to_string(), "choose a place that can be written"))
}
