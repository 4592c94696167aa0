//! The function that fuzzers run.

use std::time::{Duration, Instant};

use crate::announcement::{Announcement, Proof};
use crate::message::{MESSAGE_MAX, Message};
use crate::{ADDRESSES_MAX, Announcer, Finder, Link};
use manypath_trust::Fingerprint;

/// Gives arbitrary bytes as a message to a receiver and a sender. What is read reads the same when
/// it is written again; what a sender finds can be announced; and a receiver sends no more than a
/// message a second.
///
/// # Panics
///
/// If that is not so.
pub fn fuzz_message(bytes: &[u8], now: Instant) {
    if let Ok(message) = Message::read(bytes) {
        let again = message.write();
        if again.len() <= MESSAGE_MAX {
            assert_eq!(Message::read(&again), Ok(message));
        }
    }
    let mut finder = Finder::new("laptop".parse().ok());
    finder.received(bytes, false);
    finder.received(bytes, true);
    let found = finder.into_found();
    for announcement in found.same.iter().chain(&found.others) {
        assert!((1..=ADDRESSES_MAX).contains(&announcement.addresses.len()));
        assert_eq!(announcement.name.as_str().parse().as_ref(), Ok(&announcement.name));
        let mut again = Finder::new(Some(announcement.name.clone()));
        again.received(&announcement.message().write(), true);
        assert_eq!(again.found().same, std::slice::from_ref(announcement));
    }
    let key = Fingerprint::of(b"");
    let link = Link { index: 1, is_v6: false };
    let mut announcer = Announcer::new(Announcement {
        name: found
            .same
            .first()
            .map_or_else(|| "a".parse(), |same| Ok(same.name.clone()))
            .expect("a name"),
        id: Announcement::id_of(&key),
        key: Some(key),
        proof: Proof::Code,
        port: 1,
        addresses: vec![[192, 0, 2, 1].into()],
    });
    announcer.set_links(now, &[link]);
    let end = now + Duration::from_secs(10);
    let mut sent = 0;
    while let Some(due) = announcer.poll_timeout().filter(|due| *due <= end) {
        announcer.received(due, link, bytes);
        sent += usize::from(announcer.poll_transmit(due).is_some());
    }
    // The question at the start, and one message in each second, at both ends.
    assert!(sent <= 12, "{sent} messages");
}
