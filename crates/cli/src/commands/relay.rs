//! `manypath relay`: a TURN server for authorised users.

mod peers;

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use data_encoding::BASE32_NOPAD;
use manypath::relay::{
    Limits, MeshRelay, PeerRules, RelayServer, RelayServerOptions, ServerConfig, ServerStats,
    StunPort, User,
};
use manypath::{BindTo, SocketError};
use manypath_live::{Live, Stat, StatKind};
use serde_json::json;
use zeroize::Zeroizing;

use crate::args::{RelayArgs, TURN_PORT};
use crate::connect::exposed::Secret;
use crate::connect::transport;
use crate::connect::via::{check_words, escape, lines};
use crate::failure::{Failure, Result};
use crate::live::serve_metrics;
use crate::screen::Screen;
use crate::screen::figures::size;
use crate::screen::output;
use crate::screen::qr;
use crate::settings;
use crate::signals::interrupted;
use peers::Named;

/// Length of a random password in bytes.
const PASSWORD_LEN: usize = 16;
/// The user that a relay without --user has.
const DEFAULT_USER: &str = "manypath";
/// How often it says how much is going on, if something is.
const NEWS: Duration = Duration::from_secs(60);
/// How often its counters are read for metrics.
const COUNT: Duration = Duration::from_secs(1);
/// How long it goes on when it is stopped.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// `manypath relay`.
pub(crate) async fn run(args: RelayArgs) -> Result<()> {
    let screen = Screen::new(&args.report);
    let users = users(&args)?;
    if let Some(warning) = args.users.as_deref().and_then(|file| Secret::Passwords.warning(file)) {
        screen.line(&warning);
    }
    let invented = args.user.is_empty() && args.users.is_none();
    let peers = peers::named(&args, invented)?;
    let options = options(&args, users.clone())?;
    let mut relay = RelayServer::bind(options).map_err(|e: SocketError| {
        Failure::failed(e.to_string())
            .hint(format!("--port chooses another port than {TURN_PORT}, --listen the address"))
    })?;
    announce(&args, &screen, &relay, &users, invented)?;
    if let Some(error) = relay.stun_port_error() {
        // The rest of the text is advice for the first port.
        let why = error.to_string();
        let why = why.split(';').next().unwrap_or_default();
        screen.line(&format!(
            "No second port for STUN ({why}): `doctor` sees less of NATs. --stun-port names another, \
             0 is none"
        ));
    }
    let now = Arc::new(Mutex::new(Seen::of(&relay)));
    let live = Live::start("relay");
    let told = Arc::clone(&now);
    live.add_stats(move || told.lock().unwrap_or_else(PoisonError::into_inner).stats());
    let _metrics = serve_metrics(&args.metrics, &live).await?;
    let mut named = Named::look_up(peers, &screen);
    let mut known = relay.relays();
    let mut before = Counters::of(&relay);
    let mut news = tokio::time::interval(NEWS);
    news.reset();
    let mut ticks = tokio::time::interval(COUNT);
    loop {
        tokio::select! {
            () = relay.run_until_relays_change() => {
                let now = relay.relays();
                tell_of_relays(&args, &screen, &known, &now)?;
                known = now;
            }
            addresses = named.next() => relay.name_relays(&addresses),
            _ = ticks.tick() => {
                *now.lock().unwrap_or_else(PoisonError::into_inner) = Seen::of(&relay);
            }
            _ = news.tick() => {
                let now = Counters::of(&relay);
                if now != before {
                    screen.line(&now.text());
                    peers::text(&relay.relays()).iter().for_each(|line| screen.line(line));
                }
                before = now;
            }
            () = interrupted() => break,
        }
    }
    // What clients said last, such as that they are done, may be waiting.
    let _ = tokio::time::timeout(LAST_WORDS, relay.run()).await;
    let end = Counters::of(&relay);
    if args.report.json {
        return output::print(&format!("{}\n", end.json("stopped")));
    }
    screen.line(&end.text());
    Ok(())
}

/// The figures of a relay at one time.
struct Seen {
    counters: Counters,
    relays: Vec<MeshRelay>,
}

