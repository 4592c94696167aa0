//! Relays that know each other: an overlay as RON is (Andersen, Balakrishnan, Kaashoek, Morris,
//! SOSP 2001, sections 4 and 5), which mTCP takes its paths from.
//!
//! Each relay asks every other one it knows by the request OVERLAY, signed as a user of the relay
//! signs. The answer, signed with the same password, lists the relays that the other one knows and
//! that work. The one that asked learns of relays by these lists, and of one that joins by its
//! request. A relay is listed to others only after it has answered with a right signature, so
//! nobody is led to a stranger.
//!
//! As RON does, a request measures the round-trip time (a moving average) and the losses (of the
//! last 100). One goes out every ten seconds. One without an answer is repeated after a second, and
//! a relay that leaves four in a row unanswered is dead: at most 15 s after its last sign.

mod list;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use manypath_proto::Instant;
use turn_types::stun::attribute::{AttributeType, RawAttribute};
use turn_types::stun::message::{Message, MessageClass, MessageWriteVec, Method, TransactionId};
use turn_types::stun::prelude::*;

use crate::credentials::Credentials;
use crate::message::{add, canonical};
pub use list::Listed;
pub(crate) use list::{listed, relays_attribute};

/// The request for the relays of an overlay. RFC 8489 §18.2 assigns such numbers on review; this
/// one is not.
pub(crate) const OVERLAY: Method = Method::new(0x0f2);
/// The attribute of a relay that asks: it can be reached where the request comes from.
const RELAY_HERE: AttributeType = AttributeType::new(0xd1a2);

/// Relays that one knows, at most.
const RELAYS_MAX: usize = 32;
/// Time between two requests to a relay.
const INTERVAL: Duration = Duration::from_secs(10);
/// Time for which an answer is waited for.
const WAIT: Duration = Duration::from_secs(1);
/// Requests without an answer in a row after which a relay is dead.
const DEAD_AFTER: u32 = 4;
/// A relay that was not named by the operator is forgotten if it is dead for so long.
const FORGET_AFTER: Duration = Duration::from_secs(600);
/// Weight of the past in the moving average of round-trip times (RON, section 5.4).
const PAST: f64 = 0.9;
/// Requests over which losses are counted (RON, section 5.4).
const SAMPLES: u32 = 100;

/// A relay of the overlay, as seen from another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeshRelay {
    /// The UDP address.
    pub address: SocketAddr,
    /// True if it answers.
    pub is_alive: bool,
    /// Round-trip time, a moving average; `None` before the first answer.
    pub rtt: Option<Duration>,
    /// Fraction of the last 100 requests without an answer.
    pub loss: f64,
}

/// A datagram for another relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshTransmit {
    /// The relay.
    pub to: SocketAddr,
    /// The datagram.
    pub bytes: Vec<u8>,
}

/// The relays that one knows.
pub(crate) struct Mesh {
    user: String,
    password: zeroize::Zeroizing<String>,
    /// Our own addresses, which others tell us of.
    own: Vec<SocketAddr>,
    relays: BTreeMap<SocketAddr, Relay>,
    out: VecDeque<MeshTransmit>,
}

struct Relay {
    is_named: bool,
    credentials: Credentials,
    is_alive: bool,
    last_sign: Instant,
    request: Option<Request>,
    /// When it is asked next, unless a request is under way.
    ask_at: Instant,
    lost_in_a_row: u32,
    rtt: Option<Duration>,
    /// The last requests, the latest in the lowest bit: 1 for each without an answer.
    losses: u128,
    asked: u32,
}

/// The source that told of a relay.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ToldBy {
    Operator,
    /// By a request that is signed with the password, from where it can be reached.
    Itself,
    List,
}

struct Request {
    id: TransactionId,
    is_signed: bool,
    sent_at: Instant,
}

impl Mesh {
    /// Knows no relay yet; it will ask them as this user.
    pub(crate) fn new(user: &str, password: &str) -> Mesh {
        Mesh {
            user: user.to_owned(),
            password: zeroize::Zeroizing::new(password.to_owned()),
            own: Vec::new(),
            relays: BTreeMap::new(),
            out: VecDeque::new(),
        }
    }

