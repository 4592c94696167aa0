//! The SCTP packet in a captured frame.

use std::net::IpAddr;
use std::ops::Range;

use bytes::Bytes;
use etherparse::{IpNumber, LaxIpSlice, UdpHeader};
use manypath_wire::{COMMON_HEADER_LEN, chunk_type};

/// Types of the link layer (<https://www.tcpdump.org/linktypes.html>). 12 and 14 are what some
/// systems write for raw IP.
mod link {
    pub(super) const BSD_NULL: u32 = 0;
    pub(super) const ETHERNET: u32 = 1;
    pub(super) const RAW: [u32; 5] = [101, 12, 14, 228, 229];
    pub(super) const BSD_LOOP: u32 = 108;
    pub(super) const LINUX_COOKED: u32 = 113;
    pub(super) const LINUX_COOKED_2: u32 = 276;
}

const ETHERTYPE_IP: [u16; 2] = [0x0800, 0x86dd];
const ETHERTYPE_VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// VLAN tags that are looked behind.
const VLAN_TAGS_MAX: usize = 4;

const UDP_HEADER: usize = 8;
const IPV6_HEADER: usize = 40;

/// Longest headers of a batch, in bytes: each packet in it gets a copy of them.
const BATCH_HEADERS_MAX: usize = 256;

/// A chunk's type, flags and length.
const CHUNK_HEADER: usize = 4;

/// Source and destination port and the verification tag: the same in all packets of a batch.
const FLOW: Range<usize> = 0..8;

/// The place of an SCTP packet, or of what may be one, in a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) sctp: Range<usize>,
    ip: Range<usize>,
    /// Where the UDP header is, if there is one.
    udp: Option<usize>,
    ends: (IpAddr, IpAddr),
}

/// A frame without an SCTP packet that can be replaced.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum NotFound {
    /// It has none.
    Other,
    /// It may have one, but cannot be read: the reason.
    Left(&'static str),
}

