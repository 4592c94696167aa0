//! The folder of an experiment's results; `docs/laboratory.md` describes its files.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cell::Cell;
use crate::claims::Judgement;
use crate::derive::Derive;
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::output::{read_json_lines, write_csv, write_json_line, write_parquet};
use crate::placebo::is_placebo;
use crate::plan::{Plan, PlannedPoint, RunData};
use crate::reference::Agreement;
use crate::stats::Summary;
use crate::table::{Params, Table, show_params, value_of};

/// The contents of `experiment.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The experiment's identifier.
    pub id: String,
    /// One line: what it shows.
    pub title: String,
    /// Its paper, such as `002-cmt`.
    pub paper: String,
    /// The paper's figure or table.
    pub figure: String,
    /// The paper's statement.
    pub says: String,
    /// Its other identifiers.
    pub figures: Vec<String>,
    /// The command that repeats it.
    pub command: String,
    /// Few seeds, thinned sweeps.
    pub quick: bool,
    /// Seeds of each point, at most.
    pub seeds: usize,
    /// Runs that gave a result.
    pub runs: usize,
    /// Runs that were planned; more than `runs` and `failed` together if it was interrupted.
    pub planned: usize,
    /// Runs that failed: see `failures.jsonl`.
    pub failed: usize,
    /// Runs whose transfer did not complete within the scenario's time; statistics leave them out
    /// unless the experiment says otherwise.
    pub incomplete: usize,
    /// The experiment whose runs it uses; then it has no files of runs.
    pub runs_of: Option<String>,
    /// Its variants that ran.
    pub variants: Vec<String>,
    /// The swept parameters.
    pub parameters: Vec<String>,
    /// The program's version.
    pub version: String,
}

/// A run without a result: one line of `failures.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FailedRun {
    /// The experiment.
    pub experiment: String,
    /// Its variant.
    pub variant: String,
    /// The point of the sweep.
    pub point: String,
    /// The seed.
    pub seed: u64,
    /// The error message.
    pub error: String,
    /// The command that repeats this run.
    pub command: String,
}

/// Takes the runs of an experiment one by one and writes its files.
pub(crate) struct Results {
    folder: PathBuf,
    about: About,
    derived: Vec<Derive>,
    groups: Vec<crate::group::Group>,
    sampled_seeds: usize,
    table: Table,
    lines: BufWriter<File>,
    samples: Option<csv::Writer<File>>,
    parameters: Vec<String>,
    failed: Vec<FailedRun>,
}

impl Results {
    /// Begins the results of an experiment in `out/ID/`. Earlier ones are replaced.
    pub(crate) fn begin(
        out: &Path,
        experiment: &Experiment,
        plan: &Plan,
        quick: bool,
    ) -> Result<Results, LabError> {
        let folder = out.join(&experiment.id);
        let remedy = "name a folder that can be written with `--out`";
        let bad = |error: io::Error| LabError::file(&folder, error, remedy);
        std::fs::create_dir_all(&folder).map_err(bad)?;
        for old in ["failures.jsonl", "samples.csv", "claims.json", "agreement.csv"] {
            match std::fs::remove_file(folder.join(old)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(bad(error)),
                _ => {}
            }
        }
        let lines = BufWriter::new(File::create(folder.join("runs.jsonl")).map_err(bad)?);
        let mut table = Table::new();
        table.counts_incomplete = experiment.counts_incomplete;
        let mut parameters: Vec<String> = Vec::new();
        for (name, _) in plan.points.iter().flat_map(|point| point.params.iter()) {
            if !parameters.contains(name) {
                parameters.push(name.clone());
            }
        }
        let about = About::new(experiment, plan, quick);
        Ok(Results {
            about,
            derived: experiment.derived.clone(),
            groups: experiment.groups.clone(),
            sampled_seeds: experiment.samples.map_or(0, |samples| samples.seeds),
            table,
            lines,
            samples: None,
            parameters,
            failed: Vec::new(),
            folder,
        })
    }

    /// Takes the next run.
    pub(crate) fn push(
        &mut self,
        point: &PlannedPoint,
        seed: u64,
        result: Result<RunData, String>,
    ) -> io::Result<()> {
        let taken = |run: &RunData| self.derived.iter().find(|d| run.fields.contains_key(&d.name));
        let result = result.and_then(|run| match taken(&run) {
            None => Ok(run),
            Some(Derive { name, .. }) => {
                Err(format!("results have a field `{name}`: call the derived column otherwise"))
            }
        });
        let mut run = match result {
            Ok(run) => run,
            Err(error) => {
                self.failed.push(FailedRun {
                    experiment: self.about.id.clone(),
                    variant: point.variant.to_string(),
                    point: show_params(&point.params),
                    seed,
                    error,
                    command: format!("{} --seeds {seed}..{seed}", point.command),
                });
                return Ok(());
            }
        };
        for derive in &self.derived {
            let number = |name: &str| run.fields.get(name).and_then(Cell::number);
            let value = derive.value(&number, &run.series);
            run.fields.insert(derive.name.clone(), value);
        }
        let place = point.seeds.iter().position(|own| *own == seed);
        let is_kept = place.is_some_and(|place| place < self.sampled_seeds);
        if is_kept && !run.series.is_empty() && !is_placebo(&point.variant) {
            self.write_samples(&point.variant, &point.params, seed, &run)?;
        }
        self.table.push(&point.variant, &point.params, seed, run.fields);
        match self.table.rows().last() {
            Some(row) => write_json_line(&mut self.lines, &self.about.id, &self.table, row),
            None => Ok(()),
        }
    }

