//! How the NAT or firewall on a way behaves (RFC 4787), found out with the second port of a relay
//! (RFC 5780 §4.3, §4.4). A second server at another address tells more kinds apart.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use manypath_net::Clock;
use serde::Serialize;

use super::{ANSWER_MAX, open, packet, socket};

/// How long an answer is waited for, and how often it is asked for.
const WAIT: Duration = Duration::from_millis(400);
const TRIES: usize = 3;
/// Servers that are asked at most.
const SERVERS_MAX: usize = 4;

/// The dependence of something on the other end of a path (RFC 4787 §4.1, §5).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dependence {
    /// All destinations are the same.
    EndpointIndependent,
    /// All ports of an address are the same; two addresses were not compared.
    PortIndependent,
    /// It depends on the address.
    AddressDependent,
    /// It depends on the address and the port.
    AddressAndPortDependent,
}

impl Dependence {
    /// True if two ports of one address are treated alike.
    pub fn is_same_for_all_ports(self) -> bool {
        self != Dependence::AddressAndPortDependent
    }
}

/// The behaviour of a NAT or firewall; `None` is not known.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Behaviour {
    /// The destinations to which a socket has the same external address.
    pub mapping: Option<Dependence>,
    /// The senders whose packets come in, once a packet has gone out.
    pub filtering: Option<Dependence>,
}

/// A server's view of a socket.
#[derive(Copy, Clone, Debug)]
struct View {
    server: SocketAddr,
    seen: SocketAddr,
}

/// A server with a second port.
#[derive(Copy, Clone, Debug)]
struct TwoPorts {
    main: SocketAddr,
    /// The second port has answered, too.
    is_reached: bool,
}

/// Asks `servers` how they see a socket on the address, and which packets reach it.
pub(crate) fn behaviour(source: IpAddr, device: Option<&str>, servers: &[SocketAddr]) -> Behaviour {
    let mut servers: Vec<SocketAddr> = servers.to_vec();
    servers.retain(|server| server.is_ipv6() == source.is_ipv6());
    servers.truncate(SERVERS_MAX);
    let Ok(socket) = open(source, device) else { return Behaviour::default() };
    let (mut views, mut with_two) = (Vec::new(), Vec::new());
    for &main in &servers {
        let Some(answer) = ask(&socket, main) else { continue };
        views.push(View { server: main, seen: answer.seen });
        let Some(port) = answer.other_port else { continue };
        // No other host than the server is asked, whatever it says.
        let other = SocketAddr::new(main.ip(), port);
        let second = ask(&socket, other);
        views.extend(second.as_ref().map(|answer| View { server: other, seen: answer.seen }));
        with_two.push(TwoPorts { main, is_reached: second.is_some() });
    }
    let reached = with_two.iter().find(|server| server.is_reached);
    let filtering = reached.and_then(|server| filtering(source, device, server.main, &servers));
    Behaviour { mapping: mapping(&views), filtering }
}

/// The dependence that differences between the views show.
fn mapping(views: &[View]) -> Option<Dependence> {
    let pairs =
        || views.iter().enumerate().flat_map(|(n, a)| views[..n].iter().map(move |b| (a, b)));
    let is_one_host = |pair: &(&View, &View)| pair.0.server.ip() == pair.1.server.ip();
    let is_same = |pair: (&View, &View)| pair.0.seen == pair.1.seen;
    let two_ports: Vec<bool> = pairs().filter(|pair| is_one_host(pair)).map(is_same).collect();
    let two_hosts: Vec<bool> = pairs().filter(|pair| !is_one_host(pair)).map(is_same).collect();
    match (two_ports.as_slice(), two_hosts.as_slice()) {
        (ports, _) if ports.contains(&false) => Some(Dependence::AddressAndPortDependent),
        (_, hosts) if hosts.contains(&false) => Some(Dependence::AddressDependent),
        (_, [_, ..]) => Some(Dependence::EndpointIndependent),
        ([_, ..], []) => Some(Dependence::PortIndependent),
        ([], []) => None,
    }
}

