//! One transfer between two real endpoints over emulated links.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use manypath::keys::SharedKey;
use manypath::{
    Association, BindTo, Bytes, Config, ConnectTarget, Endpoint, EndpointOptions, Event, PathState,
    PathStats, Rng, Security, SendOptions, StreamId,
};
use manypath_proto::sizes;
use manypath_sim::scenario::PlainTransfer;
use manypath_sim::{PathSample, Sample, SampleTimes, Sampling, StateChange};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout_at};

use crate::emulator::{EmulatedPath, Epoch};

/// Samples on every change are taken so often: paths of tens of milliseconds show nothing more.
const ON_CHANGE: Duration = Duration::from_millis(100);

/// Record of a transfer that has ended.
#[derive(Debug)]
pub struct Record {
    pub(crate) sender: Association,
    pub(crate) receiver: Association,
    pub(crate) paths: Vec<EmulatedPath>,
    pub(crate) log: Log,
    pub(crate) samples: Vec<Sample>,
}

impl Record {
    /// The variables over time, if they were asked for.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }
}

/// Events of a transfer, with times since the sending application was called.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    /// The first message was handed to the association.
    pub(crate) first_sent: Option<Duration>,
    /// Everything was acknowledged.
    pub(crate) acked: Option<Duration>,
    /// User bytes delivered so far, at each delivery.
    pub(crate) delivered: Vec<(Duration, u64)>,
    /// Changes of the sender's paths, with the number of the path.
    pub(crate) changes: Vec<(usize, StateChange)>,
}

impl Log {
    pub(crate) fn delivered_bytes(&self) -> u64 {
        self.delivered.last().map_or(0, |(_, bytes)| *bytes)
    }
}

/// Why a transfer ended before its time.
enum Stop {
    /// The association is over.
    Over,
    /// Something else arrived than was sent.
    Wrong(String),
}

/// State that the tasks of a transfer share.
struct Shared {
    begin: Instant,
    log: Mutex<Log>,
}

