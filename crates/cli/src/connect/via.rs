//! `--via`: relays on the command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use manypath::{Association, Config, Endpoint, Relay, RelayStatus, RouteWatch, unmapped};
use manypath_trust::Erased;
use tokio::task::JoinHandle;
use zeroize::Zeroizing;

use crate::args::{TURN_PORT, TraceArgs};
use crate::connect::exposed::Secret;
use crate::connect::found::Found;
use crate::connect::link_local;
use crate::failure::{Failure, Result};
use crate::screen::Screen;
use crate::settings;

/// Where the password comes from if RELAY has none.
pub(crate) const PASSWORD_VARIABLE: &str = "MANYPATH_RELAY_PASSWORD";
/// The relays of commands without `--via`.
const RELAYS_VARIABLE: &str = "MANYPATH_RELAY";
/// The file with the relays of commands without `--via` where that variable is not set, in the
/// user's directory for configuration (XDG Base Directory Specification).
const RELAYS_FILE: &str = "manypath/relays";
/// The word for no relays.
const NONE: &str = "none";
/// As many relays as are used.
const RELAYS_MAX: usize = 16;
/// The longest user name and password, in bytes; the wire format has room for 508 of a name.
const WORD_MAX: usize = 128;
/// How often the hops of paths are looked for where not every path is used whatever it shares.
const TRACE_INTERVAL: Duration = Duration::from_secs(60);

/// A relay as the user writes it, its host not looked up yet.
#[derive(Clone, PartialEq, Eq)]
struct Named {
    user: String,
    password: Option<Erased<String>>,
    host: String,
    port: u16,
}

/// The words for relays: those of `--via`, or else of the environment, or else the user's file.
pub(crate) fn wanted(via: &[Erased<String>]) -> Vec<Erased<String>> {
    Words::of(via).words
}

/// The words for relays, and where they stand.
#[derive(Debug)]
struct Words {
    words: Vec<Erased<String>>,
    /// For messages.
    place: String,
}

impl Words {
    fn of(via: &[Erased<String>]) -> Words {
        let variable = || std::env::var(RELAYS_VARIABLE).map(Erased::from).unwrap_or_default();
        Words::first(via, variable, file_of_user)
    }

    /// The words of the first place that has any.
    fn first(
        via: &[Erased<String>],
        variable: impl FnOnce() -> Erased<String>,
        file: impl FnOnce() -> Option<PathBuf>,
    ) -> Words {
        let split = |words: Erased<String>| -> Vec<Erased<String>> {
            let words = words.split(',').map(str::trim);
            words.filter(|word| !word.is_empty()).map(Erased::from).collect()
        };
        let (mut words, mut place) = (via.to_vec(), "--via".to_owned());
        if words.is_empty() {
            (words, place) = (split(variable()), RELAYS_VARIABLE.to_owned());
        }
        if words.is_empty()
            && let Some(file) = file().filter(|file| file.exists())
        {
            place = file.display().to_string();
            words = vec![format!("@{place}").into()];
        }
        if let [only] = &words[..]
            && **only == NONE
        {
            words.clear();
        }
        Words { words, place }
    }
}

/// The user's file of relays, whether it is there or not.
fn file_of_user() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let home = || absolute("HOME").map(|home| home.join(".config"));
    Some(absolute("XDG_CONFIG_HOME").or_else(home)?.join(RELAYS_FILE))
}

/// Tells the user of files of relays whose passwords others can read.
pub(crate) fn warn_of_files(via: &[Erased<String>], screen: &Screen) {
    let words = wanted(via);
    let files = words.iter().filter_map(|word| word.strip_prefix('@'));
    for warning in files.filter_map(|file| Secret::Passwords.warning(Path::new(file))) {
        screen.line(&warning);
    }
}

/// The relays that `--via` names, or else the environment or the user's file, with their hosts
/// looked up.
///
/// # Errors
/// A word that names no relay, or none of the hosts of `--via` was found.
pub(crate) async fn relays(via: &[Erased<String>]) -> Result<Found<Relay>> {
    let Found { all, missing } = look_up(via).await?;
    // Relays that are named once and for all may be out of reach now and then.
    if via.is_empty() { Ok(Found { all, missing }) } else { Found::new(all, missing) }
}

