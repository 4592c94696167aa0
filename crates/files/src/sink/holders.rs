//! Which transfer writes an unfinished file that another one wants to go on from.
//!
//! A sender that was killed and started again finds its receiver still waiting for the first one,
//! for as long as it takes to find out that nobody answers there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A transfer that may hold unfinished files.
#[derive(Debug, Default)]
pub struct Holder(AtomicBool);

impl Holder {
    /// True once another transfer wants to go on from a file that this one holds: if nothing comes
    /// any more, it should end.
    pub fn is_contested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn contest(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The transfers of a receiver, by the unfinished files that they have held.
#[derive(Clone, Debug, Default)]
pub struct Holders(Arc<Mutex<BTreeMap<PathBuf, Weak<Holder>>>>);

impl Holders {
    /// Notes who holds a file.
    pub(super) fn note(&self, path: PathBuf, holder: &Arc<Holder>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, holder| holder.strong_count() > 0);
        all.insert(path, Arc::downgrade(holder));
    }

    /// The transfer that has held a file and still goes on, if it is another one than this.
    pub(super) fn other(&self, path: &Path, this: &Arc<Holder>) -> Option<Arc<Holder>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(path)?.upgrade().filter(|holder| !Arc::ptr_eq(holder, this))
    }
}
