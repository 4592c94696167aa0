//! Changes of addresses (RFC 5061): requests of this end and of the peer, and what they may not do.
//! `docs/rfc5061.md` names the test for each rule.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use manypath_proto::testing::*;
use manypath_proto::{
    AddressChange, AddressError, AddressOutcome, AssocClosed, Event, PathId, PathState,
};
use manypath_wire::{
    Asconf, AsconfAck, AsconfRequest, AsconfResponse, Chunk, EDMID_DTLS, ErrorCause, Parameter,
    UnknownParameter, chunk_type as ty, has_zero_checksum,
};

use super::authentication::{Peer, offering};
use super::common::{announced, last_init};

const BOTH: &[u8] = &[ty::ASCONF, ty::ASCONF_ACK];
const ANY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);

fn ip(last: u8) -> IpAddr {
    [10, 0, 9, last].into()
}

fn at(last: u8) -> SocketAddr {
    (ip(last), PORT).into()
}

fn add(request: u32, address: impl Into<IpAddr>) -> AsconfRequest {
    AsconfRequest::Add { request, address: address.into() }
}

fn delete(request: u32, address: impl Into<IpAddr>) -> AsconfRequest {
    AsconfRequest::Delete { request, address: address.into() }
}

fn prefer(request: u32, address: impl Into<IpAddr>) -> AsconfRequest {
    AsconfRequest::SetPrimary { request, address: address.into() }
}

/// A peer that has the extension.
fn knowing(chunk: PeerChunk) -> PeerChunk {
    let types = [ty::ASCONF, ty::ASCONF_ACK, ty::AUTH];
    offering(chunk.param(Parameter::SupportedExtensions(types.to_vec().into())), 0x22, BOTH)
}

fn on(setup: Setup) -> Setup {
    setup.set("address_reconfiguration", "true").set("max_burst", "0")
}

/// A server, and a peer that has opened an association and has the extension.
fn server() -> (Script, Peer) {
    let mut t = on(Setup::server()).set("hb_max_burst", "32").start();
    let init = knowing(init());
    t.peer(init.clone());
    let cookie = t.expect_init_ack();
    let peer = Peer::of(&init, &last_init(&t));
    t.peer(cookie_echo(&cookie));
    t.run_ms(100);
    t.answer_heartbeats();
    t.events();
    t.take_sent();
    assert!(t.assoc().reconfigures_addresses());
    (t, peer)
}

/// A client, and a server that has the extension.
fn client_of(setup: Setup) -> (Script, Peer) {
    let mut t = on(setup).start();
    t.connect();
    let init = t.expect_init();
    let answer = knowing(init_ack());
    let peer = Peer::of(&answer, &init);
    t.peer(answer);
    t.peer(cookie_ack());
    t.run_ms(100);
    t.answer_heartbeats();
    t.events();
    t.take_sent();
    assert!(t.assoc().reconfigures_addresses());
    (t, peer)
}

fn client() -> (Script, Peer) {
    client_of(Setup::client())
}

/// The peer sends these requests from this address, authenticated.
fn ask(t: &mut Script, peer: &Peer, from: SocketAddr, serial: u32, requests: &[AsconfRequest]) {
    let known = t.pairs[0].1.ip();
    let packet = peer.packet(t, 0, asconf(serial, known, requests));
    t.peer_bytes((t.pairs[0].0, from), packet);
}

/// The answers that were sent since, each with the address to which it went. They are
/// authenticated.
fn answers(t: &mut Script, peer: &Peer) -> Vec<(SocketAddr, AsconfAck)> {
    let mut all = Vec::new();
    for s in t.take_sent() {
        for chunk in s.packet.chunks() {
            if let Ok(Chunk::AsconfAck(ack)) = chunk {
                assert!(peer.accepts(&s.packet), "{:?}", s.packet);
                all.push((s.remote, ack));
            }
        }
    }
    all
}

/// The codes of the errors in the one answer that was sent, by the number of the request.
fn errors(t: &mut Script, peer: &Peer) -> Vec<(u32, u16)> {
    let all = answers(t, peer);
    let [(_, ack)] = &all[..] else { panic!("one answer: {all:?}") };
    let code = |response: &AsconfResponse| match response {
        AsconfResponse::Error { request, causes } => {
            let cause = causes.iter().next().expect("a cause").expect("well-formed");
            Some((*request, cause.code()))
        }
        _ => None,
    };
    ack.responses.iter().filter_map(code).collect()
}

/// The request that was sent, its source and destination, and its number: those of this end count
/// from 1.
fn request(t: &mut Script, peer: &Peer) -> Option<(SocketAddr, SocketAddr, Asconf)> {
    let base = t.view().1;
    for s in t.take_sent() {
        for chunk in s.packet.chunks() {
            if let Ok(Chunk::Asconf(chunk)) = chunk {
                assert!(peer.accepts(&s.packet), "{:?}", s.packet);
                let serial = chunk.serial.wrapping_sub(base.0);
                return Some((s.local, s.remote, Asconf { serial, ..chunk }));
            }
        }
    }
    None
}

/// The peer answers the request of this number.
fn answer(t: &mut Script, peer: &Peer, serial: u32, responses: &[AsconfResponse]) {
    let serial = t.view().1.0.wrapping_add(serial);
    peer.send(t, asconf_ack(serial, responses));
}

fn remotes(t: &Script) -> Vec<IpAddr> {
    t.assoc().paths().map(|p| p.remote.ip()).collect()
}

fn path_to(t: &Script, remote: SocketAddr) -> Option<PathId> {
    t.assoc().paths().find(|p| p.remote == remote).map(|p| p.id)
}

fn done(change: AddressChange) -> Event {
    Event::AddressRequest { change, outcome: AddressOutcome::Done }
}

// ---- The handshake (§4.2.7) ----

#[test]
fn it_is_announced_with_authentication_if_it_is_on() {
    for is_on in [true, false] {
        let setting = if is_on { "true" } else { "false" };
        let mut t = Setup::client().set("address_reconfiguration", setting).start();
        t.connect();
        let init = t.expect_init();
        let types = announced(&init);
        for ty in [ty::ASCONF, ty::ASCONF_ACK, ty::AUTH] {
            assert_eq!(types.contains(&ty), is_on, "{ty:#x}");
        }
        let demands = Parameter::AuthenticatedChunks(vec![ty::ASCONF_ACK, ty::ASCONF].into());
        assert_eq!(init.params.iter().any(|p| p.as_ref() == Ok(&demands)), is_on);
    }
    // Chunks that the application wants authenticated come on top.
    let mut t = on(Setup::client())
        .set("authentication", "true")
        .set("authenticated_chunks", "data")
        .start();
    t.connect();
    let demands = Parameter::AuthenticatedChunks(vec![ty::DATA, ty::ASCONF_ACK, ty::ASCONF].into());
    assert!(t.expect_init().params.iter().any(|p| p.as_ref() == Ok(&demands)));
}

