//! The sampler: reads the watched associations ten times a second.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use manypath::{Association, PathId, PathRank, PathStats};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::figures::{AssociationFigures, Counters, Happened, PathFigures, Process};
use crate::history::{History, Reading};
use crate::interfaces::Interfaces;

/// How often the associations are read.
const EVERY: Duration = Duration::from_millis(100);
/// Associations that are shown; the others are counted.
const ASSOCIATIONS_MAX: usize = 64;
/// Paths of an association that are shown.
const PATHS_MAX: usize = 32;
/// Paths whose past is kept, of all associations.
const HISTORIES_MAX: usize = 64;
/// Events that are kept.
const EVENTS_MAX: usize = 200;
/// Characters of an event.
const TEXT_MAX: usize = 400;

/// The figures of this process. Clones share them.
#[derive(Clone, Debug)]
pub struct Live(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    command: &'static str,
    began: Instant,
    began_s: f64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By their number within the process, from 1.
    watched: BTreeMap<u64, Watched>,
    unlisted: u64,
    opened: u64,
    /// User bytes of associations that are not watched any more: acknowledged, received.
    past: (u64, u64),
    events: VecDeque<Happened>,
    /// Events so far.
    noted: u64,
    interfaces: Interfaces,
    more: Vec<Box<dyn Fn() -> Vec<Stat> + Send + Sync>>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("watched", &self.watched.len()).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Watched {
    association: Association,
    total: Option<Total>,
    peer: String,
    since_ms: u64,
    /// The sums of the association, read as if it were a path.
    sums: History,
    paths: BTreeMap<u8, History>,
}

/// The content of an association, in bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Total {
    /// That this end sends.
    Sent(u64),
    /// That it receives.
    Received(u64),
}

/// A further number of the process, for metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct Stat {
    /// Its name without `manypath_`: of a counter, it ends with `_total`.
    pub name: &'static str,
    /// Its meaning, in a sentence.
    pub help: &'static str,
    /// Its kind.
    pub kind: StatKind,
    /// The label by which numbers of one name, which follow each other, differ.
    pub label: Option<Label>,
    /// Its value.
    pub value: f64,
}

/// A label of a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Name of the label.
    pub name: &'static str,
    /// Value of the label.
    pub value: String,
}

/// The kind of a number.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum StatKind {
    /// It only grows.
    Counter,
    /// It may have any value.
    Gauge,
}

/// An association is watched while this exists.
#[derive(Debug)]
pub struct Watching {
    live: Live,
    /// `None` if it is only counted.
    number: Option<u64>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut state = self.live.state();
        match self.number.and_then(|number| state.watched.remove(&number)) {
            Some(watched) => {
                let stats = watched.association.stats();
                state.past.0 += stats.bytes_acked;
                state.past.1 += stats.bytes_received;
            }
            None => state.unlisted = state.unlisted.saturating_sub(1),
        }
    }
}

/// The sums over all associations of a process.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) opened: u64,
    pub(crate) acked_bytes: u64,
    pub(crate) received_bytes: u64,
}

impl Live {
    /// Begins to sample; needs a tokio runtime. Sampling ends with the last clone.
    pub fn start(command: &'static str) -> Live {
        let began_s = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64();
        let (began, state) = (Instant::now(), Mutex::default());
        let live = Live(Arc::new(Shared { command, began, began_s, state }));
        tokio::spawn(sample(Arc::downgrade(&live.0)));
        live
    }

    /// Watches an association, with the amount of its content if that is known.
    pub fn watch(&self, association: &Association, total: Option<Total>) -> Watching {
        let peer = association.peer().map_or_else(|| "-".to_owned(), |peer| peer.to_string());
        let since_ms = self.now_ms();
        let mut state = self.state();
        state.opened += 1;
        // Not that within its endpoint, of which there may be several.
        let number = (state.watched.len() < ASSOCIATIONS_MAX).then_some(state.opened);
        if let Some(number) = number {
            let association = association.clone();
            let (sums, paths) = (History::default(), BTreeMap::new());
            let watched = Watched { association, total, peer, since_ms, sums, paths };
            state.watched.insert(number, watched);
        } else {
            state.unlisted += 1;
        }
        drop(state);
        self.sample();
        Watching { live: self.clone(), number }
    }

    /// Notes an event.
    pub fn note(&self, text: &str) {
        let text = text.chars().take(TEXT_MAX).collect();
        let mut state = self.state();
        // Read under the lock, so that an event noted after somebody looked has no earlier time.
        let at_ms = self.now_ms();
        if state.events.len() == EVENTS_MAX {
            state.events.pop_front();
        }
        let number = state.noted;
        state.noted += 1;
        state.events.push_back(Happened { number, at_ms, text });
    }

    /// Adds numbers to the metrics, which the function reads each time.
    pub fn add_stats(&self, read: impl Fn() -> Vec<Stat> + Send + Sync + 'static) {
        self.state().more.push(Box::new(read));
    }

    /// Gives a path a rank; false if there is no such path.
    ///
    /// # Errors
    /// The text is no rank.
    pub fn set_rank(&self, association: u64, path: u16, rank: &str) -> Result<bool, String> {
        let rank: PathRank = rank.parse().map_err(|e| format!("{e}"))?;
        let watched = self.state().watched.get(&association).map(|w| w.association.clone());
        let id = path.checked_sub(1).and_then(|id| u8::try_from(id).ok()).map(PathId);
        Ok(watched.zip(id).is_some_and(|(association, id)| association.set_path_rank(id, rank)))
    }

