//! The receiver of a code: the relay says where it is.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use manypath::{BindTo, LookupError, Relay, RelayedAddress, interfaces, look_up_number, unmapped};
use manypath_trust::Erased;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::connect::bind::Bind;
use crate::connect::dest::{CodeAt, Destination, Met};
use crate::connect::via;
use crate::failure::{Failure, Result};
use crate::screen::Screen;

/// How long relays that are named before one that knows the number are waited for.
const WAIT_FOR_EARLIER: Duration = Duration::from_millis(500);

/// A relay that may know the receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    name: String,
    address: SocketAddr,
}

/// The receiver whose code DEST is, if it is one: the relay is asked that is written behind the
/// code, or else those of `via` and of the environment.
///
/// # Errors
/// No relay is named, none answers, or none knows the number.
pub(crate) async fn meet(
    dest: Destination,
    via: &[Erased<String>],
    bind: &[Bind],
    screen: &Screen,
) -> Result<Destination> {
    let Destination::Code(at) = dest else { return Ok(dest) };
    let relays = relays(&at, via, screen).await?;
    let from = own_addresses(bind);
    let mut asking = JoinSet::new();
    for (place, relay) in relays.iter().cloned().enumerate() {
        let (number, from) = (at.code.number, from.clone());
        asking.spawn(async move { (place, look_up_number(relay.address, number, &from).await) });
    }
    let (mut known, mut errors) = (Vec::new(), Vec::new());
    let mut until = None;
    while let Some(answer) = next(&mut asking, until).await {
        match answer {
            (place, Ok(address)) => {
                known.push((place, address));
                until.get_or_insert(Instant::now() + WAIT_FOR_EARLIER);
            }
            (place, Err(error)) => errors.push((place, error)),
        }
    }
    // The first relay that knows the number, in the order of the command line.
    let Some(&(place, address)) = known.iter().min() else {
        return Err(not_met(&at, &relays, errors));
    };
    let relayed = RelayedAddress { address, relay: relays[place].address };
    Ok(Destination::Met(Met { code: at.code.code, relayed }))
}

/// An answer to the question for a number, with the place of the relay that was asked.
type Answer = (usize, std::result::Result<SocketAddr, LookupError>);

/// The next answer; `None` after the last one, and at `until`.
async fn next(asking: &mut JoinSet<Answer>, until: Option<Instant>) -> Option<Answer> {
    let answer = match until {
        Some(until) => timeout_at(until, asking.join_next()).await.ok()?,
        None => asking.join_next().await,
    };
    answer?.ok()
}

/// The relays that may know the receiver of a code.
async fn relays(at: &CodeAt, via: &[Erased<String>], screen: &Screen) -> Result<Vec<Asked>> {
    if let Some((host, port)) = &at.relay {
        return Ok(vec![named(host, *port).await?]);
    }
    let relays = via::relays(via).await?.told(screen);
    if relays.is_empty() {
        return Err(Failure::usage(format!("nobody says which relay knows the code {}", at.code))
            .hint(format!(
                "write {}@RELAY, as the receiver shows it, or name the relay in MANYPATH_RELAY",
                at.code
            )));
    }
    let asked = |relay: &Relay| Asked { name: relay.name.clone(), address: relay.address };
    Ok(relays.iter().map(asked).collect())
}

/// The relay that is written behind a code, looked up.
async fn named(host: &str, port: u16) -> Result<Asked> {
    let name = format!("{host}:{port}");
    let found = tokio::net::lookup_host((host, port)).await;
    let found = found.map_err(|e| {
        Failure::failed(format!("cannot find the relay {name}: {e}"))
            .hint("check its name behind the @ of the code, or give its IP address")
    })?;
    // IPv4 first, as for the relays of --via.
    let address = found.map(unmapped).min_by_key(SocketAddr::is_ipv6);
    let address =
        address.ok_or_else(|| Failure::failed(format!("the relay {name} has no address")))?;
    Ok(Asked { name, address })
}

/// The addresses of this host that a relay is asked from: those of `bind`, or all.
fn own_addresses(bind: &[Bind]) -> Vec<IpAddr> {
    let is_used = |name: &str, ip: IpAddr| {
        let mut wanted = bind.iter().map(|bind| &bind.to);
        bind.is_empty()
            || wanted.any(|to| match to {
                BindTo::Auto | BindTo::Any => true,
                BindTo::Address(address) => *address == ip,
                BindTo::Interface(interface) => interface == name,
            })
    };
    let all = interfaces().unwrap_or_default().into_iter();
    let used = all.filter(|address| is_used(&address.name, address.ip));
    used.map(|address| address.ip).collect()
}

/// The failure when no relay said where the receiver is.
fn not_met(at: &CodeAt, relays: &[Asked], errors: Vec<(usize, LookupError)>) -> Failure {
    let mut reasons = Vec::new();
    let mut is_unknown = false;
    for (place, error) in errors {
        let name = &relays[place].name;
        is_unknown |= matches!(error, LookupError::NoSuchNumber);
        reasons.push(match error {
            LookupError::NoSuchNumber => {
                format!("the relay {name} knows no receiver with the number {}", at.code.number)
            }
            LookupError::NoAnswer => format!("the relay {name} does not answer"),
            LookupError::Unsupported => {
                format!("the server at {name} knows no codes: `manypath relay` does")
            }
            other => format!("the relay {name}: {other}"),
        });
    }
    let hint = if is_unknown {
        "check that `manypath recv --code` still runs there, and the code that it shows"
    } else {
        "check that the relay runs and that UDP gets there (`manypath doctor`), or use the ticket"
    };
    Failure::no_path(reasons.join("; ")).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;

    fn at(code: &str) -> CodeAt {
        let Ok(Destination::Code(at)) = Destination::parse(code) else { panic!("{code}") };
        at
    }

    fn relay(name: &str) -> Asked {
        Asked { name: name.to_owned(), address: "192.0.2.1:3478".parse().unwrap() }
    }

    #[tokio::test]
    async fn the_relay_behind_the_code_is_asked() {
        let relay = named("127.0.0.1", 3478).await.unwrap();
        assert_eq!(relay.address, "127.0.0.1:3478".parse().unwrap());
        let missing = named("no-such-host.invalid", 3478).await.unwrap_err();
        assert!(missing.message.contains("cannot find the relay"), "{missing}");
    }

    #[test]
    fn an_unknown_number_and_a_silent_relay_have_remedies_of_their_own() {
        let relays = [relay("a:3478"), relay("b:3478")];
        let unknown = (0, LookupError::NoSuchNumber);
        let silent = || (1, LookupError::NoAnswer);
        let failure = not_met(&at("7-cabana-anvil"), &relays, vec![unknown, silent()]);
        assert_eq!(failure.exit, Exit::NoPath);
        assert!(failure.message.contains("a:3478 knows no receiver with the number 7"));
        assert!(failure.message.contains("b:3478") && !failure.message.contains("anvil"));
        assert!(failure.hint.unwrap().contains("recv --code"));
        let failure = not_met(&at("7-cabana-anvil"), &relays, vec![silent()]);
        assert!(failure.hint.unwrap().contains("doctor"));
    }
}
