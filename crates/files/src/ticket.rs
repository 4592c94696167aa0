//! The ticket: one word that tells a sender where the receiver is and proves it may send.
//!
//! `manypath1:` followed by lower-case base32 (RFC 4648, no padding) of
//!
//! ```text
//! byte 0      layout version, 1
//! byte 1      flags: bit 0 = a key fingerprint follows the token; others 0
//! bytes 2-3   UDP port, big-endian
//! byte 4      token length T, 1..=255
//! T bytes     token
//! 32 bytes    SHA-256 fingerprint of the receiver's key, only with flag bit 0
//! 1 byte      number of addresses N, 1..=32
//! N times     4 and four bytes, or 6 and sixteen bytes: an IP address, network order
//! 4 bytes     checksum: the first four bytes of the SHA-256 of all the above
//! ```
//!
//! Base32, because a double click selects all of it and its letters can be read aloud. The checksum
//! distinguishes a truncated ticket from a wrong receiver.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use data_encoding::BASE32_NOPAD;
use sha2::{Digest, Sha256};

/// The prefix of every ticket of this version.
pub const PREFIX: &str = "manypath1:";

const LAYOUT: u8 = 1;
const FLAG_FINGERPRINT: u8 = 1;
const CHECKSUM_LEN: usize = 4;
/// As many addresses as an association can have paths.
const ADDRESSES_MAX: usize = 32;

/// Where a receiver listens and what it wants to hear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The receiver's addresses, most preferred first.
    pub addresses: Vec<IpAddr>,
    /// UDP port, the same on all of them.
    pub port: u16,
    /// The secret that authorises a transfer, 1..=255 bytes.
    pub token: Vec<u8>,
    /// SHA-256 of the receiver's public key; none while transfers are not encrypted.
    pub fingerprint: Option<[u8; 32]>,
}

/// The reason why a word is not a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TicketError {
    /// It does not begin with [`PREFIX`], but with another version's.
    OtherVersion,
    /// A character base32 does not have.
    BadCharacter,
    /// Too short, or the checksum does not match.
    Damaged,
}

impl fmt::Display for TicketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TicketError::OtherVersion => "the ticket is of another version of manypath",
            TicketError::BadCharacter => "the ticket contains a character no ticket has",
            TicketError::Damaged => "the ticket is incomplete or was changed on the way",
        })
    }
}

impl Ticket {
    /// True if `word` is meant as a ticket, complete or not.
    pub fn looks_like(word: &str) -> bool {
        let Some((scheme, _)) = word.split_once(':') else { return false };
        scheme
            .strip_prefix("manypath")
            .is_some_and(|v| !v.is_empty() && v.bytes().all(|b| b.is_ascii_digit()))
    }

    /// The receiver's transport addresses.
    pub fn socket_addresses(&self) -> Vec<SocketAddr> {
        self.addresses.iter().map(|ip| SocketAddr::new(*ip, self.port)).collect()
    }

    /// Reads a ticket as a person pasted it.
    pub fn parse(word: &str) -> Result<Ticket, TicketError> {
        let text = word.trim().strip_prefix(PREFIX).ok_or(TicketError::OtherVersion)?;
        let upper = text.to_ascii_uppercase();
        if !upper.bytes().all(|b| b.is_ascii_uppercase() || (b'2'..=b'7').contains(&b)) {
            return Err(TicketError::BadCharacter);
        }
        // A length or trailing bits that no encoder writes: characters were lost.
        let bytes = BASE32_NOPAD.decode(upper.as_bytes()).map_err(|_| TicketError::Damaged)?;
        Ticket::decode(&bytes).ok_or(TicketError::Damaged)
    }

    fn decode(bytes: &[u8]) -> Option<Ticket> {
        let (body, checksum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM_LEN)?)?;
        if Sha256::digest(body)[..CHECKSUM_LEN] != *checksum {
            return None;
        }
        let (&[layout, flags, port_high, port_low, token_len], rest) = body.split_first_chunk()?;
        if layout != LAYOUT || flags & !FLAG_FINGERPRINT != 0 || token_len == 0 {
            return None;
        }
        let (token, mut rest) = rest.split_at_checked(usize::from(token_len))?;
        let mut fingerprint = None;
        if flags & FLAG_FINGERPRINT != 0 {
            let (key, after) = rest.split_first_chunk::<32>()?;
            (fingerprint, rest) = (Some(*key), after);
        }
        let (&count, mut rest) = rest.split_first()?;
        if count == 0 || usize::from(count) > ADDRESSES_MAX {
            return None;
        }
        let mut addresses = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            let (&family, after) = rest.split_first()?;
            let (ip, after) = match family {
                4 => {
                    after.split_first_chunk::<4>().map(|(ip, r)| (Ipv4Addr::from(*ip).into(), r))?
                }
                6 => after
                    .split_first_chunk::<16>()
                    .map(|(ip, r)| (Ipv6Addr::from(*ip).into(), r))?,
                _ => return None,
            };
            addresses.push(ip);
            rest = after;
        }
        let port = u16::from_be_bytes([port_high, port_low]);
        rest.is_empty().then(|| Ticket { addresses, port, token: token.to_vec(), fingerprint })
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = vec![LAYOUT, u8::from(self.fingerprint.is_some()) * FLAG_FINGERPRINT];
        bytes.extend(self.port.to_be_bytes());
        let token = &self.token[..self.token.len().min(255)];
        bytes.push(token.len() as u8);
        bytes.extend(token);
        bytes.extend(self.fingerprint.iter().flatten());
        let addresses = &self.addresses[..self.addresses.len().min(ADDRESSES_MAX)];
        bytes.push(addresses.len() as u8);
        for ip in addresses {
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
        f.write_str(&word_of(&bytes))
    }
}

/// The word that carries these bytes, with their checksum.
pub(crate) fn word_of(body: &[u8]) -> String {
    let checksum = Sha256::digest(body);
    let bytes = [body, &checksum[..CHECKSUM_LEN]].concat();
    format!("{PREFIX}{}", BASE32_NOPAD.encode(&bytes).to_ascii_lowercase())
}

#[cfg(test)]
mod tests;
