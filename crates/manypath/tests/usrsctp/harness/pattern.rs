//! The messages of `usrsctp_peer`, which tell what they are; the top of usrsctp_peer.c defines
//! them.

use std::collections::{BTreeMap, BTreeSet};

use manypath::{AssocClosed, Association, Bytes, Message, SendError, SendOptions, StreamId};

/// Index and length, in front of each message that has room for them.
const HEADER: usize = 8;

/// Which messages to send: those that `usrsctp_peer` sends with the same options.
#[derive(Clone, Debug)]
pub struct Pattern {
    pub seed: u8,
    /// Bytes of the messages, in turn.
    pub sizes: Vec<usize>,
    pub streams: u16,
    pub unordered: bool,
}

impl Pattern {
    /// Ordered messages of these sizes on `streams` streams, with seed 0.
    pub fn new(sizes: &[usize], streams: u16) -> Pattern {
        Pattern { seed: 0, sizes: sizes.to_vec(), streams, unordered: false }
    }

    /// Message number `index`.
    pub fn message(&self, index: u32) -> (SendOptions, Bytes) {
        let size = self.sizes[index as usize % self.sizes.len()];
        let mut bytes = vec![0; size];
        let header = header_length(size);
        fill(&mut bytes[header..], self.seed, index, header);
        if header > 0 {
            bytes[..4].copy_from_slice(&index.to_be_bytes());
            bytes[4..HEADER].copy_from_slice(&(size as u32).to_be_bytes());
        }
        let stream = StreamId((index % u32::from(self.streams)) as u16);
        (
            SendOptions {
                stream,
                ppid: index,
                unordered: self.unordered,
                ..SendOptions::default()
            },
            bytes.into(),
        )
    }

    /// The messages that have at least `bytes` bytes together, as few as that takes.
    pub fn messages(&self, bytes: u64) -> impl Iterator<Item = (SendOptions, Bytes)> {
        let mut sent = 0;
        (0..).map(|index| self.message(index)).take_while(move |(_, payload)| {
            let wanted = sent < bytes;
            sent += payload.len() as u64;
            wanted
        })
    }

    /// Queues messages of at least `bytes` bytes; returns how many bytes they have.
    pub async fn send(&self, to: &Association, bytes: u64) -> Result<u64, SendError> {
        let mut sent = 0;
        for (options, payload) in self.messages(bytes) {
            sent += payload.len() as u64;
            to.send(options, payload).await?;
        }
        Ok(sent)
    }

    /// Sends messages of at least `bytes` bytes, or fewer if the peer shuts down before all are
    /// queued; returns how many bytes those have that are queued.
    pub async fn send_until_shutdown(&self, to: &Association, bytes: u64) -> u64 {
        let mut sent = 0;
        for (options, payload) in self.messages(bytes) {
            let len = payload.len() as u64;
            match to.send(options, payload).await {
                Ok(_) => sent += len,
                Err(SendError::ShutDown) => break,
                Err(error) => panic!("{error}"),
            }
        }
        sent
    }

    /// Sends messages of at least `bytes` bytes to a peer that returns them, and verifies what
    /// comes back; returns how many bytes that were.
    pub async fn send_to_echo(&self, peer: &Association, bytes: u64) -> u64 {
        let mut verifier = Verifier::new(self.seed);
        let total = self.messages(bytes).map(|(_, payload)| payload.len() as u64).sum();
        let (sent, ()) = tokio::join!(self.send(peer, bytes), verifier.receive(peer, total));
        assert_eq!((sent, verifier.bytes), (Ok(total), total));
        total
    }
}

fn header_length(size: usize) -> usize {
    if size < HEADER { 0 } else { HEADER }
}

fn fill(bytes: &mut [u8], seed: u8, index: u32, from: usize) {
    for (i, byte) in (from as u32..).zip(bytes) {
        *byte = index.wrapping_mul(31).wrapping_add(i.wrapping_mul(7)) as u8;
        *byte = byte.wrapping_add(seed);
    }
}

/// Checks what arrives: every byte, each message once, each stream in order.
#[derive(Debug, Default)]
pub struct Verifier {
    seed: u8,
    seen: BTreeSet<u32>,
    /// Lowest index that an ordered message of the stream may still have.
    next: BTreeMap<StreamId, u32>,
    /// The numbers of ordered messages of each stream, and how often they began again at 0.
    numbers: BTreeMap<StreamId, (u16, usize)>,
    /// Messages of which not all parts are here.
    parts: BTreeMap<StreamId, Vec<u8>>,
    pub bytes: u64,
    /// Numbers of messages may begin again above 0, if the first ones were given up.
    pub numbers_may_be_missing: bool,
    /// Parts of messages too long for the receive buffer, the last ones included.
    pub partial_deliveries: u64,
}

