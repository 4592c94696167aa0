//! Reports about an association's paths: counters for the result, changes as they happen.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use manypath::{Association, Event, PathId, PathRank, PathState, PathStats, SuppressReason};
use manypath_live::figures::state_words;
use manypath_live::{Interfaces, Total, Watching};
use serde::Serialize;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::screen::Screen;
use crate::screen::labels::{Ends, label};
use crate::screen::notices::states::{StateTeller, Told};
use crate::screen::notices::{Detail, Notice, PathName};
use crate::screen::shares::Share;

/// How often counters are read, so that they are known of a path that is removed.
const READ_EVERY: Duration = Duration::from_millis(250);
/// Paths that were removed whose shares are kept.
const GONE_MAX: usize = 64;
/// As many state changes as are kept for each association, and as many notices; a path that flaps
/// must not fill memory.
const CHANGES_MAX: usize = 1000;

/// One path in a result. The keys are a public contract; what only a simulation knows is null.
#[derive(Debug, Serialize)]
pub(crate) struct PathReport {
    /// Its number, from 1, as messages and notices call it.
    pub path: u16,
    /// The interface that has our address, or had it; null if none is known, as on a relay.
    pub interface: Option<String>,
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
    /// User bytes that came on this path first.
    pub data_bytes_received: u64,
    /// User bytes that the peer acknowledged from this path.
    pub bytes_acked: u64,
    /// Retransmissions of chunks that had arrived; known in simulation only.
    pub spurious_retransmissions: Option<u64>,
    /// Packets lost on the path; known in simulation only.
    pub packets_dropped: Option<u64>,
    /// The changes of state in order.
    pub state_changes: Vec<StateChange>,
}

impl PathReport {
    /// The name of the path beside the others of `all`; in full, its addresses.
    pub(crate) fn called(&self, all: &[PathReport], detail: Detail) -> String {
        match detail {
            Detail::Brief => {
                label(&self.ends(), &all.iter().map(PathReport::ends).collect::<Vec<_>>())
            }
            Detail::Full => self.ends().addresses(),
        }
    }

    fn ends(&self) -> Ends {
        let (interface, relay) = (self.interface.clone(), self.relay.clone());
        Ends { interface, relay, local: self.stats.local, remote: self.stats.remote }
    }
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
    interfaces: Interfaces,
    /// The paths when they were last read.
    read: BTreeMap<PathId, Carrier>,
    /// Paths that were removed.
    gone: Vec<Carrier>,
}

/// A path and what it carried.
#[derive(Clone, Debug)]
struct Carrier {
    ends: Ends,
    traffic: Traffic,
}

/// User bytes of a path: acknowledged by the peer, and received.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct Traffic {
    acked: u64,
    received: u64,
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
        locked(&seen).read(association);
        let teller = StateTeller::new(Detail::new(screen.is_verbose()));
        let watcher = Watcher {
            association: association.clone(),
            screen,
            seen: seen.clone(),
            begin: Instant::now(),
            teller,
            silent: None,
        };
        let task = tokio::spawn(watcher.run());
        PathWatch { seen, task, _watching: watching }
    }

    /// The events and decisions about paths so far, in order.
    pub(crate) fn notices(&self) -> Vec<TimedNotice> {
        locked(&self.seen).notices.clone()
    }

    /// The paths as they are now, with what happened to them.
    pub(crate) fn report(&self, association: &Association) -> Vec<PathReport> {
        let seen = &mut *locked(&self.seen);
        association
            .paths()
            .into_iter()
            .map(|path| {
                let changes =
                    seen.changes.iter().filter(|c| c.path == path.id.0).cloned().collect();
                let ends = Ends::of(&path, association, &mut seen.interfaces);
                path_report(path, ends, changes)
            })
            .collect()
    }

    /// The share of each path in both directions, those that were removed included.
    pub(crate) fn shares(&self, association: &Association) -> Vec<Share> {
        let mut seen = locked(&self.seen);
        seen.read(association);
        seen.shares()
    }
}