/// The counters of a relay.
#[derive(Copy, Clone, PartialEq)]
struct Counters {
    stats: ServerStats,
    /// Allocations now.
    allocations: usize,
}

impl Seen {
    fn of(relay: &RelayServer) -> Seen {
        Seen { counters: Counters::of(relay), relays: relay.relays() }
    }

    fn stats(&self) -> Vec<Stat> {
        self.counters.metrics().into_iter().chain(peers::stats(&self.relays)).collect()
    }
}

/// Tells of other relays that came or died.
fn tell_of_relays(
    args: &RelayArgs,
    screen: &Screen,
    before: &[MeshRelay],
    now: &[MeshRelay],
) -> Result<()> {
    peers::changes(before, now).iter().for_each(|line| screen.line(line));
    if args.report.json {
        output::print(&format!("{}\n", peers::json(now)))?;
    }
    Ok(())
}

/// The users of the command line and the file; one with a random password if there are none.
fn users(args: &RelayArgs) -> Result<Vec<User>> {
    let mut words = args.user.clone();
    if let Some(file) = &args.users {
        words.extend(lines(file)?);
    }
    let mut users: Vec<User> = Vec::new();
    for word in &words {
        // Not repeated in messages: it may hold a password.
        let wrong = |what: &str| {
            Failure::usage(format!("a user of the relay: {what}")).hint("write NAME:PASSWORD")
        };
        let (name, password) = word.split_once(':').ok_or_else(|| wrong("no colon"))?;
        check_words(name, Some(password)).map_err(|what| wrong(&what))?;
        if users.iter().any(|u| u.name == name) {
            return Err(wrong(&format!("{name} appears twice")));
        }
        users.push(User { name: name.to_owned(), password: password.to_owned() });
    }
    if users.is_empty() {
        if !words.is_empty() || args.users.is_some() {
            return Err(Failure::usage(
                "the file of users is empty; a relay without users serves nobody",
            ));
        }
        let mut password = BASE32_NOPAD.encode(&*Zeroizing::new(random::<PASSWORD_LEN>()?));
        password.make_ascii_lowercase();
        users.push(User { name: DEFAULT_USER.to_owned(), password });
    }
    Ok(users)
}

fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|e| Failure::failed(format!("no random numbers: {e}")))?;
    Ok(bytes)
}

fn options(args: &RelayArgs, users: Vec<User>) -> Result<RelayServerOptions> {
    let rate = |option: &str, text: &str| match text.trim() {
        "0" => Ok(0),
        _ => settings::rate(option, text).map(|bits| bits / 8),
    };
    let lifetime = settings::duration("--lifetime", &args.lifetime)?;
    if !(1..=3600).contains(&lifetime.as_secs()) {
        return Err(Failure::usage("--lifetime: not from 1 s to 1 h"));
    }
    if !(1..=64).contains(&args.realm.len()) {
        return Err(Failure::usage("--realm: not 1 to 64 bytes long"));
    }
    let limits = Limits {
        allocations_total: args.allocations,
        allocations_per_user: args.allocations_per_user,
        user_bytes_per_s: rate("--rate-per-user", &args.rate_per_user)?,
        total_bytes_per_s: rate("--rate", &args.rate)?,
        lifetime_max: lifetime,
        ..Limits::default()
    };
    let allow = args.allow_peer.iter().map(|range| {
        range.parse().map_err(|e: String| Failure::usage(format!("--allow-peer: {e}")))
    });
    let listen = args.listen.iter().map(|text| match text.parse() {
        Ok(bind) => bind,
        Err(never) => match never {},
    });
    Ok(RelayServerOptions {
        config: ServerConfig {
            realm: args.realm.clone(),
            users,
            limits,
            peers: PeerRules { allow: allow.collect::<Result<_>>()? },
            grants_open: !args.no_open,
            secret: random()?,
        },
        listen: listen.collect::<Vec<BindTo>>(),
        port: args.port,
        ports: ports(&args.ports)?,
        external: args.external,
        stun_port: match args.stun_port {
            None => StunPort::Next,
            Some(0) => StunPort::Off,
            Some(port) => StunPort::Port(port),
        },
    })
}

