//! Which transmission a SACK answers, by the timestamp it echoes.

use crate::time::Instant;

/// Evidence in a SACK's packet of when the packet that it answers was sent.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Echo {
    origin: u32,
    echo: Option<u32>,
}

impl Echo {
    /// The echo of a clock with this origin; `None` if the SACK carried none.
    pub(crate) fn new(origin: u32, echo: Option<u32>) -> Echo {
        Echo { origin, echo }
    }

    /// True if the SACK answers a packet that was sent at `sent_at`.
    pub(super) fn is_of(self, sent_at: Instant) -> bool {
        self.echo == Some(Echo::stamp(self.origin, sent_at))
    }

    /// Microseconds since an origin, modulo 2^32.
    pub(crate) fn stamp(origin: u32, at: Instant) -> u32 {
        origin.wrapping_add((at.as_nanos() / 1000) as u32)
    }
}
