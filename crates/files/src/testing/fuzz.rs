//! The functions that fuzzers run.

use std::path::Path;

use crate::frame::{ClientFrame, ServerFrame};
use crate::relative::{is_plain, printable};
use crate::ticket::Ticket;

/// Reads arbitrary bytes as a frame of either side.
///
/// # Panics
/// If a frame that was read differs after it is written and read again, or if one of its names
/// leads out of its directory or has characters that cannot be shown.
pub fn fuzz_frame(bytes: &[u8]) {
    if let Ok(frame) = ClientFrame::decode(bytes) {
        let again = frame.encode();
        match &frame {
            // Only the beginning of another version's is understood.
            ClientFrame::Hello(hello) if hello.version != crate::frame::VERSION => {}
            _ => assert_eq!(ClientFrame::decode(&again), Ok(frame.clone())),
        }
        if let ClientFrame::File(header) = &frame {
            let name = header.name.as_str();
            // Only marks of direction need an escape.
            let shown = printable(name);
            assert!(shown == name || shown.contains("\\u{"), "a name shows as itself: {shown}");
            let place = Path::new("/dir").join(name);
            let inside = place.components().skip(2);
            assert!(
                inside.clone().all(|c| matches!(c, std::path::Component::Normal(_))),
                "{name:?}"
            );
            assert_eq!(inside.count(), header.name.parts().count(), "{name:?}");
        }
    }
    if let Ok(frame) = ServerFrame::decode(bytes) {
        assert_eq!(ServerFrame::decode(&frame.encode()), Ok(frame));
    }
    let text = String::from_utf8_lossy(bytes);
    assert!(printable(&text).chars().all(is_plain));
}

/// Reads arbitrary bytes as a ticket, and as the inside of one.
///
/// # Panics
/// If what is read cannot be written, and then reads the same.
pub fn fuzz_ticket(bytes: &[u8]) {
    let same =
        |ticket: &Ticket| assert_eq!(Ticket::parse(&ticket.to_string()).as_ref(), Ok(ticket));
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Ticket::looks_like(text);
        if let Ok(ticket) = Ticket::parse(text) {
            same(&ticket);
        }
    }
    // A fuzzer does not guess checksums.
    if let Ok(ticket) = Ticket::parse(&crate::ticket::word_of(bytes)) {
        same(&ticket);
        assert!(!ticket.token.is_empty() && !ticket.addresses.is_empty() && ticket.port != 0);
        // Exactly one of both kinds of sender may use it.
        assert_ne!(ticket.key(false).is_ok(), ticket.key(true).is_ok());
    }
}
