//! `manypath demo`: a real sender and a real receiver, two emulated paths, an outage.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use indicatif::ProgressBar;
use manypath::Rng;
use manypath::sizes::{COMMON_HEADER_LEN, DATA_HEADER_LEN, ETHERNET_MTU, UDP_IPV4_HEADERS};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::args::{DemoArgs, TransportArgs};
use crate::connect::transport;
use crate::failure::{Failure, Result};
use crate::screen::Screen;
use crate::screen::figures::{Rate, bit_rate, size};
use crate::screen::layout;
use crate::screen::output;
use crate::settings;
use crate::signals::interrupted;
use manypath_realtime::emulator::{EmulatedPath, Epoch};
use manypath_sim::{LinkSpec, PathSpec, QueueLimit};

/// Paths between the two processes.
const PATHS: usize = 2;
/// How long the start of a transfer is left out of the rate with both paths: slow start.
const WARM_UP: Duration = Duration::from_secs(1);
/// Largest file, so that a slip does not fill the disk.
const SIZE_MAX: u64 = 10_000_000_000;
/// The share of a link's rate that is content: all but headers and acknowledgements.
const CONTENT_SHARE: f64 = 0.94;
/// Time that handshake and slow start take, in seconds.
const START_S: f64 = 0.5;
/// Bytes written to the file at a time.
const BLOCK: usize = 1 << 20;
/// Name of the file that is sent.
const FILE: &str = "demo.bin";

/// The emulated network.
#[derive(Clone, Debug)]
struct Plan {
    bytes: u64,
    link: LinkSpec,
    rate_bps: u64,
    /// Without an end if it never returns; `None` if no path dies.
    outage: Option<std::ops::Range<Duration>>,
}

/// `manypath demo`.
pub(crate) async fn run(args: DemoArgs) -> Result<()> {
    let plan = plan(&args)?;
    let config = settings::config(&args.transport)?;
    let screen = Screen::new(&args.report);
    let chunk = (transport::bulk_message_size(&config, &[], false, true) / 32) as u64;
    let dir = tempfile::tempdir()
        .map_err(|e| Failure::failed(format!("cannot make a temporary directory: {e}")))?;
    let digest = make_file(&dir.path().join(FILE), plan.bytes)?;
    let into = dir.path().join("received");
    std::fs::create_dir(&into).map_err(|e| Failure::failed(format!("{}: {e}", into.display())))?;

    let mut session = Session::start(&args.transport, &plan, dir.path(), &into).await?;
    screen.line(&introduction(&plan));
    let samples = tokio::select! {
        samples = session.watch(&screen, &plan) => samples?,
        () = interrupted() => return Err(Failure::failed("interrupted")),
    };
    let result = session.end().await?;
    let received = file_digest(&into.join(FILE))?;
    if received != digest {
        return Err(Failure::failed("the file that arrived is not the file that was sent"));
    }
    conclude(&args, &plan, result, &samples, chunk)
}

fn plan(args: &DemoArgs) -> Result<Plan> {
    let bytes = settings::size("--size", &args.size)?;
    if bytes == 0 || bytes > SIZE_MAX {
        return Err(Failure::usage(format!("--size {}: not from 1 B to 10 GB", args.size)));
    }
    let rate_bps = settings::rate("--rate", &args.rate)?;
    let delay = settings::duration("--delay", &args.delay)?;
    let loss = settings::ratio("--loss", &args.loss)?;
    let down = settings::duration("--down", &args.down)?;
    let down_for = settings::duration("--for", &args.down_for)?;
    let outage = (!down_for.is_zero()).then(|| down..down.saturating_add(down_for));
    // A common choice for a router: what fits into 1.5 round trips, and at least ten packets.
    let bdp = rate_bps as f64 / 8.0 * delay.as_secs_f64() * 2.0;
    let queue = QueueLimit::Bytes(((bdp * 1.5) as usize).max(10 * ETHERNET_MTU));
    let link = LinkSpec::new(manypath_sim::Rate::bps(rate_bps), delay).queue(queue).loss(loss);
    Ok(Plan { bytes, link, rate_bps, outage })
}

