//! A path: one local and one remote transport address, and everything the sender knows of the pair.

mod model;
mod pacer;
mod pmtu;
mod rate;
mod rto;
mod stats;
mod table;

use std::net::SocketAddr;
use std::time::Duration;

pub use pmtu::MtuReason;
pub(crate) use pmtu::{MIN_MTU, Pmtu, RAISE_AFTER_S, Wait};
pub use stats::{PathCounters, PathStats, T3_IN_A_ROW};
pub(crate) use table::PathTable;

use crate::config::{Config, Units};
use crate::policy::cc::{CongestionControl, Limits, NeededFacts, Window};
use crate::policy::recovery::{Burst, Bursts, Recovery, Silence};
use crate::sizes;
use crate::time::Instant;
use crate::view::{Estimate, PathId, PathRank, PathState, PathView, Standing, SuppressReason};
use pacer::Pacer;
pub(crate) use rate::DeliveryRate;
use rto::Rto;

/// Outstanding data of a path, in bytes.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct InUse {
    /// DATA chunks in flight.
    pub(crate) flight_size: usize,
    /// See [`PathView::pipe`].
    pub(crate) pipe: usize,
    /// Bytes that count against cwnd: the pipe, or with `combined_window` that of all paths.
    pub(crate) counted: usize,
}

/// The last timeouts of each kind. One failure that both data and a heartbeat run into counts once.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct TimedOut {
    pub(crate) data: Option<Instant>,
    pub(crate) heartbeat: Option<Instant>,
}

/// A peer that was not heard for as long is silent: the path may be dead.
const SILENT_AFTER: Duration = Duration::from_secs(2);

/// A heartbeat that was sent and not answered.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Probe {
    pub(crate) code: u64,
    pub(crate) sent_at: Instant,
}

/// Packets of the peer arrive on a path, but no answers to several heartbeats.
#[derive(Copy, Clone, Debug)]
struct Overdue {
    since: Instant,
    /// When the last packet arrived.
    heard_at: Instant,
}