#[test]
fn a_peer_that_does_not_authenticate_is_not_asked() {
    let types = || Parameter::SupportedExtensions(vec![ty::ASCONF, ty::ASCONF_ACK].into());
    // Without AUTH, without lists of what is authenticated, and without the extension.
    for answer in [
        init_ack().param(types()),
        offering(init_ack().param(types()), 1, &[ty::ASCONF]),
        offering(init_ack(), 1, BOTH),
    ] {
        let mut t = on(Setup::client()).start();
        t.connect_to(answer);
        assert!(!t.assoc().reconfigures_addresses());
        let remote = t.pairs[0].1;
        t.with(|a, now| a.add_path(now, at(1), remote)).expect("room for a path");
        t.expect("HEARTBEAT"); // as ever
        t.expect_nothing();
        let result = t.with(|a, now| a.set_peer_primary(now, ip(1)));
        assert_eq!(result, Err(AddressError::NotSupported));
    }
}

#[test]
fn where_it_was_not_agreed_on_asconf_is_an_unknown_chunk() {
    let mut t = Setup::server().established();
    let source = t.pairs[0].1;
    t.peer([asconf(1, source.ip(), [add(1, ip(1))]), data(1)]);
    t.expect("ERROR 6");
    let Some(Chunk::Error(error)) = t.last_chunks().pop() else { panic!("an ERROR") };
    let Some(Ok(ErrorCause::UnrecognizedChunkType(whole))) = error.causes.iter().next() else {
        panic!("the chunk")
    };
    assert_eq!((whole[0], whole.len()), (ty::ASCONF, 32));
    t.expect("SACK 1");
    t.peer([asconf_ack(1, []), data(2)]);
    t.peer(data(3));
    t.expect("SACK 3");
    t.expect_nothing();
    assert_eq!(remotes(&t), [source.ip()]);
}

#[test]
fn a_request_has_a_checksum_where_other_packets_have_none() {
    let mut t = on(Setup::client()).set("zero_checksum", "true").start();
    t.connect();
    t.expect_init();
    t.peer(knowing(init_ack()).param(Parameter::ZeroChecksumAcceptable(EDMID_DTLS)));
    t.peer(cookie_ack());
    t.run_ms(100);
    t.answer_heartbeats();
    t.take_sent();
    t.send(10);
    t.expect("DATA 1");
    assert!(has_zero_checksum(t.last().packet.bytes()));
    t.with(|a, now| a.local_added(now, at(1)));
    t.expect("AUTH, ASCONF");
    assert!(!has_zero_checksum(t.last().packet.bytes()), "RFC 9653 §5.2");
}

// ---- The peer's requests (§5.2) ----

#[test]
fn requests_that_are_not_authenticated_are_silently_discarded() {
    let (mut t, peer) = server();
    let source = t.pairs[0].1;
    t.peer(asconf(1, source.ip(), [add(1, ip(1))]));
    t.peer_from((t.pairs[0].0, at(7)), asconf(1, source.ip(), [add(1, ANY), delete(2, ANY)]));
    let mut forged = peer.packet(&t, 0, asconf(1, source.ip(), [add(1, ip(1))]));
    let last = forged.len() - 1;
    forged[last] ^= 1;
    manypath_wire::fill_checksum(&mut forged);
    t.peer_bytes(t.pairs[0], forged);
    assert_eq!(answers(&mut t, &peer), []);
    assert!(!remotes(&t).contains(&ip(1)));
    assert!(remotes(&t).contains(&source.ip()));
    let stats = t.assoc().stats();
    assert_eq!((stats.unauthenticated_dropped, stats.auth_failures), (2, 1));
    // The refused request has not used its number up.
    ask(&mut t, &peer, source, 1, &[add(1, ip(1))]);
    assert_eq!(answers(&mut t, &peer), [(source, AsconfAck { serial: 1, responses: vec![] })]);
}

#[test]
fn an_added_address_is_verified_before_it_gets_data() {
    let (mut t, peer) = server();
    let source = t.pairs[0].1;
    ask(&mut t, &peer, source, 1, &[add(1, ip(1))]);
    let id = path_to(&t, at(1)).expect("a path to the address");
    assert_eq!(t.assoc().paths().find(|p| p.id == id).unwrap().state, PathState::Unconfirmed);
    let added = Event::PeerAddress(AddressChange::Added(ip(1)));
    assert!(t.events().contains(&added));
    t.expect("AUTH, ASCONF-ACK");
    assert_eq!(t.last().remote, source);
    t.send_packets(4);
    let sent = t.take_sent();
    let there: Vec<_> = sent.iter().filter(|s| s.remote == at(1)).collect();
    assert_eq!(there.len(), 1, "F1: a heartbeat alone");
    let info = heartbeat_info(&there[0].packet).expect("a HEARTBEAT");
    t.peer_from((t.pairs[0].0, at(1)), heartbeat_ack(&info));
    assert_eq!(t.assoc().paths().find(|p| p.id == id).unwrap().state, PathState::Active);
}

#[test]
fn an_address_that_is_known_is_added_without_a_change() {
    let (mut t, peer) = server();
    let source = t.pairs[0].1;
    ask(&mut t, &peer, source, 1, &[add(1, source.ip()), add(2, ANY)]);
    assert_eq!(errors(&mut t, &peer), []);
    assert_eq!(remotes(&t), [source.ip()]);
    assert_eq!(t.events(), []);
}

