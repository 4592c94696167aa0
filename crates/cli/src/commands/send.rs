//! `manypath send`: the sending end of a transfer.

mod failure;
mod receiver;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use manypath::{Association, Endpoint};
use manypath_files::relative::shown;
use manypath_files::source::Source;
use manypath_files::ticket::Ticket;
use manypath_live::Total;
use manypath_trace::Recorded;
use manypath_transfer::{Offer, Options, Plan, Sending, Sent, Tally};

use crate::args::{ReportArgs, SendArgs};
use crate::commands::names;
use crate::connect::dest::Destination;
use crate::connect::near::{Followed, Near, NearEnd};
use crate::connect::rendezvous;
use crate::connect::secret::Sources;
use crate::connect::via;
use crate::failure::{Failure, Result};
use crate::latency::AckLatency;
use crate::live::Views;
use crate::paths::PathWatch;
use crate::screen::Screen;
use crate::screen::output;
use crate::screen::progress::{Counted, Progress};
use crate::screen::report::{FileLog, TransferResult};
use crate::settings;
use crate::signals::{self, interrupted};
use failure::{broken_off, no_plan};
use receiver::Receiver;

/// The argument that stands for standard input.
const STANDARD_INPUT: &str = "-";
/// The hint after a transfer was interrupted.
const GO_ON: &str = "run the same command again: it sends only what is missing";
/// The hint if there was content of unknown size, which cannot be resumed.
const BEGIN_ANEW: &str = "run the same command again: it sends all of its input";

/// `manypath send`.
pub(crate) async fn run(args: SendArgs) -> Result<()> {
    check_order(&args)?;
    let dest = Destination::parse(&args.words.dest)?;
    dest.key(args.security.insecure)?;
    Sources::new(&args, &dest)?;
    let config = settings::config_via(&args.transport, &args.via.via)?;
    let preset = config.preset;
    let limit = settings::duration("--connect-timeout", &args.connect_timeout)?;
    let stall_limit = settings::stall_limit(&args.stall_timeout)?;
    let plan = Plan::new(&sources(&args.words.files), args.name.as_deref()).map_err(no_plan)?;
    let screen = Screen::new(&args.report);
    let dest = look_up(dest, &args, &screen).await?;
    let dest = rendezvous::meet(dest, &args.via.via, &args.bind.bind, &screen).await?;
    let mut views = Views::start(&args.live, "send", &screen).await?;
    for path in plan.skipped() {
        screen.line(&format!("omitted, neither file nor directory: {}", shown(path)));
    }
    let receiver = Receiver::of(&dest, &args, &screen).await?;
    let relays = via::relays(&args.via.via).await?.told(&screen);
    let near = Near::new(config, receiver.security.clone(), &screen)
        .bind(&args.bind)
        .ip(args.ip)
        .relays(relays, &args.relay_peers)
        .relay_use(args.relay_use, !receiver.target.relayed.is_empty())?
        .trace_hops(&args.trace, true)?
        .record(&args.record)?
        .warn_if_plain();
    let message_size = near.message_size(&receiver.remotes);
    let mut near = near.open()?;
    let _control = near.announce(&views, &args.report);

    let mut transfer = Transfer::new(&receiver, args.report.json);
    let offer = Offer::new(plan, receiver.showing.clone()).with_message_size(message_size);
    let opened = open(&near.endpoint, offer, &receiver, limit).await;
    let (done, ended) = match opened {
        Err(failure) => (Err(failure), None),
        Ok(sending) => {
            transfer.tell_settled(&sending, &screen);
            let around = Around {
                screen: &screen,
                report: &args.report,
                views: &mut views,
                near: &mut near,
                stall_limit,
            };
            let (done, ended) = transfer.carry(sending, around).await;
            (done, Some(ended))
        }
    };
    transfer.tell(done, ended, preset, &args.report, &screen)
}

/// The receiver that DEST names, its name looked up in the local network.
async fn look_up(dest: Destination, args: &SendArgs, screen: &Screen) -> Result<Destination> {
    dest.warn_of_file(&args.words.dest, screen);
    via::warn_of_files(&args.via.via, screen);
    if args.security.insecure {
        Ok(dest)
    } else {
        names::look_up(dest, args.security.peer.as_deref(), screen).await
    }
}

/// The files as sources, standard input among them.
fn sources(files: &[PathBuf]) -> Vec<Source> {
    let source = |path: &PathBuf| {
        let is_input = path == Path::new(STANDARD_INPUT);
        if is_input { Source::StandardInput } else { Source::Path(path.clone()) }
    };
    files.iter().map(source).collect()
}

/// Opens the association, and agrees with the receiver on what is sent.
async fn open(
    endpoint: &Endpoint,
    offer: Offer,
    receiver: &Receiver,
    limit: Duration,
) -> Result<Sending> {
    tokio::select! {
        opened = offer.open(endpoint, receiver.target.clone(), limit) => {
            opened.map_err(|error| receiver.not_offered(error))
        }
        () = interrupted() => Err(Failure::failed("interrupted; nothing was sent")),
    }
}

/// Fails if DEST is among the files.
fn check_order(args: &SendArgs) -> Result<()> {
    let is_ticket = |file: &PathBuf| file.to_str().is_some_and(Ticket::looks_like);
    let mut missing =
        args.words.files.iter().filter(|file| !file.exists() && file.as_os_str() != "-");
    let is_file = Path::new(&args.words.dest).exists();
    let what = match missing.find(|file| is_file || is_ticket(file)) {
        None => return Ok(()),
        Some(file) if is_ticket(file) => "the ticket comes last".to_owned(),
        Some(file) => format!(
            "there is no file {}, but there is one called {}: the destination comes last",
            file.display(),
            args.words.dest
        ),
    };
    Err(Failure::usage(what).hint("manypath send FILE... DEST"))
}

