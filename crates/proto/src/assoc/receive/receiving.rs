//! The receiving side: what arrived, the receive buffer, and the window that SACKs advertise.

use manypath_wire::{PacketBuilder, Tsn};

use crate::assoc::open::init::sends_rare_sacks;
use crate::assoc::protect::protection::KEY_MANAGEMENT_PPID;
use crate::assoc::{AssocTimer, Association, Timer};
use crate::config::Config;
use crate::rx::{DelayedAck, Inbound, Limits, Message, SackConfig, TsnTracker};
use crate::time::Instant;
use crate::tx::SACK_FLAG_TWO_PACKETS;
use crate::view::PathId;

/// The least receive buffer, in bytes: no INIT may announce less (RFC 9260 §3.3.2).
const MIN_RECEIVE_BUFFER: usize = 1500;

/// The receiving side, before and after the peer's initial TSN is known.
#[derive(Debug)]
pub(crate) struct Receiving {
    /// The receive buffer in force, in bytes; it may differ from the configuration's.
    pub(crate) buffer: usize,
    /// Set once the peer's initial TSN is known.
    pub(crate) receiver: Option<Receiver>,
}

/// The receiving side, once the peer's initial TSN is known.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// The peer's first TSN.
    pub(crate) initial_tsn: Tsn,
    pub(crate) tracker: TsnTracker,
    pub(crate) delayed: DelayedAck,
    pub(crate) inbound: Inbound,
    /// The path on which the latest DATA arrived.
    pub(crate) last_data: Option<PathId>,
    /// The paths on which DATA has arrived, a bit each.
    pub(crate) data_paths: u32,
    /// a_rwnd of the last SACK.
    advertised: usize,
    /// Packets with DATA since `window_start`, to measure their rate.
    window_packets: u32,
    window_start: Instant,
}

impl Receiving {
    pub(crate) fn new(config: &Config) -> Receiving {
        Receiving { buffer: config.first_receive_buffer(), receiver: None }
    }

    /// The window that the next SACK advertises, in bytes. `mtu` is the length of packets.
    pub(crate) fn window(&self, mtu: usize) -> usize {
        let free = self.receiver.as_ref().map_or(0, |r| r.inbound.available_bytes());
        // A window too small for a packet would draw tiny chunks.
        if free < mtu.min(self.buffer / 4) { 0 } else { free }
    }

    /// True if something can be read.
    pub(crate) fn has_ready(&self) -> bool {
        self.receiver.as_ref().is_some_and(|r| r.inbound.has_ready())
    }

    /// User bytes in the receive buffer.
    pub(crate) fn buffered_bytes(&self) -> usize {
        self.receiver.as_ref().map_or(0, |r| r.inbound.buffered_bytes())
    }

    /// The receiver, if the latest DATA arrived on this path.
    pub(crate) fn if_last_data_on(&mut self, path: PathId) -> Option<&mut Receiver> {
        self.receiver.as_mut().filter(|r| r.last_data == Some(path))
    }

    /// True if the next SACK is due now.
    pub(crate) fn is_sack_due(&self, now: Instant) -> bool {
        self.receiver.as_ref().is_some_and(|r| r.delayed.is_due(now))
    }

    /// True if there is something to acknowledge.
    pub(crate) fn is_sack_pending(&self) -> bool {
        self.receiver.as_ref().is_some_and(|r| r.delayed.packets_since_sack() > 0)
    }
}

impl Receiver {
    /// Appends a SACK that advertises `window`, or an NR-SACK. Returns false if there is no room.
    pub(crate) fn push_sack(
        &mut self,
        packet: &mut PacketBuilder<'_>,
        window: usize,
        nr_sack: bool,
    ) -> bool {
        let flags = if self.delayed.dac_flags(1) > 0 { SACK_FLAG_TWO_PACKETS } else { 0 };
        let a_rwnd = u32::try_from(window).unwrap_or(u32::MAX);
        let cum = self.tracker.cum_tsn();
        let mut reported = 0;
        let duplicates = self.tracker.duplicates().iter().copied().inspect(|_| reported += 1);
        let pushed = if nr_sack {
            let kept = self.inbound.keep(&self.tracker);
            let [gaps, nr_gaps] = self.tracker.gap_ack_blocks_split_at(kept);
            packet.push_nr_sack(cum, a_rwnd, flags, [&gaps, &nr_gaps], duplicates)
        } else {
            packet.push_sack(cum, a_rwnd, flags, self.tracker.gap_ack_blocks(), duplicates)
        };
        if pushed {
            self.advertised = window;
            self.tracker.duplicates_reported(reported);
            self.delayed.on_sack_sent();
            // Duplicates without room go into another SACK, which nothing else would draw.
            if reported > 0 && !self.tracker.duplicates().is_empty() {
                self.delayed.demand_now();
            }
        }
        pushed
    }

    /// Sends fewer SACKs at high packet rates: one for the packets of a millisecond, within the
    /// configured limits. Each SACK costs both ends as much as a packet of data.
    pub(super) fn adapt_sack_every(&mut self, config: &Config, now: Instant) {
        const WINDOW_MS: u32 = 10;
        if config.sack_every_max <= config.sack_every {
            return;
        }
        self.window_packets += 1;
        let elapsed = now - self.window_start;
        if elapsed.as_millis() >= WINDOW_MS.into() {
            let per_ms = f64::from(self.window_packets) / (elapsed.as_secs_f64() * 1e3);
            let every = (per_ms as u32).clamp(config.sack_every, config.sack_every_max);
            self.delayed.set_sack_every(every);
            self.window_packets = 0;
            self.window_start = now;
        }
    }
}

