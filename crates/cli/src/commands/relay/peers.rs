//! `--peers`: the other relays of an overlay.

use std::net::SocketAddr;
use std::time::Duration;

use manypath::relay::MeshRelay;
use manypath_live::{Label, Stat, StatKind};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::args::RelayArgs;
use crate::connect::host::Host;
use crate::failure::{Failure, Result};
use crate::screen::Screen;

/// Relays that can be named; a relay knows no more.
const NAMED_MAX: usize = 32;
/// How often their names are looked up.
const LOOK_UP: Duration = Duration::from_secs(60);

/// The other relays as the command line names them.
pub(super) fn named(args: &RelayArgs, invented: bool) -> Result<Vec<Host>> {
    if args.peers.len() > NAMED_MAX {
        return Err(Failure::usage(format!("--peers: more than {NAMED_MAX} relays")));
    }
    if !args.peers.is_empty() && invented {
        return Err(Failure::usage("--peers: relays know each other by the first of their users")
            .hint(
                "give each of them the same first user, by --users FILE or --user NAME:PASSWORD",
            ));
    }
    args.peers.iter().map(|text| Host::read("--peers", text)).collect()
}

/// The address of a relay that the user named.
pub(super) struct Found {
    index: usize,
    address: SocketAddr,
}

/// The named relays, whose names are looked up now and then.
pub(super) struct Named {
    /// By their place on the command line; `None` if the name was not found yet.
    addresses: Vec<Option<SocketAddr>>,
    found: mpsc::Receiver<Found>,
}

impl Named {
    /// Begins to look them up, each on its own: a name that takes long holds up no other.
    pub(super) fn look_up(hosts: Vec<Host>, screen: &Screen) -> Named {
        let (told, found) = mpsc::channel(NAMED_MAX);
        let addresses = vec![None; hosts.len()];
        for (index, host) in hosts.into_iter().enumerate() {
            tokio::spawn(look_up(index, host, told.clone(), screen.clone()));
        }
        Named { addresses, found }
    }

    /// The addresses of all, when one is known that was not known before. Does not end if none are
    /// named. Cancel safe.
    pub(super) async fn next(&mut self) -> Vec<SocketAddr> {
        loop {
            let Some(Found { index, address }) = self.found.recv().await else {
                return std::future::pending().await;
            };
            if self.addresses[index].replace(address) != Some(address) {
                return self.addresses.iter().flatten().copied().collect();
            }
        }
    }
}

/// Tells the address of a relay each minute, until nobody wants it.
async fn look_up(index: usize, host: Host, told: mpsc::Sender<Found>, screen: Screen) {
    let mut was_missing = false;
    loop {
        let found = host.look_up().await;
        // IPv4 first, as users of a relay do.
        let address = found.as_ref().ok().and_then(|all| all.iter().min_by_key(|a| a.is_ipv6()));
        if address.is_none() && !was_missing {
            let why = found.as_ref().err().map_or("no address".to_owned(), ToString::to_string);
            screen.line(&format!("cannot find the relay {host}: {why}; going on without it"));
        }
        was_missing = address.is_none();
        if let Some(&address) = address
            && told.send(Found { index, address }).await.is_err()
        {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_UP) => {}
            () = told.closed() => return,
        }
    }
}

/// A line for each relay whose state has changed.
pub(super) fn changes(before: &[MeshRelay], now: &[MeshRelay]) -> Vec<String> {
    let was_alive = |address| before.iter().any(|r| r.address == address && r.is_alive);
    let changed = now.iter().filter(|r| r.is_alive != was_alive(r.address));
    let text = |relay: &MeshRelay| match relay.rtt {
        Some(rtt) if relay.is_alive => {
            format!("relay {}: answers after {:.1} ms", relay.address, millis(rtt))
        }
        _ => format!("relay {}: does not answer any more", relay.address),
    };
    changed.map(text).collect()
}

