//! Messages of the Port Control Protocol (RFC 6887).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{MappedBy, NotMapped};

/// The port of servers, of this protocol and of NAT-PMP (RFC 6887 §19.1).
pub(super) const PORT: u16 = 5351;
/// The longest message (RFC 6887 §7).
pub(super) const MESSAGE_MAX: usize = 1100;

const VERSION: u8 = 2;
const RESPONSE: u8 = 0x80;
const ANNOUNCE: u8 = 0;
const MAP: u8 = 1;
/// The protocol number of UDP.
const UDP: u8 = 17;
const HEADER_LEN: usize = 24;
const MAP_LEN: usize = 60;
const UNSUPPORTED_VERSION: u8 = 1;

/// A number that only the owner of a mapping knows (RFC 6887 §11.2).
pub(super) type Nonce = [u8; 12];

/// A request for a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// The host and port that packets are to come to.
    pub(super) client: SocketAddr,
    pub(super) nonce: Nonce,
    /// In seconds; 0 deletes the mapping.
    pub(super) lifetime: u32,
    /// The external address that is wanted.
    pub(super) suggested: Option<SocketAddr>,
}

/// An answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Mapped {
        external: SocketAddr,
        lifetime: u32,
        epoch: u32,
    },
    Refused(u8),
    /// The server knows another version only, such as NAT-PMP.
    OtherVersion,
}

impl Request {
    /// The message (RFC 6887 §7.1, §11.1).
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = header(MAP, self.lifetime, self.client.ip());
        bytes.extend_from_slice(&self.nonce);
        bytes.extend_from_slice(&[UDP, 0, 0, 0]);
        bytes.extend_from_slice(&self.client.port().to_be_bytes());
        let none: IpAddr = match self.client {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let suggested = self.suggested.unwrap_or(SocketAddr::new(none, 0));
        bytes.extend_from_slice(&suggested.port().to_be_bytes());
        bytes.extend_from_slice(&wide(suggested.ip()));
        bytes
    }

    /// The answer that a datagram is, or `None` if it is none to this request (RFC 6887 §8.3,
    /// §11.4).
    pub(super) fn read(&self, bytes: &[u8]) -> Option<Answer> {
        let &[version, opcode, _, result, ..] = bytes else { return None };
        if opcode != RESPONSE | MAP {
            return None;
        }
        if version != VERSION {
            // Also a server of NAT-PMP says so: its result is in the same place.
            return (result == UNSUPPORTED_VERSION).then_some(Answer::OtherVersion);
        }
        if bytes.len() < MAP_LEN || bytes.len() > MESSAGE_MAX || !bytes.len().is_multiple_of(4) {
            return None;
        }
        let (lifetime, epoch) = (u32_at(bytes, 4)?, u32_at(bytes, 8)?);
        let of_ours = bytes.get(24..36)? == self.nonce
            && bytes.get(36) == Some(&UDP)
            && u16_at(bytes, 40)? == self.client.port();
        if !of_ours {
            return None;
        }
        if result == UNSUPPORTED_VERSION {
            return Some(Answer::OtherVersion);
        }
        if result != 0 {
            return Some(Answer::Refused(result));
        }
        let octets: [u8; 16] = bytes.get(44..60)?.try_into().ok()?;
        let external = SocketAddr::new(Ipv6Addr::from(octets).to_canonical(), u16_at(bytes, 42)?);
        Some(Answer::Mapped { external, lifetime, epoch })
    }
}

/// A question for nothing but the server's age (RFC 6887 §14.1).
pub(super) fn announce(client: IpAddr) -> Vec<u8> {
    header(ANNOUNCE, 0, client)
}

/// The server's age, of an answer to [`announce`] or of an announcement.
pub(super) fn read_announce(bytes: &[u8]) -> Option<u32> {
    let &[VERSION, opcode, ..] = bytes else { return None };
    let is_whole = opcode == RESPONSE | ANNOUNCE && bytes.len() >= HEADER_LEN;
    if is_whole { u32_at(bytes, 8) } else { None }
}

/// The words for a result code (RFC 6887 §7.4).
pub(super) fn refusal(code: u8) -> NotMapped {
    let why = match code {
        2 => "not authorized",
        3 | 5 | 6 => "it does not understand the request",
        4 | 9 => "it maps no UDP ports",
        7 => "its own network is down",
        8 => "it has no room for another mapping",
        10 => "this host has too many mappings",
        11 => "it cannot give the external address",
        12 => "a NAT lies between this host and the router",
        _ => "refused",
    };
    NotMapped::Refused { by: MappedBy::Pcp, why, code: code.into() }
}

