//! Binding requests, which everybody may send: they tell a client its own address, and by a second
//! port of the relay how the NAT before it behaves (RFC 5780).
//!
//! The relay has one IP address, so it offers half of RFC 5780: another port, no other address.
//! Answers count against the limit for strangers, wherever they go, and always go to the address
//! that the request came from.

use std::net::{IpAddr, SocketAddr};

use manypath_proto::Instant;
use turn_types::stun::attribute::{
    AttributeType, ErrorCode, RawAttribute, UnknownAttributes, XorMappedAddress,
};
use turn_types::stun::message::{BINDING, Message, MessageClass, MessageWriteVec};
use turn_types::stun::prelude::*;

use super::{Reply, Server, Sockets};
use crate::message::{add, canonical, error_answer};

/// The attribute with the port that an answer is to go to (RFC 5780 §7.5).
const RESPONSE_PORT: u16 = 0x0027;
/// The attribute that wants the answer from another address or port (RFC 5780 §7.2).
const CHANGE_REQUEST: u16 = 0x0003;
/// The transport address that an answer leaves from (RFC 5780 §7.3).
const RESPONSE_ORIGIN: u16 = 0x802b;
/// The other transport address (RFC 5780 §7.4).
const OTHER_ADDRESS: u16 = 0x802c;

const CHANGE_IP: u32 = 0x04;
const CHANGE_PORT: u32 = 0x02;

/// The port of the relay that a datagram came to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// The port for clients.
    Main,
    /// The second one, for Binding requests only.
    Other,
}

/// The two ports of a relay. Nothing is offered without the second.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct StunPorts {
    main: u16,
    other: u16,
}

impl StunPorts {
    fn of(self, at: At) -> u16 {
        match at {
            At::Main => self.main,
            At::Other => self.other,
        }
    }
}

impl At {
    fn the_other(self) -> At {
        match self {
            At::Main => At::Other,
            At::Other => At::Main,
        }
    }
}

impl Server {
    /// Takes note of the port for clients and of a second one, whose datagrams go to
    /// [`handle_other`](Self::handle_other). From then on clients can find out how the NAT before
    /// them behaves.
    pub fn set_stun_ports(&mut self, main: u16, other: u16) {
        self.stun_ports = Some(StunPorts { main, other });
    }

    /// Takes a datagram that came to the second port: a Binding request, or garbage.
    pub fn handle_other(
        &mut self,
        now: Instant,
        client: SocketAddr,
        datagram: &[u8],
        sockets: &dyn Sockets,
    ) -> Reply {
        if let Ok(message) = Message::from_bytes(datagram)
            && (message.class(), message.method()) == (MessageClass::Request, BINDING)
        {
            let on = sockets.spoken_to();
            return self.on_binding(now, canonical(client), &message, At::Other, on);
        }
        self.stats.garbage += 1;
        Reply::None
    }

    /// Binding (RFC 8489 §3): tells every client its own address, at another port if it asks for
    /// that (RFC 5780 §7.5), and from the relay's other port (§7.2). `on` is the relay's address
    /// as the client sees it.
    pub(super) fn on_binding(
        &mut self,
        now: Instant,
        client: SocketAddr,
        message: &Message<'_>,
        at: At,
        on: Option<IpAddr>,
    ) -> Reply {
        let change = match change(message) {
            Change::Impossible => return self.refuse_change(now, client, message),
            Change::Port if self.stun_ports.is_none() => {
                return self.refuse_change(now, client, message);
            }
            change => change,
        };
        let from = if change == Change::Port { at.the_other() } else { at };
        let mut answer = Message::builder_success(message, MessageWriteVec::new());
        add(&mut answer, &XorMappedAddress::new(client, message.transaction_id()));
        if let (Some(ports), Some(on)) = (self.stun_ports, on) {
            let origin = plain(SocketAddr::new(on, ports.of(from)));
            add(&mut answer, &RawAttribute::new(RESPONSE_ORIGIN.into(), &origin));
            let other = plain(SocketAddr::new(on, ports.of(at.the_other())));
            add(&mut answer, &RawAttribute::new(OTHER_ADDRESS.into(), &other));
        }
        let Reply::Answer(answer) = self.answer_stranger(now, client, answer.finish()) else {
            return Reply::None;
        };
        let to = response_port(message).map(|port| SocketAddr::new(client.ip(), port));
        match (from == at, to) {
            (true, None) => Reply::Answer(answer),
            (true, Some(to)) => Reply::AnswerAt(to, answer),
            (false, to) => Reply::AnswerFromOther(to.unwrap_or(client), answer),
        }
    }