#[test]
fn requests_are_carried_out_in_order_and_once() {
    let (mut t, peer) = server();
    let source = t.pairs[0].1;
    // §5.4: first it is added, then it can be preferred.
    let requests = [prefer(1, ip(1)), add(2, ip(1)), prefer(3, ip(1)), delete(4, ip(1))];
    ask(&mut t, &peer, source, 1, &requests);
    let first = answers(&mut t, &peer);
    let [(_, ack)] = &first[..] else { panic!("one answer") };
    let numbers: Vec<_> = ack
        .responses
        .iter()
        .map(|response| match response {
            AsconfResponse::Error { request, .. } => (*request, false),
            AsconfResponse::Success { request } => (*request, true),
            AsconfResponse::Unknown(_) => unreachable!("not sent"),
        })
        .collect();
    assert_eq!(numbers, [(1, false), (2, true), (3, true), (4, true)], "A7");
    assert_eq!(remotes(&t), [source.ip()]);
    // A repeated chunk draws its answer again, and has no effect.
    t.events();
    ask(&mut t, &peer, source, 1, &requests);
    assert_eq!(answers(&mut t, &peer), first);
    assert_eq!(t.events(), []);
}

#[test]
fn old_answers_are_kept_in_a_small_number_and_later_requests_are_discarded() {
    let (mut t, peer) = server();
    let source = t.pairs[0].1;
    // E5: not the next one.
    for serial in [2, 3, 0, u32::MAX, 1 << 31] {
        ask(&mut t, &peer, source, serial, &[add(1, ip(1))]);
    }
    assert_eq!(answers(&mut t, &peer), []);
    for serial in 1..=8 {
        ask(&mut t, &peer, source, serial, &[add(serial, source.ip())]);
    }
    assert_eq!(answers(&mut t, &peer).len(), 8);
    let again = |t: &mut Script, serial| {
        ask(t, &peer, source, serial, &[delete(1, source.ip())]);
        answers(t, &peer).len()
    };
    assert_eq!((1..=8).map(|serial| again(&mut t, serial)).sum::<usize>(), 4, "the latest");
    assert_eq!(again(&mut t, 8), 1);
    assert_eq!(again(&mut t, 9), 1, "the next");
}

#[test]
fn several_requests_in_a_packet_are_answered_together() {
    let (mut t, peer) = server();
    let source = t.pairs[0].1;
    let chunk = |serial| asconf(serial, source.ip(), [add(serial, ip(serial as u8))]);
    peer.send(&mut t, [chunk(1), chunk(2), chunk(3)]);
    let sent = t.take_sent();
    let packets: Vec<_> = sent
        .iter()
        .filter(|s| s.packet.chunks().any(|c| matches!(c, Ok(Chunk::AsconfAck(_)))))
        .collect();
    let [packet] = &packets[..] else { panic!("one packet: {packets:?}") };
    let acks = packet.packet.chunks().filter(|c| matches!(c, Ok(Chunk::AsconfAck(_)))).count();
    assert_eq!((acks, packet.remote), (3, source), "E6");
    // A packet full of them draws no more than a few.
    peer.send(&mut t, (0..40).map(|_| chunk(3)).collect::<Vec<_>>());
    assert_eq!(answers(&mut t, &peer).len(), 4);
    peer.send(&mut t, (4..40).map(chunk).collect::<Vec<_>>());
    assert_eq!(answers(&mut t, &peer).len(), 4);
}

#[test]
fn a_request_from_an_unknown_address_adds_it_and_is_answered_there() {
    let (mut t, peer) = server();
    let old = t.pairs[0].1;
    // §5.3.2: a peer with one address gets another.
    ask(&mut t, &peer, at(1), 1, &[add(1, ip(1)), delete(2, old.ip())]);
    assert_eq!(remotes(&t), [ip(1)]);
    let sent = t.take_sent();
    assert!(sent.iter().all(|s| s.remote == at(1)), "F13: {sent:?}");
    let [packet] = &sent[..] else { panic!("the answer, with a HEARTBEAT: {sent:?}") };
    assert!(packet.packet.chunks().any(|c| matches!(c, Ok(Chunk::AsconfAck(_)))));
    let info = heartbeat_info(&packet.packet).expect("F1: they may be bundled");
    t.peer_from((t.pairs[0].0, at(1)), heartbeat_ack(&info));
    t.send(10);
    t.expect("DATA 1");
    assert_eq!(t.last().remote, at(1));
}

#[test]
fn unspecified_addresses_stand_for_the_source_or_for_all_others() {
    let (mut t, peer) = server();
    let old = t.pairs[0].1;
    // A NAT has given the packet another source than its sender knows.
    let seen: SocketAddr = ([203, 0, 113, 5], 40_001).into();
    ask(&mut t, &peer, seen, 1, &[add(1, ANY), delete(2, ANY), prefer(3, ANY)]);
    assert_eq!(t.assoc().paths().map(|p| p.remote).collect::<Vec<_>>(), [seen]);
    let ack = answers(&mut t, &peer);
    assert_eq!(ack, [(seen, AsconfAck { serial: 1, responses: vec![] })]);
    // The last one stays.
    ask(&mut t, &peer, seen, 2, &[delete(1, ANY)]);
    assert_eq!(errors(&mut t, &peer), []);
    assert_eq!(remotes(&t), [seen.ip()]);
    // From an address that is not the peer's, all would go.
    ask(&mut t, &peer, at(9), 3, &[delete(1, ANY)]);
    assert_eq!(errors(&mut t, &peer), [(1, 0xa0)]);
    assert!(remotes(&t).contains(&seen.ip()) && !remotes(&t).contains(&old.ip()));
}

#[test]
fn neither_the_last_address_nor_the_source_can_be_deleted() {
    let (mut t, peer) = server();
    let source = t.pairs[0].1;
    ask(&mut t, &peer, source, 1, &[delete(1, source.ip())]);
    assert_eq!(errors(&mut t, &peer), [(1, 0xa0)], "F7 before F8");
    ask(&mut t, &peer, source, 2, &[add(1, ip(1)), delete(2, source.ip())]);
    assert_eq!(errors(&mut t, &peer), [(2, 0xa2)], "F8");
    ask(&mut t, &peer, source, 3, &[delete(1, ip(5))]);
    assert_eq!(errors(&mut t, &peer), [(1, 5)], "it is none of the peer's");
    assert_eq!(remotes(&t), [source.ip(), ip(1)]);
    ask(&mut t, &peer, source, 4, &[delete(1, ip(1))]);
    assert_eq!(errors(&mut t, &peer), []);
    assert_eq!(remotes(&t), [source.ip()]);
    assert!(t.assoc().is_established());
}

