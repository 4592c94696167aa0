//! `manypath perf client`.

use std::time::Duration;

use manypath::{AssocClosed, Association, SendError};
use serde::Serialize;
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior};

use super::frame::{Direction, Frame, MESSAGE_MAX, Report, Request, TIME_MAX};
use super::run::{Broken, Carried, Run, first, next_frame};
use crate::args::{PerfClientArgs, ReportArgs};
use crate::dest::Destination;
use crate::failure::{Failure, Result};
use crate::figures::{bit_rate, size};
use crate::paths::{PathReport, PathWatch};
use crate::screen::Screen;
use crate::security::{Calling, NOT_ENCRYPTED, UNKNOWN_PEER, peer_key};
use crate::transport::Answer;
use crate::{settings, show, transport, via};

/// Default duration of a measurement.
const TIME_DEFAULT: Duration = Duration::from_secs(10);
/// Intervals kept for the result.
const INTERVALS_MAX: usize = 3700;

/// The traffic of one interval.
#[derive(Debug, Serialize)]
struct Interval {
    /// Its end, in seconds from the beginning.
    at_s: f64,
    /// Towards the server, acknowledged.
    up_bps: u64,
    /// From the server, received.
    down_bps: u64,
}

/// `manypath perf client`.
pub(crate) async fn run(args: PerfClientArgs) -> Result<()> {
    let dest = Destination::parse(&args.dest)?;
    if matches!(dest, Destination::Ticket(_)) {
        return Err(Failure::usage(
            "a ticket is for `manypath send`; name the HOST of a perf server",
        ));
    }
    let config = settings::config_via(&args.transport, &args.via)?;
    let preset = config.preset;
    let limit = settings::duration("--connect-timeout", &args.connect_timeout)?;
    let screen = Screen::new(&args.report);
    let calling = Calling::new(&args.security, dest.host(), None, &screen)?;
    let remotes = dest.resolve().await?;
    let relays = via::relays(&args.via).await?;
    let is_protected = calling.is_protected();
    let message_size =
        transport::bulk_message_size(&config, &remotes, !relays.is_empty(), is_protected);
    let request = request(&args, message_size)?;
    let trace_interval = via::trace_interval(&args.trace, &config, &relays)?
        .filter(|_| request.direction != Direction::Down);
    let peer = transport::addresses(&remotes);
    match (is_protected, calling.knows_peer) {
        (false, _) => screen.line(NOT_ENCRYPTED),
        (true, false) => screen.line(UNKNOWN_PEER),
        (true, true) => {}
    }
    let endpoint = transport::open_via(config, &args.bind.bind, relays, calling.security)?;
    let _relay_watch = via::RelayWatch::start(&endpoint, &screen);
    for note in endpoint.notes() {
        screen.line(note);
    }
    let hello = Some(first(Frame::Request(request)));
    let heard = async |association: &Association| hear_accept(association, &peer).await;
    let association = transport::connect(&endpoint, remotes, limit, hello, heard).await?;
    let watch = PathWatch::start(&association, screen.clone());
    let _route_watch = via::watch_routes(&association, trace_interval);
    let mut intervals = Vec::new();
    let played = tokio::select! {
        played = measure(&association, &request, &screen, &args.report, &mut intervals) => played,
        () = transport::interrupted() => {
            transport::abort(&association, "interrupted").await;
            return Err(Failure::failed("interrupted"));
        }
    };
    let (ours, theirs, latency_p99_s) = match played {
        Ok(played) => played,
        Err(broken) => {
            transport::abort(&association, "protocol error").await;
            return Err(failure(&broken, &peer));
        }
    };
    transport::finish(&association).await;

    let (up, down) = (Carried::from(theirs), Carried::from(ours));
    let paths = watch.report(&association);
    if !args.report.json {
        return show::print(&text(&request, (up, down), (ours, theirs), &paths));
    }
    let result = json!({
        "role": "client",
        "preset": preset,
        "encrypted": association.is_protected(),
        "peer_key": peer_key(&association),
        "completed": true,
        "peer": peer,
        "bytes": up.bytes + down.bytes,
        "seconds": up.seconds.max(down.seconds),
        "goodput_bps": up.goodput_bps + down.goodput_bps,
        "cpu_seconds": ours.cpu.as_secs_f64(),
        "peer_cpu_seconds": theirs.cpu.as_secs_f64(),
        "message_size": request.message_size,
        "message_latency_p99_s": latency_p99_s,
        "up": (request.direction != Direction::Down).then_some(up),
        "down": (request.direction != Direction::Up).then_some(down),
        "intervals": intervals,
        "paths": paths,
        "notices": watch.notices(),
    });
    show::print(&format!("{result}\n"))
}

