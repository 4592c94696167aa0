//! The receivers that a sender hears of; without sockets and without a clock.

use crate::announcement::{Announcement, is_of_use, query, read};
use crate::message::Message;
use crate::name::Name;

/// Receivers with the name that is looked for, as many as are kept.
pub const SAME_MAX: usize = 8;
/// Receivers with other names, as many as are kept.
pub const OTHERS_MAX: usize = 32;

/// The receivers that were heard of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Those with the name that is looked for, at most [`SAME_MAX`].
    pub same: Vec<Announcement>,
    /// Others, at most [`OTHERS_MAX`].
    pub others: Vec<Announcement>,
    /// There were more than are kept.
    pub has_more: bool,
}

/// Collects what is heard of receivers. Its memory is bounded whatever it hears.
#[derive(Debug)]
pub struct Finder {
    name: Option<Name>,
    found: Found,
}

impl Finder {
    /// Looks for receivers with this name, and notes others; without a name all are others.
    #[must_use]
    pub fn new(name: Option<Name>) -> Finder {
        Finder { name, found: Found::default() }
    }

    /// The datagram that asks for them.
    #[must_use]
    pub fn query(&self) -> Vec<u8> {
        query().write()
    }

    /// A datagram came, over loopback or not.
    pub fn received(&mut self, datagram: &[u8], is_loopback: bool) {
        let Ok(message) = Message::read(datagram) else { return };
        let heard = read(&message, |ip| is_of_use(ip, is_loopback));
        for id in heard.gone {
            self.found.same.retain(|known| known.id != id);
            self.found.others.retain(|known| known.id != id);
        }
        for announcement in heard.here {
            let is_same = self.name.as_ref() == Some(&announcement.name);
            let (list, most) = if is_same {
                (&mut self.found.same, SAME_MAX)
            } else {
                (&mut self.found.others, OTHERS_MAX)
            };
            // A receiver that has other addresses now is the same one.
            let is_known = |known: &&mut Announcement| {
                (known.id, known.key) == (announcement.id, announcement.key)
            };
            if let Some(known) = list.iter_mut().find(is_known) {
                *known = announcement;
            } else if list.len() < most {
                list.push(announcement);
            } else {
                self.found.has_more = true;
            }
        }
    }

    /// The receivers so far.
    #[must_use]
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// The receivers.
    #[must_use]
    pub fn into_found(self) -> Found {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::announcement::tests::receiver;

    fn finder() -> Finder {
        Finder::new("laptop".parse().ok())
    }

    fn hear(finder: &mut Finder, announcement: &Announcement) {
        finder.received(&announcement.message().write(), false);
    }

    #[test]
    fn a_receiver_is_found_once_with_its_newest_addresses() {
        let mut finder = finder();
        let laptop = receiver("Laptop", "a");
        hear(&mut finder, &laptop);
        hear(&mut finder, &receiver("desk", "b"));
        let moved = Announcement { addresses: vec![[192, 0, 2, 99].into()], ..laptop };
        hear(&mut finder, &moved);
        let found = finder.found().clone();
        assert_eq!(found.same, std::slice::from_ref(&moved));
        assert_eq!(found.others, [receiver("desk", "b")]);
        assert!(!found.has_more);
        finder.received(&moved.goodbye().write(), false);
        assert_eq!(finder.into_found().same, []);
    }

    #[test]
    fn two_receivers_of_one_name_are_both_found() {
        let mut finder = finder();
        for seed in ["a", "b", "a"] {
            hear(&mut finder, &receiver("laptop", seed));
        }
        assert_eq!(finder.found().same.len(), 2);
    }

    #[test]
    fn memory_is_bounded() {
        let mut finder = finder();
        for i in 0..10_000 {
            hear(&mut finder, &receiver(&format!("host{i}"), &i.to_string()));
            hear(&mut finder, &receiver("laptop", &i.to_string()));
        }
        let found = finder.into_found();
        assert_eq!((found.same.len(), found.others.len()), (SAME_MAX, OTHERS_MAX));
        assert!(found.has_more);
    }

    #[test]
    fn others_do_not_take_the_place_of_the_one_that_is_looked_for() {
        let mut finder = finder();
        for i in 0..1000 {
            hear(&mut finder, &receiver(&format!("host{i}"), &i.to_string()));
        }
        hear(&mut finder, &receiver("laptop", "a"));
        assert_eq!(finder.found().same.len(), 1);
    }

    #[test]
    fn queries_and_noise_are_no_receivers() {
        let mut finder = finder();
        let query = finder.query();
        finder.received(&query, false);
        finder.received(&[0xff; 9001], false);
        finder.received(b"", false);
        assert_eq!(*finder.found(), Found::default());
    }
}
