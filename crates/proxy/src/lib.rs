//! A proxy for TCP over one multipath association: each connection has a stream of its own.
//!
//! [`frame`], [`flow`], [`window`] and [`streams`] are the protocol; they have no sockets and no
//! clock. [`Session`] runs it over an association of `manypath` with tokio: it opens streams for
//! local connections and dials the targets of the peer's. `docs/proxy.md` describes the protocol.
//!
//! SCTP has no flow control per stream: all streams share one receive buffer. Each connection
//! therefore has a window of its own ([`window`]), so that one that is not read never holds up the
//! others.

mod conn;
mod dial;
pub mod flow;
pub mod frame;
mod gate;
mod relay;
pub mod rules;
mod session;
pub mod socks;
pub mod streams;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod udp;
pub mod window;

pub use relay::reset;
pub use session::{Counters, FORWARDS_MAX, Opened, Options, Remote, Session, SessionEnd, Side};