    /// The figures now, with all samples and events, or those since an instant. A reader may know
    /// some of that very millisecond already: their numbers tell.
    pub fn process(&self, since_ms: Option<u64>) -> Process {
        let mut state = self.state();
        let now_ms = self.now_ms();
        let State { watched, interfaces, .. } = &mut *state;
        let associations = watched
            .iter()
            .map(|(number, w)| w.figures(*number, now_ms, since_ms, interfaces))
            .collect();
        let is_new = |event: &&Happened| since_ms.is_none_or(|since| event.at_ms >= since);
        Process {
            pid: std::process::id(),
            command: self.0.command.to_owned(),
            now_ms,
            associations,
            unlisted: state.unlisted,
            events: state.events.iter().filter(is_new).cloned().collect(),
        }
    }

    /// When the process began, in seconds since 1970.
    pub(crate) fn began_s(&self) -> f64 {
        self.0.began_s
    }

    pub(crate) fn sums(&self) -> Sums {
        let state = self.state();
        let stats = state.watched.values().map(|watched| watched.association.stats());
        let start =
            Sums { opened: state.opened, acked_bytes: state.past.0, received_bytes: state.past.1 };
        stats.fold(start, |sums, stats| Sums {
            acked_bytes: sums.acked_bytes + stats.bytes_acked,
            received_bytes: sums.received_bytes + stats.bytes_received,
            ..sums
        })
    }

    pub(crate) fn stats(&self) -> Vec<Stat> {
        self.state().more.iter().flat_map(|read| read()).collect()
    }

    fn now_ms(&self) -> u64 {
        self.0.began.elapsed().as_millis() as u64
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads all associations once.
    fn sample(&self) {
        let mut state = self.state();
        let now_ms = self.now_ms();
        let mut left = HISTORIES_MAX;
        for watched in state.watched.values_mut() {
            watched.read(now_ms, &mut left);
        }
    }
}

/// Samples until nobody has the figures any more.
async fn sample(shared: Weak<Shared>) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(shared) = shared.upgrade() else { return };
        Live(shared).sample();
    }
}

impl Watched {
    fn read(&mut self, at_ms: u64, left: &mut usize) {
        let stats = self.association.stats();
        let counters = Counters {
            bytes_acked: stats.bytes_acked,
            bytes_received: stats.bytes_received,
            ..Counters::default()
        };
        self.sums.add(Reading { at_ms, counters, ..Reading::default() });
        let paths = self.association.paths();
        self.paths.retain(|id, _| paths.iter().any(|path| path.id.0 == *id));
        for path in paths.iter().take(*left) {
            let srtt_s = path.srtt.map(|srtt| srtt.as_secs_f64());
            let (counters, cwnd_bytes) = (counters_of(path), path.cwnd as u64);
            let reading = Reading { at_ms, counters, srtt_s, cwnd_bytes };
            self.paths.entry(path.id.0).or_default().add(reading);
        }
        *left = left.saturating_sub(paths.len());
    }

    fn figures(
        &self,
        number: u64,
        now_ms: u64,
        since_ms: Option<u64>,
        interfaces: &mut Interfaces,
    ) -> AssociationFigures {
        let stats = self.association.stats();
        let (up_bps, down_bps) = self.sums.rates();
        let (total_bytes, done) = match self.total {
            None => (None, stats.bytes_acked + stats.bytes_received),
            Some(Total::Sent(total)) => (Some(total), stats.bytes_acked),
            Some(Total::Received(total)) => (Some(total), stats.bytes_received),
        };
        let paths = self.association.paths().into_iter().take(PATHS_MAX).map(|path| {
            let history = self.paths.get(&path.id.0);
            let relay = self.association.relay(path.local);
            let mut figures = path_figures(&path);
            figures.relay = relay;
            figures.interface = interfaces.of(path.local.ip());
            if let Some(history) = history {
                let (up_bps, down_bps) = history.rates();
                (figures.up_bps, figures.down_bps) = (up_bps.round(), down_bps.round());
                figures.loss = history.loss();
                figures.samples = history.since(since_ms);
            }
            figures
        });
        AssociationFigures {
            association: number,
            peer: self.peer.clone(),
            encrypted: self.association.is_protected(),
            age_ms: now_ms.saturating_sub(self.since_ms),
            total_bytes,
            done_bytes: total_bytes.map_or(done, |total| done.min(total)),
            acked_bytes: stats.bytes_acked,
            received_bytes: stats.bytes_received,
            up_bps: up_bps.round(),
            down_bps: down_bps.round(),
            paths: paths.collect(),
        }
    }
}

fn path_figures(path: &PathStats) -> PathFigures {
    PathFigures {
        path: u16::from(path.id.0) + 1,
        local: path.local.to_string(),
        remote: path.remote.to_string(),
        state: path.state.name().to_owned(),
        rank: path.rank.to_string(),
        why: path.suppressed.map(|why| why.to_string()),
        srtt_s: path.srtt.map(|srtt| srtt.as_secs_f64()),
        rtt_min_s: path.rtt_min.map(|rtt| rtt.as_secs_f64()),
        rto_s: path.rto.as_secs_f64(),
        cwnd_bytes: path.cwnd as u64,
        flight_bytes: path.flight_size as u64,
        mtu_bytes: path.mtu as u64,
        counters: counters_of(path),
        ..PathFigures::default()
    }
}

fn counters_of(path: &PathStats) -> Counters {
    let counted = &path.counters;
    Counters {
        packets_sent: counted.packets_sent,
        packets_received: counted.packets_received,
        bytes_sent: counted.bytes_sent,
        bytes_received: counted.bytes_received,
        bytes_acked: counted.acked_bytes,
        data_chunks_sent: counted.data_chunks_sent,
        retransmissions: counted.retransmissions,
        chunks_lost: counted.chunks_lost,
        t3_expirations: counted.t3_expirations,
        heartbeats_sent: counted.heartbeats_sent,
    }
}

#[cfg(test)]
mod tests;
