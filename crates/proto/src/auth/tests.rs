use manypath_wire::CommonHeader;

use super::*;

const HEADER: CommonHeader =
    CommonHeader { source_port: 1, destination_port: 2, verification_tag: 3 };

fn ends() -> (AuthParameters, AuthParameters) {
    let listed = AuthParameters::own([0x11; RANDOM_LEN], ChunkTypes::of(&[0, 3]));
    (listed, AuthParameters::own([0x22; RANDOM_LEN], ChunkTypes::NONE))
}

/// A packet with COOKIE ACK, authenticated for an end that wants that.
fn signed(own: &AuthParameters, peers: &AuthParameters, keys: &AuthKeys) -> Vec<u8> {
    let mut out = Vec::new();
    let mut packet = PacketBuilder::new(&mut out, HEADER, 100);
    assert!(packet.push_cookie_ack());
    let mut agreement = Agreement::new(own, peers).expect("a common algorithm");
    agreement.wanted = ChunkTypes::of(&[11]);
    agreement.authenticate(keys, &mut packet);
    packet.finish(false);
    out.split_off(12)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn hmacs_are_those_of_another_implementation() {
    // By Python's hmac over what RFC 4895 §6.1 and §6.2 describe.
    let (own, peers) = ends();
    let mut keys = AuthKeys::default();
    keys.set(7, &b"secret"[..]).expect("room");
    keys.activate(7).expect("it exists");
    let sha_256 = "5adf254fe1e5935c1fec3cabb3a0ee1eb2111d3908ce7c9ecb3dfc13b9b4181d";
    for (a, b) in [(&own, &peers), (&peers, &own)] {
        let packet = signed(a, b, &keys);
        assert_eq!(packet[..8], [15, 0, 0, 40, 0, 7, 0, 3]);
        assert_eq!(hex(&packet[8..40]), sha_256, "both ends make the same key");
        assert_eq!(packet[40..], [11, 0, 0, 4]);
    }
    let sha_1 = AuthParameters { algorithms: vec![1], ..peers };
    let packet = signed(&own, &sha_1, &AuthKeys::default());
    assert_eq!(packet[..8], [15, 0, 0, 28, 0, 0, 0, 1]);
    assert_eq!(hex(&packet[8..28]), "64379d6fbc0db63422def38256611bf56efc73dc");
}

/// The AUTH chunk of a packet, and what follows it.
fn split(packet: Vec<u8>) -> (Auth, Bytes) {
    let mut chunks = manypath_wire::into_chunks_of(packet.into());
    let Some(Ok(manypath_wire::Chunk::Auth(auth))) = chunks.next() else { panic!("AUTH") };
    (auth, chunks.rest())
}

#[test]
fn every_bit_of_chunk_and_packet_counts() {
    let (own, peers) = ends();
    let keys = AuthKeys::default();
    let packet = signed(&own, &peers, &keys);
    let mut agreement = Agreement::new(&peers, &own).expect("a common algorithm");
    let (auth, rest) = split(packet.clone());
    assert_eq!(agreement.verify(&keys, &auth, &rest), Verdict::Right);
    for bit in (0..packet.len() * 8).filter(|bit| !matches!(bit / 8, 0 | 2 | 3)) {
        let mut changed = packet.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let (auth, rest) = split(changed);
        assert_ne!(agreement.verify(&keys, &auth, &rest), Verdict::Right, "bit {bit}");
    }
    let shorter = Auth { hmac: auth.hmac.slice(..20), ..auth.clone() };
    assert_eq!(agreement.verify(&keys, &shorter, &rest), Verdict::Wrong);
    let other = Auth { algorithm: 2, ..auth };
    assert_eq!(agreement.verify(&keys, &other, &rest), Verdict::UnknownAlgorithm);
}

#[test]
fn the_smaller_key_vector_comes_first() {
    let order = |a: &[u8], b: &[u8]| compare(a, b);
    assert_eq!(order(&[1, 2], &[1, 3]), Ordering::Less);
    assert_eq!(order(&[0, 0, 3], &[2, 0]), Ordering::Less, "3 and 512");
    assert_eq!(order(&[2, 0, 0], &[3, 0]), Ordering::Greater);
    assert_eq!(order(&[0, 7], &[7]), Ordering::Greater, "equal numbers: the shorter one");
    assert_eq!(order(&[7], &[7]), Ordering::Equal);
    assert_eq!(order(&[], &[0]), Ordering::Less);
}

#[test]
fn the_active_key_can_be_neither_deactivated_nor_removed() {
    let mut keys = AuthKeys::default();
    assert_eq!((keys.active(), keys.numbers().collect::<Vec<_>>()), (0, vec![0]));
    assert_eq!(keys.activate(1), Err(AuthKeyError::NoSuchKey { number: 1 }));
    keys.set(1, &b"one"[..]).expect("room");
    assert_eq!(keys.deactivate(0), Err(AuthKeyError::Active { number: 0 }));
    assert_eq!(keys.remove(0), Err(AuthKeyError::Active { number: 0 }));
    keys.activate(1).expect("it exists");
    keys.deactivate(0).expect("it is not active");
    assert_eq!(keys.activate(0), Err(AuthKeyError::Deactivated { number: 0 }));
    keys.remove(0).expect("it is not active");
    assert_eq!(keys.remove(0), Err(AuthKeyError::NoSuchKey { number: 0 }));
    assert_eq!(keys.deactivate(0), Err(AuthKeyError::NoSuchKey { number: 0 }));
    assert!(!format!("{keys:?}").contains("one"), "secrets are not printed");
}

#[test]
fn keys_are_limited_in_number_and_length() {
    let mut keys = AuthKeys::default();
    for number in 1..64 {
        keys.set(number, vec![0; 4]).expect("room");
    }
    assert_eq!(keys.set(64, vec![]), Err(AuthKeyError::TooMany { limit: 64 }));
    keys.set(63, vec![1]).expect("it takes the place of another");
    let long = keys.set(63, vec![0; (1 << 16) + 1]);
    assert_eq!(long, Err(AuthKeyError::TooLong { limit: 1 << 16 }));
}

#[test]
fn an_offer_without_a_known_algorithm_is_none() {
    let with = |ids: Option<Vec<u16>>| {
        let mut offer = AuthOffer::default();
        offer.note(Parameter::Random(vec![1; 32].into()));
        offer.note(Parameter::AuthenticatedChunks(vec![0].into()));
        ids.into_iter().for_each(|ids| offer.note(Parameter::HmacAlgorithms(ids)));
        offer.read().expect("a random number of 32 bytes")
    };
    assert_eq!(with(None), None);
    assert_eq!(with(Some(vec![2, 4])), None);
    assert_eq!(with(Some(vec![1; 257])), None, "lists are limited");
    let first = |ids| with(Some(ids)).and_then(|offer| offer.algorithm());
    assert_eq!(first(vec![2, 1, 3]), Some(Algorithm::Sha1), "RFC 4895 §6.1: the first known");
    assert_eq!(first(vec![3, 1]), Some(Algorithm::Sha256));
}
