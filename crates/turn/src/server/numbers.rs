//! Numbers of open allocations, and the question for the address behind one: an extension of RFC
//! 8656, see [`lookup`](crate::lookup).
//!
//! A number lives as long as its allocation, and an allocation has one at most, so the limits of
//! allocations bound the memory. Numbers are drawn, so that nobody knows the next one, from a range
//! in which at least half are free: codes stay short, and most that somebody tries lead nowhere.
//!
//! Everybody may look a number up, without an account, so nothing is kept for those who do. Lookups
//! have a limit of their own, beside that of strangers' requests in all, so that trying all numbers
//! takes long and a flood of lookups, forged or not, leaves logins their part.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use hmac::{Hmac, KeyInit, Mac};
use manypath_proto::Instant;
use sha2::Sha256;
use turn_types::attribute::XorRelayedAddress;
use turn_types::stun::attribute::ErrorCode;
use turn_types::stun::message::{Message, MessageWriteVec};
use turn_types::stun::prelude::*;

use super::limits::Rates;
use super::{AllocationId, Reply, Server};
use crate::lookup::NO_SUCH_NUMBER;
use crate::message::{Access, NUMBER_MAX, add, error_answer, rendezvous_number};

/// Lookups that are answered in a second. They count as requests of strangers as well.
pub(super) const LOOKUPS: Rates = Rates { address: 5, network: 20, all: 1000 };

/// The highest number of each range that numbers are drawn from, if half of them are free.
const RANGES: [u32; 5] = [99, 999, 9999, 99_999, NUMBER_MAX];

/// The numbers that allocations have.
pub(super) struct Numbers {
    secret: [u8; 32],
    taken: BTreeMap<u32, AllocationId>,
}

impl Numbers {
    pub(super) fn new(secret: [u8; 32]) -> Numbers {
        Numbers { secret, taken: BTreeMap::new() }
    }

    /// Gives an allocation the number that its client wishes, or another one if that is not free;
    /// `None` if none is. A wish of 0 is for any.
    fn give(&mut self, allocation: AllocationId, wish: u32) -> Option<u32> {
        let is_free = (1..=NUMBER_MAX).contains(&wish) && !self.taken.contains_key(&wish);
        let number = if is_free { wish } else { self.draw(allocation)? };
        self.taken.insert(number, allocation);
        Some(number)
    }

    /// Takes a number back.
    pub(super) fn free(&mut self, number: u32) {
        self.taken.remove(&number);
    }

    /// A random one of the free numbers of the smallest range that is at most half taken, or of the
    /// last range.
    fn draw(&self, allocation: AllocationId) -> Option<u32> {
        let taken = |last: u32| self.taken.range(..=last);
        let count = |last: u32| taken(last).count() as u32;
        let last = RANGES.into_iter().find(|&last| 2 * count(last) <= last);
        let last = last.unwrap_or(NUMBER_MAX);
        let index = self.random(allocation).checked_rem(u64::from(last - count(last)))?;
        // Each number that is taken moves the free ones behind it.
        let mut number = index as u32 + 1;
        for (&other, _) in taken(last) {
            if other > number {
                break;
            }
            number += 1;
        }
        Some(number)
    }

    /// HMAC takes keys of any length.
    fn random(&self, allocation: AllocationId) -> u64 {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.secret) else { return 0 };
        mac.update(b"rendezvous number");
        mac.update(&allocation.0.to_be_bytes());
        let full = mac.finalize().into_bytes();
        full.iter().take(8).fold(0, |all, &byte| all << 8 | u64::from(byte))
    }
}

impl Server {
    /// The number for a new allocation, if its client asks for one.
    pub(super) fn give_number(
        &mut self,
        allocation: AllocationId,
        access: Access,
        request: &Message<'_>,
    ) -> Option<u32> {
        let wish = rendezvous_number(request)?;
        if access != Access::Open {
            return None;
        }
        self.numbers.give(allocation, wish)
    }

