//! The blocks of a pcapng file (draft-ietf-opsawg-pcapng), read one by one so that what is not
//! understood can be copied as it is.

use std::io::{self, Read};

use pcap_file::Endianness;

use super::BLOCK_MAX;

/// Types of blocks; the first reads the same in both byte orders.
pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// The byte-order magic of a section header.
const MAGIC: u32 = 0x1a2b_3c4d;

/// Bytes of a block around its body: type and length, and the length again.
const HEAD: usize = 8;
const FRAMING: usize = 12;

/// Where the length of a section is in its header block.
const SECTION_LENGTH: std::ops::Range<usize> = 16..24;

/// Fields of an enhanced packet block before the packet, in bytes.
const PACKET_FIELDS: usize = 20;

/// Codes of options.
const OPTION_END: u16 = 0;
const OPTION_COMMENT: u16 = 1;
const OPTION_HASH: u16 = 3;

/// The byte order of a section.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Big,
    Little,
}

impl Order {
    pub(super) fn of(endianness: Endianness) -> Order {
        match endianness {
            Endianness::Big => Order::Big,
            Endianness::Little => Order::Little,
        }
    }

    /// The number in the first bytes; 0 if there are too few.
    pub(super) fn u32(self, bytes: &[u8]) -> u32 {
        let Some(bytes) = bytes.first_chunk() else { return 0 };
        match self {
            Order::Big => u32::from_be_bytes(*bytes),
            Order::Little => u32::from_le_bytes(*bytes),
        }
    }

    fn u16(self, bytes: &[u8]) -> u16 {
        let Some(bytes) = bytes.first_chunk() else { return 0 };
        match self {
            Order::Big => u16::from_be_bytes(*bytes),
            Order::Little => u16::from_le_bytes(*bytes),
        }
    }

    fn put_u32(self, out: &mut Vec<u8>, number: u32) {
        out.extend_from_slice(&match self {
            Order::Big => number.to_be_bytes(),
            Order::Little => number.to_le_bytes(),
        });
    }

    fn put_u16(self, out: &mut Vec<u8>, number: u16) {
        out.extend_from_slice(&match self {
            Order::Big => number.to_be_bytes(),
            Order::Little => number.to_le_bytes(),
        });
    }
}

/// A packet of a capture.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Packet<'b> {
    pub(super) interface: u32,
    /// The time in units of the interface's resolution.
    pub(super) ticks: u64,
    /// Its length on the network.
    pub(super) original_len: u32,
    pub(super) data: &'b [u8],
    /// Its options, in the byte order of its section.
    pub(super) options: &'b [u8],
}

/// A block of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Block<'b> {
    Section,
    Interface {
        link_type: u16,
    },
    Packet(Packet<'b>),
    /// A packet that is not understood, for this reason.
    OddPacket(&'static str),
    Other,
}

/// How reading a block ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Whole,
    /// The file ended before it.
    End,
    /// The file ends within it.
    CutOff,
    /// It makes no sense, so it is not known where the next one begins.
    Wrong(&'static str),
}

/// Reads blocks, one at a time.
pub(super) struct Blocks<'r, R> {
    reader: &'r mut R,
    order: Order,
    block: Vec<u8>,
    is_first: bool,
}

/// Reads until `bytes` has this length or the file ends.
pub(super) fn fill(reader: &mut impl Read, bytes: &mut Vec<u8>, len: usize) -> io::Result<()> {
    let missing = len.saturating_sub(bytes.len()) as u64;
    reader.take(missing).read_to_end(bytes).map(|_| ())
}

impl<'r, R: Read> Blocks<'r, R> {
    /// Reads a file whose first bytes, less than a block, are these.
    pub(super) fn new(reader: &'r mut R, begin: Vec<u8>) -> Blocks<'r, R> {
        Blocks { reader, order: Order::Little, block: begin, is_first: true }
    }

    /// The byte order of the section.
    pub(super) fn order(&self) -> Order {
        self.order
    }

    /// All bytes of the block.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.block
    }

