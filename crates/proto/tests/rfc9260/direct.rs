//! Direct paths: lists of candidates, and the checks of pairs of addresses.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use manypath_proto::testing::*;
use manypath_proto::{
    AssocClosed, Candidate, CandidateKind, Directness, Event, Instant, PathRank, PathState,
};
use manypath_wire::{Candidates, Chunk, NamedAddress, Parameter, chunk_type};

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn announcement() -> Parameter {
    Parameter::SupportedExtensions(vec![chunk_type::CANDIDATES].into())
}

/// The relayed pair of the association, and a second address of ours that no path has.
const HERE: &str = "10.0.0.2:9899";
const RELAYED: &str = "192.0.2.9:50000";
const OTHER: &str = "10.0.7.2:9899";

fn own(kind: CandidateKind, base: &str, public: &str) -> Candidate {
    Candidate { kind, base: address(base), address: address(public) }
}

fn host(base: &str) -> Candidate {
    own(CandidateKind::Host, base, base)
}

fn named(kind: CandidateKind, base: u8, public: &str) -> NamedAddress {
    NamedAddress { kind, base, address: address(public) }
}

fn list(serial: u32, seen: u32, list: Vec<NamedAddress>) -> PeerChunk {
    PeerChunk::Plain(Chunk::Candidates(Candidates {
        asks: false,
        direct_only: false,
        serial,
        seen,
        list,
    }))
}

fn asking(serial: u32, seen: u32, list: Vec<NamedAddress>) -> PeerChunk {
    PeerChunk::Plain(Chunk::Candidates(Candidates {
        asks: true,
        direct_only: false,
        serial,
        seen,
        list,
    }))
}

fn setup() -> Setup {
    let pair = (address(HERE), address(RELAYED));
    Setup::client().pairs(&[pair]).profile("fast").preset("adaptive")
}

/// A client with these candidates whose association over a relay is open; its first list is among
/// the packets sent.
fn client(candidates: &[Candidate], init_ack: PeerChunk) -> Script {
    let mut t = setup().start();
    t.endpoint.set_candidates(t.now(), candidates);
    t.connect();
    t.expect_init();
    t.peer(init_ack);
    t.expect("COOKIE ECHO");
    t.peer(cookie_ack());
    t
}

/// A client whose INIT left on several paths, and whose association is open.
fn opened(setup: Setup) -> Script {
    let mut t = setup.start();
    t.endpoint.set_candidates(t.now(), [host(HERE)].as_slice());
    t.connect();
    t.expect_init();
    t.take_sent();
    t.peer(init_ack().param(announcement()));
    t.peer(cookie_ack());
    t
}

/// The lists among what was sent since the last look.
fn lists(t: &mut Script) -> Vec<Candidates> {
    let chunks = |sent: SentPacket| sent.packet.chunks().flatten().collect::<Vec<_>>();
    let is_list = |chunk| match chunk {
        Chunk::Candidates(list) => Some(list),
        _ => None,
    };
    t.take_sent().into_iter().flat_map(chunks).filter_map(is_list).collect()
}

/// A heartbeat that was sent.
struct Sent {
    from: SocketAddr,
    to: SocketAddr,
    info: Bytes,
}

/// The heartbeats among what was sent since the last look that did not take the relay.
fn checks(t: &mut Script) -> Vec<Sent> {
    let check = |sent: SentPacket| {
        let info = sent.packet.chunks().flatten().find_map(|chunk| match chunk {
            Chunk::Heartbeat(info) => Some(info.0),
            _ => None,
        });
        let (from, to) = (sent.local, sent.remote);
        info.map(|info| Sent { from, to, info })
    };
    let sent = t.take_sent().into_iter().filter(|sent| sent.remote != address(RELAYED));
    sent.filter_map(check).collect()
}

/// The peer sends packets over the relay, which allow as many bytes of checks.
fn fill_credit(t: &mut Script) {
    for _ in 0..100 {
        t.peer(PeerChunk::Raw(chunk_type::PAD, 0, vec![0; 1000]));
    }
}

