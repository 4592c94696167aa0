//! Files and directories over an association, at both ends, with events instead of a screen.
//!
//! A receiver with a ticket, and a sender that was given it:
//!
//! ```
//! use manypath_transfer::{Event, Inbox, InboxOptions, Options, Route, send_to};
//!
//! # #[tokio::main(flavor = "multi_thread", worker_threads = 2)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let (inbox_dir, photos) = (folder.path().join("inbox"), folder.path().join("photos"));
//! # std::fs::create_dir(&photos)?;
//! # std::fs::write(photos.join("a.jpeg"), "not really")?;
//! # let loopback = || -> Result<_, std::convert::Infallible> {
//! #     Ok(Route { bind: vec!["127.0.0.1".parse()?], ..Route::default() })
//! # };
//! let options = InboxOptions::default();
//! # let options = InboxOptions { route: loopback()?, ..options };
//! let mut inbox = Inbox::open(&inbox_dir, options).await?;
//! let ticket = inbox.ticket().clone(); // print it: it has the key, the addresses and a token
//!
//! let route = Route::default();
//! # let route = loopback()?;
//! let options = Options::default();
//! let show = |event: Event<'_>| println!("{event:?}");
//! let sending = send_to(&ticket, [&photos], &route, &options, show);
//! let receiving = inbox.receive(&options, |_| {});
//! let (sent, received) = tokio::join!(sending, receiving);
//! assert_eq!(sent?.summary.stored, received?.summary.stored);
//! inbox.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! - [`send`] and [`receive`] do the same over an [`Association`](manypath::Association) that the
//!   program has opened by itself.
//! - A transfer that was broken off goes on: begin it again, with the same directory at the
//!   receiver. Only what is missing is sent.
//! - [`Plan`], [`Offer`] and [`Sending`], and [`Receiver`], [`Reception`] and [`Incoming`], are the
//!   steps of which these consist, for programs with other needs: proofs of passwords
//!   ([`password`]), another [`Target`], a view of the association.
//!
//! Nothing is replaced at a receiver unless its program allows that. Every file is verified and on
//! the disk before the sender hears that it is stored. `docs/protocol-transfer.md` describes the
//! protocol, and `manypath_files` has its frames, names and disks.

mod direct;
mod ending;
mod event;
mod guesses;
mod inbox;
pub mod messages;
mod meter;
mod opening;
mod options;
mod over;
pub mod password;
mod plan;
mod receive;
mod reception;
mod route;
mod send;
pub mod stall;
mod stop;
mod tally;
mod target;

pub use direct::{DIRECT_PATH_TIME_MAX, direct_path};
pub use ending::{PeerReason, abort, finish, let_peer_finish};
pub use event::{Counts, EntryOutcome, Event, NotStored};
pub use guesses::{Guesses, TOO_MANY_GUESSES};
pub use inbox::{
    Inbox, InboxError, InboxOptions, KEEP_FROM, TRANSFERS_MAX, directory_for, make_directory,
};
pub use manypath_files::frame::{Kind, Outcome, Summary};
pub use manypath_files::ticket::Ticket;
pub use opening::{Again, CHUNKS_PER_MESSAGE, Opening, OpeningError, bulk_message_size};
pub use options::Options;
pub use over::{receive, send};
pub use plan::{Plan, PlanError, Unsent, Why};
pub use receive::{
    HELLO_TIME_MAX, Incoming, ReceiveError, Received, Receiver, Rejected, has_certificate,
};
pub use reception::{Place, Reception, TurnedAway};
pub use route::{Route, reachable, send_to, target_of};
pub use send::{Offer, OfferError, SendError, Sending, Sent, Showing, WELCOME_TIME_MAX};
pub use stop::Stop;
pub use tally::Tally;
pub use target::Target;
