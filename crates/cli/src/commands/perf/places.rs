//! Who may measure at a time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use manypath::Association;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Measurements at a time; more would measure each other.
const RUNS_MAX: usize = 4;
/// A measurement that carried nothing for so long makes room for others, if any come.
const STALLED: Duration = Duration::from_secs(10);
/// How long the end of one that makes room is waited for.
const LEAVE_TIME: Duration = Duration::from_secs(2);
/// The message for a client that makes room.
const MADE_ROOM: &str = "busy: no data for 10 s, and others wait";

/// The places for measurements.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    free: Arc<Semaphore>,
    taken: Arc<Mutex<Vec<Taken>>>,
}

#[derive(Debug)]
struct Taken {
    association: Association,
    progress: Progress,
}

/// How far something came, and when it last came further.
#[derive(Copy, Clone, Debug)]
struct Progress {
    bytes: u64,
    at: Instant,
}

impl Progress {
    fn see(&mut self, bytes: u64, now: Instant) {
        if bytes != self.bytes {
            *self = Progress { bytes, at: now };
        }
    }

    fn is_stalled(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) >= STALLED
    }
}

/// A place, which is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    association: Association,
    taken: Arc<Mutex<Vec<Taken>>>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|t| t.association.id() != self.association.id());
    }
}

impl Places {
    pub(crate) fn new() -> Places {
        Places { free: Arc::new(Semaphore::new(RUNS_MAX)), taken: Arc::default() }
    }

    /// A place for this association, that of a stalled one if no other is free; `None` if all are
    /// in use.
    pub(crate) async fn take(&self, association: &Association) -> Option<Place> {
        let permit = match self.free.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                self.stalled(Instant::now())?.abort(MADE_ROOM);
                let leaves = self.free.clone().acquire_owned();
                tokio::time::timeout(LEAVE_TIME, leaves).await.ok()?.ok()?
            }
        };
        let progress = Progress { bytes: carried(association), at: Instant::now() };
        self.locked().push(Taken { association: association.clone(), progress });
        let (association, taken) = (association.clone(), Arc::clone(&self.taken));
        Some(Place { association, taken, _permit: permit })
    }

    /// To be called every second or so: sees how far each came.
    pub(crate) fn look(&self) {
        let now = Instant::now();
        for taken in self.locked().iter_mut() {
            taken.progress.see(carried(&taken.association), now);
        }
    }

    /// The one that stands still for longest.
    fn stalled(&self, now: Instant) -> Option<Association> {
        self.look();
        let taken = self.locked();
        let open = taken.iter().filter(|t| t.association.close_reason().is_none());
        let longest = open.min_by_key(|t| t.progress.at)?;
        longest.progress.is_stalled(now).then(|| longest.association.clone())
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Vec<Taken>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes carried in both directions so far.
fn carried(association: &Association) -> u64 {
    let stats = association.stats();
    stats.bytes_received + stats.bytes_acked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_carries_nothing_for_ten_seconds_stands_still() {
        let start = Instant::now();
        let at = |s| start + Duration::from_secs(s);
        let mut progress = Progress { bytes: 0, at: start };
        assert!(!progress.is_stalled(at(9)));
        assert!(progress.is_stalled(at(10)));
        progress.see(1, at(10));
        progress.see(1, at(15));
        assert!(!progress.is_stalled(at(19)));
        assert!(progress.is_stalled(at(20)));
    }
}