/// Looks relays up as [`relays`] does, also if none was found.
///
/// # Errors
/// A word that names no relay.
pub(crate) async fn look_up(via: &[Erased<String>]) -> Result<Found<Relay>> {
    let Words { words, place } = Words::of(via);
    let of_place =
        |failure: Failure| Failure { message: failure.message.replace("--via", &place), ..failure };
    look_up_all(&words).await.map_err(of_place)
}

async fn look_up_all(via: &[Erased<String>]) -> Result<Found<Relay>> {
    let words = words(via)?;
    if words.len() > RELAYS_MAX {
        return Err(Failure::usage(format!("--via: more than {RELAYS_MAX} relays")));
    }
    let (mut relays, mut missing) = (Vec::new(), Vec::new());
    for word in &words {
        let named = parse(word)?;
        let name = format!("{}:{}", named.host, named.port);
        let password = match named.password {
            Some(password) => password,
            None => std::env::var(PASSWORD_VARIABLE).map(Erased::from).map_err(|_| {
                Failure::usage(format!("--via: no password for the relay {name}"))
                    .hint(format!("write turn:USER:PASSWORD@HOST, or set {PASSWORD_VARIABLE}"))
            })?,
        };
        let host = named.host.trim_matches(['[', ']']);
        let found = match tokio::net::lookup_host((host, named.port)).await {
            Ok(found) => found,
            Err(e) => {
                missing.push(format!("cannot find the relay {name}: {e}"));
                continue;
            }
        };
        // IPv4 first: what most peers have.
        let mut addresses: Vec<_> = found.map(unmapped).collect();
        addresses.sort_by_key(std::net::SocketAddr::is_ipv6);
        let Some(&address) = addresses.first() else {
            missing.push(format!("the relay {name} has no address"));
            continue;
        };
        relays.push(Relay { name, address, user: named.user, password: password.to_string() });
    }
    missing.dedup();
    Ok(Found { all: relays, missing })
}

/// The words, those of files among them.
fn words(via: &[Erased<String>]) -> Result<Vec<Erased<String>>> {
    let mut words = Vec::new();
    for word in via {
        match word.strip_prefix('@') {
            None => words.push(word.clone()),
            Some(file) => words.extend(lines(Path::new(file))?),
        }
    }
    Ok(words)
}

/// How often the hops of paths are to be looked for; `None` if never: without relays, if the user
/// says so, and if he says nothing and the configuration uses all paths there are.
pub(crate) fn trace_interval(
    args: &TraceArgs,
    config: &Config,
    relays: &[Relay],
) -> Result<Option<Duration>> {
    let interval = match args.trace_interval.as_deref() {
        Some("off") => None,
        Some(text) => Some(settings::duration("--trace-interval", text)?),
        None => {
            let chooses = config.paths_max.is_some() || config.finds_shared_bottlenecks();
            chooses.then_some(TRACE_INTERVAL)
        }
    };
    let allowed = Duration::from_secs(1)..=Duration::from_secs(86_400);
    if interval.is_some_and(|interval| !allowed.contains(&interval)) {
        return Err(Failure::usage("--trace-interval: not off or from 1 s to a day"));
    }
    Ok(if relays.is_empty() { None } else { interval })
}

/// Begins to look for the hops of an association's paths, if that is wanted.
pub(crate) fn watch_routes(
    association: &Association,
    interval: Option<Duration>,
) -> Option<RouteWatch> {
    interval.map(|interval| association.watch_routes(interval))
}

/// The lines of a file but empty ones and comments.
pub(crate) fn lines(file: &Path) -> Result<Vec<Erased<String>>> {
    let text = std::fs::read_to_string(file)
        .map(Zeroizing::new)
        .map_err(|e| Failure::usage(format!("cannot read {}: {e}", file.display())))?;
    let lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    Ok(lines.map(Erased::from).collect())
}