impl Association {
    /// True if the peer's sender needs SACKs as RFC 9260 §6.2 and §6.7 demand, because it did not
    /// announce that it can do with fewer.
    pub(super) fn expects_prompt_sacks(&self) -> bool {
        sends_rare_sacks(&self.config) && !self.agreed.rare_sacks
    }

    /// True if a SACK is due that the peer needs before this end handles more of its packets.
    pub(crate) fn owes_sack(&self) -> bool {
        let is_due = |r: &Receiver| r.delayed.is_due_by_count();
        self.expects_prompt_sacks() && self.rx.receiver.as_ref().is_some_and(is_due)
    }

    pub(crate) fn start_receiver(&mut self, peer_tsn: Tsn, streams_in: u16, now: Instant) {
        let c = &self.config;
        self.rx.receiver = Some(Receiver {
            initial_tsn: peer_tsn,
            tracker: TsnTracker::new(peer_tsn),
            delayed: DelayedAck::new(SackConfig {
                sack_delay: c.sack_delay,
                sack_every: c.sack_every,
                dac: false,
                first_at_once: c.sack_first_at_once,
                filled_gap_at_once: c.sack_filled_gap_at_once,
                counts_duplicates: self.recovery.rules.duplicates_count,
            }),
            inbound: self.new_inbound(streams_in),
            last_data: None,
            data_paths: 0,
            advertised: self.rx.buffer,
            window_packets: 0,
            window_start: now,
        });
    }

    fn new_inbound(&self, streams_in: u16) -> Inbound {
        let limits = Limits::for_receive_buffer(self.rx.buffer);
        let mut inbound =
            Inbound::new(streams_in, limits).counting_headers(self.recovery.rules.room.of_headers);
        if self.interleaves() {
            inbound.interleave();
        }
        if self.is_protected() {
            inbound.set_aside(KEY_MANAGEMENT_PPID);
        }
        inbound.copy_all(self.is_strangers(self.rx.buffer));
        inbound
    }

    /// Takes the next message, or part of a message too long to buffer whole.
    #[inline]
    pub fn recv(&mut self, now: Instant) -> Option<Message> {
        let receiver = self.rx.receiver.as_mut()?;
        let message = receiver.inbound.pop();
        match &message {
            Some(m) => {
                self.stats.bytes_received += m.payload.len() as u64;
                self.stats.messages_received += u64::from(m.end_of_message);
                self.update_window(now);
            }
            None => self.events.all_is_read(),
        }
        self.follow_reading(now, message.is_none());
        message
    }

    /// Tells the peer of new room in a receive buffer that was nearly full (RFC 9260 §6.2). Small
    /// steps are not worth a packet (silly-window avoidance).
    fn update_window(&mut self, now: Instant) {
        let advertised = self.rx.receiver.as_ref().map_or(usize::MAX, |r| r.advertised);
        if advertised >= self.rx.buffer / 4 {
            return;
        }
        let worth = (self.rx.buffer / 2).min(2 * self.config.mtu);
        let window = self.rx.window(self.config.mtu);
        let Some(receiver) = self.rx.receiver.as_mut() else { return };
        if self.config.window_updates
            && window >= receiver.advertised + worth
            && self.state.may_receive_data()
        {
            receiver.delayed.demand_now();
            self.timers.set(Timer::Assoc(AssocTimer::Sack), now);
        }
    }

    /// Sets the receive buffer, in bytes. A server gives a stranger a small one
    /// ([`Endpoint::set_incoming_window`](crate::Endpoint::set_incoming_window)), and a larger one
    /// once it knows the peer. Values below 1500 (RFC 9260 §3.3.2) count as 1500.
    ///
    /// A larger buffer is announced at once, with a SACK that shares its packet with data sent now.
    /// With a smaller one, data that arrived out of order may be discarded; the peer keeps it until
    /// it is acknowledged (RFC 9260 §6.2). While the buffer is smaller than the configuration's,
    /// waiting data is copied, so that it keeps no packet alive.
    pub fn set_receive_buffer(&mut self, now: Instant, bytes: usize) {
        let bytes = bytes.max(MIN_RECEIVE_BUFFER);
        let grows = bytes > self.rx.buffer;
        self.rx.buffer = bytes;
        let is_strangers = self.is_strangers(bytes);
        let Some(r) = self.rx.receiver.as_mut() else { return };
        r.inbound.set_limits(Limits::for_receive_buffer(bytes));
        r.inbound.copy_all(is_strangers);
        r.advertised = r.advertised.min(bytes);
        if grows && self.state.may_receive_data() {
            r.delayed.demand_now();
            self.timers.set(Timer::Assoc(AssocTimer::Sack), now);
        }
    }

    /// True if a buffer of this size is for a peer that the application does not know yet.
    fn is_strangers(&self, bytes: usize) -> bool {
        bytes < self.config.first_receive_buffer()
    }

    /// The receive buffer in force, in bytes.
    pub fn receive_buffer(&self) -> usize {
        self.rx.buffer
    }
}
