//! Packets as a pcapng file, as a capture at one host would have them.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use etherparse::{IpNumber, PacketBuilder};
use manypath_proto::{Config, Instant};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};

/// Encapsulation of the SCTP packets.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encapsulation {
    /// UDP (RFC 6951).
    Udp,
    /// IP itself, as protocol 132.
    Ip,
}

impl Encapsulation {
    /// The encapsulation of this configuration.
    pub fn of(config: &Config) -> Encapsulation {
        if config.udp_encapsulation { Encapsulation::Udp } else { Encapsulation::Ip }
    }
}

/// Timestamps count units of 10^-9 s (`if_tsresol`).
const NANOSECONDS: u8 = 9;

/// `epb_flags`: the direction of a packet.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// Largest packet that a capture holds: an IP packet.
const SNAPLEN: u32 = 65_535;

/// Packets that wait, at most, for the host to know its paths and so the names of its interfaces.
const BEFORE_PATHS: usize = 64;

/// A pair of addresses, the host's first.
type Ends = (SocketAddr, SocketAddr);

/// Time to live of packets in a capture.
const TTL: u8 = 64;

/// A capture at one host: a pcapng file with an interface for each pair of addresses.
///
/// A sent packet is written when its fate is known, so that a dropped one carries a comment that
/// says why; what comes after it waits. What is kept is therefore what the network holds, and the
/// first few packets of a host that does not know its paths yet.
pub struct Capture<W: Write> {
    host: String,
    encapsulation: Encapsulation,
    file: PcapNgWriter<W>,
    /// By their numbers in the file.
    interfaces: Vec<Ends>,
    /// The numbers of the paths that are known.
    paths: BTreeMap<Ends, u16>,
    waiting: VecDeque<Waiting>,
    /// How many packets left `waiting` so far: the position of its first.
    written: u64,
    /// Position of each sent packet that waits for its fate, by its number.
    unsettled: BTreeMap<u64, u64>,
    packet: Vec<u8>,
}

struct Waiting {
    at: Instant,
    ends: Ends,
    is_sent: bool,
    sctp: Bytes,
    is_settled: bool,
    /// The fate of the packet, if it did not arrive.
    comment: Option<String>,
    note: Option<&'static str>,
}

impl<W: Write> Capture<W> {
    /// Begins a capture at a host of that name. `about` describes the run, for the file's header.
    /// Give it a buffered writer.
    ///
    /// # Errors
    /// The writer's.
    pub fn new(out: W, host: &str, about: &str, encapsulation: Encapsulation) -> io::Result<Self> {
        let section = SectionHeaderBlock {
            endianness: Endianness::Little,
            options: vec![
                SectionHeaderOption::Comment(Cow::Owned(about.to_owned())),
                SectionHeaderOption::UserApplication(Cow::Borrowed("manypath")),
            ],
            ..SectionHeaderBlock::default()
        };
        Ok(Capture {
            host: host.to_owned(),
            encapsulation,
            file: PcapNgWriter::with_section_header(out, section).map_err(io_error)?,
            interfaces: Vec::new(),
            paths: BTreeMap::new(),
            waiting: VecDeque::new(),
            written: 0,
            unsettled: BTreeMap::new(),
            packet: Vec::new(),
        })
    }

    /// The host has a path of that number between these addresses: an interface that is not named
    /// yet is named after it.
    pub fn name_path(&mut self, number: u16, ends: (SocketAddr, SocketAddr)) {
        self.paths.insert(ends, number);
    }

    /// The host sent the packet of that number from the first of these addresses to the second. A
    /// note is a comment of the packet.
    pub fn sent(
        &mut self,
        at: Instant,
        number: u64,
        ends: (SocketAddr, SocketAddr),
        sctp: &Bytes,
        note: Option<&'static str>,
    ) {
        self.unsettled.insert(number, self.written + self.waiting.len() as u64);
        let (is_sent, is_settled, comment) = (true, false, None);
        let sctp = sctp.clone();
        self.waiting.push_back(Waiting { at, ends, is_sent, sctp, is_settled, comment, note });
    }

    /// The host received a packet at the first of these addresses from the second. A note is a
    /// comment of the packet.
    ///
    /// # Errors
    /// The writer's.
    pub fn received(
        &mut self,
        at: Instant,
        ends: (SocketAddr, SocketAddr),
        sctp: &Bytes,
        note: Option<&'static str>,
    ) -> io::Result<()> {
        let (is_sent, is_settled, comment) = (false, true, None);
        let sctp = sctp.clone();
        self.waiting.push_back(Waiting { at, ends, is_sent, sctp, is_settled, comment, note });
        self.write_settled()
    }

