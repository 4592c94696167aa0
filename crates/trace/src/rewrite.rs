//! Copies a capture, with some of its SCTP packets replaced: those that a key opens.

mod blocks;
mod frame;

use std::collections::BTreeMap;
use std::io::{self, BufReader, BufWriter, Read, Write};

use bytes::Bytes;
use pcap_file::TsResolution;
use pcap_file::pcap::PcapHeader;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};

use blocks::{Block, Blocks, Order, Packet, Progress, put_packet};
use frame::{NotFound, Place};

/// The comment of a packet in a capture that was protected on the network.
pub const OPENED: &str = "opened: was protected by a DTLS chunk";

/// Longest packet or block of a capture that is read, in bytes.
const BLOCK_MAX: usize = 1 << 24;

/// Most interfaces of a section that are told apart.
const INTERFACES_MAX: usize = 1 << 16;

/// The answer to an SCTP packet of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is not protected, or not SCTP: anything in UDP is asked about. It stays as it is.
    Plain,
    /// The packet that takes its place.
    Opened(Bytes),
    /// It is protected and stays as it is, for this reason: a word for [`Rewritten::left`].
    Left(&'static str),
}

/// The fate of the packets of a capture, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rewritten {
    /// Packets in the capture.
    pub packets: u64,
    /// Packets written.
    pub written: u64,
    /// SCTP packets that were opened.
    pub opened: u64,
    /// Packets without protection, SCTP or not.
    pub plain: u64,
    /// Packets that stay as they are, by the reason: one of [`Answer::Left`], or `cut_short` (the
    /// capture has only a part), `fragment` (of an IP packet), `malformed` (headers that cannot be
    /// read), `link_type` (of an interface) or `block_type` (an obsolete form of a packet).
    pub left: BTreeMap<&'static str, u64>,
    /// Packets that were several in one: segments that the network card or the kernel would have
    /// made, or had joined. Those with an opened segment were split.
    pub batches: u64,
    /// The file ends within a packet, whose bytes were left out.
    pub is_cut_off: bool,
}

