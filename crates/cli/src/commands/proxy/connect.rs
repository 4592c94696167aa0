//! `manypath proxy connect`: the near side.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use manypath::config::Config;
use manypath::{Association, Endpoint, Relay};
use manypath_proxy::window::Budget;
use manypath_proxy::{FORWARDS_MAX, Options, Remote, Session, SessionEnd, Side};
use manypath_trust::Token;
use manypath_trust::password::Password;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::far_side::FarSide;
use super::hello::Peer;
use super::local::{Kind, Port};
use super::watch::{SILENCE, suspicious};
use super::{
    CONNECTIONS_MAX, DEFAULTS, counters, hello, listen, memory, message_size, raise_file_limit,
    with_streams,
};
use crate::args::ProxyConnectArgs;
use crate::connect::dest::Destination;
use crate::connect::near::{Near, NearEnd};
use crate::connect::secret::{SecretKind, TokenOptions, token, token_source, unproved};
use crate::connect::security::{Calling, NOT_ENCRYPTED, peer_key};
use crate::connect::strangers::StrangerLines;
use crate::connect::transport::{self, Answer, places};
use crate::connect::uplinks;
use crate::connect::via;
use crate::failure::{Exit, Failure, Result};
use crate::live::Views;
use crate::paths::PathWatch;
use crate::screen::Screen;
use crate::screen::output;
use crate::settings;
use crate::signals;
use manypath_files::frame::reason;

/// The pause between two attempts to connect again.
const PAUSE: Duration = Duration::from_millis(50);
/// How long one such attempt may take.
const ATTEMPT: Duration = Duration::from_secs(10);
/// How long the far side may leave such an attempt unanswered, beside some round-trip times. Short,
/// as an INIT that met a host without its program is repeated only after seconds.
const UNANSWERED: Duration = Duration::from_millis(150);

/// The means to connect, again and again.
struct Connector {
    args: ProxyConnectArgs,
    config: Config,
    dest: Destination,
    far: FarSide,
    /// The last attempt met the far side itself, as far as keys tell.
    met: Cell<bool>,
    /// To be shown; empty if it is proved instead.
    token: Token,
    /// Nothing shows who the far side is.
    is_unproved: bool,
    password: Option<Password>,
    options: Options,
    remotely: Vec<Remote>,
    /// The longest round-trip time of the paths so far.
    rtt: Cell<Duration>,
    /// The relays that were not found at the last attempt, and why.
    missing_relays: RefCell<Vec<String>>,
    screen: Screen,
}

/// An association with what lives as long as it does.
struct Link {
    session: Arc<Session>,
    /// The run of the far program.
    instance: u64,
    watch: PathWatch,
    near: NearEnd,
}

