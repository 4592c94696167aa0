//! Paths that fail and return (RFC 9260 §8, RFC 7829, the CMT-PF paper).

use std::time::Duration;

use manypath_proto::PathState::{Active, Inactive, PotentiallyFailed};
use manypath_proto::{AssocClosed, Event, Instant, PathId};
use manypath_sim::chunk_type::{DATA, HEARTBEAT};
use manypath_sim::{Pair, QueueLimit, millis, path_state, secs};

use crate::MIB;

fn seconds(length: Duration) -> f64 {
    length.as_secs_f64()
}

#[test]
fn no_data_goes_to_a_pf_path_while_another_is_active() {
    let mut t = Pair::two_paths("cmt-pf").rate_mbps(10.0).delay_ms(45.0).seed(7).connect();
    t.a.send_file(8 * MIB);
    t.run_until(secs(2));
    t.net.path(1).cut(); // both directions, for good

    let pf = t.run_until_event(path_state(PathId(1), PotentiallyFailed));
    let data = t.run_to_end(secs(60)).sent(DATA).on(PathId(1)).since(pf);
    assert_eq!(
        data.count(),
        0,
        "RFC 7829: one T3-rtx expiry makes the path PF, and data leaves it"
    );
    assert_eq!(t.z.received_bytes(), 8 * MIB);
}

#[test]
fn a_pf_path_is_probed_once_per_rto_with_back_off() {
    let mut t = Pair::two_paths("cmt-pf").connect();
    t.a.send_file(32 * MIB);
    t.run_until(secs(2));
    t.net.path(1).cut();
    let pf = t.run_until_event(path_state(PathId(1), PotentiallyFailed));
    let inactive = t.run_until_event(path_state(PathId(1), Inactive));
    let probes = t.sent(HEARTBEAT).by(t.a.node()).on(PathId(1)).since(pf).until(inactive).times();
    assert_eq!(probes.len(), 5, "PMR 5: {probes:?} from {pf:?} to {inactive:?}");
    let gaps: Vec<f64> = probes.windows(2).map(|pair| seconds(pair[1] - pair[0])).collect();
    for pair in gaps.windows(2) {
        assert!((1.8..2.2).contains(&(pair[1] / pair[0])), "CMT-PF paper III: {gaps:?}");
    }
}

#[test]
fn a_pf_path_that_answers_carries_data_again() {
    let mut t = Pair::two_paths("cmt-pf").connect();
    t.a.send_file(16 * MIB);
    t.run_until(secs(2));
    t.net.path(1).cut_for(Duration::from_secs(2));
    t.run_until_event(path_state(PathId(1), PotentiallyFailed));
    let back = t.run_until_event(path_state(PathId(1), Active));
    assert!(back < secs(9), "{back:?}");
    t.run_to_end(secs(60));
    let again = t.sent(DATA).on(PathId(1)).since(back).count();
    assert!(again > 1000, "{again} packets after the return");
    assert_eq!(t.z.received_bytes(), 16 * MIB);
}

/// The CMT-PF paper's Figure 6: 8 MB, path 2 fails for good at 5 s, 64 KiB of receive buffer.
fn figure_6(preset: &str) -> (Pair, f64) {
    let mut t = Pair::two_paths(preset).profile("2006").connect();
    let begin = t.net.now();
    t.net.path(1).at(begin + Duration::from_secs(5)).cut();
    t.a.send_file(8 * MIB);
    let result = t.run_to_end(secs(300)).result();
    assert!(result.completed, "{result:#?}");
    (t, result.transfer_time_s)
}

#[test]
fn cmt_stalls_at_a_failure_until_it_is_detected() {
    let (t, time) = figure_6("cmt");
    let inactive = t.a.events().iter().find(|(_, event)| path_state(PathId(1), Inactive)(event));
    let at = seconds(inactive.expect("the failure is detected").0 - Instant::ZERO);
    assert!((66.0..72.0).contains(&at), "the paper: detected at about 69 s, here {at}");
    assert!((72.0..85.0).contains(&time), "the paper: done at about 80 s, here {time}");
}

