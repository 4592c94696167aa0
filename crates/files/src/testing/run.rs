//! A transfer onto a simulated disk that fails, and the invariants that must hold.
//!
//! The sender's disk fails too. Frames are encoded and decoded, as on a working network. The
//! invariants:
//!
//! 1. No file under a final name is ever wrong: it is the complete file that was sent, or the one
//!    that was there before.
//! 2. Once the sender was told that a file is stored, it is there, even after a loss of power.
//! 3. After the next start the only unfinished files left are those that the next transfer can
//!    resume, and after that transfer there are none.
//! 4. When the files are sent again onto a working disk, all are stored. Content that is there
//!    already is not sent again: neither stored files nor the beginning of a file that a kill
//!    interrupted.
//! 5. Nothing is refused without a reason, such as damage in transit, and no other receiver that
//!    starts in the same directory removes a file that this one is writing.
//!
//! A disk that reports content as durable when it is not, and then loses power, can break the first
//! two, and no program can prevent that. The same holds if a file could neither be made durable nor
//! removed, and a later program resumed it. Such runs are counted and must keep the other rules.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use manypath_proto::Rng;
use tokio::sync::mpsc;

use super::disk::SimDisk;
use super::faults::{Crash, Faults};
use crate::frame::{ClientFrame, FileHeader, Kind, Outcome, SIZE_UNKNOWN, ServerFrame};
use crate::part::{is_kept_name, is_part_name, kept_path};
use crate::relative::RelativePath;
use crate::sink::{Done, Holders, Said, Store, Work, Writer};
use crate::source::{Answer, Entry, Piece, Unwanted, Wishes, read_all};

/// Where the receiver's files go.
const DIR: &str = "/in/dir";
/// Content of a message.
const MESSAGE: usize = 700;
/// Pieces read ahead; more than a run has.
const PIECES: usize = 10_000;
/// Files of at least this size, in bytes, are kept when a transfer is interrupted.
const KEEP_FROM: u64 = 1_000;

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
    /// Bytes of unfinished files that the next transfer went on from.
    pub resumed: u64,
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
        self.resumed += other.resumed;
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
                entries.push(Entry {
                    source: PathBuf::new().into(),
                    identity: None,
                    header: FileHeader { name, ..header },
                });
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
            let size = if rng.chance(0.1) { SIZE_UNKNOWN } else { content.len() as u64 };
            let header = FileHeader { kind: Kind::File, size, ..header };
            sent.insert(place, content);
            entries.push(Entry { source: from.into(), identity: None, header });
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
            keep_from: Some(KEEP_FROM),
            holders: Holders::default(),
        }
    }

    /// The most bytes that need to be sent if the receiver has the files `there`, and the bytes of
    /// unfinished files that need not be.
    fn missing(&self, there: &BTreeMap<String, Vec<u8>>) -> (u64, u64) {
        let (mut missing, mut known) = (0, 0);
        for Entry { header, .. } in self.entries.iter().filter(|e| e.header.kind == Kind::File) {
            let place = format!("{DIR}/{}", header.name);
            let sent = &self.sent[&place];
            if header.known_size().is_none() {
                missing += sent.len() as u64;
                continue;
            }
            if there.get(&place) == Some(sent) {
                continue;
            }
            let part = kept_path(Path::new(DIR), &header.name).display().to_string();
            let part = there.get(&part).filter(|part| sent.starts_with(part));
            let is_resumed = self.overwrite || !there.contains_key(&place);
            let length = if is_resumed { part.map_or(0, Vec::len) as u64 } else { 0 };
            (missing, known) = (missing + header.size - length, known + length);
        }
        (missing, known)
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

fn is_kept(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(is_kept_name)
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
        refused_characters: "",
        neighbours: ([0.0, 0.05][rng.below(2) as usize], DIR.into()),
    }
}

/// A transfer as it goes on.
struct Transfer<'a> {
    case: &'a Case,
    writer: Writer<SimDisk>,
    rng: &'a mut Rng,
    /// The statuses that the sender hears, decoded as it does; none from a crash on.
    told: Statuses,
    answers: mpsc::Sender<Answer>,
    /// Bytes of content that were sent.
    content: u64,
}

