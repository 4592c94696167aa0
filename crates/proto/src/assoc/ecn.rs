//! Explicit congestion notification (RFC 4960, appendix A): marks of received packets are echoed
//! to their sender, and echoes cut the window of the path whose packet was marked.

use manypath_wire::{Cwr, Ecne, PacketBuilder, Tsn};
use smallvec::SmallVec;

use super::Association;
use crate::view::PathId;

/// The echoes that each end still has to send, if both use the extension.
#[derive(Debug, Default)]
pub(crate) struct Ecn {
    /// Marks that the peer has not answered yet: the latest of each path. They travel with every
    /// SACK.
    echoes: SmallVec<[Echo; 2]>,
    /// The latest echo of the peer that no CWR has answered.
    unanswered: Option<Tsn>,
}

/// A marked packet.
#[derive(Copy, Clone, Debug)]
struct Echo {
    /// The path on which it came.
    path: Option<PathId>,
    /// The lowest TSN in it.
    tsn: Tsn,
}

impl Ecn {
    /// Notes a marked packet. True if nothing of its path was to be echoed before.
    fn note_mark(&mut self, path: Option<PathId>, tsn: Tsn) -> bool {
        let known = self.echoes.iter_mut().find(|echo| echo.path == path);
        match known {
            Some(echo) if tsn.gt(echo.tsn) => {
                echo.tsn = tsn;
                false
            }
            Some(_) => false,
            None => {
                self.echoes.push(Echo { path, tsn });
                true
            }
        }
    }

    /// Appends the echoes, as many as there is room for.
    pub(crate) fn push_echoes(&self, packet: &mut PacketBuilder<'_>) {
        for echo in &self.echoes {
            packet.push_ecne(Ecne { lowest_tsn: echo.tsn });
        }
    }

    /// Appends the answer to the peer's echoes, if one is due. True if it did.
    pub(crate) fn push_answer(&mut self, packet: &mut PacketBuilder<'_>) -> bool {
        let is_pushed = |tsn| packet.push_cwr(Cwr { lowest_tsn: tsn });
        let pushed = self.unanswered.is_some_and(is_pushed);
        if pushed {
            self.unanswered = None;
        }
        pushed
    }
}

impl Association {
    /// Both ends use explicit congestion notification (RFC 4960, appendix A). Known once the
    /// association is established.
    pub fn is_ecn_capable(&self) -> bool {
        self.agreed.ecn.is_some()
    }

    /// A packet whose lowest TSN is this one came with a mark.
    #[cold]
    pub(super) fn note_marked(&mut self, path: Option<PathId>, tsn: Tsn) {
        let Some(ecn) = self.agreed.ecn.as_mut() else { return };
        self.stats.ecn_marks_received += 1;
        // The sender should know soon. Further marks travel with the SACKs that are due anyway.
        if ecn.note_mark(path, tsn)
            && let Some(r) = self.rx.receiver.as_mut()
        {
            r.delayed.demand_now();
        }
    }

    /// The peer echoes a mark. Returns false if the rest of the packet is to be ignored.
    #[cold]
    pub(super) fn on_ecne(&mut self, chunk: Ecne, via: Option<PathId>) -> bool {
        let tsn = chunk.lowest_tsn;
        let highest = self.out.highest_tsn();
        let Some(ecn) = self.agreed.ecn.as_mut() else {
            return false; // as for all types below 64 that are unknown (RFC 9260 §3.2)
        };
        if !self.state.is_open() || tsn.gt(highest) {
            return true;
        }
        self.stats.ecn_echoes_received += 1;
        if ecn.unanswered.is_none_or(|latest| tsn.gt(latest)) {
            ecn.unanswered = Some(tsn);
        }
        // An echo whose TSN is acknowledged repeats an earlier one, or follows its SACK in the
        // packet. The SACK may have come on any path.
        let only = if self.paths.len() == 1 { via } else { None };
        if let Some(path) = self.out.get(tsn).map(|sent| sent.path).or(only) {
            self.cut_for_mark(path, tsn, highest);
        }
        true
    }

    /// Cuts the window for a mark, once for all packets that were sent before.
    fn cut_for_mark(&mut self, id: PathId, marked: Tsn, highest: Tsn) {
        let recovers = self.recovery.policy.recovers(id);
        let Some(p) = self.paths.get_mut(id) else { return };
        let is_new = p.flow.marked_until.is_none_or(|until| marked.gt(until));
        if !is_new || recovers {
            return;
        }
        p.flow.marked_until = Some(highest);
        p.flow.count_cut();
        let limits = p.limits(&self.config);
        let cwnd = p.flow.window.cwnd;
        p.flow.window = p.flow.cc.on_congestion_mark(p.flow.window, &limits);
        // The least ssthresh may be more than the first cwnd.
        p.flow.window.cwnd = p.flow.window.cwnd.min(cwnd);
        p.counters.ecn_cuts += 1;
        self.recovery.policy.on_congestion_mark(id, &self.out);
        self.share_window(id);
    }

    /// The peer has acted on echoes.
    #[cold]
    pub(super) fn on_cwr(&mut self, chunk: Cwr) -> bool {
        let Some(ecn) = self.agreed.ecn.as_mut() else { return false };
        ecn.echoes.retain(|echo| echo.tsn.gt(chunk.lowest_tsn));
        true
    }
}
