//! Relays that other relays name: they join those of the user while an endpoint runs, and are left
//! when they are dead.
//!
//! A list is signed with the user's password, and yet may be a lie. So a relay that is named gets
//! nothing but a request for an address, and is one of ours only once it has answered that with
//! the password. Few are asked at a time, each once in two minutes; a public relay leads to public
//! addresses only.

use std::net::SocketAddr;
use std::time::Duration;

use manypath_proto::Instant;
use manypath_turn::may_lead_to;

use super::{Link, Relay, RelayChange, Relays, source};
use crate::sockets::BoundAddresses;

/// Relays in all, unless the user names more.
const LINKS_MAX: usize = 8;
/// How long a list counts: the time of three requests.
const FRESH: Duration = Duration::from_secs(6);
/// Time before a relay that did not answer, or refused us, is asked again.
const REFUSED_FOR: Duration = Duration::from_secs(120);
/// How many such relays are remembered for each relay of the user. At this number its list is
/// ignored, and so are the lists of the relays that joined because of it.
const REFUSED_MAX: usize = 32;

/// The relays that may join.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    /// The local addresses; `None` if no list is followed.
    bound: Option<BoundAddresses>,
    refused: Vec<Refused>,
}

/// A relay that is not asked for now.
#[derive(Debug)]
struct Refused {
    address: SocketAddr,
    /// The relay of the user that led to it: another one's password may be the right one.
    led_by: usize,
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
    led_by: usize,
}

/// A relay that tells of others.
struct Teller<'a> {
    link: &'a Link,
    /// The relay of the user that led to it, or itself.
    led_by: usize,
}

impl Link {
    /// It listed others a short time ago.
    fn is_fresh(&self, now: Instant) -> bool {
        self.listed_at.is_some_and(|at| now - at < FRESH)
    }
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
        for index in 0..self.links.len() {
            let link = &self.links[index];
            let is_none = !link.is_left && link.relayed.is_none() && link.error.is_some();
            if let Some(led_by) = link.led_by
                && is_none
            {
                let (address, until) = (link.relay.address, now + REFUSED_FOR);
                self.overlay.refused.push(Refused { address, led_by, until });
                self.leave(now, index);
            }
        }
    }

    /// Leaves those that joined, that nobody lists any more, and that do not answer themselves.
    fn leave_dead(&mut self, now: Instant) {
        let tells = |link: &&Link| !link.is_left && link.is_fresh(now);
        let is_dead = |link: &Link| {
            let address = link.relay.address;
            let is_listed = || self.links.iter().filter(tells).any(|l| l.listed.contains(&address));
            link.has_joined() && !link.is_fresh(now) && !is_listed()
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
            && let Some(Candidate { relay, local, led_by }) = self.candidate(now)
        {
            let mut link =
                Link { led_by: Some(led_by), ..Link::new(now, relay, local, self.wanted) };
            link.client.follow_relays();
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

    /// The relays whose lists count. The user's relay that led to the fewest comes first. So a long
    /// list does not take all the room.
    fn tellers(&self, now: Instant) -> Vec<Teller<'_>> {
        let tells = |link: &Link| !link.is_left && link.relayed.is_some() && link.is_fresh(now);
        let numbered = self.links.iter().enumerate().filter(|(_, link)| tells(link));
        let teller = |(index, link)| Teller { link, led_by: link.led_by.unwrap_or(index) };
        let mut tellers: Vec<_> = numbered.map(teller).collect();
        let leads_to = |by: usize| {
            self.links.iter().filter(|link| !link.is_left && link.led_by == Some(by)).count()
        };
        tellers.sort_by_key(|teller| leads_to(teller.led_by));
        tellers
    }

    /// The next relay to ask, which has the user and the password of the one that names it.
    fn candidate(&self, now: Instant) -> Option<Candidate> {
        let bound = self.overlay.bound.as_ref()?;
        let ours = |address| self.links.iter().any(|l| !l.is_left && l.relay.address == address);
        for Teller { link: by, led_by } in self.tellers(now) {
            let refused = || self.overlay.refused.iter().filter(|r| r.led_by == led_by);
            if refused().count() >= REFUSED_MAX {
                continue;
            }
            let may_join = |&&address: &&SocketAddr| {
                may_lead_to(by.relay.address.ip(), address.ip())
                    && by.relay.address.is_ipv6() == address.is_ipv6()
                    && address.port() != 0
                    && !ours(address)
                    && refused().all(|r| r.address != address)
            };
            let with_source = |&address| Some((address, source(address, bound)?));
            let mut listed = by.listed.iter().filter(may_join).filter_map(with_source);
            if let Some((address, local)) = listed.next() {
                let (user, password) = (by.relay.user.clone(), by.relay.password.clone());
                let relay = Relay { name: address.to_string(), address, user, password };
                return Some(Candidate { relay, local, led_by });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
