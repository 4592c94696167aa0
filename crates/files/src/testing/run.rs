//! A transfer onto a simulated disk that fails, and the invariants that must hold.
//!
//! The sender's disk fails too. Frames are encoded and decoded, as on a working network. The
//! invariants:
//!
//! 1. No file under a final name is ever wrong: it is the complete file that was sent, or the one
//!    that was there before.
//! 2. A file that the sender was told is stored is stored, also after a loss of power.
//! 3. After the next start nothing unfinished is left.
//! 4. When the files are sent again onto a working disk, all are stored.
//! 5. Nothing is refused without a reason, such as damage in transit, and no other receiver that
//!    starts in the same directory removes a file that this one is writing.
//!
//! A disk that reports content as durable when it is not, and then loses power, can break the first
//! two, and no program can prevent that. Such runs are counted and must keep the other rules.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use manypath_proto::Rng;
use tokio::sync::mpsc;

use super::disk::SimDisk;
use super::faults::{Crash, Faults};
use crate::frame::{ClientFrame, FileHeader, Kind, Outcome, ServerFrame};
use crate::part::is_part_name;
use crate::relative::RelativePath;
use crate::sink::{Done, Store, Work, Writer};
use crate::source::{Entry, Piece, Unwanted, read_all};

/// Where the receiver's files go.
const DIR: &str = "/in/dir";
/// Content of a message.
const MESSAGE: usize = 700;
/// Pieces read ahead; more than a run has.
const PIECES: usize = 10_000;

/// Counts of events in one run, or in many.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// Runs.
    pub runs: u64,
    /// Those in which the receiver was killed.
    pub kills: u64,
    /// Those in which the power was lost.
    pub power_losses: u64,
    /// Files that the sender was told are stored, before the crash if there was one.
    pub stored: u64,
    /// Those it was told are not.
    pub refused: u64,
    /// Unfinished files that the next start removed.
    pub cleaned: u64,
    /// Runs in which a disk that lies cost a file.
    pub lies_that_cost: u64,
    /// Operations of the receiver on its disk.
    pub operations: u64,
}

impl Outcomes {
    /// Adds those of another run.
    pub fn add(&mut self, other: &Outcomes) {
        self.runs += other.runs;
        self.kills += other.kills;
        self.power_losses += other.power_losses;
        self.stored += other.stored;
        self.refused += other.refused;
        self.cleaned += other.cleaned;
        self.lies_that_cost += other.lies_that_cost;
        self.operations += other.operations;
    }
}

/// The files that are sent and those that were there before.
struct Case {
    entries: Vec<Entry>,
    sent: BTreeMap<String, Vec<u8>>,
    old: BTreeMap<String, Vec<u8>>,
    overwrite: bool,
}

impl Case {
    fn new(rng: &mut Rng, source: &SimDisk, target: &SimDisk) -> Case {
        const NAMES: [&str; 8] = ["a", "b", "d/a", "d/b", "d/e/a", "d/e/f/a", "g/a", "long name"];
        let overwrite = rng.chance(0.5);
        let (mut entries, mut sent, mut old) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        target.put_dir(Path::new(DIR));
        for name in NAMES.iter().filter(|_| rng.chance(0.6)).collect::<Vec<_>>() {
            let index = entries.len() as u32;
            let relative = RelativePath::from_bytes(name.as_bytes()).expect("a plain name");
            let header = FileHeader {
                index,
                kind: Kind::Directory,
                size: 0,
                mode: Some(0o644),
                modified: Some((1_000_000, 1)),
                name: relative,
            };
            if name.contains('/') && rng.chance(0.3) {
                let (dir, _) = name.rsplit_once('/').expect("it contains one");
                let name = RelativePath::from_bytes(dir.as_bytes()).expect("a plain name");
                entries
                    .push(Entry { source: PathBuf::new(), header: FileHeader { name, ..header } });
                continue;
            }
            let content = content(rng);
            let from = Path::new("/out").join(name);
            source.put(&from, &content);
            let place = format!("{DIR}/{name}");
            if rng.chance(0.3) {
                let before = self::content(rng);
                target.put(Path::new(&place), &before);
                old.insert(place.clone(), before);
            }
            let header = FileHeader { kind: Kind::File, size: content.len() as u64, ..header };
            sent.insert(place, content);
            entries.push(Entry { source: from, header });
        }
        Case { entries, sent, old, overwrite }
    }

    /// A receiver's store on `disk`.
    fn store(&self, disk: &SimDisk) -> Store<SimDisk> {
        Store {
            disk: disk.clone(),
            dir: DIR.into(),
            overwrite: self.overwrite,
            hidden: false,
            max_size: None,
            unnamed: true,
        }
    }

