//! CUBIC by the sections of RFC 9438, and HyStart++ by those of RFC 9406.

use std::time::Duration;

use super::*;

const PACKET: usize = 1000;
const LIMITS: Limits =
    Limits { packet: PACKET, ssthresh_floor: 4 * PACKET, slow_start_increase_max: 8 * PACKET };

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A sender on a path whose queue is never full. Its SACKs acknowledge a packet each.
struct Sender {
    cubic: Cubic,
    window: Window,
    now: Instant,
    rtt: Duration,
    acked: u64,
    /// It has less to send than the window allows.
    is_app_limited: bool,
    recovers: bool,
}

impl Sender {
    /// A new path.
    fn new(rtt: Duration) -> Sender {
        Sender {
            cubic: Cubic::default(),
            window: Window { cwnd: 10 * PACKET, ssthresh: usize::MAX, partial_bytes_acked: 0 },
            now: Instant::from_millis(1000),
            rtt,
            acked: 0,
            is_app_limited: false,
            recovers: false,
        }
    }

    /// One that lost a packet with a window of this number of packets.
    fn after_loss_at(packets: usize, rtt: Duration) -> Sender {
        let mut s = Sender::new(rtt);
        s.window.cwnd = packets * PACKET;
        s.lose();
        s
    }

    fn lose(&mut self) {
        self.window = self.cubic.on_fast_retransmit(self.window, &LIMITS);
    }

    fn time_out(&mut self) {
        self.window = self.cubic.on_timeout(self.window, &LIMITS);
    }

    fn ack(&mut self) {
        let in_flight = if self.is_app_limited {
            self.window.cwnd / PACKET / 2
        } else {
            self.window.cwnd.div_ceil(PACKET)
        };
        let latest_sent = self.acked + in_flight as u64;
        self.acked += 1;
        let ack = AckFacts {
            in_fast_recovery: self.recovers,
            now: self.now,
            rtt: Some(self.rtt),
            srtt: Some(self.rtt),
            latest_acked: Some(self.acked),
            latest_sent,
            ..AckFacts::of(PACKET, in_flight * PACKET)
        };
        self.window = self.cubic.on_ack(self.window, &LIMITS, &ack);
    }

    /// A round trip in which all that was in flight is acknowledged.
    fn round(&mut self) {
        let packets = self.window.cwnd.div_ceil(PACKET) as u32;
        for _ in 0..packets {
            self.now += self.rtt / packets;
            self.ack();
        }
    }

    fn run(&mut self, length: Duration) {
        let end = self.now + length;
        while self.now < end {
            self.round();
        }
    }

    /// The window in packets.
    fn packets(&self) -> f64 {
        self.window.cwnd as f64 / PACKET as f64
    }

    fn is_avoiding(&self) -> bool {
        self.window.cwnd >= self.window.ssthresh
    }
}

// ---- RFC 9438 ----

#[test]
fn s4_2_the_window_follows_a_cubic_of_the_time_since_the_loss() {
    let mut s = Sender::after_loss_at(1000, ms(100));
    let k = (300.0_f64 / 0.4).cbrt();
    let began = s.now;
    for second in 1..=14 {
        s.run(Duration::from_secs(1));
        let t = (s.now - began).as_secs_f64();
        let curve = 0.4 * (t - k).powi(3) + 1000.0;
        assert!(
            (s.packets() - curve).abs() < 10.0,
            "{} and {curve} in second {second}",
            s.packets()
        );
    }
    assert!(s.packets() > 1040.0, "§4.5: convex beyond K");
}

#[test]
fn s4_2_growth_does_not_depend_on_the_round_trip_time() {
    let after = |rtt| {
        let mut s = Sender::after_loss_at(1000, rtt);
        s.run(Duration::from_secs(5));
        s.packets()
    };
    let (short, long) = (after(ms(40)), after(ms(160)));
    assert!((short - long).abs() < 0.02 * short, "{short} and {long}");
}

