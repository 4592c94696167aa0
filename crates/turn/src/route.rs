//! Routes from a relay to peers: an extension of TURN, ours.
//!
//! Nobody but the relay can trace the second half of a path through it. A client with an
//! allocation asks by the request TRACE, which names the peer in XOR-PEER-ADDRESS. The relay traces
//! the route, which takes seconds, and keeps it for a while. Its answer has the route in the
//! attribute ROUTE, or no such attribute while it traces, and then the client asks again. Other
//! relays answer with an error or not at all, and then nothing is known of their half.
//!
//! A ROUTE is a byte that is 1 if the peer answered, else 0, and the hops from the relay on: for
//! each the family (0: no answer, 1: IPv4, 2: IPv6), and if it answered its address and the
//! round-trip time from the relay in microseconds (4 bytes).

use std::net::IpAddr;
use std::time::Duration;

use turn_types::stun::attribute::{AttributeType, RawAttribute};
use turn_types::stun::message::{Message, Method};

use crate::bytes::{push_ip, take, take_ip};

/// The request for a route. RFC 8489 §18.2 assigns such numbers on review; this one is not.
pub(crate) const TRACE: Method = Method::new(0x0f1);
/// The attribute with a route, which others need not understand.
const ROUTE: AttributeType = AttributeType::new(0xd1a0);
/// Hops of a route at most.
const HOPS_MAX: usize = 32;

const SILENT: u8 = 0;

/// A router, or the peer, that answered.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RouteHop {
    /// The address it answered from.
    pub address: IpAddr,
    /// The round-trip time from the relay, to the microsecond.
    pub rtt: Duration,
}

/// The route from a relay to a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelayRoute {
    /// The hops from the first router on, at most 32; `None` is one that did not answer.
    pub hops: Vec<Option<RouteHop>>,
    /// The last hop is the peer.
    pub reached: bool,
}

impl RelayRoute {
    /// The attribute that holds it.
    pub(crate) fn attribute(&self) -> RawAttribute<'static> {
        let mut bytes = vec![u8::from(self.reached && self.hops.len() <= HOPS_MAX)];
        for hop in self.hops.iter().take(HOPS_MAX) {
            let Some(hop) = hop else {
                bytes.push(SILENT);
                continue;
            };
            push_ip(&mut bytes, hop.address);
            let micros = u32::try_from(hop.rtt.as_micros()).unwrap_or(u32::MAX);
            bytes.extend(micros.to_be_bytes());
        }
        RawAttribute::new_owned(ROUTE, bytes.into())
    }

    /// The route in a relay's answer. `None` if there is none, or not a whole one.
    pub(crate) fn of(answer: &Message<'_>) -> Option<RelayRoute> {
        let attribute = answer.raw_attribute(ROUTE)?;
        RelayRoute::read(&attribute.value)
    }

    fn read(bytes: &[u8]) -> Option<RelayRoute> {
        let (&reached, mut rest) = bytes.split_first()?;
        let mut hops = Vec::new();
        while let Some((&family, after)) = rest.split_first() {
            rest = after;
            let address = match family {
                SILENT => None,
                _ => Some(take_ip(family, &mut rest)?),
            };
            if hops.len() == HOPS_MAX {
                return None;
            }
            let Some(address) = address else {
                hops.push(None);
                continue;
            };
            let micros = u32::from_be_bytes(*take(&mut rest)?);
            let rtt = Duration::from_micros(micros.into());
            hops.push(Some(RouteHop { address, rtt }));
        }
        let reached = reached == 1 && hops.last().is_some_and(Option::is_some);
        Some(RelayRoute { hops, reached })
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;
    use turn_types::stun::message::MessageWriteVec;
    use turn_types::stun::prelude::*;

    use super::*;
    use crate::message::add;

    fn hop() -> impl Strategy<Value = Option<RouteHop>> {
        let address = prop_oneof![
            any::<Ipv4Addr>().prop_map(IpAddr::from),
            any::<Ipv6Addr>().prop_map(IpAddr::from)
        ];
        let hop = |(address, micros): (IpAddr, u32)| RouteHop {
            address,
            rtt: Duration::from_micros(micros.into()),
        };
        proptest::option::of((address, any::<u32>()).prop_map(hop))
    }

    proptest! {
        #[test]
        fn a_route_is_read_as_it_was_written(
            hops in proptest::collection::vec(hop(), 0..=HOPS_MAX),
            reached: bool,
        ) {
            let reached = reached && hops.last().is_some_and(Option::is_some);
            let route = RelayRoute { hops, reached };
            let mut message = Message::builder_request(TRACE, MessageWriteVec::new());
            add(&mut message, &route.attribute());
            let bytes = message.finish();
            prop_assert_eq!(RelayRoute::of(&Message::from_bytes(&bytes).unwrap()), Some(route));
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes: Vec<u8>) {
            if let Some(route) = RelayRoute::read(&bytes) {
                prop_assert!(route.hops.len() <= HOPS_MAX);
                prop_assert!(!route.reached || route.hops.last().unwrap().is_some());
            }
        }
    }

    #[test]
    fn of_too_long_a_route_the_first_hops_are_told() {
        let hop = RouteHop { address: [192, 0, 2, 1].into(), rtt: Duration::from_millis(3) };
        let long = RelayRoute { hops: vec![Some(hop); 40], reached: true };
        let told = RelayRoute::read(&long.attribute().value).unwrap();
        assert_eq!((told.hops.len(), told.reached), (HOPS_MAX, false));
    }
}