/// `manypath proxy connect`.
pub(crate) async fn run(args: ProxyConnectArgs) -> Result<()> {
    let dest = Destination::parse(&args.dest)?.without_code()?;
    let key = dest.key(args.security.insecure)?;
    let has_certificate = args.security.certificates.cert.is_some();
    let given = TokenOptions { token: args.token.as_ref(), file: args.token_file.as_deref() };
    let source = token_source(given, has_certificate, &dest)?;
    let config = with_streams(settings::config_with(&args.transport, DEFAULTS)?, CONNECTIONS_MAX);
    let limit = settings::duration("--connect-timeout", &args.connect_timeout)?;
    let screen = Screen::new(&args.report);
    dest.warn_of_file(&args.dest, &screen);
    via::warn_of_files(&args.via.via, &screen);
    let mut views = Views::start(&args.live, "proxy connect", &screen).await?;
    let calling = Calling::new(&args.security, dest.host(), key, &screen)?;
    let target = dest.target(dest.resolve().await?.told(&screen));
    let remotes = places(&transport::over_ip(args.ip, &dest, target)?);
    let token = token(&dest, source, "manypath proxy listen", &screen)?;
    let is_protected = calling.is_protected();
    if !is_protected {
        screen.line(NOT_ENCRYPTED);
    }
    raise_file_limit();
    let lines = StrangerLines::new(screen.clone());
    if args.remote.len() > usize::from(FORWARDS_MAX) {
        return Err(Failure::usage(format!("-R: more than {FORWARDS_MAX} times")));
    }
    let mut ports = Vec::new();
    for forward in &args.local {
        ports.push(Port::bind(&forward.at, Kind::Forward(forward.to.clone()), "-L").await?);
    }
    for at in &args.socks {
        ports.push(Port::bind(&at.0, Kind::Socks, "-D").await?);
    }
    for at in &args.tproxy {
        ports.push(Port::bind(&at.0, Kind::Transparent, "--tproxy").await?);
    }
    // Only a far side that has shown who it is sees the token; others prove that they have it.
    let proves = is_protected && !calling.knows_peer && !token.is_empty();
    let is_unproved = is_protected && !calling.knows_peer && !proves;
    let password = proves.then(|| Password::new(token.clone())).transpose();
    let remotely =
        args.remote.iter().map(|f| Remote { at: f.at.clone(), to: f.to.clone() }).collect();
    let connector = Connector {
        // A token that is shown goes to the owner of a key that is known already.
        far: FarSide::new(
            remotes,
            SecretKind::of(&dest, &token),
            calling.security,
            if proves { calling.pinning } else { None },
        ),
        dest,
        met: Cell::new(false),
        password: password.map_err(|e| Failure::usage(e.to_string()))?,
        token,
        is_unproved,
        options: Options {
            budget: Budget::new(memory(&args.memory)?),
            message_size: message_size(&config, is_protected),
            ..Options::new()
        },
        remotely,
        rtt: Cell::new(Duration::ZERO),
        missing_relays: RefCell::default(),
        config,
        screen,
        args,
    };
    views.open(format!("connecting to {}", connector.far.name()));
    let ended = tokio::select! {
        ended = connector.run(ports, limit, &views, &lines) => ended,
        () = async { loop { tokio::time::sleep(crate::connect::strangers::TICK).await; lines.tick(); } } => Ok(()),
    };
    views.close().await;
    ended
}

impl Connector {
    async fn run(
        &self,
        ports: Vec<Port>,
        limit: Duration,
        views: &Views,
        lines: &StrangerLines,
    ) -> Result<()> {
        let interrupted = signals::interrupted();
        tokio::pin!(interrupted);
        let mut link = tokio::select! {
            link = self.connect(limit, None) => link?,
            () = &mut interrupted => return Err(Failure::failed("interrupted")),
        };
        let (current, receiver) = watch::channel(None);
        let places = self.places(&ports);
        for port in ports {
            port.start(&receiver, lines);
        }
        let mut is_first = true;
        loop {
            let control = link.near.announce(views, &self.args.report);
            current.send_replace(Some(link.session.clone()));
            self.connected(&link, is_first.then_some(&places))?;
            is_first = false;
            let next = tokio::select! {
                next = self.serve(&link) => next?,
                () = &mut interrupted => {
                    self.summary(&link, "interrupted")?;
                    transport::abort(link.session.association(), reason::INTERRUPTED).await;
                    return Ok(());
                }
            };
            current.send_replace(None);
            drop(control);
            link = match next {
                Next::Link(link) => *link,
                Next::Lost(end) => {
                    self.lost(&link, &listen::why(&end))?;
                    drop(link);
                    tokio::select! {
                        link = self.reconnect() => link?,
                        () = &mut interrupted => return Ok(()),
                    }
                }
            };
        }
    }

    /// Serves until the association is lost, or another run of the far program was found.
    async fn serve(&self, link: &Link) -> Result<Next> {
        let running = link.session.run();
        tokio::pin!(running);
        let forwards = self.remote_forwards(&link.session);
        tokio::pin!(forwards);
        let (mut asked, mut silence) = (false, SILENCE);
        loop {
            let looked = tokio::select! {
                end = &mut running => return Ok(Next::Lost(end)),
                asked_all = &mut forwards, if !asked => {
                    asked_all?;
                    asked = true;
                    continue;
                }
                looked = async {
                    suspicious(&link.session, silence).await;
                    self.note_rtt(link);
                    self.attempt().await
                } => looked,
            };
            match looked {
                Ok(new) if new.instance == link.instance => {
                    // The same run answers: it was the network, and the association goes on.
                    transport::abort(new.session.association(), "only a look").await;
                    silence = SILENCE;
                }
                Ok(new) => {
                    self.lost(link, "the far side was restarted")?;
                    link.session.association().abort("the far side was restarted");
                    running.await;
                    return Ok(Next::Link(Box::new(new)));
                }
                // Neither answers: the association decides when it gives up.
                Err(failure) => silence = self.pause_after(failure)?,
            }
        }
    }