    /// LOOKUP: tells everybody the address behind a number. The answer is at most 2.5 times as long
    /// as the request, headers included.
    pub(super) fn on_lookup(
        &mut self,
        now: Instant,
        client: SocketAddr,
        request: &Message<'_>,
    ) -> Reply {
        if !self.lookups.has(now, client) {
            self.stats.over_rate += 1;
            return Reply::None;
        }
        self.lookups.take(now, client);
        let answer = match rendezvous_number(request) {
            None => error_answer(request, ErrorCode::BAD_REQUEST),
            Some(number) => match self.behind(now, number) {
                None => no_such_number(request),
                Some(relayed) => {
                    let mut answer = Message::builder_success(request, MessageWriteVec::new());
                    let id = request.transaction_id();
                    add(&mut answer, &XorRelayedAddress::new(relayed, id));
                    answer
                }
            },
        };
        self.answer_stranger(now, client, answer.finish())
    }

    /// The relayed address of the allocation that has this number.
    fn behind(&self, now: Instant, number: u32) -> Option<SocketAddr> {
        let client = self.by_id.get(self.numbers.taken.get(&number)?)?;
        let allocation = self.allocations.get(client).filter(|a| a.ends > now)?;
        Some(allocation.relayed)
    }
}

fn no_such_number(request: &Message<'_>) -> MessageWriteVec {
    let mut answer = Message::builder_error(request, MessageWriteVec::new());
    if let Ok(code) = ErrorCode::builder(NO_SUCH_NUMBER).reason("No such number").build() {
        add(&mut answer, &code);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives as many allocations a number each.
    fn given(numbers: &mut Numbers, ids: std::ops::Range<u64>) -> Vec<u32> {
        ids.map(|id| numbers.give(AllocationId(id), 0).expect("one is free")).collect()
    }

    #[test]
    fn numbers_are_short_until_half_of_them_are_taken() {
        let mut numbers = Numbers::new([3; 32]);
        let first = given(&mut numbers, 0..50);
        assert!(first.iter().all(|number| (1..=99).contains(number)), "{first:?}");
        let next = given(&mut numbers, 50..500);
        assert!(next.iter().all(|number| (1..=999).contains(number)), "{next:?}");
        assert!(next.iter().any(|number| *number > 900), "all over the range");
        let last = given(&mut numbers, 500..1000);
        assert!(last.iter().any(|number| (1000..=9999).contains(number)), "{last:?}");
        assert_eq!(numbers.taken.len(), 1000, "no two have the same");
        first.into_iter().for_each(|number| numbers.free(number));
        let again = numbers.give(AllocationId(1000), 0);
        assert!(again.is_some_and(|number| number <= 99), "there is room again: {again:?}");
    }

    #[test]
    fn nobody_without_the_secret_knows_the_next_number() {
        let drawn = |secret: u8| given(&mut Numbers::new([secret; 32]), 0..20);
        assert_eq!(drawn(3), drawn(3));
        assert_ne!(drawn(3), drawn(4));
        let mut sorted = drawn(3);
        sorted.sort_unstable();
        assert_ne!(sorted, drawn(3), "not one after the other");
    }

    #[test]
    fn each_free_number_is_drawn_as_often_as_another() {
        let mut numbers = Numbers::new([3; 32]);
        (1..=40).for_each(|wish| assert_eq!(numbers.give(AllocationId(0), wish), Some(wish)));
        let mut drawn = [0; 100];
        for id in 0..59_000 {
            let number = numbers.give(AllocationId(id), 0).unwrap();
            drawn[number as usize] += 1;
            numbers.free(number);
        }
        assert!(drawn[..=40].iter().all(|times| *times == 0), "{drawn:?}");
        assert!(drawn[41..].iter().all(|times| (850..1150).contains(times)), "{drawn:?}");
    }

    #[test]
    fn without_a_free_number_there_is_none() {
        let mut numbers = Numbers::new([3; 32]);
        let all = (1..=NUMBER_MAX).map(|number| (number, AllocationId(0)));
        numbers.taken = all.collect();
        assert_eq!(numbers.give(AllocationId(1), 0), None);
        assert_eq!(numbers.give(AllocationId(1), 7), None);
        numbers.free(123_456);
        assert_eq!(numbers.give(AllocationId(1), 0), Some(123_456), "the last one");
    }
}
