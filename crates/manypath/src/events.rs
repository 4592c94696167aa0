//! Events of an association, for those who watch.

use manypath_proto::Event;
use tokio::sync::broadcast;

/// Events kept for a reader that is behind.
pub(crate) const EVENT_BACKLOG: usize = 256;

/// The events of one association from the moment this was made, see
/// [`Association::events`](crate::Association::events).
#[derive(Debug)]
pub struct EventStream {
    inner: broadcast::Receiver<Event>,
    missed: u64,
}

impl EventStream {
    pub(crate) fn new(inner: broadcast::Receiver<Event>) -> EventStream {
        EventStream { inner, missed: 0 }
    }

    /// The next event; `None` after [`Event::Closed`]. Cancel safe.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            match self.inner.recv().await {
                Ok(event) => return Some(event),
                Err(broadcast::error::RecvError::Lagged(n)) => self.missed += n,
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    /// How many events were lost because this reader was more than 256 of them behind; the oldest
    /// go first. What they said can be read from [`paths`](crate::Association::paths).
    pub fn missed(&self) -> u64 {
        self.missed
    }
}
