//! What is reported about an association's paths: counters for the result, changes as they happen.

use std::sync::{Arc, Mutex, PoisonError};

use manypath::{Association, Event, PathStats};
use serde::Serialize;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::notices::{Notice, PathName};
use crate::screen::Screen;

/// As many state changes as are kept for each association, and as many notices; a path that flaps must not fill
/// memory.
const CHANGES_MAX: usize = 1000;

/// One path in a result. The keys are a public contract; what only a simulation knows is null.
#[derive(Debug, Serialize)]
pub(crate) struct PathReport {
    /// Its number, from 1, as messages and notices call it.
    pub path: u16,
    /// Our transport address.
    pub local: String,
    /// The peer's transport address.
    pub remote: String,
    /// The relay that our address is on; null for a direct path.
    pub relay: Option<String>,
    /// `unconfirmed`, `active`, `potentially_failed` or `inactive`.
    pub state: &'static str,
    /// Why it carries no data though it works: `shared_bottleneck`, `slow` or `spare`; null if it may.
    pub suppressed: Option<&'static str>,
    /// SCTP packets sent.
    pub packets_sent: u64,
    /// SCTP packets received.
    pub packets_received: u64,
    /// DATA chunks sent, retransmissions and redundant ones included.
    pub data_chunks_sent: u64,
    /// DATA chunks sent that were in flight on another path: copies, not retransmissions.
    pub redundant_chunks_sent: u64,
    /// Bytes sent, SCTP headers included.
    pub bytes_sent: u64,
    /// User bytes that the peer acknowledged from this path.
    pub bytes_acked: u64,
    /// DATA chunks retransmitted.
    pub retransmissions: u64,
    /// Retransmissions of chunks that had arrived; known in simulation only.
    pub spurious_retransmissions: Option<u64>,
    /// DATA chunks marked by missing reports.
    pub fast_retransmits: u64,
    /// Expirations of T3-rtx.
    pub t3_expirations: u64,
    /// Packets lost on the path; known in simulation only.
    pub packets_dropped: Option<u64>,
    /// Heartbeats sent.
    pub heartbeats_sent: u64,
    /// Smoothed round-trip time; null before the first measurement.
    pub srtt_s: Option<f64>,
    /// Congestion window in bytes.
    pub cwnd_bytes: u64,
    /// The largest IP packet that is sent on it, in bytes, as found so far.
    pub mtu_bytes: u64,
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
}

/// What has happened so far.
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
    /// What was found or done.
    #[serde(flatten)]
    pub notice: Notice,
}

impl PathWatch {
    /// Begins to watch; call it when the association is established.
    pub(crate) fn start(association: &Association, screen: Screen) -> PathWatch {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let begin = Instant::now();
        let mut events = association.events();
        let association = association.clone();
        let noted = seen.clone();
        let task = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                let at_s = begin.elapsed().as_secs_f64();
                let said = |text: &str| screen.line(&format!("{at_s:6.1} s  {text}"));
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
        PathWatch { seen, task }
    }

    /// What was found and decided about paths so far, in order.
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
                path_report(&path, association.relay(path.local), changes)
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
    path: &PathStats,
    relay: Option<String>,
    state_changes: Vec<StateChange>,
) -> PathReport {
    PathReport {
        path: u16::from(path.id.0) + 1,
        local: path.local.to_string(),
        remote: path.remote.to_string(),
        relay,
        state: path.state.name(),
        suppressed: path.suppressed.map(manypath::SuppressReason::name),
        packets_sent: path.packets_sent,
        packets_received: path.packets_received,
        data_chunks_sent: path.data_chunks_sent,
        redundant_chunks_sent: path.redundant_chunks_sent,
        bytes_sent: path.bytes_sent,
        bytes_acked: path.acked_bytes,
        retransmissions: path.retransmissions,
        spurious_retransmissions: None,
        fast_retransmits: path.fast_retransmits,
        t3_expirations: path.t3_expirations,
        packets_dropped: None,
        heartbeats_sent: path.heartbeats_sent,
        srtt_s: path.srtt.map(|srtt| srtt.as_secs_f64()),
        cwnd_bytes: path.cwnd as u64,
        mtu_bytes: path.mtu as u64,
        state_changes,
    }
}
