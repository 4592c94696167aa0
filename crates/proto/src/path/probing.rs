//! The heartbeats of a path (RFC 9260 §8.3), and their answers.

use std::time::Duration;

use super::Path;
use crate::config::Config;
use crate::time::Instant;

/// A peer that was not heard for this long is silent, and the path may be dead.
const SILENT_AFTER: Duration = Duration::from_secs(2);

/// A heartbeat that was sent and not answered.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Probe {
    pub(crate) code: u64,
    pub(crate) sent_at: Instant,
}

/// A time during which the peer's packets arrive on a path, but no answers to its heartbeats.
#[derive(Copy, Clone, Debug)]
struct Overdue {
    since: Instant,
    /// When the last packet arrived.
    heard_at: Instant,
}

/// The heartbeats of a path: those sent, and the one that is due.
#[derive(Debug, Default)]
pub(crate) struct Probing {
    /// The time without data between heartbeats of an active path, beside its RTO.
    pub(crate) hb_interval: Duration,
    /// An active path without data is probed.
    pub(crate) has_heartbeats: bool,
    /// The latest heartbeat, until its time for an answer is over. A late answer counts too: the
    /// RTT may have grown beyond the time between probes.
    pub(crate) probe: Option<Probe>,
    /// When the newest of the answered heartbeats was sent.
    pub(crate) answered: Option<Instant>,
    /// Heartbeats sent since one was answered.
    pub(crate) unanswered: u32,
    overdue: Option<Overdue>,
    /// When a heartbeat of the peer last arrived on this path.
    pub(crate) last_asked: Option<Instant>,
    /// True if a heartbeat must be sent.
    pub(crate) is_due: bool,
    /// Beginning and end of the heartbeat interval, if it counts from sending.
    pub(crate) interval: Option<(Instant, Instant)>,
    /// When a heartbeat was last sent.
    pub(crate) last_sent: Option<Instant>,
    /// Heartbeats lost in a row. Each doubles the interval between the first probes.
    pub(crate) lost: u32,
    /// True if the path was probed after a change of the network: earlier packets may be lost.
    pub(crate) is_after_change: bool,
}

impl Path {
    /// The heartbeat that was sent at `asked_at` is answered.
    pub(crate) fn note_answer(&mut self, now: Instant, asked_at: Instant) {
        let probing = &mut self.probing;
        probing.answered = Some(asked_at);
        probing.unanswered = 0;
        probing.overdue = None;
        probing.lost = 0;
        self.liveness.was_carried = false;
        self.liveness.error_count = 0;
        self.liveness.last_active = now;
    }
}

impl Probing {
    /// A path that was not probed yet.
    pub(super) fn new(config: &Config) -> Probing {
        Probing {
            hb_interval: config.hb_interval,
            has_heartbeats: config.heartbeats,
            ..Probing::default()
        }
    }

    /// Notes an authentic packet of the peer on this path.
    #[inline]
    pub(crate) fn note_heard(&mut self, now: Instant) {
        // A single heartbeat has no answer for a round trip in any case.
        if self.unanswered > 1 {
            let lasts = self.overdue.filter(|o| now - o.heard_at <= SILENT_AFTER);
            let since = lasts.map_or(now, |overdue| overdue.since);
            self.overdue = Some(Overdue { since, heard_at: now });
        }
    }

    /// The shortest time between two heartbeats, at most `most`. If the peer is heard, the path is
    /// not dead: answers take longer, or it works in one direction only. Many heartbeats would then
    /// fill a slow link, so each waits for half of the time that answers are overdue.
    pub(crate) fn gap(&self, now: Instant, most: Duration) -> Duration {
        let overdue = self.overdue.filter(|o| now - o.heard_at <= SILENT_AFTER);
        overdue.map_or(Duration::ZERO, |overdue| ((now - overdue.since) / 2).min(most))
    }

    /// True if a heartbeat is due or unanswered.
    pub(crate) fn is_asking(&self) -> bool {
        self.is_due || self.probe.is_some()
    }
}