#[test]
fn a_list_is_repeated_until_the_peer_has_it() {
    let reflexive = own(CandidateKind::Reflexive, HERE, "198.51.100.7:4000");
    let mut t = client(&[host(HERE), reflexive], init_ack().param(announcement()));
    let first = lists(&mut t);
    let told = vec![
        named(CandidateKind::Host, 0, HERE),
        named(CandidateKind::Reflexive, 0, "198.51.100.7:4000"),
    ];
    assert_eq!(
        first,
        [Candidates { asks: true, direct_only: false, serial: 1, seen: 0, list: told.clone() }]
    );
    t.run_ms(299);
    assert_eq!(lists(&mut t), []);
    t.run_ms(1);
    assert_eq!(lists(&mut t), first);
    t.run_ms(600);
    assert_eq!(lists(&mut t), first, "the wait has doubled");
    t.peer(list(1, 1, vec![]));
    let answer = Candidates { asks: false, direct_only: false, serial: 1, seen: 1, list: told };
    assert_eq!(lists(&mut t), [answer], "the peer's list is new");
    t.run(Duration::from_secs(600));
    assert_eq!(lists(&mut t), []);
}

#[test]
fn a_list_without_an_answer_is_given_up() {
    let mut t = client(&[host(HERE)], init_ack().param(announcement()));
    let mut told = 0;
    for _ in 0..3600 {
        t.run_ms(1000);
        t.answer_heartbeats();
        told += lists(&mut t).len();
    }
    assert_eq!(told, 10);
}

#[test]
fn an_answer_that_was_lost_is_given_again_and_answers_draw_none() {
    let mut t = client(&[host(HERE)], init_ack().param(announcement()));
    t.peer(asking(1, 1, vec![]));
    assert_eq!(lists(&mut t).len(), 2, "the first one and the answer");
    t.peer(asking(1, 1, vec![]));
    assert_eq!(lists(&mut t).len(), 1);
    t.peer(list(1, 1, vec![]));
    assert_eq!(lists(&mut t), []);
    t.peer(list(0x8000_0002, 1, vec![named(CandidateKind::Host, 0, OTHER)]));
    assert_eq!(lists(&mut t), [], "an old list");
}

#[test]
fn other_candidates_make_another_list() {
    let mut t = client(&[host(HERE)], init_ack().param(announcement()));
    t.peer(list(1, 1, vec![]));
    lists(&mut t);
    t.endpoint.set_candidates(t.now(), [host(HERE)].as_slice());
    t.settle();
    assert_eq!(lists(&mut t), [], "nothing is new");
    t.endpoint.set_candidates(t.now(), [host(HERE), host(OTHER)].as_slice());
    t.settle();
    let told = vec![named(CandidateKind::Host, 0, HERE), named(CandidateKind::Host, 1, OTHER)];
    assert_eq!(
        lists(&mut t),
        [Candidates { asks: true, direct_only: false, serial: 2, seen: 1, list: told }]
    );
}

#[test]
fn a_peer_that_does_not_take_part_hears_nothing() {
    let mut t = client(&[host(HERE)], init_ack());
    t.peer(asking(1, 0, vec![named(CandidateKind::Host, 0, OTHER)]));
    t.run(Duration::from_secs(10));
    assert_eq!(lists(&mut t), []);
    // An end that has no candidates does not take part, either.
    let mut t = setup().start();
    t.connect_to(init_ack().param(announcement()));
    t.peer(asking(1, 0, vec![named(CandidateKind::Host, 0, "203.0.113.5:9899")]));
    t.run(Duration::from_secs(10));
    let sent = t.take_sent();
    assert!(sent.iter().all(|sent| sent.remote == address(RELAYED)), "{sent:?}");
}