impl Transfer<'_> {
    /// Does a piece of work; flushes now and then, as a slow network makes it.
    fn work(&mut self, work: Work) {
        let mut said = Vec::new();
        let mut say = |what: Said| said.push(what);
        self.writer.handle(work, &mut say);
        if self.rng.chance(0.1) {
            self.writer.flush(&mut say);
        }
        self.hear(said);
    }

    fn end(&mut self) {
        let mut said = Vec::new();
        self.writer.end(&mut |what| said.push(what));
        self.hear(said);
    }

    fn has_crashed(&self) -> bool {
        self.writer.disk().crashed().is_some()
    }

    fn hear(&mut self, said: Vec<Said>) {
        if self.has_crashed() {
            return;
        }
        for said in said {
            let frame = match said {
                Said::Ready(ready) => ServerFrame::Ready(ready),
                Said::Working => ServerFrame::Working,
                Said::Done(Done { status, .. }) => ServerFrame::Status(status),
                Said::Notice(_) => continue,
                Said::Unnamed(unnamed) => panic!("{unnamed:?}: all names are plain"),
            };
            let answer = match ServerFrame::decode(&frame.encode()) {
                Ok(ServerFrame::Ready(ready)) => Answer::Ready(ready),
                Ok(ServerFrame::Status(status)) => {
                    let before = self.told.insert(status.index, status.outcome);
                    assert_eq!(before, None, "one status for each entry");
                    Answer::Refused(status.index)
                }
                other => panic!("{frame:?} reads as {other:?}"),
            };
            // Once all is read nobody asks.
            let _ = self.answers.try_send(answer);
        }
    }
}

/// Sends everything to a receiver. What the sender was told, and how many bytes of content it sent.
fn transfer(
    case: &Case,
    source: &SimDisk,
    store: &Store<SimDisk>,
    rng: &mut Rng,
    damages: bool,
) -> (Statuses, u64) {
    let (answers, heard) = mpsc::channel(PIECES);
    let (told, writer) = (Statuses::new(), store.writer(Arc::default()));
    let mut transfer = Transfer { case, writer, rng, told, answers, content: 0 };
    for entry in &case.entries {
        let frame = ClientFrame::File(entry.header.clone());
        let Ok(ClientFrame::File(header)) = ClientFrame::decode(&frame.encode()) else {
            panic!("{frame:?} does not read back")
        };
        transfer.work(Work::Announce(header));
        if transfer.has_crashed() {
            return (transfer.told, 0);
        }
    }
    let (pieces_tx, mut pieces) = mpsc::channel(PIECES);
    let mut wishes = Wishes { answers: heard, unwanted: Unwanted::none() };
    read_all(source, &case.entries, MESSAGE, &mut wishes, &pieces_tx);
    drop(pieces_tx);
    while let Ok(piece) = pieces.try_recv() {
        transfer.piece(piece, damages);
        if transfer.has_crashed() {
            return (transfer.told, transfer.content);
        }
    }
    transfer.end();
    (transfer.told, transfer.content)
}

impl Transfer<'_> {
    fn piece(&mut self, piece: Piece, damages: bool) {
        let frame = match piece {
            // They were.
            Piece::Announce(index) => {
                assert!((index as usize) < self.case.entries.len());
                return;
            }
            Piece::Working => return,
            Piece::Content(bytes) => {
                let mut bytes = bytes.to_vec();
                if damages && self.rng.chance(0.1) {
                    bytes[0] ^= 1;
                }
                self.content += bytes.len() as u64;
                // Content comes in pieces of its own.
                let bytes = Bytes::from(bytes);
                let middle = bytes.len() / 2;
                return self
                    .work(Work::Content(vec![bytes.slice(..middle), bytes.slice(middle..)]));
            }
            Piece::Begin { index, offset } => ClientFrame::Begin { index, offset },
            Piece::End { index, result } => {
                ClientFrame::End { index, sha256: result.ok().flatten() }
            }
        };
        match ClientFrame::decode(&frame.encode()) {
            Ok(ClientFrame::Begin { index, offset }) => self.work(Work::Begin { index, offset }),
            Ok(ClientFrame::End { sha256, .. }) => self.work(Work::End(sha256)),
            other => panic!("{frame:?} reads as {other:?}"),
        }
    }
}

