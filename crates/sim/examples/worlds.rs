//! How time and memory grow with the number of associations in one world.
//!
//! ```text
//! cargo run --profile dist -p manypath-sim --example worlds
//! cargo run --profile dist -p manypath-sim --example worlds -- --associations 10,1000 --json
//! ```
//!
//! Each association sends without end over two paths of two shared links each; there is a link for
//! every fifty associations, with room for 1 Mbit/s of every path over it. So the share, the
//! windows and the losses of an association are the same in each world. Memory is what the program
//! holds, counted by its allocator; CPU time is that of the thread. `bench/worlds` has results.
//!
//! - `--associations N,N,...`: the worlds (10,100,1000,10000).
//! - `--preset NAME` (cmt-pf), `--set NAME=VALUE`: as of scenario files.
//! - `--events N`: events of each world that are timed, after 2 simulated seconds (2000000).
//! - `--require-ratio R`, `--require-bytes B`: fail if an event of the last world takes more than R
//!   times as long as one of the first, or an association with empty buffers takes more bytes.

use std::alloc::System;
use std::error::Error;
use std::hint::black_box;
use std::process::ExitCode;

use cap::Cap;
use manypath_sim::testing::many::{Many, warm_up};
use manypath_sim::{HostId, World, secs};

#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

struct Options {
    associations: Vec<usize>,
    preset: String,
    overrides: Vec<(String, String)>,
    events: u64,
    json: bool,
    ratio_max: Option<f64>,
    bytes_max: Option<usize>,
}

/// One world: bytes for each association, and time for each event.
#[derive(Debug, Clone, Copy)]
struct Row {
    associations: usize,
    links: usize,
    /// Once 20 kB are sent and acknowledged.
    idle: usize,
    /// While it sends, without its buffers.
    busy: usize,
    /// Its packets in the network and its data in receive buffers.
    buffers: usize,
    events: u64,
    ns_per_event: f64,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let options = options()?;
    warm_up();
    let mut rows: Vec<Row> = Vec::new();
    for &associations in &options.associations {
        let row = measure(associations, &options)?;
        let first = *rows.first().unwrap_or(&row);
        print(&row, &first, rows.is_empty(), options.json);
        rows.push(row);
    }
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
        return Ok(ExitCode::SUCCESS);
    };
    let ratio = last.ns_per_event / first.ns_per_event;
    let most = rows.iter().map(|row| row.idle).max().unwrap_or(0);
    let is_slow = options.ratio_max.is_some_and(|max| ratio > max);
    let is_large = options.bytes_max.is_some_and(|max| most > max);
    if is_slow || is_large {
        eprintln!("too much: {ratio:.2} times the time of an event, {most} bytes an association");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(associations: usize, options: &Options) -> Result<Row, Box<dyn Error>> {
    let many = |bytes| Many {
        associations,
        preset: options.preset.clone(),
        overrides: options.overrides.clone(),
        bytes,
        seed: 1,
    };
    let before = HEAP.allocated();
    let (mut world, flows) = many(Some(20_000)).build()?;
    world.run_until(secs(20));
    let idle = (HEAP.allocated() - before) / associations;
    let is_done = |id| world.host(id).has_been_acked_all();
    assert!(flows.iter().all(|flow| is_done(flow.from)), "20 kB are not through in 20 s");
    drop((world, flows));

    let before = HEAP.allocated();
    let (mut world, flows) = many(None).build()?;
    world.run_until(secs(2));
    let receivers: Vec<HostId> = flows.iter().map(|flow| flow.to).collect();
    let buffers = (world.net.bytes_under_way() + buffered(&world, &receivers)) / associations;
    let total = (HEAP.allocated() - before) / associations;
    let (begin, cpu) = (world.net.events(), cpu_seconds()?);
    // In batches, so that looking at the count takes no time.
    while world.net.events() - begin < options.events {
        let now = world.net.now();
        for _ in 0..1000 {
            black_box(world.step(now + std::time::Duration::from_secs(60)));
        }
    }
    let cpu = cpu_seconds()? - cpu;
    let events = world.net.events() - begin;
    Ok(Row {
        associations,
        links: many(None).links(),
        idle,
        busy: total.saturating_sub(buffers),
        buffers,
        events,
        ns_per_event: cpu / events as f64 * 1e9,
    })
}

/// User bytes in the receive buffers of these hosts.
fn buffered(world: &World, hosts: &[HostId]) -> usize {
    let stats = hosts.iter().filter_map(|id| world.host(*id).stats());
    stats.map(|stats| stats.receive_buffered).sum()
}

fn print(row: &Row, first: &Row, is_first: bool, json: bool) {
    let ratio = row.ns_per_event / first.ns_per_event;
    let Row { associations, links, idle, busy, buffers, events, ns_per_event } = row;
    if json {
        let line = serde_json::json!({
            "associations": associations, "links": links, "idle_bytes": idle, "busy_bytes": busy,
            "buffer_bytes": buffers, "events": events, "ns_per_event": ns_per_event, "ratio": ratio,
        });
        println!("{line}");
        return;
    }
    if is_first {
        println!(
            "associations  links  idle, bytes  busy  buffers  ns an event  million a second  ratio"
        );
    }
    let millions = 1e3 / ns_per_event;
    println!(
        "{associations:12} {links:6} {idle:12} {busy:5} {buffers:8} {ns_per_event:12.0} {millions:17.2} {ratio:6.2}"
    );
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut options = Options {
        associations: vec![10, 100, 1000, 10_000],
        preset: "cmt-pf".to_owned(),
        overrides: Vec::new(),
        events: 2_000_000,
        json: false,
        ratio_max: None,
        bytes_max: None,
    };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        if name == "--json" {
            options.json = true;
            continue;
        }
        let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--associations" => {
                let numbers = value.split(',').map(str::parse::<usize>);
                options.associations = numbers.collect::<Result<_, _>>()?;
            }
            "--preset" => options.preset = value,
            "--set" => {
                let (name, value) = value.split_once('=').ok_or("--set needs NAME=VALUE")?;
                options.overrides.push((name.to_owned(), value.to_owned()));
            }
            "--events" => options.events = value.parse()?,
            "--require-ratio" => options.ratio_max = Some(value.parse()?),
            "--require-bytes" => options.bytes_max = Some(value.parse()?),
            _ => return Err(format!("no option {name}; see the top of the source").into()),
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