#[test]
fn the_error_repeats_the_request_and_its_number() {
    let (mut t, peer) = server();
    let source = t.pairs[0].1;
    ask(&mut t, &peer, source, 1, &[delete(0xdead_beef, source.ip())]);
    let [(_, ack)] = &answers(&mut t, &peer)[..] else { panic!("an answer") };
    let mut whole = Vec::new();
    delete(0xdead_beef, source.ip()).encode(&mut whole);
    let cause = ErrorCause::DeleteLastAddress(whole.into());
    assert_eq!(ack.responses, [AsconfResponse::error(0xdead_beef, cause)]);
}

#[test]
fn after_a_deletion_nothing_goes_there_and_nothing_counts_from_there() {
    let (mut t, peer) = server();
    let source = t.pairs[0].1;
    ask(&mut t, &peer, source, 1, &[add(1, ip(1))]);
    t.answer_heartbeats();
    t.take_sent();
    ask(&mut t, &peer, at(1), 2, &[delete(1, source.ip())]);
    assert_eq!(errors(&mut t, &peer), []);
    t.events();
    // F13
    t.peer_from((t.pairs[0].0, source), [data(1), heartbeat(b"there?")]);
    t.peer_from((t.pairs[0].0, source), abort(&[]));
    t.expect_nothing(); // no ABORT either, which might end the peer's association
    assert!(t.assoc().is_established() && remotes(&t) == [ip(1)]);
    // It may be added again, from there.
    ask(&mut t, &peer, source, 3, &[add(1, ANY)]);
    assert!(remotes(&t).contains(&source.ip()));
    t.answer_heartbeats();
    t.take_sent();
    t.peer_from((t.pairs[0].0, source), [data(1), data(2)]);
    t.expect("SACK 2");
}

#[test]
fn after_one_failure_all_that_add_or_delete_fail() {
    let (mut t, peer) = server();
    let source = t.pairs[0].1;
    ask(&mut t, &peer, source, 1, &[add(1, ip(1))]);
    answers(&mut t, &peer);
    let multicast: IpAddr = [224, 0, 0, 1].into();
    let requests = [add(1, multicast), delete(2, ip(1)), prefer(3, source.ip()), add(4, ip(2))];
    ask(&mut t, &peer, source, 2, &requests);
    assert_eq!(errors(&mut t, &peer), [(1, 5), (2, 0xa1), (4, 0xa1)], "F11");
    assert_eq!(remotes(&t), [source.ip(), ip(1)]);
}

#[test]
fn addresses_that_mean_another_host_here_are_refused() {
    let (mut t, peer) = server();
    let source = t.pairs[0].1;
    let broadcast: IpAddr = [255, 255, 255, 255].into();
    let wrong: [IpAddr; 5] = [
        broadcast,
        [127, 0, 0, 1].into(),
        [169, 254, 3, 4].into(),
        "::1".parse().unwrap(),
        "ff02::1".parse().unwrap(),
    ];
    for (serial, address) in (1..).zip(wrong) {
        ask(&mut t, &peer, source, serial, &[add(7, address)]);
        assert_eq!(errors(&mut t, &peer), [(7, 5)], "{address}");
    }
    assert_eq!(remotes(&t), [source.ip()]);
}

#[test]
fn unknown_parameters_are_reported_as_their_type_says() {
    let (mut t, peer) = server();
    let source = t.pairs[0].1;
    let unknown =
        |ty: u16| AsconfRequest::Unknown(UnknownParameter::new(ty, &[0, 0, 0, 9, 1, 2, 3, 4]));
    // Skip in silence, skip and report, stop in silence, stop and report.
    for (serial, ty, code, is_added) in [
        (1, 0x8077, None, true),
        (2, 0xc077, Some(8), true),
        (3, 0x0077, None, false),
        (4, 0x4077, Some(8), false),
    ] {
        let address = ip(serial as u8);
        ask(&mut t, &peer, source, serial, &[unknown(ty), add(1, address)]);
        let expected: Vec<_> = code.into_iter().map(|code| (9, code)).collect();
        assert_eq!(errors(&mut t, &peer), expected, "{ty:#x}");
        assert_eq!(remotes(&t).contains(&address), is_added, "{ty:#x}");
    }
}

#[test]
fn the_address_that_the_peer_prefers_is_primary_once_it_is_verified() {
    let (mut t, peer) = server();
    let source = t.pairs[0].1;
    ask(&mut t, &peer, source, 1, &[add(1, ip(1)), prefer(2, ip(1))]);
    assert_eq!(errors(&mut t, &peer), []);
    let id = path_to(&t, at(1)).expect("a path");
    assert_ne!(t.assoc().primary(), id, "it is not verified");
    t.run_ms(5000);
    t.answer_heartbeats();
    assert_eq!(t.assoc().primary(), id);
    assert!(t.events().contains(&Event::PeerAddress(AddressChange::Primary(ip(1)))));
    ask(&mut t, &peer, at(1), 2, &[prefer(1, source.ip())]);
    assert_ne!(t.assoc().primary(), id, "at once");
    t.take_sent();
    // §5.4: what is not there is not honoured.
    ask(&mut t, &peer, source, 3, &[prefer(1, ip(5))]);
    assert_eq!(errors(&mut t, &peer), [(1, 5)]);
}

#[test]
fn a_primary_that_is_deleted_leaves_another_primary() {
    let (mut t, peer) = server();
    let source = t.pairs[0].1;
    ask(&mut t, &peer, source, 1, &[add(1, ip(1))]);
    t.answer_heartbeats();
    t.send_packets(3);
    t.take_sent();
    ask(&mut t, &peer, at(1), 2, &[delete(1, source.ip())]);
    let id = path_to(&t, at(1)).expect("a path");
    assert_eq!(t.assoc().primary(), id, "F12");
    // Data that was in flight there goes on here.
    t.run_ms(5000);
    assert!(t.take_sent().iter().all(|s| s.remote == at(1)));
}

// ---- Floods and third parties ----

#[test]
fn a_peer_cannot_add_addresses_without_end() {
    let (mut t, peer) = server();
    let source = t.pairs[0].1;
    let most = t.assoc().config().max_paths as usize;
    let mut serial = 0;
    for _ in 0..100 {
        serial += 1;
        let requests: Vec<_> = (0..16).map(|n| add(n, [10, 8, serial as u8, n as u8])).collect();
        ask(&mut t, &peer, source, serial, &requests);
        assert!(t.assoc().paths().count() <= most);
    }
    let heartbeats = t.take_sent().iter().filter(|s| s.remote != source).count();
    assert!(heartbeats <= 8, "{heartbeats} probes of third parties at one moment");
    // Addresses come one at a time and are deleted again: one a second in the long run.
    let mut added = 0;
    for n in 0..200_u32 {
        serial += 2;
        t.run_ms(100);
        let address = [10, 7, (n >> 8) as u8, n as u8];
        ask(&mut t, &peer, source, serial - 1, &[add(1, address)]);
        added += usize::from(errors_in(&t.take_sent()).is_empty());
        ask(&mut t, &peer, source, serial, &[delete(1, address)]);
        t.take_sent();
    }
    assert!((15..=30).contains(&added), "{added} addresses in 20 s");
}

