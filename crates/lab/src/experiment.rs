//! Experiments: folders of files that say what to run and what the paper says about it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use include_dir::{Dir, include_dir};
use indexmap::IndexMap;
use manypath_sim::{SampleTimes, Sampling};
use serde::Deserialize;

use crate::claims::{Cause, Claim, ClaimEntry, Simulator, SimulatorEntry};
use crate::derive::{Derive, DeriveEntry};
use crate::error::{LabError, Source};
use crate::group::{Group, GroupEntry};
use crate::placebo::{self, Placebo, PlaceboEntry};
use crate::reference::Reference;
use crate::variant::{PACKAGED, RELEASE, SCENARIO};

static EMBEDDED: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../experiments");

/// The file with the causes that experiments share, in their root.
const CAUSES_FILE: &str = "causes.toml";

/// The file of an experiment of random overlay networks.
pub(crate) const OVERLAY_FILE: &str = "overlay.toml";

/// All experiments that were found, in the order of papers and then of their identifiers.
#[derive(Debug)]
pub struct Experiments {
    all: Vec<Experiment>,
    root: PathBuf,
    /// Holds the embedded copy while it is in use.
    _unpacked: Option<tempfile::TempDir>,
}

/// Most samples that may be kept of a run.
const MOST_SAMPLES: usize = 1_000_000;

/// How the runs of an experiment are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// In the simulator, in virtual time.
    #[default]
    Simulated,
    /// With real endpoints over an emulated network, in real time.
    Realtime,
    /// Nothing is sent: disjoint paths of random networks are counted.
    Overlay,
}

/// Which time series of the runs are kept.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SamplesEntry {
    /// Time between two samples, such as "100 ms", or "change".
    every: String,
    /// How many samples of a run are kept at most.
    #[serde(default = "most_samples")]
    most: usize,
    /// How many seeds of each point have their series written to `samples.csv`.
    #[serde(default = "one")]
    seeds: usize,
}

fn one() -> usize {
    1
}

fn most_samples() -> usize {
    2000
}

/// Which time series of the runs are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Samples {
    /// When they are taken, and how many are kept of a run.
    pub sampling: Sampling,
    /// How many seeds of each point have their series written to `samples.csv`.
    pub seeds: usize,
}

/// `claims.toml` as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    figure: String,
    #[serde(default)]
    says: String,
    #[serde(default)]
    figures: Vec<String>,
    #[serde(default)]
    kind: Kind,
    runs: Option<String>,
    #[serde(default)]
    counts_incomplete: bool,
    samples: Option<toml::Spanned<SamplesEntry>>,
    #[serde(default)]
    quick: IndexMap<String, toml::Value>,
    #[serde(default)]
    derive: Vec<toml::Spanned<DeriveEntry>>,
    #[serde(default)]
    group: Vec<toml::Spanned<GroupEntry>>,
    #[serde(default)]
    placebo: Vec<toml::Spanned<PlaceboEntry>>,
    simulator: Option<SimulatorEntry>,
    #[serde(default)]
    cause: Vec<Cause>,
    #[serde(default)]
    claim: Vec<toml::Spanned<ClaimEntry>>,
}

/// One experiment.
#[derive(Debug)]
pub struct Experiment {
    /// Its identifier: the name of its folder, such as `cmt-fig12`.
    pub id: String,
    /// Its paper: the name of the folder above, such as `002-cmt`.
    pub paper: String,
    /// Its folder.
    pub folder: PathBuf,
    /// It was built into the program; its folder is temporary.
    pub is_built_in: bool,
    /// One line: what it shows.
    pub title: String,
    /// The paper's figure or table, such as "Fig. 12".
    pub figure: String,
    /// The paper's statement, in a paragraph; may be empty.
    pub says: String,
    /// Other identifiers of the experiment: one for each figure it draws.
    pub figures: Vec<String>,
    /// How its runs are made.
    pub kind: Kind,
    /// The experiment whose runs it uses, if it has none of its own.
    pub runs_of: Option<String>,
    /// Runs whose transfer did not complete count in statistics like others.
    pub counts_incomplete: bool,
    /// The time series it keeps.
    pub samples: Option<Samples>,
    /// Dotted names with their values in quick runs, which come after all others.
    pub quick: Vec<(String, String)>,
    /// Columns that are computed from others or from time series.
    pub derived: Vec<Derive>,
    /// The groups of its runs, if not by the swept parameters.
    pub groups: Vec<Group>,
    /// Its placebos, which switch off the mechanisms that its claims are about.
    pub placebos: Vec<Placebo>,
    /// The paper's statements, as checks.
    pub claims: Vec<Claim>,
    /// The results of the papers' simulator.
    pub reference: Reference,
    /// Variants of releases of that simulator, by name, with or without results of it.
    pub releases: Vec<String>,
}

