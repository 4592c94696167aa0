//! Properties of what both ends agree on, and of packets that are sealed and opened.

use manypath_dtls::manage::{Agreement, KeyAction};
use manypath_keys::psk::SharedKey;
use manypath_wire::{
    Checksum, CommonHeader, Dtls, DtlsKeyManagementFlags, PacketBuilder, SackPath,
};
use manypath_wire::{DataFlags, Ssn, StreamId};
use proptest::prelude::*;

use super::*;
use crate::assoc::send::outgoing::OutgoingPacket;

fn offer() -> impl Strategy<Value = DtlsKeyManagement> {
    // Few values, so that ends often have some in common.
    let methods = prop_oneof![
        prop::collection::vec(0..4_u8, 1..4),
        prop::collection::vec(any::<u8>(), 1..=255),
    ];
    let tie_breaker = prop_oneof![0..3_u32, any::<u32>()];
    (tie_breaker, any::<u8>(), methods).prop_map(|(tie_breaker, flags, methods)| {
        DtlsKeyManagement::new(tie_breaker, DtlsKeyManagementFlags(flags), &methods)
            .expect("at least one method")
    })
}

proptest! {
    #[test]
    fn both_ends_agree_or_both_refuse(one in offer(), two in offer()) {
        match (agree(&one, Some(&two)), agree(&two, Some(&one))) {
            (Ok((role, method)), Ok((peers_role, peers_method))) => {
                prop_assert_ne!(role, peers_role);
                prop_assert_eq!(method, peers_method);
                let (server, client) = if role == Role::Server { (&one, &two) } else { (&two, &one) };
                prop_assert!(server.flags().server() && client.flags().client());
                // The first of the server's methods that the client has.
                let is_common = |method: &&u8| client.methods().contains(method);
                prop_assert_eq!(server.methods().iter().find(is_common), Some(&method));
            }
            (Err(here), Err(there)) => prop_assert_eq!(here, there),
            (here, there) => prop_assert!(false, "{:?}, but {:?}", here, there),
        }
    }

    #[test]
    fn one_that_cannot_protect_is_refused(own in offer()) {
        prop_assert_eq!(agree(&own, None), Err(ErrorCause::MissingDtlsChunkSupport));
    }
}

/// Two ends with keys.
fn ends() -> (Protection, Protection) {
    let flags = DtlsKeyManagementFlags::CLIENT | DtlsKeyManagementFlags::SERVER;
    let of = |tie_breaker| DtlsKeyManagement::new(tie_breaker, flags, &[0]).expect("a method");
    let parameters = (of(1).raw().clone(), of(2).raw().clone());
    let end = |role, tie_breaker| {
        let management = Arc::new(SharedKey::new(&[7; 32]).expect("long enough"));
        let mut session = management.begin(Agreement::new(role, 0, parameters.clone(), (1, 2)));
        let mut end = Protection::new(management, of(tie_breaker));
        while let Some(action) = session.poll() {
            match action {
                KeyAction::OpenWith(keys) => end.opening.install(keys),
                KeyAction::SealWith(keys) => end.sealing = Some(keys),
                other => panic!("{other:?}"),
            }
        }
        end
    };
    (end(Role::Client, 1), end(Role::Server, 2))
}

const HEADER: CommonHeader =
    CommonHeader { source_port: 1, destination_port: 2, verification_tag: 3 };

/// Appends chunks of these kinds and lengths.
fn write(p: &mut PacketBuilder<'_>, chunks: &[(u8, usize)]) -> bool {
    chunks.iter().all(|&(kind, len)| {
        let bytes = vec![kind; len.max(1)];
        match kind % 5 {
            0 => p.push_data(Tsn(9), StreamId(1), Ssn(2), 3, DataFlags(3), &bytes),
            1 => p.push_heartbeat(&bytes),
            2 => p.push_sack(Tsn(1), 2, 0, (1..9).map(|n| (2 * n, 2 * n)), std::iter::empty()),
            3 => p.push_sack_path(SackPath { serial: 7, failed: false }),
            _ => p.push_chunk(0xc0 | kind, kind, &bytes),
        }
    })
}

const LIMIT: usize = 9000;

