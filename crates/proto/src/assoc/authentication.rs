//! Authentication of chunks in an association (RFC 4895): what both ends agreed on, the AUTH chunks
//! of packets, and which chunks count.
//!
//! Packets that are protected have no AUTH chunks, since sealing does more
//! (draft-ietf-tsvwg-sctp-dtls-chunk).

use bytes::Bytes;
use manypath_wire::{Auth, Chunk, ErrorCause, IntoChunks, PacketBuilder, chunk_type as ty};

use super::Association;
use super::open::cookie::AuthOffers;
use crate::auth::{Agreement, AuthKeyError, AuthKeys, AuthParameters, RANDOM_LEN, Verdict};
use crate::event::{AuthReport, Event};
use crate::params::ChunkTypes;
use crate::rng::Rng;

/// Types of chunks that may fill a packet, or stand in one that others fill. For an AUTH chunk
/// before these, every packet of a path leaves room.
const OF_FULL_PACKETS: [u8; 13] = [
    ty::DATA,
    ty::I_DATA,
    ty::SACK,
    ty::NR_SACK,
    ty::TIMESTAMP,
    ty::SACK_PATH,
    ty::FORWARD_TSN,
    ty::I_FORWARD_TSN,
    ty::RE_CONFIG,
    ty::CANDIDATES,
    ty::HEARTBEAT,
    ty::HEARTBEAT_ACK,
    ty::PAD,
];

/// The state of the extension in an association that is not protected.
#[derive(Debug)]
pub(crate) struct Authentication {
    rng: Rng,
    /// Our random number.
    random: [u8; RANDOM_LEN],
    keys: AuthKeys,
    /// Set once the peer has announced the extension, too.
    agreement: Option<Agreement>,
    /// The key that the peer uses, and the one before.
    peers_keys: [u16; 2],
}

/// The treatment of a chunk.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Authenticity {
    /// The chunk counts.
    Counts,
    /// The chunk is skipped.
    Skipped,
    /// The chunk and all that follow it are skipped.
    EndsPacket,
}

impl Authentication {
    fn new(keys: AuthKeys, mut rng: Rng) -> Authentication {
        let random = draw(&mut rng);
        Authentication { rng, random, keys, agreement: None, peers_keys: [0; 2] }
    }

    /// Adds the AUTH chunk to a packet that needs one.
    #[inline(never)]
    pub(crate) fn authenticate(&mut self, packet: &mut PacketBuilder<'_>) {
        if let Some(agreement) = &mut self.agreement {
            agreement.authenticate(&self.keys, packet);
        }
    }

    /// The chunk types that the peer wants authenticated, and the length of an AUTH chunk.
    fn wishes(&self) -> Option<(ChunkTypes, usize)> {
        self.agreement.as_ref().map(|agreement| (agreement.wanted(), agreement.chunk_len()))
    }

    fn keys_changed(&mut self) {
        if let Some(agreement) = &mut self.agreement {
            agreement.keys_changed();
        }
    }
}

/// A random number of 32 bytes.
pub(crate) fn draw(rng: &mut Rng) -> [u8; RANDOM_LEN] {
    let mut random = [0; RANDOM_LEN];
    rng.fill(&mut random);
    random
}

impl Association {
    // ---- Opening ----

    /// Offers authentication to the peer, if the configuration asks for it.
    pub(crate) fn offer_authentication(&mut self, keys: &AuthKeys) {
        if self.config.authenticates() && !self.is_protected() {
            let rng = self.rng.fork("authentication");
            self.authentication = Some(Box::new(Authentication::new(keys.clone(), rng)));
        }
    }

    /// Our parameters, for INIT.
    pub(crate) fn own_authentication(&self) -> Option<AuthParameters> {
        let random = self.authentication.as_ref()?.random;
        Some(AuthParameters::own(random, self.config.required_authentication()))
    }