/// The codes of all errors in answers among these packets.
fn errors_in(sent: &[SentPacket]) -> Vec<u16> {
    let chunks = sent.iter().flat_map(|s| s.packet.chunks()).filter_map(Result::ok);
    let acks = chunks.filter_map(|chunk| match chunk {
        Chunk::AsconfAck(ack) => Some(ack.responses),
        _ => None,
    });
    let causes = acks.flatten().filter_map(|response| match response {
        AsconfResponse::Error { causes, .. } => causes.iter().next()?.ok(),
        _ => None,
    });
    causes.map(|cause| cause.code()).collect()
}

#[test]
fn a_third_party_that_is_added_gets_no_more_bytes_than_the_peer_sends() {
    let (mut t, peer) = server();
    let source = t.pairs[0].1;
    let before = t.assoc().paths().map(|p| p.counters.bytes_received).sum::<u64>();
    let requests: Vec<_> = (0..6).map(|n| add(n, ip(n as u8 + 1))).collect();
    ask(&mut t, &peer, source, 1, &requests);
    t.run_ms(120_000);
    let sent = t.take_sent();
    let to_others = sent.iter().filter(|s| s.remote != source);
    assert!(to_others.clone().all(|s| heartbeat_info(&s.packet).is_some()));
    let bytes: usize = to_others.map(|s| s.packet.bytes().len() + 28).sum();
    let of_peer =
        t.assoc().paths().map(|p| p.counters.bytes_received + 28 * p.counters.packets_received);
    let of_peer = of_peer.sum::<u64>();
    assert!(bytes as u64 <= of_peer, "{bytes} of {of_peer}, {before} of the handshake");
}

#[test]
fn a_long_chunk_is_carried_out_in_part_and_the_answer_fits_a_packet() {
    let (mut t, peer) = server();
    let source = t.pairs[0].1;
    let multicast: IpAddr = "ff02::1".parse().unwrap();
    let requests: Vec<_> = (0..200).map(|n| prefer(n, multicast)).collect();
    ask(&mut t, &peer, source, 1, &requests);
    let sent = t.take_sent();
    assert_eq!(sent.len(), 1);
    assert!(sent[0].packet.bytes().len() <= 1280 - 48, "{}", sent[0].packet.bytes().len());
    assert_eq!(errors_in(&sent).len(), 17);
    // The peer takes what is behind as failed (A7).
    assert_eq!(errors_in(&sent).last(), Some(&0xa1));
}

#[test]
fn before_the_association_is_open_requests_are_discarded() {
    let mut t = on(Setup::client()).start();
    t.connect();
    let init = t.expect_init();
    let answer = knowing(init_ack());
    let peer = Peer::of(&answer, &init);
    let source = t.pairs[0].1;
    ask(&mut t, &peer, source, 1, &[add(1, ip(1))]);
    t.peer(answer);
    t.take_sent();
    ask(&mut t, &peer, source, 1, &[add(1, ip(1))]);
    assert_eq!(t.take_sent().len(), 0);
    t.peer(cookie_ack());
    assert_eq!(remotes(&t), [source.ip()]);
    ask(&mut t, &peer, source, 1, &[add(1, ip(1))]);
    assert_eq!(answers(&mut t, &peer).len(), 1);
}

#[test]
fn while_shutting_down_requests_are_answered_until_the_last_chunk_is_sent() {
    let (mut t, peer) = server();
    let source = t.pairs[0].1;
    t.send(10);
    t.with(|a, now| a.shutdown(now));
    t.take_sent();
    ask(&mut t, &peer, source, 1, &[add(1, ip(1))]);
    assert_eq!(answers(&mut t, &peer).len(), 1, "SHUTDOWN-PENDING");
    t.peer(sack(1));
    t.take_sent();
    ask(&mut t, &peer, source, 2, &[add(1, ip(2))]);
    assert_eq!(answers(&mut t, &peer).len(), 1, "SHUTDOWN-SENT");
    t.peer(shutdown_ack());
    t.take_sent();
    ask(&mut t, &peer, source, 3, &[add(1, ip(3))]);
    assert_eq!(answers(&mut t, &peer).len(), 0);
}

// ---- Requests of this end (§5.1, §5.3) ----

#[test]
fn a_new_address_is_told_on_a_working_path_and_used_when_that_is_answered() {
    let (mut t, peer) = client();
    let (own, remote) = t.pairs[0];
    t.with(|a, now| a.add_path(now, at(1), remote)).expect("room");
    let (local, to, chunk) = request(&mut t, &peer).expect("a request");
    assert_eq!((local, to), (own, remote));
    assert_eq!((chunk.serial, chunk.address), (1, own.ip()), "§5.1, A2: the initial TSN");
    assert_eq!(chunk.requests, [add(1, ip(1))]);
    t.run_ms(300);
    t.send_packets(2);
    let sent = t.take_sent();
    assert!(!sent.is_empty() && sent.iter().all(|s| s.local == own), "F1");
    answer(&mut t, &peer, 1, &[]);
    assert!(t.events().contains(&done(AddressChange::Added(ip(1)))));
    let sent = t.take_sent();
    let [heartbeat] = &sent[..] else { panic!("F2: {sent:?}") };
    let info = heartbeat_info(&heartbeat.packet).expect("it is verified first");
    assert_eq!((heartbeat.local, heartbeat.remote), (at(1), remote));
    t.peer_from((at(1), remote), heartbeat_ack(&info));
    assert_eq!(t.path_state(2), PathState::Active);
    t.run_ms(10_000);
    assert!(request(&mut t, &peer).is_none(), "nothing is left to say");
}

