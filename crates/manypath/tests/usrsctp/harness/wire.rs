//! A log of the chunks on the wire, kept by the box in the middle of the path.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use super::{Change, Chunk, Rewriter};

/// Chunk types.
pub const DATA: u8 = 0;
pub const SACK: u8 = 3;
pub const AUTH: u8 = 15;
pub const I_DATA: u8 = 64;
pub const RE_CONFIG: u8 = 130;
pub const FORWARD_TSN: u8 = 192;
pub const I_FORWARD_TSN: u8 = 194;

/// Flags of DATA and I-DATA.
const BEGINNING: u8 = 2;
const UNORDERED: u8 = 4;
const IMMEDIATE: u8 = 8;

/// Chunks that one side has sent.
#[derive(Debug, Default)]
pub struct Log {
    counts: BTreeMap<u8, u32>,
    immediate: u32,
    /// How often each type came without an AUTH chunk before it in its packet.
    unauthenticated: BTreeMap<u8, u32>,
    /// Of each stream, the numbers of the ordered messages in the order in which they first left.
    numbers: BTreeMap<u16, Vec<u32>>,
    /// The highest TSN that was seen.
    highest: Option<u32>,
}

impl Log {
    fn add_packet(&mut self, chunks: &[Chunk]) {
        let mut is_authenticated = false;
        for chunk in chunks {
            is_authenticated |= chunk.kind == AUTH;
            if !is_authenticated {
                *self.unauthenticated.entry(chunk.kind).or_default() += 1;
            }
            self.add(chunk);
        }
    }

    fn add(&mut self, chunk: &Chunk) {
        *self.counts.entry(chunk.kind).or_default() += 1;
        if chunk.kind == DATA || chunk.kind == I_DATA {
            self.immediate += u32::from(chunk.flags & IMMEDIATE != 0);
            self.add_number(chunk);
        }
    }

    fn add_number(&mut self, chunk: &Chunk) {
        let word = |at: usize| {
            let bytes = chunk.value[at..at + 4].try_into().expect("four bytes");
            u32::from_be_bytes(bytes)
        };
        let tsn = word(0);
        let is_new = self.highest.is_none_or(|highest| tsn.wrapping_sub(highest) as i32 > 0);
        if !is_new {
            return;
        }
        self.highest = Some(tsn);
        if chunk.flags & BEGINNING != 0 && chunk.flags & UNORDERED == 0 {
            let stream = (word(4) >> 16) as u16;
            let number = if chunk.kind == I_DATA { word(8) } else { word(4) & 0xffff };
            self.numbers.entry(stream).or_default().push(number);
        }
    }

    /// How many chunks of this type there were.
    pub fn count(&self, kind: u8) -> u32 {
        self.counts.get(&kind).copied().unwrap_or(0)
    }

    /// How many chunks of this type there were without an AUTH chunk before them in their packet.
    pub fn unauthenticated(&self, kind: u8) -> u32 {
        self.unauthenticated.get(&kind).copied().unwrap_or(0)
    }

    /// How many chunks asked for their SACK at once.
    pub fn immediate(&self) -> u32 {
        self.immediate
    }

    /// How often the numbers of the stream began again at 0, and never anywhere else.
    pub fn restarts(&self, stream: u16) -> usize {
        let numbers = self.numbers.get(&stream).map(Vec::as_slice).unwrap_or_default();
        let back = numbers.windows(2).filter(|pair| pair[1] <= pair[0]);
        let restarts: Vec<_> = back.map(|pair| pair[1]).collect();
        assert!(restarts.iter().all(|&number| number == 0), "of stream {stream}: {numbers:?}");
        restarts.len()
    }
}

/// The logs of both sides, and who writes them. Without it, no packet gets through.
pub struct Wire {
    usrsctp: Arc<Mutex<Log>>,
    manypath: Arc<Mutex<Log>>,
    _watcher: Option<Rewriter>,
}

impl Wire {
    /// Empty logs, and what writes them: of usrsctp's chunks, and of manypath's.
    pub(super) fn new() -> (Wire, Change, Change) {
        let (usrsctp, manypath) = (Arc::default(), Arc::default());
        let changes = (write(&usrsctp), write(&manypath));
        (Wire { usrsctp, manypath, _watcher: None }, changes.0, changes.1)
    }

    pub(super) fn held_by(self, watcher: Rewriter) -> Wire {
        Wire { _watcher: Some(watcher), ..self }
    }

    /// The log of usrsctp's chunks, without those that were lost before.
    pub fn of_usrsctp(&self) -> MutexGuard<'_, Log> {
        self.usrsctp.lock().expect("the log")
    }

    /// The log of manypath's chunks.
    pub fn of_manypath(&self) -> MutexGuard<'_, Log> {
        self.manypath.lock().expect("the log")
    }
}

fn write(log: &Arc<Mutex<Log>>) -> Change {
    let log = Arc::clone(log);
    Box::new(move |chunks| {
        let mut log = log.lock().expect("the log");
        log.add_packet(chunks);
    })
}
