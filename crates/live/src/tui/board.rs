//! The state of a view: the processes and their past, and the user's selection.

use std::collections::BTreeMap;

use crate::figures::{Happened, PathFigures, Process, Sample};

/// Samples kept of a path: ten minutes of the finest.
const SAMPLES_MAX: usize = 6000;
/// Events kept of a process.
const EVENTS_MAX: usize = 500;

/// A key that means something.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// The previous row.
    Up,
    /// The next row.
    Down,
    /// Opens the selected process.
    Enter,
    /// Back to the list of processes.
    Back,
    /// Makes the selected path a backup.
    Backup,
    /// Makes the selected path a normal one.
    Normal,
    /// Changes the time that sparklines show.
    Span,
    /// Closes the view.
    Quit,
    /// Ctrl-C.
    Interrupt,
}

/// The wish behind a key, if it is more than a change of the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// To give a path a rank.
    SetRank {
        /// The process.
        pid: u32,
        /// The association.
        association: u64,
        /// The path.
        path: u16,
        /// Its rank.
        rank: &'static str,
    },
    /// To close the view.
    Quit,
    /// To stop the program.
    Interrupt,
}

/// The state of a view.
#[derive(Clone, Debug, Default)]
pub struct Board {
    /// The view is of another process than this one, of which there may be several.
    pub(super) is_remote: bool,
    pub(super) processes: Vec<Process>,
    pasts: BTreeMap<(u32, u64, u16, String), Vec<Sample>>,
    events: BTreeMap<u32, Vec<Happened>>,
    /// The process that is open, and whether the user opened it.
    pub(super) open: Option<u32>,
    pub(super) row: usize,
    pub(super) is_long: bool,
    /// The outcome of the last deed.
    pub(super) message: Option<String>,
    /// The text while there is no association.
    pub(super) waiting: String,
}

impl Board {
    /// The view of this process; `waiting` is said while it has no association.
    pub fn own(waiting: String) -> Board {
        Board { waiting, ..Board::default() }
    }

    /// The view of other processes.
    pub fn remote() -> Board {
        let waiting = "This process has no association now.".to_owned();
        Board { is_remote: true, waiting, ..Board::default() }
    }

    /// Takes the latest figures: of every process there is, with what is new of its past.
    pub fn update(&mut self, processes: Vec<Process>) {
        let is_there = |pid: &u32| processes.iter().any(|process| process.pid == *pid);
        self.events.retain(|pid, _| is_there(pid));
        let mut pasts = BTreeMap::new();
        for process in &processes {
            let events = self.events.entry(process.pid).or_default();
            let last = events.last().map(|event| event.number);
            let is_new = |event: &&Happened| last.is_none_or(|last| event.number > last);
            events.extend(process.events.iter().filter(is_new).cloned());
            let extra = events.len().saturating_sub(EVENTS_MAX);
            events.drain(..extra);
            for association in &process.associations {
                for path in &association.paths {
                    let key = past_key(process.pid, association.association, path);
                    let mut past = self.pasts.remove(&key).unwrap_or_default();
                    let last = past.last().map_or(0, |sample| sample.at_ms);
                    past.extend(path.samples.iter().filter(|s| s.at_ms > last).copied());
                    let extra = past.len().saturating_sub(SAMPLES_MAX);
                    past.drain(..extra);
                    pasts.insert(key, past);
                }
            }
        }
        self.pasts = pasts;
        self.processes = processes;
        if self.open.is_some_and(|pid| self.process(pid).is_none()) {
            self.open = None;
            self.row = 0;
        }
        if let (None, [only]) = (self.open, &*self.processes) {
            self.open = Some(only.pid);
        }
        self.row = self.row.min(self.rows().saturating_sub(1));
    }

    /// The instant since which a process is asked for its past.
    pub fn since(&self, pid: u32) -> Option<u64> {
        self.process(pid).map(|process| process.now_ms)
    }

    /// Tells the user how a deed ended.
    pub fn tell(&mut self, message: String) {
        self.message = Some(message);
    }

    /// A key was pressed.
    pub fn press(&mut self, key: Key) -> Option<Deed> {
        self.message = None;
        match key {
            Key::Quit => return Some(Deed::Quit),
            Key::Interrupt => return Some(Deed::Interrupt),
            Key::Up => self.row = self.row.saturating_sub(1),
            Key::Down => self.row = (self.row + 1).min(self.rows().saturating_sub(1)),
            Key::Span => self.is_long = !self.is_long,
            Key::Enter if self.open.is_none() => {
                self.open = self.processes.get(self.row).map(|process| process.pid);
                self.row = 0;
            }
            Key::Back if self.processes.len() > 1 => {
                let open = self.open.take();
                let row = self.processes.iter().position(|p| Some(p.pid) == open);
                self.row = row.unwrap_or(0);
            }
            Key::Enter | Key::Back => {}
            Key::Backup => return self.set_rank("backup"),
            Key::Normal => return self.set_rank("normal"),
        }
        None
    }

    fn set_rank(&mut self, rank: &'static str) -> Option<Deed> {
        let process = self.opened()?;
        let (association, path) = paths_of(process).nth(self.row)?;
        Some(Deed::SetRank { pid: process.pid, association, path: path.path, rank })
    }

    pub(super) fn process(&self, pid: u32) -> Option<&Process> {
        self.processes.iter().find(|process| process.pid == pid)
    }

    /// The process whose paths are shown.
    pub(super) fn opened(&self) -> Option<&Process> {
        self.process(self.open?)
    }

    pub(super) fn events_of(&self, pid: u32) -> &[Happened] {
        self.events.get(&pid).map_or(&[], |events| events)
    }

    pub(super) fn past(&self, pid: u32, association: u64, path: &PathFigures) -> &[Sample] {
        self.pasts.get(&past_key(pid, association, path)).map_or(&[], |past| past)
    }

    fn rows(&self) -> usize {
        self.opened().map_or(self.processes.len(), |process| paths_of(process).count())
    }
}

/// A path that takes another's number has other addresses, and a past of its own.
fn past_key(pid: u32, association: u64, path: &PathFigures) -> (u32, u64, u16, String) {
    (pid, association, path.path, format!("{} {}", path.local, path.remote))
}

/// The paths of a process in the order of their rows, with their association.
pub(super) fn paths_of(process: &Process) -> impl Iterator<Item = (u64, &PathFigures)> {
    let all = process.associations.iter();
    all.flat_map(|a| a.paths.iter().map(move |path| (a.association, path)))
}
