//! The state cookie (RFC 9260 §5.1.3): what a server would have to remember, signed and given to
//! the client instead.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use hmac::{Hmac, KeyInit, Mac};
use manypath_wire::{DtlsKeyManagement, Tsn};
use sha2::Sha256;

use super::agreed::Extensions;
use crate::auth::{AuthParameters, RANDOM_LEN, get_random};
use crate::datagram::AddressPair;
use crate::rng::Rng;
use crate::time::Instant;

/// Bytes of HMAC-SHA-256 that a cookie carries: 128 bits, to keep INIT ACK small.
const MAC_LEN: usize = 16;
/// Bytes of a key: the block size of SHA-256.
const KEY_LEN: usize = 64;
/// How long a key signs cookies; the key before it still verifies for as long again.
const KEY_LIFE: Duration = Duration::from_secs(3600);
/// Addresses of the peer that a cookie holds at most.
pub(crate) const MAX_ADDRESSES: usize = 32;

/// The state from which the association is made, once the cookie comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cookie {
    pub(crate) created: Instant,
    pub(crate) life: Duration,
    pub(crate) local_tag: u32,
    pub(crate) peer_tag: u32,
    pub(crate) local_tsn: Tsn,
    pub(crate) peer_tsn: Tsn,
    pub(crate) peer_rwnd: u32,
    pub(crate) streams_out: u16,
    pub(crate) streams_in: u16,
    /// The extensions that the peer announced.
    pub(crate) extensions: Extensions,
    /// The tags of an association that existed when the cookie was made, or 0 (§5.2.2).
    pub(crate) tie_local: u32,
    pub(crate) tie_peer: u32,
    pub(crate) local_port: u16,
    pub(crate) peer_port: u16,
    /// The local address at which the INIT arrived.
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    /// The addresses the peer listed.
    pub(crate) addresses: Vec<IpAddr>,
    /// If the association is to be protected.
    pub(crate) key_management: Option<Offers>,
    /// If its chunks are to be authenticated. That excludes `key_management`.
    pub(crate) authentication: Option<AuthOffers>,
}

/// Marks an address that is followed by the number of its interface. Addresses without one begin
/// with 4 or 6.
const OF_INTERFACE: u8 = 0;

/// The DTLS Key Management parameters of both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offers {
    pub(crate) own: DtlsKeyManagement,
    pub(crate) peers: DtlsKeyManagement,
}

/// The parameters of authentication of both ends (RFC 4895 §6.3). Keys that both share beforehand
/// are never in a cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuthOffers {
    /// Our random number. Our lists are those of the configuration.
    pub(crate) own: [u8; RANDOM_LEN],
    pub(crate) peers: AuthParameters,
}

/// A cookie that was not made by this endpoint, or is damaged: dropped without an answer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct InvalidCookie;

/// The keys that sign cookies.
#[derive(Debug)]
pub(crate) struct CookieKeys {
    rng: Rng,
    current: [u8; KEY_LEN],
    previous: [u8; KEY_LEN],
    since: Instant,
}

impl CookieKeys {
    pub(crate) fn new(mut rng: Rng) -> CookieKeys {
        let mut keys = CookieKeys {
            current: [0; KEY_LEN],
            previous: [0; KEY_LEN],
            since: Instant::ZERO,
            rng: rng.clone(),
        };
        rng.fill(&mut keys.current);
        rng.fill(&mut keys.previous);
        keys.rng = rng;
        keys
    }

    /// The cookie's bytes, signed.
    pub(crate) fn seal(&mut self, cookie: &Cookie, now: Instant) -> Bytes {
        if now - self.since >= KEY_LIFE {
            self.previous = self.current;
            self.rng.fill(&mut self.current);
            self.since = now;
        }
        let mut out = Vec::with_capacity(128);
        cookie.encode(&mut out);
        let mac = mac(&self.current, &out);
        out.put_slice(&mac);
        out.into()
    }

    /// The cookie behind the bytes, if this endpoint made them.
    pub(crate) fn open(&self, mut bytes: Bytes) -> Result<Cookie, InvalidCookie> {
        if bytes.len() < MAC_LEN {
            return Err(InvalidCookie);
        }
        let signature = bytes.split_off(bytes.len() - MAC_LEN);
        if !verify(&self.current, &bytes, &signature) && !verify(&self.previous, &bytes, &signature)
        {
            return Err(InvalidCookie);
        }
        Cookie::decode(bytes).ok_or(InvalidCookie)
    }
}

