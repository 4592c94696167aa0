//! The applications at both ends: what they send, and proof that it arrives as sent.
//!
//! Messages are numbered per stream, ordered and unordered apart; the number travels in the payload
//! protocol identifier. Content follows from stream, number and length, so the receiver checks
//! every byte without being told, and neither end holds more than a message.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use manypath_proto::{Association, Instant, Message, SendError, SendOptions};
use manypath_wire::StreamId;

/// Positions in the pattern at which a message may start; a prime. So few that what messages of a
/// packet are copied from and compared with stays in the processor's nearest cache.
const STARTS: u64 = 4_093;

/// The longest message, in bytes.
pub const LONGEST_MESSAGE: usize = 1 << 20;

/// The payload protocol identifier of message 0; the others follow. Where none are assigned: to
/// Wireshark, messages are data, and not those of a protocol that it knows.
const FIRST_PPID: u32 = 1 << 31;

/// In the payload protocol identifier: the message may be given up.
const LIMITED: u32 = 1 << 30;

/// When messages are given up before they are acknowledged (RFC 3758, RFC 7496).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// That long after the application sent one; `None`: never.
    pub lifetime: Option<Duration>,
    /// When one would be retransmitted more often; `None`: never.
    pub max_retransmissions: Option<u16>,
}

impl Limits {
    pub(crate) fn has_any(self) -> bool {
        self != Limits::default()
    }
}

/// The bytes that all messages are slices of: made once, never freed.
static PATTERN: LazyLock<&'static [u8]> = LazyLock::new(|| {
    let length = STARTS as usize + LONGEST_MESSAGE;
    let mut bytes = Vec::with_capacity(length + 7);
    let mut state = 0_u64;
    while bytes.len() < length {
        // Weyl's sequence, its bits mixed: every program that simulates pays for this at its start.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        bytes.extend_from_slice(&(mixed ^ (mixed >> 32)).to_le_bytes());
    }
    bytes.truncate(length);
    bytes.leak()
});

/// Makes the bytes that all messages are slices of, if nobody has yet.
pub(crate) fn make_pattern() {
    LazyLock::force(&PATTERN);
}

/// The content of a message.
fn content(stream: u16, unordered: bool, number: u32, length: usize) -> &'static [u8] {
    let name = u64::from(number) << 17 | u64::from(stream) << 1 | u64::from(unordered);
    let start = (name.wrapping_mul(48_271).wrapping_add(length as u64 * 7) % STARTS) as usize;
    &PATTERN[start..start + length]
}

/// The identity of a message.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MessageName {
    stream: u16,
    unordered: bool,
    number: u32,
}

/// The times of a message that may be given up.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Lateness {
    /// When the association took it.
    pub sent: Instant,
    /// When it was given up at the latest, from then; `None`: never because of time.
    pub lifetime: Option<Duration>,
    /// When it was delivered, if it was.
    pub delivered: Option<Instant>,
}

impl Lateness {
    /// True if it was delivered within its lifetime.
    pub fn is_in_time(&self) -> bool {
        let took = self.delivered.map(|delivered| delivered - self.sent);
        took.is_some_and(|took| self.lifetime.is_none_or(|lifetime| took <= lifetime))
    }
}

/// A message that may be given up, as it was sent.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Limited {
    pub(crate) name: MessageName,
    pub(crate) sent: Instant,
    pub(crate) lifetime: Option<Duration>,
}

/// The kind of messages that an application sends.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageKind {
    /// The stream.
    pub stream: u16,
    /// They need not wait for the order of the stream.
    pub unordered: bool,
    /// Bytes of each but the last, up to [`LONGEST_MESSAGE`]; `None` for as much as fits one DATA
    /// chunk.
    pub length: Option<usize>,
    /// When they are given up.
    pub limits: Limits,
}

/// Messages still to be sent.
#[derive(Clone, Debug)]
struct Source {
    kind: MessageKind,
    /// Bytes left.
    left: u64,
}

