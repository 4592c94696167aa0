//! The ticket: one word that tells a sender where the receiver is and proves it may send.
//!
//! `manypath2:` followed by lower-case base32 (RFC 4648, no padding) of
//!
//! ```text
//! byte 0      trust: 1 = strict, 2 = insecure; 3 and 4 = the same with relayed addresses
//! bytes 1-2   UDP port, big-endian, not 0
//! byte 3      token length T, 1..=255
//! T bytes     token
//! 32 bytes    SHA-256 fingerprint of the receiver's public key, only if strict
//! 1 byte      number of addresses N, 1..=32; 0 only if byte 0 is 3 or 4
//! N times     4 and four bytes, or 6 and sixteen bytes: an IP address, network order; an IPv4
//!             address that is written as an IPv6 one (`::ffff:192.0.2.7`) is the IPv4 address
//! 1 byte      number of relayed addresses R, 1..=16; this and the next only if byte 0 is 3 or 4
//! R times     an IP address as above, the relayed port and the port of the relay itself on that
//!             IP address, 2 bytes each, not 0
//! 4 bytes     checksum: the first four bytes of the SHA-256 of "manypath2:" and all the above
//! ```
//!
//! Base32, because a double click selects all of it and its letters can be read aloud. The checksum
//! distinguishes a truncated ticket from a wrong receiver. Upper case is the same: a QR code has
//! it, as it is smaller then. It is no protection from forgery: a ticket is as trustworthy as the
//! way it came.
//!
//! A relay gives a receiver that nobody reaches directly a relayed address (TURN, RFC 8656).
//! Programs that do not know of these call a ticket that has some one of a newer version. A
//! receiver that tells nobody where it is has relayed addresses alone.
//!
//! Tickets of version 1 had no trust. Their transfers were not encrypted, so they are refused.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;

use data_encoding::BASE32_NOPAD;
use manypath_trust::{Erased, Fingerprint, Token};
use sha2::{Digest, Sha256};

/// The prefix of every ticket of this version.
pub const PREFIX: &str = "manypath2:";

/// The version in [`PREFIX`].
const VERSION: u64 = 2;
/// The part of the prefix that all versions have.
const SCHEME: &str = "manypath";
const TRUST_STRICT: u8 = 1;
const TRUST_INSECURE: u8 = 2;
const TRUST_STRICT_RELAYED: u8 = 3;
const TRUST_INSECURE_RELAYED: u8 = 4;
const CHECKSUM_LEN: usize = 4;
/// Shorter words behind a prefix have no secret; examples are so short.
const HIDDEN_FROM: usize = 8;
/// The beginning of a secret by which it is found.
const HIDDEN_PART: usize = 16;
/// As many addresses as an association can have paths.
const ADDRESSES_MAX: usize = 32;
/// Relayed addresses at most.
pub const RELAYED_MAX: usize = 16;

/// Where a receiver listens and what it wants to hear.
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket {
    /// The receiver's addresses, most preferred first; 1..=32, or none if there are relayed ones.
    pub addresses: Vec<IpAddr>,
    /// UDP port, the same on all of them; not 0, also if there are none.
    pub port: u16,
    /// Addresses that relays gave the receiver, most preferred first; at most [`RELAYED_MAX`].
    pub relayed: Vec<Relayed>,
    /// The secret that authorises a transfer, 1..=255 bytes.
    pub token: Token,
    /// How the sender knows the receiver.
    pub trust: Trust,
}

/// An address that a relay gave a receiver.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Relayed {
    /// The address where packets for the receiver go; its port is not 0.
    pub address: SocketAddr,
    /// The UDP port of the relay itself on that IP address; not 0.
    pub relay_port: u16,
}

impl Relayed {
    /// The UDP address of the relay itself.
    pub fn relay(&self) -> SocketAddr {
        SocketAddr::new(self.address.ip(), self.relay_port)
    }
}

/// How the sender knows that it talks to the receiver, and to nobody else.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Strict: the transfer is encrypted, and the receiver proves that it has this key.
    Key(Fingerprint),
    /// Not at all: the transfer is neither encrypted nor authenticated (`recv --insecure`).
    Insecure,
}

/// The reason why a word is not a ticket.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TicketError {
    /// It is of an older version.
    #[error("the ticket is of an older version of manypath, whose transfers are not encrypted")]
    OlderVersion,
    /// It is of a newer version.
    #[error("the ticket is of a newer version of manypath than this one")]
    NewerVersion,
    /// A character base32 does not have.
    #[error("the ticket contains a character no ticket has")]
    BadCharacter,
    /// Too short, or the checksum does not match.
    #[error("the ticket is incomplete or was changed on the way")]
    Damaged,
}

/// A ticket and a sender that do not agree on encryption.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrustMismatch {
    /// The receiver was started with `--insecure`, the sender was not.
    #[error(
        "the ticket is of a receiver with --insecure: the transfer would be neither encrypted nor \
         authenticated"
    )]
    InsecureTicket,
    /// The sender was started with `--insecure`, the receiver was not.
    #[error("the ticket demands an encrypted transfer, and this one would not be encrypted")]
    StrictTicket,
}

