//! The paths of an association, by id.

use super::Path;
use crate::datagram::AddressPair;
use crate::view::PathId;

/// A slot per path id; ids of removed paths are used again.
#[derive(Debug, Default)]
pub(crate) struct PathTable {
    slots: Vec<Option<Path>>,
    /// The least PMDCS of all paths; with `pmtu_discovery`, of the usable ones if there are any.
    least_pmdcs: Option<usize>,
}

impl PathTable {
    /// The id that the next path would get.
    pub(crate) fn free_id(&self) -> PathId {
        let at = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        PathId(u8::try_from(at).unwrap_or(u8::MAX))
    }

    pub(crate) fn insert(&mut self, path: Path) {
        let at = path.id.index();
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, || None);
        }
        self.slots[at] = Some(path);
        self.renew_least();
    }

    pub(crate) fn remove(&mut self, id: PathId) -> Option<Path> {
        let removed = self.slots.get_mut(id.index())?.take();
        self.renew_least();
        removed
    }

    /// Without `pmtu_discovery`: renews the least PMDCS after the sizes of paths have changed.
    pub(crate) fn renew_least(&mut self) {
        self.least_pmdcs = self.iter().map(|p| p.size.pmdcs).min();
    }

    /// With `pmtu_discovery`: renews the least PMDCS after a path's size or use has changed.
    pub(crate) fn renew_least_usable(&mut self) {
        let usable = self.iter().filter(|p| p.role.usable).map(|p| p.size.pmdcs).min();
        self.least_pmdcs = usable;
    }

    /// The least of the paths' maximum DATA chunk sizes; `None` without a path, and with
    /// `pmtu_discovery` if none is usable.
    pub(crate) fn least_pmdcs(&self) -> Option<usize> {
        self.least_pmdcs
    }

    pub(crate) fn get(&self, id: PathId) -> Option<&Path> {
        self.slots.get(id.index())?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: PathId) -> Option<&mut Path> {
        self.slots.get_mut(id.index())?.as_mut()
    }

    /// All paths, in the order of ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Path> {
        self.slots.iter().flatten()
    }

    /// All paths to change, in the order of ids.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Path> {
        self.slots.iter_mut().flatten()
    }

    pub(crate) fn len(&self) -> usize {
        self.iter().count()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = PathId> + use<> {
        let ids: smallvec::SmallVec<[PathId; 8]> = self.iter().map(|p| p.id).collect();
        ids.into_iter()
    }

    /// The path with exactly these addresses.
    #[inline]
    pub(crate) fn find(&self, pair: &AddressPair) -> Option<PathId> {
        self.iter().find(|p| p.remote == pair.remote && p.local == pair.local).map(|p| p.id)
    }
}
