//! Announcing and finding on all interfaces of this host.

use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant as StdInstant};

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval, sleep_until, timeout};

use crate::announcement::Announcement;
use crate::announcer::{Announcer, Rival};
use crate::finder::{Finder, Found};
use crate::message::MESSAGE_MAX;
use crate::name::Name;
use crate::sockets::Network;

/// How often a receiver looks for new interfaces and addresses.
const LOOK: Duration = Duration::from_secs(1);
/// Datagrams that a receiver reads between two looks. The others wait, and are dropped if they are
/// many: a flood costs no more.
const DATAGRAMS_MAX: u32 = 500;
/// When a sender asks, counted from its start (RFC 6762, section 5.2).
const ASKS: [Duration; 3] = [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(3)];
/// How long a sender waits for another receiver of the same name. A receiver sends a message a
/// second on each link, and answers up to 0.12 s later than it could.
const SETTLE: Duration = Duration::from_millis(1200);
/// How long the last words of a receiver may take.
const GOODBYE_TIME_MAX: Duration = Duration::from_millis(500);

/// A receiver that is announced; until [`Announcing::stop`], or until this is dropped.
#[derive(Debug)]
pub struct Announcing {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Announcing {
    /// Takes the announcement back.
    pub async fn stop(self) {
        let _ = self.stop.send(());
        let _ = timeout(GOODBYE_TIME_MAX, self.task).await;
    }
}

/// Announces a receiver on all interfaces of this host, also on those that come later. `addresses`
/// tells its addresses at any time. `rival` hears of another receiver with the same name, once. To
/// be called within a tokio runtime.
///
/// # Errors
/// If no interface can be used: mostly, another program holds the port for itself.
pub fn announce(
    announcement: Announcement,
    addresses: impl FnMut() -> Vec<IpAddr> + Send + 'static,
    rival: impl FnMut(Rival) + Send + 'static,
) -> io::Result<Announcing> {
    let network = Network::open()?;
    let (stop, stopped) = oneshot::channel();
    let announcer = Announcer::new(announcement);
    let task = tokio::spawn(run(network, announcer, stopped, addresses, rival));
    Ok(Announcing { stop, task })
}

async fn run(
    mut network: Network,
    mut announcer: Announcer,
    mut stopped: oneshot::Receiver<()>,
    mut addresses: impl FnMut() -> Vec<IpAddr>,
    mut on_rival: impl FnMut(Rival),
) {
    let mut buffer = vec![0; MESSAGE_MAX + 1];
    let mut looks = interval(LOOK);
    let mut heard = 0;
    loop {
        let due = announcer.poll_timeout().map(Instant::from_std);
        tokio::select! {
            stop = &mut stopped => {
                // Dropped without a word: the process may be ending.
                if stop.is_err() {
                    return;
                }
                break;
            }
            _ = looks.tick() => {
                // What does not work now may work at the next look.
                let _ = network.refresh();
                announcer.set_links(now(), &network.links());
                announcer.set_addresses(now(), addresses());
                heard = 0;
            }
            got = network.receive(&mut buffer), if heard < DATAGRAMS_MAX => {
                heard += 1;
                let rival = announcer.received(now(), got.link, &buffer[..got.length]);
                rival.into_iter().for_each(&mut on_rival);
            }
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
        while let Some((link, datagram)) = announcer.poll_transmit(now()) {
            network.send(link, &datagram).await;
        }
    }
    for (link, datagram) in announcer.goodbye() {
        network.send(link, &datagram).await;
    }
}

/// Looks for receivers with this name. Ends 1.2 s after the first answer, so that a second
/// receiver of the same name is noticed, or when nobody has answered for this time.
///
/// # Errors
/// If no interface can be used.
pub async fn find(name: &Name, wait: Duration) -> io::Result<Found> {
    search(Some(name.clone()), wait).await
}

/// Looks for all receivers for this time. They are [`Found::others`].
///
/// # Errors
/// If no interface can be used.
pub async fn list(wait: Duration) -> io::Result<Found> {
    search(None, wait).await
}

async fn search(name: Option<Name>, wait: Duration) -> io::Result<Found> {
    let mut network = Network::open()?;
    let mut finder = Finder::new(name);
    let mut buffer = vec![0; MESSAGE_MAX + 1];
    let begin = Instant::now();
    let mut end = begin + wait;
    let mut asks = ASKS.into_iter().map(|after| begin + after).peekable();
    let mut is_found = false;
    loop {
        let ask = asks.peek().copied();
        tokio::select! {
            () = sleep_until(end) => return Ok(finder.into_found()),
            () = sleep_until(ask.unwrap_or(end)), if ask.is_some() => {
                asks.next();
                let _ = network.refresh();
                for link in network.links() {
                    network.send(link, &finder.query()).await;
                }
            }
            got = network.receive(&mut buffer) => {
                finder.received(&buffer[..got.length], got.is_loopback);
                if !is_found && !finder.found().same.is_empty() {
                    is_found = true;
                    end = end.min(Instant::now() + SETTLE);
                }
            }
        }
    }
}

fn now() -> StdInstant {
    Instant::now().into_std()
}