impl Verifier {
    pub fn new(seed: u8) -> Verifier {
        Verifier { seed, ..Verifier::default() }
    }

    pub fn messages(&self) -> u64 {
        self.seen.len() as u64
    }

    /// Takes a message or a part of one; returns the message if it is whole.
    pub fn take(&mut self, message: Message) -> Option<(SendOptions, Bytes)> {
        let Message { stream, ssn, ppid, unordered, payload, end_of_message, is_cut_off, .. } =
            message;
        if is_cut_off {
            self.parts.remove(&stream).expect("parts of the message that was given up");
            return None;
        }
        let whole = match (self.parts.remove(&stream), end_of_message) {
            (None, true) => payload.into_bytes(),
            (parts, end) => {
                let mut parts = parts.unwrap_or_default();
                parts.extend_from_slice(&payload.into_bytes());
                self.partial_deliveries += 1;
                if !end {
                    self.parts.insert(stream, parts);
                    return None;
                }
                parts.into()
            }
        };
        let options = SendOptions { stream, ppid, unordered, ..SendOptions::default() };
        self.check(options, &whole);
        if !unordered {
            self.check_number(stream, ssn.0);
        }
        Some((options, whole))
    }

    /// Numbers grow, or begin again at 0.
    fn check_number(&mut self, stream: StreamId, ssn: u16) {
        let (last, restarts) = self.numbers.entry(stream).or_insert((u16::MAX, 0));
        let begins_again = *last != u16::MAX && ssn <= *last;
        let is_right = !begins_again || ssn == 0 || self.numbers_may_be_missing;
        assert!(is_right, "number {ssn} after {last} on {stream:?}");
        *restarts += usize::from(begins_again);
        *last = ssn;
    }

    /// How often the numbers of the stream began again.
    pub fn restarts(&self, stream: u16) -> usize {
        self.numbers.get(&StreamId(stream)).map_or(0, |&(_, restarts)| restarts)
    }

    /// How many messages came of those whose index `every` divides.
    pub fn reliable(&self, every: u32) -> u64 {
        self.seen.iter().filter(|&&index| index % every == 0).count() as u64
    }

    fn check(&mut self, options: SendOptions, message: &[u8]) {
        let index = options.ppid;
        let mut expected = vec![0; message.len()];
        let header = header_length(message.len());
        fill(&mut expected[header..], self.seed, index, header);
        if header > 0 {
            expected[..4].copy_from_slice(&index.to_be_bytes());
            expected[4..HEADER].copy_from_slice(&(message.len() as u32).to_be_bytes());
        }
        if let Some(at) = expected.iter().zip(message).position(|(a, b)| a != b) {
            panic!("message {index} of {} bytes differs at offset {at}", message.len());
        }
        assert!(self.seen.insert(index), "message {index} arrived twice");
        if !options.unordered {
            let next = self.next.entry(options.stream).or_default();
            assert!(index >= *next, "message {index} is out of order on {:?}", options.stream);
            *next = index + 1;
        }
        self.bytes += message.len() as u64;
    }

    /// Checks that no message is missing below the highest that arrived, and none is in parts.
    pub fn assert_complete(&self) {
        let highest = self.seen.last().map_or(0, |&index| u64::from(index) + 1);
        assert_eq!(self.messages(), highest, "messages, and the highest index + 1");
        assert!(
            self.parts.is_empty(),
            "the ends are missing of messages on {:?}",
            self.parts.keys()
        );
    }

    /// Receives until the peer has shut down and everything is here.
    pub async fn receive_all(&mut self, from: &Association) -> Result<(), AssocClosed> {
        self.receive_what_comes(from).await?;
        self.assert_complete();
        Ok(())
    }

    /// Receives until the peer has shut down; messages may be missing.
    pub async fn receive_what_comes(&mut self, from: &Association) -> Result<(), AssocClosed> {
        while let Some(message) = from.recv().await? {
            self.take(message);
        }
        assert!(self.parts.is_empty(), "messages have no end on {:?}", self.parts.keys());
        Ok(())
    }

    /// Receives until `bytes` bytes are here.
    pub async fn receive(&mut self, from: &Association, bytes: u64) {
        while self.bytes < bytes {
            let message = from.recv().await.expect("more to receive");
            self.take(message.expect("more to receive before the peer shuts down"));
        }
        self.assert_complete();
    }
}
