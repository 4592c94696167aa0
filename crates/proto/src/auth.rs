//! Authentication of chunks (RFC 4895): the keys that both ends share, the parameters of both ends,
//! and the HMACs that are made from these.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use bytes::{Buf, BufMut, Bytes};
use hmac::{Hmac, KeyInit as _, Mac as _};
use manypath_wire::{AUTH_HEADER_LEN, Auth, ErrorCause, PacketBuilder, Parameter, hmac_id};
use sha1::Sha1;
use sha2::Sha256;

use crate::params::ChunkTypes;

/// Length of a random number in bytes (RFC 4895 §3.1).
pub(crate) const RANDOM_LEN: usize = 32;

/// Most entries of a list of chunk types or algorithms that are taken from a peer.
const LIST_MAX: usize = 256;

/// An error of a command about the keys of authentication.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthKeyError {
    /// This end does not authenticate chunks (`authentication`), or protects its packets instead.
    #[error("this end authenticates no chunks (authentication)")]
    NotSupported,
    /// There is no key with this number.
    #[error("there is no key {number}")]
    NoSuchKey {
        /// The number.
        number: u16,
    },
    /// The key authenticates what is sent. Another one must do so first.
    #[error("key {number} is in use; activate another one first")]
    Active {
        /// The number.
        number: u16,
    },
    /// The key was deactivated.
    #[error("key {number} was deactivated")]
    Deactivated {
        /// The number.
        number: u16,
    },
    /// The secret is too long.
    #[error("a key has at most {limit} bytes")]
    TooLong {
        /// Most bytes.
        limit: usize,
    },
    /// There are as many keys as may be.
    #[error("there are {limit} keys already")]
    TooMany {
        /// Most keys.
        limit: usize,
    },
}

/// The endpoint pair shared keys of RFC 4895 §6.1, by number. The active one authenticates what is
/// sent. All that are there authenticate what the peer sends.
///
/// In the beginning there is key 0, which is empty and active. Whoever sees the handshake can
/// authenticate with an empty key, so an end that has another one [removes](Self::remove) it.
#[derive(Clone)]
pub struct AuthKeys {
    keys: BTreeMap<u16, SharedKey>,
    active: u16,
}

#[derive(Clone)]
struct SharedKey {
    secret: Bytes,
    is_deactivated: bool,
}

impl AuthKeys {
    /// Most keys.
    pub const MAX: usize = 64;
    /// Most bytes of a key.
    pub const MAX_LEN: usize = 1 << 16;

    /// Adds a key, or replaces the one with that number.
    ///
    /// # Errors
    /// If the key is too long, or there are [`MAX`](Self::MAX) others.
    pub fn set(&mut self, number: u16, secret: impl Into<Bytes>) -> Result<(), AuthKeyError> {
        let secret = secret.into();
        if secret.len() > Self::MAX_LEN {
            return Err(AuthKeyError::TooLong { limit: Self::MAX_LEN });
        }
        if self.keys.len() >= Self::MAX && !self.keys.contains_key(&number) {
            return Err(AuthKeyError::TooMany { limit: Self::MAX });
        }
        self.keys.insert(number, SharedKey { secret, is_deactivated: false });
        Ok(())
    }

    /// Authenticates with this key what is sent from now on (RFC 6458 §8.1.18).
    ///
    /// # Errors
    /// If there is no such key, or it was deactivated.
    pub fn activate(&mut self, number: u16) -> Result<(), AuthKeyError> {
        if self.get(number)?.is_deactivated {
            return Err(AuthKeyError::Deactivated { number });
        }
        self.active = number;
        Ok(())
    }

    /// Excludes a key from authenticating what is sent. It still counts in what the peer sends (RFC
    /// 6458 §8.3.4).
    ///
    /// # Errors
    /// If there is no such key, or it is the active one.
    pub fn deactivate(&mut self, number: u16) -> Result<(), AuthKeyError> {
        self.get(number)?;
        if number == self.active {
            return Err(AuthKeyError::Active { number });
        }
        if let Some(key) = self.keys.get_mut(&number) {
            key.is_deactivated = true;
        }
        Ok(())
    }

    /// Removes a key: what the peer authenticates with it is discarded (RFC 6458 §8.3.5).
    ///
    /// # Errors
    /// If there is no such key, or it is the active one.
    pub fn remove(&mut self, number: u16) -> Result<(), AuthKeyError> {
        self.get(number)?;
        if number == self.active {
            return Err(AuthKeyError::Active { number });
        }
        self.keys.remove(&number);
        Ok(())
    }

