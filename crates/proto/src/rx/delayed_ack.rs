//! When a SACK is due (RFC 9260 §6.2, and DAC of the CMT paper, §III-C).

use std::time::Duration;

use crate::time::Instant;

/// How a receiver delays its SACKs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct SackConfig {
    /// The longest time from the first unacknowledged packet to its SACK. RFC 9260 §6.2: at most
    /// 500 ms, 200 ms recommended. Zero acknowledges every packet at once.
    pub(crate) sack_delay: Duration,
    /// Packets with DATA for each SACK, at least 1. RFC 9260 §6.2: 2.
    pub(crate) sack_every: u32,
    /// Delayed Ack for CMT: reordering, which sending over several paths causes all the time, does
    /// not force a SACK; the SACK reports in its flags how many packets it answers instead.
    pub(crate) dac: bool,
    /// The SACK for the first DATA packet is sent at once: the peer's congestion window is smallest
    /// then, and its RTT has not been measured.
    pub(crate) first_at_once: bool,
    /// The SACK for a packet that fills the last gap is sent at once.
    pub(crate) filled_gap_at_once: bool,
    /// A packet with nothing but duplicates is acknowledged at once, and also counts towards the
    /// next delayed SACK. Without DAC only.
    pub(crate) counts_duplicates: bool,
}

/// Facts about a received packet with at least one DATA chunk.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PacketFacts {
    /// At least one TSN was new and accepted.
    pub(crate) any_new: bool,
    /// At least one TSN had been received before.
    pub(crate) any_duplicate: bool,
    /// At least one chunk was dropped for want of room.
    pub(crate) any_dropped: bool,
    /// TSNs were missing before the packet.
    pub(crate) gap_before: bool,
    /// TSNs are missing after the packet.
    pub(crate) gap_after: bool,
    /// A DATA chunk had the I bit set.
    pub(crate) immediate_bit: bool,
}

/// Decides when a SACK is due.
///
/// A SACK may be sent earlier at any time, for instance with outgoing DATA; report every one with
/// [`on_sack_sent`](Self::on_sack_sent).
#[derive(Clone, Debug)]
pub(crate) struct DelayedAck {
    config: SackConfig,
    /// Packets that brought new DATA since the last SACK.
    packets: u32,
    /// When the delay of the oldest of these packets ends.
    deadline: Option<Instant>,
    immediate: bool,
    /// True if the SACK due now answers duplicates only. It does not reset the count of packets.
    keeps_count: bool,
    /// True if any SACK has been sent on this association.
    sent_any: bool,
}

impl DelayedAck {
    /// The state of a new association.
    pub(crate) fn new(config: SackConfig) -> DelayedAck {
        DelayedAck {
            config,
            packets: 0,
            deadline: None,
            immediate: false,
            keeps_count: false,
            sent_any: false,
        }
    }

    /// Takes note of a packet with DATA, after all its chunks were handled.
    pub(crate) fn on_data_packet(&mut self, now: Instant, facts: PacketFacts) {
        // RFC 9260 §6.2: a packet with nothing but duplicates is acknowledged at once, because an
        // earlier SACK was lost.
        let only_duplicates = facts.any_duplicate && !facts.any_new;
        let counts_it = only_duplicates && self.config.counts_duplicates && !self.config.dac;
        if facts.any_new || counts_it {
            self.packets += 1;
            self.deadline.get_or_insert(now + self.config.sack_delay);
        }
        self.keeps_count =
            counts_it && !facts.gap_after && self.packets < self.config.sack_every.max(1);
        // RFC 9260 §6.7: every packet while TSNs are missing, and the one that fills the last gap.
        // CMT §III-C: "a CMT receiver always delays acks, irrespective of" the order of arrival.
        let filled = facts.gap_before && self.config.filled_gap_at_once;
        let reordered = (filled || facts.gap_after) && !self.config.dac;
        self.immediate |= only_duplicates
            || reordered
            || facts.any_dropped // §6.2: the SACK shows the window that the chunk did not fit
            || facts.immediate_bit // §6.2: the SACK for a chunk with the I bit is not delayed
            || (self.config.first_at_once && !self.sent_any);
    }

    /// Makes a SACK due now, for instance to announce a window that has opened (§6.2), or in
    /// SHUTDOWN-SENT (§9.2).
    pub(crate) fn demand_now(&mut self) {
        self.immediate = true;
    }

    /// True if the packets received make a SACK due, before its delay ends.
    pub(crate) fn is_due_by_count(&self) -> bool {
        self.immediate || self.packets >= self.config.sack_every.max(1)
    }

    /// True if a SACK should be sent now.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.is_due_by_count() || self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// When a SACK becomes due if nothing else arrives; `None` if there is nothing to acknowledge.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Takes note that a SACK was sent: nothing is left to acknowledge.
    pub(crate) fn on_sack_sent(&mut self) {
        if !std::mem::take(&mut self.keeps_count) {
            self.packets = 0;
            self.deadline = None;
        }
        self.immediate = false;
        self.sent_any = true;
    }

    /// Packets that brought new DATA since the last SACK. Packets with nothing but duplicates do
    /// not count, because they prove nothing about missing chunks.
    pub(crate) fn packets_since_sack(&self) -> u32 {
        self.packets
    }

    /// The number in the flags of a SACK sent now: the packets it acknowledges, less one, at most
    /// `max`. The paper's single bit is `max` 1; draft-tuexen-tsvwg-sctp-multipath has more bits.
    /// Zero without DAC, as RFC 9260 §3.3.4 demands.
    pub(crate) fn dac_flags(&self, max: u8) -> u8 {
        if !self.config.dac {
            return 0;
        }
        u8::try_from(self.packets.saturating_sub(1)).unwrap_or(u8::MAX).min(max)
    }

    /// Switches DAC on or off.
    pub(crate) fn set_dac(&mut self, dac: bool) {
        self.config.dac = dac;
    }

    /// Changes the delay. A SACK that waits already comes at its time.
    pub(crate) fn set_sack_delay(&mut self, delay: Duration) {
        self.config.sack_delay = delay;
    }

    /// Packets for each SACK at present.
    pub(crate) fn sack_every(&self) -> u32 {
        self.config.sack_every
    }

    /// Changes the packets for each SACK, at least 1: more of them at high rates, 1 if the peer
    /// needs every SACK.
    pub(crate) fn set_sack_every(&mut self, packets: u32) {
        self.config.sack_every = packets;
    }
}

#[cfg(test)]
mod tests;
