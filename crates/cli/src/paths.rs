//! Reports about an association's paths: counters for the result, changes as they happen.

use std::sync::{Arc, Mutex, PoisonError};

use manypath::{Association, Event, PathRank, PathStats, SuppressReason};
use manypath_live::{Total, Watching};
use serde::Serialize;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::notices::{Notice, PathName};
use crate::screen::Screen;

/// As many state changes as are kept for each association, and as many notices; a path that flaps
/// must not fill memory.
const CHANGES_MAX: usize = 1000;

/// One path in a result. The keys are a public contract; what only a simulation knows is null.
#[derive(Debug, Serialize)]
pub(crate) struct PathReport {
    /// Its number, from 1, as messages and notices call it.
    pub path: u16,
    /// The relay that our address is on; null for a direct path.
    pub relay: Option<String>,
    /// Why it carries no data though it works: `shared_bottleneck`, `slow`, `spare`,
    /// `shares_hops` or `dearer`; null if it may.
    pub suppressed: Option<SuppressReason>,
    /// Its rank: `normal`, `cost=N` or `backup`.
    pub rank: PathRank,
    /// Counters of this side, and its variables at the end.
    #[serde(flatten)]
    pub stats: PathStats,
    /// SCTP packets received.
    pub packets_received: u64,
    /// User bytes that the peer acknowledged from this path.
    pub bytes_acked: u64,
    /// Retransmissions of chunks that had arrived; known in simulation only.
    pub spurious_retransmissions: Option<u64>,
    /// Packets lost on the path; known in simulation only.
    pub packets_dropped: Option<u64>,
    /// The changes of state in order.
    pub state_changes: Vec<StateChange>,
}

/// A path changed state.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StateChange {
    /// Seconds since the association was established.
    pub at_s: f64,
    /// The state it left.
    pub from: &'static str,
    /// The state it entered.
    pub to: &'static str,
    #[serde(skip)]
    path: u8,
}

/// Notes the state changes of an association as they happen, and tells the user.
#[derive(Debug)]
pub(crate) struct PathWatch {
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
    /// The live views show it meanwhile.
    _watching: Option<Watching>,
}

/// The events so far.
#[derive(Debug, Default)]
struct Seen {
    changes: Vec<StateChange>,
    notices: Vec<TimedNotice>,
}

/// A notice and when it came.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TimedNotice {
    /// Seconds since the association was established.
    pub at_s: f64,
    /// The event or decision.
    #[serde(flatten)]
    pub notice: Notice,
}

impl PathWatch {
    /// Begins to watch; call it when the association is established. `total` is its content.
    pub(crate) fn start(
        association: &Association,
        screen: Screen,
        total: Option<Total>,
    ) -> PathWatch {
        let watching = screen.live().map(|live| live.watch(association, total));
        let seen = Arc::new(Mutex::new(Seen::default()));
        let begin = Instant::now();
        let mut events = association.events();
        let association = association.clone();
        let noted = seen.clone();
        let task = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                let at_s = begin.elapsed().as_secs_f64();
                let said = |text: &str| screen.line_at(at_s, text);
                let mut seen = noted.lock().unwrap_or_else(PoisonError::into_inner);
                if let Event::PathState { path, from, to } = event {
                    let name = PathName::of(&association, path);
                    said(&format!("{name} is {}", to.name().replace('_', " ")));
                    if seen.changes.len() < CHANGES_MAX {
                        let (from, to) = (from.name(), to.name());
                        seen.changes.push(StateChange { at_s, from, to, path: path.0 });
                    }
                    continue;
                }
                if let Event::PathRemoved { path } = event {
                    // Its number may be another path's next.
                    seen.changes.retain(|change| change.path != path.0);
                }
                if let Some(notice) = Notice::of(&event, |id| PathName::of(&association, id)) {
                    notice.sentence().iter().for_each(|text| said(text));
                    if seen.notices.len() < CHANGES_MAX {
                        seen.notices.push(TimedNotice { at_s, notice });
                    }
                }
            }
        });
        PathWatch { seen, task, _watching: watching }
    }

    /// The events and decisions about paths so far, in order.
    pub(crate) fn notices(&self) -> Vec<TimedNotice> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).notices.clone()
    }

    /// The paths as they are now, with what happened to them.
    pub(crate) fn report(&self, association: &Association) -> Vec<PathReport> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        association
            .paths()
            .into_iter()
            .map(|path| {
                let changes =
                    seen.changes.iter().filter(|c| c.path == path.id.0).cloned().collect();
                let relay = association.relay(path.local);
                path_report(path, relay, changes)
            })
            .collect()
    }
}

impl Drop for PathWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn path_report(
    stats: PathStats,
    relay: Option<String>,
    state_changes: Vec<StateChange>,
) -> PathReport {
    PathReport {
        path: u16::from(stats.id.0) + 1,
        relay,
        suppressed: stats.suppressed,
        rank: stats.rank,
        packets_received: stats.counters.packets_received,
        bytes_acked: stats.counters.acked_bytes,
        spurious_retransmissions: None,
        packets_dropped: None,
        state_changes,
        stats,
    }
}
