//! A sender with BBR over one bottleneck: just enough of a network to drive the model.

use std::collections::VecDeque;
use std::time::Duration;

use super::super::*;
use crate::path::{DeliveryRate, InFlight};

pub(super) const PACKET: usize = 1000;
pub(super) const LIMITS: Limits =
    Limits { packet: PACKET, ssthresh_floor: 4 * PACKET, slow_start_increase_max: PACKET };
/// Packets acknowledged after a missing one until that is taken for lost.
const REORDERING: u64 = 3;

pub(super) fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A bottleneck, and the delay beyond it.
#[derive(Copy, Clone, Debug)]
pub(super) struct Link {
    /// Bytes per second.
    pub(super) rate: f64,
    /// Round-trip time without a queue.
    pub(super) rtt: Duration,
    /// Bytes that wait at most.
    pub(super) queue: usize,
    /// One packet of this number is lost; 0: none.
    pub(super) loses_each: u64,
    /// Acknowledgements come together, so far apart.
    pub(super) acks_each: Duration,
}

struct Flying {
    order: u64,
    sent_at: Instant,
    /// When it is acknowledged; `None` if it never is.
    acked_at: Option<Instant>,
}

pub(super) struct Sender {
    pub(super) bbr: Bbr,
    pub(super) link: Link,
    pub(super) now: Instant,
    pub(super) window: Window,
    /// Bytes per second that the application has to send; `None`: more than can be sent.
    pub(super) application: Option<f64>,
    pub(super) acked: u64,
    /// The states that it was in, with the time of each change.
    pub(super) states: Vec<(Instant, State)>,
    rate: DeliveryRate,
    flying: VecDeque<Flying>,
    next_order: u64,
    next_send: Instant,
    next_write: Instant,
    link_free: Instant,
    /// The first packet of the next flight with losses.
    next_losses: u64,
}