#[test]
fn an_address_that_is_gone_is_deleted_from_another() {
    let (mut t, peer) = client_of(Setup::client().paths(2));
    let gone = t.pairs[0].0;
    t.with(|a, now| a.local_gone(now, gone));
    let (local, _, chunk) = request(&mut t, &peer).expect("a request");
    assert_eq!(local, t.pairs[1].0, "F6");
    assert_eq!(chunk.requests, [delete(1, gone.ip())]);
    answer(&mut t, &peer, 1, &[]);
    assert!(t.events().contains(&done(AddressChange::Deleted(gone.ip()))));
    // F5: the last one is not.
    let last = t.pairs[1].0;
    t.with(|a, now| a.local_gone(now, last));
    t.run_ms(20_000);
    assert!(request(&mut t, &peer).is_none());
}

#[test]
fn a_host_that_moves_asks_from_its_new_address() {
    let (mut t, peer) = client();
    let (own, remote) = t.pairs[0];
    t.send_packets(3);
    t.take_sent();
    t.with(|a, now| a.local_gone(now, own));
    t.with(|a, now| a.add_path(now, at(1), remote)).expect("room");
    let (local, to, chunk) = request(&mut t, &peer).expect("a request");
    assert_eq!((local, to), (at(1), remote));
    assert_eq!(chunk.address, own.ip(), "§5.3.2: the peer knows this one");
    // A NAT may be between, and some peers know named addresses only.
    let moved = [add(1, ip(1)), add(2, ANY), delete(3, ANY), delete(4, own.ip())];
    assert_eq!(chunk.requests, moved);
    let serial = t.view().1.0.wrapping_add(1);
    let packet = peer.packet(&t, 0, asconf_ack(serial, []));
    t.peer_bytes((at(1), remote), packet);
    let events = t.events();
    for change in [AddressChange::Added(ip(1)), AddressChange::Deleted(own.ip())] {
        assert!(events.contains(&done(change)), "{events:?}");
    }
    let sent = t.take_sent();
    let info = heartbeat_info(&sent.last().expect("a packet").packet).expect("a HEARTBEAT");
    t.peer_from((at(1), remote), heartbeat_ack(&info));
    assert_eq!(t.assoc().paths().map(|p| p.local).collect::<Vec<_>>(), [at(1)]);
    t.run_ms(5000);
    let sent = t.take_sent();
    assert!(sent.iter().all(|s| s.local == at(1)));
    let has_data = |s: &SentPacket| s.packet.chunks().any(|c| matches!(c, Ok(Chunk::Data(_))));
    assert!(sent.iter().any(has_data), "data goes on: {sent:?}");
}

#[test]
fn a_move_has_succeeded_if_the_peer_knows_one_of_the_two_ways_to_say_it() {
    // usrsctp takes 0.0.0.0 for an address; behind a NAT the other one is wrong.
    for wrong in [[2, 3], [1, 4]] {
        let (mut t, peer) = client();
        let (own, remote) = t.pairs[0];
        t.with(|a, now| a.local_gone(now, own));
        t.with(|a, now| a.add_path(now, at(1), remote)).expect("room");
        assert!(request(&mut t, &peer).is_some());
        let response = |request| {
            if wrong.contains(&request) {
                AsconfResponse::error(request, ErrorCause::ResourceShortage(Bytes::new()))
            } else {
                AsconfResponse::Success { request }
            }
        };
        answer(&mut t, &peer, 1, &(1..=4).map(response).collect::<Vec<_>>());
        let events = t.events();
        for change in [AddressChange::Added(ip(1)), AddressChange::Deleted(own.ip())] {
            assert!(events.contains(&done(change)), "{events:?}");
        }
    }
}

#[test]
fn a_host_that_moves_twice_says_where_it_is_in_the_end() {
    let (mut t, peer) = client();
    let (own, remote) = t.pairs[0];
    t.with(|a, now| a.local_gone(now, own));
    t.with(|a, now| a.add_path(now, at(1), remote)).expect("room");
    let (_, _, first) = request(&mut t, &peer).expect("a request");
    t.with(|a, now| a.local_gone(now, at(1)));
    t.with(|a, now| a.add_path(now, at(2), remote)).expect("room");
    let (local, _, again) = request(&mut t, &peer).expect("the request again, at once");
    assert_eq!((local, &again), (at(2), &first), "B4: unchanged");
    // The peer may have got the first one only, so where it thinks this end is, is asked again.
    let serial = t.view().1.0.wrapping_add(1);
    let packet = peer.packet(&t, 0, asconf_ack(serial, []));
    t.peer_bytes((at(2), remote), packet);
    let (local, _, second) = request(&mut t, &peer).expect("another request");
    assert_eq!((local, second.serial), (at(2), 2));
    let moved = [add(1, ip(2)), add(2, ANY), delete(3, ANY)];
    assert_eq!(second.requests[..3], moved);
    let packet = peer.packet(&t, 0, asconf_ack(serial.wrapping_add(1), []));
    t.peer_bytes((at(2), remote), packet);
    t.run_ms(2000);
    assert!(request(&mut t, &peer).is_none());
    assert!(t.assoc().is_established());
}

#[test]
fn one_request_at_a_time_is_in_flight() {
    let (mut t, peer) = client();
    let remote = t.pairs[0].1;
    for n in 1..=3 {
        t.with(|a, now| a.add_path(now, at(n), remote)).expect("room");
    }
    let (_, _, chunk) = request(&mut t, &peer).expect("a request");
    assert_eq!(chunk.requests, [add(1, ip(1))]);
    assert!(request(&mut t, &peer).is_none(), "A3");
    answer(&mut t, &peer, 1, &[]);
    let (_, _, chunk) = request(&mut t, &peer).expect("the rest together");
    assert_eq!((chunk.serial, chunk.requests), (2, vec![add(1, ip(2)), add(2, ip(3))]));
}

#[test]
fn a_request_without_an_answer_is_repeated_with_back_off_on_other_paths() {
    let (mut t, peer) = client_of(Setup::client().paths(2).set("rto_initial", "1 s"));
    let remote = t.pairs[0].1;
    t.with(|a, now| a.local_added(now, at(1)));
    let (first, _, chunk) = request(&mut t, &peer).expect("a request");
    let (mut times, mut locals, mut last) = (vec![], vec![first], t.now());
    for _ in 0..4 {
        let begun = t.now();
        let again = loop {
            t.run_ms(10);
            assert!(t.now() - begun < std::time::Duration::from_secs(20));
            if let Some((local, _, again)) = request(&mut t, &peer) {
                locals.push(local);
                break again;
            }
        };
        assert_eq!(again, chunk, "B4: the same");
        times.push((t.now() - last).as_secs_f64());
        last = t.now();
    }
    for pair in times.windows(2) {
        assert!((1.9..2.1).contains(&(pair[1] / pair[0])), "B3: {times:?}");
    }
    assert!(locals.iter().any(|local| *local != first), "B4: {locals:?}");
    assert!(t.assoc().paths().map(|p| p.error_count).max() > Some(0), "B1");
    answer(&mut t, &peer, 1, &[]);
    assert!(t.assoc().is_established() && remote == t.pairs[0].1);
    t.run_ms(60_000);
    assert!(request(&mut t, &peer).is_none(), "A5: the timer is stopped");
}