/// The sending application.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    sources: VecDeque<Source>,
    /// Waiting for Event::Writable.
    is_full: bool,
    /// The numbers of the next ordered and the next unordered message of each stream.
    next: Vec<[u32; 2]>,
    /// Messages that the association took.
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    /// Bytes of messages that may not be given up.
    pub(crate) reliable_bytes: u64,
    /// Each message that may be given up.
    pub(crate) limited: Vec<Limited>,
    pub(crate) first: Option<Instant>,
    /// When the application first called for something to be sent.
    pub(crate) called: Option<Instant>,
    /// When the last of it was acknowledged.
    pub(crate) acked: Option<Instant>,
}

impl Sender {
    /// Adds `bytes` in messages of this kind. Those that may be given up do not wait for room
    /// behind those that may not.
    pub(crate) fn add(&mut self, bytes: u64, kind: MessageKind) {
        let length = kind.length;
        assert!(length.is_none_or(|l| (1..=LONGEST_MESSAGE).contains(&l)), "{length:?} bytes");
        if bytes > 0 {
            let waits = |source: &Source| source.kind.limits.has_any() || !kind.limits.has_any();
            let at = self.sources.iter().take_while(|source| waits(source)).count();
            self.sources.insert(at, Source { kind, left: bytes });
        }
    }

    /// True if the association took everything.
    pub(crate) fn is_done(&self) -> bool {
        self.sources.is_empty()
    }

    /// Notes the time of the application's first call.
    pub(crate) fn note_call(&mut self, now: Instant) {
        if self.called.is_none() && !self.sources.is_empty() {
            self.called = Some(now);
        }
    }

    /// Everything the association took is acknowledged.
    pub(crate) fn on_all_acked(&mut self, now: Instant) {
        self.acked = self.is_done().then_some(now);
    }

    pub(crate) fn on_writable(&mut self) {
        self.is_full = false;
    }

    /// A new association begins: counts and numbers start again, what is not sent yet stays.
    pub(crate) fn restart(&mut self) {
        *self = Sender { sources: std::mem::take(&mut self.sources), ..Sender::default() };
    }

    /// Reads what the next message will need.
    pub(crate) fn touch(&self) -> usize {
        self.sources.front().map_or(0, |source| source.left as usize) + self.next.len()
    }

    /// Drops what is not sent yet.
    pub(crate) fn clear(&mut self) {
        self.sources.clear();
        self.is_full = false;
    }

    /// Gives the association as much as it takes.
    pub(crate) fn feed(&mut self, now: Instant, assoc: &mut Association) {
        while let Some(source) = self.sources.front_mut() {
            // The association may have room for messages with a lifetime all the same.
            if self.is_full && source.kind.limits.lifetime.is_none() {
                break;
            }
            let MessageKind { stream, unordered, length, limits } = source.kind;
            let index = usize::from(stream);
            if index >= self.next.len() {
                self.next.resize(index + 1, [0; 2]);
            }
            let whole = length.unwrap_or_else(|| assoc.fragment_size()) as u64;
            let length = whole.min(source.left) as usize;
            let number = &mut self.next[index][usize::from(unordered)];
            let mark = if limits.has_any() { LIMITED } else { 0 };
            let ppid = number.wrapping_add(FIRST_PPID) | mark;
            let payload = Bytes::from_static(content(stream, unordered, *number, length));
            let Limits { lifetime, max_retransmissions } = limits;
            let stream_id = StreamId(stream);
            let options =
                SendOptions { stream: stream_id, ppid, unordered, ..SendOptions::default() };
            let options = SendOptions { lifetime, max_retransmissions, ..options };
            match assoc.send(now, options, payload) {
                Ok(()) => {}
                Err(SendError::Full) => {
                    self.is_full = true;
                    break;
                }
                // Over, or being shut down: the rest is never sent.
                Err(SendError::Closed) => {
                    self.sources.clear();
                    break;
                }
                Err(error) => panic!("send of {length} bytes on stream {stream}: {error:?}"),
            }
            if limits.has_any() {
                let name = MessageName { stream, unordered, number: *number };
                self.limited.push(Limited { name, sent: now, lifetime });
            }
            *number = number.wrapping_add(1);
            source.left -= length as u64;
            self.messages += 1;
            self.bytes += length as u64;
            self.reliable_bytes += if limits.has_any() { 0 } else { length as u64 };
            self.first.get_or_insert(now);
            if source.left == 0 {
                self.sources.pop_front();
            }
        }
    }
}

