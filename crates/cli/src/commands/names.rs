//! Names in the local network: `recv --name`, `send FILE NAME`, `manypath names`.

use std::net::SocketAddr;
use std::time::Duration;

use manypath::Endpoint;
use manypath_names::{Announcement, Announcing, Found, Id, Name, Proof, Rival, SAME_MAX};
use manypath_trust::Fingerprint;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::args::{DEFAULT_PORT, NamesArgs};
use crate::connect::dest::{Destination, Local};
use crate::connect::security::Serving;
use crate::connect::transport;
use crate::failure::{Failure, Result};
use crate::screen::Screen;
use crate::screen::output;
use crate::settings;
use crate::signals::interrupted;

/// How long a name is looked for.
const WAIT: Duration = Duration::from_secs(5);
/// The same if there is a host of that name, which is taken then: two questions.
const WAIT_BESIDE_HOST: Duration = Duration::from_millis(1300);
/// The longest time of `manypath names`.
const LIST_TIME_MAX: Duration = Duration::from_secs(3600);
/// Names that a message lists.
const NAMES_SHOWN: usize = 10;
/// The remedy where names do not work.
const ELSEWHERE: &str = "use the ticket that `manypath recv` prints, or HOST:PORT";

// ---- recv --name ----

/// The announcement of a receiver, if it has a name.
#[derive(Debug)]
pub(crate) struct Announced(Option<Announcing>);

impl Announced {
    /// Announces the receiver under this name. Whoever sends must give `proof`.
    pub(crate) fn start(
        name: Option<&Name>,
        serving: &Serving,
        proof: Proof,
        endpoint: &Endpoint,
        screen: &Screen,
    ) -> Result<Announced> {
        let Some(name) = name else { return Ok(Announced(None)) };
        let key = serving.key();
        let announcement = Announcement {
            name: name.clone(),
            id: key.as_ref().map_or_else(random_id, |key| Ok(Announcement::id_of(key)))?,
            key,
            proof: if key.is_some() { proof } else { Proof::Certificate },
            port: endpoint.udp_port(),
            addresses: transport::reachable(endpoint),
        };
        let (endpoint, screen, own) = (endpoint.clone(), screen.clone(), name.clone());
        let addresses = move || transport::reachable(&endpoint);
        let rival = move |rival: Rival| {
            screen.line(&format!(
                "Note: another receiver calls itself {own}, too, at {}; senders are told of both, \
                 and send to neither",
                ips(&rival)
            ));
        };
        let announcing = manypath_names::announce(announcement, addresses, rival);
        match announcing {
            Ok(announcing) => Ok(Announced(Some(announcing))),
            Err(e) => Err(no_multicast(&e, "leave out --name")),
        }
    }

    /// Takes the announcement back.
    pub(crate) async fn stop(self) {
        if let Some(announcing) = self.0 {
            announcing.stop().await;
        }
    }
}

fn random_id() -> Result<Id> {
    let number =
        getrandom::u64().map_err(|e| Failure::failed(format!("no random numbers: {e}")))?;
    Ok(number.to_be_bytes())
}