/// Where a part of a slice begins in it.
fn offset(whole: &[u8], part: &[u8]) -> usize {
    part.as_ptr().addr().saturating_sub(whole.as_ptr().addr())
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

/// Where the IP packet of a frame begins; `None` if there is none.
fn ip_offset(link_type: u32, frame: &[u8]) -> Result<Option<usize>, NotFound> {
    let (ethertype, mut at) = match link_type {
        link::ETHERNET => (12, 14),
        link::LINUX_COOKED => (14, 16),
        link::LINUX_COOKED_2 => (0, 20),
        link::BSD_NULL | link::BSD_LOOP => return Ok(Some(4)),
        raw if link::RAW.contains(&raw) => return Ok(Some(0)),
        _ => return Err(NotFound::Left("link_type")),
    };
    let Some(mut protocol) = u16_at(frame, ethertype) else { return Ok(None) };
    for _ in 0..VLAN_TAGS_MAX {
        if !ETHERTYPE_VLAN.contains(&protocol) {
            break;
        }
        let Some(inner) = u16_at(frame, at + 2) else { return Ok(None) };
        (protocol, at) = (inner, at + 4);
    }
    Ok(ETHERTYPE_IP.contains(&protocol).then_some(at))
}

impl Place {
    /// Finds the SCTP packet in a frame of an interface with that link type.
    pub(super) fn find(link_type: Option<u32>, frame: &[u8]) -> Result<Place, NotFound> {
        let link_type = link_type.ok_or(NotFound::Left("malformed"))?;
        let Some(at) = ip_offset(link_type, frame)? else { return Err(NotFound::Other) };
        let bytes = frame.get(at..).unwrap_or_default();
        // Loopback frames of other families, and frames without anything.
        if !matches!(bytes.first().map(|byte| byte >> 4), Some(4 | 6)) {
            return Err(NotFound::Other);
        }
        let malformed = NotFound::Left("malformed");
        let (ip, error) = LaxIpSlice::from_slice(bytes).map_err(|_| malformed)?;
        if error.is_some() {
            return Err(malformed);
        }
        let payload = ip.payload();
        let udp = match payload.ip_number {
            IpNumber::UDP => true,
            IpNumber::SCTP => false,
            _ => return Err(NotFound::Other),
        };
        if payload.fragmented {
            return Err(NotFound::Left("fragment"));
        }
        if payload.incomplete {
            return Err(NotFound::Left("cut_short"));
        }
        let transport = at + offset(bytes, payload.payload);
        let end = transport + payload.payload.len();
        let mut sctp = transport..end;
        if udp {
            let len = u16_at(payload.payload, 4).ok_or(malformed)?;
            let len = match usize::from(len) {
                // A packet that the network card was to complete, or a jumbogram.
                0 => payload.payload.len(),
                len => len,
            };
            if !(UDP_HEADER..=payload.payload.len()).contains(&len) {
                return Err(malformed);
            }
            sctp = transport + UDP_HEADER..transport + len;
        }
        let ends = (ip.source_addr(), ip.destination_addr());
        Ok(Place { sctp, ip: at..end, udp: udp.then_some(transport), ends })
    }

    /// The SCTP packets in the payload: one, but several where the capture saw a batch before it
    /// was segmented, or after its segments were joined (GSO, GRO). Those have one length, but for
    /// the last, which may be shorter. Only that of a DTLS chunk can be known.
    pub(super) fn segments(&self, payload: &Bytes) -> Vec<Bytes> {
        let whole = vec![payload.clone()];
        let is_dtls = payload.get(COMMON_HEADER_LEN) == Some(&chunk_type::DTLS);
        if self.udp.is_none() || !is_dtls || self.sctp.start > BATCH_HEADERS_MAX {
            return whole;
        }
        let Some(chunk) = u16_at(payload, COMMON_HEADER_LEN + 2) else { return whole };
        let len = COMMON_HEADER_LEN + usize::from(chunk).next_multiple_of(4);
        if usize::from(chunk) < CHUNK_HEADER || len >= payload.len() {
            return whole;
        }
        let segments = payload.chunks(len);
        let is_packet = |segment: &[u8]| {
            segment.len() >= COMMON_HEADER_LEN + CHUNK_HEADER
                && segment.get(FLOW) == payload.get(FLOW)
        };
        if segments.clone().all(is_packet) {
            segments.map(|segment| payload.slice_ref(segment)).collect()
        } else {
            whole
        }
    }

    /// The frame without what is behind the SCTP packet.
    pub(super) fn without_rest<'f>(&self, frame: &'f [u8]) -> &'f [u8] {
        &frame[..self.sctp.end]
    }

    /// The frame with another SCTP packet, which is not longer than what it replaces. Lengths and
    /// checksums are those of the new packet; a UDP checksum of 0, for none, stays.
    pub(super) fn replace(&self, frame: &[u8], sctp: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(frame.len());
        out.extend_from_slice(&frame[..self.sctp.start]);
        out.extend_from_slice(sctp);
        out.extend_from_slice(&frame[self.sctp.end..]);
        if let Some(udp) = self.udp {
            let header = out[udp..].first_chunk::<UDP_HEADER>().copied().unwrap_or_default();
            let mut header = UdpHeader::from_bytes(header);
            header.length = u16::try_from(UDP_HEADER + sctp.len()).unwrap_or(0);
            if header.checksum != 0 {
                let checksum = match self.ends {
                    (IpAddr::V4(from), IpAddr::V4(to)) => {
                        header.calc_checksum_ipv4_raw(from.octets(), to.octets(), sctp)
                    }
                    (IpAddr::V6(from), IpAddr::V6(to)) => {
                        header.calc_checksum_ipv6_raw(from.octets(), to.octets(), sctp)
                    }
                    _ => Ok(0),
                };
                header.checksum = checksum.unwrap_or(0);
            }
            out[udp..udp + UDP_HEADER].copy_from_slice(&header.to_bytes());
        }
        let behind = self.ip.end.min(frame.len()) - self.sctp.end;
        let ip = self.ip.start;
        let len = self.sctp.start - ip + sctp.len() + behind;
        match self.ends.0 {
            IpAddr::V4(_) => {
                put_u16(&mut out, ip + 2, len);
                let header = 4 * usize::from(out[ip] & 0xf);
                put_u16(&mut out, ip + 10, 0);
                let sum = etherparse::checksum::Sum16BitWords::new();
                let checksum = sum.add_slice(&out[ip..ip + header]).ones_complement();
                // The library's words are in the byte order of the machine.
                out[ip + 10..ip + 12].copy_from_slice(&checksum.to_ne_bytes());
            }
            IpAddr::V6(_) => put_u16(&mut out, ip + 4, len.saturating_sub(IPV6_HEADER)),
        }
        out
    }
}

fn put_u16(out: &mut [u8], at: usize, number: usize) {
    let number = u16::try_from(number).unwrap_or(0);
    out[at..at + 2].copy_from_slice(&number.to_be_bytes());
}
