//! The data on a path: its congestion window, pace and congestion control.

use manypath_wire::Tsn;

use super::Path;
use super::pacer::Pacer;
use super::rate::DeliveryRate;
use super::size::Size;
use crate::config::Config;
use crate::policy::cc::{CongestionControl, NeededFacts, Window};
use crate::policy::recovery::{Burst, Bursts, Recovery, Silence};
use crate::time::Instant;
use crate::view::Estimate;

/// Outstanding data of a path, in bytes.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct InUse {
    /// DATA chunks in flight.
    pub(crate) flight_size: usize,
    /// See [`PathView::pipe`](crate::view::PathView::pipe).
    pub(crate) pipe: usize,
    /// Bytes that count against cwnd: the path's pipe, or with `combined_window` the pipes of all
    /// paths.
    pub(crate) counted: usize,
}

/// The limits on data in flight, and the rate at which it leaves.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) window: Window,
    pub(crate) cc: Box<dyn CongestionControl>,
    /// The facts that congestion control needs.
    pub(crate) needed: NeededFacts,
    /// The measurement of the path's delivery, if congestion control has a model of the path.
    pub(crate) rate: Option<Box<DeliveryRate>>,
    /// The speed of the path by that model.
    pub(crate) estimate: Option<Estimate>,
    pub(crate) pacer: Pacer,
    /// The packets that may leave at once (Max.Burst).
    pub(crate) burst: Burst,
    /// True while only one packet may be in flight: T3-rtx expired, and nothing was acknowledged
    /// since (RFC 9260 §7.2.3).
    pub(crate) one_packet: bool,
    /// True while only half of window and rate may be used, to show the effect on other paths.
    pub(crate) is_throttled: bool,
    /// True after a tail-loss probe until something is acknowledged: there is one probe per flight.
    pub(crate) tail_probed: bool,
    /// The latest transmission when T3-rtx last cut the window.
    pub(crate) cut_order: Option<u64>,
    /// The highest TSN when a mark last cut the window. Marks of earlier packets cut it no second
    /// time.
    pub(crate) marked_until: Option<Tsn>,
    /// The path seems to drop packets that may be marked: it timed out before any arrived.
    pub(crate) avoids_ect: bool,
    acked_between_cuts: AckedBetweenCuts,
    /// The latest loss episode that congestion control knows of. 0 before the first, and after a
    /// spurious one.
    loss_episode: u64,
    /// When DATA was last sent.
    pub(crate) last_data_sent: Option<Instant>,
    /// When new DATA was last sent. It measures the RTT, so the path is not idle (RFC 9260 §8.3).
    pub(crate) last_new_data: Option<Instant>,
    /// When DATA last arrived here.
    pub(crate) last_data_received: Option<Instant>,
    /// Time up to which the decay of an idle window has been applied.
    decayed_at: Instant,
}

/// Bytes acknowledged since the last cut of the window, and between the two cuts before.
#[derive(Copy, Clone, Debug, Default)]
struct AckedBetweenCuts {
    current: u64,
    last: u64,
}

impl Path {
    /// Halves cwnd for every RTO without data, and stores the former cwnd in ssthresh (RFC 9260
    /// §7.2.1).
    pub(crate) fn decay_if_idle(&mut self, config: &Config, now: Instant) {
        let Some(last) = self.flow.last_data_sent else { return };
        if !config.idle_cwnd_decay {
            return;
        }
        let floor = self.size.bytes(config.idle_cwnd_floor);
        let rto = self.rto.rto();
        let Flow { window, decayed_at, .. } = &mut self.flow;
        *decayed_at = last.max(*decayed_at);
        // RFC 2960, and so the 2006 profile, leaves ssthresh alone.
        let is_first = *decayed_at == last && !config.profile.is_of_the_papers();
        if is_first && now - last >= rto && window.cwnd > floor {
            window.ssthresh = window.cwnd;
        }
        while now - *decayed_at >= rto && window.cwnd > floor {
            window.cwnd = (window.cwnd / 2).max(floor);
            *decayed_at += rto;
        }
    }

    /// Lets the window decay as recovery decides, even with data in flight.
    pub(crate) fn decay_in_silence(
        &mut self,
        config: &Config,
        recovery: &mut Recovery,
        now: Instant,
        times_out: bool,
    ) {
        let (floor, two_packets) = (self.size.bytes(config.idle_cwnd_floor), 2 * self.size.pmdcs);
        let (rto, window) = (self.rto.rto(), self.flow.window);
        let silence = Silence { now, rto, window, floor, two_packets, times_out };
        self.flow.window = recovery.policy.decayed(self.id, &silence);
    }

    /// Begins an opportunity to send, at which Max.Burst limits the packets (RFC 9260 §6.1, D).
    pub(crate) fn begin_opportunity(
        &mut self,
        config: &Config,
        bursts: &Bursts,
        now: Instant,
        flight_size: usize,
    ) {
        if let Some(packets) = bursts.begin(&mut self.flow.burst, now, flight_size) {
            let burst = packets as usize * self.limits(config).packet;
            self.flow.window.cwnd = self.flow.window.cwnd.min(flight_size + burst);
        }
    }
}

impl Flow {
    pub(super) fn new(
        config: &Config,
        size: &Size,
        is_ipv6: bool,
        peer_rwnd: u32,
        now: Instant,
    ) -> Flow {
        let bytes = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let mut cc = config.congestion_control.build(config);
        Flow {
            window: Window {
                cwnd: bytes(config.initial_cwnd.bytes(size.pmdcs, size.mtu, is_ipv6)),
                ssthresh: bytes(config.initial_ssthresh.bytes(peer_rwnd)),
                partial_bytes_acked: 0,
            },
            rate: cc.model().map(|_| Box::default()),
            needed: cc.needs(),
            cc,
            estimate: None,
            pacer: Pacer::default(),
            burst: Burst::new(config, now),
            one_packet: false,
            is_throttled: false,
            tail_probed: false,
            cut_order: None,
            marked_until: None,
            avoids_ect: false,
            acked_between_cuts: AckedBetweenCuts::default(),
            loss_episode: 0,
            last_data_sent: None,
            last_new_data: None,
            last_data_received: None,
            decayed_at: now,
        }
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

    /// Counts acknowledged bytes of DATA chunks.
    pub(crate) fn count_acked(&mut self, bytes: usize) {
        self.acked_between_cuts.current += bytes as u64;
    }

    /// Notes that the window is cut for losses.
    pub(crate) fn count_cut(&mut self) {
        let last = self.acked_between_cuts.current;
        self.acked_between_cuts = AckedBetweenCuts { current: 0, last };
    }

    /// Bytes acknowledged between the last two cuts, or since the last one if that is more.
    pub(crate) fn between_losses(&self) -> u64 {
        self.acked_between_cuts.current.max(self.acked_between_cuts.last)
    }

    /// Tells congestion control of losses of this episode, unless it knows of them.
    pub(crate) fn note_losses(&mut self, episode: u64) {
        if self.loss_episode != episode {
            self.loss_episode = episode;
            self.cc.on_losses(self.window);
        }
    }

    /// Undoes the reaction to an episode in which all losses were spurious. True if congestion
    /// control knew of it.
    pub(crate) fn undo_losses(&mut self, episode: u64) -> bool {
        let is_known = self.loss_episode == episode;
        if is_known {
            self.loss_episode = 0;
            self.window = self.cc.on_spurious_losses(self.window);
        }
        is_known
    }
}
