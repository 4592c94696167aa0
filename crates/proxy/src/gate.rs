//! Whose data is next: all connections in turn, a message each.
//!
//! What is handed to an association leaves in order. Therefore a turn waits until the association
//! has little left to send: then a small request waits for at most one message of each busy
//! connection, not for a buffer full of one download.

use manypath::{AssocClosed, Association};
use tokio::sync::{Mutex, MutexGuard};

/// Bytes that may wait in the association when more is handed over: 2 ms at 100 Mbit/s.
const WAITING_MIN: usize = 24 * 1024;
/// On fast paths 1/32 of the data in flight may wait, and at most 1 MiB.
const WAITING_MAX: usize = 1024 * 1024;
const SHARE_OF_FLIGHT: usize = 32;

/// Gives turns in the order they were asked for.
#[derive(Debug, Default)]
pub(crate) struct Gate(Mutex<()>);

impl Gate {
    /// Waits for this task's turn, which lasts until the guard is dropped. As a task has at most
    /// one turn at a time, those that always have data get one each, one after the other.
    pub(crate) async fn turn(&self, to: &Association) -> Result<MutexGuard<'_, ()>, AssocClosed> {
        let turn = self.0.lock().await;
        let limit = (to.unacked_bytes() / SHARE_OF_FLIGHT).clamp(WAITING_MIN, WAITING_MAX);
        to.drained(limit).await?;
        Ok(turn)
    }
}