    /// Asks for the remote forwards, which the far side forgets with each association.
    async fn remote_forwards(&self, session: &Session) -> Result<()> {
        for (id, forward) in self.remotely.iter().enumerate() {
            let Ok(id) = u16::try_from(id) else { break };
            match session.listen(id).await {
                Ok(port) => {
                    let at = manypath_proxy::frame::HostPort { port, ..forward.at.clone() };
                    self.screen.line(&format!("The far host forwards {at} to {}", forward.to));
                    self.event(&json!({ "event": "remote_forward", "listen": at.to_string(), "to": forward.to.to_string() }))?;
                }
                Err(_) if session.is_dead() => break,
                Err(why) => {
                    return Err(Failure::failed(format!("-R {}: {why}", forward.at)));
                }
            }
        }
        Ok(())
    }

    async fn reconnect(&self) -> Result<Link> {
        loop {
            match self.attempt().await {
                Ok(link) => return Ok(link),
                Err(failure) => tokio::time::sleep(self.pause_after(failure)?).await,
            }
        }
    }

    /// Tries to connect again, without patience for a far side that says nothing.
    async fn attempt(&self) -> Result<Link> {
        let (dest, ip) = (self.dest.clone(), self.args.ip);
        let places = async move {
            let target = dest.target(dest.resolve().await?.all);
            Ok(places(&transport::over_ip(ip, &dest, target)?))
        };
        if self.far.look_up(places).await {
            self.screen.line(&format!("The far side is at {} now", self.far.name()));
        }
        self.connect(ATTEMPT, Some(UNANSWERED + 3 * self.rtt.get())).await
    }

    /// The pause until the next attempt; the failure itself if another attempt would not mend it.
    ///
    /// Somebody who answers with another key than that of a far side which has proved the token is
    /// a stranger. It is shown nothing, and does not end the command.
    fn pause_after(&self, failure: Failure) -> Result<Duration> {
        if !is_final(&failure) {
            return Ok(PAUSE);
        }
        let is_refusal = failure.exit == Exit::NotAuthorised;
        if !is_refusal || !self.far.is_pinned() || self.met.get() {
            return Err(failure);
        }
        let pause = self.far.pause_at_stranger();
        let why = failure.message;
        self.screen.line(&format!(
            "{why}. It may be somebody else, so nothing was shown to it; next attempt in {} s. If \
             the far side was restarted without --identity, start this command again",
            pause.as_secs()
        ));
        self.event(&json!({
            "event": "waiting",
            "peer": self.far.name(),
            "why": why,
            "pause_s": pause.as_secs(),
        }))?;
        Ok(pause)
    }

    /// The relays. Tells the user which ones were not found, unless the last attempt missed the
    /// same ones.
    async fn relays(&self) -> Result<Vec<Relay>> {
        let found = via::relays(&self.args.via.via).await?;
        let is_known = self.missing_relays.replace(found.missing.clone()) == found.missing;
        Ok(if is_known { found.all } else { found.told(&self.screen) })
    }

    /// Opens an association of an endpoint of its own: beside an old one, if that is still there.
    async fn connect(&self, limit: Duration, unanswered: Option<Duration>) -> Result<Link> {
        let relays = self.relays().await?;
        let target = self.dest.target(self.far.addresses());
        let target = transport::over_ip(self.args.ip, &self.dest, target)?;
        let near = Near::new(self.config.clone(), self.far.security(), &self.screen)
            .bind(&self.args.bind)
            .ip(self.args.ip)
            .relays(relays, &self.args.relay_peers)
            .relay_use(self.args.relay_use, !target.relayed.is_empty())?
            .open()?;
        let (instance, peer) = (Cell::new(0), self.far.peer());
        let hello = self.password.is_none().then(|| hello::first(self.token.clone()));
        self.met.set(false);
        let heard = async |association: &Association| {
            self.met.set(true);
            self.hear(association, &peer, &instance).await
        };
        let connecting = near.connect(target, limit, hello, heard);
        let association = tokio::select! {
            association = connecting => association?,
            () = is_unanswered(&near.endpoint, unanswered) => {
                return Err(Failure::no_path(format!("no answer from {}", peer.name)));
            }
        };
        self.far.was_met();
        transport::direct_path(&association, &peer.name).await?;
        if let Some(key) = self.far.pin(&association) {
            self.screen.line(&format!(
                "The far side has proved the token; until this command ends, only its key is \
                 accepted: {key}"
            ));
        }
        let watch = PathWatch::start(&association, self.screen.clone(), None);
        let streams = self.config.outbound_streams;
        let (options, remotely) = (self.options.clone(), self.remotely.clone());
        let session = Session::new(association, Side::Connecting, options, remotely, streams);
        Ok(Link { session, instance: instance.get(), watch, near })
    }

