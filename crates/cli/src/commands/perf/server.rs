//! `manypath perf server`.

use std::sync::Arc;
use std::time::Duration;

use manypath::{Association, Endpoint, RelayUse};
use serde_json::json;
use tokio::task::JoinSet;

use super::frame::{Direction, Frame, Request};
use super::places::Places;
use super::run::{Broken, Carried, Measured, Run, next_frame, send};
use crate::args::{DEFAULT_PORT, ListenArgs, PerfServerArgs, ReportArgs};
use crate::connect::relayed::{self, RelayedPlaces, listening_on};
use crate::connect::security::{NOT_ENCRYPTED, Serving, peer_key};
use crate::connect::strangers::{StrangerLines, TICK};
use crate::connect::transport::{self, Listening};
use crate::connect::uplinks;
use crate::control::Control;
use crate::failure::{Failure, Result};
use crate::live::Views;
use crate::paths::PathWatch;
use crate::screen::Screen;
use crate::screen::figures::{bit_rate, size};
use crate::screen::output;
use crate::screen::shares;
use crate::settings;
use crate::signals::interrupted;

/// How long a client may take to say what it wants.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);
/// How long it may take to end once its time is over.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a finished endpoint may take to say good-bye.
const CLOSE_TIME: Duration = Duration::from_millis(100);

/// `manypath perf server`.
pub(crate) async fn run(args: PerfServerArgs) -> Result<()> {
    let config = settings::config(&args.transport)?;
    let screen = Screen::new(&args.report);
    let preset = config.preset;
    let mut views = Views::start(&args.live, "perf server", &screen).await?;
    let serving = Serving::new(&args.security, &screen)?;
    let security = serving.security.clone();
    let port = args.listen.port.unwrap_or(DEFAULT_PORT);
    let relays = relayed::relays(&args.via, &screen).await?;
    let relay_use = args.via.relay_use.wanted();
    let ListenArgs { listen: bind, ip, .. } = &args.listen;
    let listening = Listening { bind, port, ip: *ip, relays, relay_use, relay_numbers: false };
    let endpoint = transport::open(config, listening, security)?;
    let (addresses, port) = transport::told_place(&endpoint, relay_use);
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let _control = Control::start(&endpoint, &views, &screen, &args.report);
    transport::say_sockets(&endpoint, &screen);
    uplinks::say_left_out(&args.listen.listen, &screen);
    let relayed = RelayedPlaces::wait(&endpoint, &args.via, &screen).await?;
    let _relayed_watch = relayed.watch(&endpoint, None, &screen);
    if args.report.json {
        let event = json!({
            "event": "listening",
            "addresses": addresses,
            "port": port,
            "relayed": relayed.json(),
            "encrypted": serving.is_protected(),
            "key": serving.key().map(|key| key.to_string()),
        });
        output::print(&format!("{event}\n"))?;
    } else {
        if !serving.is_protected() {
            screen.line(NOT_ENCRYPTED);
        }
        screen.line(&match relay_use {
            RelayUse::Only => listening_on(&[]),
            _ => format!("{}, port {port}", listening_on(&addresses)),
        });
        relayed.lines().for_each(|line| screen.line(&line));
        if args.security.identity.is_some()
            && let Some(key) = serving.key()
        {
            screen.line(&format!("Key of this server: {key}"));
        }
    }
    let place = listening_on(&addresses);
    views.open(format!("{place}, port {port}. Waiting for clients: manypath perf client HOST"));
    let end = serve(&endpoint, &args, &screen, preset).await;
    views.close().await;
    let _ = tokio::time::timeout(CLOSE_TIME, endpoint.close()).await;
    end
}

async fn serve(
    endpoint: &Endpoint,
    args: &PerfServerArgs,
    screen: &Screen,
    preset: &'static str,
) -> Result<()> {
    let server =
        Server { places: Places::new(), report: args.report, screen: screen.clone(), preset };
    let server = Arc::new(server);
    let lines = StrangerLines::new(screen.clone());
    let mut ticks = tokio::time::interval(TICK);
    let mut sessions = JoinSet::new();
    loop {
        tokio::select! {
            association = endpoint.accept() => {
                let Some(association) = association else {
                    return Err(Failure::failed("the endpoint was closed"));
                };
                let server = Arc::clone(&server);
                sessions.spawn(async move { server.session(&association).await });
            }
            Some(ended) = sessions.join_next() => match ended {
                Ok(Ended::Measured(end)) if args.once => return end,
                Ok(Ended::Measured(Err(failure))) => lines.say(&format!("manypath: {failure}")),
                Ok(Ended::SentAway(why)) => lines.say(&why),
                // A session that panicked has said so; the others go on.
                Ok(Ended::Measured(Ok(()))) | Err(_) => {}
            },
            _ = ticks.tick() => {
                server.places.look();
                lines.tick();
            }
            () = interrupted() => {
                return if args.once { Err(Failure::failed("interrupted")) } else { Ok(()) };
            }
        }
    }
}

/// The state shared by all measurements.
struct Server {
    places: Places,
    report: ReportArgs,
    screen: Screen,
    preset: &'static str,
}