    /// Reads the next block.
    pub(super) fn read(&mut self) -> io::Result<Progress> {
        if !std::mem::take(&mut self.is_first) {
            self.block.clear();
        }
        fill(self.reader, &mut self.block, FRAMING)?;
        if self.block.is_empty() {
            return Ok(Progress::End);
        }
        if self.block.len() < FRAMING {
            return Ok(Progress::CutOff);
        }
        let is_section = self.order.u32(&self.block) == SECTION_HEADER;
        if is_section {
            let orders = [Order::Little, Order::Big];
            let fits = |order: &Order| order.u32(&self.block[HEAD..]) == MAGIC;
            let Some(order) = orders.into_iter().find(fits) else {
                return Ok(Progress::Wrong("a section has no byte-order magic"));
            };
            self.order = order;
        }
        let len = self.order.u32(&self.block[4..]) as usize;
        if !(FRAMING..=BLOCK_MAX).contains(&len) || !len.is_multiple_of(4) {
            return Ok(Progress::Wrong("a block has a length that none can have"));
        }
        fill(self.reader, &mut self.block, len)?;
        if self.block.len() < len {
            return Ok(Progress::CutOff);
        }
        if self.order.u32(&self.block[len - 4..]) as usize != len {
            return Ok(Progress::Wrong("a block does not end with its length"));
        }
        if is_section {
            // Blocks change their length. -1: it is not known.
            match self.block.get_mut(SECTION_LENGTH) {
                Some(length) if len >= SECTION_LENGTH.end + 4 => length.fill(0xff),
                _ => return Ok(Progress::Wrong("the header of a section is too short")),
            }
        }
        Ok(Progress::Whole)
    }

    /// The block that was read.
    pub(super) fn block(&self) -> Block<'_> {
        let Some(body) = self.block.get(HEAD..self.block.len().saturating_sub(4)) else {
            return Block::Other;
        };
        match self.order.u32(&self.block) {
            SECTION_HEADER => Block::Section,
            INTERFACE => Block::Interface { link_type: self.order.u16(body) },
            ENHANCED_PACKET => {
                self.packet(body).map_or(Block::OddPacket("malformed"), Block::Packet)
            }
            SIMPLE_PACKET | OBSOLETE_PACKET => Block::OddPacket("block_type"),
            _ => Block::Other,
        }
    }

    fn packet<'b>(&self, body: &'b [u8]) -> Option<Packet<'b>> {
        let (fields, rest) = body.split_at_checked(PACKET_FIELDS)?;
        let field = |index: usize| self.order.u32(&fields[4 * index..]);
        let len = field(3) as usize;
        let (padded, options) = rest.split_at_checked(len.checked_next_multiple_of(4)?)?;
        let ticks = u64::from(field(1)) << 32 | u64::from(field(2));
        let data = &padded[..len];
        Some(Packet { interface: field(0), ticks, original_len: field(4), data, options })
    }
}

/// Appends an enhanced packet block.
pub(super) fn put_packet(
    out: &mut Vec<u8>,
    order: Order,
    packet: &Packet<'_>,
    comment: Option<&str>,
) {
    let start = out.len();
    order.put_u32(out, ENHANCED_PACKET);
    order.put_u32(out, 0);
    let ticks = packet.ticks;
    let len = packet.data.len() as u32;
    for field in [packet.interface, (ticks >> 32) as u32, ticks as u32, len, packet.original_len] {
        order.put_u32(out, field);
    }
    out.extend_from_slice(packet.data);
    pad(out, start);
    put_options(out, order, packet.options, comment, start);
    let len = (out.len() - start + 4) as u32;
    order.put_u32(out, len);
    let mut length = Vec::with_capacity(4);
    order.put_u32(&mut length, len);
    out[start + 4..start + HEAD].copy_from_slice(&length);
}

/// Appends the comment and the options, but for hashes of the packet: its bytes have changed.
/// Options behind one that makes no sense are left out.
fn put_options(
    out: &mut Vec<u8>,
    order: Order,
    mut options: &[u8],
    comment: Option<&str>,
    start: usize,
) {
    let begin = out.len();
    if let Some(comment) = comment {
        put_option(out, order, OPTION_COMMENT, comment.as_bytes(), start);
    }
    while let Some((head, rest)) = options.split_first_chunk::<4>() {
        let (code, len) = (order.u16(head), usize::from(order.u16(&head[2..])));
        let Some((value, _)) = rest.split_at_checked(len) else { break };
        if code == OPTION_END {
            break;
        }
        if code != OPTION_HASH || comment.is_none() {
            put_option(out, order, code, value, start);
        }
        options = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    if out.len() > begin {
        put_option(out, order, OPTION_END, &[], start);
    }
}

fn put_option(out: &mut Vec<u8>, order: Order, code: u16, value: &[u8], start: usize) {
    order.put_u16(out, code);
    order.put_u16(out, value.len() as u16);
    out.extend_from_slice(value);
    pad(out, start);
}

/// Appends zeros to a multiple of 4 bytes from `start`.
fn pad(out: &mut Vec<u8>, start: usize) {
    let len = (out.len() - start).next_multiple_of(4);
    out.resize(start + len, 0);
}
