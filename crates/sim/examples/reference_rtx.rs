//! Compares the engine with the means of ns-2 for the paper on retransmission policies.
//!
//! ```text
//! cargo run --release -p manypath-sim --example reference_rtx -- SUMMARY.csv \
//!     [--only PREFIX] [--seeds 30] [--profile ns2] [--set NAME=VALUE]... [--quiet]
//! ```
//!
//! `SUMMARY.csv` has one row for each set of parameters. Prints, for each, the engine's mean, standard
//! deviation and number of runs beside the reference's, their ratio and Welch's p; then how many points are
//! within 5 % or inside the reference's confidence interval.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use manypath_proto::{Event, Instant};
use manypath_sim::{LinkSpec, Pair, PathSpec, QueueLimit, TransferResult};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// One row of the reference: a set of parameters and the means ns-2 found.
#[derive(Clone, Debug)]
struct Row {
    experiment: String,
    params: BTreeMap<String, String>,
    runs: f64,
    values: BTreeMap<String, f64>,
}

/// What one run of ours measured, by the reference's names.
type Measured = BTreeMap<&'static str, f64>;

#[derive(Debug)]
struct Options {
    only: Vec<String>,
    seeds: u64,
    profile: String,
    set: Vec<(String, String)>,
    quiet: bool,
    jobs: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().ok_or("name the reference's summary.csv")?;
    let mut o = Options {
        only: Vec::new(),
        seeds: 30,
        profile: "ns2".to_owned(),
        set: Vec::new(),
        quiet: false,
        jobs: std::thread::available_parallelism().map_or(1, usize::from),
    };
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--only" => o.only.push(value()?),
            "--seeds" => o.seeds = value()?.parse()?,
            "--jobs" => o.jobs = value()?.parse()?,
            "--profile" => o.profile = value()?,
            "--set" => {
                let text = value()?;
                let (name, to) = text.split_once('=').ok_or("--set NAME=VALUE")?;
                o.set.push((name.to_owned(), to.to_owned()));
            }
            "--quiet" => o.quiet = true,
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    let mut rows = read(&std::fs::read_to_string(file)?)?;
    rows.retain(|row| {
        let is_wanted = |p: &String| row.experiment.starts_with(p.as_str());
        is_known(row) && (o.only.is_empty() || o.only.iter().any(is_wanted))
    });
    let results = run_all(&rows, &o);
    report(&rows, &results, &o);
    Ok(())
}

fn is_known(row: &Row) -> bool {
    row.experiment.starts_with("b_")
}

fn read(text: &str) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().ok_or("the summary is empty")?.split(',').collect();
    let parse = |line: &str| -> Option<Row> {
        let fields: Vec<&str> = line.split(',').collect();
        let pair = |text: &str| text.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()));
        let numbers = names.iter().zip(&fields).skip(2);
        Some(Row {
            experiment: (*fields.first()?).to_owned(),
            params: fields.get(1)?.split(' ').filter_map(pair).collect(),
            runs: fields.get(2)?.parse().ok()?,
            values: numbers.filter_map(|(n, v)| Some(((*n).to_owned(), v.parse().ok()?))).collect(),
        })
    };
    Ok(lines.filter_map(parse).collect())
}

/// Runs every row with every seed, spread over threads.
fn run_all(rows: &[Row], o: &Options) -> Vec<Vec<Measured>> {
    let jobs: Vec<(usize, u64)> =
        (0..rows.len()).flat_map(|row| (1..=o.seeds).map(move |s| (row, s))).collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        while let Some(&(row, seed)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((row, seed, run(&rows[row], seed, o)));
        }
        done
    };
    let mut done = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..o.jobs).map(|_| scope.spawn(worker)).collect();
        threads.into_iter().flat_map(|t| t.join().expect("no worker panics")).collect::<Vec<_>>()
    });
    done.sort_by_key(|&(row, seed, _)| (row, seed));
    let mut results = vec![Vec::new(); rows.len()];
    for (row, _, measured) in done {
        results[row].push(measured);
    }
    results
}

fn number(row: &Row, name: &str) -> f64 {
    row.params.get(name).and_then(|v| v.parse().ok()).unwrap_or(0.0)
}