/// A run with this seed. `Err` says which rule it breaks.
pub fn run(seed: u64) -> Result<Outcomes, String> {
    let mut run = Run::new(seed);
    let told = run.first_transfer()?;
    let crash = run.crash(&told)?;
    let store = run.next_start()?;
    if run.outcomes.lies_that_cost == 0 {
        let told = run.second_transfer(&store, crash)?;
        run.lose_power(&told)?;
    }
    Ok(run.outcomes)
}

/// The statuses of entries that the sender was told, by index.
type Statuses = BTreeMap<u32, Outcome>;

/// A run as it goes on.
struct Run {
    choices: Rng,
    case: Case,
    source: SimDisk,
    /// The receiver's disk.
    disk: SimDisk,
    /// The disk reports content as durable when it is not.
    lies: bool,
    /// Operations on the disk do not fail, and it does not fill up.
    is_faultless: bool,
    /// The crash that may come during the first transfer.
    planned: Option<Crash>,
    outcomes: Outcomes,
}

impl Run {
    fn new(seed: u64) -> Run {
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
        let outcomes = Outcomes { runs: 1, ..Outcomes::default() };
        let planned = [None, Some(Crash::Kill), Some(Crash::Power)][choices.below(3) as usize];
        if let Some(crash) = planned {
            // Early, late, or never.
            let limit = 1 << choices.below(10);
            disk.crash_after(choices.below(limit), crash);
        }
        Run { choices, case, source, disk, lies, is_faultless, planned, outcomes }
    }

    /// Sends everything, which the planned crash may interrupt. Checks rules 1 and 5.
    fn first_transfer(&mut self) -> Result<Statuses, String> {
        let mut store = self.case.store(&self.disk);
        let mut told = Statuses::new();
        let damages = self.choices.chance(0.2);
        let started = store.start().is_ok();
        if started {
            (told, _) = transfer(&self.case, &self.source, &store, &mut self.choices, damages);
        }
        let stored = told.values().filter(|outcome| **outcome == Outcome::Stored).count() as u64;
        self.outcomes.operations = self.disk.operations();
        self.outcomes.stored = stored;
        self.outcomes.refused = told.len() as u64 - stored;
        if let Some(wrong) = self.case.wrong(&self.disk) {
            return Err(format!("rule 1, before any crash: {wrong}"));
        }
        let entries = self.case.entries.len();
        if self.disk.crashed().is_none() && started && told.len() != entries {
            return Err(format!("{entries} entries, {} statuses", told.len()));
        }
        if self.is_faultless
            && let Some(refused) = refused(&self.case, &told, damages)
        {
            return Err(refused);
        }
        Ok(told)
    }

    /// Crashes, if the first transfer did not, and keeps what the disk has then. Checks rules 1
    /// and 2.
    fn crash(&mut self, told: &Statuses) -> Result<Crash, String> {
        let crash = self.planned.unwrap_or(Crash::Power);
        match crash {
            Crash::Kill => self.outcomes.kills = 1,
            Crash::Power => self.outcomes.power_losses = 1,
        }
        self.disk = self.disk.restart(crash);
        let wrong = self.case.wrong(&self.disk);
        let broken = wrong.map(|wrong| format!("rule 1, after {crash:?}: {wrong}")).or_else(|| {
            let path = lost(&self.case, &self.disk, told)?;
            Some(format!("rule 2, after {crash:?}: {path} is lost"))
        });
        if let Some(broken) = broken {
            if !self.lies || crash != Crash::Power {
                return Err(broken);
            }
            self.outcomes.lies_that_cost = 1;
        }
        Ok(crash)
    }