    /// The number of the active key.
    pub fn active(&self) -> u16 {
        self.active
    }

    /// The numbers of all keys.
    pub fn numbers(&self) -> impl Iterator<Item = u16> + '_ {
        self.keys.keys().copied()
    }

    /// The numbers of the keys that were deactivated.
    pub(crate) fn deactivated(&self) -> impl Iterator<Item = u16> + '_ {
        self.keys.iter().filter(|(_, key)| key.is_deactivated).map(|(number, _)| *number)
    }

    fn get(&self, number: u16) -> Result<&SharedKey, AuthKeyError> {
        self.keys.get(&number).ok_or(AuthKeyError::NoSuchKey { number })
    }
}

impl Default for AuthKeys {
    /// The empty key 0.
    fn default() -> AuthKeys {
        let empty = SharedKey { secret: Bytes::new(), is_deactivated: false };
        AuthKeys { keys: BTreeMap::from([(0, empty)]), active: 0 }
    }
}

impl fmt::Debug for AuthKeys {
    /// Shows no secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<u16> = self.numbers().collect();
        f.debug_struct("AuthKeys")
            .field("numbers", &numbers)
            .field("active", &self.active)
            .finish_non_exhaustive()
    }
}

/// The parameters of one end (RFC 4895 §3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuthParameters {
    random: [u8; RANDOM_LEN],
    /// The chunk types that the end takes only if they are authenticated, if it has sent a list.
    chunks: Option<Bytes>,
    /// The algorithms that the end takes, the preferred first.
    algorithms: Vec<u16>,
}

impl AuthParameters {
    /// The parameters of this end.
    pub(crate) fn own(random: [u8; RANDOM_LEN], chunks: ChunkTypes) -> AuthParameters {
        let chunks: Bytes = chunks.iter().collect();
        AuthParameters {
            random,
            chunks: Some(chunks).filter(|chunks| !chunks.is_empty()),
            algorithms: vec![hmac_id::SHA_256, hmac_id::SHA_1],
        }
    }

    /// The parameters in the order in which keys are made of them.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = Parameter> + '_ {
        let random = Parameter::Random(Bytes::copy_from_slice(&self.random));
        let algorithms = Parameter::HmacAlgorithms(self.algorithms.clone());
        let chunks = self.chunks.clone().map(Parameter::AuthenticatedChunks);
        [Some(random), chunks, Some(algorithms)].into_iter().flatten()
    }

    /// The key vector: all parameters, without padding (RFC 4895 §6.1).
    fn vector(&self) -> Vec<u8> {
        let mut vector = Vec::new();
        self.parameters().for_each(|parameter| parameter.encode(&mut vector));
        vector
    }

    /// The algorithm that the end prefers among those known here.
    fn algorithm(&self) -> Option<Algorithm> {
        self.algorithms.iter().find_map(|id| Algorithm::of(*id))
    }

    /// Writes the parameters into a cookie.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.put_slice(&self.random);
        let chunks = self.chunks.as_deref();
        // Lists are limited when they are read.
        out.put_u16(chunks.map_or(u16::MAX, |chunks| chunks.len() as u16));
        out.put_slice(chunks.unwrap_or_default());
        out.put_u16(self.algorithms.len() as u16);
        self.algorithms.iter().for_each(|id| out.put_u16(*id));
    }

    /// Reads what [`put`](Self::put) wrote.
    pub(crate) fn get(b: &mut Bytes) -> Option<AuthParameters> {
        let random = get_random(b)?;
        let chunks = match b.try_get_u16().ok()? {
            u16::MAX => None,
            len => {
                let len = usize::from(len);
                Some((b.len() >= len).then(|| b.split_to(len))?)
            }
        };
        let count = usize::from(b.try_get_u16().ok()?).min(LIST_MAX);
        let algorithms = (0..count).map(|_| b.try_get_u16().ok()).collect::<Option<_>>()?;
        Some(AuthParameters { random, chunks, algorithms })
    }
}

/// Reads a random number from a cookie.
pub(crate) fn get_random(b: &mut Bytes) -> Option<[u8; RANDOM_LEN]> {
    let mut random = [0; RANDOM_LEN];
    b.try_copy_to_slice(&mut random).ok()?;
    Some(random)
}

/// The parameters of an INIT or INIT ACK, as they came. Of repeated ones the first counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuthOffer {
    random: Option<Bytes>,
    chunks: Option<Bytes>,
    algorithms: Option<Vec<u16>>,
}