/// One path of an association.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) id: PathId,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) state: PathState,
    /// May carry data now; renewed by the association when any path changes state.
    pub(crate) usable: bool,
    /// Named by the application when it connected: RFC 9260 §5.4, rule 1, trusts such an address.
    pub(crate) given: bool,
    /// Learnt from a packet's source, not from the handshake or the application: may be given up.
    pub(crate) learnt: bool,
    pub(crate) created: Instant,
    /// When a packet of the peer last arrived on exactly this pair.
    pub(crate) last_heard: Option<Instant>,
    pub(crate) window: Window,
    pub(crate) cc: Box<dyn CongestionControl>,
    /// The facts that congestion control wants.
    pub(crate) needed: NeededFacts,
    /// Measures what the path delivers, if congestion control has a model of it.
    pub(crate) rate: Option<Box<DeliveryRate>>,
    /// The speed of the path by that model.
    pub(crate) estimate: Option<Estimate>,
    pub(crate) rto: Rto,
    /// See [`PathStats::rtt_latest`].
    pub(crate) rtt_latest: Option<(Duration, Option<PathId>)>,
    /// See [`PathStats::rtt_heartbeat`].
    pub(crate) rtt_heartbeat: Option<Duration>,
    pub(crate) pacer: Pacer,
    /// Timeouts of data and heartbeats in a row (RFC 9260 §8.2).
    pub(crate) error_count: u32,
    /// T3-rtx expired, and nothing was acknowledged since: one packet may be in flight (RFC 9260
    /// §7.2.3).
    pub(crate) one_packet: bool,
    /// The latest transmission when a timeout last put the path in doubt: acks of what was sent
    /// before say nothing of what happened since.
    pub(crate) doubted_order: Option<u64>,
    /// When T3-rtx was last counted as a timeout, and when a lost heartbeat was.
    pub(crate) timed_out: TimedOut,
    /// The latest transmission when T3-rtx last cut the window.
    pub(crate) cut_order: Option<u64>,
    /// Bytes acknowledged since the last cut of the window, and between the two before.
    since_cut: (u64, u64),
    /// The episode of losses that congestion control knows of, as the records of outstanding data
    /// number them. 0 before the first, and after one that was spurious.
    loss_episode: u64,
    /// A tail-loss probe was sent and nothing was acknowledged since: there is one per flight.
    pub(crate) tail_probed: bool,
    /// The latest heartbeat, until its time for an answer is over. A late answer is as good: the
    /// path's RTT may have grown beyond the time between probes.
    pub(crate) probe: Option<Probe>,
    /// When the newest of the answered heartbeats was sent.
    pub(crate) answered: Option<Instant>,
    /// Heartbeats sent since one was answered.
    pub(crate) unanswered: u32,
    overdue: Option<Overdue>,
    /// When the peer last asked on this path.
    pub(crate) last_asked: Option<Instant>,
    /// A heartbeat shall be sent.
    pub(crate) heartbeat_due: bool,
    /// Beginning and end of the heartbeat interval, if it counts from sending.
    pub(crate) heartbeat_interval: Option<(Instant, Instant)>,
    /// When a heartbeat was last sent.
    pub(crate) last_heartbeat: Option<Instant>,
    /// Heartbeats lost in a row: doubles the interval of the first probes.
    pub(crate) probes_lost: u32,
    /// When DATA was last sent.
    pub(crate) last_data_sent: Option<Instant>,
    /// When DATA was last sent for the first time: what measures the RTT, so that the path is not
    /// idle (RFC 9260 §8.3).
    pub(crate) last_new_data: Option<Instant>,
    /// How far an idle window has decayed, in time.
    pub(crate) decayed_at: Instant,
    pub(crate) last_active: Instant,
    /// When DATA last arrived here.
    pub(crate) last_data_received: Option<Instant>,
    /// With a failure policy that waits for acks: for how long it does, counted from the last.
    pub(crate) silence_max: Duration,
    /// Our address is not ours any more: nothing is sent here. There is no other path then.
    pub(crate) is_away: bool,
    /// It was asked because the network has changed: what was sent before may be lost.
    pub(crate) is_in_doubt: bool,
    /// The data outstanding here was sent again because another path answered. Until T3-rtx
    /// expires or something answers here, such answers say no more of this path.
    pub(crate) was_carried: bool,
    /// Another path shall take its place, as soon as that is verified.
    pub(crate) is_superseded: bool,
    /// Its rank.
    pub(crate) rank: PathRank,
    /// Its rank keeps it from carrying data.
    pub(crate) is_kept_idle: bool,
    /// Set aside by the path set: carries no data although it works, and why.
    pub(crate) suppressed: Option<SuppressReason>,
    /// Half of its window and rate is to be used, so that its effect on other paths is seen.
    pub(crate) is_throttled: bool,
    /// The packets that may leave at once (Max.Burst).
    pub(crate) burst: Burst,
    /// The simulation's true loss rate.
    pub(crate) loss_oracle: Option<f64>,
    pub(crate) counters: PathCounters,
    /// The size of its packets, and the search for a larger one.
    pub(crate) pmtu: Pmtu,
    /// Largest IP packet.
    pub(crate) mtu: usize,
    /// Bytes that protection adds to its packets.
    pub(crate) overhead: usize,
    /// Largest SCTP packet before it is protected: the MTU less all headers.
    pub(crate) max_packet: usize,
    /// Path maximum DATA chunk size, header included (RFC 9260 §1.3).
    pub(crate) pmdcs: usize,
}