    /// The cookie's parameters of both ends, with our random number if the association has one
    /// already: it belongs to our tag (RFC 4895 §6.1).
    pub(super) fn own_offers(&self, fresh: Option<AuthOffers>) -> Option<AuthOffers> {
        let own = self.authentication.as_ref().map(|authentication| authentication.random);
        fresh.map(|both| AuthOffers { own: own.unwrap_or(both.own), ..both })
    }

    /// Takes the offer of the peer. Without one, chunks are not authenticated.
    pub(crate) fn agree_on_authentication(&mut self, peers: Option<&AuthParameters>) {
        let own = self.own_authentication();
        let Some(authentication) = &mut self.authentication else { return };
        authentication.agreement =
            own.zip(peers).and_then(|(own, peers)| Agreement::new(&own, peers));
        let overhead = self.authentication_overhead();
        let config = self.config_rc();
        for p in self.paths.iter_mut().filter(|p| p.size.overhead != overhead) {
            p.size.overhead = overhead;
            p.resize(&config);
        }
        if config.pmtu_discovery {
            self.paths.renew_least_usable();
        } else {
            self.paths.renew_least();
        }
    }

    /// Takes the parameters of both ends from a cookie.
    pub(crate) fn agree_by_cookie(&mut self, both: Option<&AuthOffers>) {
        if let (Some(authentication), Some(both)) = (&mut self.authentication, both) {
            authentication.random = both.own;
        }
        self.agree_on_authentication(both.map(|both| &both.peers));
    }

    /// Begins again: another tag has another random number.
    pub(super) fn forget_authentication(&mut self) {
        if let Some(authentication) = &mut self.authentication {
            authentication.random = draw(&mut authentication.rng);
            self.agree_on_authentication(None);
        }
    }

    /// Takes the keys of the association that this one replaces.
    pub(super) fn succeed_authentication(&mut self, old: Option<Box<Authentication>>) {
        if let (Some(own), Some(old)) = (&mut self.authentication, old) {
            own.keys = old.keys;
            own.keys_changed();
        }
    }

    /// Tells the application if the peer does not have the extension.
    pub(super) fn tell_authentication(&mut self) {
        if self.authentication.is_some() && !self.authenticates() {
            self.events.push(Event::Authentication(AuthReport::NotSupported));
        }
    }

    // ---- Sizes ----

    /// Bytes that every packet of a path leaves for an AUTH chunk.
    pub(crate) fn authentication_overhead(&self) -> usize {
        let wishes =
            self.authentication.as_ref().and_then(|authentication| authentication.wishes());
        let of_full = wishes.filter(|(wanted, _)| wanted.contains_any(&OF_FULL_PACKETS));
        of_full.map_or(0, |(_, len)| len)
    }

    /// Bytes that the packet of a control chunk leaves for an AUTH chunk, beyond those that every
    /// packet of its path leaves.
    pub(super) fn room_for_auth(&self) -> usize {
        let wishes =
            self.authentication.as_ref().and_then(|authentication| authentication.wishes());
        match wishes {
            Some((wanted, len)) if wanted != ChunkTypes::NONE => {
                len - self.authentication_overhead()
            }
            _ => 0,
        }
    }

    /// Bytes of the AUTH chunk that a probe of a path's size gets.
    pub(super) fn auth_in_probe(&self) -> usize {
        let wishes =
            self.authentication.as_ref().and_then(|authentication| authentication.wishes());
        let has_auth = wishes.filter(|(wanted, _)| wanted.contains_any(&[ty::HEARTBEAT, ty::PAD]));
        has_auth.map_or(0, |(_, len)| len)
    }

    // ---- Receiving ----

