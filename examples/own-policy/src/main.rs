//! Sends over two loopback paths with a scheduler, a congestion control and a loss
//! recovery of its own, and simulates transfers with a redundancy policy of its own.
//!
//! See README.md.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use manypath::policy::{
    AckFacts, ChunkCopy, CongestionControl, CopyTurn, Factory, Flight, FlightPath, Flights, Limits,
    LossRecovery, Needs, NextLook, PathFacts, PathVerdict, PolicyCx, RedundancyPolicy, Rules,
    Scheduler, SentChunk, Sfr, Window,
};
use manypath::{
    BindTo, Bytes, Config, ConnectTarget, Endpoint, EndpointOptions, Instant, PathId, Security,
    SendOptions,
};
use manypath_sim::{Pair, PathSpec, secs};

/// How often each policy was asked.
#[derive(Debug, Default)]
struct Asked {
    scheduler: AtomicU64,
    congestion_control: AtomicU64,
    recovery: AtomicU64,
    /// Copies that the redundancy policy chose, before new data and when idle.
    overdue: AtomicU64,
    idle: AtomicU64,
}

/// The ratio of the bytes in flight on the two paths.
const WEIGHTS: [usize; 2] = [3, 1];

/// Keeps the bytes in flight at a fixed ratio, whatever the congestion windows would allow.
#[derive(Debug)]
struct Weighted {
    asked: Arc<Asked>,
}

impl Scheduler for Weighted {
    fn choose(&mut self, cx: &mut PolicyCx<'_>) -> Option<PathId> {
        self.asked.scheduler.fetch_add(1, Ordering::Relaxed);
        // An answer is no promise that a packet leaves, so nothing is counted here: the view tells
        // what is in flight.
        let other = 1; // the weight of any path beyond these two
        let weight = |id: PathId| WEIGHTS.get(usize::from(id.0)).copied().unwrap_or(other);
        let usable = cx.paths.iter().filter(|path| path.usable);
        let next = usable.min_by_key(|path| path.flight_size / weight(path.id))?;
        // The ratio counts for more than speed: the other path waits for this one.
        (next.cwnd_space > 0).then_some(next.id)
    }
}

/// Scalable TCP's law beside the standard slow start: a gentle cut, and growth in proportion.
#[derive(Debug)]
struct Gentle {
    asked: Arc<Asked>,
}

impl CongestionControl for Gentle {
    fn on_ack(&mut self, window: Window, limits: &Limits, ack: &AckFacts) -> Window {
        self.asked.congestion_control.fetch_add(1, Ordering::Relaxed);
        let was_full = ack.flight_before >= window.cwnd;
        if !was_full || ack.in_fast_recovery {
            return window;
        }
        let growth = if window.cwnd <= window.ssthresh {
            ack.acked_bytes.min(limits.slow_start_increase_max)
        } else {
            ack.acked_bytes / 100
        };
        Window { cwnd: window.cwnd + growth, ..window }
    }

    fn on_fast_retransmit(&mut self, window: Window, limits: &Limits) -> Window {
        let cwnd = (window.cwnd - window.cwnd / 8).max(limits.ssthresh_floor);
        Window { cwnd, ssthresh: cwnd, partial_bytes_acked: 0 }
    }

    fn on_timeout(&mut self, window: Window, limits: &Limits) -> Window {
        let ssthresh = (window.cwnd / 2).max(limits.ssthresh_floor);
        Window { cwnd: limits.packet, ssthresh, partial_bytes_acked: 0 }
    }
}

/// Split fast retransmit that waits for six missing reports instead of three, as suits a network
/// that reorders packets.
#[derive(Debug)]
struct Patient {
    base: Sfr,
    asked: Arc<Asked>,
}

impl LossRecovery for Patient {
    fn rules(&self) -> Rules {
        let mut rules = self.base.rules();
        rules.sacks.missing_reports = 6;
        rules
    }