/// A line on those that answer; `None` if no other relay is known.
pub(super) fn text(relays: &[MeshRelay]) -> Option<String> {
    let one = |relay: &MeshRelay| {
        let loss = relay.loss * 100.0;
        match relay.rtt {
            Some(rtt) if relay.is_alive => {
                format!("{} ({:.1} ms, {loss:.0} % lost)", relay.address, millis(rtt))
            }
            _ => format!("{} (does not answer)", relay.address),
        }
    };
    let all: Vec<_> = relays.iter().map(one).collect();
    (!all.is_empty()).then(|| format!("other relays: {}", all.join(", ")))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The record of `--json` on a change.
pub(super) fn json(relays: &[MeshRelay]) -> Value {
    let one = |relay: &MeshRelay| {
        json!({
            "address": relay.address.to_string(),
            "alive": relay.is_alive,
            "rtt_s": relay.rtt.map(|rtt| rtt.as_secs_f64()),
            "loss": relay.loss,
        })
    };
    json!({"event": "relays", "relays": relays.iter().map(one).collect::<Vec<_>>()})
}

/// The other relays as metrics.
pub(super) fn stats(relays: &[MeshRelay]) -> Vec<Stat> {
    let of_each = |name, help, value: fn(&MeshRelay) -> Option<f64>| {
        relays.iter().filter_map(move |relay| {
            let label = Label { name: "relay", value: relay.address.to_string() };
            let (label, value) = (Some(label), value(relay)?);
            Some(Stat { name, help, kind: StatKind::Gauge, label, value })
        })
    };
    let alive = of_each("relay_peer_alive", "1 if another relay answers, else 0.", |relay| {
        Some(f64::from(u8::from(relay.is_alive)))
    });
    let rtt = of_each(
        "relay_peer_rtt_seconds",
        "Round-trip time to another relay, a moving average.",
        |relay| Some(relay.rtt?.as_secs_f64()),
    );
    let loss = of_each(
        "relay_peer_loss_ratio",
        "Fraction of the last 100 requests that another relay did not answer.",
        |relay| Some(relay.loss),
    );
    alive.chain(rtt).chain(loss).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relay(n: u8, is_alive: bool) -> MeshRelay {
        let address = SocketAddr::from(([192, 0, 2, n], 3478));
        MeshRelay { address, is_alive, rtt: Some(Duration::from_millis(2)), loss: 0.25 }
    }

    #[test]
    fn a_relay_that_comes_or_dies_is_said_once() {
        let (none, up, down) = ([relay(1, false)], [relay(1, true)], [relay(1, false)]);
        assert_eq!(changes(&[], &none), [] as [String; 0]);
        assert_eq!(changes(&none, &up), ["relay 192.0.2.1:3478: answers after 2.0 ms"]);
        assert_eq!(changes(&up, &up), [] as [String; 0]);
        assert_eq!(changes(&up, &down), ["relay 192.0.2.1:3478: does not answer any more"]);
        let both = text(&[relay(1, true), relay(2, false)]).unwrap();
        assert_eq!(
            both,
            "other relays: 192.0.2.1:3478 (2.0 ms, 25 % lost), 192.0.2.2:3478 (does not answer)"
        );
        assert_eq!(text(&[]), None);
    }

    #[tokio::test]
    async fn a_name_that_is_not_found_stops_no_other() {
        let hosts = ["no..relay", "192.0.2.1", "192.0.2.2:80"];
        let hosts = hosts.map(|text| Host::read("--peers", text).unwrap()).to_vec();
        let report = crate::args::ReportArgs { json: false, quiet: true, verbose: 0 };
        let mut named = Named::look_up(hosts, &Screen::new(&report));
        let wanted: Vec<SocketAddr> =
            ["192.0.2.1:3478", "192.0.2.2:80"].map(|text| text.parse().unwrap()).to_vec();
        let all = async { while named.next().await != wanted {} };
        tokio::time::timeout(Duration::from_secs(30), all).await.expect("in time");
    }
}
