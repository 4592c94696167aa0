//! Reading ahead: see [`Endpoint::touch`](crate::Endpoint::touch).

use super::Association;

impl Association {
    /// Reads of its own fields what the next packet or timer will need.
    pub(crate) fn touch(&self) -> usize {
        let timers = self.timers.next().map_or(0, |at| at.as_nanos() as usize);
        let receiving = self.rx.receiver.as_ref().map_or(0, |r| {
            r.advertised_now() + r.data_paths as usize + r.delayed.packets_since_sack() as usize
        });
        timers
            + receiving
            + self.primary.index()
            + self.out.touch()
            + self.digest.newly_acked
            + self.digest.cut_or_stale as usize
            + self.peer_window.a_rwnd()
            + self.queue.bytes()
            + self.buffers.send
            + self.error_count as usize
            + self.control.len()
            + self.heartbeats.may_be_due as usize
            + self.events.is_empty() as usize
            + self.stats.sacks_received as usize
            + self.stats.bytes_queued as usize
            + self.agreed.streams_out as usize
            + self.ends.id.peer_tag as usize
            + self.recovery.rules.duplicates_count as usize
            + self.protection.is_some() as usize
            + self.paths.len()
    }

    /// The same of what its fields point to.
    pub(crate) fn touch_parts(&self) -> usize {
        let paths = self.paths.iter().map(|p| {
            p.flow.window.cwnd
                + p.remote.port() as usize
                + p.rto.rto().subsec_nanos() as usize
                + p.counters.packets_sent as usize
                + p.counters.acked_bytes as usize
                + p.liveness.error_count as usize
                + p.size.pmdcs
                + p.liveness.last_heard.map_or(0, |at| at.as_nanos() as usize)
                + p.flow.last_data_sent.map_or(0, |at| at.as_nanos() as usize)
                + p.flow.cwnd_space(0)
                + p.size.pmtu.size()
        });
        let digests = self.digest.paths.iter().map(|d| d.flight_before + d.lost);
        let receiving = self.rx.receiver.as_ref().map_or(0, |r| r.inbound.touch());
        let waiting = self.queue.waits_since().map_or(0, |at| at.as_nanos() as usize);
        let parts = paths.chain(digests).chain([self.out.touch_parts(), receiving, waiting]);
        parts.fold(0, usize::wrapping_add)
    }
}