    /// Rule 1; the first file that breaks it.
    fn wrong(&self, disk: &SimDisk) -> Option<String> {
        let files = disk.files();
        let mut finals = files.iter().filter(|(path, _)| !is_part(path));
        let wrong = finals.find(|(path, content)| {
            let (sent, old) = (self.sent.get(*path), self.old.get(*path));
            let may_be_sent = old.is_none() || self.overwrite;
            !(may_be_sent && sent == Some(*content) || old == Some(*content))
        });
        let missing = self.old.keys().find(|path| !files.contains_key(*path));
        wrong
            .map(|(path, content)| {
                let (sent, old) = (self.sent.get(path), self.old.get(path));
                format!(
                    "{path} has {} bytes, neither the {:?} sent nor the {:?} before",
                    content.len(),
                    sent.map(Vec::len),
                    old.map(Vec::len)
                )
            })
            .or_else(|| missing.map(|path| format!("{path} was there and is gone")))
    }
}

fn is_part(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(is_part_name)
}

/// Nothing, little, or some messages.
fn content(rng: &mut Rng) -> Vec<u8> {
    let limit = [1, 40, 2_000, 9_000][rng.below(4) as usize];
    let mut content = vec![0; rng.below(limit) as usize];
    rng.fill(&mut content);
    content
}

fn faults(rng: &mut Rng, size: u64) -> Faults {
    Faults {
        error: [0.0, 0.0, 0.005, 0.05][rng.below(4) as usize],
        short_write: [0.0, 0.3][rng.below(2) as usize],
        capacity: match rng.below(4) {
            0 => rng.below(2 * size + 1),
            _ => u64::MAX,
        },
        lies: rng.chance(0.1),
        ordered_names: rng.chance(0.5),
        unnamed: rng.chance(0.7),
        neighbours: ([0.0, 0.05][rng.below(2) as usize], DIR.into()),
    }
}

/// The receiver's input, as the network delivers it.
fn work(case: &Case, source: &SimDisk) -> Vec<Work> {
    work_damaged(case, source, |_| {})
}

/// The same, with content that is damaged in transit.
fn work_damaged(case: &Case, source: &SimDisk, mut damage: impl FnMut(&mut Vec<u8>)) -> Vec<Work> {
    let (pieces_tx, mut pieces) = mpsc::channel(PIECES);
    read_all(source, &case.entries, MESSAGE, &Unwanted::none(), &pieces_tx);
    drop(pieces_tx);
    let mut work = Vec::new();
    while let Ok(piece) = pieces.try_recv() {
        let frame = match piece {
            Piece::Content(bytes) => {
                let mut bytes = bytes.to_vec();
                damage(&mut bytes);
                work.push(Work::Content(vec![bytes.into()]));
                continue;
            }
            Piece::Begin(index) => ClientFrame::File(case.entries[index as usize].header.clone()),
            Piece::End { index, result } => {
                ClientFrame::End { index, sha256: result.ok().flatten() }
            }
        };
        match ClientFrame::decode(&frame.encode()) {
            Ok(ClientFrame::File(header)) => work.push(Work::Begin(header)),
            Ok(ClientFrame::End { sha256, .. }) => work.push(Work::End(sha256)),
            other => panic!("{frame:?} reads as {other:?}"),
        }
    }
    work
}

/// Records the frames for the sender, decoded as the sender does.
fn tell(done: Vec<Done>, told: &mut BTreeMap<u32, Outcome>) {
    for Done { status, .. } in done {
        let Ok(ServerFrame::Status(status)) =
            ServerFrame::decode(&ServerFrame::Status(status).encode())
        else {
            panic!("a status does not read back")
        };
        let before = told.insert(status.index, status.outcome);
        assert_eq!(before, None, "one status for each entry");
    }
}

/// Writes everything; flushes now and then, as a slow network makes it.
fn write(writer: &mut Writer<SimDisk>, work: Vec<Work>, rng: &mut Rng) -> BTreeMap<u32, Outcome> {
    let mut told = BTreeMap::new();
    let disk = |writer: &Writer<SimDisk>| writer.disk().crashed().is_some();
    for item in work {
        let item = match item {
            // Content comes in pieces of its own.
            Work::Content(pieces) => {
                let split = |bytes: Bytes| {
                    let middle = bytes.len() / 2;
                    [bytes.slice(..middle), bytes.slice(middle..)]
                };
                Work::Content(pieces.into_iter().flat_map(split).collect())
            }
            other => other,
        };
        let mut done = writer.handle(item);
        if rng.chance(0.1) {
            done.extend(writer.flush());
        }
        if disk(writer) {
            return told; // what it would say is not heard
        }
        tell(done, &mut told);
    }
    let done = writer.flush();
    if !disk(writer) {
        tell(done, &mut told);
    }
    told
}