fn request(args: &PerfClientArgs, message_size: usize) -> Result<Request> {
    let direction = match (args.reverse, args.bidir) {
        (_, true) => Direction::Both,
        (true, false) => Direction::Down,
        (false, false) => Direction::Up,
    };
    let bytes = args.bytes.as_deref().map(|n| settings::size("-n", n)).transpose()?;
    let time = match args.time {
        None if bytes.is_some() => TIME_MAX,
        None => TIME_DEFAULT,
        Some(t) => Duration::try_from_secs_f64(t)
            .ok()
            .filter(|t| !t.is_zero() && *t <= TIME_MAX)
            .ok_or_else(|| Failure::usage(format!("-t {t}: not from 0 to 3600 seconds")))?,
    };
    let message_size = match &args.messages {
        None => message_size,
        Some(text) => usize::try_from(settings::size("--messages", text)?)
            .ok()
            .filter(|n| (1..=MESSAGE_MAX).contains(n))
            .ok_or_else(|| Failure::usage(format!("--messages {text}: not from 1 B to 1 MiB")))?,
    };
    Ok(Request { direction, message_size, time, bytes })
}

/// Hears what the server says to our request.
async fn hear_accept(association: &Association, peer: &str) -> Answer {
    match next_frame(association).await {
        Ok(Frame::Accept) => Answer::Welcome,
        Err(Broken::Closed(closed)) => {
            let failed = failure(&Broken::Closed(closed.clone()), peer);
            Answer::Ended(closed, failed)
        }
        Ok(_) | Err(_) => {
            transport::abort(association, "protocol error").await;
            Answer::Failed(failure(&Broken::Protocol, peer))
        }
    }
}

/// Runs the measurement, telling how it goes once a second.
async fn measure(
    association: &Association,
    request: &Request,
    screen: &Screen,
    report: &ReportArgs,
    intervals: &mut Vec<Interval>,
) -> std::result::Result<(Report, Report, Option<f64>), Broken> {
    let run = Run::new(association, report.json);
    let watching = async {
        let mut ticks = tokio::time::interval(Duration::from_secs(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        ticks.tick().await; // the first comes at once
        let begin = Instant::now();
        let mut last = (begin, 0, 0);
        loop {
            let now = ticks.tick().await;
            let (up, down) = (association.stats().bytes_acked, run.received());
            let seconds = (now - last.0).as_secs_f64();
            let rate = |bytes: u64, before: u64| {
                (bytes.saturating_sub(before) as f64 * 8.0 / seconds) as u64
            };
            let interval = Interval {
                at_s: (now - begin).as_secs_f64(),
                up_bps: rate(up, last.1),
                down_bps: rate(down, last.2),
            };
            last = (now, up, down);
            let (up, down) = (bit_rate(interval.up_bps as f64), bit_rate(interval.down_bps as f64));
            screen.line(&match request.direction {
                Direction::Up => format!("{:6.1} s  {up}", interval.at_s),
                Direction::Down => format!("{:6.1} s  {down}", interval.at_s),
                Direction::Both => format!("{:6.1} s  up {up}, down {down}", interval.at_s),
            });
            if intervals.len() < INTERVALS_MAX {
                intervals.push(interval);
            }
        }
    };
    tokio::select! {
        played = run.play(request, request.direction != Direction::Down) => {
            played.map(|(ours, theirs)| (ours, theirs, run.latency_p99_s()))
        }
        () = watching => Err(Broken::Protocol),
    }
}

fn failure(broken: &Broken, peer: &str) -> Failure {
    match broken {
        Broken::Closed(closed) | Broken::Send(SendError::Closed(closed)) => match closed {
            AssocClosed::PeerAborted { reason, .. } if reason.starts_with(b"busy") => {
                Failure::failed(format!("{peer} is busy with other measurements"))
                    .hint("try again later")
            }
            closed => transport::closed_failure(closed, peer),
        },
        Broken::Send(e) => transport::send_failure(e, peer),
        Broken::Protocol => Failure::failed(format!(
            "{peer} does not speak this measurement protocol"
        ))
        .hint("use the same version of manypath on both sides, and `manypath perf server` there"),
    }
}

/// The result as a person reads it.
fn text(
    request: &Request,
    (up, down): (Carried, Carried),
    (ours, theirs): (Report, Report),
    paths: &[PathReport],
) -> String {
    let direction = |name: &str, carried: &Carried| {
        let (bytes, rate) = (size(carried.bytes), bit_rate(carried.goodput_bps as f64));
        format!("{name}: {bytes} in {:.2} s, {rate}\n", carried.seconds)
    };
    let mut text = String::new();
    if request.direction != Direction::Down {
        text += &direction("to the server", &up);
    }
    if request.direction != Direction::Up {
        text += &direction("from the server", &down);
    }
    for path in paths {
        let stats = &path.stats;
        let ms = |rtt: Duration| format!("{:.2} ms", rtt.as_secs_f64() * 1e3);
        let rtt = stats.srtt.map_or("-".to_owned(), ms);
        text += &format!(
            "  {} - {}{}: {}, {} acknowledged, {} retransmissions, RTT {rtt}, MTU {}\n",
            stats.local,
            stats.remote,
            via::text(path.relay.as_deref()),
            stats.state.name(),
            size(path.bytes_acked),
            stats.counters.retransmissions,
            stats.mtu
        );
    }
    let (here, there) = (ours.cpu.as_secs_f64(), theirs.cpu.as_secs_f64());
    text + &format!("processor time: {here:.2} s here, {there:.2} s at the server\n")
}