    fn reset_path(&mut self, path: PathId) {
        self.base.reset_path(path);
    }

    fn share(&mut self, from: PathId, to: PathId) {
        self.base.share(from, to);
    }

    fn recovers(&self, path: PathId) -> bool {
        self.base.recovers(path)
    }

    fn recovers_anywhere(&self) -> bool {
        self.base.recovers_anywhere()
    }

    fn on_path_sack(&mut self, facts: &PathFacts, flight: &dyn Flight) -> PathVerdict {
        self.asked.recovery.fetch_add(1, Ordering::Relaxed);
        self.base.on_path_sack(facts, flight)
    }

    fn on_path_timeout(&mut self, path: PathId) {
        self.base.on_path_timeout(path);
    }
}

/// Sends chunks that are late on one path again on another. It decides as manypath's `late` does,
/// so that the program can compare the two.
#[derive(Debug)]
struct Rescue {
    asked: Arc<Asked>,
}

impl Rescue {
    /// Copies are this many bytes and 2 % of what was acknowledged, at most.
    const BYTES_MAX: u64 = 512 * 1024;

    /// A chunk is overdue if it is under way for this long while the receiver waits: two round-trip
    /// times, but 50 ms at least.
    fn patience(path: &FlightPath) -> Option<Duration> {
        Some((2 * path.srtt?).max(Duration::from_millis(50)))
    }

    /// The path of the chunk that the receiver waits for, and when that chunk is overdue.
    fn stall(flights: &dyn Flights) -> Option<(FlightPath, Instant)> {
        let awaited = flights.awaited()?;
        let slow = flights.path(awaited.path)?;
        let quiet_since = flights.last_progress().min(slow.last_active);
        Some((slow, awaited.sent_at.max(quiet_since) + Rescue::patience(&slow)?))
    }

    /// The receiver waits for what a path does not deliver: its first chunk without a copy goes on
    /// the fastest of the other paths.
    fn overdue(now: Instant, flights: &dyn Flights) -> Option<(SentChunk, PathId)> {
        let (slow, overdue_at) = Rescue::stall(flights)?;
        let free = flights.paths().filter(|path| path.usable && flights.has_room(path.id));
        let others = free.filter(|path| path.id != slow.id);
        let on = others.min_by_key(|path| path.srtt.unwrap_or(Duration::MAX))?.id;
        let chunk = flights.find_on(slow.id, &mut |chunk| flights.is_alone(chunk))?;
        let is_overdue = now >= overdue_at && now >= chunk.sent_at + Rescue::patience(&slow)?;
        is_overdue.then_some((chunk, on))
    }

    /// The fastest path has nothing to send: it takes the lowest TSN of those that slower paths
    /// deliver later, or should have delivered by now.
    fn late(now: Instant, flights: &dyn Flights) -> Option<(SentChunk, PathId)> {
        let measured = || flights.paths().filter_map(|path| Some((path.srtt?, path)));
        let free = measured().filter(|(_, path)| path.usable && flights.has_room(path.id));
        let (fast_rtt, fast) = free.min_by_key(|(srtt, _)| *srtt)?;
        let mut chunks = Vec::new();
        for (slow_rtt, slow) in measured().filter(|(srtt, _)| *srtt > fast_rtt) {
            let margin = slow.rtt_variation.min(slow_rtt / 3);
            let settled = slow.estimate.filter(|estimate| estimate.is_settled);
            let mut bytes = 0;
            chunks.extend(flights.find_on(slow.id, &mut |chunk| {
                bytes += chunk.size;
                let usual = chunk.sent_at + slow_rtt;
                // A full path delivers one chunk after the other, at its rate.
                let drained = settled.map_or(usual, |estimate| now + estimate.time_of(bytes));
                let is_sooner_by_fast = usual.max(drained) > now + fast_rtt + margin.min(fast_rtt);
                let is_late = usual + margin < now || is_sooner_by_fast;
                is_late && chunk.is_first && flights.is_alone(chunk)
            }));
        }
        let base = flights.cum_tsn_ack_point();
        let first = chunks.into_iter().min_by_key(|chunk| chunk.tsn.distance_from(base))?;
        Some((first, fast.id))
    }
}

