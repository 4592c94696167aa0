//! `manypath perf client`.

use std::num::NonZeroU64;
use std::time::Duration;

use manypath::{AssocClosed, Association, ConnectTarget, DirectPathError, SendError};
use manypath_live::Total;
use manypath_live::figures::state_words;
use manypath_trace::Recorded;
use manypath_transfer::DIRECT_PATH_TIME_MAX;
use serde_json::{Value, json};

use super::frame::{Direction, Frame, MESSAGE_MAX, Request, TIME_MAX};
use super::intervals::{Intervals, Reporting};
use super::run::{Broken, Carried, Measured, Run, first, next_frame, send};
use crate::args::{PerfClientArgs, RecordArgs};
use crate::connect::dest::Destination;
use crate::connect::near::Near;
use crate::connect::security::{Calling, UNKNOWN_PEER, peer_key};
use crate::connect::transport;
use crate::connect::transport::Answer;
use crate::connect::via;
use crate::failure::{Failure, Result};
use crate::live::Views;
use crate::paths::{PathReport, PathWatch};
use crate::screen::Screen;
use crate::screen::figures::{bit_rate, size};
use crate::screen::layout;
use crate::screen::notices::Detail;
use crate::screen::output;
use crate::screen::shares::{self, Share};
use crate::settings;
use crate::signals::interrupted;

/// Default duration of a measurement.
const TIME_DEFAULT: Duration = Duration::from_secs(10);
/// With a rate, messages have the data of this time unless the user gives their size.
const MESSAGE_TIME: Duration = Duration::from_millis(10);

/// The paths of a measurement.
struct CarriedBy<'a> {
    paths: &'a [PathReport],
    shares: &'a [Share],
    detail: Detail,
}

/// `manypath perf client`.
pub(crate) async fn run(args: PerfClientArgs) -> Result<()> {
    let dest = server(&args.dest)?;
    let config = settings::config_via(&args.transport, &args.via.via)?;
    let preset = config.preset;
    let limit = settings::duration("--connect-timeout", &args.connect_timeout)?;
    let screen = Screen::new(&args.report);
    let calling = Calling::new(&args.security, dest.host(), None, &screen)?;
    via::warn_of_files(&args.via.via, &screen);
    let target = ConnectTarget::new(dest.resolve().await?.told(&screen));
    let target = transport::over_ip(args.ip, &dest, target)?;
    let remotes = target.remotes.clone();
    let relays = via::relays(&args.via.via).await?.told(&screen);
    let is_stranger = calling.is_protected() && !calling.knows_peer;
    let near = Near::new(config, calling.security, &screen)
        .bind(&args.bind)
        .ip(args.ip)
        .relays(relays, &args.relay_peers)
        .relay_use(args.relay_use, false)?;
    let request = request(&args, near.message_size(&remotes))?;
    check_record(&args.record, &request)?;
    let mut views = Views::start(&args.live, "perf client", &screen).await?;
    let reporting = Reporting::new(args.interval, args.report.json)?;
    let sends = request.direction != Direction::Down;
    let near = near.trace_hops(&args.trace, sends)?.record(&args.record)?.warn_if_plain();
    if is_stranger {
        screen.line(UNKNOWN_PEER);
    }
    let mut near = near.open()?;
    let _control = near.announce(&views, &args.report);
    let peer = transport::addresses(&remotes);
    // A server that is to send must know first that no relay may carry it.
    let asks_later = args.relay_use.direct_only;
    let hello = (!asks_later).then(|| first(Frame::Request(request)));
    let later = asks_later.then_some(&request);
    let heard = async |association: &Association| ask(association, later, &peer).await;
    let association = near.connect(target, limit, hello, heard).await?;
    transport::direct_path(&association, &peer).await?;
    let rate = request.rate.map(NonZeroU64::get);
    let followed = near.follow(&association, content(&request), rate);
    let measures_latency = args.report.json || request.rate.is_some();
    let run = Run::new(&association, measures_latency);
    let mut intervals = Intervals::new(&run, &association, reporting, request.direction, &screen);
    views.open(String::new());
    let ended = tokio::select! {
        ended = measure(&run, &request, &mut intervals) => ended,
        () = interrupted() => Err(Stopped::Interrupted),
    };
    views.close().await;
    if let Some(record) = followed.record {
        record.finish(recorded(&ended), &screen).await;
    }
    let (measured, failure) = match ended {
        Ok(measured) => {
            transport::finish(&association).await;
            (measured, None)
        }
        Err(stopped) => {
            let measured = Measured::so_far(&run, intervals.acked(), run.received());
            transport::abort(&association, stopped.reason()).await;
            (measured, Some(stopped.failure(&peer)))
        }
    };

    let outcome = Outcome {
        association: &association,
        watch: &followed.watch,
        request: &request,
        measured: &measured,
        failure: failure.as_ref(),
    };
    if args.report.json {
        outcome.print_json(preset, peer, json!(intervals.kept()))?;
    } else if failure.is_none() {
        outcome.print(&screen)?;
    }
    failure.map_or(Ok(()), Err)
}