fn introduction(plan: &Plan) -> String {
    let rate = bit_rate(plan.rate_bps as f64);
    let outage = match &plan.outage {
        Some(outage) => format!(
            "path 2 fails at {} s and returns at {} s",
            outage.start.as_secs_f64(),
            outage.end.as_secs_f64()
        ),
        None => "no path dies".to_owned(),
    };
    format!(
        "Sending {} from one process to another over two emulated paths of {rate} and {} ms; {outage}. \
         It takes about {:.0} s.",
        size(plan.bytes),
        plan.link.delay.as_secs_f64() * 1e3,
        expected_s(plan)
    )
}

/// The time that the transfer will take, in seconds: its bytes over the paths that are up.
fn expected_s(plan: &Plan) -> f64 {
    // Of one path alone.
    let path_seconds = plan.bytes as f64 * 8.0 / (plan.rate_bps as f64 * CONTENT_SHARE);
    let (down_s, down_for_s) = plan.outage.as_ref().map_or((f64::INFINITY, 0.0), |outage| {
        (outage.start.as_secs_f64(), (outage.end - outage.start).as_secs_f64())
    });
    let left = (path_seconds - 2.0 * down_s).max(0.0);
    let after = (left - down_for_s).max(0.0);
    START_S + (path_seconds / 2.0).min(down_s) + left.min(down_for_s) + after / 2.0
}

/// A loopback address for a part of the emulation; systems that have only 127.0.0.1 use that.
fn loopback(host: usize) -> IpAddr {
    let last = if cfg!(any(target_os = "linux", windows)) { host as u8 } else { 1 };
    Ipv4Addr::new(127, 0, 0, last).into()
}

/// The addresses of one end, `first` and the following, each once.
fn addresses(first: usize) -> String {
    let mut list: Vec<String> = (first..first + PATHS).map(|n| loopback(n).to_string()).collect();
    list.dedup();
    list.join(",")
}

/// Fills a file with random bytes; their digest.
fn make_file(path: &Path, bytes: u64) -> Result<[u8; 32]> {
    let failed = |e: std::io::Error| {
        Failure::failed(format!("cannot write {}: {e}", path.display()))
            .hint("free some space, or set TMPDIR to a directory that has it")
    };
    let mut file = std::fs::File::create(path).map_err(failed)?;
    let mut rng = Rng::from_number(1);
    let mut block = vec![0; BLOCK];
    let mut digest = Sha256::new();
    let mut left = bytes;
    while left > 0 {
        let len = left.min(BLOCK as u64) as usize;
        rng.fill(&mut block[..len]);
        digest.update(&block[..len]);
        file.write_all(&block[..len]).map_err(failed)?;
        left -= len as u64;
    }
    Ok(digest.finalize().into())
}

fn file_digest(path: &Path) -> Result<[u8; 32]> {
    let failed = |e| Failure::failed(format!("cannot read {}: {e}", path.display()));
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let mut digest = Sha256::new();
    let mut block = vec![0; BLOCK];
    loop {
        match std::io::Read::read(&mut file, &mut block).map_err(failed)? {
            0 => return Ok(digest.finalize().into()),
            n => digest.update(&block[..n]),
        }
    }
}

/// The two processes and what lies between them.
struct Session {
    receiver: Child,
    records: Lines<BufReader<ChildStdout>>,
    sender: Child,
    paths: Vec<EmulatedPath>,
    epoch: Epoch,
}

/// The delivered bytes, and when they were counted.
type Sample = (Duration, u64);