/// A run with this seed. `Err` says which rule it breaks.
pub fn run(seed: u64) -> Result<Outcomes, String> {
    let rng = Rng::from_number(seed);
    let mut choices = rng.fork("choices");
    let source = SimDisk::new(rng.fork("source"), {
        Faults { error: [0.0, 0.02][choices.below(2) as usize], ..Faults::none() }
    });
    // The old files take no faults to be there.
    let mut faults = faults(&mut choices, 20_000);
    let lies = faults.lies;
    if choices.chance(0.3) {
        faults = Faults { lies, ..Faults::none() };
    }
    let is_faultless = faults.error == 0.0 && faults.capacity == u64::MAX;
    let disk = SimDisk::new(rng.fork("disk"), faults);
    let case = Case::new(&mut choices, &source, &disk);
    let mut outcomes = Outcomes { runs: 1, ..Outcomes::default() };
    let planned = [None, Some(Crash::Kill), Some(Crash::Power)][choices.below(3) as usize];
    if let Some(crash) = planned {
        // Early, late, or never.
        let limit = 1 << choices.below(10);
        disk.crash_after(choices.below(limit), crash);
    }

    // The first transfer.
    let mut store = case.store(&disk);
    let mut told = BTreeMap::new();
    let damage = choices.chance(0.2);
    let started = store.start().is_ok();
    if started {
        let mut writer = store.writer();
        let work = work_damaged(&case, &source, |bytes| {
            if damage && choices.chance(0.1) {
                bytes[0] ^= 1;
            }
        });
        told = write(&mut writer, work, &mut choices);
    }
    outcomes.operations = disk.operations();
    outcomes.stored = told.values().filter(|outcome| **outcome == Outcome::Stored).count() as u64;
    outcomes.refused = told.len() as u64 - outcomes.stored;
    if let Some(wrong) = case.wrong(&disk) {
        return Err(format!("rule 1, before any crash: {wrong}"));
    }
    if disk.crashed().is_none() && started && told.len() != case.entries.len() {
        return Err(format!("{} entries, {} statuses", case.entries.len(), told.len()));
    }

    let is_refused = |(index, outcome): (&u32, &Outcome)| {
        let name = &case.entries[*index as usize].header.name;
        match outcome {
            Outcome::Stored | Outcome::Abandoned => None,
            Outcome::Exists if case.old.contains_key(&format!("{DIR}/{name}")) => None,
            Outcome::DigestMismatch if damage => None,
            other => Some(format!("rule 5: {name} is {other:?}")),
        }
    };
    if is_faultless && let Some(refused) = told.iter().find_map(is_refused) {
        return Err(refused);
    }

    // The crash, if only now: then all that was said must hold.
    let crash = planned.unwrap_or(Crash::Power);
    match crash {
        Crash::Kill => outcomes.kills = 1,
        Crash::Power => outcomes.power_losses = 1,
    }
    let disk = disk.restart(crash);
    let is_lost_to_lies = lies && crash == Crash::Power;
    let broken = case.wrong(&disk).map(|wrong| format!("rule 1, after {crash:?}: {wrong}"));
    let broken = broken.or_else(|| {
        lost(&case, &disk, &told).map(|path| format!("rule 2, after {crash:?}: {path} is lost"))
    });
    match broken {
        Some(_) if is_lost_to_lies => outcomes.lies_that_cost = 1,
        Some(broken) => return Err(broken),
        None => {}
    }

    // The next start, and everything again.
    let mut store = case.store(&disk);
    outcomes.cleaned = store.start().map_err(|e| format!("the next start: {e}"))? as u64;
    if let Some(left) = disk.files().into_keys().find(|path| is_part(path)) {
        return Err(format!("rule 3: {left} is left"));
    }
    if outcomes.lies_that_cost > 0 {
        return Ok(outcomes);
    }
    let before = disk.files();
    let source = source.restart(Crash::Kill);
    let mut writer = store.writer();
    let again = write(&mut writer, work(&case, &source), &mut choices);
    drop(writer);
    for entry in &case.entries {
        let (index, header) = (entry.header.index, &entry.header);
        let is_kept = header.kind == Kind::File
            && !case.overwrite
            && before.contains_key(&format!("{DIR}/{}", header.name));
        let expected = if is_kept { Outcome::Exists } else { Outcome::Stored };
        if again.get(&index) != Some(&expected) {
            return Err(format!(
                "rule 4: {} is {:?}, not {expected:?}",
                header.name,
                again.get(&index)
            ));
        }
    }
    let disk = disk.restart(Crash::Power);
    match case.wrong(&disk).or_else(|| lost(&case, &disk, &again)) {
        // What it said of the first transfer was as wrong as before, if no power was lost then.
        Some(_) if lies => outcomes.lies_that_cost = 1,
        Some(wrong) => return Err(format!("after all is well and a loss of power: {wrong}")),
        None => {}
    }
    Ok(outcomes)
}

/// Rule 2; the first file that breaks it.
fn lost(case: &Case, disk: &SimDisk, told: &BTreeMap<u32, Outcome>) -> Option<String> {
    let files = disk.files();
    let stored = case.entries.iter().filter(|entry| {
        entry.header.kind == Kind::File && told.get(&entry.header.index) == Some(&Outcome::Stored)
    });
    let mut paths = stored.map(|entry| format!("{DIR}/{}", entry.header.name));
    paths.find(|path| files.get(path) != case.sent.get(path))
}
