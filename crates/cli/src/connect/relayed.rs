//! Receiving through relays: the addresses that relays gave a command that listens.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use manypath::{Endpoint, Relay, RelayStatus, RelayUse};
use manypath_files::ticket::Relayed;
use manypath_trust::{Code, RelayCode};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::args::{ListenViaArgs, TURN_PORT};
use crate::connect::via;
use crate::failure::{Failure, Result};
use crate::screen::Screen;

/// How long a command that listens waits for its relays before it says where it is.
const WAIT: Duration = Duration::from_secs(3);
/// How long it waits for the others once one has answered.
const WAIT_FOR_OTHERS: Duration = Duration::from_secs(1);
/// Time after a change before it is said: a relay that was restarted is lost and back in that time.
const SETTLES: Duration = Duration::from_secs(1);

/// The relays for a command that listens. Those that are not found are said, and left out: peers
/// may reach it directly, unless it takes relays alone.
///
/// # Errors
/// A word that names no relay, or none where one is needed.
pub(crate) async fn relays(args: &ListenViaArgs, screen: &Screen) -> Result<Vec<Relay>> {
    via::warn_of_files(&args.via, screen);
    let is_only = args.relay_use.wanted() == RelayUse::Only;
    if is_only && via::wanted(&args.via).is_empty() {
        return Err(Failure::usage("--relay-only needs a relay that peers come through")
            .hint("name one with --via RELAY, or in the variable MANYPATH_RELAY"));
    }
    let relays = via::look_up(&args.via).await?.told(screen);
    if is_only && relays.is_empty() { Err(unreachable()) } else { Ok(relays) }
}

/// The failure of a command that takes relays alone, and that none lets peers in to.
fn unreachable() -> Failure {
    Failure::no_path("no relay gave this host an address, so nobody could reach it").hint(
        "check the name, the user and the password of the relay, and that UDP to its port passes; or \
         leave out --relay-only",
    )
}

/// Where a command listens, in words; at no address of its own if it takes relays alone.
pub(crate) fn listening_on(ends: &[String]) -> String {
    if ends.is_empty() {
        "Listening through relays alone".to_owned()
    } else {
        format!("Listening on {}", ends.join(", "))
    }
}

/// The addresses that relays gave this endpoint, as peers were told them.
#[derive(Clone, Debug, Default)]
pub(crate) struct RelayedPlaces(Vec<RelayedPlace>);

/// An address that a relay gave this endpoint.
#[derive(Clone, Debug)]
struct RelayedPlace {
    name: String,
    /// The UDP address of the relay itself.
    relay: SocketAddr,
    address: SocketAddr,
    /// The relay lets everybody in.
    is_open: bool,
    /// The number by which the relay knows this endpoint, for a code.
    number: Option<u32>,
}

impl RelayedPlaces {
    /// Waits until the relays have answered, for three seconds at most, and says which did not.
    ///
    /// # Errors
    /// Relays are the only way to this endpoint, and none gave it an address.
    pub(crate) async fn wait(
        endpoint: &Endpoint,
        args: &ListenViaArgs,
        screen: &Screen,
    ) -> Result<RelayedPlaces> {
        let is_only = args.relay_use.wanted() == RelayUse::Only;
        if endpoint.relays().is_empty() {
            return Ok(RelayedPlaces::default());
        }
        let all = |relays: &[RelayStatus]| relays.iter().all(is_settled);
        let any = |relays: &[RelayStatus]| {
            relays.iter().any(|relay| relay.relayed.is_some()) || all(relays)
        };
        let until = tokio::time::Instant::now() + WAIT;
        let waited = tokio::time::timeout_at(until, endpoint.relays_until(any)).await;
        if waited.is_ok() {
            let until = until.min(tokio::time::Instant::now() + WAIT_FOR_OTHERS);
            let _ = tokio::time::timeout_at(until, endpoint.relays_until(all)).await;
        }
        let places = RelayedPlaces::of(&endpoint.relays());
        places.say(&endpoint.relays(), screen);
        if places.0.is_empty() {
            if is_only {
                return Err(unreachable());
            }
            screen.line("no relay gave this host an address: peers can only reach it directly");
        }
        Ok(places)
    }

    fn of(relays: &[RelayStatus]) -> RelayedPlaces {
        let place = |relay: &RelayStatus| {
            Some(RelayedPlace {
                name: relay.name.clone(),
                relay: relay.address,
                address: relay.relayed?,
                is_open: relay.is_open,
                number: relay.number,
            })
        };
        RelayedPlaces(relays.iter().filter_map(place).collect())
    }

