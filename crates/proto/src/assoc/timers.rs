//! One table of timers, so that "when next" cannot forget one.

use crate::time::Instant;
use crate::view::PathId;

/// Timers of an association.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum AssocTimer {
    /// T1-init and T1-cookie: only one of them can run.
    T1,
    /// T2-shutdown.
    T2,
    /// T5-shutdown-guard: bounds the whole of a shutdown.
    T5,
    /// A delayed SACK.
    Sack,
    /// No path was usable for `association_timeout`.
    GiveUp,
    /// The paths that carry data must be reviewed (`path_review_interval`).
    Review,
    /// Data has waited so long that a dearer path may carry it.
    Ranks,
    /// The redundancy policy looks again for a chunk to copy.
    Copy,
    /// The peer must have shown its keys, or keys must be replaced or dropped.
    Keys,
    /// The trial of a path ends. A path that did not answer gets another pair of addresses.
    Trial,
    /// Candidates must be told, or a pair of addresses checked.
    Direct,
    /// The lifetime of a message ends.
    Lifetime,
    /// FORWARD TSN was not acknowledged.
    Forward,
    /// The Re-configuration Timer: a request to reset or add streams is not answered.
    Reconfigure,
    /// T-4 RTO: a request to change addresses is not answered (RFC 5061 §5.1).
    T4,
}

const ASSOC_TIMERS: [AssocTimer; 15] = [
    AssocTimer::T1,
    AssocTimer::T2,
    AssocTimer::T5,
    AssocTimer::Sack,
    AssocTimer::GiveUp,
    AssocTimer::Review,
    AssocTimer::Ranks,
    AssocTimer::Copy,
    AssocTimer::Keys,
    AssocTimer::Trial,
    AssocTimer::Direct,
    AssocTimer::Lifetime,
    AssocTimer::Forward,
    AssocTimer::Reconfigure,
    AssocTimer::T4,
];

/// Timers of a path.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum PathTimer {
    /// T3-rtx: data in flight is not acknowledged.
    T3Rtx,
    /// A heartbeat must be sent, or was not answered.
    Heartbeat,
    /// The tail of a flight may be lost.
    TailLossProbe,
    /// The pacer has tokens again.
    Pacing,
    /// A path was without an acknowledgement for too long.
    Silence,
    /// A probe of the path's size was not answered, or larger sizes must be tried again.
    Pmtu,
    /// With loss detection by time: a chunk is late.
    Late,
}

const PATH_TIMERS: [PathTimer; 7] = [
    PathTimer::T3Rtx,
    PathTimer::Heartbeat,
    PathTimer::TailLossProbe,
    PathTimer::Pacing,
    PathTimer::Silence,
    PathTimer::Pmtu,
    PathTimer::Late,
];

/// A timer of the table.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    Assoc(AssocTimer),
    Path(PathId, PathTimer),
}

/// The expiry of a timer that does not run. As an instant it needs no branch in the search for the
/// earliest timer, which follows every packet.
const NEVER: Instant = Instant::from_nanos(u64::MAX);

/// When each timer expires.
#[derive(Debug)]
pub(crate) struct TimerTable {
    assoc: [Instant; ASSOC_TIMERS.len()],
    paths: Vec<[Instant; PATH_TIMERS.len()]>,
}

impl Default for TimerTable {
    fn default() -> TimerTable {
        TimerTable { assoc: [NEVER; ASSOC_TIMERS.len()], paths: Vec::new() }
    }
}

impl TimerTable {
    fn slot(&mut self, timer: Timer) -> &mut Instant {
        match timer {
            Timer::Assoc(t) => &mut self.assoc[t as usize],
            Timer::Path(path, t) => {
                if self.paths.len() <= path.index() {
                    self.paths.resize(path.index() + 1, [NEVER; PATH_TIMERS.len()]);
                }
                &mut self.paths[path.index()][t as usize]
            }
        }
    }

    /// Starts or restarts a timer.
    pub(crate) fn set(&mut self, timer: Timer, at: Instant) {
        *self.slot(timer) = at;
    }

    pub(crate) fn stop(&mut self, timer: Timer) {
        *self.slot(timer) = NEVER;
    }

    /// Starts a timer unless it is running.
    pub(crate) fn start(&mut self, timer: Timer, at: Instant) {
        let slot = self.slot(timer);
        if *slot == NEVER {
            *slot = at;
        }
    }

    /// Lets a running timer expire no later than `at`.
    pub(crate) fn bring_forward(&mut self, timer: Timer, at: Instant) {
        if self.is_running(timer) {
            let slot = self.slot(timer);
            *slot = (*slot).min(at);
        }
    }

    pub(crate) fn is_running(&self, timer: Timer) -> bool {
        let at = match timer {
            Timer::Assoc(t) => Some(&self.assoc[t as usize]),
            Timer::Path(path, t) => self.paths.get(path.index()).map(|slots| &slots[t as usize]),
        };
        at.is_some_and(|&at| at != NEVER)
    }

    pub(crate) fn stop_path(&mut self, path: PathId) {
        for t in PATH_TIMERS {
            self.stop(Timer::Path(path, t));
        }
    }

    pub(crate) fn stop_all(&mut self) {
        *self = TimerTable::default();
    }

    fn running(&self) -> impl Iterator<Item = (Instant, Timer)> + '_ {
        let assoc = ASSOC_TIMERS.iter().map(|&t| (self.assoc[t as usize], Timer::Assoc(t)));
        let paths = self.paths.iter().enumerate().flat_map(|(i, slots)| {
            PATH_TIMERS.iter().map(move |&t| (slots[t as usize], Timer::Path(PathId(i as u8), t)))
        });
        assoc.chain(paths).filter(|&(at, _)| at != NEVER)
    }

    /// When the next timer expires.
    pub(crate) fn next(&self) -> Option<Instant> {
        let mut next = NEVER;
        for &at in &self.assoc {
            next = next.min(at);
        }
        for path in &self.paths {
            for &at in path {
                next = next.min(at);
            }
        }
        (next != NEVER).then_some(next)
    }

    /// Stops and returns the earliest of the timers that have expired.
    pub(crate) fn pop_expired(&mut self, now: Instant) -> Option<Timer> {
        let (_, timer) = self.running().filter(|&(at, _)| at <= now).min_by_key(|&(at, _)| at)?;
        self.stop(timer);
        Some(timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_expire_in_the_order_of_time_and_once() {
        let mut t = TimerTable::default();
        let (sack, t3) = (Timer::Assoc(AssocTimer::Sack), Timer::Path(PathId(1), PathTimer::T3Rtx));
        t.set(sack, Instant::from_millis(20));
        t.set(t3, Instant::from_millis(10));
        t.start(t3, Instant::from_millis(5));
        assert_eq!(t.next(), Some(Instant::from_millis(10)), "start leaves a running timer alone");
        assert_eq!(t.pop_expired(Instant::from_millis(9)), None);
        let now = Instant::from_millis(30);
        assert_eq!([t.pop_expired(now), t.pop_expired(now)], [Some(t3), Some(sack)]);
        assert_eq!((t.pop_expired(now), t.next()), (None, None));
    }
}