/// A server with one candidate, and a client of this INIT.
fn server(init: PeerChunk) -> Script {
    let mut t = Setup::server().start();
    t.endpoint.set_candidates(t.now(), [host("10.0.0.1:9899")].as_slice());
    t.accept_without_verification(init);
    t
}

#[test]
fn a_server_takes_part_where_its_client_does() {
    let announces = |init: PeerChunk| {
        let mut t = server(init);
        t.with(|a, now| a.seek_direct_paths(now));
        t.run_ms(300);
        !lists(&mut t).is_empty()
    };
    assert!(announces(init().param(announcement())));
    assert!(!announces(init()));
}

/// Anybody can open an association. Only a peer that the application knows learns where we are.
#[test]
fn a_stranger_is_told_nothing_and_draws_no_checks() {
    let mut t = server(init().param(announcement()));
    let pair = t.pairs[0];
    t.peer(asking(1, 0, vec![named(CandidateKind::Host, 0, "203.0.113.5:9899")]));
    fill_credit(&mut t);
    t.run_ms(3000);
    let sent = t.take_sent();
    assert!(sent.iter().all(|sent| sent.remote == pair.1), "{sent:?}");
    let is_list = |chunk: &Chunk| matches!(chunk, Chunk::Candidates(_));
    assert!(!sent.iter().any(|sent| sent.packet.chunks().flatten().any(|c| is_list(&c))));
    t.with(|a, now| a.seek_direct_paths(now));
    t.run_ms(100);
    let sent = t.take_sent();
    assert!(sent.iter().any(|sent| sent.packet.chunks().flatten().any(|c| is_list(&c))));
    assert!(sent.iter().any(|sent| sent.remote == address("203.0.113.5:9899")), "{sent:?}");
}

#[test]
fn a_pair_whose_check_is_answered_is_a_path() {
    let mut t = client(&[host(HERE)], init_ack().param(announcement()));
    let there = "203.0.113.5:9899";
    t.peer(list(1, 1, vec![named(CandidateKind::Reflexive, 0, there)]));
    t.run_ms(1);
    let sent = checks(&mut t);
    let [check] = &sent[..] else { panic!("one check: {}", sent.len()) };
    assert_eq!((check.from, check.to), (address(HERE), address(there)));
    t.run_ms(30);
    t.peer_from((check.from, check.to), heartbeat_ack(&check.info));
    let path = t.assoc().paths().find(|p| p.remote == address(there)).expect("a path");
    assert_eq!(path.state, PathState::Active);
    assert_eq!(t.assoc().path_rank(path.id), Some(PathRank::NORMAL));
    let relayed = t.assoc().paths().find(|p| p.remote == address(RELAYED)).expect("a path");
    assert_eq!(t.assoc().path_rank(relayed.id), Some(PathRank::NORMAL), "nobody said so");
    checks(&mut t);
    t.run_ms(3000);
    let more = checks(&mut t).into_iter().filter(|c| c.info.len() == check.info.len()).count();
    assert_eq!(more, 0, "a path needs no checks");
}

#[test]
fn an_answer_counts_if_it_comes_back_the_same_way() {
    let mut t = client(&[host(HERE), host(OTHER)], init_ack().param(announcement()));
    let there = address("203.0.113.5:9899");
    t.peer(list(1, 1, vec![named(CandidateKind::Host, 0, "203.0.113.5:9899")]));
    fill_credit(&mut t);
    t.run_ms(100);
    let sent = checks(&mut t);
    let of = |from: &str| sent.iter().find(|c| c.from == address(from)).expect("a check");
    let info = of(HERE).info.clone();
    let is_path = |t: &Script, local: &str| {
        let active = |p: &manypath_proto::PathStats| p.state == PathState::Active;
        t.assoc().paths().filter(active).any(|p| (p.local, p.remote) == (address(local), there))
    };
    for from in [(address(OTHER), there), (address(HERE), address("203.0.113.5:9898"))] {
        t.peer_from(from, heartbeat_ack(&info));
    }
    let mut changed = info.to_vec();
    changed[3] ^= 1;
    t.peer_from((address(HERE), there), heartbeat_ack(&changed.into()));
    assert!(!is_path(&t, HERE) && !is_path(&t, OTHER));
    t.peer_from((address(HERE), there), heartbeat_ack(&info));
    assert!(is_path(&t, HERE) && !is_path(&t, OTHER));
}