    fn write_samples(
        &mut self,
        variant: &Arc<str>,
        params: &Params,
        seed: u64,
        run: &RunData,
    ) -> io::Result<()> {
        let out = match &mut self.samples {
            Some(out) => out,
            None => {
                let mut out = csv::Writer::from_path(self.folder.join("samples.csv"))?;
                let names = self.parameters.iter().map(String::as_str);
                let names = ["variant"].into_iter().chain(names);
                out.write_record(names.chain(["seed", "time_s", "series", "value"]))?;
                self.samples.insert(out)
            }
        };
        let seed = seed.to_string();
        for series in &run.series {
            for (at, value) in &series.points {
                let (at, value) = (Cell::float(*at).json(), Cell::float(*value).json());
                let values =
                    self.parameters.iter().map(|p| value_of(params, p).unwrap_or_default());
                let values = [&**variant].into_iter().chain(values);
                out.write_record(values.chain([seed.as_str(), &at, &series.name, &value]))?;
            }
        }
        Ok(())
    }

    /// Writes what can be written only at the end.
    pub(crate) fn finish(mut self) -> Result<(About, Table, Vec<FailedRun>), LabError> {
        self.about.runs = self.table.rows().len();
        self.about.failed = self.failed.len();
        let is_incomplete = |row: &&crate::table::Row| {
            let column = self.table.column("completed");
            column.is_some_and(|c| *self.table.cell(row, c) == Cell::Bool(false))
        };
        self.about.incomplete = self.table.rows().iter().filter(is_incomplete).count();
        let written = self.write_end();
        written.map_err(|e| LabError::file(&self.folder, e, "make room, or use `--out`"))?;
        Ok((self.about, self.table, self.failed))
    }

    fn write_end(&mut self) -> io::Result<()> {
        self.lines.flush()?;
        if let Some(samples) = &mut self.samples {
            samples.flush()?;
        }
        let file = |name| self.folder.join(name);
        write_csv(&file("runs.csv"), &self.about.id, &self.table)?;
        write_parquet(&file("runs.parquet"), &self.about.id, &self.table)?;
        self.table.regroup(&self.groups);
        write_summary(&file("summary.csv"), &self.table)?;
        if !self.failed.is_empty() {
            let mut out = BufWriter::new(File::create(file("failures.jsonl"))?);
            for failed in &self.failed {
                serde_json::to_writer(&mut out, failed)?;
                out.write_all(b"\n")?;
            }
            out.flush()?;
        }
        write_json(&file("experiment.json"), &self.about)
    }
}

