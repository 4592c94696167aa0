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