impl Experiments {
    /// Finds the experiments: in `dir` if given; else in the nearest folder `experiments` from the
    /// working directory upwards; else those that were built into the program.
    ///
    /// # Errors
    ///
    /// If a folder cannot be read, or one of its files is wrong.
    pub fn find(dir: Option<&Path>) -> Result<Experiments, LabError> {
        let found = dir.map(Path::to_owned).or_else(nearest);
        let is_built_in = found.is_none();
        let (root, unpacked) = match found {
            Some(root) => (root, None),
            None => {
                let (root, unpacked) = unpack()?;
                (root, Some(unpacked))
            }
        };
        let mut all = Vec::new();
        for paper in folders(&root)? {
            for folder in folders(&paper)? {
                if folder.join("claims.toml").is_file() {
                    all.push(Experiment { is_built_in, ..Experiment::load(&folder)? });
                }
            }
        }
        check_names(&all, &root)?;
        Ok(Experiments { all, root, _unpacked: unpacked })
    }

    /// The folder they were found in.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// All of them.
    pub fn all(&self) -> &[Experiment] {
        &self.all
    }

    /// The one with this identifier.
    pub fn get(&self, id: &str) -> Option<&Experiment> {
        self.all.iter().find(|e| e.id == id || e.figures.iter().any(|figure| figure == id))
    }

    /// Those that the names select, each once, in the order of [`Experiments::all`]. A name is
    /// `all`, an identifier, a paper (`002`, `002-cmt`) or a pattern with `*` and `?`.
    ///
    /// # Errors
    ///
    /// If a name selects nothing; it names the nearest identifier.
    pub fn select(&self, names: &[String]) -> Result<Vec<&Experiment>, LabError> {
        for name in names {
            if !self.all.iter().any(|experiment| experiment.is_named(name)) {
                let what = format!("no experiment is named `{name}`");
                return Err(LabError::file(&self.root, what, self.remedy(name)));
            }
        }
        let is_selected = |e: &&Experiment| names.iter().any(|name| e.is_named(name));
        Ok(self.all.iter().filter(is_selected).collect())
    }

    fn remedy(&self, name: &str) -> String {
        let names = self.all.iter().flat_map(|e| e.figures.iter().chain([&e.id]));
        let nearest = names.min_by_key(|n| strsim::levenshtein(n, name));
        match nearest {
            Some(nearest) => format!("the nearest is `{nearest}`; `manypath lab list` shows all"),
            None => "there are no experiments in this folder".to_owned(),
        }
    }
}

impl Experiment {
    /// Reads the folder of an experiment.
    ///
    /// # Errors
    ///
    /// If a file is missing or wrong.
    pub fn load(folder: &Path) -> Result<Experiment, LabError> {
        let path = folder.join("claims.toml");
        let text = read(&path)?;
        let source = Source { path: &path, text: &text };
        let file: File = source.toml()?;
        let samples = file.samples.map(|entry| read_samples(entry, source)).transpose()?;
        let derived = read_derived(file.derive, source)?;
        let groups = read_groups(file.group, source)?;
        let placebos = read_placebos(file.placebo, file.runs.as_deref(), source)?;
        let mut causes = file.cause;
        causes.extend(shared_causes(folder)?);
        // Placebos of an experiment without runs of its own are in another folder.
        let known = file.runs.is_none().then_some(placebos.as_slice());
        let simulators = Simulators { folder, of_all: file.simulator, files: BTreeMap::new() };
        let claims = Claims { source, causes: &causes, placebos: known, simulators };
        let claims = claims.read(file.claim)?;
        check_files(folder, file.kind, file.runs.is_some())?;
        let reference = Reference::load(&folder.join("reference.csv"))?;
        check_variants(folder, &reference)?;
        let name = |path: Option<&Path>| {
            path.and_then(Path::file_name).map(|n| n.to_string_lossy().into_owned())
        };
        Ok(Experiment {
            id: name(Some(folder)).unwrap_or_default(),
            paper: name(folder.parent()).unwrap_or_default(),
            reference,
            releases: releases(folder)
                .map_err(|e| LabError::file(folder, e, "check that it can be read"))?,
            folder: folder.to_owned(),
            is_built_in: false,
            title: file.title,
            figure: file.figure,
            says: file.says,
            figures: file.figures,
            kind: file.kind,
            runs_of: file.runs,
            counts_incomplete: file.counts_incomplete,
            samples,
            derived,
            groups,
            placebos,
            quick: placebo::settings(file.quick),
            claims,
        })
    }