fn hmac(key: &[u8; KEY_LEN], bytes: &[u8]) -> Hmac<Sha256> {
    let mut mac = <Hmac<Sha256> as KeyInit>::new(key.into());
    mac.update(bytes);
    mac
}

fn mac(key: &[u8; KEY_LEN], bytes: &[u8]) -> [u8; MAC_LEN] {
    let full = hmac(key, bytes).finalize().into_bytes();
    std::array::from_fn(|i| full[i])
}

/// Compares in constant time.
fn verify(key: &[u8; KEY_LEN], bytes: &[u8], signature: &[u8]) -> bool {
    hmac(key, bytes).verify_truncated_left(signature).is_ok()
}

impl Cookie {
    /// The address pair of the INIT, as this end sees it.
    pub(super) fn pair(&self) -> AddressPair {
        AddressPair { local: self.local, remote: self.remote }
    }

    /// For how long the cookie has been out of date, if it is.
    pub(crate) fn stale_by(&self, now: Instant) -> Option<Duration> {
        (now - self.created).checked_sub(self.life).filter(|over| !over.is_zero())
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.created.as_nanos());
        out.put_u32(u32::try_from(self.life.as_millis()).unwrap_or(u32::MAX));
        for n in [self.local_tag, self.peer_tag, self.local_tsn.0, self.peer_tsn.0, self.peer_rwnd]
        {
            out.put_u32(n);
        }
        out.put_u16(self.streams_out);
        out.put_u16(self.streams_in);
        let authentication = self.authentication.is_some();
        out.put_u16(Extensions { authentication, ..self.extensions }.to_bits());
        out.put_u32(self.tie_local);
        out.put_u32(self.tie_peer);
        out.put_u16(self.local_port);
        out.put_u16(self.peer_port);
        for address in [self.local, self.remote] {
            put_address(out, address);
        }
        let count = self.addresses.len().min(MAX_ADDRESSES);
        out.put_u8(count as u8);
        for &address in &self.addresses[..count] {
            put_ip(out, address);
        }
        for offer in self.key_management.iter().flat_map(|both| [&both.own, &both.peers]) {
            // An offer has at most 264 bytes.
            out.put_u16(offer.raw().len() as u16);
            out.put_slice(offer.raw());
        }
        if let Some(both) = &self.authentication {
            out.put_slice(&both.own);
            both.peers.put(out);
        }
    }

    /// Reads what `encode` wrote; `None` if it is anything else.
    fn decode(mut b: Bytes) -> Option<Cookie> {
        let mut cookie = Cookie {
            created: Instant::from_nanos(b.try_get_u64().ok()?),
            life: Duration::from_millis(b.try_get_u32().ok()?.into()),
            local_tag: b.try_get_u32().ok()?,
            peer_tag: b.try_get_u32().ok()?,
            local_tsn: Tsn(b.try_get_u32().ok()?),
            peer_tsn: Tsn(b.try_get_u32().ok()?),
            peer_rwnd: b.try_get_u32().ok()?,
            streams_out: b.try_get_u16().ok()?,
            streams_in: b.try_get_u16().ok()?,
            extensions: Extensions::from_bits(b.try_get_u16().ok()?),
            tie_local: b.try_get_u32().ok()?,
            tie_peer: b.try_get_u32().ok()?,
            local_port: b.try_get_u16().ok()?,
            peer_port: b.try_get_u16().ok()?,
            local: get_address(&mut b)?,
            remote: get_address(&mut b)?,
            addresses: {
                let count = usize::from(b.try_get_u8().ok()?).min(MAX_ADDRESSES);
                (0..count).map(|_| get_ip(&mut b)).collect::<Option<_>>()?
            },
            key_management: None,
            authentication: None,
        };
        if cookie.extensions.authentication {
            let own = get_random(&mut b)?;
            let peers = AuthParameters::get(&mut b)?;
            cookie.authentication = Some(AuthOffers { own, peers });
        } else if b.has_remaining() {
            let (own, peers) = (get_offer(&mut b)?, get_offer(&mut b)?);
            cookie.key_management = Some(Offers { own, peers });
        }
        Some(cookie)
    }
}