    /// A sent packet arrived somewhere, or was dropped and `comment` says why. Nothing for a packet
    /// that is not the host's, or whose fate is known.
    ///
    /// # Errors
    /// The writer's.
    pub fn settle(&mut self, number: u64, comment: Option<String>) -> io::Result<()> {
        let Some(position) = self.unsettled.remove(&number) else { return Ok(()) };
        // Unsettled packets are never written, so it is there.
        if let Some(packet) = self.waiting.get_mut((position - self.written) as usize) {
            packet.is_settled = true;
            packet.comment = comment;
        }
        self.write_settled()
    }

    /// Writes what waits; the run is over.
    ///
    /// # Errors
    /// The writer's.
    pub fn finish(&mut self) -> io::Result<()> {
        self.unsettled.clear();
        while let Some(mut packet) = self.waiting.pop_front() {
            if !packet.is_settled {
                packet.comment = Some("under way at the end of the run".to_owned());
            }
            self.write(&packet)?;
        }
        self.file.get_mut().flush()
    }

    /// The writer, after [`finish`](Self::finish).
    pub fn into_inner(self) -> W {
        self.file.into_inner()
    }

    /// The number of the interface between these addresses, which is made if need be.
    fn interface(&mut self, ends: Ends) -> io::Result<u32> {
        if let Some(index) = self.interfaces.iter().position(|known| *known == ends) {
            return Ok(index as u32);
        }
        let (local, remote) = ends;
        let name = match self.paths.get(&ends) {
            Some(path) => format!("{} path {path}", self.host),
            None => format!("{} {} to {}", self.host, local.ip(), remote.ip()),
        };
        let description = match self.encapsulation {
            Encapsulation::Udp => format!("{local} to {remote}"),
            Encapsulation::Ip => format!("{} to {}", local.ip(), remote.ip()),
        };
        let block = InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: SNAPLEN,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Owned(name)),
                InterfaceDescriptionOption::IfDescription(Cow::Owned(description)),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        };
        self.file.write_pcapng_block(block).map_err(io_error)?;
        self.interfaces.push(ends);
        Ok(self.interfaces.len() as u32 - 1)
    }

    fn write_settled(&mut self) -> io::Result<()> {
        if self.paths.is_empty() && self.waiting.len() <= BEFORE_PATHS {
            return Ok(());
        }
        while self.waiting.front().is_some_and(|first| first.is_settled)
            && let Some(packet) = self.waiting.pop_front()
        {
            self.written += 1;
            self.write(&packet)?;
        }
        Ok(())
    }

    fn write(&mut self, waiting: &Waiting) -> io::Result<()> {
        let interface_id = self.interface(waiting.ends)?;
        let (local, remote) = waiting.ends;
        let (source, destination) = if waiting.is_sent { (local, remote) } else { (remote, local) };
        self.packet.clear();
        put_packet(&mut self.packet, self.encapsulation, source, destination, &waiting.sctp)?;
        let direction = if waiting.is_sent { OUTBOUND } else { INBOUND };
        let mut options = vec![EnhancedPacketOption::Flags(direction)];
        for comment in [waiting.comment.as_deref(), waiting.note].into_iter().flatten() {
            options.push(EnhancedPacketOption::Comment(Cow::Borrowed(comment)));
        }
        let block = EnhancedPacketBlock {
            interface_id,
            timestamp: Duration::from_nanos(waiting.at.as_nanos()),
            original_len: self.packet.len() as u32,
            data: Cow::Borrowed(self.packet.as_slice()),
            options,
        };
        self.file.write_pcapng_block(block).map_err(io_error)?;
        Ok(())
    }
}

impl<W: Write> fmt::Debug for Capture<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture")
            .field("host", &self.host)
            .field("encapsulation", &self.encapsulation)
            .field("interfaces", &self.interfaces.len())
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}

/// Appends an IP packet. An SCTP packet that was built without a checksum gets it; a checksum that
/// is there stays, right or wrong.
fn put_packet(
    out: &mut Vec<u8>,
    encapsulation: Encapsulation,
    source: SocketAddr,
    destination: SocketAddr,
    sctp: &[u8],
) -> io::Result<()> {
    let mut sctp = Cow::Borrowed(sctp);
    if sctp.get(8..12) == Some(&[0; 4]) {
        manypath_wire::fill_checksum(sctp.to_mut());
    }
    let ip = match (source.ip(), destination.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => PacketBuilder::ipv4(from.octets(), to.octets(), TTL),
        (IpAddr::V6(from), IpAddr::V6(to)) => PacketBuilder::ipv6(from.octets(), to.octets(), TTL),
        (from, to) => {
            let text = format!("no packet goes from {from} to {to}: they are of two families");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
    };
    let result = match encapsulation {
        Encapsulation::Udp => ip.udp(source.port(), destination.port()).write(out, &sctp),
        Encapsulation::Ip => ip.write(out, IpNumber::SCTP, &sctp),
    };
    result.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}

pub(crate) fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}
