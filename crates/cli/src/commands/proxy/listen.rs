//! `manypath proxy listen`: the far side.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use manypath::{Association, Endpoint};
use manypath_files::ticket::Ticket;
use manypath_proxy::rules::Rules;
use manypath_proxy::window::Budget;
use manypath_proxy::{Counters, Options, Session, SessionEnd, Side};
use manypath_trust::Token;
use manypath_trust::password::Password;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{DEFAULTS, counters, hello, memory, message_size, raise_file_limit, with_streams};
use crate::args::{DEFAULT_PORT, ListenArgs, ProxyListenArgs};
use crate::connect::relayed::{self, RelayedPlaces, listening_on};
use crate::connect::security::{NOT_ENCRYPTED, Serving};
use crate::connect::strangers::{StrangerLines, TICK};
use crate::connect::token;
use crate::connect::token::Source;
use crate::connect::transport::{self, Listening};
use crate::connect::uplinks;
use crate::control::Control;
use crate::failure::{Failure, Result};
use crate::live::Views;
use crate::paths::PathWatch;
use crate::screen::Screen;
use crate::screen::figures::size;
use crate::screen::output;
use crate::screen::qr;
use crate::screen::shares::{self, Share};
use crate::settings;
use crate::signals;
use manypath_files::frame::reason;
use manypath_transfer::password::Secret;
use manypath_transfer::{Guesses, TOO_MANY_GUESSES};

/// How long a finished endpoint may take to say good-bye.
const CLOSE_TIME: Duration = Duration::from_millis(100);

/// The state that all clients share.
struct Far {
    secret: Secret,
    instance: u64,
    options: Options,
    streams: u16,
    screen: Screen,
    is_json: bool,
    lines: StrangerLines,
    guesses: Guesses,
}

/// `manypath proxy listen`.
pub(crate) async fn run(args: ProxyListenArgs) -> Result<()> {
    let config = with_streams(settings::config_with(&args.transport, DEFAULTS)?, args.connections);
    let screen = Screen::new(&args.report);
    let mut views = Views::start(&args.live, "proxy listen", &screen).await?;
    let serving = Serving::new(&args.security, &screen)?;
    let source = Source::new(args.token.as_ref(), args.token_file.as_deref());
    let (token, chosen) = token::to_serve(source, serving.is_protected(), &screen)?;
    let password = Password::new(token.clone()).map_err(|e| Failure::usage(e.to_string()))?;
    let options = Options {
        rules: Rules {
            allow: args.allow_target.clone(),
            deny: args.deny_target.clone(),
            deny_private: args.deny_private,
        },
        allow_remote_forwards: args.allow_remote_forwards,
        connections_max: args.connections.into(),
        budget: Budget::new(memory(&args.memory)?),
        message_size: message_size(&config, serving.is_protected()),
    };
    raise_file_limit();
    let streams = config.outbound_streams;
    let security = serving.security.clone();
    let port = args.listen.port.unwrap_or(DEFAULT_PORT);
    let relays = relayed::relays(&args.via, &screen).await?;
    let relay_use = args.via.relay_use.wanted();
    let ListenArgs { listen: bind, ip, .. } = &args.listen;
    let listening = Listening { bind, port, ip: *ip, relays, relay_use, relay_numbers: false };
    let endpoint = transport::open(config, listening, security)?;
    let (addresses, port) = transport::told_place(&endpoint, relay_use);
    let _control = Control::start(&endpoint, &views, &screen, &args.report);
    transport::say_sockets(&endpoint, &screen);
    uplinks::say_left_out(&args.listen.listen, &screen);
    let relayed = RelayedPlaces::wait(&endpoint, &args.via, &screen).await?;
    let _relayed_watch = relayed.watch(&endpoint, None, &screen);
    let far = Far {
        secret: Secret::new(password, chosen),
        instance: random()?,
        options,
        streams,
        screen: screen.clone(),
        is_json: args.report.json,
        lines: StrangerLines::new(screen.clone()),
        guesses: Guesses::default(),
    };
    announce(&args, &screen, &serving, Place { addresses, port, relayed, token })?;
    views.open("waiting for a client".to_owned());
    let end = serve(&endpoint, Arc::new(far)).await;
    views.close().await;
    let _ = tokio::time::timeout(CLOSE_TIME, endpoint.close()).await;
    end
}

/// A number that no other run of the program has.
fn random() -> Result<u64> {
    getrandom::u64().map_err(|e| Failure::failed(format!("no random numbers: {e}")))
}

/// Where the server listens, and its token: what a ticket says.
struct Place {
    addresses: Vec<IpAddr>,
    port: u16,
    relayed: RelayedPlaces,
    token: Token,
}

