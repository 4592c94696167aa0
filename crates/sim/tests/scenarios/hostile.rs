//! Strangers that lie, flood, or name addresses that are not theirs, with the profile `fast`.

use std::net::IpAddr;

use manypath_proto::{AssocClosed, Instant};
use manypath_sim::testing::hostile::{Flood, FloodOf, Greedy, Outbox, Script, Stage, init};
use manypath_sim::{Pair, PairBuilder, PathSpec, QueueLimit, millis, secs};
use manypath_wire::{Chunk, Packet, Parameter};

use crate::MIB;

fn honest() -> PairBuilder {
    Pair::two_paths("cmt-pf").profile("fast").rate_mbps(20.0).delay_ms(10.0).lean()
}

/// Rate at which a server sends to a greedy client in ten seconds, in multiples of the 100 Mbit/s
/// of the client's link; and how the first association ended.
fn greed(ack_tests: &str, returns: bool) -> (f64, Stage<Greedy>) {
    let mut pair = honest().set("ack_tests", ack_tests).start();
    pair.a.start_at(secs(3600)); // this is between the server and the stranger
    pair.z.send_file(8 << 30);
    let link = PathSpec::new().rate_mbps(100.0).delay_ms(10.0).queue(QueueLimit::Packets(100));
    let mut stage = Stage::new(pair, &link, Greedy::new(returns));
    stage.run_until(secs(10));
    let multiple = stage.offered_bytes() as f64 * 8.0 / 10.0 / 100e6;
    (multiple, stage)
}

#[test]
fn optimistic_acknowledgements_are_found_out() {
    let (multiple, stage) = greed("true", false);
    println!("{multiple:.3} times the link's rate, aborted: {}", stage.script.reason);
    assert_eq!((stage.script.associations, stage.script.aborts), (1, 1));
    assert!(matches!(stage.pair.z.closed(), Some(AssocClosed::ProtocolViolation(_))));
    assert!(multiple < 0.1, "{multiple} times the link's rate");
}

#[test]
fn optimistic_acknowledgements_draw_at_most_twice_the_bottleneck_however_often_one_comes_back() {
    let (multiple, stage) = greed("true", true);
    println!("{multiple:.3} times the link's rate, {} associations", stage.script.associations);
    assert!(stage.script.aborts > 5, "{} times found out", stage.script.aborts);
    assert!(multiple < 2.0, "{multiple} times the link's rate");
}

#[test]
fn without_tests_they_draw_many_times_the_bottleneck() {
    let (multiple, _) = greed("false", false);
    println!("{multiple:.1} times the link's rate");
    assert!(multiple > 4.0, "what the tests of acknowledgements are for: {multiple}");
}

#[test]
fn honest_receivers_pass_whatever_the_network_does() {
    for preset in ["sctp", "sctp-pf", "cmt", "cmt-pf", "mtcp", "msacmt-rt", "adaptive"] {
        for (loss, rate) in [(0.0, 200.0), (0.01, 20.0), (0.05, 20.0)] {
            for seed in 0..4 {
                let builder = Pair::two_paths(preset).profile("fast").rate_mbps(rate);
                let builder = builder.delay_ms(5.0).loss(loss).seed(seed).lean();
                let mut t = builder.check_invariants(seed == 0).connect();
                t.a.send_file(12 * MIB);
                t.net.path(1).set_reorder(0.02, std::time::Duration::from_millis(8));
                t.net.path(0).at(millis(500)).cut_for(std::time::Duration::from_millis(300));
                t.run_to_end(secs(120));
                let got = t.z.received_bytes();
                assert_eq!(got, 12 * MIB, "{preset}, loss {loss}, seed {seed}: {:?}", t.a.closed());
            }
        }
    }
}

/// A TSN that is skipped may be overdue then, and copied to the other path before its test is over.
#[test]
fn honest_receivers_pass_while_a_path_is_silent() {
    for begin in (300..1500).step_by(20) {
        let t = Pair::two_paths("adaptive").profile("fast").rate_mbps(20.0).delay_ms(10.0);
        let mut t = t.lean().connect();
        t.a.send_file(64 * MIB);
        t.net.path(1).at(millis(begin)).cut_for(std::time::Duration::from_millis(500));
        t.run_until(millis(begin + 1000));
        assert_eq!(t.a.closed(), None, "silent from {begin} ms on");
    }
}

/// The time that a transfer over one path of 100 Mbit/s takes, and its retransmissions.
fn transfer(ack_tests: &str, delay_ms: f64, queue: QueueLimit) -> (f64, u64) {
    let builder = Pair::one_path("cmt-pf").profile("fast").set("ack_tests", ack_tests);
    let mut t = builder.rate_mbps(100.0).delay_ms(delay_ms).queue(queue).lean().connect();
    t.a.send_file(64 * MIB);
    let result = t.run_to_end(secs(60)).result();
    assert!(result.completed);
    (result.transfer_time_s, result.paths[0].stats.counters.retransmissions)
}