impl Session {
    async fn start(
        transport: &TransportArgs,
        plan: &Plan,
        dir: &Path,
        into: &Path,
    ) -> Result<Session> {
        let mut secret = [0; 16];
        getrandom::fill(&mut secret)
            .map_err(|e| Failure::failed(format!("no random numbers: {e}")))?;
        let token = data_encoding::HEXLOWER.encode(&secret);
        let mut receiver = program()?;
        receiver.args(["recv", "--once", "--json", "--progress", "--quiet", "--port", "0"]);
        receiver.args(["--listen", &addresses(21), "--token", &token, "--dir"]).arg(into);
        let mut receiver = with_transport(receiver, transport).spawn().map_err(cannot_start)?;
        let out = receiver.stdout.take().ok_or_else(|| Failure::failed("no output to read"))?;
        let mut records = BufReader::new(out).lines();
        let listening = next_record(&mut records).await?;
        let port = listening
            .as_ref()
            .and_then(|record| record["port"].as_u64())
            .and_then(|port| u16::try_from(port).ok())
            .ok_or_else(|| Failure::failed("the receiver did not start"))?;

        let epoch = Epoch::default();
        let mut paths = Vec::new();
        for n in 0..PATHS {
            let mut spec = PathSpec::hops([plan.link.clone()]);
            if n == 1
                && let Some(outage) = &plan.outage
            {
                let begin = manypath::Instant::ZERO + outage.start;
                spec = spec.down(begin, Some(outage.end - outage.start));
            }
            let name = format!("path {n}");
            let rng = Rng::from_number(7).fork(&name);
            let server = SocketAddr::new(loopback(21 + n), port);
            let path = EmulatedPath::start(loopback(11 + n), server, &spec, rng, epoch.clone())
                .await
                .map_err(|e| Failure::failed(format!("cannot emulate {name}: {e}")))?;
            paths.push(path);
        }
        let dest: Vec<String> = paths.iter().map(|path| path.address().to_string()).collect();
        let mut sender = program()?;
        sender.args(["send", "--json", "--quiet", "--bind", &addresses(31), "--token", &token]);
        sender.arg(dir.join(FILE)).arg(dest.join(","));
        let sender = with_transport(sender, transport).spawn().map_err(cannot_start)?;
        Ok(Session { receiver, records, sender, paths, epoch })
    }

    /// Shows how it goes until the receiver is done.
    async fn watch(&mut self, screen: &Screen, plan: &Plan) -> Result<Vec<Sample>> {
        let mut view = View::new(screen, plan);
        let every = if screen.has_bars() { 100 } else { 1000 };
        let mut ticks = interval(Duration::from_millis(every));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut samples = Vec::new();
        let mut sending = true;
        loop {
            tokio::select! {
                record = next_record(&mut self.records) => match record? {
                    Some(record) if record["event"] == "progress" => {
                        let bytes = record["bytes"].as_u64().unwrap_or(0);
                        samples.push((self.epoch.elapsed(), bytes));
                    }
                    // The result, or the end of its output: it is done.
                    _ => return Ok(samples),
                },
                ended = self.sender.wait(), if sending => {
                    sending = false;
                    if !ended.is_ok_and(|status| status.success()) {
                        return Err(Failure::failed("the sender failed"));
                    }
                }
                _ = ticks.tick() => {
                    let delivered = samples.last().map_or(0, |(_, bytes)| *bytes);
                    view.show(self.epoch.elapsed(), &self.paths, delivered);
                }
            }
        }
    }

    /// The sender's result, once both processes have ended well.
    async fn end(mut self) -> Result<Value> {
        let mut text = String::new();
        if let Some(mut out) = self.sender.stdout.take() {
            out.read_to_string(&mut text)
                .await
                .map_err(|e| Failure::failed(format!("cannot read the sender's result: {e}")))?;
        }
        for (name, child) in [("sender", &mut self.sender), ("receiver", &mut self.receiver)] {
            let status = child.wait().await;
            if !status.is_ok_and(|status| status.success()) {
                return Err(Failure::failed(format!("the {name} failed")));
            }
        }
        serde_json::from_str(&text)
            .map_err(|e| Failure::failed(format!("the sender's result is not JSON: {e}")))
    }
}