impl Ticket {
    /// True if `word` is meant as a ticket, complete or not.
    pub fn looks_like(word: &str) -> bool {
        let Some((scheme, _)) = word.split_once(':') else { return false };
        without_case(scheme, SCHEME)
            .is_some_and(|v| !v.is_empty() && v.bytes().all(|b| b.is_ascii_digit()))
    }

    /// The receiver's transport addresses.
    pub fn socket_addresses(&self) -> Vec<SocketAddr> {
        self.addresses.iter().map(|ip| SocketAddr::new(*ip, self.port)).collect()
    }

    /// The key that the receiver must prove to have; none for a sender that is `insecure`.
    ///
    /// # Errors
    /// If only one of the ticket and the sender is insecure. Nothing may be sent then.
    pub fn key(&self, insecure: bool) -> Result<Option<Fingerprint>, TrustMismatch> {
        match (self.trust, insecure) {
            (Trust::Key(fingerprint), false) => Ok(Some(fingerprint)),
            (Trust::Insecure, true) => Ok(None),
            (Trust::Insecure, false) => Err(TrustMismatch::InsecureTicket),
            (Trust::Key(_), true) => Err(TrustMismatch::StrictTicket),
        }
    }

    /// Reads a ticket as a person pasted it.
    pub fn parse(word: &str) -> Result<Ticket, TicketError> {
        let word = word.trim();
        let text = without_case(word, PREFIX).ok_or_else(|| other_version(word))?;
        let upper = Erased::from(text.to_ascii_uppercase());
        if !upper.bytes().all(|b| b.is_ascii_uppercase() || (b'2'..=b'7').contains(&b)) {
            return Err(TicketError::BadCharacter);
        }
        // A length or trailing bits that no encoder writes: characters were lost.
        let bytes = BASE32_NOPAD.decode(upper.as_bytes()).map_err(|_| TicketError::Damaged)?;
        let bytes = Erased::from(bytes);
        let body_len = bytes.len().checked_sub(CHECKSUM_LEN).ok_or(TicketError::Damaged)?;
        let (body, sum) = bytes.split_at(body_len);
        if checksum(body) != *sum {
            return Err(TicketError::Damaged);
        }
        match body.first() {
            Some(&(TRUST_STRICT..=TRUST_INSECURE_RELAYED)) => {
                Ticket::decode(body).ok_or(TicketError::Damaged)
            }
            // The checksum is right: somebody means something by it.
            Some(_) => Err(TicketError::NewerVersion),
            None => Err(TicketError::Damaged),
        }
    }

    fn decode(body: &[u8]) -> Option<Ticket> {
        let (&[kind, port_high, port_low, token_len], rest) = body.split_first_chunk()?;
        let port = u16::from_be_bytes([port_high, port_low]);
        if port == 0 || token_len == 0 {
            return None;
        }
        let (token, mut rest) = rest.split_at_checked(usize::from(token_len))?;
        let trust = match kind {
            TRUST_STRICT | TRUST_STRICT_RELAYED => {
                let (key, after) = rest.split_first_chunk::<{ Fingerprint::LEN }>()?;
                rest = after;
                Trust::Key(Fingerprint::new(*key))
            }
            TRUST_INSECURE | TRUST_INSECURE_RELAYED => Trust::Insecure,
            _ => return None,
        };
        let has_relayed = matches!(kind, TRUST_STRICT_RELAYED | TRUST_INSECURE_RELAYED);
        let least = usize::from(!has_relayed);
        let addresses = take_list(&mut rest, least..=ADDRESSES_MAX, take_ip)?;
        let relayed = if has_relayed {
            take_list(&mut rest, 1..=RELAYED_MAX, take_relayed)?
        } else {
            Vec::new()
        };
        rest.is_empty().then(|| Ticket { addresses, port, relayed, token: token.into(), trust })
    }
}

/// Takes a list of that many things off, behind the byte for their number.
fn take_list<T>(
    bytes: &mut &[u8],
    allowed: RangeInclusive<usize>,
    take: impl Fn(&mut &[u8]) -> Option<T>,
) -> Option<Vec<T>> {
    let (&count, rest) = bytes.split_first()?;
    *bytes = rest;
    if allowed.contains(&usize::from(count)) {
        (0..count).map(|_| take(bytes)).collect()
    } else {
        None
    }
}

/// Takes an IP address off, behind the byte for its family.
fn take_ip(bytes: &mut &[u8]) -> Option<IpAddr> {
    let (&family, rest) = bytes.split_first()?;
    let (ip, rest) = match family {
        4 => rest.split_first_chunk::<4>().map(|(ip, r)| (Ipv4Addr::from(*ip).into(), r))?,
        6 => rest.split_first_chunk::<16>().map(|(ip, r)| (Ipv6Addr::from(*ip).into(), r))?,
        _ => return None,
    };
    *bytes = rest;
    Some(IpAddr::to_canonical(&ip))
}

