//! Numbers of open allocations: an extension of TURN (RFC 8656), ours.
//!
//! A number is short enough to be read out, so that two people can agree on a code which names a
//! receiver at a relay. A client asks for one by the attribute RENDEZVOUS-NUMBER in its Allocate
//! request for an open allocation: 4 bytes, big endian, 0 for any number or the wished one. The
//! answer has the number that the relay gave. Relays that do not know the attribute ignore it, and
//! then there is none.
//!
//! Everybody who knows a number can ask the relay for the address behind it, by the request LOOKUP
//! with the number in RENDEZVOUS-NUMBER, without credentials. A success has the address in
//! XOR-RELAYED-ADDRESS; error 404 says that no allocation has the number. A number is no secret and
//! proves nothing: both ends must still find out with whom they speak.

use std::net::SocketAddr;

use turn_types::attribute::XorRelayedAddress;
use turn_types::stun::attribute::ErrorCode;
use turn_types::stun::message::{Message, MessageClass, MessageWriteVec, Method, TransactionId};
use turn_types::stun::prelude::*;

use crate::message::{add_rendezvous_number, canonical};

/// The request for the address behind a number. RFC 8489 §18.2 assigns such numbers on review; this
/// one is not.
pub(crate) const LOOKUP: Method = Method::new(0x0f3);
/// The error of a LOOKUP for a number that no allocation has.
pub(crate) const NO_SUCH_NUMBER: u16 = 404;

/// Why a relay tells no address.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// 404: no allocation has the number.
    #[error("the relay knows no receiver with this number (error 404)")]
    NoSuchNumber,
    /// Another error, or no address in the answer: the server does not know this request.
    #[error("the server does not know such numbers")]
    Unsupported,
}

/// The question for the address behind a number.
#[derive(Clone, Debug)]
pub struct Lookup {
    id: TransactionId,
    request: Vec<u8>,
}

impl Lookup {
    /// The question for this number.
    pub fn new(number: u32) -> Lookup {
        let mut message = Message::builder_request(LOOKUP, MessageWriteVec::new());
        let id = message.transaction_id();
        add_rendezvous_number(&mut message, number);
        Lookup { id, request: message.finish() }
    }

    /// The datagram for the relay: 28 bytes, the same each time it is sent.
    pub fn request(&self) -> &[u8] {
        &self.request
    }

    /// Reads a datagram of the relay: the address behind the number, or an error. `None` if it is
    /// no answer to this question.
    pub fn read(&self, datagram: &[u8]) -> Option<Result<SocketAddr, LookupError>> {
        let message = Message::from_bytes(datagram).ok()?;
        if message.transaction_id() != self.id || message.method() != LOOKUP {
            return None;
        }
        Some(match message.class() {
            MessageClass::Success => match message.attribute::<XorRelayedAddress>() {
                Ok(relayed) => Ok(canonical(relayed.addr(self.id))),
                Err(_) => Err(LookupError::Unsupported),
            },
            MessageClass::Error => {
                let code = message.attribute::<ErrorCode>().map(|error| error.code());
                let is_unknown = code.is_ok_and(|code| code == NO_SUCH_NUMBER);
                Err(if is_unknown { LookupError::NoSuchNumber } else { LookupError::Unsupported })
            }
            MessageClass::Request | MessageClass::Indication => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::{add, error_answer, rendezvous_number};
    use crate::testing::address;

    const RELAYED: [&str; 2] = ["203.0.113.1:50000", "[2001:db8::1]:50000"];

    fn success(lookup: &Lookup, relayed: &str) -> Vec<u8> {
        let request = Message::from_bytes(lookup.request()).unwrap();
        let mut answer = Message::builder_success(&request, MessageWriteVec::new());
        add(&mut answer, &XorRelayedAddress::new(address(relayed), request.transaction_id()));
        answer.finish()
    }

    fn error(lookup: &Lookup, code: u16) -> Vec<u8> {
        error_answer(&Message::from_bytes(lookup.request()).unwrap(), code).finish()
    }

    #[test]
    fn a_question_has_the_number_and_28_bytes() {
        let lookup = Lookup::new(0x0102_0304);
        let message = Message::from_bytes(lookup.request()).unwrap();
        assert_eq!((message.method(), message.class()), (LOOKUP, MessageClass::Request));
        assert_eq!(rendezvous_number(&message), Some(0x0102_0304));
        assert_eq!(lookup.request()[20..], [0xd1, 0xa4, 0, 4, 1, 2, 3, 4]);
    }

    #[test]
    fn an_answer_tells_the_address_or_why_there_is_none() {
        let lookup = Lookup::new(7);
        for relayed in RELAYED {
            let told = lookup.read(&success(&lookup, relayed));
            assert_eq!(told, Some(Ok(address(relayed))));
        }
        let mapped = success(&lookup, "[::ffff:203.0.113.1]:50000");
        assert_eq!(lookup.read(&mapped), Some(Ok(address(RELAYED[0]))));
        assert_eq!(lookup.read(&error(&lookup, 404)), Some(Err(LookupError::NoSuchNumber)));
        for code in [300, 400, 401, 420, 500] {
            let told = lookup.read(&error(&lookup, code));
            assert_eq!(told, Some(Err(LookupError::Unsupported)), "{code}");
        }
        let request = Message::from_bytes(lookup.request()).unwrap();
        let empty = Message::builder_success(&request, MessageWriteVec::new()).finish();
        assert_eq!(lookup.read(&empty), Some(Err(LookupError::Unsupported)));
    }

    #[test]
    fn answers_to_other_questions_do_not_count() {
        let (lookup, other) = (Lookup::new(7), Lookup::new(7));
        for answer in [success(&other, RELAYED[0]), error(&other, 404)] {
            assert_eq!(lookup.read(&answer), None, "of another transaction");
        }
        assert_eq!(lookup.read(lookup.request()), None, "a question is no answer");
        let mut binding = success(&lookup, RELAYED[0]);
        binding[..2].copy_from_slice(&[1, 1]);
        assert_eq!(lookup.read(&binding), None, "of another method");
        let good = success(&lookup, RELAYED[0]);
        for cut in 0..good.len() {
            assert_eq!(lookup.read(&good[..cut]), None, "{cut} bytes of it");
        }
    }

    proptest! {
        /// Whatever comes, with the right transaction ID or not, it is read or ignored.
        #[test]
        fn garbage_is_survived(
            random in prop::collection::vec(any::<u8>(), 0..100),
            flips in prop::collection::vec((0usize..60, any::<u8>()), 0..6),
            which in 0usize..4,
        ) {
            let lookup = Lookup::new(7);
            let good = match which {
                0 | 1 => success(&lookup, RELAYED[which]),
                2 => error(&lookup, 404),
                _ => [&lookup.request()[..20], &random].concat(),
            };
            let mut bad = good;
            for (index, value) in flips {
                if let Some(byte) = bad.get_mut(index) {
                    *byte = value;
                }
            }
            lookup.read(&bad);
            lookup.read(&random);
        }
    }
}