/// A path of the papers: edges of 100 Mbit/s and 10 ms, loss at the head of the core link.
fn path(delay_ms: f64, loss_percent: f64) -> PathSpec {
    let edge = LinkSpec::mbps_ms(100.0, 10.0).queue(QueueLimit::Packets(200));
    let core = LinkSpec::mbps_ms(10.0, delay_ms).queue(QueueLimit::Packets(50));
    PathSpec::hops([edge.clone(), core.loss(loss_percent / 100.0), edge])
}

const FILE: u64 = 4 << 20;

/// Starts to associate at time 0.
fn start(row: &Row, seed: u64, o: &Options) -> Pair {
    let is = |ext: &str| row.params["ext"].split('+').any(|one| one == ext).to_string();
    let preset = match row.params["policy"].as_str() {
        "AllRtxAlt" => "all-rtx-alt",
        "AllRtxSame" => "all-rtx-same",
        _ => "fr-same-rto-alt",
    };
    // The agents of one path use RFC 4960's floor; `_2mtu` is the copy of the binary with the papers'.
    let floor = if row.experiment.ends_with("_2mtu") { "2 pmdcs" } else { "4 pmdcs" };
    let paths =
        vec![path(25.0, number(row, "loss1")), path(number(row, "d2"), number(row, "loss2"))];
    let mut builder = Pair::paths(preset, paths)
        .profile(&o.profile)
        .set("checksum", "false")
        .set("ssthresh_floor", floor)
        // What these agents do differently from those of CMT, which the profile is made for.
        .set("congestion_control", "rfc9260")
        .set("fast_rtx_after_timeout", "true")
        .set("rtx_past_cwnd", "any")
        .set("rtx_waits_for_sack", "true")
        .set("new_data_waits_for_rtx", "true")
        .set("har", &is("HAR"))
        .set("timestamp", &is("TS"))
        .set("mfr", &is("MFR"))
        .seed(seed)
        .packet_log(false)
        .check_invariants(false);
    if row.params["ext"].contains("HAR") {
        builder = builder.set("timeout_ssthresh_floor", "2 pmdcs");
    }
    if number(row, "fail") > 0.0 {
        builder = builder.set("association_max_retrans", "20");
    }
    for (name, value) in &o.set {
        builder = builder.set(name, value);
    }
    builder.start()
}

const LIMIT: Instant = Instant::from_millis(3_000_000);

/// One transfer; the primary fails so many seconds after the first DATA, if at all.
fn run(row: &Row, seed: u64, o: &Options) -> Measured {
    let mut t = start(row, seed, o);
    t.a.send_file(FILE);
    let fail = number(row, "fail");
    if fail > 0.0 {
        let first = |t: &Pair| t.a.stats().and_then(|s| s.first_data_sent);
        t.run_until_true(LIMIT, |t| first(t).is_some());
        let begin = first(&t).unwrap_or(Instant::ZERO);
        t.net.path(0).hop(1).at(begin + Duration::from_secs_f64(fail)).cut();
    }
    finish(&mut t)
}

/// Runs until everything is acknowledged.
fn finish(t: &mut Pair) -> Measured {
    let mut seen = 0;
    let mut acked = Instant::ZERO;
    t.run_until_true(LIMIT, |t| {
        let new = t.a.events().get(seen..).unwrap_or_default();
        let all = new.iter().rfind(|(_, e)| matches!(e, Event::SendBufferEmpty));
        acked = all.map_or(acked, |(at, _)| *at);
        seen = t.a.events().len();
        acked > Instant::ZERO && t.has_delivered_all()
    });
    let mut m = counts(&t.result());
    m.insert("t_ack", acked.as_secs_f64());
    let begin = t.a.stats().and_then(|s| s.first_data_sent).unwrap_or(Instant::ZERO);
    m.insert("t_ack_minus_t_data", (acked - begin).as_secs_f64());
    m
}

fn counts(r: &TransferResult) -> Measured {
    let sum = |f: fn(&manypath_sim::PathResult) -> u64| r.paths.iter().map(f).sum::<u64>() as f64;
    let spurious: u64 = r.paths.iter().filter_map(|p| p.spurious_retransmissions).sum();
    let mut m = Measured::from([
        ("timeouts", sum(|p| p.t3_expirations)),
        ("fr", sum(|p| p.fast_retransmits)),
        ("dup", spurious as f64),
    ]);
    for (i, p) in r.paths.iter().enumerate().take(2) {
        m.insert(["tx1", "tx2"][i], p.data_chunks_sent as f64);
        m.insert(["rtx1", "rtx2"][i], p.retransmissions as f64);
    }
    m
}

