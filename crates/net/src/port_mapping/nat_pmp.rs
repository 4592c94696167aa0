//! Messages of the NAT Port Mapping Protocol (RFC 6886).

use std::net::Ipv4Addr;

use super::pcp::{u16_at, u32_at};
use super::{MappedBy, NotMapped};

const VERSION: u8 = 0;
const RESPONSE: u8 = 0x80;
const ADDRESS: u8 = 0;
const MAP_UDP: u8 = 1;

/// Question for the router's external address, which makes no mapping (RFC 6886 §3.2).
pub(super) const ASK_ADDRESS: [u8; 2] = [VERSION, ADDRESS];

/// An answer or an announcement.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Address { ip: Ipv4Addr, epoch: u32 },
    Mapped { external: u16, lifetime: u32, epoch: u32 },
    Refused(u16),
}

/// Request for a mapping of the UDP port `internal`, for a lifetime in seconds; 0 deletes it (RFC
/// 6886 §3.3, §3.4).
pub(super) fn map(internal: u16, suggested: u16, lifetime: u32) -> Vec<u8> {
    let mut bytes = vec![VERSION, MAP_UDP, 0, 0];
    bytes.extend_from_slice(&internal.to_be_bytes());
    bytes.extend_from_slice(&suggested.to_be_bytes());
    bytes.extend_from_slice(&lifetime.to_be_bytes());
    bytes
}

/// The answer that a datagram is, to either request; `None` for one that is none, or is about
/// another port.
pub(super) fn read(bytes: &[u8], internal: u16) -> Option<Answer> {
    let &[VERSION, opcode, ..] = bytes else { return None };
    let (result, epoch) = (u16_at(bytes, 2)?, u32_at(bytes, 4)?);
    match opcode.checked_sub(RESPONSE)? {
        ADDRESS | MAP_UDP if result != 0 => Some(Answer::Refused(result)),
        ADDRESS => Some(Answer::Address { ip: u32_at(bytes, 8)?.into(), epoch }),
        MAP_UDP if u16_at(bytes, 8)? == internal => {
            let (external, lifetime) = (u16_at(bytes, 10)?, u32_at(bytes, 12)?);
            Some(Answer::Mapped { external, lifetime, epoch })
        }
        _ => None,
    }
}

/// The words for a result code (RFC 6886 §3.5).
pub(super) fn refusal(code: u16) -> NotMapped {
    let why = match code {
        2 => "not authorized",
        3 => "its own network is down",
        4 => "it has no room for another mapping",
        1 | 5 => "it maps no UDP ports",
        _ => "refused",
    };
    NotMapped::Refused { by: MappedBy::NatPmp, why, code }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_and_answers_are_those_of_the_rfc() {
        assert_eq!(map(9899, 9899, 7200), [0, 1, 0, 0, 38, 171, 38, 171, 0, 0, 28, 32]);
        let address = [0, 128, 0, 0, 0, 0, 0, 7, 203, 0, 113, 5];
        let ip = [203, 0, 113, 5].into();
        assert_eq!(read(&address, 9899), Some(Answer::Address { ip, epoch: 7 }));
        let mapped = [0, 129, 0, 0, 0, 0, 0, 7, 38, 171, 156, 64, 0, 0, 14, 16];
        let answer = Answer::Mapped { external: 40000, lifetime: 3600, epoch: 7 };
        assert_eq!(read(&mapped, 9899), Some(answer));
        assert_eq!(read(&mapped, 9898), None, "another port");
        assert_eq!(read(&[0, 129, 0, 2, 0, 0, 0, 7], 9899), Some(Answer::Refused(2)));
        for bytes in [&mapped[..15], &address[..11], &[1, 128, 0, 0, 0, 0, 0, 7, 1, 1, 1, 1]] {
            assert_eq!(read(bytes, 9899), None, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_arrives_breaks_it(random in prop::collection::vec(any::<u8>(), 0..20)) {
            let _ = read(&random, 9899);
        }
    }
}
