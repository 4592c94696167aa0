//! The addresses that NATs give to ours, as STUN servers see them (server-reflexive candidates, RFC
//! 8445 §5.1.1.2). Every relay is such a server (RFC 8656 §5).
//!
//! The questions leave from the sockets that the engine uses, so that the answers hold for its
//! packets. They are repeated, which also keeps the NATs from forgetting.

use std::net::SocketAddr;
use std::time::Duration;

use manypath_proto::Instant;
use turn_types::stun::attribute::XorMappedAddress;
use turn_types::stun::message::{BINDING, Message, MessageClass, MessageWriteVec, TransactionId};
use turn_types::stun::prelude::*;

use crate::message::canonical;

/// The time between two questions: NATs keep a mapping for 30 s and more (RFC 4787 §4.3 asks for
/// 120 s).
const INTERVAL: Duration = Duration::from_secs(15);
/// The wait for the answer to a first question; it doubles.
const PATIENCE: Duration = Duration::from_millis(500);
/// Questions without an answer after which the server is left alone for an interval.
const ASKED_MAX: u32 = 4;
/// Shortest time between two questions that [`Reflexive::ask_again`] causes.
const PAUSE: Duration = Duration::from_secs(1);

/// A question to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The local address that it leaves from.
    pub local: SocketAddr,
    /// The server.
    pub server: SocketAddr,
    /// The Binding request (RFC 8489 §3).
    pub bytes: Vec<u8>,
}

/// A local address and a server that is asked about it.
#[derive(Debug)]
struct Query {
    local: SocketAddr,
    server: SocketAddr,
    /// The question that has no answer yet.
    pending: Option<TransactionId>,
    /// Questions since the last answer.
    asked: u32,
    asked_at: Option<Instant>,
    /// When it is asked next.
    due: Instant,
    /// The address that the server saw last.
    seen: Option<SocketAddr>,
}

/// Asks servers about local addresses.
#[derive(Debug, Default)]
pub struct Reflexive {
    queries: Vec<Query>,
    questions: Vec<Question>,
    has_changed: bool,
}

impl Reflexive {
    /// Sets the pairs of a local address and a server that is asked about it.
    pub fn follow(&mut self, now: Instant, pairs: &[(SocketAddr, SocketAddr)]) {
        let before = self.queries.len();
        self.queries.retain(|query| pairs.contains(&(query.local, query.server)));
        self.has_changed |= self.queries.len() != before;
        for &(local, server) in pairs {
            let is_new = self.queries.iter().all(|q| (q.local, q.server) != (local, server));
            if is_new && local.is_ipv4() == server.is_ipv4() {
                let (pending, asked_at, seen) = (None, None, None);
                self.queries.push(Query {
                    local,
                    server,
                    pending,
                    asked: 0,
                    asked_at,
                    due: now,
                    seen,
                });
            }
        }
    }

    /// Asks at once, because a NAT may have forgotten.
    pub fn ask_again(&mut self, now: Instant) {
        for query in &mut self.queries {
            if query.asked_at.is_none_or(|at| now - at >= PAUSE) {
                (query.due, query.asked) = (now, 0);
            }
        }
    }

    /// Takes a datagram. True if it is an answer to a question.
    pub fn handle(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
        datagram: &[u8],
    ) -> bool {
        let server = canonical(remote);
        let is_asked = |q: &&mut Query| (q.local, q.server) == (local, server);
        let Some(query) = self.queries.iter_mut().find(is_asked) else { return false };
        let Ok(message) = Message::from_bytes(datagram) else { return false };
        let id = message.transaction_id();
        if !message.is_response() || query.pending != Some(id) {
            return false;
        }
        query.pending = None;
        (query.asked, query.due) = (0, now + INTERVAL);
        let seen = if message.class() == MessageClass::Success {
            let mapped = message.attribute::<XorMappedAddress>().ok();
            mapped.map(|mapped| canonical(mapped.addr(id)))
        } else {
            None
        };
        self.has_changed |= seen != query.seen;
        query.seen = seen;
        true
    }

    /// The next question.
    pub fn poll_transmit(&mut self) -> Option<Question> {
        self.questions.pop()
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.queries.iter().map(|query| query.due).min()
    }

    /// Asks what is to be asked now.
    pub fn handle_timeout(&mut self, now: Instant) {
        for query in self.queries.iter_mut().filter(|query| query.due <= now) {
            if query.asked >= ASKED_MAX {
                // The server does not answer: what it saw may not be true any more.
                self.has_changed |= query.seen.take().is_some();
                (query.asked, query.due) = (0, now + INTERVAL);
                continue;
            }
            let message = Message::builder_request(BINDING, MessageWriteVec::new());
            query.pending = Some(message.transaction_id());
            query.due = now + PATIENCE * (1 << query.asked);
            query.asked += 1;
            query.asked_at = Some(now);
            let Query { local, server, .. } = *query;
            self.questions.push(Question { local, server, bytes: message.finish() });
        }
    }