    /// Says what peers need to know, and which relays have no address for this host.
    fn say(&self, relays: &[RelayStatus], screen: &Screen) {
        for relay in relays.iter().filter(|relay| relay.relayed.is_none()) {
            let name = &relay.name;
            screen.line(&match &relay.error {
                Some(error) => format!("relay {name}: {error}; going on without it"),
                None => format!("relay {name}: no answer yet; going on without it"),
            });
        }
        for RelayedPlace { name, .. } in self.0.iter().filter(|place| !place.is_open) {
            screen.line(&format!(
                "Note: the relay {name} lets in its own users only: at the other end, too, it must \
                 be named with --via"
            ));
        }
    }

    /// True if peers everywhere can come through one of the relays.
    pub(crate) fn reach_all(&self) -> bool {
        self.0.iter().any(|place| place.is_open)
    }

    /// The code with the number of the first relay that gave one.
    ///
    /// # Errors
    /// No relay gave one.
    pub(crate) fn code(&self, code: Code) -> Result<ShownCode> {
        let mut numbered = self.0.iter().filter_map(|place| Some((&place.name, place.number?)));
        let Some((relay, number)) = numbered.next() else {
            return Err(Failure::no_path("no relay gave this receiver a number for a code").hint(
                "leave out --code and use the ticket, or name a relay that runs `manypath \
                     relay` without --no-open",
            ));
        };
        Ok(ShownCode { code: RelayCode { number, code }, relay: relay.clone() })
    }

    /// As a person reads them, each behind its relay.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let line =
            |place: &RelayedPlace| format!("Through the relay {}: {}", place.name, place.address);
        self.0.iter().map(line)
    }

    /// As JSON.
    pub(crate) fn json(&self) -> Vec<Value> {
        let value = |place: &RelayedPlace| {
            json!({
                "relay": place.name,
                "address": place.address.to_string(),
                "open": place.is_open,
                "number": place.number,
            })
        };
        self.0.iter().map(value).collect()
    }

    /// As a ticket has them.
    pub(crate) fn for_ticket(&self) -> Vec<Relayed> {
        let relayed = |place: &RelayedPlace| Relayed {
            address: place.address,
            relay_port: place.relay.port(),
        };
        self.0.iter().map(relayed).collect()
    }

    /// Watches the relays from now on.
    pub(crate) fn watch(
        &self,
        endpoint: &Endpoint,
        code: Option<ShownCode>,
        screen: &Screen,
    ) -> RelayedWatch {
        let told = self.0.iter().map(|place| (place.relay, place.address)).collect();
        let mut seen = Seen { told, errors: BTreeMap::new(), code };
        seen.lines(&endpoint.relays()); // said already
        let (endpoint, screen) = (endpoint.clone(), screen.clone());
        RelayedWatch(tokio::spawn(async move {
            let mut known = endpoint.relays();
            loop {
                seen.lines(&known).iter().for_each(|line| screen.line(line));
                let now = endpoint.relays_until(|now| now != known).await;
                if now == known {
                    return;
                }
                tokio::time::sleep(SETTLES).await;
                known = endpoint.relays();
            }
        }))
    }
}

/// A code as senders type it, and the relay that knows its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShownCode {
    pub(crate) code: RelayCode,
    /// The relay's host and port.
    relay: String,
}

impl ShownCode {
    /// The code with the relay behind it. The usual port is left out.
    pub(crate) fn at_relay(&self) -> String {
        let usual = format!(":{TURN_PORT}");
        format!("{}@{}", self.code, self.relay.strip_suffix(&usual).unwrap_or(&self.relay))
    }

    /// The line for a relay that gave another number, from which the code begins with it.
    fn renumbered(&mut self, relay: &str, number: Option<u32>) -> Option<String> {
        let number = number.filter(|number| relay == self.relay && *number != self.code.number)?;
        self.code.number = number;
        Some(format!(
            "relay {relay}: it gave this host another number; the code is {} now",
            self.code
        ))
    }
}

/// The relay has given an address, or says why not.
fn is_settled(relay: &RelayStatus) -> bool {
    relay.relayed.is_some() || relay.error.is_some()
}

/// Tells the user what becomes of the relayed addresses, until it is dropped.
#[derive(Debug)]
pub(crate) struct RelayedWatch(JoinHandle<()>);

impl Drop for RelayedWatch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The state of the relays that the user has heard of, by the address of each.
struct Seen {
    /// The relayed addresses that peers were told. It is taken out once that is said to be wrong.
    told: BTreeMap<SocketAddr, SocketAddr>,
    errors: BTreeMap<SocketAddr, String>,
    /// The code that peers were told, if there is one.
    code: Option<ShownCode>,
}

