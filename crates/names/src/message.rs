//! Messages of multicast DNS: the few kinds of records that names need.
//!
//! A message comes from anybody. Reading one never panics and ends after at most [`RECORDS_MAX`]
//! records, each with names of at most 255 bytes. Records of other kinds are skipped.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Longest message in bytes (RFC 6762, section 17).
pub const MESSAGE_MAX: usize = 9000;
/// Questions and records that are read of a message; what follows is ignored.
pub const RECORDS_MAX: usize = 128;
/// Strings that are read of a TXT record.
const STRINGS_MAX: usize = 16;
/// Longest name in bytes, with the lengths of its labels (RFC 1035, section 2.3.4).
const NAME_MAX: usize = 255;
/// Longest label in bytes.
const LABEL_MAX: usize = 63;

/// A response, with authority (RFC 6762, section 18.4).
const RESPONSE: u16 = 0x8400;
/// The flag of a response, and the bits of the kind of query, which are always 0.
const IS_RESPONSE: u16 = 0x8000;
const OPCODE: u16 = 0x7800;
const CLASS_IN: u16 = 1;
const CLASS_ANY: u16 = 255;
/// In a response: the record replaces others of its name and kind; in a question: answer by
/// unicast.
const TOP_BIT: u16 = 0x8000;
/// The two bits that begin a pointer to a name that came before.
const POINTER: u8 = 0xc0;
/// Pointers reach no further.
const POINTER_MAX: usize = 0x3fff;

/// The kinds of records, and of questions, that are understood.
pub mod kind {
    /// An IPv4 address.
    pub const A: u16 = 1;
    /// A pointer to an instance of a service.
    pub const PTR: u16 = 12;
    /// Further facts of an instance.
    pub const TXT: u16 = 16;
    /// An IPv6 address.
    pub const AAAA: u16 = 28;
    /// Host and port of an instance.
    pub const SRV: u16 = 33;
    /// A question for records of every kind.
    pub const ANY: u16 = 255;
}

/// The message is malformed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a message of multicast DNS")]
pub struct Malformed;

/// A domain name: labels in lower case, as names are compared without regard to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DomainName(Vec<Vec<u8>>);

impl DomainName {
    /// The name with these labels, each of which has 1 to 63 bytes.
    pub(crate) fn new<'a>(labels: impl IntoIterator<Item = &'a str>) -> DomainName {
        let labels = labels.into_iter().map(|label| label.to_ascii_lowercase().into_bytes());
        DomainName(labels.collect())
    }

    /// The name with a label in front.
    pub(crate) fn child(&self, label: &str) -> DomainName {
        let mut labels = vec![label.to_ascii_lowercase().into_bytes()];
        labels.extend_from_slice(&self.0);
        DomainName(labels)
    }

    /// The first label; none of the root.
    pub(crate) fn first(&self) -> Option<&[u8]> {
        self.0.first().map(Vec::as_slice)
    }

    /// True if it is `parent` with one label in front.
    pub(crate) fn is_child_of(&self, parent: &DomainName) -> bool {
        self.0.split_first().is_some_and(|(_, rest)| rest == parent.0)
    }
}

/// A message: what is asked, and the records of all its sections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// An answer or announcement; else a query.
    pub is_response: bool,
    /// The questions.
    pub questions: Vec<Question>,
    /// The records. Of a query: what the asking host knows already.
    pub records: Vec<Record>,
}

/// A question for the records of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The name.
    pub name: DomainName,
    /// Their [`kind`].
    pub kind: u16,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The name it belongs to.
    pub name: DomainName,
    /// How long it holds, in seconds; 0 takes it back.
    pub ttl: u32,
    /// The content.
    pub data: Data,
}

/// The content of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// An instance of a service.
    Ptr(DomainName),
    /// Where an instance is.
    Srv {
        /// Its port.
        port: u16,
        /// Its host.
        host: DomainName,
    },
    /// Strings of at most 255 bytes each.
    Txt(Vec<Vec<u8>>),
    /// An address of a host.
    A(Ipv4Addr),
    /// An address of a host.
    Aaaa(Ipv6Addr),
}

