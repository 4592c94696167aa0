//! CANDIDATES: a private chunk by which an end tells where else it may be reached (the candidates
//! of RFC 8445 §5.1). No RFC has it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{RawChunk, chunk_type};
use crate::builder::PacketBuilder;

/// Most candidates of one chunk.
pub const CANDIDATES_MAX: usize = 32;

/// The flag by which the sender asks for an answer.
const FLAG_ASKS: u8 = 1;
/// The flag by which the sender wants content to take direct paths alone.
const FLAG_DIRECT_ONLY: u8 = 2;

/// Bytes of a chunk without candidates.
const FIXED_LEN: usize = 8;

/// The family of an address, in the low half of its first byte.
const IPV4: u8 = 4;
const IPV6: u8 = 6;

/// How an end came by a candidate (RFC 8445 §5.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CandidateKind {
    /// An address of its own.
    Host,
    /// A NAT maps an address of its own to this one, as a server saw it.
    Reflexive,
    /// A NAT promised this address, by PCP, NAT-PMP or UPnP.
    Mapped,
    /// A relay forwards from this address.
    Relayed,
}

impl CandidateKind {
    const ALL: [CandidateKind; 4] = [
        CandidateKind::Host,
        CandidateKind::Reflexive,
        CandidateKind::Mapped,
        CandidateKind::Relayed,
    ];
}

/// An address at which an end may be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NamedAddress {
    /// How the end came by it.
    pub kind: CandidateKind,
    /// The number of the socket behind it: candidates of one socket are ways to one place.
    pub base: u8,
    /// The UDP address.
    pub address: SocketAddr,
}

/// The candidates of its sender, all of them. A list with a later serial number replaces it. A list
/// is repeated until the peer's chunk says that it arrived.
///
/// The chunk type asks a receiver that does not know it to skip it in silence.
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// |  type = 0xb8  |   flags . D A |            length             |
/// +---------------+---------------+---------------+---------------+
/// |                 serial number of this list                    |
/// +---------------+---------------+---------------+---------------+
/// |     serial number of the peer's latest list, 0 if none came   |
/// +---------------+---------------+---------------+---------------+
/// | kind, family  |     base      |             port              |
/// +---------------+---------------+---------------+---------------+
/// | address: 4 bytes (family 4), or 16 bytes (family 6)           |
/// +---------------+---------------+---------------+---------------+
/// ```
/// The last two rows are there for each candidate. The kind is in the upper half of its byte, the
/// family in the lower. A candidate of an unknown kind does not count; at most
/// [`CANDIDATES_MAX`] do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidates {
    /// The A bit: the peer has not said that this list arrived, and is asked to.
    pub asks: bool,
    /// The D bit: relays are there to meet, and content takes direct paths alone.
    pub direct_only: bool,
    /// Counts the sender's lists, from 1.
    pub serial: u32,
    /// The peer's latest list that came, or 0.
    pub seen: u32,
    /// The candidates, at most [`CANDIDATES_MAX`].
    pub list: Vec<NamedAddress>,
}

impl Candidates {
    /// `None` if it ends inside a candidate, or one has no family: the type is private, and someone
    /// else's may look different.
    pub(super) fn decode(raw: &RawChunk<'_>) -> Option<Self> {
        let fixed: &[u8; FIXED_LEN] = raw.fixed().ok()?;
        let [s0, s1, s2, s3, p0, p1, p2, p3] = *fixed;
        let bytes = raw.value_from(FIXED_LEN);
        let (mut rest, mut list) = (&bytes[..], Vec::new());
        while let Some((&[first, base, port0, port1], behind)) = rest.split_first_chunk() {
            let (ip, behind) = match first & 0xf {
                IPV4 => {
                    let (ip, behind) = behind.split_first_chunk::<4>()?;
                    (IpAddr::from(Ipv4Addr::from(*ip)), behind)
                }
                IPV6 => {
                    let (ip, behind) = behind.split_first_chunk::<16>()?;
                    (IpAddr::from(Ipv6Addr::from(*ip)), behind)
                }
                _ => return None,
            };
            rest = behind;
            let port = u16::from_be_bytes([port0, port1]);
            let kind = CandidateKind::ALL.get(usize::from(first >> 4)).copied();
            if let Some(kind) = kind
                && list.len() < CANDIDATES_MAX
            {
                list.push(NamedAddress { kind, base, address: SocketAddr::new(ip, port) });
            }
        }
        rest.is_empty().then_some(Self {
            asks: raw.flags & FLAG_ASKS != 0,
            direct_only: raw.flags & FLAG_DIRECT_ONLY != 0,
            serial: u32::from_be_bytes([s0, s1, s2, s3]),
            seen: u32::from_be_bytes([p0, p1, p2, p3]),
            list,
        })
    }
}

impl PacketBuilder<'_> {
    /// Appends a CANDIDATES chunk, with the first [`CANDIDATES_MAX`] candidates.
    pub fn push_candidates(&mut self, chunk: &Candidates) -> bool {
        let mut list = Vec::new();
        for NamedAddress { kind, base, address } in chunk.list.iter().take(CANDIDATES_MAX) {
            let kind = (*kind as u8) << 4;
            let family = if address.is_ipv6() { IPV6 } else { IPV4 };
            let [port0, port1] = address.port().to_be_bytes();
            list.extend_from_slice(&[kind | family, *base, port0, port1]);
            match address.ip() {
                IpAddr::V4(ip) => list.extend_from_slice(&ip.octets()),
                IpAddr::V6(ip) => list.extend_from_slice(&ip.octets()),
            }
        }
        let [s0, s1, s2, s3] = chunk.serial.to_be_bytes();
        let [p0, p1, p2, p3] = chunk.seen.to_be_bytes();
        let fixed = [s0, s1, s2, s3, p0, p1, p2, p3];
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let flags = flag(chunk.asks, FLAG_ASKS) | flag(chunk.direct_only, FLAG_DIRECT_ONLY);
        self.push_parts(chunk_type::CANDIDATES, flags, fixed, &list)
    }
}
