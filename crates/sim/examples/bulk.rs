//! How fast the simulator is: a large file over two loss-free paths of three hops.
//!
//! ```text
//! cargo run --release -p manypath-sim --example bulk -- 256
//! ```
//!
//! Prints what was simulated and the time it took; run it under `perf stat` for CPU time.

use std::error::Error;

use manypath_sim::{LinkSpec, Pair, PathSpec, secs};

fn main() -> Result<(), Box<dyn Error>> {
    let megabytes: u64 = std::env::args().nth(1).map_or(Ok(256), |arg| arg.parse())?;
    let path = || {
        PathSpec::hops([
            LinkSpec::mbps_ms(100.0, 10.0),
            LinkSpec::mbps_ms(10.0, 25.0),
            LinkSpec::mbps_ms(100.0, 10.0),
        ])
    };
    let mut t = Pair::paths("cmt", vec![path(), path()])
        .profile("2006")
        .set("checksum", "false")
        .lean()
        .connect();
    t.a.send_file(megabytes * 1_000_000);
    let cpu = cpu_seconds()?;
    let result = t.run_to_end(secs(100_000)).result();
    let cpu = cpu_seconds()? - cpu;
    let (packets, events) = (t.net.packets_sent(), t.net.events());
    println!("{} bytes in {:.1} simulated seconds", result.bytes, result.transfer_time_s);
    println!("{packets} packets, {events} events, trace hash {}", result.trace_hash);
    println!("{cpu:.3} s of CPU time, {:.2} million events a second", events as f64 / cpu / 1e6);
    Ok(())
}

/// CPU time of this thread, from the kernel's counter of nanoseconds on Linux.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanos: f64 = text.split_whitespace().next().ok_or("schedstat is empty")?.parse()?;
    Ok(nanos / 1e9)
}