impl Drop for PathWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn locked(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Seen {
    fn note_change(&mut self, at_s: f64, path: PathId, from: PathState, to: PathState) {
        if self.changes.len() < CHANGES_MAX {
            let (from, to) = (from.name(), to.name());
            self.changes.push(StateChange { at_s, from, to, path: path.0 });
        }
    }

    /// Reads the counters of all paths. A path with other addresses, or with less than before, took
    /// the number of one that was removed.
    fn read(&mut self, association: &Association) {
        let paths = association.paths();
        let mut now = BTreeMap::new();
        for path in &paths {
            let ends = Ends::of(path, association, &mut self.interfaces);
            let counters = &path.counters;
            let (acked, received) = (counters.acked_bytes, counters.data_bytes_received);
            now.insert(path.id, Carrier { ends, traffic: Traffic { acked, received } });
        }
        for (id, before) in std::mem::take(&mut self.read) {
            if now.get(&id).is_none_or(|path| path.traffic.is_less_than(before.traffic)) {
                self.note_gone(before);
            }
        }
        self.read = now;
    }

    fn note_gone(&mut self, path: Carrier) {
        if path.traffic != Traffic::default() && self.gone.len() < GONE_MAX {
            self.gone.push(path);
        }
    }

    /// The shares, those of paths with one name together.
    fn shares(&self) -> Vec<Share> {
        let present: Vec<_> = self.read.values().map(|path| path.ends.clone()).collect();
        let mut shares: Vec<Share> = Vec::new();
        for path in self.read.values().chain(&self.gone) {
            let label = label(&path.ends, &present);
            let bytes = path.traffic.acked + path.traffic.received;
            match shares.iter_mut().find(|share| share.label == label) {
                Some(share) => share.bytes += bytes,
                None => shares.push(Share { label, bytes }),
            }
        }
        shares
    }
}

impl Traffic {
    /// True if it is not what these bytes have grown to.
    fn is_less_than(self, before: Traffic) -> bool {
        self.acked < before.acked || self.received < before.received
    }
}

/// The task of a [`PathWatch`].
struct Watcher {
    association: Association,
    screen: Screen,
    seen: Arc<Mutex<Seen>>,
    begin: Instant,
    teller: StateTeller,
    /// The path whose lack of an answer was the last event.
    silent: Option<PathId>,
}

impl Watcher {
    async fn run(mut self) {
        let mut events = self.association.events();
        let mut ticks = interval(READ_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                // Before patience is over: after a pause the end of a failure may wait here.
                biased;
                event = events.next() => match event {
                    Some(event) => self.happened(&event),
                    None => return,
                },
                _ = ticks.tick() => {
                    locked(&self.seen).read(&self.association);
                    let due = self.teller.due(self.begin.elapsed().as_secs_f64());
                    due.into_iter().for_each(|told| self.tell(told));
                }
            }
        }
    }

    fn happened(&mut self, event: &Event) {
        let at_s = self.begin.elapsed().as_secs_f64();
        if let Event::PathState { path, from, to } = *event {
            locked(&self.seen).note_change(at_s, path, from, to);
            let told = self.teller.changed(at_s, path, to);
            told.into_iter().for_each(|told| self.tell(told));
            return;
        }
        if let Event::PathRemoved { path } = *event {
            // Another path may get the number next.
            locked(&self.seen).changes.retain(|change| change.path != path.0);
            self.teller.removed(path);
        }
        let is_told = self.is_told_already(event);
        if let Some(notice) = Notice::of(event, |id| self.name(id)) {
            if !is_told && let Some(sentence) = notice.sentence(self.detail()) {
                self.screen.line_at(at_s, &sentence);
            }
            let seen = &mut *locked(&self.seen);
            if seen.notices.len() < CHANGES_MAX {
                seen.notices.push(TimedNotice { at_s, notice });
            }
        }
    }

    /// True if the event is the second half of one that a sentence told: a path that had no answer
    /// makes room for another pair of addresses at once. With all details each is told.
    fn is_told_already(&mut self, event: &Event) -> bool {
        let (Event::PathRemoved { path } | Event::PathAdded { path, .. }) = event else {
            self.silent = match event {
                Event::NoAnswer { path, .. } => Some(*path),
                _ => None,
            };
            return false;
        };
        self.silent == Some(*path) && self.detail() == Detail::Brief
    }

    fn tell(&self, told: Told) {
        let (name, state) = (self.name(told.path).text(self.detail()), told.state.name());
        let state = state_words(state, false);
        self.screen.line_at(told.at_s, &format!("{name} is {state}"));
    }

    fn name(&self, id: PathId) -> PathName {
        PathName::of(&self.association, id, &mut locked(&self.seen).interfaces)
    }

    fn detail(&self) -> Detail {
        Detail::new(self.screen.is_verbose())
    }
}

fn path_report(stats: PathStats, ends: Ends, state_changes: Vec<StateChange>) -> PathReport {
    PathReport {
        path: u16::from(stats.id.0) + 1,
        interface: ends.interface,
        relay: ends.relay,
        suppressed: stats.suppressed,
        rank: stats.rank,
        packets_received: stats.counters.packets_received,
        data_bytes_received: stats.counters.data_bytes_received,
        bytes_acked: stats.counters.acked_bytes,
        spurious_retransmissions: None,
        packets_dropped: None,
        state_changes,
        stats,
    }
}
