//! How long the address translation on a way remembers a silent path (RFC 5780 §4.6).
//!
//! A socket talks to a STUN server and falls silent. After a while another socket asks the server
//! to answer to the first one's mapped port (RESPONSE-PORT). The answer arrives if the mapping is
//! still there. Each time of silence has a socket of its own, so that all pass at once.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use manypath_net::Clock;

use super::{ANSWER_MAX, open, packet, socket};

/// How long an answer is waited for, and how often it is asked for.
const WAIT: Duration = Duration::from_millis(400);
const TRIES: usize = 3;
/// Linux takes UDP for a lasting stream if it goes on after two seconds, as that of a path does.
const STREAM: Duration = Duration::from_millis(2200);
/// Parts of the longest silence that are tried, in twelfths.
const PARTS: [u32; 5] = [1, 2, 4, 8, 12];

/// How long silence is remembered.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The longest silence after which packets still arrived.
    pub kept: Duration,
    /// The shortest after which they did not.
    pub forgotten: Option<Duration>,
}

/// Tries silences up to `longest`; nothing if the server does not answer to other ports.
pub(crate) fn memory(
    source: IpAddr,
    device: Option<&str>,
    server: SocketAddr,
    longest: Duration,
) -> Option<Memory> {
    let other = open(source, device).ok()?;
    other.connect(server).ok()?;
    let fresh = || -> Option<(UdpSocket, u16)> {
        let socket = open(source, device).ok()?;
        socket.connect(server).ok()?;
        let seen = seen(&socket)?;
        Some((socket, seen.port()))
    };
    // Without silence the answer must arrive, or the server cannot do it.
    let (first, port) = fresh()?;
    if !arrives(&first, &other, port) {
        return None;
    }
    let sockets: Vec<_> =
        PARTS.iter().filter_map(|part| Some((longest * *part / 12, fresh()?))).collect();
    thread::sleep(STREAM);
    let clock = Clock::start();
    let sockets: Vec<_> = sockets
        .into_iter()
        .filter_map(|(silence, (socket, _))| {
            let port = seen(&socket)?.port();
            Some((silence, clock.now() + silence, socket, port))
        })
        .collect();
    let mut memory = Memory::default();
    for (silence, at, socket, port) in sockets {
        let now = clock.now();
        if now < at {
            thread::sleep(at - now);
        }
        if arrives(&socket, &other, port) {
            memory.kept = silence;
        } else {
            memory.forgotten = Some(silence);
            break;
        }
    }
    Some(memory)
}

/// Our address as the server sees it.
fn seen(socket: &UdpSocket) -> Option<SocketAddr> {
    let mut buffer = [0; ANSWER_MAX];
    for _ in 0..TRIES {
        let tag = packet::tag();
        let _ = socket.send(&packet::binding(tag));
        if let Ok(Some(len)) = socket::receive(socket, WAIT, &mut buffer)
            && let Some((answered, seen)) = packet::mapped(&buffer[..len])
            && answered == tag
        {
            return Some(seen);
        }
    }
    None
}

/// True if an answer that `asking` requests for `port` arrives at `silent`.
fn arrives(silent: &UdpSocket, asking: &UdpSocket, port: u16) -> bool {
    let mut buffer = [0; ANSWER_MAX];
    (0..TRIES).any(|_| {
        let tag = packet::tag();
        let _ = asking.send(&packet::binding_to(tag, port));
        let received = socket::receive(silent, WAIT, &mut buffer);
        let Ok(Some(len)) = received else { return false };
        packet::mapped(&buffer[..len]).is_some_and(|(answered, _)| answered == tag)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use turn_types::stun::attribute::XorMappedAddress;
    use turn_types::stun::message::{Message, MessageWriteVec};
    use turn_types::stun::prelude::*;

    /// A STUN server with RESPONSE-PORT behind a NAT that forgets after `memory`.
    fn server(forgets: Duration, knows_ports: bool) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        thread::spawn(move || {
            let clock = Clock::start();
            let mut heard = std::collections::BTreeMap::new();
            let mut buffer = [0; 200];
            while let Ok((len, from)) = socket.recv_from(&mut buffer) {
                let request = Message::from_bytes(&buffer[..len]).unwrap();
                let port = request.raw_attribute(packet::RESPONSE_PORT.into());
                let port = port.map(|a| u16::from_be_bytes([a.value[0], a.value[1]]));
                let mut answer = Message::builder_success(&request, MessageWriteVec::new());
                let id = request.transaction_id();
                answer.add_attribute(&XorMappedAddress::new(from, id)).unwrap();
                let to = match port {
                    Some(port) if knows_ports => SocketAddr::new(from.ip(), port),
                    _ => {
                        heard.insert(from, clock.now());
                        from
                    }
                };
                if heard.get(&to).is_some_and(|at| clock.now() - *at < forgets) {
                    socket.send_to(&answer.finish(), to).unwrap();
                }
            }
        });
        address
    }

    #[test]
    fn a_mapping_that_is_forgotten_is_told_from_one_that_is_kept() {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        let longest = Duration::from_millis(2400);
        let short = server(Duration::from_millis(1200), true);
        let found = memory(loopback, None, short, longest).unwrap();
        assert_eq!(found.forgotten, Some(longest * 8 / 12), "{found:?}");
        assert_eq!(found.kept, longest * 4 / 12);
        let long = server(Duration::from_secs(60), true);
        let found = memory(loopback, None, long, longest).unwrap();
        assert_eq!((found.kept, found.forgotten), (longest, None));
    }

    #[test]
    fn a_server_without_response_ports_says_nothing() {
        let plain = server(Duration::from_secs(60), false);
        assert_eq!(memory(IpAddr::from([127, 0, 0, 1]), None, plain, WAIT), None);
    }
}