#[test]
fn s4_2_a_window_grows_by_half_in_a_round_trip_at_most() {
    let mut s = Sender::after_loss_at(10, Duration::from_secs(10));
    for _ in 0..4 {
        let before = s.packets();
        s.round();
        // Each SACK may add a fraction of the window as it is then.
        let most = before * 0.5_f64.exp() + 1.0;
        assert!(before < s.packets() && s.packets() <= most, "{before}, then {}", s.packets());
    }
}

#[test]
fn s4_3_a_small_window_grows_as_that_of_reno() {
    let mut s = Sender::after_loss_at(20, ms(10));
    assert_eq!(s.packets(), 14.0);
    (0..10).for_each(|_| s.round());
    let alpha = 3.0 * 0.3 / 1.7;
    assert!((s.packets() - 14.0 - 10.0 * alpha).abs() < 1.0, "{}", s.packets());
    while s.packets() < 20.5 {
        s.round();
    }
    let before = s.packets();
    (0..10).for_each(|_| s.round());
    let grown = s.packets() - before;
    assert!((9.0..=11.0).contains(&grown), "above cwnd_prior a packet a round trip, not {grown}");
}

#[test]
fn s4_6_a_loss_leaves_seven_tenths_of_the_window() {
    let s = Sender::after_loss_at(100, ms(50));
    assert_eq!((s.window.cwnd, s.window.ssthresh), (70 * PACKET, 70 * PACKET));
    let small = Sender::after_loss_at(4, ms(50));
    assert_eq!(small.window.ssthresh, LIMITS.ssthresh_floor);
}

#[test]
fn s4_7_a_loss_below_the_last_one_lowers_the_plateau() {
    let mut s = Sender::after_loss_at(1000, ms(100));
    assert_eq!(s.cubic.w_max, Some(1_000_000.0));
    s.lose();
    assert_eq!(s.cubic.w_max, Some(0.85 * 700_000.0));
    s.window.cwnd = 900 * PACKET;
    s.lose();
    assert_eq!(s.cubic.w_max, Some(900_000.0), "above the last one nobody needs a share");
}

#[test]
fn s4_8_after_a_timeout_slow_start_leads_to_a_curve_that_begins_flat() {
    let mut s = Sender::after_loss_at(1000, ms(100));
    s.time_out();
    assert_eq!((s.window.cwnd, s.window.ssthresh), (PACKET, 490 * PACKET));
    let mut rounds = 0;
    while !s.is_avoiding() {
        s.round();
        rounds += 1;
    }
    assert!((9..=10).contains(&rounds), "{rounds} round trips from 1 to 490 packets");
    let began = s.now;
    let start = s.packets();
    s.run(Duration::from_secs(3));
    let t = (s.now - began).as_secs_f64();
    // Reno's pace is faster than the flat part of the curve.
    let reno = start + 3.0 * 0.3 / 1.7 * t / 0.1;
    assert!((s.packets() - reno).abs() < 5.0, "{} and {reno}", s.packets());
    s.run(Duration::from_secs(7));
    let t = (s.now - began).as_secs_f64();
    let curve = start + 0.4 * t.powi(3);
    assert!((s.packets() - curve).abs() < 30.0, "{} and {curve}: K is 0", s.packets());
}

#[test]
fn s4_10_at_ssthresh_slow_start_ends_exactly() {
    let mut s = Sender::new(ms(50));
    s.window.ssthresh = 100 * PACKET + 1;
    while !s.is_avoiding() {
        s.ack();
    }
    assert_eq!(s.window.cwnd, s.window.ssthresh);
}

