//! A part: the file of the runs that a shard made.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::Shard;
use crate::cell::{Cell, Fields, fields_of_json, json_text};
use crate::derive::Series;
use crate::engine;
use crate::error::LabError;
use crate::plan::{Extent, RunData};

/// The first line of a part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// The form of the file.
    part: u32,
    /// The engine that made it: see [`engine::fingerprint`].
    pub(crate) engine: String,
    /// The experiments, as they were named.
    pub(crate) ids: Vec<String>,
    quick: bool,
    seeds: Option<Vec<u64>>,
    pub(crate) shard: Shard,
}

/// The form that this program writes.
const FORM: u32 = 1;

impl Header {
    /// Of a part that this program makes.
    pub(crate) fn new(ids: &[String], extent: &Extent, shard: Shard) -> Header {
        let Extent { quick, seeds } = extent.clone();
        let engine = engine::fingerprint().to_owned();
        Header { part: FORM, engine, ids: ids.to_vec(), quick, seeds, shard }
    }

    /// Which runs of the experiments.
    pub(crate) fn extent(&self) -> Extent {
        Extent { quick: self.quick, seeds: self.seeds.clone() }
    }

    /// A name that parts of other runs do not have.
    pub(crate) fn file_name(&self) -> String {
        let Header { engine, ids, quick, seeds, shard, .. } = self;
        let identity = format!("{engine} {ids:?} {quick} {seeds:?} {shard}");
        format!("{:016x}.jsonl", xxh3_64(identity.as_bytes()))
    }

    /// True if both are parts of the same runs in as many shards.
    pub(crate) fn is_of_same(&self, other: &Header) -> bool {
        let any_shard = Header { shard: self.shard, ..other.clone() };
        any_shard == *self && self.shard.of == other.shard.of
    }
}

/// A run in a part.
#[derive(Serialize, Deserialize)]
pub(crate) struct Line {
    task: String,
    /// Its fields, or
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fields: Option<Box<serde_json::value::RawValue>>,
    /// why it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    series: Vec<Series>,
}

impl Line {
    pub(crate) fn new(task: &str, result: Result<&RunData, &String>) -> serde_json::Result<Line> {
        let run = match result {
            Ok(run) => run,
            Err(error) => return Ok(Line::failed(task, error)),
        };
        let fields = Some(raw_json(&run.fields)?);
        Ok(Line { task: task.to_owned(), fields, error: None, series: run.series.clone() })
    }

    /// Of a run without a result.
    pub(crate) fn failed(task: &str, why: &str) -> Line {
        Line {
            task: task.to_owned(),
            fields: None,
            error: Some(why.to_owned()),
            series: Vec::new(),
        }
    }

    fn result(self) -> Result<RunData, String> {
        let fields = self.fields.ok_or_else(|| self.error.unwrap_or_default())?;
        let fields = fields_of_json(fields.get()).map_err(|e| e.to_string())?;
        Ok(RunData { fields, series: self.series, loss_ranges: Vec::new() })
    }
}

fn raw_json(fields: &Fields) -> serde_json::Result<Box<serde_json::value::RawValue>> {
    let entry = |(name, cell): (&String, &Cell)| format!("{}:{}", json_text(name), cell.json());
    let entries: Vec<_> = fields.iter().map(entry).collect();
    serde_json::value::RawValue::from_string(format!("{{{}}}", entries.join(",")))
}

/// Results by task.
pub(crate) type Runs = BTreeMap<String, Result<RunData, String>>;

/// A part to which runs are added.
pub(crate) struct Part {
    out: File,
    /// The runs that it had when it was opened, without those that failed.
    pub(crate) known: Runs,
}

impl Part {
    /// Opens a part, which may be new.
    pub(crate) fn open(path: &Path, header: &Header) -> Result<Part, LabError> {
        let bad = |error: std::io::Error| {
            LabError::file(path, error, "name a file that can be written with `--out`")
        };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(bad)?;
        }
        let mut out = OpenOptions::new();
        let mut out =
            out.read(true).write(true).create(true).truncate(false).open(path).map_err(bad)?;
        if out.metadata().map_err(bad)?.len() == 0 {
            write_line(&mut out, header).map_err(bad)?;
            return Ok(Part { out, known: Runs::new() });
        }
        let (own, mut known, end) = read(path)?;
        if own != *header {
            let what = format!("it is shard {} of other runs: {}", own.shard, own.ids.join(" "));
            return Err(LabError::file(path, what, "name another file with `--out`, or remove it"));
        }
        known.retain(|_, result| result.is_ok());
        // A line that was cut short is made again.
        out.set_len(end).map_err(bad)?;
        out.seek(SeekFrom::End(0)).map_err(bad)?;
        Ok(Part { out, known })
    }

    /// Adds a run.
    pub(crate) fn push(&mut self, line: &Line) -> std::io::Result<()> {
        write_line(&mut self.out, line)
    }
}

fn write_line(out: &mut File, line: &impl Serialize) -> std::io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    // At once: what a killed shard had made is found again.
    out.write_all(&text)
}

/// Reads a part. Also returns where its last whole line ends.
pub(crate) fn read(part: &Path) -> Result<(Header, Runs, u64), LabError> {
    let remedy = "remove it, and make it with `manypath lab exec`";
    let bad = |what: String| LabError::file(part, what, remedy);
    let mut text = BufReader::new(File::open(part).map_err(|e| bad(e.to_string()))?);
    let (mut header, mut runs, mut end) = (None, Runs::new(), 0);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let length = text.read_until(b'\n', &mut line).map_err(|e| bad(e.to_string()))?;
        if line.pop() != Some(b'\n') {
            break;
        }
        let wrong = |e: serde_json::Error| LabError::line(part, number, e, remedy);
        match &header {
            None => header = Some(serde_json::from_slice::<Header>(&line).map_err(wrong)?),
            Some(_) => {
                let run: Line = serde_json::from_slice(&line).map_err(wrong)?;
                runs.insert(run.task.clone(), run.result());
            }
        }
        end += length as u64;
    }
    let header = header.ok_or_else(|| bad("it has no whole line".to_owned()))?;
    match header.part {
        FORM => Ok((header, runs, end)),
        other => Err(bad(format!("it has form {other}, and this program reads {FORM}"))),
    }
}
