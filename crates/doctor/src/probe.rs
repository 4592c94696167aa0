//! Probes: packets that the destination answers without keeping anything.
//!
//! A probe is an SCTP INIT, which whoever takes associations answers (RFC 9260 §5.1), and a STUN
//! Binding request (RFC 8489), which relays answer. Everything blocks, with a limit.

mod behaviour;
mod clock;
mod mapping;
mod memory;
mod mtu;
mod packet;
mod socket;

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use manypath_net::Clock;

pub(crate) use behaviour::behaviour;
pub use behaviour::{Behaviour, Dependence};
pub use clock::Offset;
pub(crate) use clock::{now, offset};
pub(crate) use mapping::port_mapping;
pub use memory::Memory;
pub(crate) use memory::memory;
pub use mtu::Mtu;
pub(crate) use mtu::{search, sends_batches};
pub(crate) use socket::open;

/// How long the answer to each probe of a way is waited for.
const WAITS: [Duration; 4] = [
    Duration::from_millis(250),
    Duration::from_millis(400),
    Duration::from_millis(600),
    Duration::from_millis(900),
];
/// Datagrams are read in pieces of this size; longer ones are no answers.
const ANSWER_MAX: usize = 2048;

/// Why a probe did not leave, or did not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendError {
    /// A firewall of this host does not let it leave.
    Denied,
    /// The destination says that nothing listens there.
    Refused,
    /// A router or this host says that there is no way.
    Unreachable,
    /// Anything else.
    Other(String),
}

impl SendError {
    fn of(error: &io::Error) -> SendError {
        match error.kind() {
            io::ErrorKind::PermissionDenied => SendError::Denied,
            io::ErrorKind::ConnectionRefused => SendError::Refused,
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
                SendError::Unreachable
            }
            _ => SendError::Other(error.to_string()),
        }
    }
}

/// The result of the probes of a way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Probes sent.
    pub sent: u32,
    /// The round-trip time of the one that was answered.
    pub rtt: Option<Duration>,
    /// Why none was answered, if that is known.
    pub error: Option<SendError>,
}

impl Reach {
    /// True if a probe was answered.
    pub fn is_answered(&self) -> bool {
        self.rtt.is_some()
    }

    fn failed(error: &io::Error) -> Reach {
        Reach { sent: 0, rtt: None, error: Some(SendError::of(error)) }
    }
}

/// Our transport address, and how a STUN server sees it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Ours.
    pub local: SocketAddr,
    /// The server.
    pub server: SocketAddr,
    /// Our address there.
    pub seen: SocketAddr,
}

/// Sends probes until one is answered.
pub(crate) fn reach(source: IpAddr, device: Option<&str>, remote: SocketAddr) -> io::Result<Reach> {
    // An error here is the user's concern only if it is one of keeping to the device.
    let socket = open(source, device)?;
    if let Err(error) = socket.connect(remote) {
        return Ok(Reach::failed(&error));
    }
    Ok(ask(&socket))
}

fn ask(socket: &UdpSocket) -> Reach {
    let clock = Clock::start();
    let (mut tags, mut error) = (Vec::new(), None);
    let mut buffer = [0; ANSWER_MAX];
    for wait in WAITS {
        let tag = packet::tag();
        let began = clock.now();
        tags.push((tag, began));
        for probe in [packet::init(tag, 0), packet::binding(tag)] {
            if let Err(e) = socket.send(&probe) {
                error = Some(SendError::of(&e));
            }
        }
        let until = began + wait;
        loop {
            let now = clock.now();
            if now >= until {
                break;
            }
            match socket::receive(socket, until - now, &mut buffer) {
                Ok(Some(len)) => {
                    let answered = packet::answered(&buffer[..len]);
                    let sent = tags.iter().find(|(tag, _)| Some(*tag) == answered);
                    if let Some((_, sent)) = sent {
                        let rtt = Some(clock.now() - *sent);
                        return Reach { sent: count(&tags), rtt, error: None };
                    }
                }
                Ok(None) => break,
                Err(e) => error = Some(SendError::of(&e)),
            }
        }
        // It will say the same again; routers on the way may change their mind.
        if matches!(error, Some(SendError::Denied | SendError::Refused)) && tags.len() > 1 {
            break;
        }
    }
    Reach { sent: count(&tags), rtt: None, error }
}

fn count<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}

/// Asks STUN servers, all from one socket, how they see it.
pub(crate) fn mapped(source: IpAddr, device: Option<&str>, servers: &[SocketAddr]) -> Vec<Mapped> {
    let Ok(socket) = open(source, device) else { return Vec::new() };
    let Ok(local) = socket.local_addr() else { return Vec::new() };
    let clock = Clock::start();
    let mut found: Vec<Mapped> = Vec::new();
    let mut tags = Vec::new();
    let mut buffer = [0; ANSWER_MAX];
    let servers: Vec<SocketAddr> =
        servers.iter().copied().filter(|s| s.is_ipv6() == source.is_ipv6()).collect();
    for wait in &WAITS[..3] {
        let missing = |found: &[Mapped], s: &SocketAddr| !found.iter().any(|m| m.server == *s);
        for server in servers.iter().filter(|s| missing(&found, s)) {
            let tag = packet::tag();
            tags.push(tag);
            // An error may be that of an earlier packet.
            if socket.send_to(&packet::binding(tag), server).is_err() {
                let _ = socket.send_to(&packet::binding(tag), server);
            }
        }
        let until = clock.now() + *wait;
        while clock.now() < until && found.len() < servers.len() {
            let left = until - clock.now();
            let Ok(Some((len, server))) = socket::receive_from(&socket, left, &mut buffer) else {
                continue;
            };
            if let Some((tag, seen)) = packet::mapped(&buffer[..len])
                && tags.contains(&tag)
                && missing(&found, &server)
                && servers.contains(&server)
            {
                found.push(Mapped { local, server, seen });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
