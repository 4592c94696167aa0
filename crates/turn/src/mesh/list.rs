//! Lists of relays in messages.
//!
//! An entry has a byte for the family (1: IPv4, 2: IPv6), the address, the port (2 bytes), the
//! round-trip time from the relay that lists it in microseconds (4 bytes; 0: not known), and the
//! fraction of requests that it lost in thousandths (2 bytes).

use std::net::SocketAddr;
use std::time::Duration;

use turn_types::stun::attribute::{AttributeType, RawAttribute};
use turn_types::stun::message::Message;

use super::MeshRelay;
use crate::bytes::{push_ip, take, take_ip};

/// The attribute with the list, which others need not understand.
const RELAYS: AttributeType = AttributeType::new(0xd1a1);
/// Relays of a list at most, so that a message stays below 1200 bytes.
const LISTED_MAX: usize = 32;

/// A relay that another one lists.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Listed {
    /// The UDP address.
    pub address: SocketAddr,
    /// The round-trip time between the two, if it is known.
    pub rtt: Option<Duration>,
    /// Fraction of requests lost between the two.
    pub loss: f64,
}

/// The attribute with these relays.
pub(crate) fn relays_attribute(relays: impl Iterator<Item = MeshRelay>) -> RawAttribute<'static> {
    let mut bytes = Vec::new();
    for relay in relays.take(LISTED_MAX) {
        push_ip(&mut bytes, relay.address.ip());
        bytes.extend(relay.address.port().to_be_bytes());
        let micros = relay.rtt.map_or(0, |rtt| rtt.as_micros().max(1));
        bytes.extend(u32::try_from(micros).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend(((relay.loss * 1000.0).round() as u16).to_be_bytes());
    }
    RawAttribute::new_owned(RELAYS, bytes.into())
}

/// The relays that a message lists, as far as they can be read.
pub(crate) fn listed(message: &Message<'_>) -> Vec<Listed> {
    let Some(attribute) = message.raw_attribute(RELAYS) else { return Vec::new() };
    let mut rest: &[u8] = &attribute.value;
    std::iter::from_fn(|| entry(&mut rest)).take(LISTED_MAX).collect()
}

fn entry(rest: &mut &[u8]) -> Option<Listed> {
    let [family] = *take(rest)?;
    let ip = take_ip(family, rest)?;
    let port = u16::from_be_bytes(*take(rest)?);
    let micros = u32::from_be_bytes(*take(rest)?);
    let loss = u16::from_be_bytes(*take(rest)?).min(1000);
    let rtt = (micros > 0).then(|| Duration::from_micros(micros.into()));
    Some(Listed { address: SocketAddr::new(ip, port), rtt, loss: f64::from(loss) / 1000.0 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use turn_types::stun::message::{MessageClass, MessageType, MessageWriteVec, TransactionId};
    use turn_types::stun::prelude::*;

    use super::*;
    use crate::mesh::OVERLAY;
    use crate::message::add;

    fn read(attribute: &RawAttribute<'_>) -> Vec<Listed> {
        let kind = MessageType::from_class_method(MessageClass::Success, OVERLAY);
        let id = TransactionId::generate();
        let mut message = Message::builder(kind, id, MessageWriteVec::new());
        add(&mut message, attribute);
        let bytes = message.finish();
        listed(&Message::from_bytes(&bytes).unwrap())
    }

    fn relay(address: &str, micros: Option<u64>, loss: f64) -> MeshRelay {
        let rtt = micros.map(Duration::from_micros);
        MeshRelay { address: address.parse().unwrap(), is_alive: true, rtt, loss }
    }

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let relays = [
            relay("192.0.2.1:3478", Some(1234), 0.25),
            relay("[2001:db8::1]:65535", None, 1.0),
            relay("[2001:db8::2]:1", Some(u64::MAX / 2), 0.0),
        ];
        let read = read(&relays_attribute(relays.into_iter()));
        let longest = Some(Duration::from_micros(u32::MAX.into()));
        let rtts = [relays[0].rtt, None, longest];
        assert_eq!(read.len(), relays.len());
        for ((read, written), rtt) in read.iter().zip(relays).zip(rtts) {
            assert_eq!((read.address, read.rtt, read.loss), (written.address, rtt, written.loss));
        }
    }

    #[test]
    fn no_more_relays_are_written_or_read_than_a_message_holds() {
        let many = std::iter::repeat_n(relay("[2001:db8::1]:3478", Some(1), 0.0), 100);
        let attribute = relays_attribute(many);
        assert_eq!(read(&attribute).len(), LISTED_MAX);
        assert!(attribute.value.len() <= 1000, "{}", attribute.value.len());
        let twice = attribute.value.repeat(2);
        assert_eq!(read(&RawAttribute::new(RELAYS, &twice)).len(), LISTED_MAX);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..1400)) {
            for relay in read(&RawAttribute::new(RELAYS, &bytes)) {
                prop_assert!((0.0..=1.0).contains(&relay.loss));
            }
        }
    }
}