impl Path {
    pub(crate) fn new(
        id: PathId,
        (local, remote): (SocketAddr, SocketAddr),
        config: &Config,
        peer_rwnd: u32,
        (link_mtu, overhead): (Option<usize>, usize),
        now: Instant,
    ) -> Path {
        let pmtu = Pmtu::new(config, link_mtu);
        let mtu = pmtu.size();
        let (max_packet, pmdcs) = largest(config, remote, mtu, overhead);
        let bytes = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let mut cc = config.congestion_control.build(config);
        let rate = cc.model().map(|_| Box::default());
        let needed = cc.needs();
        Path {
            id,
            local,
            remote,
            state: PathState::Unconfirmed,
            usable: false,
            given: false,
            learnt: false,
            created: now,
            last_heard: None,
            window: Window {
                cwnd: bytes(config.initial_cwnd.bytes(pmdcs, mtu, remote.is_ipv6())),
                ssthresh: bytes(config.initial_ssthresh.bytes(peer_rwnd)),
                partial_bytes_acked: 0,
            },
            cc,
            needed,
            rate,
            estimate: None,
            rto: Rto::new(config),
            rtt_latest: None,
            rtt_heartbeat: None,
            pacer: Pacer::default(),
            error_count: 0,
            one_packet: false,
            doubted_order: None,
            timed_out: TimedOut::default(),
            cut_order: None,
            since_cut: (0, 0),
            loss_episode: 0,
            tail_probed: false,
            probe: None,
            answered: None,
            unanswered: 0,
            overdue: None,
            last_asked: None,
            heartbeat_due: false,
            heartbeat_interval: None,
            last_heartbeat: None,
            probes_lost: 0,
            last_data_sent: None,
            last_new_data: None,
            decayed_at: now,
            last_active: now,
            last_data_received: None,
            silence_max: Duration::ZERO,
            is_away: false,
            is_in_doubt: false,
            was_carried: false,
            is_superseded: false,
            rank: PathRank::NORMAL,
            is_kept_idle: false,
            suppressed: None,
            is_throttled: false,
            burst: Burst::new(config, now),
            loss_oracle: None,
            counters: PathCounters::default(),
            pmtu,
            mtu,
            overhead,
            max_packet,
            pmdcs,
        }
    }

    /// Takes over the size that `pmtu` found. The windows stay as they are, in bytes (a size is no
    /// sign of congestion), but hold a packet at least; and before the first loss what they begin
    /// with.
    pub(crate) fn resize(&mut self, config: &Config) {
        self.mtu = self.pmtu.size();
        (self.max_packet, self.pmdcs) = largest(config, self.remote, self.mtu, self.overhead);
        let untouched = self.counters.chunks_lost == 0 && self.counters.t3_expirations == 0;
        let begins = config.initial_cwnd.bytes(self.pmdcs, self.mtu, self.remote.is_ipv6());
        let begins = usize::try_from(begins).unwrap_or(usize::MAX).min(INITIAL_CWND_MAX);
        let least = if untouched { begins.max(self.pmdcs) } else { self.pmdcs };
        self.window.cwnd = self.window.cwnd.max(least);
    }

    /// The largest DATA chunk if its packets have the size that is tried first.
    pub(crate) fn likely_pmdcs(&self, config: &Config) -> usize {
        largest(config, self.remote, config.mtu, self.overhead).1
    }

    /// Bytes that its packets have in addition to chunks and their common header: of IP, of UDP and
    /// of protection.
    pub(crate) fn headers(&self, config: &Config) -> usize {
        sizes::outer_headers(self.remote, config.udp_encapsulation) + self.overhead
    }

    /// An amount on this path, in bytes.
    pub(crate) fn bytes(&self, amount: Units) -> usize {
        usize::try_from(amount.bytes(self.pmdcs, self.mtu)).unwrap_or(usize::MAX)
    }

    /// The constants of congestion control on this path.
    pub(crate) fn limits(&self, config: &Config) -> Limits {
        let bytes = |amount| self.bytes(amount);
        // RFC 2960, and so the papers, count in MTU where RFC 9260 counts in PMDCS.
        let packet = match config.ssthresh_floor {
            Units::Mtu(_) => self.mtu,
            Units::Pmdcs(_) | Units::Bytes(_) => self.pmdcs,
        };
        Limits {
            packet,
            ssthresh_floor: bytes(config.ssthresh_floor),
            slow_start_increase_max: bytes(config.slow_start_increase_max),
        }
    }

