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

/// What a record of the trace is about; part of what is hashed.
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
        let prefix = &bytes[..bytes.len().min(PACKET_PREFIX)];
        let mut record = [0; 29 + PACKET_PREFIX];
        record[0] = Mark::Sent as u8;
        record[1..9].copy_from_slice(&now.as_nanos().to_le_bytes());
        record[9..17].copy_from_slice(&id.to_le_bytes());
        record[17..21].copy_from_slice(&route.to_le_bytes());
        record[21..29].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        record[29..29 + prefix.len()].copy_from_slice(prefix);
        self.mix(&record);
    }

    pub(crate) fn packet_fate(&mut self, mark: Mark, now: Instant, id: u64, cause: u8) {
        let mut record = [0; 18];
        record[0] = mark as u8;
        record[1] = cause;
        record[2..10].copy_from_slice(&now.as_nanos().to_le_bytes());
        record[10..].copy_from_slice(&id.to_le_bytes());
        self.mix(&record);
    }

    pub(crate) fn event(&mut self, now: Instant, node: u32, text: &[u8]) {
        let mut record = [0; 13];
        record[0] = Mark::Event as u8;
        record[1..5].copy_from_slice(&node.to_le_bytes());
        record[5..].copy_from_slice(&now.as_nanos().to_le_bytes());
        self.mix(&record);
        self.mix(text);
    }

    fn mix(&mut self, record: &[u8]) {
        self.state = xxh3_64_with_seed(record, self.state);
    }
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
        assert_eq!(trace.value(), 10_286_560_077_283_325_520, "written down from a first run");
    }
}