    /// Its variants with their files, the one that follows the paper first: `scenario` and
    /// `packaged` as far as they exist, each that the reference names, and those of releases.
    pub fn variants(&self) -> Vec<(&str, PathBuf)> {
        let file = |name| (name, self.folder.join(format!("{name}.toml")));
        let mut all = Vec::from([SCENARIO, PACKAGED].map(file));
        let further = further_variants(&self.reference);
        let is_new = |name: &&str| !further.contains(name);
        let releases: Vec<_> = self.releases.iter().map(String::as_str).filter(is_new).collect();
        all.extend(further.iter().copied().chain(releases).map(file));
        all.retain(|(_, path)| self.runs_of.is_none() && path.is_file());
        all
    }

    /// The sampling of the run with this seed, if it records time series: for `samples.csv`, or for
    /// a column derived from it. `seeds` are those of its point.
    pub(crate) fn sampling(&self, seeds: &[u64], seed: u64) -> Option<Sampling> {
        let samples = self.samples?;
        let is_kept = seeds.iter().take(samples.seeds).any(|own| *own == seed);
        let is_needed = is_kept || self.derived.iter().any(Derive::needs_series);
        is_needed.then_some(samples.sampling)
    }

    pub(crate) fn is_named(&self, name: &str) -> bool {
        let pattern = wildmatch::WildMatch::new(name);
        let is_paper = self.paper == name || self.paper.split('-').next() == Some(name);
        let mut names = self.figures.iter().chain([&self.id]);
        name == "all" || is_paper || names.any(|own| pattern.matches(own))
    }
}

/// Fails if an experiment with runs of its own lacks the file that says what runs.
fn check_files(folder: &Path, kind: Kind, has_runs_of_another: bool) -> Result<(), LabError> {
    let needed = match kind {
        Kind::Simulated => "scenario.toml",
        Kind::Overlay => OVERLAY_FILE,
        Kind::Realtime => return Ok(()),
    };
    if has_runs_of_another || folder.join(needed).is_file() {
        return Ok(());
    }
    let remedy = "write one, or name the experiment whose runs it uses: `runs = \"ID\"`";
    Err(LabError::file(folder, format!("no {needed}"), remedy))
}

/// Fails if the reference names a variant that has no scenario.
fn check_variants(folder: &Path, reference: &Reference) -> Result<(), LabError> {
    for variant in further_variants(reference) {
        let file = format!("{variant}.toml");
        if file.contains(['/', '\\']) || !folder.join(&file).is_file() {
            let what = format!("the variant `{variant}` has no scenario");
            let remedy = format!("write {file}, or name `{SCENARIO}` or `{PACKAGED}`");
            return Err(LabError::file(&folder.join("reference.csv"), what, remedy));
        }
    }
    Ok(())
}

/// The means to read the claims of an experiment.
struct Claims<'a> {
    source: Source<'a>,
    causes: &'a [Cause],
    /// The placebos that claims may name; `None` if they are those of another experiment.
    placebos: Option<&'a [Placebo]>,
    simulators: Simulators<'a>,
}

impl Claims<'_> {
    fn read(mut self, entries: Vec<toml::Spanned<ClaimEntry>>) -> Result<Vec<Claim>, LabError> {
        let mut claims: Vec<Claim> = Vec::new();
        for entry in entries {
            let at = entry.span();
            let claim = self.one(entry)?;
            if claims.iter().any(|other| other.id == claim.id) {
                let what = format!("a second claim `{}`", claim.id);
                return Err(self.source.error(Some(at), what, "give each claim an id of its own"));
            }
            claims.push(claim);
        }
        Ok(claims)
    }

    fn one(&mut self, entry: toml::Spanned<ClaimEntry>) -> Result<Claim, LabError> {
        let (source, at) = (self.source, entry.span());
        let entry = entry.into_inner();
        let written = entry.simulator();
        let mut claim = Claim::new(entry, self.causes).map_err(|what| {
            source.error(Some(at.clone()), what, "see \"Measures\" in docs/laboratory.md")
        })?;
        claim.simulator = self.simulators.of(written.as_ref()).map_err(|what| {
            source.error(Some(at.clone()), what, "see \"Claims\" in docs/laboratory.md")
        })?;
        let named = claim.placebo.as_deref().filter(|name| *name != placebo::NONE);
        if let Some((name, placebos)) = named.zip(self.placebos)
            && claim.placebo_among(placebos).is_none()
        {
            let what = format!("claim `{}`: no [[placebo]] has the id `{name}`", claim.id);
            return Err(source.error(Some(at), what, "write one, or `placebo = \"none\"`"));
        }
        Ok(claim)
    }
}

