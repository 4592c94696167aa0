//! A transfer through the failure of a path (CMT-PF paper, Figure 6), as the README shows it.
//!
//! ```text
//! cargo run --release -p manypath-sim --example failure > failure.csv
//! python3 docs/figures/failure.py failure.csv docs/figures/failure.svg
//! ```
//!
//! 8 MiB over two paths of 10 Mbit/s and 45 ms, with a receive buffer of 64 KiB and the papers'
//! constants; path 2 fails for good after 5 s. Prints what was delivered over time.

use std::time::Duration;

use manypath_proto::Instant;
use manypath_sim::{Pair, secs};

fn main() {
    println!("system,time_s,delivered_bytes");
    for (name, preset) in [("SCTP", "sctp"), ("CMT", "cmt"), ("CMT-PF", "cmt-pf")] {
        let mut t = Pair::two_paths(preset)
            .profile("2006")
            .set("receive_buffer", "64 KiB")
            .rate_mbps(10.0)
            .delay_ms(45.0)
            .seed(1)
            .connect();
        let size = 8 << 20;
        t.a.send_file(size);
        let mut now = Instant::ZERO;
        let mut is_cut = false;
        while t.z.received_bytes() < size && now < secs(120) {
            now += Duration::from_millis(50);
            if !is_cut && now >= secs(5) {
                t.net.path(1).cut();
                is_cut = true;
            }
            t.run_until(now);
            println!("{name},{:.2},{}", now.as_secs_f64(), t.z.received_bytes());
        }
    }
}