    /// An error that names CHANGE-REQUEST as unknown (RFC 5780 §6.1).
    fn refuse_change(&mut self, now: Instant, client: SocketAddr, message: &Message<'_>) -> Reply {
        let mut answer = error_answer(message, ErrorCode::UNKNOWN_ATTRIBUTE);
        let unknown: [AttributeType; 1] = [CHANGE_REQUEST.into()];
        add(&mut answer, &UnknownAttributes::new(&unknown));
        self.answer_stranger(now, client, answer.finish())
    }
}

/// The change that a request wants.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Change {
    Nothing,
    Port,
    /// Another IP address, or no one knows what.
    Impossible,
}

fn change(message: &Message<'_>) -> Change {
    let Some(attribute) = message.raw_attribute(CHANGE_REQUEST.into()) else {
        return Change::Nothing;
    };
    let flags = <[u8; 4]>::try_from(&attribute.value[..]).map(u32::from_be_bytes);
    match flags {
        Ok(flags) if flags & CHANGE_IP != 0 => Change::Impossible,
        Ok(flags) if flags & CHANGE_PORT != 0 => Change::Port,
        Ok(_) => Change::Nothing,
        Err(_) => Change::Impossible,
    }
}

/// The port that the answer to a Binding request is to go to, if it names one.
fn response_port(message: &Message<'_>) -> Option<u16> {
    let attribute = message.raw_attribute(RESPONSE_PORT.into())?;
    let &[a, b, ..] = &attribute.value[..] else { return None };
    Some(u16::from_be_bytes([a, b])).filter(|&port| port != 0)
}

/// A transport address as in MAPPED-ADDRESS (RFC 8489 §14.1).
fn plain(address: SocketAddr) -> Vec<u8> {
    let [a, b] = address.port().to_be_bytes();
    match address.ip() {
        IpAddr::V4(ip) => [&[0, 1, a, b][..], &ip.octets()].concat(),
        IpAddr::V6(ip) => [&[0, 2, a, b][..], &ip.octets()].concat(),
    }
}

#[cfg(test)]
mod tests {
    use turn_types::stun::message::TransactionId;

    use super::*;
    use crate::testing::*;
    use crate::{Limits, Reply};

    const HOME: &str = "192.0.2.9:7000";

    /// A Binding request with an attribute.
    fn request(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut message = Message::builder_request(BINDING, MessageWriteVec::new());
        if kind != 0 {
            add(&mut message, &RawAttribute::new(kind.into(), value));
        }
        message.finish()
    }

    fn relay() -> Relay {
        let mut relay = Relay::new(Limits::default());
        relay.server.set_stun_ports(3478, 3479);
        relay.ports.on = Some([203, 0, 113, 1].into());
        relay
    }

    /// An address of RFC 5780 in an answer.
    fn told(answer: &[u8], kind: u16) -> Option<SocketAddr> {
        let message = Message::from_bytes(answer).unwrap();
        let attribute = message.raw_attribute(kind.into())?;
        let &[0, 1, a, b, c, d, e, f] = &attribute.value[..] else { panic!("{attribute:?}") };
        Some(SocketAddr::new([c, d, e, f].into(), u16::from_be_bytes([a, b])))
    }

    fn code(answer: &[u8]) -> u16 {
        let message = Message::from_bytes(answer).unwrap();
        message.attribute::<ErrorCode>().map_or(0, |error| error.code())
    }