    /// Halves cwnd for every RTO without data, and keeps in ssthresh what it was (RFC 9260 §7.2.1).
    pub(crate) fn decay_if_idle(&mut self, config: &Config, now: Instant) {
        let Some(last) = self.last_data_sent.filter(|_| config.idle_cwnd_decay) else { return };
        let floor = config.idle_cwnd_floor.bytes(self.pmdcs, self.mtu);
        let floor = usize::try_from(floor).unwrap_or(usize::MAX);
        let rto = self.rto.rto();
        self.decayed_at = self.decayed_at.max(last);
        // 2006 profile: RFC 2960 leaves ssthresh alone.
        let is_first = self.decayed_at == last && !config.profile.is_of_the_papers();
        if is_first && now - last >= rto && self.window.cwnd > floor {
            self.window.ssthresh = self.window.cwnd;
        }
        while now - self.decayed_at >= rto && self.window.cwnd > floor {
            self.window.cwnd = (self.window.cwnd / 2).max(floor);
            self.decayed_at += rto;
        }
    }

    /// Decays the window as the recovery says, even with data in flight.
    pub(crate) fn decay_in_silence(
        &mut self,
        config: &Config,
        recovery: &mut Recovery,
        now: Instant,
        times_out: bool,
    ) {
        let (floor, two_packets) = (self.bytes(config.idle_cwnd_floor), 2 * self.pmdcs);
        let (rto, window) = (self.rto.rto(), self.window);
        let silence = Silence { now, rto, window, floor, two_packets, times_out };
        self.window = recovery.policy.decayed(self.id, &silence);
    }

    /// Bytes of new DATA that may be sent now (RFC 9260 §6.1, rules B and D).
    pub(crate) fn cwnd_space(&self, flight_size: usize) -> usize {
        let full = self.one_packet && flight_size > 0;
        if full || self.burst.is_spent() || !self.pacer.may_send() {
            return 0;
        }
        self.usable_cwnd().saturating_sub(flight_size)
    }

    /// The part of cwnd that may be used, in bytes.
    pub(crate) fn usable_cwnd(&self) -> usize {
        if self.is_throttled { self.window.cwnd / 2 } else { self.window.cwnd }
    }

    /// RFC 9260 §6.1, D: Max.Burst limits what leaves at one opportunity to send.
    pub(crate) fn begin_opportunity(
        &mut self,
        config: &Config,
        bursts: &Bursts,
        now: Instant,
        flight_size: usize,
    ) {
        if let Some(packets) = bursts.begin(&mut self.burst, now, flight_size) {
            let burst = packets as usize * self.limits(config).packet;
            self.window.cwnd = self.window.cwnd.min(flight_size + burst);
        }
    }

    /// The heartbeat that was sent at `asked_at` is answered.
    pub(crate) fn note_answer(&mut self, now: Instant, asked_at: Instant) {
        self.answered = Some(asked_at);
        self.was_carried = false;
        self.unanswered = 0;
        self.overdue = None;
        self.error_count = 0;
        self.probes_lost = 0;
        self.last_active = now;
    }

    /// An authentic packet of the peer came here.
    #[inline]
    pub(crate) fn note_heard(&mut self, now: Instant) {
        // A single question is unanswered for a round trip in any case.
        if self.unanswered > 1 {
            let lasts = self.overdue.filter(|o| now - o.heard_at <= SILENT_AFTER);
            let since = lasts.map_or(now, |overdue| overdue.since);
            self.overdue = Some(Overdue { since, heard_at: now });
        }
    }

