//! The only path becomes slow: its round trip steps up, or its rate falls. What works goes on.

use std::time::Duration;

use manypath_proto::config::{Config, Preset};
use manypath_proto::sizes::PROTECTION;
use manypath_proto::{AssocClosed, Event};
use manypath_sim::{Host, Pair, PathSpec, QueueLimit, secs, shared_key};

/// The IP packet of a HEARTBEAT, in bytes: 20 of IP, 8 of UDP, 12 of SCTP, and the chunk, which has
/// a code if it is not protected.
const HEARTBEAT_PACKET: usize = 60;
const PROTECTED_PACKET: usize = HEARTBEAT_PACKET - 8 + PROTECTION;
/// When the path becomes slow, in seconds. By then both ends have measured its round trip.
const STEP: u64 = 15;

/// The change of the path, which had a round trip of 4 ms.
#[derive(Copy, Clone, Debug)]
enum Step {
    /// The round trip from then on, in milliseconds.
    RoundTrip(u64),
    /// The rate from then on, in bit/s.
    Rate(f64),
}

const STEPS: [Step; 4] =
    [Step::RoundTrip(800), Step::RoundTrip(2400), Step::Rate(64e3), Step::Rate(9600.0)];

impl Step {
    /// The rate before, in bit/s.
    fn rate_before(self) -> f64 {
        match self {
            Step::RoundTrip(_) => 500e3,
            Step::Rate(_) => 2e6,
        }
    }

    fn rate(self) -> f64 {
        match self {
            Step::RoundTrip(_) => self.rate_before(),
            Step::Rate(rate) => rate,
        }
    }

    /// Bytes that are sent: for two minutes and more after the step.
    fn bytes(self) -> u64 {
        (self.rate_before() / 8.0 * STEP as f64 + self.rate() / 8.0 * 130.0) as u64
    }

    fn take(self, t: &mut Pair) {
        match self {
            Step::RoundTrip(ms) => t.net.path(0).set_delay(Duration::from_millis(ms / 2)),
            Step::Rate(rate) => t.net.path(0).set_rate_mbps(rate / 1e6),
        }
    }
}

fn heartbeats(host: &Host) -> u64 {
    host.paths().iter().map(|p| p.counters.heartbeats_sent).sum()
}

/// Runs a transfer over a path that becomes slow, and what of it heartbeats and their answers took
/// from the step to the end.
fn heartbeats_share(preset: &str, profile: &str, is_protected: bool, step: Step) -> f64 {
    let of = format!("{preset}, {profile}, protected {is_protected}, {step:?}");
    let path = PathSpec::default()
        .rate_mbps(step.rate_before() / 1e6)
        .delay_ms(2.0)
        .queue(QueueLimit::Packets(20));
    let mut pair = Pair::paths(preset, vec![path]).profile(profile).lean();
    if is_protected {
        pair = pair.keys(shared_key());
    }
    let mut t = pair.check_invariants(false).connect();
    t.a.send_file(step.bytes());
    t.run_until(secs(STEP));
    assert!(!t.has_delivered_all(), "{of}: too early");
    step.take(&mut t);
    let before = heartbeats(&t.a) + heartbeats(&t.z);
    // A sender that takes each flight for lost once sends everything twice, or three times.
    let is_over = |t: &Pair| t.has_delivered_all() || t.a.closed().or(t.z.closed()).is_some();
    t.run_until_true(secs(1200), is_over);
    let report = || format!("{of}: {:?} {:?} {:?}", t.net.now(), t.a.events(), t.z.events());
    assert!(t.has_delivered_all(), "{}", report());
    let took = (t.net.now() - secs(STEP)).as_secs_f64();
    assert!(took > 70.0, "{of}: {took:.1} s show nothing");
    let packet = if is_protected { PROTECTED_PACKET } else { HEARTBEAT_PACKET };
    // Each way those of one end, and the answers to those of the other.
    let bits = (heartbeats(&t.a) + heartbeats(&t.z) - before) * 8 * packet as u64;
    let share = bits as f64 / (step.rate() * took);
    println!("{of}: {took:.1} s, {:.2} % heartbeats", 100.0 * share);
    share
}

fn goes_on(profile: &str, is_protected: bool) {
    for preset in Preset::ALL {
        if Config::build(profile, preset.name, &[]).is_err() {
            continue;
        }
        for step in STEPS {
            let share = heartbeats_share(preset.name, profile, is_protected, step);
            assert!(
                share <= 0.05,
                "{}, {profile}, protected {is_protected}, {step:?}: {:.1} % of the link",
                preset.name,
                100.0 * share
            );
        }
    }
}

