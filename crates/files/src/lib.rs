//! The files of a transfer: the frames that describe them, their names, the sender's reading and
//! the receiver's writing, against a [`Disk`] that may fail at every step.
//!
//! The crate knows no network. What it asks of a disk is the trait [`Disk`]: [`SystemDisk`] is the
//! operating system's, and with the feature `testing` a simulated one fails, fills, lies and loses
//! power as a seed says.

pub mod disk;
pub mod frame;
mod part;
pub mod relative;
pub mod sink;
pub mod source;
mod system;
#[cfg(feature = "testing")]
pub mod testing;
pub mod ticket;

pub use disk::{Disk, DiskFile, Identity, Seen, SeenKind};
pub use system::{SystemDisk, identity, list_found, standard_output};