#[test]
fn tests_of_acknowledgements_cost_a_few_round_trips_of_slow_start_and_no_window() {
    for delay in [2.0, 10.0, 40.0] {
        let (with, again) = transfer("true", delay, QueueLimit::Unlimited);
        let (without, _) = transfer("false", delay, QueueLimit::Unlimited);
        println!("{delay} ms: {with:.3} s with tests, {without:.3} s without");
        assert_eq!(again, 0, "what was skipped is no retransmission");
        assert!(with < without + 6.0 * 2.0 * delay / 1e3, "{delay} ms: {with} s, {without} s");
    }
}

#[test]
fn tests_of_acknowledgements_cost_nothing_where_queues_overflow() {
    // What a single run loses depends on when exactly the queue overflows: the sum counts.
    let sum = |ack_tests| -> f64 {
        let queues = [50, 100, 400].map(QueueLimit::Packets);
        let all = queues.iter().flat_map(|queue| [2.0, 10.0, 40.0].map(|delay| (delay, queue)));
        all.map(|(delay, queue)| transfer(ack_tests, delay, *queue).0).sum()
    };
    let (with, without) = (sum("true"), sum("false"));
    println!("{with:.2} s with tests, {without:.2} s without");
    assert!(with < 1.03 * without, "{with} s with tests, {without} s without");
}

/// A client that lists addresses and says no more after its cookie.
struct Lister {
    addresses: Vec<IpAddr>,
    starts: Option<Instant>,
}

impl Script for Lister {
    fn on_packet(&mut self, _now: Instant, packet: Packet, out: &mut Outbox) {
        for chunk in packet.chunks() {
            let Ok(Chunk::InitAck(init)) = chunk else { continue };
            for parameter in &init.params {
                if let Ok(Parameter::StateCookie(cookie)) = parameter {
                    out.send(init.initiate_tag, |p| p.push_cookie_echo(&cookie));
                }
            }
        }
    }

    fn on_time(&mut self, _now: Instant, out: &mut Outbox) {
        self.starts = None;
        let init = init(77, &self.addresses);
        out.send(0, |p| p.push_init(&init));
    }

    fn wakes_at(&self) -> Option<Instant> {
        self.starts
    }
}

#[test]
fn loopback_and_link_local_addresses_of_a_list_from_elsewhere_are_ignored() {
    let list = [
        "127.0.0.77",
        "169.254.3.4",
        "::1",
        "fe80::1",
        "::ffff:127.0.0.1",
        "::ffff:255.255.255.255",
        "198.51.100.7",
        "::ffff:198.51.100.7",
        "::ffff:198.51.100.8",
    ];
    let addresses = list.map(|ip| ip.parse().expect("an address")).to_vec();
    let mut pair = honest().start();
    pair.a.start_at(secs(3600));
    let script = Lister { addresses, starts: Some(millis(10)) };
    let mut stage = Stage::new(pair, &PathSpec::new(), script);
    stage.run_until(secs(5));
    let mut remotes: Vec<_> =
        stage.pair.z.paths().iter().map(|p| p.remote.ip().to_string()).collect();
    remotes.sort();
    let expected = ["198.51.100.7", "198.51.100.8", "203.0.113.66"];
    assert_eq!(remotes, expected, "RFC 9260 §5.1.2, but for their scope");
}

/// A transfer, and a client that associates, beside a flood of 100,000 packets a second. Returns
/// the bytes delivered, when the transfer began, and what came back.
fn beside(flood: Option<FloodOf>) -> (u64, Option<Instant>, Flood) {
    let span = if flood.is_some() { secs(0)..secs(2) } else { secs(9)..secs(9) };
    let script = Flood::new(flood.unwrap_or(FloodOf::Junk), span, 100_000);
    let mut pair = honest().start();
    pair.a.start_at(millis(500)); // in the midst of it
    pair.a.send_file_at(millis(500), 64 * MIB);
    let mut stage = Stage::new(pair, &PathSpec::new().rate_mbps(10_000.0).delay_ms(5.0), script);
    let mut began = None;
    while stage.step(secs(2)) {
        if began.is_none() && stage.pair.z.received_bytes() > 0 {
            began = Some(stage.pair.net.now());
        }
    }
    (stage.pair.z.received_bytes(), began, stage.script)
}

#[test]
fn a_flood_of_any_kind_costs_an_honest_client_no_goodput_and_hardly_a_start() {
    let (alone, _, _) = beside(None);
    for kind in FloodOf::ALL {
        let (bytes, began, flood) = beside(Some(kind));
        println!("{kind:?}: {bytes} of {alone} bytes, begun {began:?}, {} answers", flood.answers);
        assert!(flood.sent >= 199_000, "{kind:?}: {} packets", flood.sent);
        assert!(began < Some(millis(1500)), "{kind:?}: begun {began:?}, asked at 0.5 s");
        // A start that is later by one repetition of INIT is no loss of goodput.
        let late = began.expect("begun") - millis(560);
        let rest = 1.0 - late.as_secs_f64() / 1.44;
        assert!(bytes as f64 >= 0.95 * rest * alone as f64, "{kind:?}: {bytes} of {alone}");
        assert!(flood.answers <= 2 * 1000, "{kind:?}: {} answers in 2 s", flood.answers);
    }
}
