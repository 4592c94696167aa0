//! Changes of an association since the last look.

use std::net::SocketAddr;

use manypath_proto::{AssocStats, Association, Instant, PathStats};

use crate::event::{Event, PathMetrics, path_number};

/// Compares an association with its state at the last look, and tells what changed.
///
/// With a look after every input and every output of the engine, it misses only states that came
/// and went between two looks.
#[derive(Debug, Default)]
pub struct Watch {
    paths: Vec<SeenPath>,
    counts: Counts,
    blocked_since: Option<Instant>,
}

#[derive(Debug)]
struct SeenPath {
    ends: (SocketAddr, SocketAddr),
    metrics: PathMetrics,
    t3_expirations: u64,
    fast_retransmits: u64,
    tail_loss_probes: u64,
}

#[derive(Debug, Default)]
struct Counts {
    queued: u64,
    acknowledged: u64,
    delivered: u64,
}

impl Watch {
    /// A watch that has seen nothing.
    pub fn new() -> Watch {
        Watch::default()
    }

    /// The number of the path between these addresses, as of the last look.
    pub fn path(&self, local: SocketAddr, remote: SocketAddr) -> Option<u16> {
        let path = self.paths.iter().find(|path| path.ends == (local, remote));
        path.map(|path| path.metrics.path)
    }

    /// The paths as of the last look: number, local and remote address.
    pub fn paths(&self) -> impl Iterator<Item = (u16, (SocketAddr, SocketAddr))> + '_ {
        self.paths.iter().map(|path| (path.metrics.path, path.ends))
    }

    /// Tells what changed since the last look.
    pub fn look(&mut self, now: Instant, association: &Association, mut tell: impl FnMut(&Event)) {
        self.look_for_removed(association, &mut tell);
        for path in association.paths() {
            self.look_at_path(&path, &mut tell);
        }
        self.look_at_stats(now, &association.stats(), &mut tell);
    }

    fn look_for_removed(&mut self, association: &Association, tell: &mut impl FnMut(&Event)) {
        self.paths.retain(|seen| {
            let is_here = association.paths().any(|p| {
                (path_number(p.id), (p.local, p.remote)) == (seen.metrics.path, seen.ends)
            });
            if !is_here {
                tell(&Event::PathRemoved { path: seen.metrics.path });
            }
            is_here
        });
    }

    fn look_at_path(&mut self, path: &PathStats, tell: &mut impl FnMut(&Event)) {
        let metrics = PathMetrics::of(path);
        let number = metrics.path;
        let Some(seen) = self.paths.iter_mut().find(|seen| seen.metrics.path == number) else {
            tell(&Event::PathAdded {
                path: number,
                local: path.local.to_string(),
                remote: path.remote.to_string(),
                state: path.state.name().to_owned(),
            });
            tell(&Event::PathMetrics(metrics.clone()));
            self.paths.push(SeenPath {
                ends: (path.local, path.remote),
                metrics,
                t3_expirations: path.counters.t3_expirations,
                fast_retransmits: path.counters.fast_retransmits,
                tail_loss_probes: path.counters.tail_loss_probes,
            });
            return;
        };
        for _ in 0..grown(&mut seen.t3_expirations, path.counters.t3_expirations) {
            tell(&Event::T3Expired { path: number });
        }
        let chunks = grown(&mut seen.fast_retransmits, path.counters.fast_retransmits);
        if chunks > 0 {
            tell(&Event::FastRetransmit { path: number, chunks });
        }
        for _ in 0..grown(&mut seen.tail_loss_probes, path.counters.tail_loss_probes) {
            tell(&Event::TailLossProbe { path: number });
        }
        if seen.metrics != metrics {
            tell(&Event::PathMetrics(metrics.clone()));
            seen.metrics = metrics;
        }
    }

    fn look_at_stats(&mut self, now: Instant, stats: &AssocStats, tell: &mut impl FnMut(&Event)) {
        let total_bytes = stats.bytes_queued;
        let bytes = grown(&mut self.counts.queued, total_bytes);
        if bytes > 0 {
            tell(&Event::Queued { bytes, total_bytes });
        }
        let total_bytes = stats.bytes_acked;
        let bytes = grown(&mut self.counts.acknowledged, total_bytes);
        if bytes > 0 {
            tell(&Event::Acknowledged { bytes, total_bytes });
        }
        let total_bytes = stats.bytes_received;
        let bytes = grown(&mut self.counts.delivered, total_bytes);
        if bytes > 0 {
            tell(&Event::Delivered { bytes, total_bytes });
        }
        let since = stats.receive_buffer_blocked_since;
        if since != self.blocked_since {
            if let Some(began) = self.blocked_since {
                let until = since.unwrap_or(now);
                let blocked_s = until.saturating_since(began).as_secs_f64();
                tell(&Event::ReceiveBufferUnblocked { blocked_s });
            }
            if since.is_some() {
                tell(&Event::ReceiveBufferBlocked);
            }
            self.blocked_since = since;
        }
    }
}

/// How much a counter grew. A smaller value belongs to a new association and counts from 0.
fn grown(seen: &mut u64, now: u64) -> u64 {
    let before = std::mem::replace(seen, now);
    now.checked_sub(before).unwrap_or(now)
}