    /// Takes note of our own addresses.
    pub(crate) fn set_own(&mut self, own: &[SocketAddr]) {
        own.clone_into(&mut self.own);
        self.relays.retain(|address, _| !own.contains(address));
    }

    /// Takes the relays that the operator names, in place of those named before: they are asked,
    /// and never forgotten.
    pub(crate) fn name(&mut self, now: Instant, named: &[SocketAddr]) {
        for relay in self.relays.values_mut() {
            relay.is_named = false;
        }
        for &address in named {
            self.add(now, address, ToldBy::Operator);
        }
    }

    /// A relay at this address asks us: it is asked in turn.
    pub(crate) fn learn(&mut self, now: Instant, address: SocketAddr) {
        self.add(now, address, ToldBy::Itself);
    }

    /// Another relay lists this one: it is asked if there is room for it. Who lies in a list moves
    /// nobody, and sends us to few strangers.
    fn learn_listed(&mut self, now: Instant, address: SocketAddr) {
        self.add(now, address, ToldBy::List);
    }

    fn add(&mut self, now: Instant, address: SocketAddr, told_by: ToldBy) {
        let address = canonical(address);
        let is_named = told_by == ToldBy::Operator;
        if let Some(known) = self.relays.get_mut(&address) {
            known.is_named |= is_named;
            return;
        }
        if self.own.contains(&address) || address.port() == 0 || !self.make_room(told_by) {
            return;
        }
        let relay = Relay {
            is_named,
            credentials: Credentials::new(&self.user, &self.password),
            is_alive: false,
            last_sign: now,
            request: None,
            ask_at: now,
            lost_in_a_row: 0,
            rtt: None,
            losses: 0,
            asked: 0,
        };
        self.relays.insert(address, relay);
    }

    /// Forgets a relay if there is no room for one that `told_by` names. One that did not answer
    /// a request goes first; what the operator names never goes. False if there is no room.
    fn make_room(&mut self, told_by: ToldBy) -> bool {
        if self.relays.len() < RELAYS_MAX {
            return true;
        }
        let may_go = |relay: &Relay| match told_by {
            ToldBy::Operator => !relay.is_named,
            // A relay that it was told of just now may still answer.
            ToldBy::Itself => !relay.is_named && !relay.is_alive && relay.lost_in_a_row > 0,
            ToldBy::List => false,
        };
        let others = self.relays.iter().filter(|(_, relay)| may_go(relay));
        let goes = others.min_by_key(|(_, relay)| (relay.is_alive, relay.last_sign));
        goes.map(|(&address, _)| address).is_some_and(|it| self.relays.remove(&it).is_some())
    }