/// The same chunks in a packet that is sealed, behind `before`, and in one that is not.
fn both(from: &mut Protection, before: &[u8], chunks: &[(u8, usize)]) -> (Bytes, Bytes) {
    let mut plain = Vec::new();
    let mut builder = PacketBuilder::new(&mut plain, HEADER, LIMIT);
    assert!(write(&mut builder, chunks));
    builder.finish(true);
    let mut out = before.to_vec();
    let mut draft = OutgoingPacket::new(&mut out, HEADER, LIMIT, true);
    assert!(write(&mut draft, chunks));
    let len = draft.finish(Some(from), true).expect("fresh keys");
    assert_eq!(&out[..before.len()], before);
    assert_eq!(out.len(), before.len() + len);
    (out.split_off(before.len()).into(), plain.into())
}

fn opened(by: &mut Protection, packet: Bytes) -> Option<Bytes> {
    let mut packet = packet.to_vec();
    let record = Dtls::alone_in(&packet)?;
    let chunks = by.open(&mut packet[record.clone()]).ok()?;
    Some(Bytes::copy_from_slice(&packet[record][chunks]))
}

fn chunks() -> impl Strategy<Value = Vec<(u8, usize)>> {
    prop::collection::vec((any::<u8>(), 0..1200_usize), 1..6)
}

proptest! {
    #[test]
    fn a_sealed_packet_opens_once_to_its_chunks(
        packets in prop::collection::vec((chunks(), prop::collection::vec(any::<u8>(), 0..40)), 1..8),
    ) {
        let (mut a, mut z) = ends();
        for (chunks, before) in packets {
            let (sealed, plain) = both(&mut a, &before, &chunks);
            prop_assert_eq!(sealed.len(), plain.len() + 28);
            let checked = Packet::parse(sealed.clone(), Checksum::Verify);
            prop_assert_eq!(checked.map(|packet| packet.header), Ok(HEADER));
            prop_assert_eq!(opened(&mut a, sealed.clone()), None, "what an end seals it cannot open");
            prop_assert_eq!(opened(&mut z, sealed.clone()), Some(plain.slice(COMMON_HEADER_LEN..)));
            prop_assert_eq!(opened(&mut z, sealed), None, "a copy");
        }
    }

    #[test]
    fn a_changed_packet_opens_to_its_chunks_or_not_at_all(
        chunks in chunks(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 1..4),
    ) {
        let (mut a, mut z) = ends();
        let (sealed, plain) = both(&mut a, &[], &chunks);
        let mut changed = sealed.to_vec();
        for (at, bits) in changes {
            let at = COMMON_HEADER_LEN + at.index(changed.len() - COMMON_HEADER_LEN);
            changed[at] ^= bits;
        }
        // What only fills up is not authenticated.
        let expected = plain.slice(COMMON_HEADER_LEN..);
        prop_assert!(opened(&mut z, changed.into()).is_none_or(|content| content == expected));
    }
}

#[test]
fn a_draft_that_is_discarded_leaves_what_was_before() {
    for is_sealed in [false, true] {
        let mut out = vec![1, 2, 3];
        let mut draft = OutgoingPacket::new(&mut out, HEADER, LIMIT, is_sealed);
        assert!(draft.push_heartbeat(b"never sent"));
        draft.discard();
        assert_eq!(out, [1, 2, 3]);
    }
}

fn data(stream: u16, ppid: u32) -> Chunk {
    let mut bytes = Vec::new();
    let mut packet = PacketBuilder::new(&mut bytes, HEADER, LIMIT);
    assert!(packet.push_data(Tsn(1), StreamId(stream), Ssn(0), ppid, DataFlags(3), b"x"));
    packet.finish(true);
    let packet = Packet::parse(bytes.into(), Checksum::Verify).expect("a packet");
    packet.chunks().next().expect("a chunk").expect("well-formed")
}

/// Unprotected data is the key management's, or nobody's: the application would take it for the
/// peer's.
#[test]
fn data_counts_in_plain_only_as_messages_of_key_management_and_before_the_keys() {
    let (with_keys, other) = ends();
    let without = Protection::new(other.management.clone(), other.own.clone());
    let key_message = data(0, KEY_MANAGEMENT_PPID);
    let others = [data(1, KEY_MANAGEMENT_PPID), data(0, 0), data(0, 7), data(3, 7)];
    assert!(without.counts_in_plain(&key_message));
    assert!(!with_keys.counts_in_plain(&key_message));
    for chunk in &others {
        assert!(!without.counts_in_plain(chunk), "{chunk:?}");
        assert!(!with_keys.counts_in_plain(chunk), "{chunk:?}");
    }
}
