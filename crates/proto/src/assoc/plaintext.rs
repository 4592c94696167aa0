//! Buffers of decrypted packets, used again when nobody reads them any more: an allocation and its
//! zeros for each packet would cost a receiver a fifth of its time.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// Bytes of buffers that an association keeps for its next packets.
const SPARE_MAX: usize = 512 * 1024;

/// The buffers of one association. One belongs to one packet, which fills at least half of it, so
/// that whoever keeps a packet keeps little more than that.
#[derive(Debug, Default)]
pub(super) struct PlaintextBuffers {
    spare: Arc<Mutex<Spare>>,
}

#[derive(Debug, Default)]
struct Spare {
    /// All have `len` bytes.
    buffers: Vec<Box<[u8]>>,
    /// Length of the longest packet so far.
    len: usize,
}

impl PlaintextBuffers {
    /// A packet of at most `len` bytes that `fill` writes, and what `fill` says of it beside its
    /// length.
    pub(super) fn fill<T, E>(
        &self,
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(T, usize), E>,
    ) -> Result<(T, Bytes), E> {
        let spare = self.lock().take(len);
        let mut bytes = spare.unwrap_or_else(|| vec![0; len].into_boxed_slice());
        match fill(&mut bytes) {
            Ok((what, filled)) => {
                self.lock().admit(bytes.len());
                let home = Arc::clone(&self.spare);
                Ok((what, Bytes::from_owner(Plaintext { bytes, filled, home })))
            }
            Err(error) => {
                self.lock().take_back(bytes);
                Err(error)
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Spare> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spare {
    /// A buffer for a packet that fills at least half of it.
    fn take(&mut self, len: usize) -> Option<Box<[u8]>> {
        if len <= self.len && len >= self.len / 2 { self.buffers.pop() } else { None }
    }

    /// A packet of `len` bytes was authentic: others as long will come.
    fn admit(&mut self, len: usize) {
        if len > self.len {
            self.buffers.clear();
            self.len = len;
        }
    }

    fn take_back(&mut self, bytes: Box<[u8]>) {
        let room = SPARE_MAX.checked_div(self.len).unwrap_or(0);
        if bytes.len() == self.len && self.buffers.len() < room {
            self.buffers.push(bytes);
        }
    }
}

/// A decrypted packet, as long as slices of it are read.
struct Plaintext {
    bytes: Box<[u8]>,
    filled: usize,
    home: Arc<Mutex<Spare>>,
}

impl AsRef<[u8]> for Plaintext {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }
}

impl Drop for Plaintext {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.home.lock().unwrap_or_else(PoisonError::into_inner).take_back(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(buffers: &PlaintextBuffers, len: usize) -> Bytes {
        let fill = |text: &mut [u8]| {
            text[..len].fill(len as u8);
            Ok::<_, ()>(((), len))
        };
        buffers.fill(len, fill).expect("filled").1
    }

    fn spare(buffers: &PlaintextBuffers) -> usize {
        buffers.lock().buffers.len()
    }

    #[test]
    fn a_buffer_returns_when_the_last_slice_of_it_is_gone() {
        let buffers = PlaintextBuffers::default();
        let first = packet(&buffers, 1400);
        let kept = first.slice(10..20);
        let place = first.as_ptr();
        drop(first);
        assert_eq!(spare(&buffers), 0, "a slice is still read");
        let second = packet(&buffers, 1300);
        assert_ne!(second.as_ptr(), place);
        assert_eq!(kept, [1400usize as u8; 10][..]);
        drop(kept);
        assert_eq!(spare(&buffers), 1);
        let third = packet(&buffers, 1200);
        assert_eq!((third.as_ptr(), third.len()), (place, 1200), "used again, at its length");
    }

    #[test]
    fn a_short_packet_keeps_no_long_buffer() {
        let buffers = PlaintextBuffers::default();
        drop(packet(&buffers, 9000));
        let short = packet(&buffers, 100);
        assert_eq!(spare(&buffers), 1, "that of 9000 bytes was left alone");
        drop(short);
        assert_eq!(spare(&buffers), 1);
    }

    #[test]
    fn what_is_not_authentic_changes_no_length() {
        let buffers = PlaintextBuffers::default();
        drop(packet(&buffers, 1400));
        assert_eq!(buffers.fill(60_000, |_| Err::<((), usize), _>("forged")), Err("forged"));
        assert_eq!((spare(&buffers), buffers.lock().len), (1, 1400));
    }

    #[test]
    fn what_is_kept_for_later_is_bounded() {
        let buffers = PlaintextBuffers::default();
        let all: Vec<Bytes> = (0..1000).map(|_| packet(&buffers, 1400)).collect();
        drop(all);
        assert_eq!(spare(&buffers), SPARE_MAX / 1400);
        drop(packet(&buffers, 9000));
        assert_eq!(spare(&buffers), 1, "those of the old length are gone");
    }
}
