//! Where a receiver puts what it gets.

use std::sync::Arc;

use manypath_files::Disk;
use manypath_files::frame::{Accepts, Hello};
use manypath_files::sink::{Holder, Said, Store, Work};
use tokio::sync::mpsc;

/// Where a receiver puts what it gets: a [`Store`] is a directory.
pub trait Target: Clone + Send + Sync + 'static {
    /// The kinds of files that senders may offer.
    fn accepts(&self) -> Accepts;

    /// The reason why a transfer cannot be received, as the sender may see it; `None` if it can.
    fn refuses(&self, hello: &Hello) -> Option<String>;

    /// True if what was written cannot be taken back, and somebody reads it who may hang.
    fn is_stream(&self) -> bool {
        false
    }

    /// Handles `work` until it ends, and says what the sender is to hear. Runs on a thread that may
    /// block. A closed channel `said` means that the transfer is over; the work ends next.
    fn write(self, holder: Arc<Holder>, work: mpsc::Receiver<Work>, said: &mpsc::Sender<Said>);
}

impl<D: Disk + Sync> Target for Store<D> {
    fn accepts(&self) -> Accepts {
        Accepts { hidden: self.hidden }
    }

    fn refuses(&self, hello: &Hello) -> Option<String> {
        let (outcome, why) = Store::refuses(self, hello.bytes)?;
        Some(format!("{}: {why}", outcome.name()))
    }

    fn write(self, holder: Arc<Holder>, work: mpsc::Receiver<Work>, said: &mpsc::Sender<Said>) {
        self.write_all(holder, work, said);
    }
}
