//! Names in the local network, by multicast DNS (RFC 6762) and service discovery (RFC 6763).
//!
//! A receiver announces a name, its port, its addresses and the fingerprint of its key; a sender
//! asks for the name. **Nothing of this is secret, and nothing is proved by it**: everybody in the
//! network can announce anything. Whoever uses an [`Announcement`] must find out by other means if
//! the receiver is the right one, as `docs/names.md` describes.
//!
//! The parts:
//!
//! - [`message`] reads and writes messages of multicast DNS. Memory and time for each are bounded.
//! - [`Announcement`] is a receiver as messages describe it.
//! - [`Announcer`] decides what a receiver says and when, [`Finder`] collects what a sender hears;
//!   both without sockets and without a clock.
//! - [`announce`] and [`find`] run them on all interfaces of this host.
//!
//! This is no general implementation of multicast DNS. It has no cache, so there is nothing that
//! strangers could fill while a receiver runs for weeks. An announcement is understood only if all
//! of it is in one message, as an [`Announcer`] sends it.
//!
//! Departures from RFC 6762:
//!
//! - No probing (section 8.1): the names of records have 64 bits of the receiver's key in them.
//! - All answers are sent by multicast, also to queries from other ports than 5353 (section 6.7)
//!   and to those that ask for unicast (section 5.4). So nobody can have answers sent to others,
//!   and they do not leave the network.

mod announcement;
mod announcer;
mod finder;
pub mod message;
mod name;
mod run;
mod sockets;
#[cfg(feature = "testing")]
pub mod testing;

pub use announcement::{ADDRESSES_MAX, Announcement, Id, Proof};
pub use announcer::{Announcer, Link, Rival};
pub use finder::{Finder, Found, OTHERS_MAX, SAME_MAX};
pub use name::{Name, NameError};
pub use run::{Announcing, announce, find, list};

/// The UDP port of multicast DNS.
pub const PORT: u16 = 5353;