impl RedundancyPolicy for Rescue {
    fn needs(&self) -> Needs {
        Needs { copies: true, ..Needs::default() }
    }

    fn copy(&mut self, now: Instant, turn: CopyTurn, flights: &dyn Flights) -> Option<ChunkCopy> {
        if flights.bytes_copied() >= Rescue::BYTES_MAX + flights.bytes_acked() / 50 {
            return None;
        }
        let (found, count) = match turn {
            CopyTurn::BeforeNewData => (Rescue::overdue(now, flights), &self.asked.overdue),
            CopyTurn::Idle => (Rescue::late(now, flights), &self.asked.idle),
        };
        let (chunk, on) = found?;
        count.fetch_add(1, Ordering::Relaxed);
        Some(ChunkCopy { tsn: chunk.tsn, on, asks_for_sack: true })
    }

    fn next_look(&mut self, now: Instant, flights: &dyn Flights) -> Option<NextLook> {
        let (slow, overdue_at) = Rescue::stall(flights)?;
        if now < overdue_at {
            return Some(NextLook::At(overdue_at));
        }
        Some(NextLook::Paced { except: slow.id })
    }
}

/// A run of the simulator.
#[derive(Debug, PartialEq)]
struct Run {
    /// Stands for every packet of the run, and its time.
    trace_hash: u64,
    seconds: f64,
    copies: u64,
}

/// Sends 4 MB over two paths, of which the one with the longer delay is silent for a while.
fn simulate(config: &Config, seed: u64) -> Run {
    let path = |ms| PathSpec::new().rate_mbps(20.0).delay_ms(ms).loss(0.001);
    let paths = Pair::paths("adaptive", vec![path(5.0), path(60.0)]);
    let mut t = paths.profile("fast").config_a(config.clone()).seed(seed).connect();
    t.a.send_file(4_000_000);
    t.run_for(Duration::from_millis(700));
    t.net.path(1).cut_for(Duration::from_millis(300));
    let result = t.run_to_end(secs(60)).result();
    assert!(result.completed, "seed {seed}: {result:?}");
    let copies = t.a.paths().iter().map(|path| path.counters.redundant_chunks_sent).sum();
    Run { trace_hash: t.net.trace_hash(), seconds: t.net.now().as_secs_f64(), copies }
}

/// Simulates transfers with the program's redundancy policy and with manypath's: they are equal,
/// packet by packet.
fn compare_redundancy(asked: &Arc<Asked>) -> Result<(), Box<dyn Error>> {
    let late = Config::build("fast", "adaptive", &[])?;
    let off = Config::build("fast", "adaptive", &[("redundancy".into(), "off".into())])?;
    let mut rescue = late.clone();
    let counters = Arc::clone(asked);
    rescue.redundancy = Factory::<dyn RedundancyPolicy>::new("rescue", move |_| {
        Box::new(Rescue { asked: Arc::clone(&counters) })
    })?;
    assert_eq!(late.redundancy.name(), "late", "the policy to compare with");

    let (mut copies, mut without_seconds, mut seconds) = (0, 0.0, 0.0);
    for seed in 1..=5 {
        let (with, own) = (simulate(&late, seed), simulate(&rescue, seed));
        assert_eq!(own, with, "seed {seed}: its own policy and late");
        let without = simulate(&off, seed);
        assert_eq!(without.copies, 0);
        (copies, seconds) = (copies + own.copies, seconds + own.seconds);
        without_seconds += without.seconds;
    }
    println!(
        "redundancy = {}: {copies} copies in 5 runs of {:.2} s, {:.2} s without; each run equal to late's",
        rescue.redundancy,
        seconds / 5.0,
        without_seconds / 5.0
    );
    let chosen = [&asked.overdue, &asked.idle].map(|count| count.load(Ordering::Relaxed));
    assert!(chosen.iter().all(|&count| count > 0), "copies of both kinds: {chosen:?}");
    assert!(copies > 0 && copies <= chosen.iter().sum(), "{copies} copies of {chosen:?}");
    assert!(seconds < without_seconds, "{seconds} s with copies, {without_seconds} s without");
    Ok(())
}

