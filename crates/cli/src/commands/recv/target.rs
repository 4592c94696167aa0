//! Where a receiver puts what it gets: into a directory, or on its standard output.

use std::sync::Arc;

use manypath_files::{SystemDisk, standard_output};
use tokio::sync::mpsc;

use manypath_files::frame::{Accepts, FileStatus, Hello, Outcome};
use manypath_files::sink::{Done, Holder, Said, Store, Work, write_stream};
use manypath_transfer::Target;

/// Where a receiver puts what it gets.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// Files into a directory.
    Directory(Store<SystemDisk>),
    /// The only file to standard output.
    StandardOutput {
        /// Bytes that it may have at most.
        max_size: Option<u64>,
    },
}

impl Target for Place {
    fn accepts(&self) -> Accepts {
        match self {
            Place::Directory(store) => store.accepts(),
            // It has a name only here.
            Place::StandardOutput { .. } => Accepts { hidden: true },
        }
    }

    fn is_stream(&self) -> bool {
        matches!(self, Place::StandardOutput { .. })
    }

    fn refuses(&self, hello: &Hello) -> Option<String> {
        match self {
            Place::Directory(store) => Target::refuses(store, hello),
            Place::StandardOutput { .. } if hello.entries > 1 => Some(format!(
                "the receiver writes one file to its standard output (--stdout), not {}; send \
                 `tar c DIR | manypath send -`, and read it there with `tar x`",
                hello.entries
            )),
            Place::StandardOutput { max_size: Some(max) } if hello.bytes > *max => {
                let why =
                    format!("{} bytes; at most {max} are accepted in a transfer", hello.bytes);
                Some(format!("{}: {why}", Outcome::TooLarge.name()))
            }
            Place::StandardOutput { .. } => None,
        }
    }

    fn write(self, holder: Arc<Holder>, work: mpsc::Receiver<Work>, said: &mpsc::Sender<Said>) {
        match self {
            Place::Directory(store) => store.write(holder, work, said),
            Place::StandardOutput { max_size } => match standard_output() {
                Ok(out) => write_stream(out, max_size, work, said),
                Err(e) => {
                    refuse_all(&format!("the receiver has no standard output: {e}"), work, said)
                }
            },
        }
    }
}

/// Refuses everything for this reason.
fn refuse_all(why: &str, mut work: mpsc::Receiver<Work>, said: &mpsc::Sender<Said>) {
    while let Some(item) = work.blocking_recv() {
        let Work::Announce(header) = item else { continue };
        let (index, outcome, text) = (header.index, Outcome::CannotCreate, why.to_owned());
        let done = Done { status: FileStatus { index, outcome, text }, header, sha256: None };
        // A closed channel means the transfer is over.
        drop(said.blocking_send(Said::Done(done)));
    }
}
