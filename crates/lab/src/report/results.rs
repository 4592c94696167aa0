//! Reads the files that a run of an experiment left behind.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::claims::Judgement;
use crate::error::LabError;
use crate::experiment::read;
use crate::placebo::is_placebo;
use crate::reference::{Reference, ReferencePoint};
use crate::results::{AGREEMENT_COLUMNS, About};

/// Values of the swept parameters, as texts, by the parameter's dotted name.
pub(crate) type Params = BTreeMap<String, String>;

/// One mean with its spread: a row of `summary.csv` or of `reference.csv`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mean {
    /// Which of the experiment's scenario files; empty in a reference that does not say.
    pub(crate) variant: String,
    pub(crate) params: Params,
    pub(crate) field: String,
    pub(crate) mean: f64,
    /// Half the width of the 95 % confidence interval; unknown for fewer than two runs.
    pub(crate) ci95: Option<f64>,
    pub(crate) n: u64,
    /// The single runs' values by seed, where [`Results::add_runs`] was asked for them.
    pub(crate) by_seed: BTreeMap<u64, f64>,
}

/// A point compared with the papers' simulator: a row of `agreement.csv`.
#[derive(Debug, Clone)]
pub(crate) struct Compared {
    pub(crate) variant: String,
    pub(crate) params: Params,
    pub(crate) field: String,
    pub(crate) ours: f64,
    pub(crate) ours_ci95: Option<f64>,
    pub(crate) reference: f64,
    pub(crate) reference_ci95: Option<f64>,
    pub(crate) ratio: Option<f64>,
    pub(crate) p: Option<f64>,
    pub(crate) agrees: bool,
}

/// One value of a series over time: a row of `samples.csv`.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) variant: String,
    pub(crate) params: Params,
    pub(crate) seed: String,
    pub(crate) time_s: f64,
    pub(crate) series: String,
    pub(crate) value: f64,
}

/// Everything one experiment's figures and tables are made from.
#[derive(Debug, Clone)]
pub(crate) struct Results {
    pub(crate) info: About,
    pub(crate) means: Vec<Mean>,
    pub(crate) reference: Vec<Mean>,
    pub(crate) claims: Vec<Judgement>,
    pub(crate) compared: Vec<Compared>,
    pub(crate) samples: Vec<Sample>,
}

impl Results {
    /// The results of experiment `id` below `out`, or `None` if it has not been run. `folder` is
    /// the experiment's own, where `reference.csv` lies.
    pub(crate) fn load(out: &Path, id: &str, folder: &Path) -> Result<Option<Self>, LabError> {
        let dir = out.join(id);
        let file = dir.join("experiment.json");
        if !file.exists() {
            return Ok(None);
        }
        let info: About = json(&file)?;
        let data = info.runs_of.as_ref().map_or_else(|| dir.clone(), |other| out.join(other));
        let claims = dir.join("claims.json");
        let references = match &info.runs_of {
            Some(other) if !folder.join("reference.csv").exists() => folder.with_file_name(other),
            _ => folder.to_path_buf(),
        };
        Ok(Some(Self {
            means: means(&data.join("summary.csv"))?,
            reference: reference(&references.join("reference.csv"))?,
            claims: if claims.exists() { json(&claims)? } else { Vec::new() },
            compared: compared(&dir.join("agreement.csv"))?,
            samples: samples(&data.join("samples.csv"))?,
            info,
        }))
    }

    /// Adds to our means of `field` what they are means of, so that points can be compared seed by
    /// seed.
    pub(crate) fn add_runs(&mut self, field: &str, runs: &crate::table::Table) {
        let Some(column) = runs.column(field) else { return };
        let mut found: BTreeMap<(&str, Params), BTreeMap<u64, f64>> = BTreeMap::new();
        for row in runs.rows().iter().filter(|row| runs.is_counted(row)) {
            let Some(value) = runs.cell(row, column).number() else { continue };
            let params = row.params.iter().filter(|(_, value)| !value.trim().is_empty());
            let params = params.map(|(name, value)| (name.clone(), value.trim().to_owned()));
            let point = found.entry((&row.variant, params.collect())).or_default();
            point.insert(row.seed, value);
        }
        for mean in self.means.iter_mut().filter(|mean| mean.field == field) {
            let point = found.remove(&(mean.variant.as_str(), mean.params.clone()));
            mean.by_seed = point.unwrap_or_default();
        }
    }
}

fn json<T: for<'de> Deserialize<'de>>(file: &Path) -> Result<T, LabError> {
    serde_json::from_str(&read(file)?).map_err(|e| {
        LabError::line(file, e.line(), e.to_string(), "run the experiment again with this version")
    })
}

/// A CSV file of the laboratory whose columns are a fixed set and, between them, the swept
/// parameters.
struct Table {
    file: PathBuf,
    header: Vec<String>,
    rows: Vec<(usize, csv::StringRecord)>,
}