impl Shared {
    fn edit<T>(&self, change: impl FnOnce(&mut Log) -> T) -> T {
        change(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Runs a transfer until everything is acknowledged, or for `limit`. `seed` says what the links
/// lose; the endpoints draw from the system.
///
/// # Errors
///
/// If there are no sockets, no association comes about, or what arrives is not what was sent.
pub async fn run(
    transfer: &PlainTransfer,
    limit: Duration,
    seed: u64,
    sampling: Option<Sampling>,
) -> Result<Record, String> {
    let count = transfer.paths.len();
    // Both ends are in this program.
    let security = if transfer.is_protected {
        SharedKey::random().map_err(|e| e.to_string())?.into()
    } else {
        Security::Plain
    };
    let server = endpoint(&transfer.receiver, 21..21 + count, true, security.clone())?;
    let epoch = Epoch::default();
    let mut paths = Vec::new();
    for (number, spec) in transfer.paths.iter().enumerate() {
        let to = SocketAddr::new(loopback(21 + number), server.udp_port());
        let rng = Rng::from_number(seed).fork(&format!("path {number}"));
        let path = EmulatedPath::start(loopback(11 + number), to, spec, rng, epoch.clone()).await;
        paths.push(path.map_err(|e| format!("cannot emulate path {}: {e}", number + 1))?);
    }
    let shared = Shared { begin: Instant::now(), log: Mutex::default() };
    let deadline = shared.begin + limit;
    let client = endpoint(&transfer.sender, 31..31 + count, false, security)?;
    let target = ConnectTarget::new(paths.iter().map(EmulatedPath::address));
    let both = async { tokio::join!(client.connect(target), server.accept()) };
    let both = timeout_at(deadline, both).await;
    let (sender, receiver) = both.map_err(|_| "no association within the time limit")?;
    let sender = sender.map_err(|e| format!("no association: {e}"))?;
    let receiver = receiver.ok_or("the receiver is closed")?;

    let mut samples = Vec::new();
    let work = async {
        let sent = send(&sender, transfer, &shared);
        let received = receive(&receiver, transfer.bytes, &shared);
        tokio::select! {
            done = async { tokio::try_join!(sent, received) } => done.map(|_| ()),
            never = watch(&sender, &paths, &shared) => match never {},
            never = sample(&sender, &receiver, &paths, sampling, &mut samples, &shared) => match never {},
        }
    };
    // Out of time, or the association failed: it is not complete, as in the simulator.
    if let Ok(Err(Stop::Wrong(what))) = timeout_at(deadline, work).await {
        return Err(what);
    }
    let log = shared.edit(|log| log.clone());
    Ok(Record { sender, receiver, paths, log, samples })
}

/// A loopback address for a part of the emulation; systems that have only 127.0.0.1 use that.
fn loopback(host: usize) -> IpAddr {
    let last = if cfg!(any(target_os = "linux", windows)) { host as u8 } else { 1 };
    Ipv4Addr::new(127, 0, 0, last).into()
}

fn endpoint(
    config: &Config,
    hosts: Range<usize>,
    accept: bool,
    security: Security,
) -> Result<Endpoint, String> {
    let mut addresses: Vec<IpAddr> = hosts.map(loopback).collect();
    addresses.dedup();
    let options = EndpointOptions {
        config: Arc::new(config.for_emulation()),
        bind: addresses.into_iter().map(BindTo::Address).collect(),
        accept,
        ..EndpointOptions::client(security)
    };
    Endpoint::bind(options).map_err(|e| format!("no sockets on loopback addresses: {e}"))
}

/// Sends messages of one DATA chunk each, as in the simulator, and waits until all are
/// acknowledged. Each has its number with it.
async fn send(to: &Association, transfer: &PlainTransfer, shared: &Shared) -> Result<(), Stop> {
    let config = &transfer.sender;
    let most = sizes::bulk_chunk(config, false, false, transfer.is_protected);
    let content = Bytes::from(vec![0; most]);
    verified(to, transfer.paths.len()).await;
    shared.edit(|log| log.first_sent = Some(shared.begin.elapsed()));
    let mut left = transfer.bytes;
    let mut number = 0;
    while left > 0 {
        let length = left.min(most as u64);
        let options = SendOptions {
            stream: StreamId(0),
            ppid: number,
            unordered: false,
            ..SendOptions::default()
        };
        let content = content.slice(..length as usize);
        to.send(options, content).await.map_err(|_| Stop::Over)?;
        left -= length;
        number = number.wrapping_add(1);
    }
    to.acknowledged().await.map_err(|_| Stop::Over)?;
    shared.edit(|log| log.acked = Some(shared.begin.elapsed()));
    Ok(())
}

/// Waits until `count` paths are verified. In the papers hosts know each other's addresses
/// beforehand; here the receiver learns of those of the emulated links, and what comes from an
/// address that is not verified does not count (RFC 9260 §5.4, §8.5).
async fn verified(association: &Association, count: usize) {
    let mut events = association.events();
    let is_active = |path: &&PathStats| path.state == PathState::Active;
    while association.paths().iter().filter(is_active).count() < count {
        if events.next().await.is_none() {
            return;
        }
    }
}

/// Receives `bytes`, in messages that must be in order.
async fn receive(from: &Association, bytes: u64, shared: &Shared) -> Result<(), Stop> {
    let mut received = 0;
    let mut expected: u32 = 0;
    while received < bytes {
        let Ok(Some(message)) = from.recv().await else { return Err(Stop::Over) };
        if message.ppid != expected {
            let what = format!("message {} arrived instead of {expected}", message.ppid);
            return Err(Stop::Wrong(what));
        }
        expected = expected.wrapping_add(u32::from(message.end_of_message));
        received += message.payload.len() as u64;
        shared.edit(|log| log.delivered.push((shared.begin.elapsed(), received)));
    }
    if received > bytes {
        return Err(Stop::Wrong(format!("{received} bytes arrived of {bytes}")));
    }
    Ok(())
}

/// The number of a path of the sender: that of the emulated one it leads to.
pub(crate) fn number_of(path: &PathStats, emulated: &[EmulatedPath]) -> Option<usize> {
    emulated.iter().position(|own| own.address() == path.remote)
}

/// Notes changes of the sender's paths, from the state in which the association is established.
async fn watch(sender: &Association, emulated: &[EmulatedPath], shared: &Shared) -> Infallible {
    let mut events = sender.events();
    while let Some(event) = events.next().await {
        let Event::PathState { path, from, to } = event else { continue };
        let paths = sender.paths();
        let changed = paths.iter().find(|own| own.id == path);
        if let Some(number) = changed.and_then(|path| number_of(path, emulated)) {
            let at_s = shared.begin.elapsed().as_secs_f64();
            let change = StateChange { at_s, from: from.name(), to: to.name() };
            shared.edit(|log| log.changes.push((number, change)));
        }
    }
    std::future::pending().await
}

/// Takes samples, half as often whenever there are too many.
async fn sample(
    sender: &Association,
    receiver: &Association,
    emulated: &[EmulatedPath],
    sampling: Option<Sampling>,
    samples: &mut Vec<Sample>,
    shared: &Shared,
) -> Infallible {
    let Some(Sampling { times, most }) = sampling else { return std::future::pending().await };
    let mut every = match times {
        SampleTimes::Every(every) => every.max(Duration::from_millis(1)),
        SampleTimes::OnChange => ON_CHANGE,
    };
    let mut ticks = interval_at(Instant::now(), every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        if samples.len() >= most.max(3) {
            let mut number = 0;
            samples.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            every *= 2;
            ticks = interval_at(Instant::now() + every, every);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        }
        samples.push(sample_now(sender, receiver, emulated, shared));
    }
}

fn sample_now(
    sender: &Association,
    receiver: &Association,
    emulated: &[EmulatedPath],
    shared: &Shared,
) -> Sample {
    let stats = sender.stats();
    let mut paths: Vec<PathSample> = Vec::new();
    for path in sender.paths() {
        let Some(number) = number_of(&path, emulated) else { continue };
        paths.push(PathSample { path: number as u8, ..PathSample::of(&path) });
    }
    paths.sort_by_key(|path| path.path);
    Sample {
        at_s: shared.begin.elapsed().as_secs_f64(),
        delivered_bytes: shared.edit(|log| log.delivered_bytes()),
        acked_bytes: stats.bytes_acked,
        peer_window_bytes: stats.peer_window,
        receive_buffered_bytes: receiver.stats().receive_buffered,
        receive_buffer_blocked_s: stats.receive_buffer_blocked.as_secs_f64(),
        shared_ratio: None,
        paths,
    }
}
