//! The messages of the method (draft-porfiri-tsvwg-sctp-dtls-handshake, section "TLS Message
//! Transport"): one byte, then TLS records or a control message.

use bytes::{BufMut, Bytes, BytesMut};

/// The T bit: the message is a control message.
const CONTROL: u8 = 0x80;
/// The control message "Protection Established".
const PROTECTION_ESTABLISHED: u8 = 0x01;
/// The content type of TLS records with handshake messages.
const HANDSHAKE_RECORD: u8 = 22;
/// The type of a ClientHello.
const CLIENT_HELLO: u8 = 1;
/// Length of the header of a TLS record, in bytes.
const RECORD_HEADER: usize = 5;

/// A received message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message<'a> {
    /// The low 7 bits of the epoch that it belongs to.
    pub(super) epoch: u8,
    pub(super) content: Content<'a>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content<'a> {
    /// TLS records, which are not checked. At least one byte.
    Records(&'a [u8]),
    ProtectionEstablished,
    /// A control message of a type that is not known.
    UnknownControl,
}

impl Message<'_> {
    /// Reads a message. `None` if it is too short.
    pub(super) fn read(bytes: &[u8]) -> Option<Message<'_>> {
        let (&first, payload) = bytes.split_first()?;
        let &kind = payload.first()?;
        let content = match (first & CONTROL != 0, kind) {
            (false, _) => Content::Records(payload),
            (true, PROTECTION_ESTABLISHED) => Content::ProtectionEstablished,
            (true, _) => Content::UnknownControl,
        };
        Some(Message { epoch: first & !CONTROL, content })
    }
}

/// The bits of an epoch that a message has.
pub(super) fn epoch_bits(epoch: u64) -> u8 {
    (epoch & 0x7f) as u8
}

/// A message with TLS records.
pub(super) fn records(epoch: u64, records: &[u8]) -> Bytes {
    let mut message = BytesMut::with_capacity(1 + records.len());
    message.put_u8(epoch_bits(epoch));
    message.put_slice(records);
    message.freeze()
}

/// The message "Protection Established".
pub(super) fn protection_established(epoch: u64) -> Bytes {
    Bytes::copy_from_slice(&[CONTROL | epoch_bits(epoch), PROTECTION_ESTABLISHED])
}

/// Tells if TLS records begin with a ClientHello.
pub(super) fn is_client_hello(records: &[u8]) -> bool {
    records.first() == Some(&HANDSHAKE_RECORD) && records.get(RECORD_HEADER) == Some(&CLIENT_HELLO)
}
