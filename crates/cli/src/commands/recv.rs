//! `manypath recv`: listens, prints a ticket, and receives from whoever shows its token.

mod announce;
mod directory;

use std::sync::Arc;
use std::time::Duration;

use manypath::config::Config;
use manypath::{Association, BindError, Endpoint, Security, SocketError};
use manypath_files::SystemDisk;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::args::{DEFAULT_PORT, RecvArgs};
use crate::commands::names::Announced;
use crate::connect::security::Serving;
use crate::connect::strangers::{Guesses, StrangerLines, TICK};
use crate::connect::token;
use crate::connect::token::Source;
use crate::connect::transport;
use crate::connect::uplinks;
use crate::control::Control;
use crate::failure::{Failure, Result};
use crate::live::Views;
use crate::screen::Screen;
use crate::screen::output::{self, Out};
use crate::settings;
use crate::signals;
use crate::signals::interrupted;
use crate::transfer::frame::reason;
use crate::transfer::receiver::Receiver;
use crate::transfer::sink::{Holders, Store};
use crate::transfer::stall;
use crate::transfer::target::Target;
use announce::Announcement;
use directory::make_directory;
use manypath_names::Proof;
use manypath_transfer::password::Secret;
use manypath_trust::Code;
use manypath_trust::password::Password;

/// The message for an address that showed too many wrong tokens, whatever it shows now.
pub(crate) const TOO_MANY_GUESSES: &str =
    "busy: too many wrong tokens from your address; wait some seconds";
/// Shorter files are sent again as a whole after an interruption, in bytes: to keep what arrived of
/// them costs more time than that saves.
const KEEP_FROM: u64 = 1 << 20;
/// Transfers at a time.
const TRANSFERS_MAX: usize = 8;
/// How long a finished endpoint may take to say good-bye.
const CLOSE_TIME: Duration = Duration::from_millis(100);

/// `manypath recv`.
pub(crate) async fn run(args: RecvArgs) -> Result<()> {
    if args.stdout {
        output::reserve();
    }
    let config = settings::config(&args.transport)?;
    let screen = Screen::new(&args.report);
    let mut views = Views::start(&args.live, "recv", &screen).await?;
    let serving = Serving::new(&args.security, &screen)?;
    let (token, chosen) = token::to_serve(source(&args), serving.is_protected(), &screen)?;
    let password = Password::new(token.clone()).map_err(|e| Failure::usage(e.to_string()))?;
    let code = code(&args, &serving, chosen)?;
    let stall_limit = stall::limit(&args.stall_timeout)?;
    let target = target(&args, &screen)?;
    let out = if args.stdout { Out::Error } else { Out::Output };
    let preset = config.preset;
    let security = serving.security.clone();
    let endpoint = open(config, &args, security, &screen)?;
    let addresses = transport::reachable(&endpoint);
    let port = endpoint.udp_port();
    let _control = Control::start(&endpoint, &views, &screen, &args.report);
    for note in endpoint.notes() {
        screen.line(note);
    }
    uplinks::say_left_out(&args.listen.listen, &screen);
    let secret = Secret::new(password, chosen);
    let receiver = Receiver {
        secret: match &code {
            Some(code) => secret.with_code(code.password()),
            None => secret,
        },
        target,
        stall_limit,
        preset,
        screen: screen.clone(),
        report: args.report,
        out,
        progress_records: args.progress,
    };
    let proof = if code.is_some() { Proof::Code } else { Proof::Token };
    let announced = Announced::start(args.name.name.as_ref(), &serving, proof, &endpoint, &screen)?;
    let announcement = Announcement {
        args: &args,
        screen: &screen,
        out,
        serving: &serving,
        addresses,
        port,
        token,
        code: code.as_ref(),
    };
    signals::listen();
    let waiting = announcement.say()?;
    views.open(waiting);
    let end = serve(&endpoint, Arc::new(receiver), args.once || args.stdout).await;
    views.close().await;
    announced.stop().await;
    let _ = tokio::time::timeout(CLOSE_TIME, endpoint.close()).await;
    end
}

/// Opens the endpoint. Without `--port` and where another program has the usual port, takes a free
/// one: the ticket tells senders.
fn open(config: Config, args: &RecvArgs, security: Security, screen: &Screen) -> Result<Endpoint> {
    let bind = &args.listen.listen;
    if let Some(port) = args.listen.port {
        return transport::open(config, bind, port, security);
    }
    match transport::try_open(config.clone(), bind, DEFAULT_PORT, security.clone()) {
        Err(BindError::Socket(SocketError::InUse(_))) => {
            let endpoint = transport::open(config, bind, 0, security)?;
            screen.line(&format!(
                "another program has UDP port {DEFAULT_PORT}; this one takes {}",
                endpoint.udp_port()
            ));
            Ok(endpoint)
        }
        opened => opened.map_err(transport::bind_failure),
    }
}

/// Where the token is, if the user chose one.
fn source(args: &RecvArgs) -> Option<Source<'_>> {
    Source::new(args.token.as_ref(), args.token_file.as_deref())
}