fn ports(text: &str) -> Result<RangeInclusive<u16>> {
    let read = || {
        let (first, last) = text.split_once('-')?;
        let (first, last): (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (first > 0 && first <= last).then_some(first..=last)
    };
    read().ok_or_else(|| Failure::usage(format!("--ports {text}: not FIRST-LAST, from 1 to 65535")))
}

fn announce(
    args: &RelayArgs,
    screen: &Screen,
    relay: &RelayServer,
    users: &[User],
    invented: bool,
) -> Result<()> {
    let mut addresses = relay.addresses();
    if let Some(ip) = args.external.map(|ip| ip.to_canonical()) {
        addresses = addresses.iter().map(|a| SocketAddr::new(ip, a.port())).collect();
    }
    // Passwords that the user chose are not shown.
    let via = |address: &SocketAddr| {
        let (user, password) = (escape(&users[0].name), escape(&users[0].password));
        let host = match address.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        format!("turn:{user}:{password}@{host}:{}", address.port())
    };
    let words: Option<Vec<String>> = invented.then(|| addresses.iter().map(via).collect());
    if args.report.json {
        let event = json!({
            "event": "listening",
            "addresses": addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "users": users.iter().map(|u| &u.name).collect::<Vec<_>>(),
            "via": words,
            "stun_port": relay.stun_port(),
        });
        output::print(&format!("{event}\n"))?;
        return show_qr(args, words.as_deref(), screen);
    }
    screen.line(&format!(
        "Relaying for {} user(s) at {}",
        users.len(),
        transport::addresses(&addresses)
    ));
    match words {
        Some(words) => {
            screen.line("Use it with one of these; the password is new each time:");
            output::print(&(words.join("\n") + "\n"))?;
            show_qr(args, Some(&words), screen)
        }
        None => Ok(()),
    }
}

fn show_qr(args: &RelayArgs, words: Option<&[String]>, screen: &Screen) -> Result<()> {
    match words.and_then(<[String]>::first) {
        Some(word) if args.qr => qr::show(word, screen, "use the argument above"),
        _ => Ok(()),
    }
}

impl Counters {
    fn of(relay: &RelayServer) -> Counters {
        let (stats, allocations) = relay.stats();
        Counters { stats, allocations }
    }

    /// The counters as metrics.
    fn metrics(&self) -> Vec<Stat> {
        let Counters { stats, allocations } = self;
        let counter = |name, help, value: u64| Stat {
            name,
            help,
            kind: StatKind::Counter,
            label: None,
            value: value as f64,
        };
        vec![
            Stat {
                name: "relay_allocations",
                help: "Allocations of the relay now.",
                kind: StatKind::Gauge,
                label: None,
                value: *allocations as f64,
            },
            counter("relay_allocated_total", "Allocations so far.", stats.allocated),
            counter("relay_expired_total", "Allocations that expired.", stats.expired),
            counter("relay_refused_requests_total", "Requests that were refused.", stats.refused),
            counter(
                "relay_ignored_datagrams_total",
                "Datagrams that made no sense, and were ignored.",
                stats.garbage,
            ),
            counter(
                "relay_forwarded_bytes_total",
                "Bytes forwarded, in both directions.",
                stats.bytes,
            ),
            counter(
                "relay_over_rate_packets_total",
                "Packets that were dropped because they were above a rate.",
                stats.over_rate,
            ),
        ]
    }

    fn text(&self) -> String {
        let Counters { stats, allocations } = self;
        format!(
            "{allocations} allocation(s) now, {} so far, {} expired; {} forwarded, {} packets above a rate; \
             {} requests refused, {} datagrams ignored",
            stats.allocated,
            stats.expired,
            size(stats.bytes),
            stats.over_rate,
            stats.refused,
            stats.garbage
        )
    }

    fn json(&self, event: &str) -> serde_json::Value {
        let Counters { stats, allocations } = self;
        json!({
            "event": event,
            "allocations": allocations,
            "allocated": stats.allocated,
            "expired": stats.expired,
            "refused": stats.refused,
            "garbage": stats.garbage,
            "bytes": stats.bytes,
            "over_rate": stats.over_rate,
        })
    }
}