/// How a client's time here ended.
enum Ended {
    /// With a measurement, or one that failed.
    Measured(Result<()>),
    /// Without, for this reason.
    SentAway(String),
}

impl Server {
    /// Hears what a client wants, and measures if there is a place.
    async fn session(&self, association: &Association) -> Ended {
        let peer = association.peer().map_or_else(|| "a client".to_owned(), |p| p.to_string());
        let asked = tokio::time::timeout(REQUEST_TIME_MAX, next_frame(association)).await;
        let request = match asked {
            Ok(Ok(Frame::Request(request))) => request,
            Ok(Err(Broken::Closed(closed))) => {
                return Ended::SentAway(format!("{peer} disconnected: {closed}"));
            }
            Err(_) => {
                transport::abort(association, "protocol error: no request in time").await;
                return Ended::SentAway(format!("rejected {peer}: it made no request"));
            }
            Ok(_) => {
                transport::abort(association, OTHER_PROTOCOL).await;
                return Ended::SentAway(format!(
                    "rejected {peer}: it does not speak the measurement protocol"
                ));
            }
        };
        let Some(_place) = self.places.take(association).await else {
            transport::abort(association, "busy: too many measurements at a time").await;
            return Ended::SentAway(format!("rejected {peer}: too many measurements at a time"));
        };
        association.admit();
        if let Err(failure) = transport::direct_path(association, &peer).await {
            return Ended::Measured(Err(failure));
        }
        let Server { report, screen, preset, .. } = self;
        Ended::Measured(measure(association, &request, &peer, report, screen, preset).await)
    }
}

/// The message for clients of another protocol.
const OTHER_PROTOCOL: &str = "protocol error: this is a `manypath perf` server";

/// One measurement.
async fn measure(
    association: &Association,
    request: &Request,
    peer: &str,
    report: &ReportArgs,
    screen: &Screen,
    preset: &'static str,
) -> Result<()> {
    let watch = PathWatch::start(association, screen.clone(), None);
    let (measured, failure) = play(association, request, peer, report).await?;
    let Measured { up, down, cpu, latency_p99_s, .. } = measured;
    let bytes = up.bytes + down.bytes;
    let cpu = cpu.as_secs_f64();
    if failure.is_none() {
        // The client says good-bye; if it does not, the measurement is over all the same.
        transport::let_peer_finish(association).await;
        screen.line(&format!(
            "{peer}: {} at {}, {cpu:.2} s of processor time",
            size(bytes),
            bit_rate((up.goodput_bps + down.goodput_bps) as f64)
        ));
        let shares = shares::text(bytes, &watch.shares(association));
        shares.iter().for_each(|shares| screen.line(&format!("  {shares}")));
    }
    if report.json {
        let result = json!({
            "role": "server",
            "preset": preset,
            "encrypted": association.is_protected(),
            "peer_key": peer_key(association),
            "completed": failure.is_none(),
            "error": failure.as_ref().map(|failure| &failure.message),
            "peer": peer,
            "bytes": bytes,
            "seconds": up.seconds.max(down.seconds),
            "goodput_bps": up.goodput_bps + down.goodput_bps,
            "cpu_seconds": cpu,
            "message_latency_p99_s": latency_p99_s,
            "up": (request.direction != Direction::Down).then_some(up),
            "down": (request.direction != Direction::Up).then_some(down),
            "paths": watch.report(association),
            "notices": watch.notices(),
        });
        output::print(&format!("{result}\n"))?;
    }
    failure.map_or(Ok(()), Err)
}

/// Plays the server's part. The figures, and why the measurement ended early, if it did.
async fn play(
    association: &Association,
    request: &Request,
    peer: &str,
    report: &ReportArgs,
) -> Result<(Measured, Option<Failure>)> {
    let lost = |broken| match broken {
        Broken::Protocol => {
            Failure::failed(format!("{peer} does not speak the measurement protocol"))
        }
        Broken::Closed(closed) => transport::closed_failure(&closed, peer),
        Broken::Send(e) => transport::send_failure(&e, peer),
    };
    send(association, Frame::Accept).await.map_err(lost)?;
    let run = Run::new(association, report.json);
    let sends = request.direction != Direction::Up;
    let played = tokio::time::timeout(request.time + PATIENCE, run.play(request, sends)).await;
    let (failure, reason) = match played {
        Ok(Ok((ours, theirs))) => {
            let (up, down) = (Carried::from(ours), Carried::from(theirs));
            let (cpu, peer_cpu) = (ours.cpu, Some(theirs.cpu));
            let latency_p99_s = run.latency_p99_s();
            return Ok((Measured { up, down, cpu, peer_cpu, latency_p99_s }, None));
        }
        Ok(Err(broken)) => {
            let reason = matches!(broken, Broken::Protocol).then_some(OTHER_PROTOCOL);
            (lost(broken), reason)
        }
        Err(_) => {
            let what = format!("{peer} took longer than it asked for");
            (Failure::failed(what), Some("the measurement took too long"))
        }
    };
    let sent = association.stats().bytes_acked.min(run.sent());
    let measured = Measured::so_far(&run, run.received(), sent);
    if let Some(reason) = reason {
        transport::abort(association, reason).await;
    }
    Ok((measured, Some(failure)))
}