#[test]
fn s5_8_a_window_that_is_not_used_does_not_grow_and_its_time_stands_still() {
    let mut steady = Sender::after_loss_at(1000, ms(100));
    let mut paused = Sender::after_loss_at(1000, ms(100));
    for s in [&mut steady, &mut paused] {
        s.run(Duration::from_secs(2));
    }
    let before = paused.window;
    paused.is_app_limited = true;
    // What was in flight while the window was used up still counts.
    paused.round();
    let grown = paused.window;
    assert!(grown.cwnd < before.cwnd + before.cwnd / 10);
    paused.run(Duration::from_secs(30));
    assert_eq!(paused.window, grown, "half of the window is in flight");
    paused.is_app_limited = false;
    paused.now += Duration::from_secs(60);
    for s in [&mut steady, &mut paused] {
        s.run(Duration::from_secs(2));
    }
    let (steady, paused) = (steady.packets(), paused.packets());
    assert!((steady - paused).abs() < 0.03 * steady, "{paused} after 90 s of pause, not {steady}");
}

#[test]
fn in_fast_recovery_the_window_stays() {
    let mut s = Sender::after_loss_at(1000, ms(100));
    s.recovers = true;
    let before = s.window;
    s.run(Duration::from_secs(5));
    assert_eq!(s.window, before);
    s.recovers = false;
    s.round();
    assert!(s.packets() < 740.0, "the stage begins after it: {}", s.packets());
}

#[test]
fn a_window_that_the_engine_has_lowered_grows_from_there() {
    let mut s = Sender::after_loss_at(100, ms(100));
    s.run(Duration::from_secs(2));
    // As after an idle time (RFC 9260 §7.2.1): slow start up to what it was.
    let was = s.window.cwnd;
    s.window = Window { cwnd: 4 * PACKET, ssthresh: was, partial_bytes_acked: 0 };
    s.ack();
    assert_eq!(s.window.cwnd, 5 * PACKET);
    while !s.is_avoiding() {
        s.ack();
    }
    assert_eq!(s.window.cwnd, was);
    s.round();
    // As after a burst (RFC 9260 §6.1, D), which leaves ssthresh alone.
    s.window = Window { cwnd: 60 * PACKET, ssthresh: 50 * PACKET, partial_bytes_acked: 0 };
    s.round();
    assert!((60.0..66.0).contains(&s.packets()), "no jump to the old curve: {}", s.packets());
}

#[test]
fn s4_9_losses_that_were_none_leave_everything_as_it_was() {
    let reference = || {
        let mut s = Sender::after_loss_at(100, ms(50));
        s.run(Duration::from_secs(3));
        s
    };
    let mut expected = reference();
    expected.run(Duration::from_secs(3));
    let mut s = reference();
    let before = s.window;
    s.cubic.on_losses(s.window);
    s.lose();
    assert!(s.window.cwnd < before.cwnd);
    s.window = s.cubic.on_spurious_losses(s.window);
    assert_eq!(s.window, before);
    s.run(Duration::from_secs(3));
    assert_eq!(s.window, expected.window, "the curve goes on");
}

#[test]
fn s4_9_timeouts_stay() {
    let mut s = Sender::after_loss_at(100, ms(50));
    s.cubic.on_losses(s.window);
    s.time_out();
    assert_eq!(s.cubic.on_spurious_losses(s.window), s.window);
}

#[test]
fn s4_9_slow_start_goes_on_after_losses_that_were_none() {
    let mut s = Sender::new(ms(50));
    s.round();
    s.cubic.on_losses(s.window);
    s.lose();
    assert!(s.cubic.hystart.is_none() && s.is_avoiding());
    s.window = s.cubic.on_spurious_losses(s.window);
    assert!(s.cubic.hystart.is_some() && !s.is_avoiding());
}

#[test]
fn s4_9_a_window_that_has_grown_beyond_stays() {
    let mut s = Sender::after_loss_at(100, ms(50));
    s.cubic.on_losses(s.window);
    s.lose();
    s.window.cwnd = 200 * PACKET;
    assert_eq!(s.cubic.on_spurious_losses(s.window), s.window);
    // And nothing is undone twice.
    s.window.cwnd = 10 * PACKET;
    assert_eq!(s.cubic.on_spurious_losses(s.window), s.window);
}

// ---- RFC 9406 ----

/// A path in its first slow start, whose round-trip time was this in the last round.
fn in_slow_start(rtt: Duration) -> Sender {
    let mut s = Sender::new(rtt);
    (0..3).for_each(|_| s.round());
    assert!(!s.is_avoiding());
    s
}