#[test]
fn a_peer_that_never_answers_ends_the_association() {
    let (mut t, _) = client_of(Setup::client().set("association_max_retrans", "4"));
    t.with(|a, now| a.local_added(now, at(1)));
    t.run_ms(300_000);
    let closed = t.events().into_iter().find(|e| matches!(e, Event::Closed(_)));
    assert_eq!(closed, Some(Event::Closed(AssocClosed::PathsFailed)), "B2");
}

#[test]
fn an_answer_that_answers_nothing_ends_the_association() {
    // F0: a number that was not used. Numbers of before are ignored.
    for (ahead, ends) in [(0, true), (1, true), (0x7fff_fffe, true), (u32::MAX, false)] {
        let (mut t, peer) = client();
        answer(&mut t, &peer, 1_u32.wrapping_add(ahead), &[]);
        assert_eq!(t.assoc().closed().is_some(), ends, "{ahead:#x}");
        if ends {
            t.expect("ABORT 163");
        }
    }
    // With one in flight.
    let (mut t, peer) = client();
    t.with(|a, now| a.local_added(now, at(1)));
    answer(&mut t, &peer, 0, &[]);
    assert!(t.assoc().closed().is_none());
    t.peer(asconf_ack(t.view().1.0.wrapping_add(2), []));
    assert!(t.assoc().closed().is_none(), "not authenticated");
    answer(&mut t, &peer, 2, &[]);
    assert!(t.assoc().closed().is_some());
}

#[test]
fn an_address_that_is_refused_is_not_used() {
    let (mut t, peer) = client();
    let (_, remote) = t.pairs[0];
    t.with(|a, now| a.add_path(now, at(1), remote)).expect("room");
    assert!(request(&mut t, &peer).is_some());
    let cause = ErrorCause::ResourceShortage(Bytes::new());
    answer(&mut t, &peer, 1, &[AsconfResponse::error(1, cause)]);
    let outcome = AddressOutcome::Refused { cause: 0xa1 };
    let change = AddressChange::Added(ip(1));
    assert!(t.events().contains(&Event::AddressRequest { change, outcome }));
    t.run_ms(30_000);
    assert!(t.take_sent().iter().all(|s| s.local != at(1)), "F10");
    // Others may be tried.
    t.with(|a, now| a.add_path(now, at(2), remote)).expect("room");
    assert!(request(&mut t, &peer).is_some());
}

#[test]
fn requests_behind_one_that_failed_have_failed_unless_success_is_said() {
    let (mut t, peer) = client();
    let remote = t.pairs[0].1;
    t.with(|a, now| a.local_added(now, at(9)));
    answer(&mut t, &peer, 1, &[]);
    t.events();
    t.take_sent();
    t.with(|a, now| a.local_added(now, at(8)));
    for n in 1..=4 {
        t.with(|a, now| a.local_added(now, at(n)));
    }
    answer(&mut t, &peer, 2, &[]);
    t.events();
    let cause = ErrorCause::ResourceShortage(Bytes::new());
    let responses = [AsconfResponse::error(2, cause), AsconfResponse::Success { request: 4 }];
    answer(&mut t, &peer, 3, &responses);
    let outcomes: Vec<_> = t
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::AddressRequest { outcome, .. } => Some(outcome == AddressOutcome::Done),
            _ => None,
        })
        .collect();
    assert_eq!(outcomes, [true, false, false, true], "A7");
    assert_eq!(remote, t.pairs[0].1);
}

#[test]
fn a_peer_that_does_not_know_requests_gets_no_more_of_them() {
    // F3a and F3b
    let refused = || {
        let cause = ErrorCause::UnrecognizedParameters(Bytes::from_static(b"\xc0\x01\0\x04"));
        AsconfResponse::error(1, cause)
    };
    let (mut t, peer) = client();
    let (own, remote) = t.pairs[0];
    t.with(|a, now| a.add_path(now, at(1), remote)).expect("room");
    answer(&mut t, &peer, 1, &[refused()]);
    t.take_sent();
    t.with(|a, now| a.local_added(now, at(2)));
    assert!(request(&mut t, &peer).is_none());
    t.with(|a, now| a.set_peer_primary(now, own.ip())).expect("that is another request");
    assert_eq!(request(&mut t, &peer).expect("a request").2.requests, [prefer(1, own.ip())]);
    answer(&mut t, &peer, 2, &[refused()]);
    let result = t.with(|a, now| a.set_peer_primary(now, own.ip()));
    assert_eq!(result, Err(AddressError::NotSupported));
    // A9: the whole chunk is unknown. New addresses are then used as ever.
    let (mut t, peer) = client();
    t.with(|a, now| a.add_path(now, at(1), remote)).expect("room");
    assert!(request(&mut t, &peer).is_some());
    t.peer(error(ErrorCause::UnrecognizedChunkType(Bytes::from_static(b"\xc1\0\0\x04"))));
    let change = AddressChange::Added(ip(1));
    let outcome = AddressOutcome::NotSupported;
    assert!(t.events().contains(&Event::AddressRequest { change, outcome }));
    t.expect("HEARTBEAT");
    t.run_ms(60_000);
    assert!(request(&mut t, &peer).is_none());
}

#[test]
fn an_abort_to_an_address_in_change_is_ignored() {
    // §5.3.1: a packet to or from the address may have met a peer that did not know it.
    let (mut t, peer) = client_of(Setup::client().paths(2));
    let (own, remote) = t.pairs[0];
    t.with(|a, now| {
        a.local_gone(now, own);
        a.add_path(now, at(1), remote).expect("room");
    });
    let requests = request(&mut t, &peer).expect("a request").2.requests;
    assert_eq!(requests, [add(1, ip(1)), delete(2, own.ip())]);
    for local in [at(1), own] {
        t.peer_with_tag((local, remote), PEER_TAG, abort(&[]).reflected());
        assert!(t.assoc().closed().is_none(), "{local}");
    }
    assert!(t.take_sent().iter().all(|s| s.local != at(1)), "the peer does not know it yet");
    // At an address that does not change it counts.
    let other = t.pairs[1];
    t.peer_with_tag(other, PEER_TAG, abort(&[]).reflected());
    assert!(t.assoc().closed().is_some());
}