/// Writes an address. A link-local IPv6 address keeps its interface number, because nothing can be
/// sent to it without.
fn put_address(out: &mut Vec<u8>, address: SocketAddr) {
    match address {
        SocketAddr::V6(of_interface) if of_interface.scope_id() != 0 => {
            out.put_u8(OF_INTERFACE);
            out.put_u32(of_interface.scope_id());
        }
        _ => {}
    }
    put_ip(out, address.ip());
    out.put_u16(address.port());
}

fn get_address(b: &mut Bytes) -> Option<SocketAddr> {
    let scope = match b.first() {
        Some(&OF_INTERFACE) => {
            b.advance(1);
            b.try_get_u32().ok()?
        }
        _ => 0,
    };
    let mut address = SocketAddr::new(get_ip(b)?, b.try_get_u16().ok()?);
    if let SocketAddr::V6(of_interface) = &mut address {
        of_interface.set_scope_id(scope);
    }
    Some(address)
}

fn put_ip(out: &mut Vec<u8>, ip: IpAddr) {
    match ip {
        IpAddr::V4(ip) => {
            out.put_u8(4);
            out.put_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            out.put_u8(6);
            out.put_slice(&ip.octets());
        }
    }
}

fn get_ip(b: &mut Bytes) -> Option<IpAddr> {
    match b.try_get_u8().ok()? {
        4 => Some(Ipv4Addr::from_bits(b.try_get_u32().ok()?).into()),
        6 => Some(Ipv6Addr::from_bits(b.try_get_u128().ok()?).into()),
        _ => None,
    }
}

fn get_offer(b: &mut Bytes) -> Option<DtlsKeyManagement> {
    let len = usize::from(b.try_get_u16().ok()?);
    DtlsKeyManagement::from_raw((b.len() >= len).then(|| b.split_to(len))?)
}

#[cfg(test)]
mod tests {
    use manypath_wire::DtlsKeyManagementFlags;
    use proptest::prelude::*;

    use super::*;
    use crate::rng::Rng;
    use std::net::SocketAddrV6;

    fn cookie() -> Cookie {
        Cookie {
            created: Instant::from_millis(5),
            life: Duration::from_secs(60),
            local_tag: 1,
            peer_tag: 2,
            local_tsn: Tsn(3),
            peer_tsn: Tsn(u32::MAX),
            peer_rwnd: 65_536,
            streams_out: 10,
            streams_in: 11,
            extensions: Extensions {
                timestamp: true,
                sack_path: true,
                nr_sack: true,
                interleaving: true,
                rare_sacks: true,
                candidates: true,
                partial_reliability: true,
                zero_checksum: true,
                ecn: true,
                reconfiguration: true,
                authentication: false,
                address_reconfiguration: true,
            },
            tie_local: 0,
            tie_peer: 9,
            local_port: 9899,
            peer_port: 5000,
            local: "192.0.2.1:9899".parse().expect("an address"),
            remote: "[2001:db8::1]:40000".parse().expect("an address"),
            addresses: vec![[192, 0, 2, 7].into(), [198, 51, 100, 7].into()],
            key_management: None,
            authentication: None,
        }
    }

    fn offer(tie_breaker: u32, methods: &[u8]) -> DtlsKeyManagement {
        DtlsKeyManagement::new(tie_breaker, DtlsKeyManagementFlags::CLIENT, methods)
            .expect("a method")
    }

    #[test]
    fn a_cookie_comes_back_as_it_was() {
        let mut keys = CookieKeys::new(Rng::from_number(1));
        let sealed = keys.seal(&cookie(), Instant::ZERO);
        assert_eq!(keys.open(sealed), Ok(cookie()));
        let both = Offers { own: offer(7, &[0]), peers: offer(8, &(0..255).collect::<Vec<_>>()) };
        let protected = Cookie { key_management: Some(both), ..cookie() };
        let sealed = keys.seal(&protected, Instant::ZERO);
        assert_eq!(keys.open(sealed), Ok(protected));
    }