/// The dependence of what comes in to a socket that has sent to `first` alone.
fn filtering(
    source: IpAddr,
    device: Option<&str>,
    first: SocketAddr,
    servers: &[SocketAddr],
) -> Option<Dependence> {
    let socket = open(source, device).ok()?;
    let seen = ask(&socket, first)?.seen;
    let from_other_port = arrives(&socket, |tag| {
        let _ = socket.send_to(&packet::binding_from_other_port(tag), first);
    });
    if !from_other_port {
        return Some(Dependence::AddressAndPortDependent);
    }
    let Some(second) = servers.iter().find(|server| server.ip() != first.ip()) else {
        return Some(Dependence::PortIndependent);
    };
    // A socket that has sent there shows that the server answers to other ports, and that they are
    // ports of the same address.
    let asking = open(source, device).ok()?;
    let control = open(source, device).ok()?;
    let (Some(of_asking), Some(of_control)) = (ask(&asking, *second), ask(&control, *second))
    else {
        return Some(Dependence::PortIndependent);
    };
    let to_port = |port: u16| {
        let asking = &asking;
        move |tag| {
            let _ = asking.send_to(&packet::binding_to(tag, port), second);
        }
    };
    if of_asking.seen.ip() != seen.ip() || !arrives(&control, to_port(of_control.seen.port())) {
        return Some(Dependence::PortIndependent);
    }
    let from_other_host = arrives(&socket, to_port(seen.port()));
    Some(if from_other_host {
        Dependence::EndpointIndependent
    } else {
        Dependence::AddressDependent
    })
}

/// Asks a server how it sees the socket.
fn ask(socket: &UdpSocket, server: SocketAddr) -> Option<packet::Binding> {
    for _ in 0..TRIES {
        let tag = packet::tag();
        let _ = socket.send_to(&packet::binding(tag), server);
        let found = await_answer(socket, tag);
        if found.is_some() {
            return found;
        }
    }
    None
}

/// True if the answer to a request arrives at the socket, whoever sends it.
fn arrives(socket: &UdpSocket, request: impl Fn(u32)) -> bool {
    (0..TRIES).any(|_| {
        let tag = packet::tag();
        request(tag);
        await_answer(socket, tag).is_some()
    })
}