impl About {
    pub(crate) fn new(experiment: &Experiment, plan: &Plan, quick: bool) -> About {
        let mut variants: Vec<String> = Vec::new();
        let mut parameters: Vec<String> = Vec::new();
        for point in &plan.points {
            if !variants.iter().any(|own| **own == *point.variant) {
                variants.push(point.variant.to_string());
            }
            for (name, _) in point.params.iter() {
                if !parameters.contains(name) {
                    parameters.push(name.clone());
                }
            }
        }
        let quick_flag = if quick { " --quick" } else { "" };
        About {
            id: experiment.id.clone(),
            title: experiment.title.clone(),
            paper: experiment.paper.clone(),
            figure: experiment.figure.clone(),
            says: experiment.says.clone(),
            figures: experiment.figures.clone(),
            command: format!("manypath lab run {}{quick_flag}", experiment.id),
            quick,
            seeds: plan.points.iter().map(|point| point.seeds.len()).max().unwrap_or(0),
            runs: 0,
            planned: plan.runs(),
            failed: 0,
            incomplete: 0,
            runs_of: experiment.runs_of.clone(),
            variants,
            parameters,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

impl About {
    /// The description of an experiment that uses these runs.
    pub(crate) fn borrowed(&self, by: &Experiment) -> About {
        let own = About::new(by, &Plan::default(), self.quick);
        About {
            seeds: self.seeds,
            runs: self.runs,
            planned: self.planned,
            failed: self.failed,
            incomplete: self.incomplete,
            variants: self.variants.clone(),
            parameters: self.parameters.clone(),
            ..own
        }
    }
}

/// Writes a value as readable JSON.
fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    std::fs::write(path, text)
}

/// Writes `summary.csv`: one line a point and field.
fn write_summary(path: &Path, table: &Table) -> io::Result<()> {
    let mut out = csv::Writer::from_path(path)?;
    let names = ["variant"].into_iter().chain(table.parameters());
    let columns = ["field", "mean", "std", "n", "ci95", "median", "min", "max"];
    out.write_record(names.chain(columns))?;
    for rows in table.points() {
        let Some(first) = rows.first() else { continue };
        let params = table.parameters().map(|p| value_of(&first.params, p).unwrap_or_default());
        let point: Vec<_> = [&*first.variant].into_iter().chain(params).collect();
        for (column, field) in table.fields().enumerate() {
            let counted = rows.iter().filter(|row| table.is_counted(row));
            let values: Vec<_> =
                counted.filter_map(|row| table.cell(row, column).number()).collect();
            let Some(summary) = Summary::of(&values) else { continue };
            let n = summary.n.to_string();
            let [mean, std, ci95, median, min, max] = [
                Some(summary.mean),
                summary.std,
                summary.ci95(),
                Some(summary.median),
                Some(summary.min),
                Some(summary.max),
            ]
            .map(optional);
            let own = [field, &mean, &std, &n, &ci95, &median, &min, &max];
            out.write_record(point.iter().copied().chain(own))?;
        }
    }
    out.flush()
}

fn optional(value: Option<f64>) -> String {
    value.map(Cell::float).unwrap_or(Cell::Null).text().into_owned()
}

/// Writes `claims.json`, `agreement.csv` and, for an experiment without runs, `experiment.json`.
pub(crate) fn write_judgements(
    folder: &Path,
    about: &About,
    judgements: &[Judgement],
    agreements: &[Agreement],
) -> Result<(), LabError> {
    let write = || {
        std::fs::create_dir_all(folder)?;
        write_json(&folder.join("experiment.json"), about)?;
        write_json(&folder.join("claims.json"), &judgements)?;
        write_agreement(&folder.join("agreement.csv"), agreements)
    };
    write().map_err(|error| LabError::file(folder, error, "use another folder with `--out`"))
}

/// Columns of `agreement.csv` after `variant` and the parameters.
pub(crate) const AGREEMENT_COLUMNS: [&str; 11] = [
    "field",
    "ours",
    "ours_ci95",
    "n",
    "reference",
    "reference_ci95",
    "reference_n",
    "ratio",
    "p",
    "agrees",
    "source",
];

fn write_agreement(path: &Path, agreements: &[Agreement]) -> io::Result<()> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in agreements.iter().flat_map(|a| &a.reference.params) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let mut out = csv::Writer::from_path(path)?;
    out.write_record(
        ["variant"].into_iter().chain(names.iter().copied()).chain(AGREEMENT_COLUMNS),
    )?;
    for a in agreements {
        let params = names.iter().map(|n| value_of(&a.reference.params, n).unwrap_or_default());
        let [ours, ours_ci95, mean, mean_ci95, ratio, p] = [
            Some(a.ours.mean),
            a.ours.ci95(),
            Some(a.reference.mean),
            a.reference.ci95(),
            a.ratio,
            a.p,
        ]
        .map(optional);
        let (n, reference_n) = (a.ours.n.to_string(), a.reference.n.to_string());
        let agrees = a.agrees.to_string();
        let own = [
            a.reference.field.as_str(),
            &ours,
            &ours_ci95,
            &n,
            &mean,
            &mean_ci95,
            &reference_n,
            &ratio,
            &p,
            &agrees,
            &a.reference.source,
        ];
        out.write_record([a.variant.as_str()].into_iter().chain(params).chain(own))?;
    }
    out.flush()
}

/// Reads the results of an earlier run; `None` if there are none.
///
/// # Errors
///
/// If the files cannot be read.
pub fn load(out: &Path, experiment: &Experiment) -> Result<Option<(About, Table)>, LabError> {
    load_runs_of(out, &experiment.id, experiment)
}

/// Reads the results of the experiment `id`, with what `experiment`, which may borrow them, derives
/// and counts.
pub(crate) fn load_runs_of(
    out: &Path,
    id: &str,
    experiment: &Experiment,
) -> Result<Option<(About, Table)>, LabError> {
    let Some((about, mut table)) = load_runs(out, id)? else { return Ok(None) };
    table.counts_incomplete = experiment.counts_incomplete;
    table.derive(&experiment.derived);
    table.regroup(&experiment.groups);
    Ok(Some((about, table)))
}

/// Reads the runs of the experiment `id` as they are in its files; `None` if there are no results.
pub(crate) fn load_runs(out: &Path, id: &str) -> Result<Option<(About, Table)>, LabError> {
    let folder = out.join(id);
    let path = folder.join("experiment.json");
    if !path.is_file() {
        return Ok(None);
    }
    let remedy = format!("run it again: manypath lab run {id}");
    let about: About = serde_json::from_str(&crate::experiment::read(&path)?)
        .map_err(|e| LabError::file(&path, e, remedy.clone()))?;
    let lines = folder.join("runs.jsonl");
    if about.runs_of.is_some() || !lines.is_file() {
        return Ok(Some((about, Table::new())));
    }
    let text = crate::experiment::read(&lines)?;
    let table = read_json_lines(&text, &about.parameters);
    let table = table.map_err(|e| LabError::file(&lines, e, remedy))?;
    Ok(Some((about, table)))
}
