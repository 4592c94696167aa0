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
    /// Where our clock begins, so that it tells nobody how long this host has been up.
    origin: u32,
    /// The timestamp of the first packet with DATA since the last SACK.
    to_echo: Option<u32>,
}

impl Timestamps {
    pub(crate) fn new(rng: &mut Rng) -> Timestamps {
        Timestamps { origin: rng.next_u32(), to_echo: None }
    }

    /// Takes note of a packet with DATA. A SACK that answers several echoes the first, so that the
    /// delay of the SACK counts in the RTT, as it does without timestamps.
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
    /// How a SACK measures the RTT: by what it echoes, or without timestamps not by this.
    pub(crate) fn echo(&self, echo: Option<u32>) -> Option<Echo> {
        self.agreed.timestamps.as_ref().map(|ts| Echo::new(ts.origin, echo))
    }
}