fn is_conservative(s: &Sender) -> bool {
    s.cubic.hystart.as_ref().is_some_and(|h| h.growth_divisor() > 1)
}

#[test]
fn s4_2_of_hystart_slow_start_doubles_the_window_while_the_delay_stays() {
    let mut s = Sender::new(ms(100));
    (0..6).for_each(|_| s.round());
    assert_eq!((s.packets(), is_conservative(&s)), (640.0, false));
}

#[test]
fn s4_2_of_hystart_a_longer_delay_in_eight_samples_begins_conservative_slow_start() {
    for (rtt, threshold) in [(8, 4), (80, 10), (400, 16)] {
        let delayed_by = |more: u64| {
            let mut s = in_slow_start(ms(rtt));
            s.rtt = ms(rtt + more);
            // The first SACK ends the round, the eighth of the next one decides.
            (0..8).for_each(|_| s.ack());
            let early = is_conservative(&s);
            s.round();
            (early, is_conservative(&s))
        };
        assert_eq!(delayed_by(threshold - 1), (false, false), "{rtt} ms");
        assert!(delayed_by(threshold).1, "{rtt} ms: RttThresh is {threshold} ms");
    }
}

#[test]
fn s4_2_of_hystart_seven_samples_say_nothing() {
    let mut hystart = HyStart::default();
    let mut acked = 0;
    let mut sample = |rtt| {
        acked += 1;
        hystart.ends_slow_start(&AckFacts {
            rtt: Some(rtt),
            latest_acked: Some(acked),
            latest_sent: acked + 9,
            ..AckFacts::of(PACKET, 10 * PACKET)
        });
        hystart.growth_divisor()
    };
    // The first flight has ten packets.
    (0..10).for_each(|_| assert_eq!(sample(ms(100)), 1));
    (0..7).for_each(|n| assert_eq!(sample(ms(150)), 1, "sample {n} of the round"));
    assert_eq!(sample(ms(150)), 4, "the eighth");
}

#[test]
fn s4_2_of_hystart_conservative_slow_start_is_four_times_slower_and_lasts_five_rounds() {
    let mut s = in_slow_start(ms(100));
    s.rtt = ms(120);
    while !is_conservative(&s) {
        s.ack();
    }
    let before = s.window.cwnd;
    s.ack();
    assert_eq!(s.window.cwnd, before + PACKET / 4);
    let mut acked = 0;
    let a_round = s.window.cwnd / PACKET;
    while !s.is_avoiding() {
        s.ack();
        acked += 1;
    }
    // Each round is a quarter longer than the one before, and the first one counts from its midst.
    let rounds = (1.0 + f64::from(acked) / a_round as f64 * 0.25).ln() / 1.25_f64.ln();
    assert!((4.0..=5.0).contains(&rounds), "{rounds}");
    assert_eq!(s.window.cwnd, s.window.ssthresh);
    let left = s.packets();
    s.run(Duration::from_secs(1));
    let grown = s.packets() - left;
    assert!(
        (7.5..9.5).contains(&grown),
        "RFC 9438 §4.10: Reno's pace, for the curve is flat: {grown}"
    );
    assert!(s.cubic.hystart.is_none(), "RFC 9406 §4.3: later slow starts are standard");
}

#[test]
fn s4_2_of_hystart_a_delay_that_shrinks_again_resumes_slow_start() {
    let mut s = in_slow_start(ms(100));
    s.rtt = ms(120);
    while !is_conservative(&s) {
        s.ack();
    }
    s.rtt = ms(100);
    s.round();
    s.round();
    assert!(!is_conservative(&s) && !s.is_avoiding());
    let before = s.window.cwnd;
    s.ack();
    assert_eq!(s.window.cwnd, before + PACKET);
}

#[test]
fn a_loss_in_slow_start_ends_hystart() {
    let mut s = in_slow_start(ms(100));
    s.lose();
    assert!(s.is_avoiding() && s.cubic.hystart.is_none());
}