/// The first check of an address that the ticket names, too, was lost: the peer's firewall had seen
/// nothing of the peer yet. The peer's own check shows that it is open now.
#[test]
fn a_check_of_the_peer_is_followed_by_one_of_ours_at_once() {
    let there = address("203.0.113.5:9899");
    let pairs = [(address(HERE), address(RELAYED)), (address(HERE), there)];
    let mut t = opened(setup().pairs(&pairs));
    t.peer(list(1, 1, vec![named(CandidateKind::Host, 0, "203.0.113.5:9899")]));
    fill_credit(&mut t);
    t.run_ms(50);
    let sent = |t: &Script| t.assoc().stats().checks_sent;
    assert_eq!(sent(&t), 1);
    t.run_ms(50);
    assert_eq!(sent(&t), 1, "the next is not due yet");
    // These are lost.
    checks(&mut t);
    t.peer_from((address(HERE), there), heartbeat(b"of the peer"));
    t.run_ms(1);
    assert_eq!(sent(&t), 2);
    t.events();
    for check in checks(&mut t) {
        t.peer_from((check.from, check.to), heartbeat_ack(&check.info));
    }
    t.peer_from((address(HERE), there), heartbeat(b"of the peer"));
    for _ in 0..100 {
        t.run_ms(100);
        t.answer_heartbeats();
    }
    assert_eq!(sent(&t), 2, "a path that works needs none");
    let states = |event| match event {
        Event::PathState { to, .. } => Some(to),
        _ => None,
    };
    let states: Vec<_> = t.events().into_iter().filter_map(states).collect();
    assert_eq!(states, [PathState::Active], "the heartbeats before it do not count");
}

/// Both NATs take a port for each peer, and the peer's router forwards one (PCP, UPnP).
#[test]
fn a_port_that_the_peers_router_forwards_becomes_a_path() {
    let forwarded = "203.0.113.5:40000";
    let mut t = client(&[host(HERE)], init_ack().param(announcement()));
    t.take_sent();
    t.peer(list(1, 1, vec![named(CandidateKind::Mapped, 0, forwarded)]));
    fill_credit(&mut t);
    t.run_ms(100);
    let sent = checks(&mut t);
    assert!(!sent.is_empty());
    for check in sent {
        assert_eq!(check.to, address(forwarded));
        t.peer_from((check.from, check.to), heartbeat_ack(&check.info));
    }
    let path = t.assoc().paths().find(|p| p.remote == address(forwarded)).expect("a path");
    assert_eq!(path.state, PathState::Active);
}

/// A ticket has the peer's private addresses, too. Nobody wonders that they do not answer from
/// elsewhere; that a relay does not is worth a word.
#[test]
fn only_addresses_on_relays_are_missed() {
    let there = address("192.168.1.7:9899");
    let relays = [address(RELAYED), address("192.0.2.10:50000")];
    let pairs = [relays[0], relays[1], there].map(|remote| (address(HERE), remote));
    let mut t = opened(setup().pairs(&pairs).relayed(&relays));
    t.run_ms(2000);
    let unanswered = |event| match event {
        Event::NoAnswer { remote, .. } => Some(remote),
        _ => None,
    };
    let told: Vec<_> = t.events().into_iter().filter_map(unanswered).collect();
    assert_eq!(told, [relays[1]]);
}