fn take_relayed(bytes: &mut &[u8]) -> Option<Relayed> {
    let ip = take_ip(bytes)?;
    let (ports, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    let &[a, b, c, d] = ports;
    let [port, relay_port] = [[a, b], [c, d]].map(u16::from_be_bytes);
    let address = SocketAddr::new(ip, port);
    (port != 0 && relay_port != 0).then_some(Relayed { address, relay_port })
}

fn push_ip(bytes: &mut Vec<u8>, ip: IpAddr) {
    match ip {
        IpAddr::V4(ip) => {
            bytes.push(4);
            bytes.extend(ip.octets());
        }
        IpAddr::V6(ip) => {
            bytes.push(6);
            bytes.extend(ip.octets());
        }
    }
}

/// Why a word without [`PREFIX`] is not a ticket.
fn other_version(word: &str) -> TicketError {
    let Some((scheme, _)) = word.split_once(':') else { return TicketError::Damaged };
    match without_case(scheme, SCHEME).map(str::parse::<u64>) {
        Some(Ok(version)) if version < VERSION => TicketError::OlderVersion,
        Some(Ok(version)) if version > VERSION => TicketError::NewerVersion,
        _ => TicketError::Damaged,
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let relayed = &self.relayed[..self.relayed.len().min(RELAYED_MAX)];
        let [plain, with_relayed] = match self.trust {
            Trust::Key(_) => [TRUST_STRICT, TRUST_STRICT_RELAYED],
            Trust::Insecure => [TRUST_INSECURE, TRUST_INSECURE_RELAYED],
        };
        let mut bytes = vec![if relayed.is_empty() { plain } else { with_relayed }];
        bytes.extend(self.port.to_be_bytes());
        let token = &self.token[..self.token.len().min(255)];
        bytes.push(token.len() as u8);
        bytes.extend(token);
        if let Trust::Key(fingerprint) = &self.trust {
            bytes.extend(fingerprint.as_bytes());
        }
        let addresses = &self.addresses[..self.addresses.len().min(ADDRESSES_MAX)];
        bytes.push(addresses.len() as u8);
        addresses.iter().for_each(|ip| push_ip(&mut bytes, *ip));
        if !relayed.is_empty() {
            bytes.push(relayed.len() as u8);
        }
        for Relayed { address, relay_port } in relayed {
            push_ip(&mut bytes, address.ip());
            bytes.extend(address.port().to_be_bytes());
            bytes.extend(relay_port.to_be_bytes());
        }
        f.write_str(&word_of(&bytes))
    }
}

/// Without the token, which is a secret.
impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("addresses", &self.addresses)
            .field("port", &self.port)
            .field("relayed", &self.relayed)
            .field("trust", &self.trust)
            .finish_non_exhaustive()
    }
}

/// `text` without the secrets of tickets: each ticket in it is cut to its prefix, and the secrets
/// of tickets among `words` are removed.
pub fn hidden_of<'a>(text: &str, words: impl Iterator<Item = &'a str>) -> String {
    let mut out = hidden(text);
    for (_, secret) in words.filter_map(|word| word.split_once(':')) {
        let length = secret.bytes().take_while(u8::is_ascii_alphanumeric).count();
        // Messages may have only the beginning of it.
        let Some(beginning) = secret[..length].get(..HIDDEN_PART) else { continue };
        while let Some(at) = out.find(beginning) {
            let length = out[at..].bytes().take_while(u8::is_ascii_alphanumeric).count();
            out.replace_range(at..at + length, "...");
        }
    }
    out
}

/// `text` without the secrets of tickets: of each ticket in it only the prefix stays.
pub fn hidden(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, word)) = rest.split_once(':') {
        let length = word.bytes().take_while(u8::is_ascii_alphanumeric).count();
        out.push_str(before);
        out.push(':');
        let is_ticket = length >= HIDDEN_FROM && ends_with_scheme(before);
        if is_ticket {
            out.push_str("...");
        }
        rest = &word[if is_ticket { length } else { 0 }..];
    }
    out + rest
}

/// True if `text` ends with the prefix of a ticket of any version, but for the colon.
fn ends_with_scheme(text: &str) -> bool {
    let scheme = text.trim_end_matches(|c: char| c.is_ascii_digit());
    let start = scheme.len().checked_sub(SCHEME.len()).and_then(|at| scheme.get(at..));
    scheme.len() < text.len() && start.is_some_and(|s| s.eq_ignore_ascii_case(SCHEME))
}

/// The rest of a word after a prefix in letters of either case.
fn without_case<'a>(word: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = word.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

fn checksum(body: &[u8]) -> [u8; CHECKSUM_LEN] {
    let digest = Sha256::new().chain_update(PREFIX).chain_update(body).finalize();
    std::array::from_fn(|i| digest[i])
}

/// The word that carries these bytes, with their checksum.
pub(crate) fn word_of(body: &[u8]) -> String {
    let bytes = [body, &checksum(body)].concat();
    format!("{PREFIX}{}", BASE32_NOPAD.encode(&bytes).to_ascii_lowercase())
}

#[cfg(test)]
mod tests;