#[test]
fn a_transfer_goes_on_over_a_path_that_becomes_slow_fast() {
    goes_on("fast", false);
}

#[test]
fn a_transfer_goes_on_over_a_path_that_becomes_slow_fast_protected() {
    goes_on("fast", true);
}

#[test]
fn a_transfer_goes_on_over_a_path_that_becomes_slow_rfc9260() {
    goes_on("rfc9260", false);
}

#[test]
fn a_transfer_goes_on_over_a_path_that_becomes_slow_rfc9260_protected() {
    goes_on("rfc9260", true);
}

/// While nothing is answered, no more than three long probes ask whether the path's size is why:
/// further ones would fill a link that became slow. Afterwards it has the same size.
#[test]
fn a_silent_path_is_asked_for_its_size_once() {
    for preset in ["adaptive", "cmt-pf", "sctp"] {
        let mut t = Pair::one_path(preset).profile("fast").rate_mbps(2.0).delay_ms(2.0).connect();
        t.a.send_file(1 << 22);
        t.run_until(secs(2));
        let before = t.a.paths()[0].clone();
        let had = before.counters.size_probes_sent;
        t.net.path(0).cut_for(Duration::from_secs(45));
        t.run_until(secs(47));
        let sent = t.a.paths()[0].counters.size_probes_sent - had;
        assert!((1..=3).contains(&sent), "{preset}: {sent} probes of its size");
        assert!(t.run_until_true(secs(120), Pair::has_delivered_all), "{preset}");
        assert_eq!(t.a.paths()[0].mtu, before.mtu, "{preset}");
    }
}

/// An idle association whose round trip becomes long stays, and its RTO learns.
#[test]
fn an_idle_association_stays_on_a_path_that_becomes_slow() {
    for (profile, preset) in [("fast", "adaptive"), ("fast", "cmt-pf"), ("rfc9260", "sctp")] {
        let mut t = Pair::one_path(preset).profile(profile).delay_ms(2.0).lean().connect();
        t.run_until(secs(STEP));
        t.net.path(0).set_delay(Duration::from_millis(1200));
        t.run_until(secs(300));
        for host in [&t.a, &t.z] {
            assert!(host.is_established(), "{profile}, {preset}: {:?}", host.events());
            let rto = host.paths()[0].rto;
            assert!(rto >= Duration::from_millis(2400), "{profile}, {preset}: RTO {rto:?}");
        }
        let sent = (heartbeats(&t.a), heartbeats(&t.z));
        assert!(sent.0 <= 150 && sent.1 <= 150, "{profile}, {preset}: {sent:?} heartbeats");
    }
}

/// A path that works one way only: the end that hears the other waits, and the one that hears
/// nothing gives up and says so.
#[test]
fn of_a_path_that_works_one_way_the_end_that_hears_nothing_gives_up() {
    for preset in ["adaptive", "cmt-pf"] {
        let mut t = Pair::one_path(preset).profile("fast").delay_ms(10.0).lean().connect();
        t.run_until(secs(STEP));
        t.net.path(0).forward().cut();
        t.run_until(secs(200));
        let cause = |host: &Host| host.closed().cloned();
        assert_eq!(cause(&t.z), Some(AssocClosed::PathsFailed), "{preset}");
        assert!(matches!(cause(&t.a), Some(AssocClosed::PeerAborted { .. })), "{preset}");
    }
}

/// A dead path is noticed and given up as soon as ever.
#[test]
fn a_dead_path_is_given_up_after_association_timeout() {
    for preset in ["adaptive", "cmt-pf"] {
        let mut t = Pair::one_path(preset).profile("fast").delay_ms(10.0).lean().connect();
        t.a.send_file(1 << 30);
        t.run_until(secs(STEP));
        t.net.path(0).cut();
        t.run_until(secs(200));
        for host in [&t.a, &t.z] {
            let closed = |(_, event): &&(_, Event)| matches!(event, Event::Closed(_));
            let (at, _) = host.events().iter().find(closed).expect("it is given up");
            let after = *at - secs(STEP);
            let range = Duration::from_secs(60)..Duration::from_secs(68);
            assert!(range.contains(&after), "{preset}: {after:?}");
        }
    }
}