/// The deliveries of one stream.
#[derive(Debug, Default)]
struct StreamIn {
    next_ordered: u32,
    /// All unordered messages below this number have come, and those in the set.
    next_unordered: u32,
    early: BTreeSet<u32>,
    /// Pieces of a message delivered in parts.
    parts: Vec<Bytes>,
}

/// The receiving application.
#[derive(Debug, Default)]
pub(crate) struct Receiver {
    streams: Vec<StreamIn>,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    /// Bytes of messages that may not be given up.
    pub(crate) reliable_bytes: u64,
    /// Ordered messages may be missing, because the peer gives some up.
    pub(crate) expects_gaps: bool,
    /// When each message that may be given up was delivered.
    pub(crate) limited: BTreeMap<MessageName, Instant>,
    pub(crate) first: Option<Instant>,
    pub(crate) last: Option<Instant>,
    pub(crate) longest_gap: Duration,
}

impl Receiver {
    /// Takes a message.
    ///
    /// # Panics
    ///
    /// If it is not one that was sent, comes twice, or out of its stream's order.
    pub(crate) fn take(&mut self, now: Instant, message: &Message) {
        let length = message.payload.len();
        self.bytes += length as u64;
        if let Some(last) = self.last {
            self.longest_gap = self.longest_gap.max(now - last);
        }
        self.first.get_or_insert(now);
        self.last = Some(now);
        let index = usize::from(message.stream.0);
        if index >= self.streams.len() {
            self.streams.resize_with(index + 1, StreamIn::default);
        }
        let stream = &mut self.streams[index];
        if !message.end_of_message {
            stream.parts.extend(message.payload.chunks().iter().cloned());
            return;
        }
        if message.is_cut_off {
            stream.parts.clear();
            return;
        }
        self.messages += 1;
        let is_limited = message.ppid & LIMITED != 0;
        let number = (message.ppid & !LIMITED).wrapping_sub(FIRST_PPID);
        let unordered = message.unordered;
        let parts = std::mem::take(&mut stream.parts);
        let whole = parts.iter().map(Bytes::len).sum::<usize>() + length;
        if is_limited {
            let name = MessageName { stream: message.stream.0, unordered, number };
            self.limited.insert(name, now);
        } else {
            self.reliable_bytes += whole as u64;
        }
        let mut rest = content(message.stream.0, unordered, number, whole);
        for piece in parts.iter().chain(message.payload.chunks()) {
            let (start, end) = rest.split_at(piece.len());
            let kind = if unordered { "unordered" } else { "ordered" };
            assert!(
                start == &piece[..],
                "{kind} message {number} of {whole} bytes on stream {index} is damaged"
            );
            rest = end;
        }
        if unordered {
            stream.take_unordered(number, index);
        } else {
            let expected = stream.next_ordered;
            assert!(
                number == expected || (self.expects_gaps && number > expected),
                "ordered message on stream {index} out of order: {number} instead of {expected}"
            );
            stream.next_ordered = number.wrapping_add(1);
        }
    }

    /// Reads what the next message will need.
    pub(crate) fn touch(&self) -> usize {
        self.streams.first().map_or(0, |stream| stream.next_ordered as usize)
    }

    /// A new association begins.
    pub(crate) fn restart(&mut self) {
        *self = Receiver { expects_gaps: self.expects_gaps, ..Receiver::default() };
    }
}

impl StreamIn {
    #[inline(never)]
    fn take_unordered(&mut self, number: u32, index: usize) {
        let is_new = number >= self.next_unordered && self.early.insert(number);
        assert!(is_new, "unordered message {number} on stream {index} came twice");
        while self.early.remove(&self.next_unordered) {
            self.next_unordered += 1;
        }
    }
}

#[cfg(test)]
mod tests;
