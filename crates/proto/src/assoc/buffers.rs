//! Buffers that grow by need. The receive buffer follows what the application reads in one RTT, the
//! send buffer what is in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::Association;
use crate::config::Config;
use crate::time::Instant;

/// Shortest time over which reading is measured. Shorter ones would measure the driver's batches.
const LEAST_PERIOD: Duration = Duration::from_millis(10);
/// The RTT assumed before any path was measured.
const NOMINAL_RTT: Duration = Duration::from_millis(100);
/// Upper bound of the RTT taken from the handshake, because a peer may answer late.
const MAX_HANDSHAKE_RTT: Duration = Duration::from_secs(1);
/// The receive buffer, in multiples of the bytes read per RTT. One of these is in flight, and the
/// next may be twice as large in slow start.
const READ_FACTOR: usize = 8;
/// Room for data behind a missing chunk, in multiples of the bytes that wait there. They may wait
/// twice as long.
const HELD_FACTOR: usize = 2;

/// Memory, in bytes, that all associations of an endpoint may add to their buffers.
#[derive(Debug)]
pub(crate) struct Reserve(AtomicUsize);

impl Reserve {
    pub(crate) fn new(bytes: usize) -> Arc<Reserve> {
        Arc::new(Reserve(AtomicUsize::new(bytes)))
    }

    /// Takes up to this number of bytes; returns how many.
    fn take(&self, bytes: usize) -> usize {
        let rest = |free: usize| Some(free.saturating_sub(bytes));
        let free = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest);
        free.unwrap_or(0).min(bytes)
    }

    fn give_back(&self, bytes: usize) {
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| {
            Some(free.saturating_add(bytes))
        });
    }
}

/// The part of a reserve that an association has taken. It returns to the reserve when the
/// association ends.
#[derive(Debug, Default)]
struct Share {
    of: Option<Arc<Reserve>>,
    taken: usize,
}

impl Share {
    /// Takes up to this number of bytes; without a reserve all of them.
    fn take(&mut self, bytes: usize) -> usize {
        let Some(reserve) = &self.of else { return bytes };
        let granted = reserve.take(bytes);
        self.taken += granted;
        granted
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(reserve) = &self.of {
            reserve.give_back(self.taken);
        }
    }
}

/// The growth of an association's buffers.
#[derive(Debug)]
pub(super) struct Buffers {
    /// The send buffer in force, in bytes.
    pub(super) send: usize,
    share: Share,
    reading: Reading,
    /// RTT of the handshake: from INIT to INIT ACK, or from INIT ACK to COOKIE ECHO.
    handshake_rtt: Option<Duration>,
}

/// A measurement of how fast the application reads.
#[derive(Debug, Default)]
struct Reading {
    since: Instant,
    /// User bytes read before the measurement began.
    before: u64,
    /// The most user bytes that waited for missing chunks during the measurement.
    held: usize,
}

impl Buffers {
    pub(super) fn new(config: &Config) -> Buffers {
        let send = config.send_buffer.min(config.send_buffer_initial);
        Buffers { send, share: Share::default(), reading: Reading::default(), handshake_rtt: None }
    }

    /// Takes the RTT of the handshake: from INIT to INIT ACK, or from INIT ACK to COOKIE ECHO. An
    /// end that only receives may have no other measurement of its first path.
    pub(super) fn note_handshake(&mut self, rtt: Duration) {
        self.handshake_rtt = Some(rtt.min(MAX_HANDSHAKE_RTT));
    }

    /// The RTT that the handshake measured.
    pub(super) fn handshake_rtt(&self) -> Option<Duration> {
        self.handshake_rtt
    }

    /// Takes over the memory of an association that this one succeeds.
    pub(super) fn take_over(&mut self, old: &mut Buffers) {
        self.share = std::mem::take(&mut old.share);
    }

    /// Takes all further memory from this reserve.
    pub(super) fn draw_on(&mut self, reserve: Arc<Reserve>) {
        self.share = Share { of: Some(reserve), taken: 0 };
    }
}

impl Association {
    /// Enlarges the receive buffer if needed, after the application has read something. `is_all` is
    /// true if nothing is left to read.
    #[inline]
    pub(super) fn follow_reading(&mut self, now: Instant, is_all: bool) {
        // A stranger's buffer, below the first one, stays as it is until the stranger is admitted.
        let bounds = self.config.first_receive_buffer()..self.config.receive_buffer;
        let may_grow = bounds.contains(&self.rx.buffer);
        if may_grow {
            self.measure_reading(now, is_all);
        }
    }

    fn measure_reading(&mut self, now: Instant, is_all: bool) {
        if is_all {
            let held = self.rx.buffered_bytes();
            self.buffers.reading.held = self.buffers.reading.held.max(held);
        }
        let elapsed = now - self.buffers.reading.since;
        if elapsed < LEAST_PERIOD {
            return;
        }
        let measured = self.paths.iter().filter_map(|p| p.rto.srtt());
        let rtt = measured.chain(self.buffers.handshake_rtt).max().unwrap_or(NOMINAL_RTT);
        if elapsed < rtt {
            return;
        }
        let reading = std::mem::take(&mut self.buffers.reading);
        let total = self.stats.bytes_received;
        self.buffers.reading = Reading { since: now, before: total, held: 0 };
        let rate = (total - reading.before) as f64 / elapsed.as_secs_f64();
        let read = (rate * rtt.as_secs_f64()) as usize;
        // Waiting data counts only as far as the application reads, so that a peer alone cannot
        // enlarge the buffer.
        let held = (HELD_FACTOR * reading.held).min(2 * READ_FACTOR * read);
        let wanted = (READ_FACTOR * read + held).min(self.config.receive_buffer);
        let more = wanted.saturating_sub(self.rx.buffer);
        if more > 0 {
            let granted = self.buffers.share.take(more);
            self.set_receive_buffer(now, self.rx.buffer + granted);
        }
    }

    /// Enlarges the send buffer to twice the user bytes in flight or not yet released, so that as
    /// much again is ready when they are acknowledged.
    pub(super) fn grow_send_buffer(&mut self) {
        let wanted = (2 * self.out.user_bytes()).min(self.config.send_buffer);
        if wanted > self.buffers.send {
            self.buffers.send += self.buffers.share.take(wanted - self.buffers.send);
        }
    }

    /// Memory for buffers that grow, which associations share.
    pub(crate) fn set_buffer_reserve(&mut self, reserve: Arc<Reserve>) {
        self.buffers.draw_on(reserve);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_shared_and_given_back() {
        let reserve = Reserve::new(100);
        let share = || Share { of: Some(Arc::clone(&reserve)), taken: 0 };
        let (mut one, mut two) = (share(), share());
        assert_eq!((one.take(70), two.take(70)), (70, 30));
        assert_eq!(one.take(1), 0);
        drop(two);
        assert_eq!(one.take(50), 30);
        drop(one);
        assert_eq!(share().take(1000), 100);
    }
}
