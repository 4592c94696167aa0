//! A path: one local and one remote transport address, and everything the sender knows of the pair.

mod flow;
mod liveness;
mod model;
mod pacer;
mod pmtu;
mod probing;
mod rate;
mod role;
mod rto;
mod size;
mod stats;
mod table;

use std::net::SocketAddr;

use flow::Flow;
pub(crate) use flow::InUse;
use liveness::Liveness;
pub(crate) use liveness::{Address, Origin};
pub(crate) use model::SackReport;
pub use pmtu::MtuReason;
pub(crate) use pmtu::{MIN_MTU, RAISE_AFTER_S, Wait};
pub(crate) use probing::Probe;
use probing::Probing;
#[cfg(test)]
pub(crate) use rate::DeliveryRate;
pub(crate) use rate::InFlight;
use role::Role;
use rto::Rto;
use size::Size;
pub use stats::{PathCounters, PathStats, T3_IN_A_ROW};
pub(crate) use table::PathTable;

use crate::config::{Config, Units};
use crate::datagram::AddressPair;
use crate::policy::cc::Limits;
use crate::sizes;
use crate::time::Instant;
use crate::view::{PathId, PathView, Standing};

/// One path of an association.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) id: PathId,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) origin: Origin,
    pub(crate) created: Instant,
    pub(crate) liveness: Liveness,
    pub(crate) probing: Probing,
    pub(crate) role: Role,
    pub(crate) flow: Flow,
    pub(crate) size: Size,
    pub(crate) rto: Rto,
    pub(crate) counters: PathCounters,
    /// The simulation's true loss rate.
    pub(crate) loss_oracle: Option<f64>,
}

/// The facts that a path is made from.
#[derive(Copy, Clone, Debug)]
pub(crate) struct NewPath {
    pub(crate) id: PathId,
    pub(crate) pair: AddressPair,
    pub(crate) origin: Origin,
    /// The peer's receive window, in bytes.
    pub(crate) peer_rwnd: u32,
    /// The MTU of the local interface, in bytes, if it is known.
    pub(crate) link_mtu: Option<usize>,
    /// Bytes that protection or authentication adds to each packet.
    pub(crate) overhead: usize,
}

impl Path {
    pub(crate) fn new(config: &Config, now: Instant, of: NewPath) -> Path {
        let AddressPair { local, remote } = of.pair;
        let size = Size::new(config, remote, of.link_mtu, of.overhead);
        Path {
            id: of.id,
            local,
            remote,
            origin: of.origin,
            created: now,
            liveness: Liveness::new(config, now),
            probing: Probing::new(config),
            role: Role::new(),
            flow: Flow::new(config, &size, remote.is_ipv6(), of.peer_rwnd, now),
            size,
            rto: Rto::new(config),
            counters: PathCounters::default(),
            loss_oracle: None,
        }
    }

    /// Both addresses.
    pub(crate) fn pair(&self) -> AddressPair {
        AddressPair { local: self.local, remote: self.remote }
    }

    /// Takes over the size that `pmtu` found. A size is no sign of congestion, so the windows keep
    /// their bytes. But they hold at least one packet, and before the first loss at least the
    /// initial window.
    pub(crate) fn resize(&mut self, config: &Config) {
        self.size.renew(config, self.remote);
        let Size { mtu, pmdcs, .. } = self.size;
        let untouched = self.counters.chunks_lost == 0 && self.counters.t3_expirations == 0;
        let begins = config.initial_cwnd.bytes(pmdcs, mtu, self.remote.is_ipv6());
        let begins = usize::try_from(begins).unwrap_or(usize::MAX).min(INITIAL_CWND_MAX);
        let least = if untouched { begins.max(pmdcs) } else { pmdcs };
        self.flow.window.cwnd = self.flow.window.cwnd.max(least);
    }

    /// The largest DATA chunk in packets of the size that is tried first.
    pub(crate) fn likely_pmdcs(&self, config: &Config) -> usize {
        self.size.likely_pmdcs(config, self.remote)
    }

    /// Bytes of a packet in addition to chunks and the common header: IP, UDP and protection.
    pub(crate) fn headers(&self, config: &Config) -> usize {
        sizes::outer_headers(self.remote, config.udp_encapsulation) + self.size.overhead
    }

    /// The constants of congestion control on this path.
    pub(crate) fn limits(&self, config: &Config) -> Limits {
        let bytes = |amount| self.size.bytes(amount);
        // RFC 2960, and so the papers, count in MTU where RFC 9260 counts in PMDCS.
        let packet = match config.ssthresh_floor {
            Units::Mtu(_) => self.size.mtu,
            Units::Pmdcs(_) | Units::Bytes(_) => self.size.pmdcs,
        };
        Limits {
            packet,
            ssthresh_floor: bytes(config.ssthresh_floor),
            slow_start_increase_max: bytes(config.slow_start_increase_max),
        }
    }

    /// Fraction of chunks lost.
    pub(crate) fn loss_rate(&self) -> f64 {
        let c = &self.counters;
        match self.loss_oracle {
            Some(rate) => rate,
            None if c.chunks_lost == 0 => 0.0, // mostly; and this is asked for every packet
            None => c.chunks_lost as f64 / c.data_chunks_sent.max(1) as f64,
        }
    }

    pub(crate) fn view(&self, in_use: InUse) -> PathView {
        PathView {
            id: self.id,
            state: self.liveness.state,
            rank: self.role.rank,
            usable: self.role.usable,
            cwnd: self.flow.window.cwnd,
            ssthresh: self.flow.window.ssthresh,
            flight_size: in_use.flight_size,
            pipe: in_use.pipe,
            cwnd_space: self.flow.cwnd_space(in_use.counted),
            srtt: self.rto.srtt(),
            estimate: self.flow.estimate,
            rto: self.rto.rto(),
            loss_rate: self.loss_rate(),
            error_count: self.liveness.error_count,
            path_max_retrans: self.liveness.max_retrans,
            last_active: self.liveness.last_active,
            last_data_received: self.flow.last_data_received,
        }
    }

    /// The path as a path set sees it.
    pub(crate) fn standing(&self) -> Standing {
        Standing {
            id: self.id,
            state: self.liveness.state,
            is_away: self.liveness.is_away(),
            is_probed: self.probing.probe.is_some(),
            srtt: self.rto.srtt(),
            loss_rate: self.loss_rate(),
            is_loss_certain: self.loss_oracle.is_some(),
            acked_bytes: self.counters.acked_bytes,
            chunks_sent: self.counters.data_chunks_sent,
            chunks_lost: self.counters.chunks_lost,
        }
    }

    pub(crate) fn stats(&self, flight_size: usize) -> PathStats {
        PathStats {
            id: self.id,
            local: self.local,
            remote: self.remote,
            state: self.liveness.state,
            rank: self.role.rank,
            counters: self.counters.clone(),
            rtt_samples: self.rto.samples(),
            srtt: self.rto.srtt(),
            rtt_min: self.rto.rtt_min(),
            rtt_latest: self.rto.latest,
            rtt_heartbeat: self.rto.of_heartbeat,
            rttvar: self.rto.rttvar(),
            rto: self.rto.rto(),
            cwnd: self.flow.window.cwnd,
            ssthresh: self.flow.window.ssthresh,
            flight_size,
            error_count: self.liveness.error_count,
            suppressed: self.role.suppressed(),
            mtu: self.size.mtu,
        }
    }
}

/// Limit in bytes of an initial window that grows with the packet size: ten packets of Ethernet
/// (RFC 6928 §2).
const INITIAL_CWND_MAX: usize = 14_600;