/// The measurements of a complete transfer.
struct Measured {
    sent: Sent,
    latency_p99_s: Option<f64>,
}

/// The end of the record of a transfer.
fn recorded(done: &Result<Measured>) -> Recorded {
    let sent = done.as_ref().ok().map(|measured| &measured.sent);
    Recorded {
        completed: sent.is_some(),
        content_bytes: sent.map(|sent| sent.summary.bytes),
        transfer_time_s: sent.map(|sent| sent.time.as_secs_f64()),
    }
}

struct Transfer {
    peer: String,
    /// Files that are left out.
    omitted: usize,
    files: FileLog,
    measures_latency: bool,
    /// Bytes that the receiver had before.
    resumed: Tally,
}

/// The surroundings of a transfer while its files are carried.
struct Around<'a> {
    screen: &'a Screen,
    report: &'a ReportArgs,
    views: &'a mut Views,
    near: &'a mut NearEnd,
    stall_limit: Option<Duration>,
}

/// The association of a transfer that has ended, for its result.
struct Ended {
    association: Association,
    watch: PathWatch,
    /// How long the receiver's buffer was full.
    blocked: Duration,
}

impl Transfer {
    fn new(receiver: &Receiver, measures_latency: bool) -> Transfer {
        Transfer {
            peer: receiver.name.clone(),
            omitted: 0,
            files: FileLog::default(),
            measures_latency,
            resumed: Tally::default(),
        }
    }

    /// Tells what this receiver does not take, and where the rest comes from.
    fn tell_settled(&mut self, sending: &Sending, screen: &Screen) {
        self.omitted = sending.omitted();
        if self.omitted > 0 {
            let files = match self.omitted {
                1 => "1 hidden file".to_owned(),
                hidden => format!("{hidden} hidden files"),
            };
            screen.line(&format!(
                "left out {files}: the receiver takes none without `recv --hidden`"
            ));
        }
        if sending.has_standard_input() && std::io::stdin().is_terminal() {
            screen.line("reading from this terminal until Ctrl-D");
        }
    }

    /// Sends the files, and shows how it goes.
    async fn carry(
        &mut self,
        mut sending: Sending,
        around: Around<'_>,
    ) -> (Result<Measured>, Ended) {
        let Around { screen, report, views, near, stall_limit } = around;
        let association = sending.association().clone();
        let bytes = sending.bytes();
        let Followed { watch, record, routes: _routes } =
            near.follow(&association, bytes.map(Total::Sent), None);
        self.resumed = sending.resumed();
        let counted = Counted::Acked(self.resumed.clone());
        let progress = Progress::start(screen, report, &association, bytes, counted);
        views.open(String::new());
        let go_on = if bytes.is_some() { GO_ON } else { BEGIN_ANEW };
        let latency = self.measures_latency.then(|| Arc::new(AckLatency::start(&association)));
        if let Some(latency) = latency.clone() {
            sending.on_message(move |bytes| latency.handed_over(bytes));
        }
        let options = Options { stall_limit, progress_every: None, stop: signals::stop() };
        let sent = sending.run(&options, |event| self.files.note(&event)).await;
        let done = match sent {
            Ok(sent) => {
                let latency_p99_s = latency.as_deref().and_then(AckLatency::p99_s);
                Ok(Measured { sent, latency_p99_s })
            }
            Err(error) => Err(broken_off(error, &self.peer, go_on)),
        };
        if let Some(record) = record {
            record.finish(recorded(&done), screen).await;
        }
        views.close().await;
        progress.end().await;
        let blocked = association.stats().receive_buffer_blocked;
        (done, Ended { association, watch, blocked })
    }

    /// Tells the result, to a person or as JSON.
    fn tell(
        self,
        done: Result<Measured>,
        ended: Option<Ended>,
        preset: &'static str,
        report: &ReportArgs,
        screen: &Screen,
    ) -> Result<()> {
        let failure = self.failure(&done);
        let error = failure.as_ref().map(|f| f.message.clone());
        let mut result = TransferResult::new(preset, self.files, error);
        let mut shares = Vec::new();
        if let Some(Ended { association, watch, blocked }) = ended {
            shares = watch.shares(&association);
            result.secured(&association);
            (result.paths, result.notices) = (watch.report(&association), watch.notices());
            result.receive_buffer_blocked_s = Some(blocked.as_secs_f64());
        }
        result.resumed_bytes = self.resumed.get();
        result.files_omitted = Some(self.omitted);
        if let Ok(measured) = done {
            result.measured(&measured.sent.summary, measured.sent.time);
            result.message_latency_p99_s = measured.latency_p99_s;
            let sent: u64 = result.paths.iter().map(|path| path.stats.counters.bytes_sent).sum();
            result.overhead = (result.bytes > 0).then(|| sent as f64 / result.bytes as f64);
            if result.completed || result.bytes > 0 {
                result.tell(screen, &shares);
            }
        }
        result.tell_failures(screen);
        if report.json {
            output::print(&result.json_line())?;
        }
        failure.map_or(Ok(()), Err)
    }

    /// Why the command fails, if it does.
    fn failure(&self, done: &Result<Measured>) -> Option<Failure> {
        match done {
            Err(failure) => Some(failure.clone()),
            Ok(_) => self.files.failure(),
        }
    }
}