    #[test]
    fn clients_learn_of_the_second_port_and_get_answers_from_it() {
        let mut relay = relay();
        let home = address(HOME);
        let main = address("203.0.113.1:3478");
        let other = address("203.0.113.1:3479");
        let Reply::Answer(plain) = relay.handle(at(0), home, &request(0, &[])) else { panic!() };
        assert_eq!(told(&plain, OTHER_ADDRESS), Some(other));
        assert_eq!(told(&plain, RESPONSE_ORIGIN), Some(main));

        let change = request(CHANGE_REQUEST, &2u32.to_be_bytes());
        let Reply::AnswerFromOther(to, changed) = relay.handle(at(0), home, &change) else {
            panic!()
        };
        assert_eq!((to, told(&changed, RESPONSE_ORIGIN)), (home, Some(other)));
        let message = Message::from_bytes(&changed).unwrap();
        let id: TransactionId = message.transaction_id();
        assert_eq!(message.attribute::<XorMappedAddress>().unwrap().addr(id), home);

        // From the second port it is the other way round.
        let Relay { server, ports } = &mut relay;
        let plain = server.handle_other(at(0), home, &request(0, &[]), ports);
        let Reply::Answer(plain) = plain else { panic!("{plain:?}") };
        assert_eq!(told(&plain, OTHER_ADDRESS), Some(main));
        let changed = server.handle_other(at(0), home, &change, ports);
        let Reply::AnswerFromOther(_, changed) = changed else { panic!("{changed:?}") };
        assert_eq!(told(&changed, RESPONSE_ORIGIN), Some(main));
    }

    #[test]
    fn another_address_is_refused_and_so_is_a_change_without_a_second_port() {
        let home = address(HOME);
        for value in [&4u32.to_be_bytes()[..], &6u32.to_be_bytes(), &[], &[0; 5]] {
            let change = request(CHANGE_REQUEST, value);
            let Reply::Answer(refusal) = relay().handle(at(0), home, &change) else { panic!() };
            assert_eq!(code(&refusal), 420, "{value:?}");
        }
        let mut plain = Relay::new(Limits::default());
        let change = request(CHANGE_REQUEST, &2u32.to_be_bytes());
        let Reply::Answer(refusal) = plain.handle(at(0), home, &change) else { panic!() };
        assert_eq!(code(&refusal), 420);
        let nothing = request(CHANGE_REQUEST, &0u32.to_be_bytes());
        let Reply::Answer(answer) = plain.handle(at(0), home, &nothing) else { panic!() };
        assert_eq!((code(&answer), told(&answer, OTHER_ADDRESS)), (0, None));
    }

    #[test]
    fn answers_from_both_ports_count_as_one_strangers_and_stay_at_his_address() {
        let mut relay = relay();
        let home = address(HOME);
        let change = request(CHANGE_REQUEST, &2u32.to_be_bytes());
        let mut answers = 0;
        for _ in 0..100 {
            let Relay { server, ports } = &mut relay;
            let reply = server.handle_other(at(0), home, &change, ports);
            answers += u32::from(reply != Reply::None);
            answers += u32::from(relay.handle(at(0), home, &change) != Reply::None);
        }
        assert!((10..=60).contains(&answers), "{answers} answers in no time");
        // An answer is at most 2.5 times as long as its request, headers included.
        let request = request(0, &[]);
        let Reply::Answer(answer) = relay.handle(at(5000), home, &request) else { panic!() };
        assert!(answer.len() + 28 <= 5 * (request.len() + 28) / 2, "{}", answer.len());
        let to_port = self::request(RESPONSE_PORT, &[0x1f, 0x90, 0, 0]);
        let reply = relay.handle(at(5000), home, &to_port);
        let Reply::AnswerAt(to, _) = reply else { panic!("{reply:?}") };
        assert_eq!(to, address("192.0.2.9:8080"));
    }

    #[test]
    fn the_second_port_serves_nothing_else() {
        let mut relay = relay();
        let allocate =
            Message::builder_request(turn_types::message::ALLOCATE, MessageWriteVec::new());
        let Relay { server, ports } = &mut relay;
        for datagram in [&allocate.finish()[..], b"", &[0x40, 0, 0, 0], &[0xff; 100]] {
            assert_eq!(server.handle_other(at(0), address(HOME), datagram, ports), Reply::None);
        }
        assert_eq!(server.stats().garbage, 4);
    }
}