/// This program again.
fn program() -> Result<Command> {
    let program = std::env::current_exe()
        .map_err(|e| Failure::failed(format!("cannot find this program itself: {e}")))?;
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    Ok(command)
}

/// Passes the transport's configuration on. The ends must not tell each other their real addresses:
/// they would find a way around the emulated links.
fn with_transport(mut command: Command, transport: &TransportArgs) -> Command {
    for (option, value) in [("--preset", &transport.preset), ("--profile", &transport.profile)] {
        if let Some(value) = value {
            command.args([option, value]);
        }
    }
    if let Some(file) = &transport.config {
        command.arg("--config").arg(file);
    }
    for setting in &transport.set {
        command.args(["--set", setting]);
    }
    command.args(["--set", "advertise_addresses=false"]);
    command
}

fn cannot_start(e: std::io::Error) -> Failure {
    Failure::failed(format!("cannot start this program again: {e}"))
}

async fn next_record(records: &mut Lines<BufReader<ChildStdout>>) -> Result<Option<Value>> {
    match records.next_line().await {
        Ok(line) => Ok(line.and_then(|line| serde_json::from_str(&line).ok())),
        Err(e) => Err(Failure::failed(format!("cannot read what the receiver says: {e}"))),
    }
}

/// A bar for each path and one for the total, or a line a second.
struct View<'a> {
    screen: &'a Screen,
    plan: &'a Plan,
    paths: Vec<(ProgressBar, Rate)>,
    total: (ProgressBar, Rate),
}

impl<'a> View<'a> {
    fn new(screen: &'a Screen, plan: &'a Plan) -> View<'a> {
        let kbit = Some(plan.rate_bps / 1000);
        let paths = (0..PATHS).map(|_| (screen.bar(kbit), Rate::default())).collect();
        View { screen, plan, paths, total: (screen.bar(Some(plan.bytes)), Rate::default()) }
    }

    fn show(&mut self, elapsed: Duration, paths: &[EmulatedPath], delivered: u64) {
        let now = Instant::now();
        let mut line = format!("{:5.1} s", elapsed.as_secs_f64());
        for (n, (path, (bar, rate))) in paths.iter().zip(&mut self.paths).enumerate() {
            // With their headers, so that a full link shows its full rate.
            let rate = rate.update(now, path.to_server().bytes);
            let state = if path.is_down() { "DOWN".to_owned() } else { bit_rate(rate) };
            let text = format!("path {}  {state:>12}", n + 1);
            line += &format!("  {text}");
            bar.set_position((rate / 1000.0) as u64);
            self.screen.set_bar(bar, &text);
        }
        let rate = self.total.1.update(now, delivered);
        let percent = delivered * 100 / self.plan.bytes;
        let text = format!("total {:>13}  {} ({percent} %)", bit_rate(rate), size(delivered));
        line += &format!("  {text}");
        self.total.0.set_position(delivered);
        let text = format!("{:5.1} s  {text}", elapsed.as_secs_f64());
        self.screen.set_bar(&self.total.0, &text);
        if self.screen.is_plain() {
            self.screen.line(&line);
        }
    }
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        for (bar, _) in self.paths.iter().chain([&self.total]) {
            bar.finish_and_clear();
        }
    }
}

/// The rate of delivery while both paths were up, from [`WARM_UP`] to the outage or the end.
fn both_paths_bps(samples: &[Sample], plan: &Plan) -> Option<f64> {
    let end = plan.outage.as_ref().map_or(Duration::MAX, |outage| outage.start);
    let within: Vec<_> = samples.iter().filter(|(at, _)| (WARM_UP..=end).contains(at)).collect();
    let ((from, before), (to, after)) = (within.first()?, within.last()?);
    let seconds = (*to - *from).as_secs_f64();
    (seconds >= 0.5).then(|| (after - before) as f64 * 8.0 / seconds)
}