    /// Hears the far side's answer to our hello, after both ends have proved the token if this end
    /// does not show it.
    async fn hear(&self, association: &Association, peer: &Peer, instance: &Cell<u64>) -> Answer {
        match &self.password {
            None if self.is_unproved => {
                let answer = hello::hear_welcome(association, peer, instance).await;
                unproved(association, &peer.name, answer).await
            }
            None => hello::hear_welcome(association, peer, instance).await,
            Some(token) => {
                let is_pinned = self.far.is_pinned();
                hello::prove_token(association, token, peer, is_pinned, instance).await
            }
        }
    }

    // ---- Telling ----

    fn places(&self, ports: &[Port]) -> Value {
        let places = ports.iter().map(|port| {
            let addresses = port.addresses();
            let what = match &port.kind {
                Kind::Forward(to) => format!("Forwarding {} to {to}", addresses.join(", ")),
                Kind::Socks => format!("SOCKS5 on {}", addresses.join(", ")),
                Kind::Transparent => {
                    format!("Taking redirected connections on {}", addresses.join(", "))
                }
            };
            self.screen.line(&what);
            match &port.kind {
                Kind::Forward(to) => {
                    json!({ "kind": "forward", "listen": addresses, "to": to.to_string() })
                }
                Kind::Socks => json!({ "kind": "socks", "listen": addresses }),
                Kind::Transparent => json!({ "kind": "tproxy", "listen": addresses }),
            }
        });
        places.collect()
    }

    fn connected(&self, link: &Link, places: Option<&Value>) -> Result<()> {
        self.screen.line(&format!("Connected to {}", self.far.name()));
        uplinks::say(link.session.association(), &self.screen);
        self.event(&json!({
            "event": if places.is_some() { "ready" } else { "reconnected" },
            "peer": self.far.name(),
            "encrypted": link.session.association().is_protected(),
            "peer_key": peer_key(link.session.association()),
            "ports": places,
        }))
    }

    fn note_rtt(&self, link: &Link) {
        let paths = link.session.association().paths();
        self.rtt.set(paths.iter().filter_map(|path| path.srtt).max().unwrap_or(self.rtt.get()));
    }

    fn lost(&self, link: &Link, why: &str) -> Result<()> {
        self.note_rtt(link);
        self.screen.line(&format!("Lost {}: {why}; connecting again", self.far.name()));
        self.record("lost", link, why)
    }

    fn summary(&self, link: &Link, why: &str) -> Result<()> {
        let counters = link.session.counters();
        self.screen.line(&listen::text(&counters));
        let shares = link.watch.shares(link.session.association());
        listen::tell_shares(&self.screen, &counters, &shares);
        self.record("summary", link, why)
    }

    fn record(&self, event: &str, link: &Link, why: &str) -> Result<()> {
        self.event(&json!({
            "event": event,
            "peer": self.far.name(),
            "why": why,
            "connections": counters(&link.session.counters()),
            "paths": link.watch.report(link.session.association()),
            "notices": link.watch.notices(),
        }))
    }

    fn event(&self, event: &Value) -> Result<()> {
        if self.args.report.json { output::print(&format!("{event}\n")) } else { Ok(()) }
    }
}

/// The successor of an association.
enum Next {
    Lost(SessionEnd),
    Link(Box<Link>),
}

/// Completes if nothing arrives at the endpoint for this time.
async fn is_unanswered(endpoint: &Endpoint, limit: Option<Duration>) {
    let Some(limit) = limit else { return std::future::pending().await };
    tokio::time::sleep(limit).await;
    let received =
        |paths: &[manypath::PathStats]| paths.iter().any(|p| p.counters.packets_received > 0);
    if endpoint.paths().iter().any(|(_, paths)| received(paths)) {
        std::future::pending().await
    }
}

/// Connecting again would not mend it.
fn is_final(failure: &Failure) -> bool {
    matches!(failure.exit, Exit::NotAuthorised | Exit::Usage)
}