impl Data {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> u16 {
        match self {
            Data::Ptr(_) => kind::PTR,
            Data::Srv { .. } => kind::SRV,
            Data::Txt(_) => kind::TXT,
            Data::A(_) => kind::A,
            Data::Aaaa(_) => kind::AAAA,
        }
    }
}

impl Message {
    /// Reads a message.
    ///
    /// # Errors
    /// If it is longer than [`MESSAGE_MAX`], ends too soon, or has a name that cannot be one.
    pub fn read(bytes: &[u8]) -> Result<Message, Malformed> {
        if bytes.len() > MESSAGE_MAX {
            return Err(Malformed);
        }
        let mut reader = Reader { bytes, at: 0 };
        let _id = reader.u16()?;
        let flags = reader.u16()?;
        if flags & OPCODE != 0 {
            return Err(Malformed);
        }
        let questions = reader.u16()?;
        let records =
            u32::from(reader.u16()?) + u32::from(reader.u16()?) + u32::from(reader.u16()?);
        let mut message = Message { is_response: flags & IS_RESPONSE != 0, ..Message::default() };
        let mut left = RECORDS_MAX;
        for _ in 0..questions {
            if left == 0 {
                return Ok(message);
            }
            left -= 1;
            message.questions.extend(reader.question()?);
        }
        for _ in 0..records {
            if left == 0 {
                break;
            }
            left -= 1;
            message.records.extend(reader.record()?);
        }
        Ok(message)
    }

    /// Writes the message.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        let flags = if self.is_response { RESPONSE } else { 0 };
        let counts = [self.questions.len() as u16, self.records.len() as u16];
        for field in [0, flags, counts[0], counts[1], 0, 0] {
            writer.u16(field);
        }
        for question in &self.questions {
            writer.name(&question.name);
            writer.u16(question.kind);
            writer.u16(CLASS_IN);
        }
        for record in &self.records {
            writer.record(record, self.is_response);
        }
        writer.bytes
    }
}

/// Reads from a message, whose names may point back to earlier ones.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let end = self.at.checked_add(count).ok_or(Malformed)?;
        let taken = self.bytes.get(self.at..end).ok_or(Malformed)?;
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed)
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    fn name(&mut self) -> Result<DomainName, Malformed> {
        let (mut labels, mut length) = (Vec::new(), 1);
        let (mut at, mut after) = (self.at, None);
        // Each pointer leads to before all that was read so far, so they come to an end.
        let mut before = self.at;
        loop {
            let &first = self.bytes.get(at).ok_or(Malformed)?;
            match first {
                0 => {
                    at += 1;
                    break;
                }
                _ if usize::from(first) <= LABEL_MAX => {
                    let end = at + 1 + usize::from(first);
                    let label = self.bytes.get(at + 1..end).ok_or(Malformed)?;
                    length += 1 + label.len();
                    if length > NAME_MAX {
                        return Err(Malformed);
                    }
                    labels.push(label.to_ascii_lowercase());
                    at = end;
                }
                _ if first & POINTER == POINTER => {
                    let &second = self.bytes.get(at + 1).ok_or(Malformed)?;
                    let to = usize::from(u16::from_be_bytes([first & !POINTER, second]));
                    if to >= before {
                        return Err(Malformed);
                    }
                    after.get_or_insert(at + 2);
                    (at, before) = (to, to);
                }
                _ => return Err(Malformed),
            }
        }
        self.at = after.unwrap_or(at);
        Ok(DomainName(labels))
    }

    fn question(&mut self) -> Result<Option<Question>, Malformed> {
        let (name, kind, class) = (self.name()?, self.u16()?, self.u16()? & !TOP_BIT);
        Ok(matches!(class, CLASS_IN | CLASS_ANY).then_some(Question { name, kind }))
    }

    fn record(&mut self) -> Result<Option<Record>, Malformed> {
        let (name, kind, class) = (self.name()?, self.u16()?, self.u16()? & !TOP_BIT);
        let ttl = u32::from_be_bytes(self.array()?);
        let length = usize::from(self.u16()?);
        let end = self.at + length;
        if end > self.bytes.len() {
            return Err(Malformed);
        }
        let data = match kind {
            _ if class != CLASS_IN => None,
            kind::PTR => Some(Data::Ptr(self.name()?)),
            kind::SRV => {
                let [_priority, _weight, port] = [self.u16()?, self.u16()?, self.u16()?];
                Some(Data::Srv { port, host: self.name()? })
            }
            kind::TXT => Some(Data::Txt(self.strings(end)?)),
            kind::A => Some(Data::A(Ipv4Addr::from(self.array::<4>()?))),
            kind::AAAA => Some(Data::Aaaa(Ipv6Addr::from(self.array::<16>()?))),
            _ => None,
        };
        // A content of another length than stated is not understood.
        if data.is_some() && self.at != end {
            return Err(Malformed);
        }
        self.at = end;
        Ok(data.map(|data| Record { name, ttl, data }))
    }

    /// The strings up to `end`; those beyond [`STRINGS_MAX`] are skipped.
    fn strings(&mut self, end: usize) -> Result<Vec<Vec<u8>>, Malformed> {
        let mut strings = Vec::new();
        while self.at < end {
            let [length] = self.array()?;
            let string = self.take(length.into())?;
            if !string.is_empty() && strings.len() < STRINGS_MAX {
                strings.push(string.to_vec());
            }
        }
        Ok(strings)
    }
}

