//! The identity of the engine: results of different ones are not put together.

use std::sync::LazyLock;

use manypath_sim::{Pair, PathSpec, secs};

/// The program's version, and the hashes of all packets of two small transfers. Programs with equal
/// fingerprints give equal results, unless they differ in something that these transfers do not
/// use.
pub fn fingerprint() -> &'static str {
    static FINGERPRINT: LazyLock<String> = LazyLock::new(|| {
        let traces = ["cmt-pf", "adaptive"].map(trace);
        let traces: Vec<_> = traces.iter().map(|hash| format!("{hash:016x}")).collect();
        format!("{}-{}", env!("CARGO_PKG_VERSION"), traces.join("-"))
    });
    &FINGERPRINT
}

/// The trace hash of 1 MB over two unequal paths with losses.
fn trace(preset: &str) -> u64 {
    let path = |rate, delay| PathSpec::default().rate_mbps(rate).delay_ms(delay).loss(0.01);
    let mut t = Pair::paths(preset, vec![path(20.0, 10.0), path(5.0, 40.0)]).start();
    t.a.send_file(1_000_000);
    t.run_until(secs(5));
    t.net.trace_hash()
}