fn ips(rival: &Rival) -> String {
    rival.addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn no_multicast(error: &std::io::Error, instead: &str) -> Failure {
    let what = format!("cannot use names in the local network (UDP port 5353): {error}");
    Failure::failed(what).hint(format!("end the program that holds that port, or {instead}"))
}

// ---- send FILE NAME ----

/// The receiver in the local network that DEST names; DEST as it was if it is no name, or if a host
/// has that name and no receiver. `peer` is the key that the user wants the receiver to have.
pub(crate) async fn look_up(
    dest: Destination,
    peer: Option<&str>,
    screen: &Screen,
) -> Result<Destination> {
    let Some(name) = dest.word().and_then(|word| word.parse::<Name>().ok()) else {
        return Ok(dest);
    };
    let peer = peer.map(crate::connect::security::parse_peer).transpose()?;
    let is_host = async {
        let host = (name.as_str(), DEFAULT_PORT);
        tokio::net::lookup_host(host).await.is_ok_and(|mut all| all.next().is_some())
    };
    let search = manypath_names::find(&name, WAIT);
    tokio::pin!(is_host, search);
    let enough = Instant::now() + WAIT_BESIDE_HOST;
    let mut host = None;
    let found = loop {
        tokio::select! {
            found = &mut search => break match found {
                Ok(found) => Some(found),
                // Names do not work here, and may not be meant.
                Err(e) => {
                    let is_host = match host {
                        Some(is_host) => is_host,
                        None => is_host.await,
                    };
                    if !is_host {
                        return Err(no_multicast(&e, ELSEWHERE));
                    }
                    None
                }
            },
            is_host = &mut is_host, if host.is_none() => host = Some(is_host),
            () = sleep_until(enough), if host == Some(true) => break None,
        }
    };
    let Some(found) = found else {
        screen.line(&format!("No receiver calls itself {name}: taking the host of that name"));
        return Ok(dest);
    };
    let local = choose(&name, found, peer)?;
    screen.line(&format!("{name} is at {}", transport::addresses(&local.addresses)));
    Ok(Destination::Local(local))
}

/// The receiver with this name, and with the key `peer` if that is given.
fn choose(name: &Name, found: Found, peer: Option<Fingerprint>) -> Result<Local> {
    let Found { mut same, others, has_more } = found;
    let all = same.len();
    if let Some(peer) = peer {
        same.retain(|announcement| announcement.key == Some(peer));
        if all > 0 && same.is_empty() {
            let what = format!("{name} has another key than that of --peer");
            return Err(Failure::not_authorised(what).hint("nothing was sent; check the key"));
        }
    }
    if same.len() > 1 {
        let places: Vec<String> = same.iter().map(|one| format!("\n  {}", place(one))).collect();
        let count = match same.len() {
            2 => "two".to_owned(),
            SAME_MAX if has_more => format!("at least {SAME_MAX}"),
            count => count.to_string(),
        };
        let what = format!("{count} receivers call themselves {name}:{}", places.concat());
        return Err(Failure::failed(what).hint(format!(
            "say which by the key that its `recv --name` prints: --peer sha256:...; or {ELSEWHERE}"
        )));
    }
    let Some(one) = same.pop() else { return Err(nobody(name, &others)) };
    Ok(Local {
        // As the user wrote it; case may differ.
        name: name.to_string(),
        addresses: socket_addresses(&one),
        // With --peer the user has said which key it must be.
        key: if peer.is_none() { one.key } else { None },
        proof: one.proof,
    })
}

fn nobody(name: &Name, others: &[Announcement]) -> Failure {
    let mut names: Vec<&str> = others.iter().map(|other| other.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let seen = match names.as_slice() {
        [] => String::new(),
        _ => {
            let more = if names.len() > NAMES_SHOWN { ", ..." } else { "" };
            names.truncate(NAMES_SHOWN);
            format!("; it has these names: {}{more}", names.join(", "))
        }
    };
    let what = format!("nobody in the local network calls itself {name}, and no host does{seen}");
    Failure::no_path(what).hint(format!(
        "check that `manypath recv --name {name}` runs in the same network, and that firewalls on \
         both machines let UDP port 5353 pass; elsewhere {ELSEWHERE}"
    ))
}

fn socket_addresses(announcement: &Announcement) -> Vec<SocketAddr> {
    announcement.addresses.iter().map(|&ip| SocketAddr::new(ip, announcement.port)).collect()
}

/// Where a receiver is, and its key, for a message.
fn place(announcement: &Announcement) -> String {
    let addresses = transport::addresses(&socket_addresses(announcement));
    match announcement.key {
        Some(key) => format!("{addresses} ({key})"),
        None => format!("{addresses} (with a certificate)"),
    }
}

// ---- names ----

/// `manypath names`.
pub(crate) async fn run(args: NamesArgs) -> Result<()> {
    let wait = settings::duration("--wait", &args.wait)?.min(LIST_TIME_MAX);
    let screen = Screen::new(&args.report);
    let found = tokio::select! {
        found = manypath_names::list(wait) => found.map_err(|e| no_multicast(&e, ELSEWHERE))?,
        () = interrupted() => return Err(Failure::failed("interrupted")),
    };
    let mut all = found.others;
    all.sort_by_key(|one| (one.name.as_str().to_ascii_lowercase(), one.id));
    if args.report.json {
        let names: Vec<Value> = all.iter().map(as_json).collect();
        return output::print(&format!("{}\n", json!({ "names": names, "more": found.has_more })));
    }
    if all.is_empty() {
        screen.line("No receiver announces a name: `manypath recv --name NAME` does");
    }
    let width = all.iter().map(|one| one.name.as_str().len()).max().unwrap_or(0);
    let line = |one: &Announcement| format!("{:width$}  {}\n", one.name.as_str(), place(one));
    output::print(&all.iter().map(line).collect::<String>())?;
    if found.has_more {
        screen.line("There are more, which are not listed");
    }
    Ok(())
}

fn as_json(one: &Announcement) -> Value {
    json!({
        "name": one.name.as_str(),
        "addresses": one.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "port": one.port,
        "key": one.key.map(|key| key.to_string()),
        "needs": one.proof.as_str(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;

    fn receiver(name: &str, seed: &str) -> Announcement {
        let key = Fingerprint::of(seed.as_bytes());
        Announcement {
            name: name.parse().unwrap(),
            id: Announcement::id_of(&key),
            key: Some(key),
            proof: Proof::Code,
            port: 9899,
            addresses: vec!["192.0.2.7".parse().unwrap()],
        }
    }

    fn found(same: &[Announcement], others: &[Announcement]) -> Found {
        Found { same: same.to_vec(), others: others.to_vec(), has_more: false }
    }

    #[test]
    fn one_receiver_is_taken() {
        let (name, laptop) = ("Laptop".parse().unwrap(), receiver("laptop", "a"));
        let local = choose(&name, found(std::slice::from_ref(&laptop), &[]), None).unwrap();
        assert_eq!(local.name, "Laptop");
        assert_eq!(local.addresses, ["192.0.2.7:9899".parse().unwrap()]);
        assert_eq!((local.key, local.proof), (laptop.key, Proof::Code));
    }

    #[test]
    fn of_two_receivers_neither_is_taken_unless_the_key_is_given() {
        let name = "laptop".parse().unwrap();
        let two = [receiver("laptop", "a"), receiver("LAPTOP", "b")];
        let failure = choose(&name, found(&two, &[]), None).unwrap_err();
        assert_eq!(failure.exit, Exit::Failed);
        assert!(failure.message.starts_with("two receivers call themselves laptop:\n  192.0.2.7:"));
        for one in &two {
            assert!(failure.message.contains(&one.key.unwrap().to_string()), "{failure}");
        }
        assert!(failure.hint.unwrap().contains("--peer"));
        // The key is then a matter of --peer.
        let chosen = choose(&name, found(&two, &[]), two[1].key).unwrap();
        assert_eq!(chosen.key, None);
        let other = Some(Fingerprint::of(b"c"));
        assert_eq!(choose(&name, found(&two, &[]), other).unwrap_err().exit, Exit::NotAuthorised);
        let many: Vec<_> = (0..SAME_MAX).map(|i| receiver("laptop", &i.to_string())).collect();
        let many = Found { has_more: true, ..found(&many, &[]) };
        let failure = choose(&name, many, None).unwrap_err();
        assert!(failure.message.starts_with("at least 8 receivers"), "{failure}");
    }

    #[test]
    fn nobody_is_said_with_the_names_that_there_are() {
        let name = "laptop".parse().unwrap();
        let failure = choose(&name, found(&[], &[]), None).unwrap_err();
        assert_eq!(failure.exit, Exit::NoPath);
        assert!(!failure.message.contains("these names"), "{failure}");
        assert!(failure.hint.unwrap().contains("recv --name laptop"));
        let others: Vec<_> =
            (0..30).map(|i| receiver(&format!("host{:02}", i / 2), &i.to_string())).collect();
        let failure = choose(&name, found(&[], &others), None).unwrap_err();
        assert!(
            failure.message.contains("host00, host01, ")
                && failure.message.ends_with("host09, ...")
        );
    }

    #[test]
    fn a_receiver_as_json() {
        let value = as_json(&receiver("laptop", "a"));
        assert_eq!(value["name"], "laptop");
        assert_eq!(value["addresses"], json!(["192.0.2.7"]));
        assert_eq!((&value["port"], &value["needs"]), (&json!(9899), &json!("code")));
        assert!(value["key"].as_str().unwrap().starts_with("sha256:"));
    }
}
