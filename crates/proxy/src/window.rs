//! The window of one connection's receiving side, and the memory that all windows share.
//!
//! A window is what the peer may have sent and the local TCP connection not taken yet. It begins
//! small and doubles while the connection uses it up within [`GROW_WITHIN`], as long as the budget
//! allows: so that a fast connection fills long, fast paths, and ten thousand idle ones cost
//! little.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The window of every connection when it opens, in bytes. Both sides know it, so data need not
/// wait for the first [`Credit`](crate::frame::Frame::Credit).
pub const WINDOW_INITIAL: u32 = 16 * 1024;
/// The largest window, in bytes: 640 Mbit/s at a round-trip time of 200 ms.
pub const WINDOW_MAX: u32 = 16 * 1024 * 1024;
/// A window doubles if it was used up within this time.
pub const GROW_WITHIN: Duration = Duration::from_secs(1);

/// Bytes that all windows together may have beyond [`WINDOW_INITIAL`] each.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    used: AtomicU64,
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Arc<Budget> {
        Arc::new(Budget { limit, used: AtomicU64::new(0) })
    }

    /// The bytes in use.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: u32) -> bool {
        let add = |used: u64| Some(used + u64::from(bytes)).filter(|sum| *sum <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    fn give_back(&self, bytes: u32) {
        self.used.fetch_sub(bytes.into(), Ordering::Relaxed);
    }
}

/// The peer sent more than its window.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Overrun;

/// A receiving window.
#[derive(Debug)]
pub struct Window {
    budget: Arc<Budget>,
    size: u32,
    /// Bytes that the peer may still send.
    granted: u32,
    /// Bytes received and not yet taken.
    unread: u32,
    /// Bytes taken since `since`.
    taken: u32,
    since: Duration,
}

impl Drop for Window {
    fn drop(&mut self) {
        self.budget.give_back(self.size - WINDOW_INITIAL);
    }
}

impl Window {
    /// The window of a connection that opens at `now`, a time since any fixed moment.
    pub fn new(budget: &Arc<Budget>, now: Duration) -> Window {
        let (size, granted) = (WINDOW_INITIAL, WINDOW_INITIAL);
        Window { budget: budget.clone(), size, granted, unread: 0, taken: 0, since: now }
    }

    /// The window's size in bytes.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Bytes that the peer may still send.
    pub fn granted(&self) -> u32 {
        self.granted
    }

    /// Notes that `bytes` have arrived.
    pub fn received(&mut self, bytes: usize) -> Result<(), Overrun> {
        let bytes = u32::try_from(bytes).map_err(|_| Overrun)?;
        self.granted = self.granted.checked_sub(bytes).ok_or(Overrun)?;
        self.unread += bytes;
        Ok(())
    }

    /// Notes that `bytes` of what arrived were taken. Returns the credit to give, 0 for none yet.
    pub fn taken(&mut self, bytes: usize, now: Duration) -> u32 {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(self.unread);
        self.unread -= bytes;
        self.taken = self.taken.saturating_add(bytes);
        if self.taken >= self.size {
            let is_fast = now.saturating_sub(self.since) < GROW_WITHIN;
            if is_fast && self.size < WINDOW_MAX && self.budget.take(self.size) {
                self.size *= 2;
            }
            (self.taken, self.since) = (0, now);
        }
        let credit = self.size - self.granted - self.unread;
        // Less is not worth a message.
        if credit < self.size / 4 {
            return 0;
        }
        self.granted += credit;
        credit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A peer that uses up whatever it is granted, once each `rtt`, for `rounds` round trips.
    fn filled(window: &mut Window, rtt: Duration, rounds: u32) {
        for round in 1..=rounds {
            let bytes = window.granted() as usize;
            window.received(bytes).unwrap();
            window.taken(bytes, rtt * round);
        }
    }

    #[test]
    fn a_fast_connection_gets_the_largest_window_and_gives_it_back() {
        let budget = Budget::new(1 << 30);
        let mut window = Window::new(&budget, Duration::ZERO);
        filled(&mut window, 100 * MS, 12);
        assert_eq!(window.size(), WINDOW_MAX);
        drop(window);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_slow_connection_keeps_its_small_window() {
        let mut window = Window::new(&Budget::new(1 << 30), Duration::ZERO);
        for second in 1..100 {
            window.received(4096).unwrap();
            window.taken(4096, Duration::from_secs(second));
        }
        assert_eq!(window.size(), WINDOW_INITIAL);
    }

    #[test]
    fn all_windows_together_stay_within_the_budget() {
        let budget = Budget::new(1 << 20);
        let mut windows: Vec<_> = (0..100).map(|_| Window::new(&budget, Duration::ZERO)).collect();
        windows.iter_mut().for_each(|window| filled(window, 10 * MS, 50));
        let sum: u64 = windows.iter().map(|w| u64::from(w.size() - WINDOW_INITIAL)).sum();
        assert_eq!(sum, budget.used());
        assert!((1 << 19..=1 << 20).contains(&sum), "{sum}");
    }

    #[test]
    fn a_peer_that_is_not_read_stops_at_its_window_and_one_that_goes_on_is_caught() {
        let mut window = Window::new(&Budget::new(1 << 30), Duration::ZERO);
        assert_eq!(window.received(WINDOW_INITIAL as usize), Ok(()));
        assert_eq!(window.received(1), Err(Overrun));
        assert_eq!(window.received(usize::MAX), Err(Overrun));
    }
}
