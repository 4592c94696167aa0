//! The messages of a receiver and their times; without sockets and without a clock.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::announcement::{ADDRESSES_MAX, Announcement, is_of_use, query, read};
use crate::message::Message;
use crate::name::Name;

/// The time between two messages on one link (RFC 6762, section 6). It bounds the answers that
/// queries can cause.
const GAP: Duration = Duration::from_secs(1);
/// The least delay of an answer: other receivers answer at the same time (RFC 6762, section 6).
const DELAY_MIN: Duration = Duration::from_millis(20);
/// How many unsolicited messages announce something new, each after twice the time of the one
/// before (RFC 6762, section 8.3).
const ANNOUNCEMENTS: u32 = 3;

/// An interface and an IP version on it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// The number of the interface.
    pub index: u32,
    /// True for IPv6, false for IPv4.
    pub is_v6: bool,
}

/// Another receiver that has the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rival {
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}

/// Decides what a receiver says on its links.
#[derive(Debug)]
pub struct Announcer {
    announcement: Announcement,
    links: BTreeMap<Link, State>,
    /// A rival was reported.
    has_rival: bool,
}

/// A link.
#[derive(Copy, Clone, Debug, Default)]
struct State {
    /// When the next message is due.
    due: Option<Instant>,
    /// When the last one was sent.
    last: Option<Instant>,
    /// How many announcements were sent since something was new.
    announced: u32,
    /// The question for rivals is to be sent.
    asks: bool,
}

impl State {
    fn new(now: Instant) -> State {
        State { due: Some(now), asks: true, ..State::default() }
    }

    /// Something is new.
    fn announce(&mut self, now: Instant) {
        self.announced = 0;
        self.send_at(now);
    }

    /// A message is due at this time, or as soon after it as another may be sent.
    fn send_at(&mut self, at: Instant) {
        let at = self.last.map_or(at, |last| at.max(last + GAP));
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }
}

impl Announcer {
    /// A receiver that is on no link yet.
    #[must_use]
    pub fn new(announcement: Announcement) -> Announcer {
        Announcer { announcement, links: BTreeMap::new(), has_rival: false }
    }