    #[test]
    fn a_cookie_keeps_the_parameters_of_authentication() {
        let mut keys = CookieKeys::new(Rng::from_number(1));
        for chunks in [crate::params::ChunkTypes::NONE, crate::params::ChunkTypes::of(&[0, 3])] {
            let peers = AuthParameters::own([2; RANDOM_LEN], chunks);
            let authentication = Some(AuthOffers { own: [1; RANDOM_LEN], peers });
            let extensions = Extensions { authentication: true, ..cookie().extensions };
            let cookie = Cookie { authentication, extensions, ..cookie() };
            let sealed = keys.seal(&cookie, Instant::ZERO);
            assert_eq!(keys.open(sealed), Ok(cookie), "RFC 4895 §6.3");
        }
    }

    fn any_offer() -> impl Strategy<Value = DtlsKeyManagement> {
        let methods = prop::collection::vec(any::<u8>(), 1..=DtlsKeyManagement::MAX_METHODS);
        (any::<u32>(), any::<u8>(), methods).prop_map(|(tie_breaker, flags, methods)| {
            DtlsKeyManagement::new(tie_breaker, DtlsKeyManagementFlags(flags), &methods)
                .expect("a method")
        })
    }

    proptest! {
        #[test]
        fn a_cookie_comes_back_with_both_parameters(
            both in prop::option::of((any_offer(), any_offer())),
            addresses in prop::collection::vec(any::<IpAddr>(), 0..=MAX_ADDRESSES),
            tags in any::<[u32; 4]>(),
            ends in any::<[(IpAddr, u16, u32); 2]>(),
        ) {
            let [local, remote] = ends.map(|(ip, port, scope)| match ip {
                IpAddr::V4(ip) => SocketAddr::from((ip, port)),
                IpAddr::V6(ip) => SocketAddrV6::new(ip, port, 0, scope).into(),
            });
            let [local_tag, peer_tag, tie_local, tie_peer] = tags;
            let key_management = both.map(|(own, peers)| Offers { own, peers });
            let cookie = Cookie {
                local_tag,
                peer_tag,
                tie_local,
                tie_peer,
                local,
                remote,
                addresses,
                key_management,
                ..cookie()
            };
            let mut keys = CookieKeys::new(Rng::from_number(1));
            let sealed = keys.seal(&cookie, Instant::ZERO);
            prop_assert_eq!(keys.open(sealed), Ok(cookie));
        }

        #[test]
        fn bytes_that_are_no_cookie_decode_to_none_or_to_one_that_encodes(
            bytes in prop::collection::vec(any::<u8>(), 0..700),
        ) {
            if let Some(cookie) = Cookie::decode(bytes.into()) {
                cookie.encode(&mut Vec::new());
            }
        }
    }

    #[test]
    fn a_changed_or_foreign_cookie_is_refused() {
        let mut keys = CookieKeys::new(Rng::from_number(1));
        let sealed = keys.seal(&cookie(), Instant::ZERO);
        for at in 0..sealed.len() {
            let mut changed = sealed.to_vec();
            changed[at] ^= 1;
            assert_eq!(keys.open(changed.into()), Err(InvalidCookie), "{at}");
            let cut = sealed.slice(..at);
            assert_eq!(keys.open(cut), Err(InvalidCookie), "cut at {at}");
        }
        let other = CookieKeys::new(Rng::from_number(2));
        assert_eq!(other.open(sealed), Err(InvalidCookie));
    }

    #[test]
    fn a_cookie_expires_and_says_for_how_long() {
        let made = Instant::from_millis(5);
        assert_eq!(cookie().stale_by(made + Duration::from_secs(60)), None);
        let over = cookie().stale_by(made + Duration::from_secs(61));
        assert_eq!(over, Some(Duration::from_secs(1)), "RFC 9260 §5.1.5, item 4");
    }

    #[test]
    fn keys_change_and_the_last_one_still_verifies() {
        let mut keys = CookieKeys::new(Rng::from_number(1));
        let long = Cookie { life: Duration::from_secs(100_000), ..cookie() };
        let first = keys.seal(&long, Instant::ZERO);
        let mut now = Instant::ZERO + KEY_LIFE;
        keys.seal(&long, now);
        assert!(keys.open(first.clone()).is_ok());
        now += KEY_LIFE;
        keys.seal(&long, now);
        assert_eq!(keys.open(first), Err(InvalidCookie));
    }
}