    /// Starts the receiver again. Checks rule 3.
    fn next_start(&mut self) -> Result<Store<SimDisk>, String> {
        let mut store = self.case.store(&self.disk);
        let cleaned = store.start().map_err(|e| format!("the next start: {e}"))?;
        self.outcomes.cleaned = cleaned as u64;
        let files = self.disk.files();
        match files.keys().find(|path| is_part(path) && !is_kept(path)) {
            Some(path) => Err(format!("rule 3: {path} is left")),
            None => Ok(store),
        }
    }

    /// Sends everything again, without faults. Checks rules 3 and 4.
    fn second_transfer(
        &mut self,
        store: &Store<SimDisk>,
        crash: Crash,
    ) -> Result<Statuses, String> {
        let before = self.disk.files();
        let source = self.source.restart(Crash::Kill);
        let (told, content) = transfer(&self.case, &source, store, &mut self.choices, false);
        for entry in &self.case.entries {
            let status = told.get(&entry.header.index);
            let expected = expected_again(&self.case, &entry.header, &before);
            if status != Some(&expected) {
                let name = &entry.header.name;
                return Err(format!("rule 4: {name} is {status:?}, not {expected:?}"));
            }
        }
        let (least, known) = self.case.missing(&before);
        self.outcomes.resumed = known;
        if crash == Crash::Kill && content > least {
            return Err(format!("rule 4: {content} bytes were sent, {least} were missing"));
        }
        if let Some(path) = self.disk.files().into_keys().find(|path| is_part(path))
            && crash == Crash::Kill
        {
            return Err(format!("rule 3: {path} is left after all is well"));
        }
        Ok(told)
    }

    /// Loses power after the second transfer. Checks rules 1 and 2.
    fn lose_power(&mut self, told: &Statuses) -> Result<(), String> {
        let disk = self.disk.restart(Crash::Power);
        match self.case.wrong(&disk).or_else(|| lost(&self.case, &disk, told)) {
            // A file of the first transfer may not be durable yet, if no power was lost then.
            Some(_) if self.lies || disk.is_doubt_lost() => self.outcomes.lies_that_cost = 1,
            Some(wrong) => return Err(format!("after all is well and a loss of power: {wrong}")),
            None => {}
        }
        Ok(())
    }
}

/// Rule 5; the first file that was refused without a reason. `damages`: content may have been
/// damaged in transit.
fn refused(case: &Case, told: &Statuses, damages: bool) -> Option<String> {
    told.iter().find_map(|(index, outcome)| {
        let name = &case.entries[*index as usize].header.name;
        match outcome {
            Outcome::Stored | Outcome::Abandoned => None,
            Outcome::Exists if case.old.contains_key(&format!("{DIR}/{name}")) => None,
            Outcome::DigestMismatch if damages => None,
            other => Some(format!("rule 5: {name} is {other:?}")),
        }
    })
}

/// The status that an entry must get when it is sent again to a directory with the files `before`.
fn expected_again(case: &Case, header: &FileHeader, before: &BTreeMap<String, Vec<u8>>) -> Outcome {
    let place = format!("{DIR}/{}", header.name);
    let is_kept = header.kind == Kind::File && !case.overwrite && before.contains_key(&place);
    // Nobody knows whether content of unknown size is the same.
    let is_same = header.known_size().is_some() && before.get(&place) == case.sent.get(&place);
    if is_kept && !is_same { Outcome::Exists } else { Outcome::Stored }
}

/// Rule 2; the first file that breaks it.
fn lost(case: &Case, disk: &SimDisk, told: &Statuses) -> Option<String> {
    let files = disk.files();
    let stored = case.entries.iter().filter(|entry| {
        entry.header.kind == Kind::File && told.get(&entry.header.index) == Some(&Outcome::Stored)
    });
    let mut paths = stored.map(|entry| format!("{DIR}/{}", entry.header.name));
    paths.find(|path| files.get(path) != case.sent.get(path))
}