fn parse(word: &str) -> Result<Named> {
    // The word may hold a password: it is not repeated.
    let wrong = |what: &str| {
        Failure::usage(format!("--via: {what}")).hint(
            "write turn:USER:PASSWORD@HOST[:PORT], or @FILE with such lines; in a name or password \
             write %40 for @, %2C for a comma, %3A for a colon in the name",
        )
    };
    let rest =
        word.strip_prefix("turn:").ok_or_else(|| wrong("a relay does not begin with turn:"))?;
    let (who, place) =
        rest.rsplit_once('@').ok_or_else(|| wrong("a relay has no @ before its host"))?;
    let (user, password) = match who.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (who, None),
    };
    let user = unescape(user).ok_or_else(|| wrong("an invalid % in a user's name"))?;
    let password = password
        .map(|p| unescape(p).map(Erased::from).ok_or_else(|| wrong("an invalid % in a password")))
        .transpose()?;
    check_words(&user, password.as_deref().map(String::as_str)).map_err(|what| wrong(&what))?;
    let (host, port) = match place.rsplit_once(':') {
        // Colons inside of an IPv6 address are not before a port.
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            let port = port.parse().ok().filter(|p| *p != 0);
            (host, port.ok_or_else(|| wrong("a relay's port is not from 1 to 65535"))?)
        }
        _ => (place, TURN_PORT),
    };
    if let Some(error) = link_local::error(host) {
        return Err(Failure::usage(format!("--via: {error}")).hint(link_local::OTHER_ADDRESS));
    }
    if host.is_empty() || host.contains(char::is_whitespace) {
        return Err(wrong("a relay has no host"));
    }
    Ok(Named { user, password, host: host.to_owned(), port })
}

/// The error in a user's name or password.
pub(crate) fn check_words(user: &str, password: Option<&str>) -> std::result::Result<(), String> {
    let fits = |word: &str| (1..=WORD_MAX).contains(&word.len());
    match (fits(user), password.is_none_or(fits)) {
        (false, _) => Err(format!("a user's name is not 1 to {WORD_MAX} bytes long")),
        (_, false) => Err(format!("a password is not 1 to {WORD_MAX} bytes long")),
        _ => Ok(()),
    }
}

/// Text with `%XX` for some of its bytes.
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len()));
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    std::str::from_utf8(&bytes).ok().map(str::to_owned)
}

/// `text` so that [`parse`] reads it again.
pub(crate) fn escape(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    text.bytes()
        .map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect()
}

/// How a path through a relay is told from a direct one, behind its addresses.
pub(crate) fn text(relay: Option<&str>) -> String {
    relay.map_or(String::new(), |name| format!(" via {name}"))
}

/// Tells the user what becomes of the relays, until it is dropped.
#[derive(Debug)]
pub(crate) struct RelayWatch(JoinHandle<()>);

impl RelayWatch {
    /// Begins to watch.
    pub(crate) fn start(endpoint: &Endpoint, screen: &Screen) -> RelayWatch {
        let (endpoint, screen) = (endpoint.clone(), screen.clone());
        RelayWatch(tokio::spawn(async move {
            let mut known: Vec<RelayStatus> = Vec::new();
            loop {
                let now = endpoint.relays_until(|now| now != known).await;
                if now == known {
                    return;
                }
                news(&known, &now).iter().for_each(|line| screen.line(line));
                known = now;
            }
        }))
    }
}

/// The lines for the relays that were left, and for those whose address or error is new. Other
/// changes, such as routes that a relay has traced, are not said.
fn news(known: &[RelayStatus], now: &[RelayStatus]) -> Vec<String> {
    let is_gone = |old: &&RelayStatus| now.iter().all(|relay| relay.address != old.address);
    let left = known.iter().filter(is_gone);
    let left = left.map(|old| format!("relay {}: left; it does not answer", old.name));
    let is_new = |relay: &&RelayStatus| {
        let is_alike = |old: &RelayStatus| {
            let told = (old.address, old.relayed, &old.error);
            told == (relay.address, relay.relayed, &relay.error)
        };
        !known.iter().any(is_alike)
    };
    let new = now.iter().filter(is_new).filter_map(|relay| {
        let name = &relay.name;
        match (&relay.error, relay.relayed) {
            (Some(error), _) => Some(format!("relay {name}: {error}")),
            (None, Some(relayed)) => Some(format!("relay {name}: allocated {relayed}")),
            (None, None) => None,
        }
    });
    left.chain(new).collect()
}

impl Drop for RelayWatch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests;
