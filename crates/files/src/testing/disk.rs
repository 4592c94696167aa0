//! The simulated disk.
//!
//! It keeps two images: what programs see, and what would be there after a loss of power. Writes
//! and names are in the first at once; a sync carries them into the second. A loss of power makes
//! the second the first, after any part of what was not synced has reached it: writes in any order
//! and torn at any block, names in order (a journal) or in any order, as the seed says.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use manypath_proto::Rng;

use super::faults::{Crash, Faults};
use super::image::{NameChange, Names, Node, ROOT, State, new_file, parts, write_at};
use crate::disk::{Disk, DiskFile, Identity, Seen, SeenKind};
use crate::part;

/// A simulated disk; clones are the same disk.
#[derive(Clone, Debug)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
    boot: u64,
    /// It is a neighbour that uses it.
    is_neighbour: bool,
}

/// An open file of a [`SimDisk`].
#[derive(Debug)]
pub struct SimFile {
    disk: SimDisk,
    node: usize,
    handle: u64,
    offset: usize,
}

fn fault(text: &str) -> io::Error {
    io::Error::other(text.to_owned())
}

impl SimDisk {
    /// An empty disk with these faults.
    pub fn new(rng: Rng, faults: Faults) -> SimDisk {
        let root = Node::Directory { seen: Names::new(), kept: Names::new() };
        let state = State {
            nodes: vec![root],
            names: Vec::new(),
            changes: 0,
            locks: BTreeMap::new(),
            handles: 0,
            faults,
            rng,
            crash_in: None,
            boot: 0,
            crashed: None,
            doubtful: BTreeSet::new(),
            is_doubt_lost: false,
            operations: 0,
        };
        SimDisk { state: Arc::new(Mutex::new(state)), boot: 0, is_neighbour: false }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One operation of a program: counts towards the crash, and may fail.
    fn operation(&self) -> io::Result<MutexGuard<'_, State>> {
        if !self.is_neighbour {
            self.let_neighbours_clean();
        }
        let mut state = self.lock();
        if self.boot != state.boot || state.crashed.is_some() {
            return Err(fault("the program is gone"));
        }
        state.operations += 1;
        match &mut state.crash_in {
            Some((0, crash)) => {
                state.crashed = Some(*crash);
                return Err(fault("the program is gone"));
            }
            Some((left, _)) => *left -= 1,
            None => {}
        }
        let error = state.faults.error;
        if state.rng.chance(error) {
            return Err(fault("input/output error"));
        }
        Ok(state)
    }

    fn let_neighbours_clean(&self) {
        let mut state = self.lock();
        let (often, dir) = state.faults.neighbours.clone();
        if state.rng.chance(often) {
            drop(state);
            // What fails for a neighbour is its own business.
            let _ = part::clean(&SimDisk { is_neighbour: true, ..self.clone() }, &dir, true);
        }
    }

    /// Makes the programs crash after this many more operations.
    pub fn crash_after(&self, operations: u64, crash: Crash) {
        self.lock().crash_in = Some((operations, crash));
    }

    /// How the programs crashed, if they did.
    pub fn crashed(&self) -> Option<Crash> {
        self.lock().crashed
    }

    /// True if a program went on from a file that a sync had failed for. The one that heard of the
    /// failure could not remove the file, and no other can know.
    pub fn is_doubt_lost(&self) -> bool {
        self.lock().is_doubt_lost
    }

    /// How many operations there were.
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// The disk as it is after a crash, for the next program, without further faults.
    pub fn restart(&self, crash: Crash) -> SimDisk {
        let mut state = self.lock();
        if crash == Crash::Power {
            state.lose_power();
        }
        state.boot += 1;
        state.locks.clear();
        (state.crash_in, state.crashed) = (None, None);
        let (unnamed, ordered_names) = (state.faults.unnamed, state.faults.ordered_names);
        state.faults = Faults { unnamed, ordered_names, ..Faults::none() };
        SimDisk { state: self.state.clone(), boot: state.boot, is_neighbour: false }
    }

    /// Writes a file as if it had always been there.
    pub fn put(&self, path: &Path, content: &[u8]) {
        let mut state = self.lock();
        let mut dir = ROOT;
        let mut parts = parts(path).peekable();
        while let Some(part) = parts.next() {
            let new = match parts.peek() {
                Some(_) => Node::Directory { seen: Names::new(), kept: Names::new() },
                None => {
                    let content = content.to_vec();
                    Node::File { seen: content.clone(), kept: content, unsynced: Vec::new() }
                }
            };
            dir = match state.names_of(dir).get(part) {
                Some(&node) => node,
                None => state.add_forever(dir, part, new),
            };
        }
    }