impl AuthOffer {
    /// Takes a parameter, if it is one of these.
    pub(crate) fn note(&mut self, parameter: Parameter) {
        match parameter {
            Parameter::Random(random) => _ = self.random.get_or_insert(random),
            Parameter::AuthenticatedChunks(chunks) => _ = self.chunks.get_or_insert(chunks),
            Parameter::HmacAlgorithms(ids) => _ = self.algorithms.get_or_insert(ids),
            _ => {}
        }
    }

    /// The parameters; `None` if the end does not authenticate, or by no algorithm that is known
    /// here.
    ///
    /// # Errors
    /// If the random number has a wrong length (RFC 4895 §6.1): the cause for an ABORT.
    pub(crate) fn read(&self) -> Result<Option<AuthParameters>, ErrorCause> {
        let Some(random) = &self.random else { return Ok(None) };
        let Ok(random) = <[u8; RANDOM_LEN]>::try_from(&random[..]) else {
            let text = Bytes::from_static(b"a random number that has not 32 bytes");
            return Err(ErrorCause::ProtocolViolation(text));
        };
        let Some(algorithms) = self.algorithms.clone() else { return Ok(None) };
        let chunks = self.chunks.as_deref().map(Bytes::copy_from_slice);
        let is_long = |len: usize| len > LIST_MAX;
        if is_long(algorithms.len()) || is_long(chunks.as_ref().map_or(0, Bytes::len)) {
            return Ok(None);
        }
        let offer = AuthParameters { random, chunks, algorithms };
        Ok(offer.algorithm().is_some().then_some(offer))
    }
}

/// An HMAC algorithm.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Algorithm {
    Sha1,
    Sha256,
}

impl Algorithm {
    fn of(id: u16) -> Option<Algorithm> {
        match id {
            hmac_id::SHA_1 => Some(Algorithm::Sha1),
            hmac_id::SHA_256 => Some(Algorithm::Sha256),
            _ => None,
        }
    }

    const fn id(self) -> u16 {
        match self {
            Algorithm::Sha1 => hmac_id::SHA_1,
            Algorithm::Sha256 => hmac_id::SHA_256,
        }
    }

    /// Bytes of an HMAC.
    const fn len(self) -> usize {
        match self {
            Algorithm::Sha1 => 20,
            Algorithm::Sha256 => 32,
        }
    }
}

/// An HMAC that has taken in its key.
#[derive(Clone)]
enum Keyed {
    Sha1(hmac_0_12::Hmac<Sha1>),
    Sha256(Hmac<Sha256>),
}

impl Keyed {
    /// `None` does not happen: keys of HMACs may have any length.
    fn new(algorithm: Algorithm, key: &[u8]) -> Option<Keyed> {
        match algorithm {
            Algorithm::Sha1 => {
                let keyed = <hmac_0_12::Hmac<Sha1> as hmac_0_12::Mac>::new_from_slice(key);
                keyed.ok().map(Keyed::Sha1)
            }
            Algorithm::Sha256 => {
                let keyed = Hmac::<Sha256>::new_from_slice(key);
                keyed.ok().map(Keyed::Sha256)
            }
        }
    }

    /// Writes the HMAC over an AUTH chunk and all behind it into that chunk, where zeros are.
    fn sign(&self, tail: &mut [u8]) {
        match self.clone() {
            Keyed::Sha1(mut hmac) => {
                hmac_0_12::Mac::update(&mut hmac, tail);
                let hmac = hmac_0_12::Mac::finalize(hmac).into_bytes();
                put_hmac(tail, &hmac);
            }
            Keyed::Sha256(mut hmac) => {
                hmac.update(tail);
                put_hmac(tail, &hmac.finalize().into_bytes());
            }
        }
    }

    /// True if the HMAC of an AUTH chunk is right. The time it takes does not tell how much of it
    /// is.
    fn verify(&self, auth: &Auth, rest: &[u8]) -> bool {
        let zeroed = auth.zeroed();
        match self.clone() {
            Keyed::Sha1(mut hmac) => {
                hmac_0_12::Mac::update(&mut hmac, &zeroed);
                hmac_0_12::Mac::update(&mut hmac, rest);
                hmac_0_12::Mac::verify_slice(hmac, &auth.hmac).is_ok()
            }
            Keyed::Sha256(mut hmac) => {
                hmac.update(&zeroed);
                hmac.update(rest);
                hmac.verify_slice(&auth.hmac).is_ok()
            }
        }
    }
}

fn put_hmac(tail: &mut [u8], hmac: &[u8]) {
    let place = tail.iter_mut().skip(AUTH_HEADER_LEN);
    place.zip(hmac).for_each(|(place, byte)| *place = *byte);
}

