//! One number for everything that happened in a run.

use manypath_proto::Instant;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Most bytes of a packet that count: the common header, the chunk headers and, for all but DATA
/// packets with their long payload, everything.
const PACKET_PREFIX: usize = 64;

/// A running 64-bit hash over every packet sent, delivered and dropped and every event.
///
/// Two runs with the same hash did the same things at the same times. It depends on neither the
/// platform nor the build, so a scenario's hash may be written down.
#[derive(Clone, Debug)]
pub struct TraceHash {
    state: u64,
}

/// The kind of a record of the trace, which is hashed too.
#[derive(Copy, Clone, Debug)]
#[repr(u8)]
pub(crate) enum Mark {
    Sent = 1,
    Delivered = 2,
    Dropped = 3,
    Event = 4,
}

impl TraceHash {
    pub(crate) fn new() -> TraceHash {
        TraceHash { state: 0 }
    }

    /// The hash of everything so far.
    pub fn value(&self) -> u64 {
        self.state
    }

    pub(crate) fn packet_sent(&mut self, now: Instant, id: u64, route: u32, bytes: &[u8]) {
        self.mix(Mark::Sent, u64::from(route) << 32 | bytes.len() as u64, now, id);
        self.mix_bytes(&bytes[..bytes.len().min(PACKET_PREFIX)]);
    }

    pub(crate) fn packet_fate(&mut self, mark: Mark, now: Instant, id: u64, cause: u8) {
        self.mix(mark, u64::from(cause), now, id);
    }

    pub(crate) fn event(&mut self, now: Instant, node: u32, text: &[u8]) {
        self.mix(Mark::Event, u64::from(node), now, text.len() as u64);
        self.mix_bytes(text);
    }

    #[inline]
    fn mix(&mut self, mark: Mark, what: u64, now: Instant, id: u64) {
        let state = fold(self.state ^ what, 0x9e37_79b9_7f4a_7c15 + mark as u64);
        self.state = fold(state ^ now.as_nanos(), id ^ 0xd6e8_feb8_6659_fd93);
    }

    #[inline]
    fn mix_bytes(&mut self, bytes: &[u8]) {
        self.state = xxh3_64_with_seed(bytes, self.state);
    }
}

/// Both halves of the product, so that every bit of either number counts.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(steps: &[(u64, u64, &[u8])]) -> u64 {
        let mut hash = TraceHash::new();
        for &(at, id, bytes) in steps {
            hash.packet_sent(Instant::from_nanos(at), id, 0, bytes);
        }
        hash.value()
    }

    #[test]
    fn time_order_length_and_bytes_all_count() {
        let base = hash(&[(1, 0, b"abc"), (2, 1, b"def")]);
        assert_eq!(base, hash(&[(1, 0, b"abc"), (2, 1, b"def")]));
        assert_ne!(base, hash(&[(1, 0, b"abc"), (3, 1, b"def")]), "time");
        assert_ne!(base, hash(&[(2, 1, b"def"), (1, 0, b"abc")]), "order");
        assert_ne!(base, hash(&[(1, 0, b"abc"), (2, 1, b"def\0")]), "length");
        assert_ne!(base, hash(&[(1, 0, b"abc"), (2, 1, b"deg")]), "bytes");
    }

    #[test]
    fn the_value_is_the_same_on_every_platform_and_build() {
        let mut trace = TraceHash::new();
        trace.packet_sent(Instant::from_millis(5), 0, 1, &[7; 100]);
        trace.packet_fate(Mark::Delivered, Instant::from_millis(9), 0, 0);
        trace.event(Instant::from_millis(9), 1, b"Connected");
        assert_eq!(trace.value(), 14_403_560_540_789_204_819, "written down from a first run");
    }
}
