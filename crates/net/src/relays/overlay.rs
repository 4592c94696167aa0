//! Relays that other relays name: they join those of the user while an endpoint runs, and are left
//! when they are dead.
//!
//! A list is signed with the user's password, and yet may be a lie. So a relay that is named gets
//! nothing but a request for an address, and is one of ours only once it has answered that with
//! the password. Few are asked at a time, each once in two minutes; a public relay leads to public
//! addresses only.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use manypath_proto::Instant;
use manypath_turn::may_lead_to;

use super::{Link, Relay, RelayChange, Relays, source};
use crate::sockets::BoundAddresses;
use crate::turn::client;

/// Relays in all, unless the user names more.
const LINKS_MAX: usize = 8;
/// A list counts for this long: that of three requests.
const FRESH: Duration = Duration::from_secs(6);
/// Time before a relay that did not answer, or refused us, is asked again.
const REFUSED_FOR: Duration = Duration::from_secs(120);
/// As many of them are remembered; while the list is full no other relay is asked.
const REFUSED_MAX: usize = 32;

/// The relays that may join.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    /// The local addresses; `None` if no list is followed.
    bound: Option<BoundAddresses>,
    refused: VecDeque<Refused>,
}

/// A relay that is not asked for now.
#[derive(Debug)]
struct Refused {
    address: SocketAddr,
    until: Instant,
}

impl Overlay {
    /// Takes note of the local addresses there are now.
    pub(super) fn set_bound(&mut self, bound: &BoundAddresses) {
        if let Some(known) = &mut self.bound {
            bound.clone_into(known);
        }
    }
}

/// A relay that another one names.
struct Candidate {
    relay: Relay,
    /// The address of ours to talk to it from.
    local: SocketAddr,
}

impl Relays {
    /// Takes the relays that these know of, too, up to eight in all: each asks for the list of the
    /// others every two seconds. Those that nobody lists any more and that do not answer are left.
    pub fn follow_overlay(&mut self, bound: &BoundAddresses) {
        self.overlay.bound = Some(bound.clone());
        self.links.iter_mut().for_each(|link| link.client.follow_relays());
    }

    /// Reads the lists that came.
    pub(super) fn run_overlay(&mut self, now: Instant) {
        if self.overlay.bound.is_none() {
            return;
        }
        let mut has_list = false;
        for link in &mut self.links {
            if let Some(listed) = link.client.take_listed() {
                (link.listed, link.listed_at) = (listed, Some(now));
                has_list = true;
            }
        }
        self.refuse_silent(now);
        if has_list {
            self.leave_dead(now);
            self.join_listed(now);
        }
    }

    /// Gives up those that were asked and are no relays for us.
    fn refuse_silent(&mut self, now: Instant) {
        self.overlay.refused.retain(|refused| refused.until > now);
        let is_none = |link: &Link| {
            link.is_listed && !link.is_left && link.relayed.is_none() && link.error.is_some()
        };
        while let Some(index) = self.links.iter().position(is_none) {
            let address = self.links[index].relay.address;
            self.overlay.refused.push_back(Refused { address, until: now + REFUSED_FOR });
            self.leave(now, index);
        }
    }

    /// Leaves those that joined, that nobody lists any more, and that do not answer themselves.
    fn leave_dead(&mut self, now: Instant) {
        let is_fresh = |link: &Link| link.listed_at.is_some_and(|at| now - at < FRESH);
        let tells = |link: &&Link| !link.is_left && is_fresh(link);
        let is_dead = |link: &Link| {
            let address = link.relay.address;
            let is_listed = || self.links.iter().filter(tells).any(|l| l.listed.contains(&address));
            link.has_joined() && !is_fresh(link) && !is_listed()
        };
        let dead: Vec<usize> =
            (0..self.links.len()).filter(|&index| is_dead(&self.links[index])).collect();
        dead.into_iter().for_each(|index| self.leave(now, index));
    }

    fn leave(&mut self, now: Instant, index: usize) {
        let link = &mut self.links[index];
        link.client.close(now);
        link.is_left = true;
        // Behind what is waiting there.
        if let Some(relayed) = link.relayed {
            self.changes.insert(0, RelayChange::Gone(relayed));
            self.changes.insert(0, RelayChange::Status);
        }
    }

    /// Asks relays that are listed for an address, as far as there is room.
    fn join_listed(&mut self, now: Instant) {
        while self.links.iter().filter(|link| !link.is_left).count() < LINKS_MAX
            && self.overlay.refused.len() < REFUSED_MAX
            && let Some(Candidate { relay, local }) = self.candidate()
        {
            let mut client = client(now, &relay);
            client.follow_relays();
            let link = Link {
                relay,
                local,
                client,
                relayed: None,
                error: None,
                routes: BTreeMap::new(),
                is_lost: false,
                is_listed: true,
                is_left: false,
                listed: Vec::new(),
                listed_at: None,
            };
            // The others keep their numbers.
            let index = self.links.iter().position(|link| link.is_left);
            let index = index.unwrap_or(self.links.len());
            match self.links.get_mut(index) {
                Some(left) => *left = link,
                None => self.links.push(link),
            }
            self.changes.insert(0, RelayChange::Joined(index));
        }
    }

    /// The next relay to ask, which has the user and the password of the one that names it.
    fn candidate(&self) -> Option<Candidate> {
        let bound = self.overlay.bound.as_ref()?;
        let ours = |address| self.links.iter().any(|l| !l.is_left && l.relay.address == address);
        let refused = |address| self.overlay.refused.iter().any(|r| r.address == address);
        let tell = self.links.iter().filter(|link| !link.is_left && link.relayed.is_some());
        tell.flat_map(|by| by.listed.iter().map(move |&address| (by, address))).find_map(
            |(by, address)| {
                let (place, other) = (by.relay.address, address);
                let is_good = may_lead_to(place.ip(), other.ip())
                    && place.is_ipv6() == other.is_ipv6()
                    && other.port() != 0;
                if !is_good || ours(address) || refused(address) {
                    return None;
                }
                let local = source(address, bound)?;
                let (user, password) = (by.relay.user.clone(), by.relay.password.clone());
                let relay = Relay { name: address.to_string(), address, user, password };
                Some(Candidate { relay, local })
            },
        )
    }
}

#[cfg(test)]
mod tests;
