//! Allocations that stay when the address of their client changes (RFC 8016): the client asks for a
//! ticket, and shows it from its new address.

use std::net::SocketAddr;

use hmac::{Hmac, KeyInit, Mac};
use manypath_proto::Instant;
use sha2::Sha256;
use turn_types::stun::attribute::{ErrorCode, RawAttribute};
use turn_types::stun::message::{Message, MessageWriteVec};

use super::requests::Refusal;
use super::{Allocation, AllocationId, Server};
use crate::message::{MOBILITY_TICKET, add};

/// Bytes of a ticket: the allocation, how often it has moved, and a signature.
const TICKET: usize = 32;
/// Bytes of the numbers in a ticket.
const NUMBERS: usize = 16;

/// Makes tickets and knows them again. They need no memory.
pub(super) struct Tickets {
    secret: [u8; 32],
}

/// A ticket that this relay has made.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Ticket {
    allocation: AllocationId,
    /// How often the allocation had moved.
    moves: u64,
}

impl Tickets {
    pub(super) fn new(secret: [u8; 32]) -> Tickets {
        Tickets { secret }
    }

    fn make(&self, ticket: Ticket) -> [u8; TICKET] {
        let mut bytes = [0; TICKET];
        bytes[..8].copy_from_slice(&ticket.allocation.0.to_be_bytes());
        bytes[8..NUMBERS].copy_from_slice(&ticket.moves.to_be_bytes());
        if let Some(mut mac) = self.mac() {
            mac.update(&bytes[..NUMBERS]);
            let signature = mac.finalize().into_bytes();
            bytes[NUMBERS..].copy_from_slice(&signature[..TICKET - NUMBERS]);
        }
        bytes
    }

    fn read(&self, bytes: &[u8]) -> Option<Ticket> {
        let bytes: &[u8; TICKET] = bytes.try_into().ok()?;
        let (numbers, signature) = bytes.split_at(NUMBERS);
        let mut mac = self.mac()?;
        mac.update(numbers);
        mac.verify_truncated_left(signature).ok()?;
        let number =
            |at: usize| Some(u64::from_be_bytes(numbers.get(at..at + 8)?.try_into().ok()?));
        Some(Ticket { allocation: AllocationId(number(0)?), moves: number(8)? })
    }

    /// HMAC takes keys of any length.
    fn mac(&self) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).ok()?;
        mac.update(b"mobility ticket");
        Some(mac)
    }
}

impl Server {
    /// Adds the ticket of an allocation to an answer, if its client asked for one.
    pub(super) fn add_ticket(&self, allocation: &Allocation, answer: &mut MessageWriteVec) {
        if let Some(moves) = allocation.moves {
            let bytes = self.tickets.make(Ticket { allocation: allocation.id, moves });
            add(answer, &RawAttribute::new(MOBILITY_TICKET, &bytes));
        }
    }

    /// Moves an allocation to the client's new address, if a Refresh request brings its ticket.
    /// `account` is that of the request, which is signed. A request that is repeated, because its
    /// answer was lost, moves nothing again.
    pub(super) fn follow_client(
        &mut self,
        now: Instant,
        client: SocketAddr,
        account: usize,
        message: &Message<'_>,
    ) -> Result<(), Refusal> {
        let Some(attribute) = message.raw_attribute(MOBILITY_TICKET) else { return Ok(()) };
        let ticket = self.tickets.read(&attribute.value).ok_or(ErrorCode::BAD_REQUEST)?;
        let old = *self.by_id.get(&ticket.allocation).ok_or(ErrorCode::ALLOCATION_MISMATCH)?;
        // Checks that it has not ended, and whose it is.
        let moves = self.own(now, old, account)?.moves.ok_or(ErrorCode::BAD_REQUEST)?;
        if old == client && ticket.moves + 1 == moves {
            return Ok(());
        }
        if ticket.moves != moves || old.is_ipv6() != client.is_ipv6() {
            return Err(ErrorCode::BAD_REQUEST);
        }
        if old != client && self.allocations.contains_key(&client) {
            return Err(ErrorCode::ALLOCATION_MISMATCH);
        }
        let Some(mut allocation) = self.allocations.remove(&old) else { return Ok(()) };
        allocation.moves = Some(moves + 1);
        self.ends.retain(|&(_, c)| c != old);
        self.ends.insert((allocation.ends, client));
        self.by_id.insert(allocation.id, client);
        self.allocations.insert(client, allocation);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_of_one_relay_and_changes_are_noticed() {
        let ticket = Ticket { allocation: AllocationId(7), moves: 3 };
        let tickets = Tickets::new([1; 32]);
        let good = tickets.make(ticket);
        assert_eq!(tickets.read(&good), Some(ticket));
        assert_eq!(Tickets::new([2; 32]).read(&good), None);
        for index in 0..good.len() {
            let mut bad = good;
            bad[index] ^= 1;
            assert_eq!((tickets.read(&bad), tickets.read(&good[..index])), (None, None));
        }
    }
}
