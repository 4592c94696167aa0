//! A key log and a capture, both of any bytes. Nothing panics, the copy is not much longer than the
//! capture, and a pcapng file of which nothing is opened is copied as it is.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use manypath_keys::key_log::Opener;
use manypath_trace::{Answer, rewrite_capture};

/// Separates the two.
const END_OF_LOG: &[u8] = b"\n\0\n";

/// Where a section header has the length of its section, which is not copied.
const SECTION_LENGTH: std::ops::Range<usize> = 16..24;

fuzz_target!(|bytes: &[u8]| {
    let split = bytes.windows(END_OF_LOG.len()).position(|part| part == END_OF_LOG);
    let (log, capture) = match split {
        Some(at) => (&bytes[..at], &bytes[at + END_OF_LOG.len()..]),
        None => (&[][..], bytes),
    };
    let mut opener = Opener::default();
    let _ = opener.read(log);
    let mut copy = Vec::new();
    let _ = rewrite_capture(capture, &mut copy, |packet| match opener.open(packet) {
        Ok(opened) => Answer::Opened(opened),
        Err(reason) => Answer::Left(reason.name()),
    });
    assert!(copy.len() < 1000 + 8 * capture.len());

    // Anything may take a packet's place, also what is longer or no packet.
    let _ = rewrite_capture(capture, std::io::sink(), |packet| match packet.len() % 3 {
        0 => Answer::Plain,
        1 => Answer::Opened(Bytes::from(packet.repeat(3))),
        _ => Answer::Opened(Bytes::new()),
    });

    let mut copy = Vec::new();
    let done = rewrite_capture(capture, &mut copy, |_| Answer::Plain);
    let is_section = |at: usize| capture[at..].starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]);
    let sections = (0..capture.len()).filter(|&at| is_section(at)).count();
    if done.is_ok() && sections == 1 && is_section(0) {
        let mut expected = capture[..copy.len()].to_vec();
        // The file may end within that block.
        if let Some(length) = expected.get_mut(SECTION_LENGTH) {
            length.fill(0xff);
        }
        assert_eq!(copy, expected);
    }
});