/// A capture that cannot be read to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RewriteError {
    /// The file is no capture.
    #[error("this is neither a pcap nor a pcapng file")]
    NoCapture,
    /// The file cannot be read.
    #[error("cannot read the capture: {0}")]
    Read(#[source] io::Error),
    /// The copy cannot be written.
    #[error("cannot write the copy: {0}")]
    Write(#[source] io::Error),
    /// A block makes no sense. What comes before it was written.
    #[error("after {packets} packets the capture is damaged: {what}")]
    Damaged {
        /// Packets before it.
        packets: u64,
        /// The error in it.
        what: &'static str,
    },
}

/// Copies a capture (pcap or pcapng) as pcapng and asks `open` about each SCTP packet, in UDP at
/// any port or in IP. The packet that it returns takes the place of the old one, with right lengths
/// and checksums, the same time, and the comment [`OPENED`].
///
/// Everything else stays as it is, to the byte if `input` is pcapng: only the section's length is
/// left out. Memory does not depend on the length of the capture. Frames may be Ethernet, also
/// with VLAN tags, Linux cooked (both versions), BSD loopback or raw IP.
///
/// # Errors
/// See [`RewriteError`]. A file that ends in mid-packet is no error.
pub fn rewrite_capture(
    input: impl Read,
    output: impl Write,
    open: impl FnMut(&Bytes) -> Answer,
) -> Result<Rewritten, RewriteError> {
    let mut copy =
        Copy { out: BufWriter::new(output), open, done: Rewritten::default(), block: Vec::new() };
    let mut input = BufReader::new(input);
    let result = copy.file(&mut input);
    // What was read before an error is of use, too.
    copy.out.flush().map_err(RewriteError::Write)?;
    result.map(|()| copy.done)
}

struct Copy<W: Write, F> {
    out: BufWriter<W>,
    open: F,
    done: Rewritten,
    /// A block that is written.
    block: Vec<u8>,
}

impl<W: Write, F: FnMut(&Bytes) -> Answer> Copy<W, F> {
    fn file(&mut self, input: &mut impl Read) -> Result<(), RewriteError> {
        let mut magic = Vec::new();
        blocks::fill(input, &mut magic, 4).map_err(RewriteError::Read)?;
        if magic == blocks::SECTION_HEADER.to_be_bytes() {
            return self.pcapng(Blocks::new(input, magic));
        }
        blocks::fill(input, &mut magic, 24).map_err(RewriteError::Read)?;
        let (_, header) = PcapHeader::from_slice(&magic).map_err(|_| RewriteError::NoCapture)?;
        self.pcap(&header, input)
    }

    fn damaged(&self, what: &'static str) -> RewriteError {
        RewriteError::Damaged { packets: self.done.packets, what }
    }

    fn pcapng<R: Read>(&mut self, mut blocks: Blocks<'_, R>) -> Result<(), RewriteError> {
        // The link types of the section's interfaces.
        let mut interfaces: Vec<u32> = Vec::new();
        loop {
            match blocks.read().map_err(RewriteError::Read)? {
                Progress::Whole => {}
                Progress::End => return Ok(()),
                Progress::CutOff => {
                    self.done.is_cut_off = true;
                    return Ok(());
                }
                Progress::Wrong(what) => return Err(self.damaged(what)),
            }
            match blocks.block() {
                Block::Section => interfaces.clear(),
                Block::Interface { .. } if interfaces.len() >= INTERFACES_MAX => {
                    return Err(self.damaged("a section has too many interfaces"));
                }
                Block::Interface { link_type } => interfaces.push(link_type.into()),
                Block::Packet(packet) => {
                    let link_type = interfaces.get(packet.interface as usize).copied();
                    let order = blocks.order();
                    if self.packet(link_type, &packet, order).map_err(RewriteError::Write)? {
                        continue;
                    }
                }
                Block::OddPacket(reason) => {
                    self.done.packets += 1;
                    self.done.written += 1;
                    self.leave(reason);
                }
                Block::Other => {}
            }
            self.out.write_all(blocks.bytes()).map_err(RewriteError::Write)?;
        }
    }

    fn pcap(&mut self, header: &PcapHeader, input: &mut impl Read) -> Result<(), RewriteError> {
        let ticks_per_second: u64 = match header.ts_resolution {
            TsResolution::MicroSecond => 1_000_000,
            TsResolution::NanoSecond => 1_000_000_000,
        };
        self.begin(header).map_err(RewriteError::Write)?;
        let order = Order::of(header.endianness);
        // The upper bits of the field tell the length of a frame check sequence.
        let link_type = u32::from(header.datalink) & 0xffff;
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            blocks::fill(input, &mut bytes, 16).map_err(RewriteError::Read)?;
            let Some(head) = bytes.first_chunk::<16>() else {
                self.done.is_cut_off = !bytes.is_empty();
                return Ok(());
            };
            let field = |index: usize| order.u32(&head[4 * index..]);
            let ticks = u64::from(field(0)) * ticks_per_second + u64::from(field(1));
            let (len, original_len) = (field(2) as usize, field(3));
            if len > BLOCK_MAX {
                return Err(self.damaged("a packet is longer than 16 MiB"));
            }
            bytes.clear();
            blocks::fill(input, &mut bytes, len).map_err(RewriteError::Read)?;
            if bytes.len() < len {
                self.done.is_cut_off = true;
                return Ok(());
            }
            let packet = Packet { interface: 0, ticks, original_len, data: &bytes, options: &[] };
            if !self.packet(Some(link_type), &packet, Order::Little).map_err(RewriteError::Write)? {
                self.write(Order::Little, &packet, None).map_err(RewriteError::Write)?;
            }
        }
    }

    /// The header of a pcapng file for the packets of a pcap file.
    fn begin(&mut self, header: &PcapHeader) -> io::Result<()> {
        let application = SectionHeaderOption::UserApplication("manypath".into());
        let section = SectionHeaderBlock {
            endianness: pcap_file::Endianness::Little,
            options: vec![application],
            ..SectionHeaderBlock::default()
        };
        let mut file = PcapNgWriter::with_section_header(&mut self.out, section)
            .map_err(crate::pcapng::io_error)?;
        let resolution = match header.ts_resolution {
            TsResolution::MicroSecond => 6,
            TsResolution::NanoSecond => 9,
        };
        let interface = InterfaceDescriptionBlock {
            linktype: (u32::from(header.datalink) & 0xffff).into(),
            snaplen: header.snaplen,
            options: vec![InterfaceDescriptionOption::IfTsResol(resolution)],
        };
        file.write_pcapng_block(interface).map_err(crate::pcapng::io_error)?;
        Ok(())
    }

    fn leave(&mut self, reason: &'static str) {
        *self.done.left.entry(reason).or_default() += 1;
    }

    /// Asks about a packet, and writes what takes its place. Returns false if nothing does.
    fn packet(
        &mut self,
        link_type: Option<u32>,
        packet: &Packet<'_>,
        order: Order,
    ) -> io::Result<bool> {
        self.done.packets += 1;
        let is_replaced = match Place::find(link_type, packet.data) {
            Err(NotFound::Other) => {
                self.done.plain += 1;
                false
            }
            Err(NotFound::Left(reason)) => {
                self.leave(reason);
                false
            }
            Ok(place) => self.ask(&place, packet, order)?,
        };
        self.done.written += u64::from(!is_replaced);
        Ok(is_replaced)
    }

    fn ask(&mut self, place: &Place, packet: &Packet<'_>, order: Order) -> io::Result<bool> {
        let datagram = Bytes::copy_from_slice(&packet.data[place.sctp.clone()]);
        let segments = place.segments(&datagram);
        let count = segments.len();
        self.done.batches += u64::from(count > 1);
        let mut answers = Vec::with_capacity(count);
        for segment in segments {
            let answer = (self.open)(&segment);
            match &answer {
                Answer::Plain => self.done.plain += 1,
                Answer::Opened(_) => self.done.opened += 1,
                Answer::Left(reason) => self.leave(reason),
            }
            answers.push((segment, answer));
        }
        if !answers.iter().any(|(_, answer)| matches!(answer, Answer::Opened(_))) {
            return Ok(false);
        }
        for (number, (segment, answer)) in answers.iter().enumerate() {
            let (sctp, is_opened) = match answer {
                Answer::Opened(opened) => (opened, true),
                _ => (segment, false),
            };
            let mut comment = String::from(if is_opened { OPENED } else { "left as it was" });
            if count > 1 {
                comment += &format!("; {} of {count} captured as one packet", number + 1);
            }
            // What is behind a batch, and its options, must not be repeated thousands of times.
            let frame = if count > 1 { place.without_rest(packet.data) } else { packet.data };
            let options = if number == 0 { packet.options } else { &[] };
            let data = place.replace(frame, sctp);
            let missing = packet.original_len.saturating_sub(packet.data.len() as u32);
            let original_len = missing.saturating_add(data.len() as u32);
            let new = Packet { data: &data, original_len, options, ..*packet };
            self.write(order, &new, Some(&comment))?;
            self.done.written += 1;
        }
        Ok(true)
    }

    fn write(
        &mut self,
        order: Order,
        packet: &Packet<'_>,
        comment: Option<&str>,
    ) -> io::Result<()> {
        self.block.clear();
        put_packet(&mut self.block, order, packet, comment);
        self.out.write_all(&self.block)
    }
}