#[test]
fn a_peer_that_lost_the_association_ends_it_at_the_only_address_too() {
    let (mut t, peer) = client();
    let (own, remote) = t.pairs[0];
    t.with(|a, now| a.local_gone(now, own));
    t.with(|a, now| a.add_path(now, at(1), remote)).expect("room");
    assert!(request(&mut t, &peer).is_some());
    t.peer_with_tag((own, remote), PEER_TAG, abort(&[]).reflected());
    assert!(t.assoc().closed().is_none());
    t.peer_with_tag((at(1), remote), PEER_TAG, abort(&[]).reflected());
    assert!(t.assoc().closed().is_some());
}

#[test]
fn the_peer_is_asked_to_prefer_an_address_that_it_knows() {
    let (mut t, peer) = client_of(Setup::client().paths(2));
    let second = t.pairs[1].0.ip();
    let unknown = t.with(|a, now| a.set_peer_primary(now, ip(1)));
    assert_eq!(unknown, Err(AddressError::UnknownAddress { address: ip(1) }));
    t.with(|a, now| a.set_peer_primary(now, second)).expect("it is known");
    assert_eq!(request(&mut t, &peer).expect("a request").2.requests, [prefer(1, second)]);
    answer(&mut t, &peer, 1, &[]);
    assert!(t.events().contains(&done(AddressChange::Primary(second))));
    // A new one is added first, in the same chunk.
    let remote = t.pairs[0].1;
    t.with(|a, now| {
        a.add_path(now, at(1), remote).expect("room");
        a.set_peer_primary(now, ip(1)).expect("it is to be added");
    });
    let requests = request(&mut t, &peer).expect("a request").2.requests;
    assert_eq!(requests, [add(1, ip(1)), prefer(2, ip(1))]);
    answer(&mut t, &peer, 2, &[]);
    // So does a choice of this end's primary path.
    t.with(|a, now| a.set_primary(now, PathId(1)));
    assert_eq!(request(&mut t, &peer).expect("a request").2.requests, [prefer(1, second)]);
}

#[test]
fn addresses_that_the_peer_cannot_mean_are_not_told() {
    let (mut t, peer) = client();
    let other_port: SocketAddr = (ip(1), PORT + 1).into();
    for local in [
        other_port,
        ([127, 0, 0, 1], PORT).into(),
        ([169, 254, 1, 2], PORT).into(),
        ([0, 0, 0, 0], PORT).into(),
        (t.pairs[0].0.ip(), PORT).into(),
    ] {
        t.with(|a, now| a.local_added(now, local));
        assert!(request(&mut t, &peer).is_none(), "{local}");
    }
    // The peer learns an address with another port, as on a relay, as without the extension.
    let remote = t.pairs[0].1;
    t.with(|a, now| a.add_path(now, other_port, remote)).expect("room");
    t.expect("HEARTBEAT");
}

#[test]
fn an_address_that_comes_and_goes_before_it_is_told_is_not_mentioned() {
    let (mut t, peer) = client();
    let remote = t.pairs[0].1;
    t.with(|a, now| {
        a.add_path(now, at(1), remote).expect("room");
        a.local_gone(now, at(1));
    });
    assert!(request(&mut t, &peer).is_none());
    // While it is being told, the opposite follows.
    t.with(|a, now| a.add_path(now, at(2), remote)).expect("room");
    assert!(request(&mut t, &peer).is_some());
    t.with(|a, now| a.local_gone(now, at(2)));
    assert!(request(&mut t, &peer).is_none());
    answer(&mut t, &peer, 1, &[]);
    assert_eq!(request(&mut t, &peer).expect("a request").2.requests, [delete(1, ip(2))]);
    // And again: it came back meanwhile.
    t.with(|a, now| a.add_path(now, at(2), remote)).expect("room");
    answer(&mut t, &peer, 2, &[]);
    assert_eq!(request(&mut t, &peer).expect("a request").2.requests, [add(1, ip(2))]);
}

#[test]
fn random_requests_break_nothing() {
    for seed in 0..60_u64 {
        let (mut t, peer) =
            if seed % 2 == 0 { server() } else { client_of(Setup::client().paths(2)) };
        let mut rng = manypath_proto::Rng::from_number(seed);
        let mut serial = 1;
        for _ in 0..80 {
            let mut number = 0;
            let address = |rng: &mut manypath_proto::Rng| match rng.below(8) {
                0 => ANY,
                1 => [224, 0, 0, 1].into(),
                2 => "2001:db8::7".parse().unwrap(),
                3 => [10, 0, 0, 2].into(),
                n => ip(n as u8),
            };
            let requests: Vec<_> = (0..rng.below(6))
                .map(|_| {
                    number += 1;
                    let address = address(&mut rng);
                    match rng.below(5) {
                        0 | 1 => add(number, address),
                        2 => prefer(number, address),
                        _ => delete(number, address),
                    }
                })
                .collect();
            let from = if rng.below(3) == 0 { at(rng.below(8) as u8) } else { t.pairs[0].1 };
            ask(&mut t, &peer, from, serial, &requests);
            serial += u32::from(rng.below(10) > 0);
            match rng.below(8) {
                0 => t.answer_heartbeats(),
                1 => t.run_ms(rng.below(5000)),
                2 => drop(t.try_send(0, 3000)),
                3 => {
                    let (local, remote) = (at(20 + rng.below(3) as u8), t.pairs[0].1);
                    t.with(|a, now| a.add_path(now, local, remote));
                }
                4 => {
                    let local = at(20 + rng.below(3) as u8);
                    t.with(|a, now| a.local_gone(now, local));
                }
                5 => {
                    if let Some((_, _, chunk)) = request(&mut t, &peer) {
                        answer(&mut t, &peer, chunk.serial, &[]);
                    }
                }
                _ => {}
            }
            if t.assoc().closed().is_some() {
                break;
            }
            let (paths, most) = (t.assoc().paths().count(), t.assoc().config().max_paths as usize);
            assert!(paths >= 1 && paths <= most, "seed {seed}");
        }
    }
}
