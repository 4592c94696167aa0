//! Sends over two loopback paths with a scheduler, a congestion control and a loss
//! recovery of its own.
//!
//! See README.md.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use manypath::policy::{
    AckFacts, CongestionControl, Factory, Flight, Limits, LossRecovery, PathFacts, PathVerdict,
    PolicyCx, Rules, Scheduler, Sfr, Window,
};
use manypath::{
    BindTo, Bytes, Config, ConnectTarget, Endpoint, EndpointOptions, PathId, Security, SendOptions,
};

/// How often each policy was asked.
#[derive(Debug, Default)]
struct Asked {
    scheduler: AtomicU64,
    congestion_control: AtomicU64,
    recovery: AtomicU64,
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
        let growth = match window.cwnd <= window.ssthresh {
            true => ack.acked_bytes.min(limits.slow_start_increase_max),
            false => ack.acked_bytes / 100,
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
    let fast = Config::build("fast", "cmt-pf", &[])?;
    let asked = Arc::new(Asked::default());

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
