//! Links that hold all packets for a while and lose none, as radio links do.

use std::time::Duration;

use manypath_sim::{Pair, PairBuilder, PathSpec, Pauses, QueueLimit, secs};

const ADAPTIVE: [(&str, &str); 4] = [
    ("congestion_control", "bbr"),
    ("recovery", "rack"),
    ("scheduler", "soonest"),
    ("redundancy", "late"),
];

/// The share of what two links of 20 Mbit/s offer outside of their pauses that 40 MB get. Each
/// pauses for 200 ms every 2 s if it has a time of its first pause, in milliseconds.
fn share(settings: &[(&str, &str)], first: [Option<u64>; 2], queue: QueueLimit) -> f64 {
    let ms = Duration::from_millis;
    let spec = |first: Option<u64>| {
        let pauses =
            first.map(|first| Pauses { first: ms(first), length: ms(200), every: ms(2000) });
        let spec = PathSpec::default().rate_mbps(20.0).delay_ms(10.0).queue(queue);
        spec.each(|link| link.pauses = pauses)
    };
    let offered: f64 = first.iter().map(|first| if first.is_some() { 18e6 } else { 20e6 }).sum();
    let goodput = |seed| {
        let set = |pair: PairBuilder, (name, value): &(&str, &str)| pair.set(name, value);
        let pair = Pair::paths("cmt-pf", first.map(spec).to_vec()).profile("fast").seed(seed);
        let mut t = settings.iter().fold(pair, set).lean().connect();
        t.a.send_file(40_000_000);
        t.run_to_end(secs(120));
        t.result().goodput_bps
    };
    (1..=3).map(goodput).sum::<f64>() / 3.0 / offered
}

#[test]
fn pauses_cost_their_time_and_little_more() {
    for queue in [QueueLimit::Packets(50), QueueLimit::Bytes(1 << 20)] {
        for first in [[None, Some(1000)], [Some(2000), Some(1000)], [Some(2000), Some(2000)]] {
            let share = share(&ADAPTIVE, first, queue);
            assert!(share >= 0.9, "{share:.3} with pauses from {first:?} ms on and {queue:?}");
        }
    }
}
