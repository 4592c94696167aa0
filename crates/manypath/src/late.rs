//! Timers that are late because this host was busy.

use std::time::Duration;

/// By how much a timer is late only if something kept this task from running.
const LATE: Duration = Duration::from_millis(10);

/// The most rounds of reading before late timers are judged all the same: more datagrams than most
/// receive buffers hold. A flood must not stop the timers.
const ROUNDS_MAX: u32 = 512;

/// Decides when late timers are judged. They measure silence, and the answers may wait in the
/// sockets: those are read first.
#[derive(Debug, Default)]
pub(crate) struct LateTimers {
    /// Rounds of reading since a timer was found late.
    rounds: u32,
}

impl LateTimers {
    /// A timer is due, by `late`; `arrived` says that this round read something, so that there may
    /// be more. Returns true if it is to be judged now.
    pub(crate) fn judges(&mut self, late: Duration, arrived: bool) -> bool {
        let is_read = self.reads_first() && !arrived;
        let judges = late < LATE || is_read || self.rounds >= ROUNDS_MAX;
        self.rounds = if judges { 0 } else { self.rounds + 1 };
        judges
    }

    /// No timer is due.
    pub(crate) fn none_due(&mut self) {
        self.rounds = 0;
    }

    /// True if the sockets are to be read, whatever the runtime knows of them: it may have been
    /// kept from looking, too.
    pub(crate) fn reads_first(&self) -> bool {
        self.rounds > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: Duration = Duration::from_millis(300);

    #[test]
    fn a_timer_that_is_in_time_is_judged_at_once() {
        let mut timers = LateTimers::default();
        assert!(timers.judges(Duration::from_millis(9), true));
        assert!(timers.judges(Duration::ZERO, false));
        assert!(!timers.reads_first());
    }

    #[test]
    fn a_late_timer_waits_until_everything_is_read() {
        let mut timers = LateTimers::default();
        for _ in 0..2 {
            assert!(!timers.judges(BUSY, false), "the runtime may not know what has arrived");
            assert!(timers.reads_first() && !timers.judges(BUSY, true), "there may be more");
            assert!(timers.judges(BUSY, false), "all is read");
            assert!(!timers.reads_first());
        }
        assert!(!timers.judges(BUSY, false));
        timers.none_due();
        assert!(!timers.judges(BUSY, false), "of another timer nothing is known");
    }

    #[test]
    fn a_flood_stops_no_timer() {
        let mut timers = LateTimers::default();
        let judged = (0..10 * ROUNDS_MAX).filter(|_| timers.judges(BUSY, true)).count();
        assert_eq!(judged, 9);
    }
}