/// The server that DEST names.
fn server(dest: &str) -> Result<Destination> {
    match Destination::parse(dest)?.without_code()? {
        Destination::Ticket(_) => {
            Err(Failure::usage("a ticket is for `manypath send`; name the HOST of a perf server"))
        }
        dest => Ok(dest),
    }
}

/// Fails if there is to be a record of more than what this end sends.
fn check_record(args: &RecordArgs, request: &Request) -> Result<()> {
    if args.trace.is_some() && request.direction != Direction::Up {
        let what = "--trace records what this end sends, and no traffic beside it";
        return Err(Failure::usage(what).hint("leave out -R and --bidir"));
    }
    Ok(())
}

/// The result of a measurement, with the association that it was made over.
struct Outcome<'a> {
    association: &'a Association,
    watch: &'a PathWatch,
    request: &'a Request,
    measured: &'a Measured,
    failure: Option<&'a Failure>,
}

impl Outcome<'_> {
    fn print_json(&self, preset: &str, peer: String, intervals: Value) -> Result<()> {
        let mut result = result(self.request, self.measured, self.failure);
        result["preset"] = preset.into();
        result["encrypted"] = self.association.is_protected().into();
        result["peer_key"] = peer_key(self.association).into();
        result["peer"] = peer.into();
        result["intervals"] = intervals;
        result["paths"] = json!(self.watch.report(self.association));
        result["notices"] = json!(self.watch.notices());
        output::print(&format!("{result}\n"))
    }

    fn print(&self, screen: &Screen) -> Result<()> {
        let latency = self.measured.latency_p99_s.map_or(String::new(), latency_text);
        let paths = self.watch.report(self.association);
        let shares = self.watch.shares(self.association);
        let detail = Detail::new(screen.is_verbose());
        let carried = CarriedBy { paths: &paths, shares: &shares, detail };
        let text = text(self.request, self.measured, &carried) + &latency;
        output::print(&layout::wrapped(&text, layout::columns_of_output(), 4))
    }
}

/// The result of a measurement as JSON, without what the association says. The keys are a public
/// contract.
fn result(request: &Request, measured: &Measured, failure: Option<&Failure>) -> Value {
    let Measured { up, down, cpu, peer_cpu, latency_p99_s } = measured;
    json!({
        "role": "client",
        "completed": failure.is_none(),
        "error": failure.map(|failure| &failure.message),
        "bytes": up.bytes + down.bytes,
        "seconds": up.seconds.max(down.seconds),
        "goodput_bps": up.goodput_bps + down.goodput_bps,
        "cpu_seconds": cpu.as_secs_f64(),
        "peer_cpu_seconds": peer_cpu.map(|cpu| cpu.as_secs_f64()),
        "message_size": request.message_size,
        "rate_bps": request.rate,
        "message_latency_p99_s": latency_p99_s,
        "up": (request.direction != Direction::Down).then_some(up),
        "down": (request.direction != Direction::Up).then_some(down),
    })
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
    let rate = args.rate.as_deref().map(|rate| settings::rate("--rate", rate)).transpose()?;
    let rate = rate.and_then(NonZeroU64::new);
    let message_size = match &args.messages {
        None => rate.map_or(message_size, |rate| size_at(rate, message_size)),
        Some(text) => usize::try_from(settings::size("--messages", text)?)
            .ok()
            .filter(|n| (1..=MESSAGE_MAX).contains(n))
            .ok_or_else(|| Failure::usage(format!("--messages {text}: not from 1 B to 1 MiB")))?,
    };
    Ok(Request { direction, message_size, time, bytes, rate })
}

/// The amount that this end is to send or to receive, if that is known.
fn content(request: &Request) -> Option<Total> {
    match request.direction {
        Direction::Up => request.bytes.map(Total::Sent),
        Direction::Down => request.bytes.map(Total::Received),
        Direction::Both => None,
    }
}

/// The size of messages at a rate: the data of [`MESSAGE_TIME`] in whole packets, at least one and
/// at most those of `bulk`.
fn size_at(rate: NonZeroU64, bulk: usize) -> usize {
    let packet = (bulk / transport::CHUNKS_PER_MESSAGE).max(1);
    let bytes = u128::from(rate.get()) * MESSAGE_TIME.as_millis() / 8_000;
    let packets = bytes / packet as u128;
    packet * packets.clamp(1, transport::CHUNKS_PER_MESSAGE as u128) as usize
}

