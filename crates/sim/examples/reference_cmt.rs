//! Compares the engine with the means of ns-2 for the papers on CMT and CMT-PF.
//!
//! ```text
//! cargo run --release -p manypath-sim --example reference_cmt -- SUMMARY.csv \
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

use manypath_proto::{Event, Instant, PathId, PathState};
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
    let is_transfer = ["a_fig11", "a_fig12", "a_fig13", "c_fig6", "c_fig7", "c_fig8", "c_fig9"];
    is_transfer.iter().any(|p| row.experiment.starts_with(p))
        || (row.experiment == "a_appstripe" && row.params["agent"] == "SCTP")
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
    let jobs: Vec<(usize, u64)> = (0..rows.len())
        .flat_map(|row| (1..=seeds_of(&rows[row], o)).map(move |s| (row, s)))
        .collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        while let Some(&(row, seed)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            // Other losses for each row: then the mean over rows has less noise.
            let own = (row as u64 + 1) * 10_000 + seed;
            done.push((row, seed, run(&rows[row], own, o)));
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

/// Without loss nothing is random but ties.
fn seeds_of(row: &Row, o: &Options) -> u64 {
    let is_fixed = row.params.get("loss").is_some_and(|loss| loss == "0");
    if is_fixed { o.seeds.min(5) } else { o.seeds }
}

fn run(row: &Row, seed: u64, o: &Options) -> Measured {
    match row.experiment.as_str() {
        "a_appstripe" => striped(row, seed, o),
        name if name.starts_with("a_") => transfer(row, seed, o),
        _ => failure(row, seed, o),
    }
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

const FILE: u64 = 8 << 20;

/// Starts to associate and to send at time 0.
fn start(
    preset: &str,
    paths: Vec<PathSpec>,
    set: &[(&str, String)],
    seed: u64,
    o: &Options,
) -> Pair {
    let mut builder = Pair::paths(preset, paths)
        .profile(&o.profile)
        .set("checksum", "false")
        .set("initial_ssthresh", "65536")
        .seed(seed)
        .packet_log(false)
        .check_invariants(false);
    for (name, value) in set {
        builder = builder.set(name, value);
    }
    for (name, value) in &o.set {
        builder = builder.set(name, value);
    }
    builder.start()
}

const LIMIT: Instant = Instant::from_millis(3_000_000);

/// Figures 11 to 13 of the CMT paper.
fn transfer(row: &Row, seed: u64, o: &Options) -> Measured {
    let losses = [number(row, "loss1"), number(row, "loss2")];
    let paths = vec![path(25.0, losses[0]), path(number(row, "d2"), losses[1])];
    let set = [
        ("rtx_policy", row.params["policy"].to_lowercase()),
        ("receive_buffer", row.params["rbuf"].clone()),
    ];
    let mut t = start("cmt", paths, &set, seed, o);
    t.a.send_file(FILE);
    t.run_until_true(LIMIT, |t| t.a.is_established());
    for (n, loss) in losses.iter().enumerate() {
        t.a.command(|a| a.set_loss_oracle(PathId(n as u8), loss / 100.0));
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

/// AppStripe: each chunk goes to the association that delivers it first, known in hindsight.
fn striped(row: &Row, seed: u64, o: &Options) -> Measured {
    let paths = [path(25.0, number(row, "loss1")), path(number(row, "d2"), number(row, "loss2"))];
    let mut arrivals = Vec::new();
    for (n, path) in paths.into_iter().enumerate() {
        let set = [("receive_buffer", FILE.to_string()), ("ssthresh_floor", "4 pmdcs".to_owned())];
        let mut t = start("sctp", vec![path], &set, seed * 2 + n as u64, o);
        t.a.send_file(FILE);
        let mut last = 0;
        t.run_until_true(LIMIT, |t| {
            let now = t.z.received_bytes();
            if now > last {
                arrivals.push((t.net.now(), now - last));
                last = now;
            }
            t.has_delivered_all()
        });
    }
    arrivals.sort_unstable();
    let mut total = 0;
    let done = arrivals.iter().find(|(_, bytes)| {
        total += bytes;
        total >= FILE
    });
    Measured::from([("t_merged", done.map_or(0.0, |(at, _)| at.as_secs_f64()))])
}

/// Figures 6 to 9 of the CMT-PF paper: path 2 fails at 5 s.
fn failure(row: &Row, seed: u64, o: &Options) -> Measured {
    let loss = number(row, "loss");
    let preset = if row.params["variant"] == "CMT" { "cmt" } else { "cmt-pf" };
    let set = [
        ("rtx_policy", "ssthresh".to_owned()),
        ("receive_buffer", row.params["rbuf"].clone()),
        ("path_max_retrans", row.params["pmr"].clone()),
        ("send_buffer", "128 MiB".to_owned()),
    ];
    let mut t = start(preset, vec![path(25.0, loss), path(25.0, loss)], &set, seed, o);
    let size = number(row, "size") as u64;
    t.a.send_file(size);
    let fails = Instant::from_millis(5000);
    t.net.path(1).hop(1).at(fails).cut();
    let restore = number(row, "restore");
    if restore > 0.0 {
        t.net.path(1).hop(1).at(Instant::ZERO + Duration::from_secs_f64(restore)).restore();
    }
    t.run_until(fails);
    let before = t.z.received_bytes();
    let is_down = |t: &Pair| {
        let is_inactive = |e: &Event| {
            matches!(e, Event::PathState { path: PathId(1), to: PathState::Inactive, .. })
        };
        t.a.events().iter().any(|(at, e)| *at > Instant::from_millis(5500) && is_inactive(e))
    };
    let until =
        if restore > 0.0 { Instant::ZERO + Duration::from_secs_f64(restore) } else { LIMIT };
    let mut detected = None;
    let mut goodput = None;
    if t.run_until_true(until, |t| is_down(t) || t.has_delivered_all()) || restore > 0.0 {
        let (now, bytes) = (t.net.now(), t.z.received_bytes());
        if is_down(&t) {
            detected = Some(now.as_secs_f64());
        }
        // A file that ends before the failure is detected has no goodput in the reference.
        if !t.has_delivered_all() || restore > 0.0 {
            let end = if t.has_delivered_all() { t.z.last_received().unwrap_or(now) } else { now };
            goodput = Some(
                (bytes - before) as f64 / 1000.0 / (end.max(now.min(until)) - fails).as_secs_f64(),
            );
        }
    }
    let mut m = if size > FILE { counts(&t.result()) } else { finish(&mut t) };
    detected.map(|at| m.insert("t_detect", at));
    goodput.map(|g| m.insert("goodput_kBps", g));
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
