//! BBR on networks where controllers that halve their window do badly, and on those where they do
//! well.

use manypath_sim::{Pair, PairBuilder, PathSpec, Policer, Rate, secs};

/// The share of the links' sum that 25 MB get over paths of these rates (Mbit/s), delays (ms) and
/// losses, each way.
fn share(control: &str, paths: [(f64, f64, f64); 2], seed: u64) -> f64 {
    let bytes = 25_000_000;
    share_of(bytes, &[("congestion_control", control)], &paths, seed)
}

/// The same of this many bytes, with these settings, over any number of paths.
fn share_of(bytes: u64, settings: &[(&str, &str)], paths: &[(f64, f64, f64)], seed: u64) -> f64 {
    let spec = |&(rate, delay, loss): &(f64, f64, f64)| {
        PathSpec::default().rate_mbps(rate).delay_ms(delay).loss(loss)
    };
    let sum: f64 = paths.iter().map(|(rate, ..)| rate * 1e6).sum();
    let pair = Pair::paths("cmt-pf", paths.iter().map(spec).collect()).profile("fast").seed(seed);
    let set = |pair: PairBuilder, (name, value): &(&str, &str)| pair.set(name, value);
    let mut t = settings.iter().fold(pair, set).lean().connect();
    t.a.send_file(bytes);
    t.run_to_end(secs(120));
    t.result().goodput_bps / sum
}

/// The mean of three seeds.
fn mean_share(control: &str, paths: [(f64, f64, f64); 2]) -> f64 {
    (1..=3).map(|seed| share(control, paths, seed)).sum::<f64>() / 3.0
}

/// The rows of random loss of the table of networks.
#[test]
fn losses_at_random_cost_little() {
    for (loss, least) in [(0.005, 0.92), (0.01, 0.90), (0.02, 0.86)] {
        let paths = [(20.0, 10.0, loss), (20.0, 20.0, loss)];
        let bbr = mean_share("bbr", paths);
        assert!(bbr >= least, "{bbr:.3} of two links with {loss}");
        let reno = mean_share("rfc9260", paths);
        assert!(bbr > 2.0 * reno, "{bbr:.3} and {reno:.3} with {loss}");
    }
}

#[test]
fn the_draft_without_guards_takes_losses_for_congestion() {
    let paths = [(20.0, 10.0, 0.02), (20.0, 20.0, 0.02)];
    let (guarded, draft) = (mean_share("bbr", paths), mean_share("bbr-draft", paths));
    assert!(guarded > draft + 0.2, "{guarded:.3} and {draft:.3}");
}

#[test]
fn links_without_losses_are_used_as_well() {
    for paths in [[(20.0, 10.0, 0.0), (20.0, 10.0, 0.0)], [(20.0, 10.0, 0.0), (20.0, 40.0, 0.0)]] {
        let bbr = mean_share("bbr", paths);
        assert!(bbr >= 0.9, "{bbr:.3} of {paths:?}");
    }
}

/// A slow path of long delay neither holds up the end of a transfer, nor makes it slower than the
/// fast path alone would be.
#[test]
fn a_slow_path_does_not_hold_up_the_end() {
    let adaptive = [
        ("congestion_control", "bbr"),
        ("recovery", "rack"),
        ("scheduler", "soonest"),
        ("redundancy", "late"),
    ];
    let (fast, slow) = ((100.0, 5.0, 0.0), (2.0, 150.0, 0.0));
    let seconds = |settings: &[(&str, &str)], paths: &[(f64, f64, f64)]| {
        let sum: f64 = paths.iter().map(|(rate, ..)| rate * 1e6).sum();
        let of_seed = |seed| 8.0 * 40e6 / (sum * share_of(40_000_000, settings, paths, seed));
        (1..=3).map(of_seed).sum::<f64>() / 3.0
    };
    let alone = seconds(&adaptive, &[fast]);
    let both = seconds(&adaptive, &[fast, slow]);
    let without = seconds(&adaptive[..2], &[fast, slow]);
    assert!(both <= alone * 1.05, "{both:.2} s, and {alone:.2} s with the fast path alone");
    assert!(both + 0.5 < without, "{both:.2} s, and {without:.2} s without both policies");
}

/// "Handling Token Bucket Policers" of the draft's appendix: a link of 20 Mbit/s that lets 5 Mbit/s
/// through, after a first burst.
#[test]
fn handling_token_bucket_policers() {
    let policer = Policer { rate: Rate::mbps(5.0), burst: 256 << 10 };
    for control in ["bbr", "bbr-draft"] {
        let spec = PathSpec::default().rate_mbps(20.0).delay_ms(20.0);
        let spec = spec.each(|link| link.policer = Some(policer));
        let mut t = Pair::paths("cmt-pf", vec![spec])
            .profile("fast")
            .set("congestion_control", control)
            .lean()
            .connect();
        t.a.send_file(1 << 30);
        // The burst lasts for 140 ms at the link's rate, and a probing cycle for three seconds.
        t.run_until(secs(5));
        let counts = |t: &Pair| {
            let sent = t.a.paths()[0].counters.data_chunks_sent;
            (t.z.received_bytes(), sent, t.net.dropped_on_path(0).0.packets)
        };
        let before = counts(&t);
        t.run_until(secs(25));
        let after = counts(&t);
        let rate = (after.0 - before.0) as f64 * 8.0 / 20.0 / 5e6;
        let lost = (after.2 - before.2) as f64 / (after.1 - before.1) as f64;
        assert!(rate > 0.85, "{control}: {rate:.3} of the rate");
        assert!(lost < 0.08, "{control}: {lost:.3} of the packets lost");
    }
}

/// Chunks under way on a path that falls silent go again on the other before T3-rtx expires.
#[test]
fn a_silent_path_does_not_hold_up_delivery_until_its_timeout() {
    let gap = |redundancy| {
        let path = || PathSpec::default().rate_mbps(20.0).delay_ms(10.0);
        let pair = Pair::paths("adaptive", vec![path(), path()]).profile("fast");
        let mut t = pair.set("redundancy", redundancy).lean().connect();
        t.a.send_file(20_000_000);
        t.run_until(secs(2));
        t.net.path(1).cut();
        t.run_to_end(secs(60));
        let result = t.result();
        let copied: u64 = t.a.paths().iter().map(|p| p.counters.redundant_chunks_sent).sum();
        (result.max_delivery_gap_s, copied)
    };
    let (without, none) = gap("off");
    let (with, copied) = gap("late");
    assert!(none == 0 && without > 0.2, "rto_min is 200 ms: {without:.3} s");
    assert!(with < 0.12, "{with:.3} s");
    assert!((1..1000).contains(&copied), "{copied} chunks");
}