/// Hears what the server says to our request.
/// Makes a request that was not made yet, once the server knows what relays are for, and hears the
/// answer.
async fn ask(association: &Association, request: Option<&Request>, peer: &str) -> Answer {
    if let Some(request) = request {
        let told = association.direct_only_told(DIRECT_PATH_TIME_MAX).await;
        match told {
            Ok(()) => {}
            Err(DirectPathError::Closed(closed)) => {
                let failed = failure(&Broken::Closed(closed.clone()), peer);
                return Answer::Ended(closed, failed);
            }
            Err(error) => return Answer::Failed(transport::no_direct_path(&error, peer)),
        }
        if let Err(broken) = send(association, Frame::Request(*request)).await {
            return Answer::Failed(failure(&broken, peer));
        }
    }
    hear_accept(association, peer).await
}

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

/// Why a measurement did not come to its end.
enum Stopped {
    /// The association or its peer failed.
    Broken(Broken),
    /// This end cannot go on.
    Here(Failure),
    /// The user stopped it.
    Interrupted,
}

impl Stopped {
    /// The reason for the server.
    fn reason(&self) -> &'static str {
        match self {
            Stopped::Broken(_) => "protocol error",
            Stopped::Here(_) => "the client stopped",
            Stopped::Interrupted => "interrupted",
        }
    }

    fn failure(self, peer: &str) -> Failure {
        match self {
            Stopped::Broken(broken) => failure(&broken, peer),
            Stopped::Here(failure) => failure,
            Stopped::Interrupted => Failure::failed("interrupted"),
        }
    }
}

/// Runs the measurement, and reports its intervals meanwhile.
async fn measure(
    run: &Run<'_>,
    request: &Request,
    intervals: &mut Intervals<'_>,
) -> std::result::Result<Measured, Stopped> {
    let played = tokio::select! {
        played = run.play(request, request.direction != Direction::Down) => played,
        failure = intervals.report() => return Err(Stopped::Here(failure)),
    };
    let (ours, theirs) = played.map_err(Stopped::Broken)?;
    let latency_p99_s = run.latency_p99_s();
    intervals.finish(theirs.bytes, ours.bytes).map_err(Stopped::Here)?;
    let (up, down) = (Carried::from(theirs), Carried::from(ours));
    Ok(Measured { up, down, cpu: ours.cpu, peer_cpu: Some(theirs.cpu), latency_p99_s })
}

/// The end of the record of a measurement.
fn recorded(ended: &std::result::Result<Measured, Stopped>) -> Recorded {
    let arrived = ended.as_ref().ok().map(|measured| &measured.up);
    Recorded {
        completed: arrived.is_some(),
        content_bytes: arrived.map(|up| up.bytes),
        transfer_time_s: arrived.map(|up| up.seconds),
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
fn text(request: &Request, measured: &Measured, carried: &CarriedBy<'_>) -> String {
    let Measured { up, down, cpu, peer_cpu, .. } = measured;
    let direction = |name: &str, carried: &Carried| {
        let (bytes, rate) = (size(carried.bytes), bit_rate(carried.goodput_bps as f64));
        format!("{name}: {bytes} in {:.2} s, {rate}\n", carried.seconds)
    };
    let mut text = String::new();
    if request.direction != Direction::Down {
        text += &direction("to the server", up);
    }
    if request.direction != Direction::Up {
        text += &direction("from the server", down);
    }
    if let Some(shares) = shares::text(up.bytes + down.bytes, carried.shares) {
        text += &format!("  {shares}\n");
    }
    for path in carried.paths {
        text += &path_text(path, carried);
    }
    let (here, there) = (cpu.as_secs_f64(), peer_cpu.unwrap_or_default().as_secs_f64());
    text + &format!("processor time: {here:.2} s here, {there:.2} s at the server\n")
}

/// A path in the result as a person reads it.
fn path_text(path: &PathReport, carried: &CarriedBy<'_>) -> String {
    let stats = &path.stats;
    let ms = |rtt: Duration| format!("{:.2} ms", rtt.as_secs_f64() * 1e3);
    let state = state_words(stats.state.name(), path.suppressed.is_some());
    format!(
        "  path {} ({}): {state}, {} retransmissions, RTT {}, MTU {}\n",
        path.path,
        path.called(carried.paths, carried.detail),
        stats.counters.retransmissions,
        stats.srtt.map_or("-".to_owned(), ms),
        stats.mtu
    )
}

/// The latency of messages as a person reads it.
fn latency_text(p99_s: f64) -> String {
    format!("message latency: 99 of 100 within {:.1} ms\n", p99_s * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_data_of_ten_milliseconds_in_whole_packets() {
        let packet = 1400;
        let size = |rate| size_at(NonZeroU64::new(rate).unwrap(), packet * 32);
        assert_eq!(size(1_000), packet);
        assert_eq!(size(10_000_000), packet * 8); // 12500 bytes
        assert_eq!(size(u64::MAX), packet * 32);
    }
}