fn header(opcode: u8, lifetime: u32, client: IpAddr) -> Vec<u8> {
    let mut bytes = vec![VERSION, opcode, 0, 0];
    bytes.extend_from_slice(&lifetime.to_be_bytes());
    bytes.extend_from_slice(&wide(client));
    bytes
}

/// An address in 16 bytes, one of IPv4 as an IPv6 one (RFC 6887 §5).
fn wide(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(four.try_into().ok()?))
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes(two.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request() -> Request {
        Request {
            client: "192.168.1.9:9899".parse().unwrap(),
            nonce: *b"abcdefghijkl",
            lifetime: 1800,
            suggested: None,
        }
    }

    /// The answer of a server that gives `external` for an hour, at the age of 77 s.
    fn answer(request: &Request, external: &str) -> Vec<u8> {
        let external: SocketAddr = external.parse().unwrap();
        let mut bytes = request.bytes();
        bytes[1] |= RESPONSE;
        bytes[4..8].copy_from_slice(&3600u32.to_be_bytes());
        bytes[8..24].fill(0);
        bytes[8..12].copy_from_slice(&77u32.to_be_bytes());
        bytes[42..44].copy_from_slice(&external.port().to_be_bytes());
        bytes[44..60].copy_from_slice(&wide(external.ip()));
        bytes
    }

    #[test]
    fn a_request_has_its_fields_where_the_rfc_puts_them() {
        let bytes = request().bytes();
        assert_eq!(bytes.len(), MAP_LEN);
        assert_eq!(bytes[..4], [2, 1, 0, 0]);
        assert_eq!(bytes[4..8], 1800u32.to_be_bytes());
        assert_eq!(bytes[8..24], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 168, 1, 9]);
        assert_eq!(&bytes[24..36], b"abcdefghijkl");
        assert_eq!(bytes[36..44], [17, 0, 0, 0, 38, 171, 0, 0]);
        assert_eq!(bytes[44..60], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 0, 0]);
    }

    #[test]
    fn only_an_answer_to_the_request_counts() {
        let request = request();
        let good = answer(&request, "203.0.113.5:40000");
        let external = "203.0.113.5:40000".parse().unwrap();
        let mapped = Answer::Mapped { external, lifetime: 3600, epoch: 77 };
        assert_eq!(request.read(&good), Some(mapped));
        for (at, value) in [(0, 1), (1, 1), (1, 0x82), (30, 0), (36, 6), (41, 0)] {
            let mut other = good.clone();
            other[at] = value;
            assert_eq!(request.read(&other), None, "byte {at}");
        }
        for len in 4..MAP_LEN {
            assert_eq!(request.read(&good[..len]), None, "{len} bytes");
        }
        let long = [good.clone(), vec![0; MESSAGE_MAX - MAP_LEN + 4]].concat();
        assert_eq!(request.read(&long), None);
        let mut refused = good.clone();
        refused[3] = 8;
        assert_eq!(request.read(&refused), Some(Answer::Refused(8)));
        // RFC 6886 §3.5: a server of NAT-PMP repeats the opcode and says that the version is wrong.
        assert_eq!(request.read(&[0, 0x81, 0, 1, 0, 0, 0, 9]), Some(Answer::OtherVersion));
    }

    #[test]
    fn the_age_of_a_server_is_read() {
        let mut bytes = announce("192.168.1.9".parse().unwrap());
        assert_eq!((bytes.len(), read_announce(&bytes)), (HEADER_LEN, None));
        bytes[1] |= RESPONSE;
        bytes[8..12].copy_from_slice(&5u32.to_be_bytes());
        assert_eq!(read_announce(&bytes), Some(5));
        assert_eq!(read_announce(&bytes[..HEADER_LEN - 1]), None);
    }

    proptest! {
        #[test]
        fn nothing_that_arrives_breaks_it(
            random in prop::collection::vec(any::<u8>(), 0..80),
            flips in prop::collection::vec((0usize..60, any::<u8>()), 0..4),
        ) {
            let request = request();
            let mut bad = answer(&request, "[2001:db8::1]:9");
            for &(at, value) in &flips {
                bad[at] = value;
            }
            for bytes in [&random, &bad] {
                let _ = (request.read(bytes), read_announce(bytes));
            }
        }
    }
}