/// The verdict on an AUTH chunk.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is the peer's, and so is what follows.
    Right,
    /// This end has not asked for the algorithm.
    UnknownAlgorithm,
    /// The key is not known, or the HMAC is wrong.
    Wrong,
}

/// The agreement of both ends: their key vectors, and the wishes of the peer.
pub(crate) struct Agreement {
    /// Both key vectors, the smaller one first.
    vectors: Vec<u8>,
    /// The chunk types that the peer takes only if they are authenticated.
    wanted: ChunkTypes,
    /// The algorithm for what is sent.
    algorithm: Algorithm,
    /// HMACs in use, by the number of their key.
    keyed: Vec<(u16, Algorithm, Keyed)>,
}

impl fmt::Debug for Agreement {
    /// Shows no keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agreement")
            .field("wanted", &self.wanted)
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

impl Agreement {
    /// `None` if the peer takes no algorithm that is known here.
    pub(crate) fn new(own: &AuthParameters, peers: &AuthParameters) -> Option<Agreement> {
        let (own, theirs) = (own.vector(), peers.vector());
        let vectors = match compare(&own, &theirs) {
            Ordering::Greater => [theirs, own].concat(),
            _ => [own, theirs].concat(),
        };
        Some(Agreement {
            vectors,
            wanted: ChunkTypes::of(peers.chunks.as_deref().unwrap_or_default()),
            algorithm: peers.algorithm()?,
            keyed: Vec::new(),
        })
    }

    /// The chunk types that the peer takes only if they are authenticated.
    pub(crate) fn wanted(&self) -> ChunkTypes {
        self.wanted
    }

    /// Bytes of an AUTH chunk that is sent.
    pub(crate) fn chunk_len(&self) -> usize {
        AUTH_HEADER_LEN + self.algorithm.len()
    }

    /// Takes note that keys have changed.
    pub(crate) fn keys_changed(&mut self) {
        self.keyed.clear();
    }

    /// The HMAC of a key that is known.
    fn keyed(&mut self, keys: &AuthKeys, number: u16, algorithm: Algorithm) -> Option<&Keyed> {
        let is_it = |one: &(u16, Algorithm, Keyed)| (one.0, one.1) == (number, algorithm);
        let at = match self.keyed.iter().position(is_it) {
            Some(at) => at,
            None => {
                let shared = keys.get(number).ok()?;
                // RFC 4895 §6.1: the association shared key.
                let key = [&shared.secret[..], &self.vectors].concat();
                self.keyed.push((number, algorithm, Keyed::new(algorithm, &key)?));
                self.keyed.len() - 1
            }
        };
        self.keyed.get(at).map(|(_, _, keyed)| keyed)
    }

    /// Authenticates a packet, if it has a chunk for which the peer demands that: AUTH goes before
    /// the first of them (RFC 4895 §6.2).
    pub(crate) fn authenticate(&mut self, keys: &AuthKeys, packet: &mut PacketBuilder<'_>) {
        let wanted = self.wanted;
        let first = packet.chunk_types().find(|(_, ty)| wanted.contains(*ty));
        let Some((at, _)) = first else { return };
        let (key, algorithm) = (keys.active(), self.algorithm);
        let Some(keyed) = self.keyed(keys, key, algorithm) else { return };
        let hmac = Bytes::from_static(&[0; 32]).slice(..algorithm.len());
        let auth = Auth { flags: 0, key, algorithm: algorithm.id(), hmac };
        keyed.sign(packet.insert_auth(at, &auth));
    }

    /// Checks an AUTH chunk. `rest` is all that follows it in its packet.
    pub(crate) fn verify(&mut self, keys: &AuthKeys, auth: &Auth, rest: &[u8]) -> Verdict {
        let Some(algorithm) = Algorithm::of(auth.algorithm) else {
            return Verdict::UnknownAlgorithm;
        };
        match self.keyed(keys, auth.key, algorithm) {
            Some(keyed) if keyed.verify(auth, rest) => Verdict::Right,
            _ => Verdict::Wrong,
        }
    }
}

/// Compares two vectors as numbers, and equal numbers by their length (RFC 4895 §6.1).
fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let digits = |bytes: &[u8]| bytes.iter().skip_while(|byte| **byte == 0).count();
    let number = |bytes: &[u8]| bytes[bytes.len() - digits(bytes)..].to_vec();
    let by_value = digits(a).cmp(&digits(b)).then_with(|| number(a).cmp(&number(b)));
    by_value.then(a.len().cmp(&b.len()))
}

#[cfg(test)]
mod tests;