fn read_derived(
    entries: Vec<toml::Spanned<DeriveEntry>>,
    source: Source<'_>,
) -> Result<Vec<Derive>, LabError> {
    let derived = entries.into_iter().map(|entry| {
        let at = entry.span();
        let derive = Derive::new(entry.into_inner());
        derive.map_err(|what| {
            source.error(Some(at), what, "see \"Derived columns\" in docs/laboratory.md")
        })
    });
    let derived = derived.collect::<Result<Vec<_>, _>>()?;
    check_derived(&derived).map_err(|what| {
        source.error(None, what, "columns are computed in the order of the file")
    })?;
    Ok(derived)
}

fn read_groups(
    entries: Vec<toml::Spanned<GroupEntry>>,
    source: Source<'_>,
) -> Result<Vec<Group>, LabError> {
    let groups = entries.into_iter().map(|entry| {
        let at = entry.span();
        let group = Group::new(entry.into_inner());
        group.map_err(|what| source.error(Some(at), what, "see \"Groups\" in docs/laboratory.md"))
    });
    groups.collect()
}

/// The files `release-NAME.toml` of a folder, without the extension, in the order of their names.
fn releases(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if let Some(stem) = name.strip_suffix(".toml")
            && name.starts_with(RELEASE)
        {
            found.push(stem.to_owned());
        }
    }
    found.sort();
    Ok(found)
}

/// Further variants, besides `scenario` and `packaged`, that the reference names.
fn further_variants(reference: &Reference) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for variant in reference.points.iter().filter_map(|point| point.variant.as_deref()) {
        if ![SCENARIO, PACKAGED].contains(&variant) && !found.contains(&variant) {
            found.push(variant);
        }
    }
    found
}

/// The causes in the root of the experiments; none without the file.
fn shared_causes(folder: &Path) -> Result<Vec<Cause>, LabError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Causes {
        cause: Vec<Cause>,
    }
    let file = folder.parent().and_then(Path::parent).map(|root| root.join(CAUSES_FILE));
    let Some(path) = file.filter(|path| path.is_file()) else { return Ok(Vec::new()) };
    let text = read(&path)?;
    Ok(Source { path: &path, text: &text }.toml::<Causes>()?.cause)
}

/// The papers' own simulators of an experiment's claims.
struct Simulators<'a> {
    folder: &'a Path,
    /// The one of claims that name none.
    of_all: Option<SimulatorEntry>,
    /// The files that were read.
    files: BTreeMap<String, Arc<Reference>>,
}

impl Simulators<'_> {
    fn of(&mut self, claim: Option<&SimulatorEntry>) -> Result<Option<Simulator>, String> {
        let Simulators { folder, of_all, files } = self;
        let mut load = |name: &str| {
            if let Some(known) = files.get(name) {
                return Ok(Arc::clone(known));
            }
            let path = folder.join(name);
            if !path.is_file() {
                return Err(format!("`{name}` of the simulator is not there"));
            }
            let read = Arc::new(Reference::load(&path).map_err(|error| error.to_string())?);
            files.insert(name.to_owned(), Arc::clone(&read));
            Ok(read)
        };
        Simulator::new(claim, of_all.as_ref(), &mut load)
    }
}

fn read_placebos(
    entries: Vec<toml::Spanned<PlaceboEntry>>,
    runs_of: Option<&str>,
    source: Source<'_>,
) -> Result<Vec<Placebo>, LabError> {
    let mut placebos: Vec<Placebo> = Vec::new();
    for entry in entries {
        let at = entry.span();
        let wrong = |what: String| {
            source.error(Some(at.clone()), what, "see \"Placebos\" in docs/laboratory.md")
        };
        if let Some(other) = runs_of {
            return Err(wrong(format!("the runs are those of `{other}`: write the placebo there")));
        }
        let placebo = Placebo::new(entry.into_inner()).map_err(wrong)?;
        if placebos.iter().any(|other| other.id == placebo.id) {
            return Err(wrong(format!("a second placebo `{}`", placebo.id)));
        }
        placebos.push(placebo);
    }
    Ok(placebos)
}