/// The least time over one such path without an outage: every byte with its headers at
/// the link's rate, and one way's delay. No transport does better over one path.
fn single_path_s(plan: &Plan, chunk: u64) -> f64 {
    let packets = plan.bytes.div_ceil(chunk);
    let headers = UDP_IPV4_HEADERS + COMMON_HEADER_LEN + DATA_HEADER_LEN;
    let bytes = plan.bytes + packets * headers as u64;
    bytes as f64 * 8.0 / plan.rate_bps as f64 + plan.link.delay.as_secs_f64()
}

/// Prints what happened.
fn conclude(
    args: &DemoArgs,
    plan: &Plan,
    mut result: Value,
    samples: &[Sample],
    chunk: u64,
) -> Result<()> {
    let single = single_path_s(plan, chunk);
    let both = both_paths_bps(samples, plan);
    let sum = PATHS as f64 * plan.rate_bps as f64;
    let number = |key: &str| result[key].as_f64().unwrap_or(0.0);
    let (time, rate, gap) =
        (number("transfer_time_s"), number("goodput_bps"), number("max_delivery_gap_s"));
    let mut text = format!(
        "{} in {time:.1} s ({}), verified by its SHA-256:\n{}\n",
        size(plan.bytes),
        bit_rate(rate),
        result["sha256"].as_str().unwrap_or("?")
    );
    if let Some(both) = both {
        text += &format!(
            "With both paths up: {} of {} ({:.0} %)\n",
            bit_rate(both),
            bit_rate(sum),
            both / sum * 100.0
        );
    }
    text += &format!("Longest pause in delivery: {gap:.2} s\n");
    text += &format!("One path alone would have needed at least {single:.1} s\n");
    if args.report.json {
        result["single_path_s"] = json!(single);
        result["both_paths_bps"] = json!(both.map(|bps| bps as u64));
        result["paths_sum_bps"] = json!(sum as u64);
        result["verified"] = json!(true);
        return output::print(&format!("{result}\n"));
    }
    output::print(&layout::wrapped(&text, layout::columns_of_output(), 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            bytes: 60_000_000,
            link: LinkSpec::mbps_ms(20.0, 20.0).queue(QueueLimit::Bytes(100_000)),
            rate_bps: 20_000_000,
            outage: Some(Duration::from_secs(5)..Duration::from_secs(10)),
        }
    }

    #[test]
    fn one_path_needs_its_bytes_and_headers_at_its_rate() {
        // 41552 packets of 56 bytes of headers each.
        let expected = (60_000_000.0 + 41_552.0 * 56.0) * 8.0 / 20e6 + 0.02;
        assert!((single_path_s(&plan(), 1444) - expected).abs() < 1e-9);
    }

    #[test]
    fn the_introduction_says_how_long_it_takes() {
        // As measured: 15.5 s, and 6.7 s for half of it without an outage.
        assert!(
            introduction(&plan()).ends_with("It takes about 16 s."),
            "{}",
            introduction(&plan())
        );
        let short = Plan { bytes: 30_000_000, outage: None, ..plan() };
        assert!((expected_s(&short) - 6.9).abs() < 0.1);
        let (from, ever) = (Duration::from_secs(5), Duration::from_secs(1000));
        let for_good = Plan { outage: Some(from..ever), ..plan() };
        assert!((expected_s(&for_good) - (0.5 + 5.0 + 25.5 - 10.0)).abs() < 0.1);
        let later = Plan { outage: Some(ever..ever * 2), ..plan() };
        assert!((expected_s(&later) - 13.3).abs() < 0.1);
    }

    #[test]
    fn the_rate_with_both_paths_leaves_out_slow_start_and_outage() {
        let at = |ms, bytes| (Duration::from_millis(ms), bytes);
        let samples = [at(0, 0), at(1000, 1_000_000), at(5000, 21_000_000), at(9000, 99_000_000)];
        assert_eq!(both_paths_bps(&samples, &plan()), Some(40e6));
        assert_eq!(both_paths_bps(&samples[..2], &plan()), None, "too short to tell");
    }
}