#[test]
fn cmt_pf_hardly_notices_the_failure() {
    let (_, time) = figure_6("cmt-pf");
    assert!(time < 18.0, "the paper: done at about 15 s, here {time}");
}

#[test]
fn a_failed_primary_is_replaced_and_taken_back() {
    let mut t = Pair::two_paths("sctp").set("hb_interval", "5 s").connect();
    // Enough to last: the primary is probed every HB.interval and RTO, which has backed off to 60
    // s.
    t.a.send_file(256 * MIB);
    t.run_until(secs(2));
    t.net.path(0).cut();
    let failed = t.run_until_event(path_state(PathId(0), Inactive));
    assert!(failed < secs(70), "RFC 9260 §8.2: PMR 5 and RTO.Min 1 s, {failed:?}");
    t.run_for(Duration::from_secs(2));
    assert!(t.sent(DATA).on(PathId(1)).since(failed).count() > 200, "RFC 9260 §6.4");
    t.net.path(0).restore();
    let back = t.run_until_event(path_state(PathId(0), Active));
    // From a window of one packet and the lowest ssthresh.
    t.run_for(Duration::from_secs(5));
    assert!(t.sent(DATA).on(PathId(0)).since(back).count() > 200, "and back when it answers");
    t.run_to_end(secs(600));
    assert_eq!(t.z.received_bytes(), 256 * MIB);
}

#[test]
fn sctp_pf_leaves_the_primary_at_its_first_timeout() {
    let mut t = Pair::two_paths("sctp-pf").connect();
    t.a.send_file(8 * MIB);
    t.run_until(secs(2));
    t.net.path(0).cut();
    let pf = t.run_until_event(path_state(PathId(0), PotentiallyFailed));
    assert!(pf < secs(5), "{pf:?}");
    t.run_to_end(secs(60));
    assert_eq!(t.sent(DATA).on(PathId(0)).since(pf).count(), 0, "RFC 7829 §4");
    assert_eq!(t.z.received_bytes(), 8 * MIB);
}

#[test]
fn when_all_paths_fail_and_return_the_transfer_goes_on() {
    for preset in
        ["sctp", "sctp-pf", "all-rtx-alt", "all-rtx-same", "fr-same-rto-alt", "cmt", "cmt-pf"]
    {
        let mut t = Pair::two_paths(preset).connect();
        t.a.send_file(8 * MIB);
        for path in 0..2 {
            t.net.path(path).at(secs(3)).cut_for(Duration::from_secs(20));
        }
        t.run_to_end(secs(300));
        assert_eq!(t.z.received_bytes(), 8 * MIB, "{preset}");
        assert_eq!(t.a.epoch(), 0, "{preset}: one association throughout");
    }
}

#[test]
fn when_all_paths_fail_for_good_both_ends_give_up() {
    let mut t = Pair::two_paths("cmt-pf").connect();
    t.a.send_file(32 * MIB);
    t.z.send_file(32 * MIB);
    t.run_until(secs(3));
    t.net.path(0).cut();
    t.net.path(1).cut();
    t.run_until(secs(2000));
    for host in [&t.a, &t.z] {
        assert_eq!(host.closed(), Some(&AssocClosed::PathsFailed), "RFC 9260 §8.1");
    }
    assert_eq!(t.net.next_event(), None, "no timer is left");
}

#[test]
fn a_path_dead_from_the_beginning_does_not_hold_up_the_other() {
    let mut t = Pair::two_paths("cmt-pf").start();
    t.net.path(1).cut();
    t.a.send_file(4 * MIB);
    let result = t.run_to_end(secs(30)).result();
    assert!(result.completed, "{result:#?}");
    assert_eq!(t.sent(DATA).on(PathId(1)).count(), 0, "RFC 9260 §5.4: not verified");
}

#[test]
fn paths_that_fail_in_turn_keep_the_transfer_alive() {
    let mut t = Pair::two_paths("cmt-pf").connect();
    t.a.send_file(24 * MIB);
    for i in 0..8 {
        let at = secs(2 + 5 * i);
        t.net.path(i as usize % 2).at(at).cut_for(Duration::from_millis(4500));
    }
    t.run_to_end(secs(300));
    assert_eq!(t.z.received_bytes(), 24 * MIB);
}

