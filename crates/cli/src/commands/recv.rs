//! `manypath recv`: listens, prints a ticket, and receives from whoever shows its token.

mod announce;
mod directory;
mod session;
mod target;

use std::sync::Arc;
use std::time::Duration;

use manypath::config::Config;
use manypath::{BindError, Endpoint, Relay, Security, SocketError};
use manypath_files::SystemDisk;
use manypath_files::sink::{Holders, Store};
use manypath_names::Proof;
use manypath_transfer::password::Secret;
use manypath_transfer::{KEEP_FROM, Options, Receiver, Reception, TRANSFERS_MAX};
use manypath_trust::Code;
use manypath_trust::password::Password;
use tokio::task::JoinSet;

use crate::args::{DEFAULT_PORT, ListenArgs, RecvArgs};
use crate::commands::names::Announced;
use crate::connect::relayed::{self, RelayedPlaces};
use crate::connect::security::Serving;
use crate::connect::strangers::{StrangerLines, TICK};
use crate::connect::token;
use crate::connect::token::Source;
use crate::connect::transport::{self, Listening};
use crate::connect::uplinks;
use crate::control::Control;
use crate::failure::{Failure, Result};
use crate::live::Views;
use crate::screen::Screen;
use crate::screen::output::{self, Out};
use crate::settings;
use crate::signals;
use crate::signals::interrupted;
use announce::Announcement;
use directory::make_directory;
use session::Sessions;
use target::Place;

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
    let stall_limit = settings::stall_limit(&args.stall_timeout)?;
    let target = target(&args, &screen)?;
    let out = if args.stdout { Out::Error } else { Out::Output };
    let preset = config.preset;
    let security = serving.security.clone();
    let relays = relayed::relays(&args.via, &screen).await?;
    check_code(&args, chosen, &relays)?;
    let endpoint = open(config, &args, relays, security, &screen)?;
    let (addresses, port) = transport::told_place(&endpoint, args.via.relay_use.wanted());
    let _control = Control::start(&endpoint, &views, &screen, &args.report);
    transport::say_sockets(&endpoint, &screen);
    uplinks::say_left_out(&args.listen.listen, &screen);
    let relayed = RelayedPlaces::wait(&endpoint, &args.via, &screen).await?;
    let shown = match &code {
        Some(code) if args.code.code => Some(relayed.code(code.clone())?),
        _ => None,
    };
    let _relayed_watch = relayed.watch(&endpoint, shown.clone(), &screen);
    let proof = if code.is_some() { Proof::Code } else { Proof::Token };
    let announced = Announced::start(args.name.name.as_ref(), &serving, proof, &endpoint, &screen)?;
    let announcement = Announcement {
        args: &args,
        screen: &screen,
        out,
        serving: &serving,
        addresses,
        port,
        relayed,
        token,
        code: code.as_ref(),
        shown,
    };
    signals::listen();
    let waiting = announcement.say()?;
    views.open(waiting);
    let secret = Secret::new(password, chosen);
    let secret = match &code {
        Some(code) => secret.with_code(code.password()),
        None => secret,
    };
    let once = args.once || args.stdout;
    let receiver = Receiver { secret: Some(secret), target };
    let sessions = Sessions {
        reception: Reception::new(receiver, if once { 1 } else { TRANSFERS_MAX }),
        options: Options { stall_limit, progress_every: None, stop: signals::stop() },
        lines: StrangerLines::new(screen.clone()),
        preset,
        screen,
        report: args.report,
        out,
        progress_records: args.progress,
        is_stream: args.stdout,
    };
    let end = serve(&endpoint, Arc::new(sessions), once).await;
    views.close().await;
    announced.stop().await;
    let _ = tokio::time::timeout(CLOSE_TIME, endpoint.close()).await;
    end
}

/// Opens the endpoint. Without `--port` and where another program has the usual port, takes a free
/// one: the ticket tells senders.
fn open(
    config: Config,
    args: &RecvArgs,
    relays: Vec<Relay>,
    security: Security,
    screen: &Screen,
) -> Result<Endpoint> {
    let port = args.listen.port.unwrap_or(DEFAULT_PORT);
    let relay_use = args.via.relay_use.wanted();
    let relay_numbers = args.code.code;
    let ListenArgs { listen: bind, ip, .. } = &args.listen;
    let listening = Listening { bind, port, ip: *ip, relays, relay_use, relay_numbers };
    if args.listen.port.is_some() {
        return transport::open(config, listening, security);
    }
    match transport::try_open(config.clone(), listening.clone(), security.clone()) {
        Err(BindError::Socket(SocketError::InUse(_))) => {
            let endpoint = transport::open(config, Listening { port: 0, ..listening }, security)?;
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

/// Fails if there is to be a code that no sender could use.
fn check_code(args: &RecvArgs, chosen: bool, relays: &[Relay]) -> Result<()> {
    if !args.code.code {
        return Ok(());
    }
    if chosen {
        return Err(Failure::usage("a code takes the place of a token of your own")
            .hint("unset MANYPATH_TOKEN, or leave out --code"));
    }
    if relays.is_empty() {
        return Err(Failure::usage("a code needs a relay, which tells senders where this host is")
            .hint(
                "name one with --via turn:USER:PASSWORD@HOST or in MANYPATH_RELAY; in one network, \
                 --name does without",
            ));
    }
    Ok(())
}

/// The code of a receiver that shows one. A token that its user chose takes the place of the code
/// of a name.
fn code(args: &RecvArgs, serving: &Serving, chosen: bool) -> Result<Option<Code>> {
    if args.code.code {
        return Code::random_words().map(Some).map_err(|e| Failure::failed(e.to_string()));
    }
    if args.name.name.is_none() || chosen || serving.key().is_none() {
        return Ok(None);
    }
    Code::random().map(Some).map_err(|e| Failure::failed(e.to_string()))
}

/// Where the files go.
fn target(args: &RecvArgs, screen: &Screen) -> Result<Place> {
    let max_size = args.max_size.as_deref().map(|text| settings::size("--max-size", text));
    let max_size = max_size.transpose()?;
    if args.stdout {
        return Ok(Place::StandardOutput { max_size });
    }
    store(args, max_size, screen).map(Place::Directory)
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
async fn serve(endpoint: &Endpoint, shared: Arc<Sessions>, once: bool) -> Result<()> {
    let mut ticks = tokio::time::interval(TICK);
    let mut sessions = JoinSet::new();
    loop {
        tokio::select! {
            association = endpoint.accept() => {
                let Some(association) = association else {
                    return Err(Failure::failed("the endpoint was closed"));
                };
                let shared = shared.clone();
                sessions.spawn(async move { shared.session(association).await });
            }
            _ = ticks.tick() => shared.lines.tick(),
            Some(ended) = sessions.join_next() => {
                // A session that panicked has said so; the others go on.
                let Ok(Some(end)) = ended else { continue };
                if once {
                    return end;
                }
                if let Err(failure) = end {
                    shared.screen.line(&format!("manypath: {failure}"));
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
                shared.tell_of_nobody(&failure)?;
                return Err(failure);
            }
        }
    }
}