/// The code of a receiver with a name. A token that its user chose takes its place.
fn code(args: &RecvArgs, serving: &Serving, chosen: bool) -> Result<Option<Code>> {
    if args.name.name.is_none() || chosen || serving.key().is_none() {
        return Ok(None);
    }
    Code::random().map(Some).map_err(|e| Failure::failed(e.to_string()))
}

/// Where the files go.
fn target(args: &RecvArgs, screen: &Screen) -> Result<Target> {
    let max_size = args.max_size.as_deref().map(|text| settings::size("--max-size", text));
    let max_size = max_size.transpose()?;
    if args.stdout {
        return Ok(Target::StandardOutput { max_size });
    }
    store(args, max_size, screen).map(Target::Directory)
}

/// The store for the files. Finds out now, not after a long transfer, if the directory takes
/// files, and removes what receivers that were killed left in it.
fn store(args: &RecvArgs, max_size: Option<u64>, screen: &Screen) -> Result<Store<SystemDisk>> {
    let mut store = Store {
        disk: SystemDisk,
        dir: args.dir.clone(),
        overwrite: args.overwrite,
        hidden: args.hidden,
        max_size,
        unnamed: !args.named_parts,
        keep_from: (!args.no_resume).then_some(KEEP_FROM),
        holders: Holders::default(),
    };
    make_directory(&args.dir, screen)?;
    match store.start() {
        Ok(0) => {}
        Ok(n) => screen.line(&format!(
            "removed {n} unfinished file{} of a receiver that was killed",
            if n == 1 { "" } else { "s" }
        )),
        Err(e) => {
            return Err(Failure::failed(format!("cannot write into {}: {e}", args.dir.display()))
                .hint("look at its permissions, or name another directory with --dir"));
        }
    }
    Ok(store)
}

/// Receives until interrupted, or with `once` until one admitted sender is done.
async fn serve(endpoint: &Endpoint, receiver: Arc<Receiver>, once: bool) -> Result<()> {
    let door = Door { lines: StrangerLines::new(receiver.screen.clone()), guesses: Arc::default() };
    let mut ticks = tokio::time::interval(TICK);
    let transfers = Arc::new(Semaphore::new(if once { 1 } else { TRANSFERS_MAX }));
    let mut sessions = JoinSet::new();
    loop {
        tokio::select! {
            association = endpoint.accept() => {
                let Some(association) = association else {
                    return Err(Failure::failed("the endpoint was closed"));
                };
                let (receiver, transfers) = (receiver.clone(), transfers.clone());
                let door = door.clone();
                sessions.spawn(async move {
                    session(&receiver, association, &transfers, &door).await
                });
            }
            _ = ticks.tick() => door.lines.tick(),
            Some(ended) = sessions.join_next() => {
                // A session that panicked has said so; the others go on.
                let Ok(Some(end)) = ended else { continue };
                if once {
                    return end;
                }
                if let Err(failure) = end {
                    receiver.screen.line(&format!("manypath: {failure}"));
                }
            }
            () = interrupted() => {
                let mut failed = once;
                // Sessions notice the interruption themselves; one may have received everything.
                while let Some(ended) = sessions.join_next().await {
                    match ended {
                        Ok(Some(end)) if once => return end,
                        Ok(None | Some(Ok(()))) => {}
                        Ok(Some(Err(failure))) => return Err(failure),
                        Err(_) => failed = true,
                    }
                }
                if !failed {
                    return Ok(());
                }
                let failure = Failure::failed("interrupted");
                receiver.tell_of_nobody(&failure)?;
                return Err(failure);
            }
        }
    }
}

/// The state shared by all strangers.
#[derive(Clone)]
struct Door {
    lines: StrangerLines,
    guesses: Arc<Guesses>,
}

/// Hears one peer out. Returns how its transfer ended, or `None` for a stranger.
async fn session(
    receiver: &Receiver,
    association: Association,
    transfers: &Semaphore,
    door: &Door,
) -> Option<Result<()>> {
    let peer = association.peer()?;
    if !door.guesses.may(peer.ip(), Instant::now()) {
        door.lines.say(&format!("rejected {peer}: too many wrong tokens from its address"));
        transport::abort(&association, TOO_MANY_GUESSES).await;
        return None;
    }
    let admitted = tokio::select! {
        admitted = receiver.admit(association.clone(), peer) => admitted,
        () = interrupted() => return None,
    };
    let admitted = match admitted {
        Ok(admitted) => admitted,
        Err(why) => {
            if why.starts_with(reason::NOT_AUTHORISED) {
                door.guesses.wrong(peer.ip(), Instant::now());
            }
            door.lines.say(&format!("rejected {peer}: {why}"));
            return None;
        }
    };
    let Ok(_transfer) = transfers.try_acquire() else {
        transport::abort(&association, reason::BUSY).await;
        return None;
    };
    association.admit();
    // Before the first content, so that its arrival can be measured from here.
    if receiver.welcome(&admitted).await.is_err() {
        return None;
    }
    let (result, failure) = receiver.receive(admitted).await;
    if receiver.report.json
        && let Err(failure) = receiver.out.print(&result.json_line())
    {
        return Some(Err(failure));
    }
    Some(failure.map_or(Ok(()), Err))
}