    /// Creates a directory as if it had always been there.
    pub fn put_dir(&self, path: &Path) {
        self.put(&path.join("x"), b"");
        let mut state = self.lock();
        if let Some(dir) = state.find(path)
            && let Node::Directory { seen, kept } = &mut state.nodes[dir]
        {
            seen.remove(OsStr::new("x"));
            kept.remove(OsStr::new("x"));
        }
    }

    /// Every file there is, by its path from the root, and its content.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.lock();
        let mut files = BTreeMap::new();
        let mut todo = vec![(String::new(), ROOT)];
        while let Some((path, node)) = todo.pop() {
            match &state.nodes[node] {
                Node::File { seen, .. } => drop(files.insert(path, seen.clone())),
                Node::Directory { seen, .. } => todo.extend(
                    seen.iter().map(|(name, n)| (format!("{path}/{}", name.display()), *n)),
                ),
            }
        }
        files
    }
}

impl SimDisk {
    fn handle(&self, mut state: MutexGuard<'_, State>, node: usize) -> SimFile {
        state.handles += 1;
        SimFile { disk: self.clone(), node, handle: state.handles, offset: 0 }
    }
}

impl Disk for SimDisk {
    type File = SimFile;

    fn look(&self, path: &Path) -> io::Result<Option<Seen>> {
        let state = self.operation()?;
        Ok(state.find(path).map(|node| {
            let (kind, length) = match &state.nodes[node] {
                Node::File { seen, .. } => (SeenKind::File, seen.len() as u64),
                Node::Directory { .. } => (SeenKind::Directory, 0),
            };
            Seen { kind, device: 0, length, idle: Some(Duration::ZERO) }
        }))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let state = self.operation()?;
        let dir = state.existing(dir)?;
        Ok(state.names_of(dir).into_keys().collect())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.operation()?;
        let place = state.new_place(path)?;
        if state.is_taken(&place) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let node = state.create(Node::Directory { seen: Names::new(), kept: Names::new() })?;
        state.change(place, Some(node), None);
        Ok(())
    }

    fn create_unnamed(&self, dir: &Path, _mode: Option<u32>) -> io::Result<SimFile> {
        let mut state = self.operation()?;
        if !state.faults.unnamed {
            return Err(io::ErrorKind::Unsupported.into());
        }
        state.existing(dir)?;
        let node = state.create(new_file())?;
        Ok(self.handle(state, node))
    }

    fn create_new(&self, path: &Path, _mode: Option<u32>) -> io::Result<SimFile> {
        let mut state = self.operation()?;
        let place = state.new_place(path)?;
        if state.is_taken(&place) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let node = state.create(new_file())?;
        state.change(place, Some(node), None);
        Ok(self.handle(state, node))
    }

    fn open(&self, path: &Path) -> io::Result<SimFile> {
        let state = self.operation()?;
        let node = state.existing(path)?;
        Ok(self.handle(state, node))
    }

    fn open_to_write(&self, path: &Path) -> io::Result<SimFile> {
        let mut state = self.operation()?;
        let node = state.existing(path)?;
        state.is_doubt_lost |= state.doubtful.contains(&node);
        Ok(self.handle(state, node))
    }