/// A NAT with a mapping for each peer: the peer's checks come from a port that it did not name.
#[test]
fn a_place_that_is_reached_at_another_port_is_checked_no_more() {
    let mut t = client(&[host(HERE)], init_ack().param(announcement()));
    t.peer(list(1, 1, vec![named(CandidateKind::Reflexive, 0, "203.0.113.5:1000")]));
    fill_credit(&mut t);
    t.run_ms(1000);
    assert!(checks(&mut t).len() >= 5, "it is checked again and again");
    let from = (address(HERE), address("203.0.113.5:7777"));
    t.peer_from(from, heartbeat(b"of the peer"));
    t.answer_heartbeats_at(from.1);
    let found = t.assoc().paths().find(|p| p.remote == from.1).expect("a path");
    assert_eq!(found.state, PathState::Active);
    checks(&mut t);
    t.run_ms(3000);
    let more = checks(&mut t).into_iter().filter(|c| c.to == address("203.0.113.5:1000")).count();
    assert_eq!(more, 0);
}

#[test]
fn a_relayed_path_is_a_backup() {
    let relayed = own(CandidateKind::Relayed, HERE, HERE);
    let t = client(&[relayed], init_ack().param(announcement()));
    let path = t.assoc().paths().next().expect("a path").id;
    assert_eq!(t.assoc().path_rank(path), Some(PathRank::Backup));
    // The peer says that its address is on a relay.
    let mut t = client(&[host(HERE)], init_ack().param(announcement()));
    t.peer(list(1, 1, vec![named(CandidateKind::Relayed, 0, RELAYED)]));
    let path = t.assoc().paths().next().expect("a path").id;
    assert_eq!(t.assoc().path_rank(path), Some(PathRank::Backup));
    t.run_ms(1000);
    assert_eq!(checks(&mut t).len(), 0, "a relay is not checked");
}

/// A hostile peer names 9,600 addresses of others, as fast as it can.
#[test]
fn a_peer_that_names_thousands_of_addresses_draws_few_checks() {
    let mut t = client(&[host(HERE)], init_ack().param(announcement()));
    lists(&mut t);
    let mut times = Vec::new();
    for serial in 1..=300 {
        let [high, low] = (serial as u16).to_be_bytes();
        let victim = |n: u8| format!("203.{high}.{low}.{n}:53");
        let victims = (1..=32).map(|n| named(CandidateKind::Host, n, &victim(n))).collect();
        t.peer(list(serial, 1, victims));
        fill_credit(&mut t);
        for _ in 0..10 {
            t.run_ms(10);
            times.extend(checks(&mut t).iter().map(|_| t.now()));
        }
    }
    assert!(times.len() <= 1000, "{} in all", times.len());
    assert!(times.len() >= 900, "{} in all", times.len());
    let second = Duration::from_secs(1);
    let within = |&at: &Instant| times.iter().filter(|&&t| t >= at && t - at < second).count();
    let busiest = times.iter().map(within).max().unwrap_or(0);
    assert!(busiest <= 65, "{busiest} in a second");
    t.run(Duration::from_secs(3600));
    assert_eq!(checks(&mut t).len(), 0, "no more, ever");
}

/// Nobody gains by having us send instead.
#[test]
fn checks_have_no_more_bytes_than_the_peer_has_sent() {
    let mut t = client(&[host(HERE)], init_ack().param(announcement()));
    let victims = (1..=32).map(|n| named(CandidateKind::Host, n, &format!("203.0.113.{n}:53")));
    t.peer(list(1, 1, victims.collect()));
    t.run(Duration::from_secs(600));
    let len = |sent: &SentPacket| sent.packet.bytes().len() + 28;
    let sent = t.take_sent();
    let to_victims: usize = sent.iter().filter(|s| s.remote != address(RELAYED)).map(len).sum();
    // INIT ACK with a cookie, COOKIE ACK, one list.
    assert!((100..=1000).contains(&to_victims), "{to_victims} bytes");
}

