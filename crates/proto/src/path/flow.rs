//! The data on a path: its congestion window, its pace, and how congestion control learns of them.

use super::pacer::Pacer;
use super::rate::DeliveryRate;
use super::size::Size;
use crate::config::Config;
use crate::policy::cc::{CongestionControl, NeededFacts, Window};
use crate::policy::recovery::Burst;
use crate::time::Instant;
use crate::view::Estimate;

/// Outstanding data of a path, in bytes.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct InUse {
    /// DATA chunks in flight.
    pub(crate) flight_size: usize,
    /// See [`PathView::pipe`](crate::view::PathView::pipe).
    pub(crate) pipe: usize,
    /// Bytes that count against cwnd: the pipe, or with `combined_window` that of all paths.
    pub(crate) counted: usize,
}

/// How much data may be under way, and how fast it leaves.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) window: Window,
    pub(crate) cc: Box<dyn CongestionControl>,
    /// The facts that congestion control needs.
    pub(crate) needed: NeededFacts,
    /// Measures what the path delivers, if congestion control has a model of it.
    pub(crate) rate: Option<Box<DeliveryRate>>,
    /// The speed of the path by that model.
    pub(crate) estimate: Option<Estimate>,
    pub(crate) pacer: Pacer,
    /// The packets that may leave at once (Max.Burst).
    pub(crate) burst: Burst,
    /// T3-rtx expired, and nothing was acknowledged since: one packet may be in flight (RFC 9260
    /// §7.2.3).
    pub(crate) one_packet: bool,
    /// Half of the window and rate is to be used, so that its effect on other paths is seen.
    pub(crate) is_throttled: bool,
    /// A tail-loss probe was sent and nothing was acknowledged since: there is one per flight.
    pub(crate) tail_probed: bool,
    /// The latest transmission when T3-rtx last cut the window.
    pub(crate) cut_order: Option<u64>,
    acked_between_cuts: AckedBetweenCuts,
    /// The episode of losses that congestion control knows of, as the records of outstanding data
    /// number them. 0 before the first, and after one that was spurious.
    loss_episode: u64,
    /// When DATA was last sent.
    pub(crate) last_data_sent: Option<Instant>,
    /// When DATA was last sent for the first time: what measures the RTT, so that the path is not
    /// idle (RFC 9260 §8.3).
    pub(crate) last_new_data: Option<Instant>,
    /// When DATA last arrived here.
    pub(crate) last_data_received: Option<Instant>,
    /// How far an idle window has decayed, in time.
    pub(super) decayed_at: Instant,
}

/// Bytes acknowledged since the last cut of the window, and between the two before.
#[derive(Copy, Clone, Debug, Default)]
struct AckedBetweenCuts {
    current: u64,
    last: u64,
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

    /// Bytes of DATA chunks were acknowledged.
    pub(crate) fn count_acked(&mut self, bytes: usize) {
        self.acked_between_cuts.current += bytes as u64;
    }

    /// The window is cut for losses.
    pub(crate) fn count_cut(&mut self) {
        let last = self.acked_between_cuts.current;
        self.acked_between_cuts = AckedBetweenCuts { current: 0, last };
    }

    /// Bytes acknowledged between the last two cuts, or since the last if those are more.
    pub(crate) fn between_losses(&self) -> u64 {
        self.acked_between_cuts.current.max(self.acked_between_cuts.last)
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
}