fn announce(
    args: &ProxyListenArgs,
    screen: &Screen,
    serving: &Serving,
    place: Place,
) -> Result<()> {
    let Place { addresses, port, relayed, token } = place;
    if !serving.is_protected() {
        screen.line(NOT_ENCRYPTED);
    }
    let ends: Vec<String> =
        addresses.iter().map(|&ip| SocketAddr::new(ip, port).to_string()).collect();
    let shown: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    let for_ticket = relayed.for_ticket();
    let ticket =
        serving.trust.map(|trust| Ticket { addresses, port, relayed: for_ticket, token, trust });
    let key = serving.key().map(|key| key.to_string());
    if args.report.json {
        let event = json!({
            "event": "listening",
            "ticket": ticket.as_ref().map(Ticket::to_string),
            "addresses": shown,
            "port": port,
            "relayed": relayed.json(),
            "encrypted": serving.is_protected(),
            "key": key,
        });
        output::print(&format!("{event}\n"))?;
        return show_qr(args, ticket.as_ref(), screen);
    }
    screen.line(&listening_on(&ends));
    relayed.lines().for_each(|line| screen.line(&line));
    let Some(ticket) = ticket else {
        let command = "manypath proxy connect --cert FILE --key FILE --ca FILE HOST -L ...";
        screen.line(&format!("On the other machine, run: {command}"));
        return Ok(());
    };
    if args.security.identity.is_some()
        && let Some(key) = key
    {
        screen.line(&format!("Key of this end: {key}"));
    }
    screen
        .line("On the other machine, run: manypath proxy connect TICKET -L ..., with this ticket:");
    output::print(&format!("{ticket}\n"))?;
    show_qr(args, Some(&ticket), screen)
}

fn show_qr(args: &ProxyListenArgs, ticket: Option<&Ticket>, screen: &Screen) -> Result<()> {
    match ticket {
        Some(ticket) if args.qr.qr => qr::show_ticket(&ticket.to_string(), screen),
        _ => Ok(()),
    }
}

/// Serves until interrupted.
async fn serve(endpoint: &Endpoint, far: Arc<Far>) -> Result<()> {
    let mut ticks = tokio::time::interval(TICK);
    let mut clients = JoinSet::new();
    let interrupted = signals::interrupted();
    tokio::pin!(interrupted);
    loop {
        tokio::select! {
            association = endpoint.accept() => {
                let Some(association) = association else {
                    return Err(Failure::failed("the endpoint was closed"));
                };
                let far = far.clone();
                clients.spawn(async move { far.client(association).await });
            }
            _ = ticks.tick() => far.lines.tick(),
            Some(ended) = clients.join_next(), if !clients.is_empty() => {
                // A client whose task panicked has said so; the others go on.
                if let Ok(Err(failure)) = ended {
                    return Err(failure);
                }
            }
            () = &mut interrupted => {
                // Clients learn it at once, and reset their connections.
                endpoint.abort(reason::INTERRUPTED);
                while clients.join_next().await.is_some() {}
                return Ok(());
            }
        }
    }
}

impl Far {
    /// Serves one client until it leaves. The error is one of this command.
    async fn client(&self, association: Association) -> Result<()> {
        let Some(peer) = association.peer() else { return Ok(()) };
        if !self.guesses.may(peer.ip(), Instant::now()) {
            self.lines.say(&format!("rejected {peer}: too many wrong tokens from its address"));
            transport::abort(&association, TOO_MANY_GUESSES).await;
            return Ok(());
        }
        if let Err(why) = hello::admit(&association, &self.secret).await {
            if why.starts_with(reason::NOT_AUTHORISED) {
                self.guesses.wrong(peer.ip(), Instant::now());
            }
            self.lines.say(&format!("rejected {peer}: {why}"));
            transport::abort(&association, &why).await;
            return Ok(());
        }
        association.admit();
        if let Err(failure) = transport::direct_path(&association, &peer.to_string()).await {
            self.lines.say(&format!("rejected {}", failure.message));
            return Ok(());
        }
        if !hello::welcome(&association, self.instance).await {
            return Ok(());
        }
        self.event(&json!({ "event": "connected", "peer": peer.to_string() }))?;
        self.screen.line(&format!("client {peer} connected"));
        let watch = PathWatch::start(&association, self.screen.clone(), None);
        let options = self.options.clone();
        let session =
            Session::new(association.clone(), Side::Accepting, options, Vec::new(), self.streams);
        let end = session.run().await;
        let done = session.counters();
        self.screen.line(&format!("client {peer} left: {}; {}", why(&end), text(&done)));
        tell_shares(&self.screen, &done, &watch.shares(&association));
        self.event(&json!({
            "event": "disconnected",
            "peer": peer.to_string(),
            "why": why(&end),
            "connections": counters(&done),
            "paths": watch.report(&association),
        }))
    }

    fn event(&self, event: &serde_json::Value) -> Result<()> {
        if self.is_json { output::print(&format!("{event}\n")) } else { Ok(()) }
    }
}

/// The end of a session in a few words.
pub(super) fn why(end: &SessionEnd) -> String {
    manypath_files::relative::printable(&end.to_string())
}

/// Tells what each path carried, in both directions.
pub(super) fn tell_shares(screen: &Screen, counters: &Counters, shares: &[Share]) {
    let shares = shares::text(counters.bytes_sent + counters.bytes_received, shares);
    shares.iter().for_each(|shares| screen.line(&format!("  {shares}")));
}

/// Counters as a person reads them.
pub(super) fn text(counters: &Counters) -> String {
    format!(
        "{} connection(s), {} refused, {} sent, {} received",
        counters.opened,
        counters.refused,
        size(counters.bytes_sent),
        size(counters.bytes_received)
    )
}