#[test]
fn addresses_that_no_host_of_the_network_has_are_not_checked() {
    let mut t = client(&[host(HERE)], init_ack().param(announcement()));
    let named = [
        "0.0.0.0:1",
        "255.255.255.255:1",
        "224.0.0.1:1",
        "169.254.1.1:1",
        "127.0.0.1:1",
        "203.0.113.1:0",
        HERE,
        "[::1]:1",
        "[ff02::1]:1",
        "[fe80::1]:1",
        "[::ffff:203.0.113.1]:1",
        "[2001:db8::1]:1",
    ]
    .map(|text| named(CandidateKind::Host, 0, text));
    t.peer(list(1, 1, named.to_vec()));
    fill_credit(&mut t);
    t.run(Duration::from_secs(10));
    assert_eq!(checks(&mut t).len(), 0, "IPv6 has no address here, either");
}

/// The direct path fails: the other candidates of the peer are checked at once again.
#[test]
fn a_failed_direct_path_is_looked_for_again() {
    let mut t = client(&[host(HERE)], init_ack().param(announcement()));
    let there = ["203.0.113.5:9899", "203.0.113.6:9899"];
    let list_of_both = there.map(|text| named(CandidateKind::Reflexive, 0, text)).to_vec();
    t.peer(list(1, 1, list_of_both));
    fill_credit(&mut t);
    t.run_ms(50);
    let sent = checks(&mut t);
    let first = sent.iter().find(|c| c.to == address(there[0])).expect("a check");
    t.peer_from((first.from, first.to), heartbeat_ack(&first.info));
    t.run(Duration::from_secs(60));
    let before = checks(&mut t);
    let waits = before.iter().filter(|c| c.to == address(there[1])).count();
    assert!(waits > 3, "the path has failed meanwhile: {waits}");
}

// ---- Relays to meet only ----

const THERE: &str = "203.0.113.5:9899";

fn wishing(list: PeerChunk) -> PeerChunk {
    let PeerChunk::Plain(Chunk::Candidates(list)) = list else { panic!("no list") };
    PeerChunk::Plain(Chunk::Candidates(Candidates { direct_only: true, ..list }))
}

/// A client like [`client`] that wants relays to be there to meet only.
fn client_to_meet(init_ack: PeerChunk) -> Script {
    let mut t = setup().start();
    t.endpoint.set_direct_only(true);
    t.endpoint.set_candidates(t.now(), [host(HERE)].as_slice());
    t.connect();
    t.expect_init();
    t.peer(init_ack);
    t.expect("COOKIE ECHO");
    t.peer(cookie_ack());
    t
}

/// The candidates of a peer behind a relay.
fn behind_relay() -> Vec<NamedAddress> {
    vec![named(CandidateKind::Relayed, 0, RELAYED), named(CandidateKind::Host, 1, THERE)]
}

/// The check of the peer's own address is answered.
fn answer_check(t: &mut Script) {
    t.run_ms(1);
    let sent = checks(t);
    let check = sent.iter().find(|check| check.to == address(THERE)).expect("a check");
    t.run_ms(30);
    t.peer_from((check.from, check.to), heartbeat_ack(&check.info));
}

/// Where DATA went since the last look.
fn data_went(t: &mut Script) -> Vec<SocketAddr> {
    let is_data = |chunk| matches!(chunk, Chunk::Data(_) | Chunk::IData(_));
    let sent = t.take_sent().into_iter();
    sent.filter(|sent| sent.packet.chunks().flatten().any(is_data)).map(|s| s.remote).collect()
}

fn directness(t: &Script) -> Directness {
    t.assoc().directness()
}

