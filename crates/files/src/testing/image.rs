//! The state of a simulated disk: as programs see it, and as a loss of power leaves it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path};

use manypath_proto::Rng;

use super::faults::{Crash, Faults};

/// The unit of a torn write, in bytes.
const BLOCK: usize = 512;
/// The root directory's number.
pub(super) const ROOT: usize = 0;

#[derive(Clone, Debug)]
pub(super) enum Node {
    File { seen: Vec<u8>, kept: Vec<u8>, unsynced: Vec<(usize, Vec<u8>)> },
    Directory { seen: Names, kept: Names },
}

pub(super) type Names = BTreeMap<OsString, usize>;

/// A name in a directory, taken or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The number of the directory.
    pub(super) dir: usize,
    pub(super) name: OsString,
}

/// A change of a directory that is not durable yet.
#[derive(Clone, Debug)]
pub(super) struct NameChange {
    pub(super) dir: usize,
    pub(super) name: OsString,
    pub(super) node: Option<usize>,
    /// Numbers the rename that this is the second half of.
    pub(super) after: Option<u64>,
    /// Numbers the change.
    pub(super) number: u64,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) nodes: Vec<Node>,
    pub(super) names: Vec<NameChange>,
    pub(super) changes: u64,
    /// Which handle has locked a file.
    pub(super) locks: BTreeMap<usize, u64>,
    pub(super) handles: u64,
    pub(super) faults: Faults,
    pub(super) rng: Rng,
    /// The operations left until the running programs crash.
    pub(super) crash_in: Option<(u64, Crash)>,
    /// Grows with each crash; handles of earlier ones are dead.
    pub(super) boot: u64,
    pub(super) crashed: Option<Crash>,
    /// Files that a sync has failed for: what they hold may never become durable.
    pub(super) doubtful: BTreeSet<usize>,
    /// One of them was opened to go on from what it holds.
    pub(super) is_doubt_lost: bool,
    pub(super) operations: u64,
}

pub(super) fn new_file() -> Node {
    Node::File { seen: Vec::new(), kept: Vec::new(), unsynced: Vec::new() }
}

pub(super) fn parts(path: &Path) -> impl Iterator<Item = &OsStr> {
    path.components().filter_map(|part| match part {
        Component::Normal(part) => Some(part),
        _ => None,
    })
}

impl State {
    pub(super) fn names_of(&self, dir: usize) -> Names {
        match &self.nodes[dir] {
            Node::Directory { seen, .. } => seen.clone(),
            Node::File { .. } => Names::new(),
        }
    }

    pub(super) fn add_forever(&mut self, dir: usize, name: &OsStr, new: Node) -> usize {
        let number = self.nodes.len();
        self.nodes.push(new);
        if let Node::Directory { seen, kept } = &mut self.nodes[dir] {
            seen.insert(name.to_owned(), number);
            kept.insert(name.to_owned(), number);
        }
        number
    }

    pub(super) fn find(&self, path: &Path) -> Option<usize> {
        parts(path).try_fold(ROOT, |dir, part| match &self.nodes[dir] {
            Node::Directory { seen, .. } => seen.get(part).copied(),
            Node::File { .. } => None,
        })
    }

    pub(super) fn existing(&self, path: &Path) -> io::Result<usize> {
        self.find(path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// The place that `path` names.
    pub(super) fn place(&self, path: &Path) -> io::Result<Place> {
        let dir = self.existing(path.parent().unwrap_or(Path::new("/")))?;
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        match &self.nodes[dir] {
            Node::Directory { .. } => Ok(Place { dir, name: name.to_owned() }),
            Node::File { .. } => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// The place that `path` names, for something new.
    pub(super) fn new_place(&self, path: &Path) -> io::Result<Place> {
        let place = self.place(path)?;
        if place.name.to_string_lossy().contains(|c| self.faults.refused_characters.contains(c)) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "invalid argument"));
        }
        Ok(place)
    }

    /// Gives or takes a name; the number of the change.
    pub(super) fn change(&mut self, place: Place, node: Option<usize>, after: Option<u64>) -> u64 {
        let Place { dir, name } = place;
        if let Node::Directory { seen, .. } = &mut self.nodes[dir] {
            match node {
                Some(node) => drop(seen.insert(name.clone(), node)),
                None => drop(seen.remove(&name)),
            }
        }
        self.changes += 1;
        let number = self.changes;
        self.names.push(NameChange { dir, name, node, after, number });
        number
    }

    pub(super) fn is_taken(&self, place: &Place) -> bool {
        let dir = &self.nodes[place.dir];
        matches!(dir, Node::Directory { seen, .. } if seen.contains_key(&place.name))
    }

    pub(super) fn has_name(&self, number: usize) -> bool {
        self.nodes.iter().any(|node| match node {
            Node::Directory { seen, .. } => seen.values().any(|named| *named == number),
            Node::File { .. } => false,
        })
    }

    pub(super) fn create(&mut self, new: Node) -> io::Result<usize> {
        if self.free() == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.nodes.push(new);
        Ok(self.nodes.len() - 1)
    }

    pub(super) fn free(&self) -> u64 {
        let used = |node: &Node| match node {
            Node::File { seen, .. } => seen.len() as u64,
            Node::Directory { .. } => 0,
        };
        self.faults.capacity.saturating_sub(self.nodes.iter().map(used).sum())
    }

    /// Carries a change of names into what is kept.
    pub(super) fn keep(&mut self, change: &NameChange) {
        let Node::Directory { kept, .. } = &mut self.nodes[change.dir] else { return };
        match change.node {
            Some(node) => drop(kept.insert(change.name.clone(), node)),
            None => drop(kept.remove(&change.name)),
        }
    }

    pub(super) fn lose_power(&mut self) {
        // Blocks of unsynced writes, any of them, in any order.
        for node in &mut self.nodes {
            let Node::File { kept, unsynced, .. } = node else { continue };
            for (offset, bytes) in std::mem::take(unsynced) {
                for (i, block) in bytes.chunks(BLOCK).enumerate() {
                    if self.rng.chance(0.5) {
                        write_at(kept, offset + i * BLOCK, block);
                    }
                }
            }
        }
        // Names: those up to some moment, or any, but each of one name after the one before.
        let changes = std::mem::take(&mut self.names);
        let reached = self.rng.below(changes.len() as u64 + 1) as usize;
        let mut lost: Vec<Place> = Vec::new();
        let mut kept_numbers = Vec::new();
        for (i, change) in changes.iter().enumerate() {
            let place = Place { dir: change.dir, name: change.name.clone() };
            let keep = if self.faults.ordered_names {
                i < reached
            } else {
                self.rng.chance(0.5) && !lost.contains(&place)
            };
            // A rename is never half done so that the file has no name.
            let keep = keep && change.after.is_none_or(|number| kept_numbers.contains(&number));
            if keep {
                kept_numbers.push(change.number);
                self.keep(change);
            } else {
                lost.push(place);
            }
        }
        for node in &mut self.nodes {
            match node {
                Node::File { seen, kept, .. } => seen.clone_from(kept),
                Node::Directory { seen, kept } => seen.clone_from(kept),
            }
        }
    }
}

pub(super) fn write_at(file: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if file.len() < offset + bytes.len() {
        file.resize(offset + bytes.len(), 0);
    }
    file[offset..offset + bytes.len()].copy_from_slice(bytes);
}