impl Seen {
    /// The lines for what has changed. That tickets are stale is said once for each relay.
    fn lines(&mut self, now: &[RelayStatus]) -> Vec<String> {
        let mut lines = Vec::new();
        for RelayStatus { name, address, relayed, error, number, .. } in now {
            match error {
                Some(error) if self.errors.get(address) != Some(error) => {
                    lines.push(format!("relay {name}: {error}"));
                    self.errors.insert(*address, error.clone());
                }
                Some(_) => {}
                None => drop(self.errors.remove(address)),
            }
            if let Some(new) = relayed
                && self.told.get(address).is_some_and(|told| told != new)
            {
                self.told.remove(address);
                let stays = self.code.as_ref().is_some_and(|code| code.relay == *name);
                let remedy = if stays {
                    "the code leads to the new one"
                } else {
                    "start this command again for new ones"
                };
                lines.push(format!(
                    "relay {name}: it gave this host another address, {new}; tickets and addresses \
                     from before lead there no more; {remedy}"
                ));
            }
            lines.extend(self.code.as_mut().and_then(|code| code.renumbered(name, *number)));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(relayed: Option<&str>, error: Option<&str>) -> RelayStatus {
        let address = "203.0.113.5:3478".parse().unwrap();
        let mut status = RelayStatus::new("relay.example:3478".to_owned(), address);
        status.relayed = relayed.map(|text| text.parse().unwrap());
        status.error = error.map(str::to_owned);
        status
    }

    #[test]
    fn a_stale_ticket_is_said_once() {
        let first = "203.0.113.5:50001";
        let told = RelayedPlaces::of(&[status(Some(first), None)]);
        let told = told.0.iter().map(|place| (place.relay, place.address)).collect();
        let mut seen = Seen { told, errors: BTreeMap::new(), code: None };
        let mut lines = |relayed: Option<&str>, error| seen.lines(&[status(relayed, error)]);
        assert!(lines(Some(first), None).is_empty());
        assert_eq!(lines(None, Some("gone")), ["relay relay.example:3478: gone"]);
        assert!(lines(None, Some("gone")).is_empty(), "said before");
        let stale = lines(Some("203.0.113.5:50002"), None);
        assert!(stale.len() == 1 && stale[0].contains("203.0.113.5:50002"), "{stale:?}");
        for port in [50_002, 50_003] {
            assert!(lines(Some(&format!("203.0.113.5:{port}")), None).is_empty());
        }
    }

    #[test]
    fn a_code_begins_with_the_number_that_a_relay_gave() {
        let mut first = status(Some("203.0.113.5:50001"), None);
        let code = || "cabana-anvil".parse::<Code>().unwrap();
        let none = RelayedPlaces::of(&[first.clone()]).code(code()).unwrap_err();
        assert!(none.message.contains("number") && none.hint.unwrap().contains("ticket"));
        first.number = Some(7);
        let shown = RelayedPlaces::of(&[first.clone()]).code(code()).unwrap();
        assert_eq!(shown.at_relay(), "7-cabana-anvil@relay.example");
        let mut seen =
            Seen { told: BTreeMap::new(), errors: BTreeMap::new(), code: Some(shown.clone()) };
        assert!(seen.lines(&[first.clone()]).is_empty());
        first.number = Some(9);
        let [line] = &seen.lines(&[first.clone()])[..] else { panic!("one line") };
        assert!(line.contains("the code is 9-cabana-anvil now"), "{line}");
        assert!(seen.lines(&[first.clone()]).is_empty(), "said before");
        let other_port = ShownCode { relay: "relay.example:99".to_owned(), ..shown };
        assert_eq!(other_port.at_relay(), "7-cabana-anvil@relay.example:99");
    }

    #[test]
    fn a_restarted_relay_leaves_the_code_as_it_was() {
        let mut relay = status(Some("203.0.113.5:50001"), None);
        relay.number = Some(7);
        let places = RelayedPlaces::of(&[relay.clone()]);
        let code = Some(places.code("cabana-anvil".parse().unwrap()).unwrap());
        let told = places.0.iter().map(|place| (place.relay, place.address)).collect();
        let mut seen = Seen { told, errors: BTreeMap::new(), code };
        relay.relayed = Some("203.0.113.5:50002".parse().unwrap());
        let [line] = &seen.lines(&[relay])[..] else { panic!("one line") };
        assert!(line.contains("the code leads to the new one"), "{line}");
    }

    #[test]
    fn the_ticket_has_the_port_of_the_relay_itself() {
        let places = RelayedPlaces::of(&[status(Some("203.0.113.9:50001"), None)]);
        let [relayed] = places.for_ticket()[..] else { panic!("one") };
        assert_eq!(relayed.relay(), "203.0.113.9:3478".parse().unwrap());
        assert!(!places.reach_all(), "this relay has its own users come through alone");
        assert!(RelayedPlaces::of(&[status(None, Some("gone"))]).for_ticket().is_empty());
    }
}