/// An endpoint with a path for each of two loopback addresses.
fn endpoint(config: Config, accept: bool) -> Result<Endpoint, Box<dyn Error>> {
    let addresses: [IpAddr; 2] = [[127, 0, 0, 1].into(), [127, 0, 0, 2].into()];
    let bind = addresses.map(BindTo::Address).to_vec();
    let config = Arc::new(config);
    // Both ends are in this program.
    let client = EndpointOptions::client(Security::Plain);
    Ok(Endpoint::bind(EndpointOptions { config, bind, accept, ..client })?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let asked = Arc::new(Asked::default());
    compare_redundancy(&asked)?;

    let fast = Config::build("fast", "cmt-pf", &[])?;

    let mut config = fast.clone();
    let counters = Arc::clone(&asked);
    config.scheduler = Factory::<dyn Scheduler>::new("weighted", move |_| {
        Box::new(Weighted { asked: Arc::clone(&counters) })
    })?;
    let counters = Arc::clone(&asked);
    config.congestion_control = Factory::<dyn CongestionControl>::new("gentle", move |_| {
        Box::new(Gentle { asked: Arc::clone(&counters) })
    })?;
    let counters = Arc::clone(&asked);
    config.recovery = Factory::<dyn LossRecovery>::new("patient", move |config| {
        Box::new(Patient { base: Sfr::new(config), asked: Arc::clone(&counters) })
    })?;

    let (server, client) = (endpoint(fast, true)?, endpoint(config, false)?);
    let target = ConnectTarget::new(server.local_addresses());
    let (ours, theirs) = tokio::join!(client.connect(target), server.accept());
    let (ours, theirs) = (ours?, theirs.ok_or("the server was closed")?);
    let runs = ours.config().ok_or("the association is over")?;
    println!(
        "scheduler = {}, congestion_control = {}, recovery = {}",
        runs.scheduler, runs.congestion_control, runs.recovery
    );

    let message = Bytes::from(vec![0; 64_000]);
    let send = async {
        for _ in 0..250 {
            ours.send(SendOptions::default(), message.clone()).await?;
        }
        let paths = ours.paths();
        ours.shutdown().await?;
        Ok::<_, Box<dyn Error>>(paths)
    };
    let receive = async {
        let mut bytes = 0;
        while let Some(message) = theirs.recv().await? {
            bytes += message.payload.len();
        }
        Ok::<_, Box<dyn Error>>(bytes)
    };
    let (paths, bytes) = tokio::try_join!(send, receive)?;

    let chunks: Vec<u64> = paths.iter().map(|path| path.counters.data_chunks_sent).collect();
    let all: u64 = chunks.iter().sum();
    let share = |path: usize| chunks.get(path).map_or(0, |chunks| (chunks * 100 + all / 2) / all);
    let (first, second) = (share(0), share(1));
    println!(
        "{} MB over loopback: path 1 {first} % of the packets, path 2 {second} %",
        bytes / 1_000_000
    );
    let counters = [&asked.scheduler, &asked.congestion_control, &asked.recovery];
    let [weighted, gentle, patient] = counters.map(|count| count.load(Ordering::Relaxed));
    println!("asked: weighted {weighted} times, gentle {gentle} times, patient {patient} times");

    assert_eq!(bytes, 16_000_000, "everything arrives");
    assert!(weighted > 1000 && gentle > 10 && patient > 10, "its own policies are used");
    assert!((65..=85).contains(&first), "about 3 of 4 packets take path 1: {chunks:?}");
    Ok(())
}
