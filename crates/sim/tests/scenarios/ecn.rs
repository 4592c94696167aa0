//! Routers that mark packets instead of dropping them (RFC 3168; RFC 4960, appendix A).

use manypath_sim::{LinkSpec, Pair, PathSpec, QueueLimit, Red, secs};

/// A link with early detection, which marks packets where it may.
fn marking(mbps: f64, delay: f64) -> LinkSpec {
    let red = Red { marks: true, min: 10.0, max: 80.0, weight: 0.02, ..Red::default() };
    LinkSpec::mbps_ms(mbps, delay).red(red).queue(QueueLimit::Packets(500))
}

/// Sends 30 MB over a path of 20 Mbit/s and 20 ms, and one of 10 Mbit/s and 40 ms, whose routers
/// do early detection. They mark packets if that is allowed; else they drop them.
fn over_red(control: &str, ecn: &str) -> Pair {
    let path = |mbps, delay| PathSpec::hops([marking(mbps, delay)]);
    let mut t = Pair::paths("cmt-pf", vec![path(20.0, 20.0), path(10.0, 40.0)])
        .profile("fast")
        .set("congestion_control", control)
        .set("ecn", ecn)
        .connect();
    t.z.expect_gaps();
    t.a.send_file(30_000_000);
    t.run_to_end(secs(60));
    assert!(t.has_delivered_all(), "{control}, ecn {ecn}");
    t
}

fn lost(t: &Pair) -> u64 {
    t.a.paths().iter().map(|path| path.counters.chunks_lost).sum()
}

fn cuts(t: &Pair) -> Vec<u64> {
    t.a.paths().iter().map(|path| path.counters.ecn_cuts).collect()
}

#[test]
fn marks_take_the_place_of_losses_with_every_controller() {
    for control in ["rfc9260", "cubic", "lia", "olia", "balia", "bbr"] {
        let (without, with) = (over_red(control, "false"), over_red(control, "true"));
        let (before, after) = (lost(&without), lost(&with));
        let rates = [&without, &with].map(|t| t.result().goodput_bps);
        println!("{control}: lost {before}, then {after}; {:?}; Mbit/s {rates:.0?}", cuts(&with));
        assert!(before > 50, "{control}: routers must have dropped some: {before}");
        assert!(after * 5 < before, "{control}: {before} lost, and {after} with marks");
        assert!(cuts(&with).iter().all(|cuts| *cuts > 0), "{control}: both paths were marked");

        assert!(cuts(&without).iter().all(|cuts| *cuts == 0), "{control}");
        assert!(rates[1] > 0.95 * rates[0], "{control}: {rates:?}");
    }
}

/// A flow that ignored marks would starve the others.
#[test]
fn a_flow_with_marks_and_one_with_losses_share_a_link() {
    let windows = |ecn| {
        let mut t = Pair::paths("cmt-pf", vec![PathSpec::hops([marking(20.0, 20.0)])])
            .profile("fast")
            .set("congestion_control", "cubic")
            .set("ecn", ecn)
            .connect();
        t.a.send_file(100_000_000);
        let mut sum = 0;
        for second in 5..25 {
            t.run_until(secs(second));
            sum += t.a.paths()[0].cwnd;
        }
        sum / 20
    };
    let (marked, dropped) = (windows("true"), windows("false"));
    println!("mean windows: {marked} with marks, {dropped} with losses");
    assert!(marked < 2 * dropped, "{marked} and {dropped}");
}