    /// The relays that it knows, by address.
    pub(crate) fn relays(&self) -> impl Iterator<Item = MeshRelay> + '_ {
        self.relays.iter().map(|(&address, relay)| MeshRelay {
            address,
            is_alive: relay.is_alive,
            rtt: relay.rtt,
            loss: relay.loss(),
        })
    }

    /// The attribute for others with the relays that work.
    pub(crate) fn attribute(&self) -> RawAttribute<'static> {
        relays_attribute(self.relays().filter(|relay| relay.is_alive))
    }

    /// The next datagram.
    pub(crate) fn poll_transmit(&mut self) -> Option<MeshTransmit> {
        self.out.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.relays.values().map(Relay::due_at).min()
    }

    /// Asks those that are due, and gives up on those that do not answer. Gives the relays whose
    /// state changed.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> bool {
        let mut changed = false;
        for (&to, relay) in self.relays.iter_mut().filter(|(_, relay)| relay.due_at() <= now) {
            if relay.request.take().is_some() {
                changed |= relay.unanswered(now);
            }
            if relay.ask_at <= now {
                send(&mut self.out, MeshTransmit { to, bytes: relay.ask(now) });
            }
        }
        let count = self.relays.len();
        let is_wanted = |relay: &Relay| {
            relay.is_named || relay.is_alive || now - relay.last_sign < FORGET_AFTER
        };
        self.relays.retain(|_, relay| is_wanted(relay));
        changed || count != self.relays.len()
    }

    /// Takes a datagram of another relay; `None` if it is no answer to us, else true if the relays
    /// are others now. `may_be_asked` tells if an address that a relay names may be asked.
    pub(crate) fn handle(
        &mut self,
        now: Instant,
        from: SocketAddr,
        message: &Message<'_>,
        may_be_asked: impl Fn(SocketAddr) -> bool,
    ) -> Option<bool> {
        let relay = self.relays.get_mut(&from)?;
        let request = relay.request.take_if(|request| request.id == message.transaction_id())?;
        if !message.has_class(MessageClass::Success) {
            if relay.credentials.renew(message, request.is_signed) {
                send(&mut self.out, MeshTransmit { to: from, bytes: relay.ask(now) });
                return Some(false);
            }
            return Some(relay.refused());
        }
        if !relay.credentials.prove(message) {
            // Somebody else's answer, or a relay with another password.
            relay.request = Some(request);
            return Some(false);
        }
        relay.credentials.accepted();
        let mut changed = relay.answered(now, now - request.sent_at);
        let before = self.relays.len();
        for listed in listed(message).into_iter().filter(|listed| may_be_asked(listed.address)) {
            self.learn_listed(now, listed.address);
        }
        changed |= self.relays.len() != before;
        Some(changed)
    }
}

impl Relay {
    fn due_at(&self) -> Instant {
        self.request.as_ref().map_or(self.ask_at, |request| request.sent_at + WAIT)
    }

    fn ask(&mut self, now: Instant) -> Vec<u8> {
        let mut message = Message::builder_request(OVERLAY, MessageWriteVec::new());
        add(&mut message, &RawAttribute::new(RELAY_HERE, &[]));
        let id = message.transaction_id();
        let (bytes, is_signed) = self.credentials.finish(message);
        self.request = Some(Request { id, is_signed, sent_at: now });
        self.ask_at = now + INTERVAL;
        bytes
    }

    /// There was no answer; true if it is dead by that.
    fn unanswered(&mut self, now: Instant) -> bool {
        self.note(true);
        self.lost_in_a_row += 1;
        if self.lost_in_a_row < DEAD_AFTER {
            self.ask_at = now;
            return false;
        }
        self.dies()
    }

    /// It does not take us for one of its users; true if it is dead by that.
    fn refused(&mut self) -> bool {
        self.lost_in_a_row = DEAD_AFTER;
        self.dies()
    }

    /// Forgets its challenge, too: the next answer may be another program's.
    fn dies(&mut self) -> bool {
        self.credentials.reset();
        std::mem::replace(&mut self.is_alive, false)
    }

    /// An answer came after this time; true if it was not alive before.
    fn answered(&mut self, now: Instant, rtt: Duration) -> bool {
        self.note(false);
        self.lost_in_a_row = 0;
        self.last_sign = now;
        self.rtt = Some(self.rtt.map_or(rtt, |past| past.mul_f64(PAST) + rtt.mul_f64(1.0 - PAST)));
        !std::mem::replace(&mut self.is_alive, true)
    }

    fn note(&mut self, is_lost: bool) {
        self.losses = self.losses << 1 | u128::from(is_lost);
        self.asked = (self.asked + 1).min(SAMPLES);
    }

    fn loss(&self) -> f64 {
        let last = self.losses & ((1 << SAMPLES) - 1);
        f64::from(last.count_ones()) / f64::from(self.asked.max(1))
    }
}

/// Puts a request behind the others that are to leave, in place of an older one to the same relay.
fn send(out: &mut VecDeque<MeshTransmit>, request: MeshTransmit) {
    out.retain(|older| older.to != request.to);
    out.push_back(request);
}

/// True if a request for the relays is one of a relay.
pub(crate) fn is_of_relay(request: &Message<'_>) -> bool {
    request.has_attribute(RELAY_HERE)
}

#[cfg(test)]
mod tests;