/// Writes a message; a name that was written before is replaced by a pointer.
#[derive(Default)]
struct Writer<'a> {
    bytes: Vec<u8>,
    /// Names and the ends of names, with their places.
    names: Vec<(&'a [Vec<u8>], usize)>,
}

impl<'a> Writer<'a> {
    fn u16(&mut self, value: u16) {
        self.bytes.extend(value.to_be_bytes());
    }

    fn name(&mut self, name: &'a DomainName) {
        let mut rest = name.0.as_slice();
        while let Some((label, after)) = rest.split_first() {
            if let Some((_, at)) = self.names.iter().find(|(known, _)| *known == rest) {
                return self.u16((u16::from(POINTER) << 8) | *at as u16);
            }
            if self.bytes.len() <= POINTER_MAX {
                self.names.push((rest, self.bytes.len()));
            }
            self.bytes.push(label.len() as u8);
            self.bytes.extend(label);
            rest = after;
        }
        self.bytes.push(0);
    }

    fn record(&mut self, record: &'a Record, is_response: bool) {
        self.name(&record.name);
        self.u16(record.data.kind());
        // Others may have instances of the same service: those records are shared.
        let is_shared = matches!(record.data, Data::Ptr(_)) || !is_response;
        self.u16(if is_shared { CLASS_IN } else { CLASS_IN | TOP_BIT });
        self.bytes.extend(record.ttl.to_be_bytes());
        let length_at = self.bytes.len();
        self.u16(0);
        match &record.data {
            Data::Ptr(name) => self.name(name),
            Data::Srv { port, host } => {
                self.u16(0);
                self.u16(0);
                self.u16(*port);
                self.name(host);
            }
            Data::Txt(strings) => {
                for string in strings {
                    self.bytes.push(string.len() as u8);
                    self.bytes.extend(string);
                }
                // There is at least one string (RFC 6763, section 6.1).
                if strings.is_empty() {
                    self.bytes.push(0);
                }
            }
            Data::A(ip) => self.bytes.extend(ip.octets()),
            Data::Aaaa(ip) => self.bytes.extend(ip.octets()),
        }
        let length = (self.bytes.len() - length_at - 2) as u16;
        self.bytes[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