// ---- Statistics ----

fn mean_std(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, if n > 1.0 { (squares / (n - 1.0)).sqrt() } else { 0.0 })
}

/// Welch's p that two means are of one distribution.
fn welch(a: (f64, f64, f64), b: (f64, f64, f64)) -> f64 {
    let (va, vb) = (a.1 * a.1 / a.2, b.1 * b.1 / b.2);
    if va + vb == 0.0 {
        return f64::from(u8::from((a.0 - b.0).abs() < 1e-3));
    }
    let t = (a.0 - b.0) / (va + vb).sqrt();
    let freedom = (va + vb).powi(2) / (va * va / (a.2 - 1.0) + vb * vb / (b.2 - 1.0));
    let student = StudentsT::new(0.0, 1.0, freedom).expect("valid parameters");
    2.0 * (1.0 - student.cdf(t.abs()))
}

/// Half of the 95 % confidence interval of a mean.
fn half_interval(std: f64, n: f64) -> f64 {
    if n < 2.0 || std == 0.0 {
        return 0.0;
    }
    let student = StudentsT::new(0.0, 1.0, n - 1.0).expect("valid parameters");
    student.inverse_cdf(0.975) * std / n.sqrt()
}

const TIMES: [&str; 3] = ["t_ack", "t_ack_minus_t_data", "t_merged"];
const OTHERS: [&str; 9] =
    ["t_detect", "goodput_kBps", "timeouts", "fr", "dup", "rtx1", "rtx2", "tx1", "tx2"];

fn report(rows: &[Row], results: &[Vec<Measured>], o: &Options) {
    // Per experiment and field: points, those that agree, and the sum of the ratios.
    let mut tally: BTreeMap<(String, &str), (u32, u32, f64)> = BTreeMap::new();
    for (row, runs) in rows.iter().zip(results) {
        if !o.quiet {
            let params: Vec<_> = row.params.iter().map(|(k, v)| format!("{k}={v}")).collect();
            println!("{} {}", row.experiment, params.join(" "));
        }
        for name in TIMES.iter().chain(&OTHERS) {
            let values: Vec<f64> = runs.iter().filter_map(|m| m.get(name).copied()).collect();
            let Some(&theirs) = row.values.get(&format!("{name}_mean")) else { continue };
            if values.is_empty() || theirs < 0.0 {
                continue;
            }
            let (mean, std) = mean_std(&values);
            let n = values.len() as f64;
            let their_std = row.values.get(&format!("{name}_std")).copied();
            let ratio = mean / theirs;
            let mut line = format!("    {name:20} {mean:9.3} ±{std:7.3} (n {n:2})   {theirs:9.3}");
            let is_near = (ratio - 1.0).abs() <= 0.05;
            let is_inside =
                their_std.is_some_and(|std| (mean - theirs).abs() <= half_interval(std, row.runs));
            if let Some(their_std) = their_std {
                let p = welch((mean, std, n), (theirs, their_std, row.runs));
                line +=
                    &format!(" ±{their_std:7.3} (n {:2})  ratio {ratio:6.3}  p {p:5.3}", row.runs);
            } else {
                line += &format!("                  ratio {ratio:6.3}");
            }
            let agrees = is_near || is_inside;
            if !o.quiet {
                println!("{line}{}", if agrees { "" } else { "  *" });
            }
            let entry = tally.entry((row.experiment.clone(), name)).or_default();
            entry.0 += 1;
            entry.1 += u32::from(agrees);
            entry.2 += if theirs > 0.0 { ratio } else { 1.0 };
        }
    }
    let (mut points, mut agreeing) = (0, 0);
    for ((experiment, name), (n, agree, ratios)) in &tally {
        println!(
            "{experiment:18} {name:20} {agree:3} of {n:3} agree, mean ratio {:.3}",
            ratios / f64::from(*n)
        );
        if TIMES[..1].contains(name) || *name == "t_merged" {
            points += n;
            agreeing += agree;
        }
    }
    println!(
        "transfer time: {agreeing} of {points} points within 5 % or inside the 95 % interval ({:.0} %)",
        100.0 * f64::from(agreeing) / f64::from(points.max(1))
    );
}