    /// Checks the HMAC of an AUTH chunk, and that other chunks do not lack one (RFC 4895 §6.3).
    #[inline(never)]
    pub(crate) fn check_authenticity(
        &mut self,
        chunk: &Chunk,
        behind: &IntoChunks,
        is_authentic: &mut bool,
    ) -> Authenticity {
        if !self.authenticates() {
            return Authenticity::Counts;
        }
        let Chunk::Auth(auth) = chunk else {
            if *is_authentic || !self.config.required_authentication().contains(chunk.ty()) {
                return Authenticity::Counts;
            }
            self.stats.unauthenticated_dropped += 1;
            return Authenticity::Skipped;
        };
        if *is_authentic {
            return Authenticity::Skipped; // What follows is covered already.
        }
        match self.verify(auth, &behind.rest()) {
            Verdict::Right => {
                *is_authentic = true;
                self.note_key_of_peer(auth.key);
                return Authenticity::Skipped;
            }
            Verdict::UnknownAlgorithm => {
                self.report(ErrorCause::UnsupportedHmacIdentifier(auth.algorithm));
            }
            Verdict::Wrong => {}
        }
        self.stats.auth_failures += 1;
        Authenticity::EndsPacket
    }

    /// The verdict on an AUTH chunk, of which `rest` follows in its packet.
    pub(crate) fn verify(&mut self, auth: &Auth, rest: &Bytes) -> Verdict {
        let Some(authentication) = &mut self.authentication else { return Verdict::Wrong };
        let Some(agreement) = &mut authentication.agreement else { return Verdict::Wrong };
        agreement.verify(&authentication.keys, auth, rest)
    }

    fn note_key_of_peer(&mut self, key: u16) {
        let Some(authentication) = &mut self.authentication else { return };
        let [latest, former] = authentication.peers_keys;
        // Packets with the former key may be overtaken on another path.
        if ![latest, former].contains(&key) {
            authentication.peers_keys = [key, latest];
            self.events.push(Event::Authentication(AuthReport::NewKey { key }));
        }
    }

    // ---- Commands and reading ----

    /// Both ends authenticate the chunks for which the other one demands that (RFC 4895). Known
    /// once the association is established.
    pub fn authenticates(&self) -> bool {
        self.authentication
            .as_ref()
            .is_some_and(|authentication| authentication.agreement.is_some())
    }

    /// True if both ends take chunks of these types only if they are authenticated.
    pub(super) fn authenticates_both_ways(&self, types: &[u8]) -> bool {
        let own = self.config.required_authentication();
        let wishes =
            self.authentication.as_ref().and_then(|authentication| authentication.wishes());
        wishes.is_some_and(|(peers, _)| {
            types.iter().all(|ty| own.contains(*ty) && peers.contains(*ty))
        })
    }

    /// The keys of authentication; `None` if this end does not authenticate chunks.
    pub fn auth_keys(&self) -> Option<&AuthKeys> {
        self.authentication.as_ref().map(|authentication| &authentication.keys)
    }

    /// Changes the keys of authentication from now on: see [`AuthKeys`]. Keys that both ends have
    /// can take the place of others while data flows. First both ends get the new key, then each
    /// activates it, then both remove the old one.
    ///
    /// A key that is deactivated is reported as free at once ([`AuthReport::KeyFree`]), because
    /// packets are authenticated when they are sent, also those with data that is sent again.
    ///
    /// # Errors
    /// The error of the change, or [`AuthKeyError::NotSupported`] if this end does not authenticate
    /// chunks.
    pub fn change_auth_keys(
        &mut self,
        change: impl FnOnce(&mut AuthKeys) -> Result<(), AuthKeyError>,
    ) -> Result<(), AuthKeyError> {
        let Some(authentication) = &mut self.authentication else {
            return Err(AuthKeyError::NotSupported);
        };
        let before: Vec<u16> = authentication.keys.deactivated().collect();
        let result = change(&mut authentication.keys);
        authentication.keys_changed();
        let free: Vec<u16> =
            authentication.keys.deactivated().filter(|key| !before.contains(key)).collect();
        for key in free {
            self.events.push(Event::Authentication(AuthReport::KeyFree { key }));
        }
        result
    }
}