    /// The name that is announced.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.announcement.name
    }

    /// The receiver is on these links now.
    pub fn set_links(&mut self, now: Instant, links: &[Link]) {
        self.links.retain(|link, _| links.contains(link));
        for link in links {
            self.links.entry(*link).or_insert_with(|| State::new(now));
        }
    }

    /// The receiver has these addresses now.
    pub fn set_addresses(&mut self, now: Instant, mut addresses: Vec<IpAddr>) {
        addresses.truncate(ADDRESSES_MAX);
        if addresses != self.announcement.addresses {
            self.announcement.addresses = addresses;
            self.links.values_mut().for_each(|link| link.announce(now));
        }
    }

    /// A datagram came on a link. Returns a rival if it tells of the first one.
    pub fn received(&mut self, now: Instant, link: Link, datagram: &[u8]) -> Option<Rival> {
        let message = Message::read(datagram).ok()?;
        if message.is_response {
            return self.rival(&message);
        }
        let is_asked = message.questions.iter().any(|q| self.announcement.is_asked(q));
        if is_asked && !self.announcement.is_known(&message) {
            // Another delay for each receiver, lest they answer all at once.
            let delay = DELAY_MIN + Duration::from_millis(u64::from(self.announcement.id[7]) % 100);
            self.links.get_mut(&link)?.send_at(now + delay);
        }
        None
    }

    fn rival(&mut self, message: &Message) -> Option<Rival> {
        let Announcement { name, id, .. } = &self.announcement;
        let heard = read(message, |ip| is_of_use(ip, true));
        let rival = heard.here.into_iter().find(|other| other.name == *name && other.id != *id)?;
        let is_first = !std::mem::replace(&mut self.has_rival, true);
        is_first.then_some(Rival { addresses: rival.addresses })
    }

    /// When [`Announcer::poll_transmit`] is to be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.links.values().filter_map(|link| link.due).min()
    }

    /// The next datagram that is due, and its link.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<(Link, Vec<u8>)> {
        let mut links = self.links.iter_mut();
        let (link, state) = links.find(|(_, state)| state.due.is_some_and(|due| due <= now))?;
        if std::mem::take(&mut state.asks) {
            return Some((*link, query().write()));
        }
        state.last = Some(now);
        state.announced += 1;
        state.due = None;
        if state.announced < ANNOUNCEMENTS {
            state.due = Some(now + GAP * (1 << (state.announced - 1)));
        } else {
            // What follows answers queries; the count must not overflow.
            state.announced = ANNOUNCEMENTS;
        }
        Some((*link, self.announcement.message().write()))
    }

    /// The last datagrams, which take the announcement back.
    #[must_use]
    pub fn goodbye(&self) -> Vec<(Link, Vec<u8>)> {
        let bytes = self.announcement.goodbye().write();
        self.links.keys().map(|link| (*link, bytes.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::announcement::tests::receiver;
    use crate::message::{Record, kind};

    const ETH: Link = Link { index: 2, is_v6: false };
    const WLAN: Link = Link { index: 3, is_v6: false };

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A tokio instant of a test is as good as any other.
    fn start() -> Instant {
        tokio::time::Instant::now().into_std()
    }

    /// Runs until `end`: times of announcements on a link, in milliseconds from `start`.
    fn sent(announcer: &mut Announcer, start: Instant, end: u64, link: Link) -> Vec<u128> {
        let mut times = Vec::new();
        while let Some(due) = announcer.poll_timeout().filter(|due| *due <= start + ms(end)) {
            let (of, bytes) = announcer.poll_transmit(due).unwrap();
            if of == link && Message::read(&bytes).unwrap().is_response {
                times.push((due - start).as_millis());
            }
        }
        times
    }

    fn settled(start: Instant) -> Announcer {
        let mut announcer = Announcer::new(receiver("laptop", "a"));
        announcer.set_links(start, &[ETH, WLAN]);
        sent(&mut announcer, start, 10_000, ETH);
        announcer
    }

    #[test]
    fn it_asks_then_announces_three_times_on_each_link() {
        let start = start();
        let mut announcer = Announcer::new(receiver("laptop", "a"));
        assert_eq!(announcer.poll_timeout(), None);
        announcer.set_links(start, &[ETH, WLAN]);
        let (link, first) = announcer.poll_transmit(start).unwrap();
        assert_eq!((link, first), (ETH, query().write()));
        assert_eq!(sent(&mut announcer, start, 60_000, WLAN), [0, 1000, 3000]);
        announcer.set_links(start + ms(60_000), &[ETH]);
        assert_eq!(announcer.goodbye().len(), 1);
        assert_eq!(sent(&mut announcer, start, 120_000, ETH), []);
    }

    #[test]
    fn queries_are_answered_once_a_second_at_most() {
        let start = start();
        let mut announcer = settled(start);
        let query = query().write();
        for at in 0..3000 {
            let now = start + ms(20_000 + at);
            assert_eq!(announcer.received(now, ETH, &query), None);
        }
        // They were all asked in three seconds, and only then looked at.
        assert_eq!(sent(&mut announcer, start, 60_000, ETH).len(), 1);
        let mut times = Vec::new();
        for at in 0..3000 {
            announcer.received(start + ms(70_000 + at), ETH, &query);
            times.extend(sent(&mut announcer, start, 70_000 + at, ETH));
        }
        assert!(times.len() == 3 && times.windows(2).all(|w| w[1] - w[0] >= 1000), "{times:?}");
        assert!((20..120).contains(&(times[0] - 70_000)), "{times:?}");
        assert_eq!(sent(&mut announcer, start, 200_000, WLAN), [], "nobody asked there");
    }

    #[test]
    fn questions_for_others_and_answers_that_are_known_cause_nothing() {
        let start = start();
        let mut announcer = settled(start);
        let now = start + ms(20_000);
        let mut known = query();
        known.records = receiver("laptop", "a").message().records;
        announcer.received(now, ETH, &known.write());
        let mut other = query();
        other.questions[0].kind = kind::A;
        announcer.received(now, ETH, &other.write());
        let unknown = Link { index: 9, is_v6: true };
        announcer.received(now, unknown, &query().write());
        announcer.received(now, ETH, b"\0\0\0\0\xff\xff");
        assert_eq!(announcer.poll_timeout(), None);
    }

    #[test]
    fn new_addresses_are_announced_at_once() {
        let start = start();
        let mut announcer = settled(start);
        let addresses: Vec<IpAddr> = vec!["192.0.2.8".parse().unwrap()];
        announcer.set_addresses(start + ms(20_000), addresses.clone());
        assert_eq!(sent(&mut announcer, start, 60_000, ETH), [20_000, 21_000, 23_000]);
        announcer.set_addresses(start + ms(60_000), addresses);
        assert_eq!(announcer.poll_timeout(), None, "nothing new");
        // They change again and again: one message a second.
        for i in 0..100_u8 {
            announcer.set_addresses(start + ms(70_000 + u64::from(i)), vec![[192, 0, 2, i].into()]);
        }
        let times = sent(&mut announcer, start, 80_000, ETH);
        assert!(times.windows(2).all(|w| w[1] - w[0] >= 1000), "{times:?}");
    }

    #[test]
    fn the_first_rival_is_reported() {
        let start = start();
        let mut announcer = settled(start);
        let own = receiver("LAPTOP", "a").message().write();
        assert_eq!(announcer.received(start, ETH, &own), None, "its own echo");
        let other = receiver("desk", "b").message().write();
        assert_eq!(announcer.received(start, ETH, &other), None, "another name");
        let rival = receiver("LAPTOP", "b");
        let reported = announcer.received(start, ETH, &rival.message().write()).unwrap();
        assert_eq!(reported.addresses, rival.addresses);
        let third = receiver("laptop", "c").message().write();
        assert_eq!(announcer.received(start, ETH, &third), None, "once");
    }

    #[test]
    fn a_flood_of_records_is_read_in_part() {
        let mut announcer = settled(start());
        let mut flood = receiver("desk", "b").message();
        let record = Record { ttl: 9, ..flood.records[3].clone() };
        flood.records.resize(500, record);
        assert!(Message::read(&flood.write()).unwrap().records.len() <= 128);
        assert_eq!(announcer.received(start(), ETH, &flood.write()), None);
    }
}