fn read_samples(
    entry: toml::Spanned<SamplesEntry>,
    source: Source<'_>,
) -> Result<Samples, LabError> {
    let at = entry.span();
    let entry = entry.into_inner();
    let bad = |what: &dyn std::fmt::Display| {
        source.error(Some(at.clone()), what, "write `every = \"100 ms\"` or `every = \"change\"`")
    };
    let times = match entry.every.as_str() {
        "change" => SampleTimes::OnChange,
        every => {
            let every = manypath_proto::config::units::parse_duration(every);
            let every = every.map_err(|error| bad(&error))?;
            if every.is_zero() {
                return Err(bad(&"samples every 0 s"));
            }
            SampleTimes::Every(every)
        }
    };
    if entry.most > MOST_SAMPLES {
        let what = format!("`most = {}`: more than {MOST_SAMPLES} samples of a run", entry.most);
        return Err(source.error(Some(at), what, "keep fewer: every run holds so many in memory"));
    }
    Ok(Samples { sampling: Sampling { times, most: entry.most }, seeds: entry.seeds })
}

/// Refuses a second column of a name, and what reads a column that is computed only later.
fn check_derived(derived: &[Derive]) -> Result<(), String> {
    for (number, derive) in derived.iter().enumerate() {
        let name = &derive.name;
        if derived[..number].iter().any(|other| other.name == *name) {
            return Err(format!("a second derived column `{name}`"));
        }
        if let Some(later) = derived[number..].iter().find(|later| derive.reads(&later.name)) {
            return Err(format!("`{name}` is computed before `{}`, which it reads", later.name));
        }
    }
    Ok(())
}

fn check_names(all: &[Experiment], root: &Path) -> Result<(), LabError> {
    let owners = |id: &str| {
        let is_owner = |e: &&Experiment| e.id == id || e.figures.iter().any(|f| f == id);
        all.iter().filter(is_owner).count()
    };
    for experiment in all {
        for name in experiment.figures.iter().chain([&experiment.id]) {
            if owners(name) > 1 {
                let what = format!("two experiments are named `{name}`");
                return Err(LabError::file(root, what, "rename one of them"));
            }
        }
        if let Some(other) = &experiment.runs_of {
            let owner = all.iter().find(|e| e.id == *other && e.runs_of.is_none());
            let placebos = owner.map_or(&[][..], |owner| &owner.placebos);
            let is_unknown = |claim: &&Claim| {
                let name = claim.placebo.as_deref().filter(|name| *name != placebo::NONE);
                name.is_some() && claim.placebo_among(placebos).is_none()
            };
            if let Some(claim) = experiment.claims.iter().find(is_unknown) {
                let what = format!("claim `{}`: `{other}` has no such placebo", claim.id);
                let remedy = "name one of those, or `placebo = \"none\"`";
                return Err(LabError::file(&experiment.folder.join("claims.toml"), what, remedy));
            }
            if owner.is_none() {
                let what = format!("`runs = \"{other}\"` names no experiment with runs of its own");
                let path = experiment.folder.join("claims.toml");
                return Err(LabError::file(&path, what, "name the folder of one that has them"));
            }
        }
    }
    Ok(())
}

pub(crate) fn read(path: &Path) -> Result<String, LabError> {
    let remedy = "check that it exists and may be read";
    std::fs::read_to_string(path).map_err(|error| LabError::file(path, error, remedy))
}

/// The folders in a folder, by name; those whose names begin with a dot are left out.
fn folders(root: &Path) -> Result<Vec<PathBuf>, LabError> {
    let bad = |error| LabError::file(root, error, "name a folder with `--experiments`");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root).map_err(bad)? {
        let path = entry.map_err(bad)?.path();
        let is_hidden = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with('.');
        if path.is_dir() && !path.file_name().is_some_and(is_hidden) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn nearest() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    here.ancestors().map(|dir| dir.join("experiments")).find(|dir| dir.is_dir())
}

fn unpack() -> Result<(PathBuf, tempfile::TempDir), LabError> {
    let remedy = "make room for temporary files, or name a folder with `--experiments`";
    let bad = |error| LabError::file(&std::env::temp_dir(), error, remedy);
    let folder = tempfile::Builder::new().prefix("manypath-experiments-").tempdir().map_err(bad)?;
    EMBEDDED.extract(folder.path()).map_err(bad)?;
    Ok((folder.path().to_owned(), folder))
}

#[cfg(test)]
mod tests;