#[test]
fn a_path_that_is_dead_one_way_only_is_not_used() {
    for is_forward in [true, false] {
        let mut t = Pair::two_paths("cmt-pf").connect();
        t.a.send_file(8 * MIB);
        t.run_until(secs(2));
        let path = t.net.path(1);
        if is_forward {
            path.forward().cut()
        } else {
            path.reverse().cut()
        }
        t.run_to_end(secs(60));
        assert_eq!(t.z.received_bytes(), 8 * MIB, "forward {is_forward}");
    }
}

#[test]
fn a_path_that_loses_nearly_everything_harms_no_more_than_one_that_is_dead() {
    let mut t = Pair::two_paths("cmt-pf").connect();
    t.a.send_file(8 * MIB);
    t.run_until(secs(2));
    t.net.path(1).set_loss(0.8);
    let result = t.run_to_end(secs(120)).result();
    assert!(result.completed, "{result:#?}");
}

#[test]
fn a_rate_that_drops_to_a_tenth_is_followed() {
    let mut t = Pair::two_paths("cmt-pf").connect();
    t.a.send_file(8 * MIB);
    t.run_until(secs(2));
    t.net.path(1).set_rate_mbps(1.0);
    let result = t.run_to_end(secs(60)).result();
    assert!(result.completed);
    // Measured: 0.69. It was above 0.7 while fast retransmit restarted T3-rtx for the association's
    // earliest chunk; RFC 9260 §7.2.4, point 4, asks for the path's.
    assert!(result.goodput_bps > 0.65 * 11e6, "{result:#?}");
}

#[test]
fn a_delay_that_jumps_is_followed() {
    let mut t = Pair::two_paths("cmt-pf").connect();
    t.a.send_file(8 * MIB);
    t.run_until(secs(2));
    t.net.path(1).set_delay(Duration::from_millis(600));
    let result = t.run_to_end(secs(60)).result();
    assert!(result.completed, "{result:#?}");
    let srtt = result.paths[1].stats.srtt.expect("measured");
    assert!(srtt > Duration::from_millis(300), "SRTT {srtt:?} of a path of 1.2 s");
}

#[test]
fn idle_paths_are_probed_every_hb_interval_and_live_on() {
    let mut t = Pair::two_paths("cmt-pf").connect();
    t.run_until(secs(3600));
    assert!(t.a.is_established() && t.z.is_established());
    for path in t.a.paths() {
        assert_eq!(path.state, Active);
        let sent = path.counters.heartbeats_sent;
        assert!((100..=122).contains(&sent), "RFC 9260 §8.3: every 31 s, {sent} in an hour");
    }
}

#[test]
fn an_idle_path_that_fails_is_found_out() {
    let mut t = Pair::two_paths("cmt-pf").connect();
    t.run_until(secs(60));
    t.net.path(1).cut();
    t.run_until_event(path_state(PathId(1), PotentiallyFailed));
    t.run_until_event(path_state(PathId(1), Inactive));
    t.net.path(1).restore();
    t.run_until_event(path_state(PathId(1), Active));
}

#[test]
fn the_fast_profile_pauses_less_than_a_second_at_a_failure() {
    let mut t = Pair::two_paths("cmt-pf").profile("fast").rate_mbps(20.0).delay_ms(20.0).connect();
    t.a.send_file(24 * MIB);
    t.net.path(1).at(secs(2)).cut_for(Duration::from_secs(3));
    let result = t.run_to_end(secs(60)).result();
    assert!(result.completed);
    assert!(result.max_delivery_gap_s < 1.0, "{}", result.max_delivery_gap_s);
    let returned = t.sent(DATA).on(PathId(1)).since(secs(6)).count();
    assert!(returned > 100, "{returned} packets on the path after its return");
}

