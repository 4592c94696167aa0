//! Context of a claim: marks, causes, and the verdict of the paper's own simulator.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Verdict;
use crate::reference::Reference;

/// Why a claim that holds says less than others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// A parameter was chosen by the numbers that the claim compares with.
    Fitted,
    /// The scenario gives the value, or the placebo makes equal what the claim compares.
    ByConstruction,
    /// A step of a timeline that has several, which stand and fall together.
    TimelineStep,
}

impl Mark {
    /// All marks, in the order of the tables.
    pub const ALL: [Mark; 3] = [Mark::Fitted, Mark::ByConstruction, Mark::TimelineStep];

    /// As tables name it.
    pub fn text(self) -> &'static str {
        match self {
            Mark::Fitted => "fitted",
            Mark::ByConstruction => "by construction",
            Mark::TimelineStep => "a step of a timeline",
        }
    }
}

/// The party whose doing it is that a claim does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The paper: its text, its numbers or its own figures say otherwise.
    Paper,
    /// The paper leaves out a parameter on which the number depends.
    Unpublished,
    /// The paper's own simulator, another release or rule of it.
    Simulator,
    /// Our model of the network.
    Network,
    /// Our measure or tolerance.
    Judge,
    /// Our protocol engine or our choice.
    Ours,
}

impl Fault {
    /// As tables name it.
    pub fn text(self) -> &'static str {
        match self {
            Fault::Paper => "the paper's statement",
            Fault::Unpublished => "an unpublished parameter",
            Fault::Simulator => "the paper's own simulator",
            Fault::Network => "our network model",
            Fault::Judge => "the judge",
            Fault::Ours => "ours",
        }
    }
}

/// A `[[cause]]` table: why claims do not hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// Name by which claims refer to the cause.
    pub id: String,
    /// The party whose doing it is.
    pub fault: Fault,
    /// The explanation.
    pub says: String,
}

/// The verdict of the paper's own simulator on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Second {
    /// The claim holds there.
    Holds,
    /// It cannot be decided there.
    Undecided,
    /// It does not hold there.
    Fails,
}

/// The second verdict, with its grounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SecondVerdict {
    /// The simulator and its release.
    pub simulator: String,
    /// The verdict.
    pub verdict: Second,
    /// The simulator's value with its interval.
    pub measured: Option<String>,
    /// The place where it is written, unless it was judged from data.
    pub source: Option<String>,
}

impl Second {
    /// The second verdict beside ours, in words; `None` if nothing is known.
    pub fn words(second: Option<Second>, ours: Verdict) -> &'static str {
        match (second, ours) {
            (Some(Second::Holds), Verdict::Holds) => "the paper's own simulator holds it too",
            (Some(Second::Holds), _) => "the paper's own simulator holds it",
            (Some(Second::Fails), Verdict::Holds) => "the paper's own simulator does not hold it",
            (Some(Second::Fails), _) => "the paper's own simulator does not hold it either",
            (Some(Second::Undecided), _) => "undecided by the paper's own simulator",
            (None, _) => "not known of the paper's own simulator",
        }
    }
}

/// A `simulator` table as it is written, of a claim or of all claims of an experiment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SimulatorEntry {
    /// The simulator and its release.
    pub name: Option<String>,
    /// A file as `reference.csv`, relative to the experiment's folder.
    pub data: Option<String>,
    /// The verdict without data.
    verdict: Option<Second>,
    measured: Option<String>,
    source: Option<String>,
}

/// The paper's own simulator, as far as a claim is judged by it.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulator {
    /// Name and release of the simulator.
    name: String,
    /// Results of the simulator.
    pub(super) data: Option<Arc<Reference>>,
    /// The verdict where there are no results.
    written: Option<SecondVerdict>,
}

impl Simulator {
    /// Reads the table of a claim; keys that it lacks are those of its experiment. `load` reads a
    /// file of results.
    ///
    /// # Errors
    ///
    /// If a key is missing, or a file cannot be read.
    pub(crate) fn new(
        claim: Option<&SimulatorEntry>,
        experiment: Option<&SimulatorEntry>,
        load: &mut dyn FnMut(&str) -> Result<Arc<Reference>, String>,
    ) -> Result<Option<Simulator>, String> {
        if claim.is_none() && experiment.is_none() {
            return Ok(None);
        }
        let given = |field: fn(&SimulatorEntry) -> Option<&String>| {
            claim.and_then(field).or_else(|| experiment.and_then(field))
        };
        let needs = || "`simulator` needs a `name`: the simulator and its release".to_owned();
        let name = given(|entry| entry.name.as_ref()).ok_or_else(needs)?.clone();
        let data = given(|entry| entry.data.as_ref()).map(|file| load(file)).transpose()?;
        if experiment.is_some_and(|entry| entry.verdict.is_some()) {
            return Err("a `verdict` of the simulator belongs to a claim".to_owned());
        }
        let written = claim.map(|entry| entry.written(&name)).transpose()?.flatten();
        Ok(Some(Simulator { name, data, written }))
    }

    /// The second verdict: judged from the results if these have the points, else as written.
    pub(super) fn second(&self, judged: Option<SecondVerdict>) -> Option<SecondVerdict> {
        judged.or_else(|| self.written.clone())
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl SimulatorEntry {
    fn written(&self, name: &str) -> Result<Option<SecondVerdict>, String> {
        let Some(verdict) = self.verdict else {
            let is_lone = self.measured.is_some() || self.source.is_some();
            let needs = "`measured` and `source` of a simulator go with a `verdict`".to_owned();
            return if is_lone { Err(needs) } else { Ok(None) };
        };
        let source = self.source.clone();
        let source = source.ok_or("a written `verdict` of a simulator needs its `source`")?;
        let measured = self.measured.clone();
        Ok(Some(SecondVerdict {
            simulator: name.to_owned(),
            verdict,
            measured,
            source: Some(source),
        }))
    }
}