fn await_answer(socket: &UdpSocket, tag: u32) -> Option<packet::Binding> {
    let clock = Clock::start();
    let until = clock.now() + WAIT;
    let mut buffer = [0; ANSWER_MAX];
    while clock.now() < until {
        let left = until - clock.now();
        // An error may be that of an earlier packet.
        if let Ok(Some((len, _))) = socket::receive_from(socket, left, &mut buffer)
            && let Some(answer) = packet::bound(&buffer[..len])
            && answer.tag == tag
        {
            return Some(answer);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::thread;

    use turn_types::stun::attribute::{RawAttribute, XorMappedAddress};
    use turn_types::stun::message::{Message, MessageWriteVec};
    use turn_types::stun::prelude::*;

    use super::*;

    /// The NAT that a server plays for its clients.
    #[derive(Copy, Clone)]
    struct Played {
        /// Each port of the server sees another port of the client.
        is_symmetric: bool,
        /// Answers from another port than the one that was asked do not arrive.
        is_strict: bool,
        has_second: bool,
    }

    /// A server with two ports on this host; the first.
    fn server(ip: [u8; 4], played: Played) -> SocketAddr {
        let sockets = [0, 1].map(|_| UdpSocket::bind((IpAddr::from(ip), 0)).unwrap());
        let [main, second] = [0, 1].map(|n: usize| sockets[n].local_addr().unwrap());
        for at in 0..2 {
            let [own, other] = [at, 1 - at].map(|n: usize| sockets[n].try_clone().unwrap());
            own.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            thread::spawn(move || {
                let mut buffer = [0; 200];
                while let Ok((len, from)) = own.recv_from(&mut buffer) {
                    let request = Message::from_bytes(&buffer[..len]).unwrap();
                    let shift = if played.is_symmetric { at as u16 } else { 0 };
                    let seen = SocketAddr::new(from.ip(), from.port() ^ shift);
                    let mut answer = Message::builder_success(&request, MessageWriteVec::new());
                    let id = request.transaction_id();
                    answer.add_attribute(&XorMappedAddress::new(seen, id)).unwrap();
                    let [a, b] = [second, main][at].port().to_be_bytes();
                    // An address that nobody is to be asked at.
                    let value = [0, 1, a, b, 192, 0, 2, 9];
                    let told = RawAttribute::new(packet::OTHER_ADDRESS.into(), &value);
                    if played.has_second {
                        answer.add_attribute(&told).unwrap();
                    }
                    let is_changed = request.raw_attribute(packet::CHANGE_REQUEST.into()).is_some();
                    let socket = if is_changed { &other } else { &own };
                    if !(is_changed && played.is_strict) {
                        socket.send_to(&answer.finish(), from).unwrap();
                    }
                }
            });
        }
        main
    }

    fn found(servers: &[SocketAddr]) -> Behaviour {
        behaviour(IpAddr::from([127, 0, 0, 1]), None, servers)
    }

    const PLAIN: Played = Played { is_symmetric: false, is_strict: false, has_second: true };

    #[test]
    fn one_server_with_two_ports_tells_whether_ports_matter() {
        let same = Some(Dependence::PortIndependent);
        let other = Some(Dependence::AddressAndPortDependent);
        for (played, mapping, filtering) in [
            (PLAIN, same, same),
            (Played { is_strict: true, ..PLAIN }, same, other),
            (Played { is_symmetric: true, is_strict: true, ..PLAIN }, other, other),
        ] {
            let behaviour = found(&[server([127, 0, 0, 1], played)]);
            assert_eq!((behaviour.mapping, behaviour.filtering), (mapping, filtering));
        }
    }

    #[test]
    fn one_server_with_one_port_tells_nothing() {
        let plain = server([127, 0, 0, 1], Played { has_second: false, ..PLAIN });
        assert_eq!(found(&[plain]), Behaviour::default());
        assert_eq!(found(&[]), Behaviour::default());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn two_servers_tell_whether_addresses_matter() {
        let servers = [server([127, 0, 0, 1], PLAIN), server([127, 0, 0, 2], PLAIN)];
        // The second one does not answer to other ports, so what comes in from it is not known.
        let expected = Behaviour {
            mapping: Some(Dependence::EndpointIndependent),
            filtering: Some(Dependence::PortIndependent),
        };
        assert_eq!(found(&servers), expected);
    }

    #[test]
    fn differences_between_views_are_those_of_the_kinds() {
        let view = |server: &str, port: u16| View {
            server: server.parse().unwrap(),
            seen: SocketAddr::from(([203, 0, 113, 7], port)),
        };
        let (a, a2, b) = ("192.0.2.1:1", "192.0.2.1:2", "192.0.2.2:1");
        for (views, expected) in [
            (vec![(a, 5)], None),
            (vec![(a, 5), (a2, 5)], Some(Dependence::PortIndependent)),
            (vec![(a, 5), (a2, 6)], Some(Dependence::AddressAndPortDependent)),
            (vec![(a, 5), (b, 5)], Some(Dependence::EndpointIndependent)),
            (vec![(a, 5), (b, 6)], Some(Dependence::AddressDependent)),
            (vec![(a, 5), (a2, 5), (b, 6)], Some(Dependence::AddressDependent)),
            (vec![(a, 5), (a2, 6), (b, 7)], Some(Dependence::AddressAndPortDependent)),
        ] {
            let all: Vec<View> = views.iter().map(|(server, port)| view(server, *port)).collect();
            assert_eq!(mapping(&all), expected, "{views:?}");
        }
    }
}
