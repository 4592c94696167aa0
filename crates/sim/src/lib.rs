//! A deterministic network in virtual time that runs the manypath engine: the very code that is
//! deployed, `manypath_proto::Endpoint`, on links that a test or a scenario describes.
//!
//! # Writing a test
//!
//! Build a [`Pair`], act, run until something happens, compare. Host `a` associates with host `z`;
//! both have applications that send what they are told and check every byte they receive, so a
//! transfer that ends is a transfer that is right.
//!
//! ```
//! use std::time::Duration;
//!
//! use manypath_proto::{PathId, PathState};
//! use manypath_sim::{Pair, chunk_type::DATA, path_state, secs};
//!
//! // Two paths of 10 Mbit/s; the second is slower to arrive and loses 1 % of its packets.
//! let mut t = Pair::two_paths("cmt-pf")
//!     .rate_mbps(10.0)
//!     .path(1, |path| path.delay_ms(60.0).loss(0.01))
//!     .set("receive_buffer", "512 KiB") // any parameter of the engine, by name
//!     .seed(7)
//!     .connect();
//!
//! t.a.send_file(4_000_000);
//! t.net.path(1).at(secs(2)).cut_for(Duration::from_secs(3));
//! let pf = t.run_until_event(path_state(PathId(1), PathState::PotentiallyFailed));
//!
//! let result = t.run_to_end(secs(60)).result();
//! assert!(result.completed);
//! assert!(result.max_delivery_gap_s < 3.0);
//! let on_second = t.sent(DATA).on(PathId(1));
//! assert!(on_second.clone().until(pf).count() > 100);
//! assert!(on_second.dropped() > 0);
//! ```
//!
//! - [`Pair`] and [`PairBuilder`]: two hosts and their paths; [`PathSpec`] and [`LinkSpec`]
//!   describe anything between them, hop by hop.
//! - [`World`]: any number of hosts, paths that share links, several transfers at once.
//! - [`Host`]: what an application does: send, shut down, stop to read, lose all state.
//! - [`Network::path`]: what happens to a path, now or [at](PathControl::at) a time: cuts, rates,
//!   delays, loss, duplication, reordering, a NAT that forgets.
//! - [`Network::add_nat`]: NATs as RFC 4787 sorts them, hosts behind them, and what a STUN server
//!   would see.
//! - [`Pair::sent`]: questions to the log of all packets; [`Pair::result`]: the figures of a
//!   transfer, as `manypath sim run --json` prints them.
//! - [`Tracer`]: typed events of a run as JSON lines, and pcapng captures at its hosts; any other
//!   [`Observer`] can be [shown](Network::set_observer) a run as well.
//! - [`World::watch`]: windows, RTO, progress and more of a transfer over time.
//! - [`testing`]: random operations, and how a failure becomes a test.
//!
//! # How it works
//!
//! A [`Network`] is as passive as the engine: packets go in, [`Network::poll`] says what happens
//! next. Everything about a packet's passage over a link is decided when it enters, so a hop costs
//! one event; a link keeps its packets and shows only the first to the queue, which is a tournament
//! over few slots. Events of one instant come in the order they were planned. All randomness forks
//! from the seed by name. A run is therefore a function of its description and seed, down to
//! [`Network::trace_hash`], on any platform and in any build.

mod cross;
mod host;
mod ids;
mod latency;
mod ledger;
mod link;
mod nat;
mod network;
mod observe;
mod packet;
mod packet_log;
mod pair;
mod paths;
mod protection;
mod queue;
mod record;
mod result;
mod samples;
pub mod scenario;
mod schedule;
mod sent;
mod spec;
pub mod testing;
mod trace_hash;
mod tracer;
mod traffic;
mod transitions;
mod world;

pub use cross::{CrossTraffic, GeneratorSpec, Pattern, SourceSpec, SourceStats};
pub use host::{Host, HostConfig, ReflexiveAddress};
pub use ids::{End, LinkId, NatId, NodeId, RouteId, SourceId};
pub use latency::DurationHistogram;
pub use link::LinkStats;
pub use link::loss_range::LossRange;
pub use link::lost::LostPackets;
pub use link::pauses::Pauses;
pub use link::policer::Policer;
pub use nat::{MOST_MAPPINGS, NatBehaviour, NatBox, NatSpec, NatStats, PortAssignment};
pub use network::{AddressChange, Happening, Network, PathDrops, RouteSpec};
pub use observe::{DeliveredPacket, DroppedPacket, Observer, SentPacket};
pub use packet::{Delivery, DropCause, PacketPool, TooLong};
pub use packet_log::{Fate, LoggedPacket, PacketLog};
pub use pair::{Pair, PairBuilder, millis, path_state, secs};
pub use paths::{PathControl, PathEnds, PathLinks};
pub use protection::{Keys, RunKeys, shared_key};
pub use result::{PathResult, SharedPair, SharedResult, StateChange, TransferResult};
pub use samples::{PathSample, Sample, SampleTimes, Samples, Sampling};
pub use sent::Sent;
pub use spec::{
    GilbertElliott, HopSpec, LinkChange, LinkSpec, Loss, PathSpec, QueueLimit, Rate, Red,
};
pub use trace_hash::TraceHash;
pub use tracer::{TraceTo, Tracer};
pub use traffic::{LONGEST_MESSAGE, Lateness, Limits, MessageKind};
pub use transitions::{Transition, Transitions};
pub use world::{Flow, FlowNats, FlowSpec, HostId, MOST_FLOWS, World};

pub use manypath_wire::chunk_type;

/// The programs of the page for newcomers.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/first-hour.md")]
mod first_hour {}
