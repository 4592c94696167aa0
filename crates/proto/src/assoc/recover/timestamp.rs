//! Timestamps (TS): the RTT of every packet, retransmissions included (retransmission policies
//! paper, section 4.2).

use manypath_wire::Timestamp;

use crate::assoc::Association;
use crate::rng::Rng;
use crate::time::Instant;
use crate::tx::Echo;

/// The state of a sender and receiver of timestamps; both ends announced them.
#[derive(Debug)]
pub(crate) struct Timestamps {
    /// The origin of our clock. It is random, so that timestamps do not tell how long this host is
    /// up.
    origin: u32,
    /// The timestamp of the first packet with DATA since the last SACK.
    to_echo: Option<u32>,
}

impl Timestamps {
    pub(crate) fn new(rng: &mut Rng) -> Timestamps {
        Timestamps { origin: rng.next_u32(), to_echo: None }
    }

    /// Takes note of a packet with DATA. A SACK for several packets echoes the first one's
    /// timestamp, so that the RTT contains the SACK delay, as without timestamps.
    pub(crate) fn received(&mut self, timestamp: u32) {
        self.to_echo.get_or_insert(timestamp);
    }

    /// The chunk for a packet that is sent now.
    pub(crate) fn chunk(&mut self, now: Instant, with_sack: bool) -> Timestamp {
        let echo = if with_sack { self.to_echo.take() } else { None };
        Timestamp { timestamp: Echo::stamp(self.origin, now), echo }
    }
}

impl Association {
    /// The echo by which a SACK measures the RTT; `None` without timestamps.
    pub(crate) fn echo(&self, echo: Option<u32>) -> Option<Echo> {
        self.agreed.timestamps.as_ref().map(|ts| Echo::new(ts.origin, echo))
    }
}