#[test]
fn a_path_is_removed_and_added_while_data_flows() {
    let mut t = Pair::two_paths("cmt-pf").connect();
    t.a.send_file(16 * MIB);
    t.run_until(secs(2));
    let now = t.net.now();
    t.a.remove_path(now, PathId(1));
    t.run_until(secs(4));
    assert!(t.a.events().iter().any(|(_, e)| *e == Event::PathRemoved { path: PathId(1) }));
    assert_eq!(
        t.sent(DATA).by(t.a.node()).on(PathId(1)).since(now + Duration::from_nanos(1)).count(),
        0
    );
    let now = t.net.now();
    let path = t.a.add_path(now, 1).expect("there is room");
    t.run_until_event(path_state(path, Active));
    t.run_to_end(secs(60));
    assert!(t.sent(DATA).on(PathId(1)).since(now).count() > 500);
    assert_eq!(t.z.received_bytes(), 16 * MIB);
}

#[test]
fn an_outage_shorter_than_the_rto_costs_no_path_state() {
    let mut t = Pair::two_paths("cmt-pf").connect();
    t.a.send_file(8 * MIB);
    t.run_until(secs(2));
    t.net.path(1).cut_for(Duration::from_millis(100));
    t.run_to_end(millis(60_000));
    let changes = &t.result().paths[1].state_changes;
    let ups = changes.iter().filter(|change| change.to == "inactive").count();
    assert_eq!(ups, 0, "{changes:?}");
    assert_eq!(t.z.received_bytes(), 8 * MIB);
}

#[test]
fn a_chunk_that_the_age_heuristic_spares_is_not_forgotten_on_a_path_that_fails() {
    // A tail-loss probe leaves just before T3-rtx expires, and is spared; heartbeats back the RTO
    // off.
    for queue in [50, 100, 150] {
        let mut t = Pair::two_paths("cmt-pf")
            .profile("fast")
            .rate_mbps(20.0)
            .delay_ms(20.0)
            .queue(QueueLimit::Packets(queue))
            .lean()
            .connect();
        t.a.send_file(40_000_000);
        t.run_until(secs(5));
        t.net.path(1).cut();
        t.run_until(secs(10));
        t.net.path(1).restore();
        let result = t.run_to_end(secs(60)).result();
        assert!(result.max_delivery_gap_s < 1.0, "{queue} packets: {result:#?}");
    }
}

#[test]
fn a_primary_that_returns_with_a_steady_rtt_near_rto_min_does_not_flap() {
    // Lone packets on the returned primary are acknowledged an RTT and a SACK delay later; with
    // less than that as RTO, each of them timed out and made the path potentially failed again.
    let mut t = Pair::two_paths("sctp-pf")
        .profile("fast")
        .rate_mbps(30.0)
        .delay_ms(95.0)
        .queue(QueueLimit::Packets(100))
        .lean()
        .connect();
    t.a.send_file(15_000_000);
    t.run_until(millis(2780));
    t.net.path(0).cut();
    t.run_until(millis(4500));
    t.net.path(0).restore();
    let result = t.run_to_end(secs(40)).result();
    assert!(result.completed, "{result:#?}");
}

#[test]
fn a_lone_reply_outlives_the_path_that_it_left_on() {
    // A receiver of a file whose path died answers on it: only its heartbeats have tried that path
    // since, and each that was lost doubled the RTO. The answer is late, but it comes, before the
    // path is given up.
    let mut t = Pair::two_paths("cmt").profile("2006").connect();
    t.a.send_file(8 * MIB);
    t.run_until(secs(2));
    t.net.path(1).cut();
    t.run_to_end(secs(120));
    let begin = t.net.now();
    let rto = t.z.paths()[1].rto;
    assert!(rto >= Duration::from_secs(4), "heartbeats backed it off: {rto:?}");
    // One at a time, so that each path gets the first of one.
    for reply in 1..=2 {
        t.z.send(0, 100);
        let has_it = |t: &Pair| t.a.received_bytes() == 100 * reply && t.z.has_been_acked_all();
        assert!(t.run_until_true(begin + 3 * rto, has_it), "reply {reply} of 2, RTO {rto:?}");
    }
    assert!(t.sent(DATA).by(t.z.node()).on(PathId(1)).since(begin).count() > 0, "it was tried");
    let took = t.net.now() - begin;
    assert!(took > Duration::from_secs(3), "longer than a good-bye may take: {took:?}");
}
