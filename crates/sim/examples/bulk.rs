//! How fast the simulator is: a large file over two paths of three hops.
//!
//! ```text
//! cargo run --release -p manypath-sim --example bulk -- 256
//! cargo run --release -p manypath-sim --example bulk -- 8 --loss 0.01,0.07 --seed 3 --json
//! ```
//!
//! Megabytes of 10^6 bytes; the probability of loss on either path; the seed of the run. Prints
//! what was simulated and the time it took, or with `--json` the result object and the counts; run
//! it under `perf stat` for CPU time. `bench/ns2` compares it with ns-2.

use std::error::Error;

use manypath_sim::{LinkSpec, Pair, PathSpec, secs};

/// The run to simulate.
struct Options {
    megabytes: u64,
    loss: [f64; 2],
    seed: u64,
    json: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    let paths = options.loss.map(|loss| {
        PathSpec::hops([
            LinkSpec::mbps_ms(100.0, 10.0),
            LinkSpec::mbps_ms(10.0, 25.0).loss(loss),
            LinkSpec::mbps_ms(100.0, 10.0),
        ])
    });
    // With losses everything in the result is counted; without, no retransmission can be spurious.
    let mut pair = Pair::paths("cmt", paths.to_vec())
        .profile("2006")
        .seed(options.seed)
        .fix_links()
        .max_segments(8)
        .lean();
    if options.loss != [0.0; 2] {
        pair = pair.count_spurious(true);
    }
    let mut t = pair.connect();
    t.a.send_file(options.megabytes * 1_000_000);
    let cpu = cpu_seconds()?;
    let result = t.run_to_end(secs(1_000_000)).result();
    let cpu = cpu_seconds()? - cpu;
    let (packets, events) = (t.net.packets_sent(), t.net.events());
    if options.json {
        let all = serde_json::json!({
            "result": result, "packets": packets, "events": events, "run_cpu_s": cpu,
            "end_s": t.net.now().as_secs_f64(),
        });
        println!("{all}");
        return Ok(());
    }
    println!("{} bytes in {:.1} simulated seconds", result.bytes, result.transfer_time_s);
    println!("{packets} packets, {events} events, trace hash {}", result.trace_hash);
    println!("{cpu:.3} s of CPU time, {:.2} million events a second", events as f64 / cpu / 1e6);
    Ok(())
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut options = Options { megabytes: 256, loss: [0.0; 2], seed: 1, json: false };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--loss" => {
                let value = value()?;
                let (first, second) =
                    value.split_once(',').ok_or("--loss needs two probabilities: 0.01,0.07")?;
                options.loss = [first.parse()?, second.parse()?];
            }
            "--seed" => options.seed = value()?.parse()?,
            "--json" => options.json = true,
            megabytes => options.megabytes = megabytes.parse()?,
        }
    }
    Ok(options)
}

/// CPU time of this thread, from the kernel's counter of nanoseconds on Linux.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanos: f64 = text.split_whitespace().next().ok_or("schedstat is empty")?.parse()?;
    Ok(nanos / 1e9)
}