#[test]
fn a_relay_that_is_there_to_meet_carries_the_first_words_and_nothing_later() {
    let mut t = client_to_meet(init_ack().param(announcement()));
    assert_eq!(directness(&t), Directness::Untold);
    let told = lists(&mut t);
    assert!(told.iter().all(|list| list.direct_only) && !told.is_empty(), "{told:?}");
    t.send(100);
    assert_eq!(data_went(&mut t), [address(RELAYED)], "its hello");
    t.peer(list(1, 1, behind_relay()));
    assert_eq!(directness(&t), Directness::Sought);
    fill_credit(&mut t);
    answer_check(&mut t);
    assert_eq!(directness(&t), Directness::Direct);
    data_went(&mut t);
    t.send_packets(5);
    let went = data_went(&mut t);
    assert!(!went.is_empty() && went.iter().all(|to| *to == address(THERE)), "{went:?}");

    // The direct path fails. The relayed one works, and carries nothing but heartbeats.
    for _ in 0..59 {
        t.run_ms(1000);
        t.answer_heartbeats_at(address(RELAYED));
    }
    let went = data_went(&mut t);
    assert!(went.iter().all(|to| *to == address(THERE)), "{went:?}");
    assert!(t.assoc().closed().is_none());
    for _ in 0..10 {
        t.run_ms(1000);
        t.answer_heartbeats_at(address(RELAYED));
    }
    assert_eq!(t.assoc().closed(), Some(&AssocClosed::PathsFailed), "as if no path worked");
}

#[test]
fn a_direct_path_that_comes_back_carries_what_waited() {
    let mut t = client_to_meet(init_ack().param(announcement()));
    t.peer(list(1, 1, behind_relay()));
    fill_credit(&mut t);
    answer_check(&mut t);
    t.send_packets(5);
    for _ in 0..20 {
        t.run_ms(1000);
        t.answer_heartbeats_at(address(RELAYED));
    }
    data_went(&mut t);
    for _ in 0..20 {
        t.run_ms(1000);
        t.answer_heartbeats();
    }
    let went = data_went(&mut t);
    assert!(!went.is_empty() && went.iter().all(|to| *to == address(THERE)), "{went:?}");
}

#[test]
fn the_wish_of_the_peer_holds_for_this_end() {
    let mut t = client(&[host(HERE)], init_ack().param(announcement()));
    assert_eq!(directness(&t), Directness::Unwanted);
    t.peer(wishing(list(1, 1, behind_relay())));
    assert_eq!(directness(&t), Directness::Sought);
    fill_credit(&mut t);
    answer_check(&mut t);
    assert_eq!(directness(&t), Directness::Direct);
    data_went(&mut t);
    t.send_packets(5);
    assert!(data_went(&mut t).iter().all(|to| *to == address(THERE)));
}

/// Without relays there is nothing to wait for. A peer that takes no part cannot know the wish.
#[test]
fn where_no_path_is_relayed_content_need_not_wait() {
    let t = client_to_meet(init_ack());
    assert_eq!(directness(&t), Directness::Direct);
    let mut t = client_to_meet(init_ack().param(announcement()));
    t.peer(list(1, 1, vec![named(CandidateKind::Host, 0, RELAYED)]));
    assert_eq!(directness(&t), Directness::Direct);
}

#[test]
fn a_stranger_is_told_that_its_wish_arrived_and_nothing_else() {
    let mut t = server(init().param(announcement()));
    t.run_ms(1000);
    t.take_sent();
    let ask = wishing(asking(1, 0, vec![named(CandidateKind::Host, 0, THERE)]));
    t.peer(ask);
    let empty = |serial, seen| Candidates {
        asks: false,
        direct_only: false,
        serial,
        seen,
        list: Vec::new(),
    };
    assert_eq!(lists(&mut t), [empty(0, 1)]);
    t.peer(wishing(list(1, 0, vec![])));
    t.peer(asking(1, 0, vec![]));
    assert_eq!(lists(&mut t), [], "nobody asked, or nobody wished");
    t.with(|a, now| a.seek_direct_paths(now));
    assert_eq!(lists(&mut t)[0].serial, 1);

    // The other end of that: the empty list is no list.
    let mut t = client_to_meet(init_ack().param(announcement()));
    lists(&mut t);
    t.peer(PeerChunk::Plain(Chunk::Candidates(empty(0, 1))));
    assert_eq!((lists(&mut t), directness(&t)), (vec![], Directness::Sought));
}