    /// The least time between two heartbeats, `most` at most. While the peer is heard the path is
    /// not dead: answers take longer than before, or it works one way only, and many questions
    /// would fill a slow link. Each waits for half of the time that answers are overdue.
    pub(crate) fn question_gap(&self, now: Instant, most: Duration) -> Duration {
        let overdue = self.overdue.filter(|o| now - o.heard_at <= SILENT_AFTER);
        overdue.map_or(Duration::ZERO, |overdue| ((now - overdue.since) / 2).min(most))
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
            state: self.state,
            rank: self.rank,
            usable: self.usable,
            cwnd: self.window.cwnd,
            ssthresh: self.window.ssthresh,
            flight_size: in_use.flight_size,
            pipe: in_use.pipe,
            cwnd_space: self.cwnd_space(in_use.counted),
            srtt: self.rto.srtt(),
            estimate: self.estimate,
            rto: self.rto.rto(),
            loss_rate: self.loss_rate(),
            error_count: self.error_count,
            last_active: self.last_active,
            last_data_received: self.last_data_received,
        }
    }

    /// Bytes of DATA chunks were acknowledged.
    pub(crate) fn count_acked(&mut self, bytes: usize) {
        self.since_cut.0 += bytes as u64;
    }

    /// The window is cut for losses.
    pub(crate) fn count_cut(&mut self) {
        self.since_cut = (0, self.since_cut.0);
    }

    /// Bytes acknowledged between the last two cuts, or since the last if those are more.
    pub(crate) fn between_losses(&self) -> u64 {
        self.since_cut.0.max(self.since_cut.1)
    }

    /// Losses of this episode are about to be acted upon.
    pub(crate) fn note_losses(&mut self, episode: u64) {
        if self.loss_episode != episode {
            self.loss_episode = episode;
            self.cc.on_losses(self.window);
        }
    }

    /// All losses of this episode turned out to be none. True if congestion control knew of them.
    pub(crate) fn undo_losses(&mut self, episode: u64) -> bool {
        let is_known = self.loss_episode == episode;
        if is_known {
            self.loss_episode = 0;
            self.window = self.cc.on_spurious_losses(self.window);
        }
        is_known
    }

    /// The path as a path set sees it.
    pub(crate) fn standing(&self) -> Standing {
        Standing {
            id: self.id,
            state: self.state,
            is_away: self.is_away,
            is_probed: self.probe.is_some(),
            srtt: self.rto.srtt(),
            loss_rate: self.loss_rate(),
            is_loss_certain: self.loss_oracle.is_some(),
            acked_bytes: self.counters.acked_bytes,
            chunks_sent: self.counters.data_chunks_sent,
            chunks_lost: self.counters.chunks_lost,
        }
    }

    pub(crate) fn stats(&self, flight_size: usize) -> PathStats {
        let by_rank = self.is_kept_idle.then_some(SuppressReason::Dearer);
        PathStats {
            id: self.id,
            local: self.local,
            remote: self.remote,
            state: self.state,
            rank: self.rank,
            counters: self.counters.clone(),
            rtt_samples: self.rto.samples(),
            srtt: self.rto.srtt(),
            rtt_min: self.rto.rtt_min(),
            rtt_latest: self.rtt_latest,
            rtt_heartbeat: self.rtt_heartbeat,
            rttvar: self.rto.rttvar(),
            rto: self.rto.rto(),
            cwnd: self.window.cwnd,
            ssthresh: self.window.ssthresh,
            flight_size,
            error_count: self.error_count,
            suppressed: self.suppressed.or(by_rank),
            mtu: self.mtu,
        }
    }
}

/// An initial window that grows because packets do, in bytes: ten packets of Ethernet (RFC 6928
/// §2).
const INITIAL_CWND_MAX: usize = 14_600;

/// The largest SCTP packet and the largest DATA chunk that fit an IP packet of `mtu` bytes, if
/// protection adds `overhead` bytes.
fn largest(config: &Config, remote: SocketAddr, mtu: usize, overhead: usize) -> (usize, usize) {
    let outer = sizes::outer_headers(remote, config.udp_encapsulation) + overhead;
    let max_packet = sizes::unpadded(mtu - outer);
    let fits = sizes::room_for_chunks(max_packet, config.timestamp);
    let pmdcs = config.pmdcs_limit.map_or(fits, |user| fits.min(user + sizes::DATA_HEADER_LEN));
    (max_packet, pmdcs)
}