    fn give_name(&self, file: &SimFile, path: &Path) -> io::Result<()> {
        let mut state = self.operation()?;
        let place = state.new_place(path)?;
        if state.is_taken(&place) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.change(place, Some(file.node), None);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path, replace: bool) -> io::Result<()> {
        let mut state = self.operation()?;
        let node = state.existing(from)?;
        let (from, to) = (state.place(from)?, state.new_place(to)?);
        if !replace && state.is_taken(&to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let number = state.change(to, Some(node), None);
        state.change(from, None, Some(number));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.operation()?;
        state.existing(path)?;
        let place = state.place(path)?;
        state.change(place, None, None);
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.operation()?;
        let dir = state.existing(dir)?;
        if state.faults.lies {
            return Ok(());
        }
        let ordered = state.faults.ordered_names;
        let changes = std::mem::take(&mut state.names);
        // A name that is taken by a rename takes the one it gave with it.
        let taken: Vec<u64> =
            changes.iter().filter(|c| c.dir == dir).filter_map(|c| c.after).collect();
        let given: Vec<(usize, OsString, u64)> = changes
            .iter()
            .filter(|c| taken.contains(&c.number))
            .map(|c| (c.dir, c.name.clone(), c.number))
            .collect();
        let goes_along = |c: &NameChange| {
            given.iter().any(|(dir, name, n)| (c.dir, &c.name) == (*dir, name) && c.number <= *n)
        };
        let (now, later): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(|c| ordered || c.dir == dir || goes_along(c));
        state.names = later;
        now.iter().for_each(|change| state.keep(change));
        // The other half of a rename may follow by itself.
        for change in &mut state.names {
            if change.after.is_some_and(|number| now.iter().any(|kept| kept.number == number)) {
                change.after = None;
            }
        }
        Ok(())
    }

    fn free_space(&self, _dir: &Path) -> io::Result<Option<u64>> {
        let state = self.operation()?;
        Ok(Some(state.free()))
    }

    fn unique(&self) -> io::Result<u64> {
        let mut state = self.operation()?;
        Ok(state.rng.next_u64())
    }
}

impl DiskFile for SimFile {
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut state = self.disk.operation()?;
        let mut bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        let short = state.faults.short_write;
        if bytes.len() > 1 && state.rng.chance(short) {
            let part = state.rng.below(bytes.len() as u64 - 1) as usize + 1;
            bytes.truncate(part);
        }
        let free = usize::try_from(state.free()).unwrap_or(usize::MAX);
        if !bytes.is_empty() && free == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        bytes.truncate(free);
        let written = bytes.len();
        if let Node::File { seen, unsynced, .. } = &mut state.nodes[self.node] {
            write_at(seen, self.offset, &bytes);
            unsynced.push((self.offset, bytes));
        }
        self.offset += written;
        Ok(written)
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let state = self.disk.operation()?;
        let Node::File { seen, .. } = &state.nodes[self.node] else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        let rest = &seen[self.offset.min(seen.len())..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.offset += length;
        Ok(length)
    }

    fn seek(&mut self, offset: u64) -> io::Result<()> {
        let _state = self.disk.operation()?;
        self.offset = usize::try_from(offset).map_err(io::Error::other)?;
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        let mut state = self.disk.operation()?;
        self.offset = usize::try_from(length).map_err(io::Error::other)?;
        if let Node::File { seen, kept, unsynced } = &mut state.nodes[self.node] {
            seen.truncate(self.offset);
            // What is kept may have the old length for a while; what was cut must not come back
            // over what is written next.
            kept.truncate(self.offset);
            for (offset, bytes) in unsynced.iter_mut() {
                bytes.truncate(self.offset.saturating_sub(*offset));
            }
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = match self.disk.operation() {
            Ok(state) => state,
            Err(e) => {
                // As Linux does: what could not be written counts as written from now on.
                let mut state = self.disk.lock();
                if self.disk.boot == state.boot
                    && state.crashed.is_none()
                    && let Node::File { unsynced, .. } = &mut state.nodes[self.node]
                {
                    unsynced.clear();
                    state.doubtful.insert(self.node);
                }
                return Err(e);
            }
        };
        if state.faults.lies {
            return Ok(());
        }
        if let Node::File { kept, unsynced, .. } = &mut state.nodes[self.node] {
            for (offset, bytes) in std::mem::take(unsynced) {
                write_at(kept, offset, &bytes);
            }
        }
        Ok(())
    }

    fn set_modified(&self, _time: SystemTime) -> io::Result<()> {
        self.disk.operation().map(drop)
    }

    fn try_lock(&self) -> io::Result<bool> {
        let mut state = self.disk.operation()?;
        let holder = *state.locks.entry(self.node).or_insert(self.handle);
        Ok(holder == self.handle)
    }

    fn has_name(&self) -> io::Result<bool> {
        Ok(self.disk.operation()?.has_name(self.node))
    }

    fn identity(&self) -> io::Result<Option<Identity>> {
        let _state = self.disk.operation()?;
        let (device, inode) = (0, self.node as u64);
        let (is_renumbered, length, modified) = (false, 0, None);
        Ok(Some(Identity { device, inode, is_renumbered, length, modified }))
    }

    fn is_owned_like(&self, _ours: &SimFile) -> io::Result<bool> {
        self.disk.operation().map(|_| true)
    }

    fn set_mode_of(&self, _other: &SimFile) -> io::Result<()> {
        self.disk.operation().map(drop)
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let mut state = self.disk.lock();
        if state.locks.get(&self.node) == Some(&self.handle) {
            state.locks.remove(&self.node);
        }
        if self.disk.boot == state.boot && !state.has_name(self.node) {
            // Nothing sees its content any more.
            if let Node::File { seen, .. } = &mut state.nodes[self.node] {
                seen.clear();
            }
        }
    }
}
