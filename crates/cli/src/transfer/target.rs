//! Where a receiver puts what it gets: into a directory, or on its standard output.

use std::sync::Arc;

use manypath_files::{SystemDisk, standard_output};
use tokio::sync::mpsc;

use super::frame::{Accepts, FileStatus, Hello, Outcome};
use super::sink::{Done, Holder, Said, Store, Work, write_stream};

/// Where a receiver puts what it gets.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// Files into a directory.
    Directory(Store<SystemDisk>),
    /// The only file to standard output.
    StandardOutput {
        /// Bytes that it may have at most.
        max_size: Option<u64>,
    },
}

impl Target {
    /// The kinds of files that senders may offer.
    pub(crate) fn accepts(&self) -> Accepts {
        match self {
            Target::Directory(store) => Accepts { hidden: store.hidden },
            // It has a name only here.
            Target::StandardOutput { .. } => Accepts { hidden: true },
        }
    }

    /// True if what was written cannot be taken back, and a program reads it.
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self, Target::StandardOutput { .. })
    }

    /// The reason why a transfer cannot be received, as the sender may see it.
    pub(crate) fn refuses(&self, hello: &Hello) -> Option<String> {
        let refusal = |(outcome, why): (Outcome, String)| format!("{}: {why}", outcome.name());
        match self {
            Target::Directory(store) => store.refuses(hello.bytes).map(refusal),
            Target::StandardOutput { .. } if hello.entries > 1 => Some(format!(
                "the receiver writes one file to its standard output (--stdout), not {}; send \
                 `tar c DIR | manypath send -`, and read it there with `tar x`",
                hello.entries
            )),
            Target::StandardOutput { max_size: Some(max) } if hello.bytes > *max => {
                let why =
                    format!("{} bytes; at most {max} are accepted in a transfer", hello.bytes);
                Some(refusal((Outcome::TooLarge, why)))
            }
            Target::StandardOutput { .. } => None,
        }
    }

    /// Handles `work` until it ends, and says what the sender is to hear. Runs on a thread that may
    /// block.
    pub(crate) fn write(
        self,
        holder: Arc<Holder>,
        work: mpsc::Receiver<Work>,
        said: &mpsc::Sender<Said>,
    ) {
        match self {
            Target::Directory(store) => store.write_all(holder, work, said),
            Target::StandardOutput { max_size } => match standard_output() {
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