impl Table {
    /// A table without rows if there is no such file.
    fn load(file: &Path) -> Result<Self, LabError> {
        let mut table = Self { file: file.to_path_buf(), header: Vec::new(), rows: Vec::new() };
        if !file.exists() {
            return Ok(table);
        }
        let text = read(file)?;
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let bad = |e: csv::Error| {
            let line = e.position().map_or(0, |p| p.line() as usize);
            LabError::line(file, line, e.to_string(), "a row has a value for every column")
        };
        table.header = reader.headers().map_err(bad)?.iter().map(str::to_owned).collect();
        for row in reader.records() {
            let row = row.map_err(bad)?;
            table.rows.push((row.position().map_or(0, |p| p.line() as usize), row));
        }
        Ok(table)
    }

    fn column(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|h| h == name)
    }

    fn text<'a>(&self, row: &'a csv::StringRecord, name: &str) -> &'a str {
        self.column(name).and_then(|i| row.get(i)).unwrap_or("").trim()
    }

    /// The number in a column, which may be empty.
    fn maybe(
        &self,
        line: usize,
        row: &csv::StringRecord,
        name: &str,
    ) -> Result<Option<f64>, LabError> {
        let text = self.text(row, name);
        if text.is_empty() {
            return Ok(None);
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Some(value)),
            Ok(_) => Ok(None),
            Err(_) => Err(LabError::line(
                &self.file,
                line,
                format!("column {name}: {text:?} is no number"),
                "give a plain number, or leave it empty",
            )),
        }
    }

    fn number(&self, line: usize, row: &csv::StringRecord, name: &str) -> Result<f64, LabError> {
        self.maybe(line, row, name)?.ok_or_else(|| {
            let what = format!("column {name} is empty or missing");
            LabError::line(&self.file, line, what, "give a number")
        })
    }

    /// The parameters of a row: all columns but `variant` and the fixed ones.
    fn params(&self, row: &csv::StringRecord, fixed: &[&str]) -> Params {
        let named = self.header.iter().zip(row.iter());
        named
            .filter(|(name, value)| {
                *name != "variant" && !fixed.contains(&name.as_str()) && !value.trim().is_empty()
            })
            .map(|(name, value)| (name.clone(), value.trim().to_owned()))
            .collect()
    }
}

fn reference(file: &Path) -> Result<Vec<Mean>, LabError> {
    let mean = |point: ReferencePoint| Mean {
        ci95: point.ci95(),
        variant: point.variant.unwrap_or_default(),
        params: point.params.into_iter().collect(),
        field: point.field,
        mean: point.mean,
        n: point.n as u64,
        by_seed: BTreeMap::new(),
    };
    Ok(Reference::load(file)?.points.into_iter().map(mean).collect())
}

fn means(file: &Path) -> Result<Vec<Mean>, LabError> {
    const FIXED: &[&str] = &["field", "mean", "std", "n", "ci95", "median", "min", "max"];
    let table = Table::load(file)?;
    let mut means = Vec::with_capacity(table.rows.len());
    // Placebos are judged, not drawn.
    let drawn = |row: &csv::StringRecord| !is_placebo(table.text(row, "variant"));
    for (line, row) in table.rows.iter().filter(|(_, row)| drawn(row)) {
        // A field that no run of the point has is left empty.
        let Some(mean) = table.maybe(*line, row, "mean")? else { continue };
        means.push(Mean {
            variant: table.text(row, "variant").to_owned(),
            params: table.params(row, FIXED),
            field: table.text(row, "field").to_owned(),
            mean,
            ci95: table.maybe(*line, row, "ci95")?,
            n: table.maybe(*line, row, "n")?.unwrap_or(0.0) as u64,
            by_seed: BTreeMap::new(),
        });
    }
    Ok(means)
}

fn compared(file: &Path) -> Result<Vec<Compared>, LabError> {
    let table = Table::load(file)?;
    let row = |(line, row): &(usize, csv::StringRecord)| {
        Ok(Compared {
            variant: table.text(row, "variant").to_owned(),
            params: table.params(row, &AGREEMENT_COLUMNS),
            field: table.text(row, "field").to_owned(),
            ours: table.number(*line, row, "ours")?,
            ours_ci95: table.maybe(*line, row, "ours_ci95")?,
            reference: table.number(*line, row, "reference")?,
            reference_ci95: table.maybe(*line, row, "reference_ci95")?,
            ratio: table.maybe(*line, row, "ratio")?,
            p: table.maybe(*line, row, "p")?,
            agrees: table.text(row, "agrees") == "true",
        })
    };
    table.rows.iter().map(row).collect()
}

fn samples(file: &Path) -> Result<Vec<Sample>, LabError> {
    const FIXED: &[&str] = &["seed", "time_s", "series", "value"];
    let table = Table::load(file)?;
    let mut samples = Vec::with_capacity(table.rows.len());
    for (line, row) in &table.rows {
        let Some(value) = table.maybe(*line, row, "value")? else { continue };
        samples.push(Sample {
            variant: table.text(row, "variant").to_owned(),
            params: table.params(row, FIXED),
            seed: table.text(row, "seed").to_owned(),
            time_s: table.number(*line, row, "time_s")?,
            series: table.text(row, "series").to_owned(),
            value,
        });
    }
    Ok(samples)
}
