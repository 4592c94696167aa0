//! The places of a server, and who must leave when they are short.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use manypath_proto::{Crowd, CrowdLimits};
use tokio::sync::Notify;

/// The connections of a server, bounded in number. Nobody waits for a place: a newcomer takes that
/// of the oldest one of the network with the most, among those without a whole request. Those
/// whose request has come have places of their own, and leave in the same order, so that clients
/// that do not read their answers block nobody either.
#[derive(Clone, Debug)]
pub(super) struct Guests(Arc<Mutex<Present>>);

#[derive(Debug)]
struct Present {
    latest: u64,
    /// Without a whole request.
    silent: Crowd<u64>,
    /// With an answer under way.
    asking: Crowd<u64>,
    /// How each is told to leave.
    dismissals: HashMap<u64, Arc<Notify>>,
}

/// A connection with a place, until it is dropped.
#[derive(Debug)]
pub(super) struct Guest {
    guests: Guests,
    number: u64,
    from: IpAddr,
    dismissal: Arc<Notify>,
}

impl Guests {
    /// Places for `most` connections without a whole request, and for as many others.
    pub(super) fn new(most: usize) -> Guests {
        // Most clients have one address, loopback, which may have all places.
        let limits = CrowdLimits { total: most, per_network: most, per_address: most };
        let crowd = || Crowd::new(limits);
        let dismissals = HashMap::new();
        let present = Present { latest: 0, silent: crowd(), asking: crowd(), dismissals };
        Guests(Arc::new(Mutex::new(present)))
    }

    /// Gives a connection from this address a place.
    pub(super) fn enter(&self, from: IpAddr) -> Guest {
        let mut present = self.present();
        present.latest += 1;
        let number = present.latest;
        let leaver = present.silent.add(number, from);
        present.dismiss(leaver);
        let dismissal = Arc::new(Notify::new());
        present.dismissals.insert(number, dismissal.clone());
        Guest { guests: self.clone(), number, from, dismissal }
    }

    fn present(&self) -> MutexGuard<'_, Present> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Present {
    fn dismiss(&mut self, leaver: Option<u64>) {
        if let Some(dismissal) = leaver.and_then(|number| self.dismissals.remove(&number)) {
            dismissal.notify_one();
        }
    }
}

impl Guest {
    /// The whole request head has come.
    pub(super) fn asked(&self) {
        let mut present = self.guests.present();
        if present.silent.remove(self.number) {
            let leaver = present.asking.add(self.number, self.from);
            present.dismiss(leaver);
        }
    }

    /// Waits until it must leave for others.
    pub(super) async fn until_dismissed(&self) {
        self.dismissal.notified().await;
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut present = self.guests.present();
        present.silent.remove(self.number);
        present.asking.remove(self.number);
        present.dismissals.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn gone(guests: &[Guest]) -> Vec<bool> {
        let is_gone = |g: &Guest| !g.guests.present().dismissals.contains_key(&g.number);
        guests.iter().map(is_gone).collect()
    }

    #[tokio::test]
    async fn the_oldest_that_has_not_asked_leaves_first() {
        let guests = Guests::new(2);
        let mut all: Vec<_> = (0..3).map(|_| guests.enter(HERE)).collect();
        assert_eq!(gone(&all), [true, false, false]);
        all[0].until_dismissed().await;
        all[1].asked();
        all.push(guests.enter(HERE));
        assert_eq!(gone(&all), [true, false, false, false]);
        all.push(guests.enter(HERE));
        assert_eq!(gone(&all), [true, false, true, false, false]);
    }

    #[tokio::test]
    async fn the_oldest_that_does_not_read_its_answer_leaves_for_others_that_asked() {
        let guests = Guests::new(2);
        let mut all: Vec<_> = (0..2).map(|_| guests.enter(HERE)).collect();
        all.iter().for_each(Guest::asked);
        all.extend((0..2).map(|_| guests.enter(HERE)));
        assert_eq!(gone(&all), [false; 4]);
        all[2].asked();
        assert_eq!(gone(&all), [true, false, false, false]);
        all[0].until_dismissed().await;
    }

    #[test]
    fn nothing_is_left_of_who_has_left() {
        let guests = Guests::new(2);
        for _ in 0..3 {
            let all: Vec<_> = (0..4).map(|_| guests.enter(HERE)).collect();
            all.iter().for_each(Guest::asked);
        }
        let present = guests.present();
        assert!(present.dismissals.is_empty());
        assert!(present.silent.has_room(HERE) && present.asking.has_room(HERE));
    }

    #[test]
    fn one_of_the_largest_network_leaves() {
        let guests = Guests::new(4);
        let from = ["192.0.2.1", "2001:db8::1", "2001:db8::2:1", "2001:db8:0:1::1", "198.51.100.1"];
        let all: Vec<_> = from.iter().map(|from| guests.enter(from.parse().unwrap())).collect();
        assert_eq!(gone(&all), [false, true, false, false, false]);
    }
}