impl Sender {
    pub(super) fn over(link: Link, guards: Guards) -> Sender {
        let mut bbr = Bbr::new(guards);
        bbr.seed(Rng::from_number(7));
        let begin = Instant::from_millis(1000);
        Sender {
            bbr,
            link,
            now: begin,
            window: Window { cwnd: 10 * PACKET, ssthresh: usize::MAX, partial_bytes_acked: 0 },
            application: None,
            acked: 0,
            states: vec![(begin, State::Startup)],
            rate: DeliveryRate::default(),
            flying: VecDeque::new(),
            next_order: 0,
            next_send: begin,
            next_write: begin,
            link_free: begin,
            next_losses: 0,
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        self.flying.len() * PACKET
    }

    pub(super) fn state(&self) -> State {
        self.bbr.state()
    }

    /// Bandwidth-delay product in bytes.
    pub(super) fn bdp(&self) -> usize {
        (self.link.rate * self.link.rtt.as_secs_f64()) as usize
    }

    /// Runs for a time. Returns the share of the link that was used.
    pub(super) fn run(&mut self, time: Duration) -> f64 {
        let (end, before) = (self.now + time, self.acked);
        self.run_while(time, |_| true);
        self.now = end;
        (self.acked - before) as f64 / (self.link.rate * time.as_secs_f64())
    }

    /// Runs until a state begins, for 30 s at most.
    pub(super) fn run_to(&mut self, state: State) {
        let seen = self.states.len();
        let begins = |s: &Sender| s.states[seen..].iter().any(|(_, begun)| *begun == state);
        self.run_while(Duration::from_secs(30), |s| !begins(s));
        let first = &self.states[seen..self.states.len().min(seen + 12)];
        assert!(begins(self), "{state:?} never began: {first:?}");
    }

    pub(super) fn run_while(&mut self, time: Duration, goes_on: impl Fn(&Sender) -> bool) {
        let end = self.now + time;
        while self.now < end && goes_on(self) {
            let ack = self.flying.iter().find_map(|packet| packet.acked_at);
            if ack.is_some_and(|at| at <= self.now) {
                self.acknowledge();
                continue;
            }
            let has_room = self.in_flight() + PACKET <= self.window.cwnd;
            let writes_at = self.application.map(|_| self.next_write);
            let has_data = writes_at.is_none_or(|at| at <= self.now);
            if has_room && self.next_send <= self.now && has_data {
                self.send();
                continue;
            }
            if has_room && !has_data {
                self.rate.limit_by_application(self.in_flight());
            }
            let send_at = has_room.then(|| writes_at.unwrap_or(self.now).max(self.next_send));
            let next = ack.into_iter().chain(send_at).min().unwrap_or(end);
            self.now = next.max(self.now + Duration::from_nanos(1)).min(end);
        }
    }

    /// The application has nothing to send until it is told so.
    pub(super) fn pause(&mut self) {
        self.application = Some(1.0);
        self.next_write = self.now + Duration::from_secs(3600);
    }

    pub(super) fn resume(&mut self) {
        self.application = None;
    }

    /// The application writes this number of bytes a second from now on.
    pub(super) fn write_at(&mut self, rate: f64) {
        (self.application, self.next_write) = (Some(rate), self.now);
    }

    /// The latest losses were none.
    pub(super) fn undo(&mut self) {
        self.window = self.bbr.on_spurious_losses(self.window);
        self.note_state();
    }

    fn send(&mut self) {
        let before = self.in_flight();
        self.bbr.on_sent(&SentPacket {
            now: self.now,
            in_flight_before: before,
            is_app_limited: self.rate.is_app_limited(),
            cwnd: self.window.cwnd,
        });
        self.note_state();
        let order = self.next_order;
        self.next_order += 1;
        let after = before + PACKET;
        self.rate.on_sent(self.now, order, InFlight { before, after });
        if after + PACKET > self.window.cwnd {
            self.rate.limit_by_window(after);
        }
        if let Some(rate) = self.application {
            self.next_write += Duration::from_secs_f64(PACKET as f64 / rate);
        }
        if let Some(pace) = self.bbr.pace() {
            let gap = Duration::from_secs_f64(PACKET as f64 / pace.rate);
            self.next_send = self.next_send.max(self.now) + gap;
        }
        let waits = self.link_free.saturating_since(self.now);
        let queue = waits.as_secs_f64() * self.link.rate;
        let is_lost = self.link.loses_each > 0 && order % self.link.loses_each == 1;
        let acked_at = (queue < self.link.queue as f64 && !is_lost).then(|| {
            let takes = Duration::from_secs_f64(PACKET as f64 / self.link.rate);
            self.link_free = self.link_free.max(self.now) + takes;
            self.aggregated(self.link_free + self.link.rtt)
        });
        self.flying.push_back(Flying { order, sent_at: self.now, acked_at });
    }

    fn aggregated(&self, at: Instant) -> Instant {
        let each = self.link.acks_each.as_nanos() as u64;
        match each {
            0 => at,
            _ => Instant::from_nanos(at.as_nanos().div_ceil(each) * each),
        }
    }

    /// A SACK for everything that has arrived.
    fn acknowledge(&mut self) {
        let mut bytes = 0;
        let (mut latest, mut rtt) = (0, None);
        let now = self.now;
        self.flying.retain(|packet| {
            let is_acked = packet.acked_at.is_some_and(|at| at <= now);
            if is_acked {
                bytes += PACKET;
                (latest, rtt) = (packet.order, Some(now - packet.sent_at));
            }
            !is_acked
        });
        self.acked += bytes as u64;
        self.rate.on_acked(now, bytes, rtt, None);
        let (rate, bbr, window) = (&mut self.rate, &mut self.bbr, self.window);
        let (next_losses, next_order) = (&mut self.next_losses, self.next_order);
        self.flying.retain(|packet| {
            let is_lost = packet.acked_at.is_none() && packet.order + REORDERING <= latest;
            if is_lost && packet.order >= *next_losses {
                *next_losses = next_order;
                bbr.on_losses(window);
            }
            if is_lost && let Some(lost) = rate.on_lost(packet.order, PACKET, window.cwnd) {
                bbr.on_lost(&lost);
            }
            !is_lost
        });
        let delivery = Delivery {
            now,
            newly_acked: bytes,
            total: self.rate.total(),
            in_flight: self.in_flight(),
            rtt,
            is_window_limited: self.rate.is_window_limited(),
            is_report_full: false,
            sample: self.rate.sample(latest),
        };
        self.window = self.bbr.on_delivery(self.window, &LIMITS, &delivery);
        if self.bbr.holds_back() {
            self.rate.limit_by_application(self.in_flight());
        }
        self.rate.forget_before(self.flying.front().map(|packet| packet.order));
        self.note_state();
    }

    fn note_state(&mut self) {
        let state = self.bbr.state();
        if self.states.last().is_none_or(|(_, last)| *last != state) {
            self.states.push((self.now, state));
        }
    }
}