    /// The addresses that servers saw, each with the local address behind it.
    pub fn found(&self) -> impl Iterator<Item = (SocketAddr, SocketAddr)> + '_ {
        self.queries.iter().filter_map(|query| Some((query.local, query.seen?)))
    }

    /// True if what was found is not what it was when this was asked last.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    const LOCAL: &str = "10.0.0.2:9899";
    const SERVER: &str = "192.0.2.1:3478";
    const PUBLIC: &str = "198.51.100.7:4000";

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn asking() -> Reflexive {
        let mut asks = Reflexive::default();
        asks.follow(at(0), &[(address(LOCAL), address(SERVER))]);
        asks.handle_timeout(at(0));
        asks
    }

    /// The server's answer to the last question.
    fn answer(question: &Question, sees: &str) -> Vec<u8> {
        let request = Message::from_bytes(&question.bytes).expect("a message");
        let mut answer = Message::builder_success(&request, MessageWriteVec::new());
        let mapped = XorMappedAddress::new(address(sees), request.transaction_id());
        answer.add_attribute(&mapped).expect("there is room");
        answer.finish()
    }

    fn found(asks: &Reflexive) -> Vec<(SocketAddr, SocketAddr)> {
        asks.found().collect()
    }

    #[test]
    fn an_answer_tells_the_public_address_and_is_asked_for_again() {
        let mut asks = asking();
        let first = asks.poll_transmit().expect("a question");
        assert_eq!((first.local, first.server), (address(LOCAL), address(SERVER)));
        let from = |asks: &mut Reflexive, bytes: &[u8]| {
            asks.handle(at(20), address(LOCAL), address(SERVER), bytes)
        };
        assert!(from(&mut asks, &answer(&first, PUBLIC)));
        assert_eq!(found(&asks), [(address(LOCAL), address(PUBLIC))]);
        assert!(asks.take_changed() && !asks.take_changed());
        assert!(!from(&mut asks, &answer(&first, "198.51.100.8:1")), "it was answered");
        assert_eq!(asks.poll_timeout(), Some(at(15_020)));
        asks.handle_timeout(at(15_020));
        let second = asks.poll_transmit().expect("a question");
        assert!(from(&mut asks, &answer(&second, PUBLIC)));
        assert!(!asks.take_changed(), "nothing is new");
    }

    #[test]
    fn only_the_server_that_was_asked_answers() {
        let mut asks = asking();
        let asked = asks.poll_transmit().expect("a question");
        let right = answer(&asked, PUBLIC);
        let other = answer(&Question { bytes: other_question(), ..asked.clone() }, PUBLIC);
        let (local, server) = (address(LOCAL), address(SERVER));
        assert!(!asks.handle(at(1), local, address("192.0.2.2:3478"), &right));
        assert!(!asks.handle(at(1), address("10.0.0.3:9899"), server, &right));
        assert!(!asks.handle(at(1), local, server, &other));
        assert!(!asks.handle(at(1), local, server, &asked.bytes), "a question is no answer");
        for cut in 0..right.len() {
            assert!(!asks.handle(at(1), local, server, &right[..cut]), "{cut} bytes of it");
        }
        assert_eq!(found(&asks), []);
        assert!(asks.handle(at(1), local, server, &right));
    }

    fn other_question() -> Vec<u8> {
        Message::builder_request(BINDING, MessageWriteVec::new()).finish()
    }

    #[test]
    fn a_silent_server_is_asked_four_times_and_then_left_alone() {
        let mut asks = asking();
        asks.poll_transmit().expect("the first question");
        let mut times = Vec::new();
        while let Some(due) = asks.poll_timeout().filter(|due| *due < at(30_000)) {
            asks.handle_timeout(due);
            times.extend(asks.poll_transmit().map(|_| due.as_nanos() / 1_000_000));
        }
        assert_eq!(times, [500, 1500, 3500, 22_500, 23_000, 24_000, 26_000]);
    }

    #[test]
    fn a_server_that_falls_silent_has_seen_nothing() {
        let mut asks = asking();
        let asked = asks.poll_transmit().expect("a question");
        asks.handle(at(0), address(LOCAL), address(SERVER), &answer(&asked, PUBLIC));
        asks.take_changed();
        while found(&asks).len() == 1 {
            let due = asks.poll_timeout().expect("it goes on");
            asks.handle_timeout(due);
        }
        assert!(asks.take_changed());
    }

    #[test]
    fn doubts_cause_two_questions_a_second_at_most() {
        let mut asks = asking();
        let asked = asks.poll_transmit().expect("a question");
        asks.handle(at(10), address(LOCAL), address(SERVER), &answer(&asked, PUBLIC));
        for ms in (100..5000).step_by(100) {
            asks.ask_again(at(ms));
            asks.handle_timeout(at(ms));
        }
        let count = std::iter::from_fn(|| asks.poll_transmit()).count();
        assert!((5..=10).contains(&count), "{count}");
        asks.follow(at(5000), &[]);
        assert_eq!((asks.poll_timeout(), asks.take_changed()), (None, true));
    }
}
