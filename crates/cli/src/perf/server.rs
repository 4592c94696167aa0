//! `manypath perf server`.

use std::sync::Arc;
use std::time::Duration;

use manypath::{Association, Endpoint};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::frame::{Direction, Frame, TIME_MAX};
use super::run::{Broken, Carried, Run, next_frame, send};
use crate::args::{PerfServerArgs, ReportArgs};
use crate::failure::{Failure, Result};
use crate::paths::PathWatch;
use crate::progress::{Screen, bit_rate, size};
use crate::transport;
use crate::{settings, show};

/// Measurements at a time; more would measure each other.
const RUNS_MAX: usize = 4;
/// How long a client may take to say what it wants, and to end once its time is over.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a finished endpoint may take to say good-bye.
const CLOSE_TIME: Duration = Duration::from_millis(100);

/// `manypath perf server`.
pub(crate) async fn run(args: PerfServerArgs) -> Result<()> {
    let config = settings::config(&args.transport)?;
    let screen = Screen::new(&args.report);
    let preset = config.preset;
    let endpoint = transport::open(config, &args.listen.listen, args.listen.port, true)?;
    let addresses: Vec<String> =
        transport::reachable(&endpoint).iter().map(ToString::to_string).collect();
    let port = endpoint.udp_port();
    if args.report.json {
        let event = json!({ "event": "listening", "addresses": addresses, "port": port });
        show::print(&format!("{event}\n"))?;
    } else {
        screen.line(&format!("Listening on {}, port {port}", addresses.join(", ")));
    }
    let end = serve(&endpoint, &args, &screen, preset).await;
    let _ = tokio::time::timeout(CLOSE_TIME, endpoint.close()).await;
    end
}

async fn serve(
    endpoint: &Endpoint,
    args: &PerfServerArgs,
    screen: &Screen,
    preset: &'static str,
) -> Result<()> {
    let runs = Arc::new(Semaphore::new(RUNS_MAX));
    let mut sessions = JoinSet::new();
    loop {
        tokio::select! {
            association = endpoint.accept() => {
                let Some(association) = association else {
                    return Err(Failure::failed("the endpoint was closed"));
                };
                let Ok(permit) = runs.clone().try_acquire_owned() else {
                    association.abort("busy: too many measurements at a time");
                    continue;
                };
                let (report, screen) = (args.report, screen.clone());
                sessions.spawn(async move {
                    let end = session(&association, &report, &screen, preset).await;
                    drop(permit);
                    end
                });
            }
            Some(ended) = sessions.join_next() => match ended {
                Ok(end) if args.once => return end,
                Ok(Err(failure)) => screen.line(&format!("manypath: {failure}")),
                // A session that panicked has said so; the others go on.
                Ok(Ok(())) | Err(_) => {}
            },
            () = transport::interrupted() => {
                return match args.once {
                    true => Err(Failure::failed("interrupted")),
                    false => Ok(()),
                };
            }
        }
    }
}

/// One measurement.
async fn session(
    association: &Association,
    report: &ReportArgs,
    screen: &Screen,
    preset: &'static str,
) -> Result<()> {
    let peer = association.peer().map_or_else(|| "a client".to_owned(), |peer| peer.to_string());
    let watch = PathWatch::start(association, screen.clone());
    let playing = async {
        let Frame::Request(request) = next_frame(association).await? else {
            return Err(Broken::Protocol);
        };
        send(association, Frame::Accept).await?;
        let run = Run::new(association, report.json);
        let sends = request.direction != Direction::Up;
        let (ours, theirs) = run.play(&request, sends).await?;
        Ok((request, ours, theirs, run.latency_p99_s()))
    };
    let played = tokio::time::timeout(TIME_MAX + PATIENCE, playing).await;
    let (request, ours, theirs, latency_p99_s) = match played {
        Ok(Ok(played)) => played,
        Ok(Err(Broken::Protocol)) => {
            transport::abort(association, "protocol error: `manypath perf` is spoken here").await;
            return Err(Failure::failed(format!("{peer} does not speak the measurement protocol")));
        }
        Ok(Err(Broken::Closed(closed))) => return Err(transport::closed_failure(&closed, &peer)),
        Ok(Err(Broken::Send(e))) => return Err(transport::send_failure(&e, &peer)),
        Err(_) => {
            transport::abort(association, "the measurement took too long").await;
            return Err(Failure::failed(format!("{peer} took longer than an hour")));
        }
    };
    // The client says good-bye; if it does not, the measurement is over all the same.
    transport::let_peer_finish(association).await;
    let (up, down) = (Carried::from(ours), Carried::from(theirs));
    let bytes = up.bytes + down.bytes;
    let cpu = ours.cpu.as_secs_f64();
    screen.line(&format!(
        "{peer}: {} at {}, {cpu:.2} s of processor time",
        size(bytes),
        bit_rate((up.goodput_bps + down.goodput_bps) as f64)
    ));
    if report.json {
        let result = json!({
            "role": "server",
            "preset": preset,
            "completed": true,
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
        show::print(&format!("{result}\n"))?;
    }
    Ok(())
}
