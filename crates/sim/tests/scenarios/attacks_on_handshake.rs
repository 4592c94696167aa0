//! An active attacker changes the handshake of an association that both ends protect, or speaks in
//! between.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use manypath_keys::psk::SharedKey;
use manypath_keys::tls::{Identity, PeerKeys, TlsKeys};
use manypath_proto::{AssocClosed, PathState};
use manypath_sim::testing::Side;
use manypath_sim::testing::tamper::{ATTACKER, Forgery, Passing, Verdict};
use manypath_sim::{Keys, Pair, chunk_type, secs};
use manypath_wire::{
    Chunk, DataFlags, DtlsKeyManagement, DtlsKeyManagementFlags, Init, Parameter, Params, Ssn,
    StreamId, Tsn,
};

use crate::MIB;

fn keys() -> Keys {
    Arc::new(SharedKey::new(&[7; 32]).expect("long enough"))
}

/// A pair that has not begun yet; `a` will send a file.
fn beginning(keys: Option<Keys>) -> Pair {
    let pair = Pair::two_paths("cmt-pf").profile("fast").packet_log(false);
    let mut t = pair.keys_a(keys.clone()).keys_z(keys).with_middle().start();
    t.a.send_file(MIB);
    t
}

/// Changes the parameters of INIT or INIT ACK; others stay as they are.
fn change(passing: &mut Passing, ty: u8, parameters: impl Fn(Parameter) -> Option<Parameter>) {
    let other = |init: &Init| {
        let all = init.params.iter().filter_map(Result::ok);
        let params: Params = all.filter_map(&parameters).collect();
        Init { params, ..init.clone() }
    };
    match passing.first_chunk() {
        Some(Chunk::Init(init)) if ty == chunk_type::INIT => {
            passing.replace(|p| p.push_init(&other(&init)));
        }
        Some(Chunk::InitAck(init)) if ty == chunk_type::INIT_ACK => {
            passing.replace(|p| p.push_init_ack(&other(&init)));
        }
        _ => {}
    }
}

/// Both ends come to know that something is wrong, and nothing is delivered.
fn assert_refused(mut t: Pair, what: &str) {
    t.run_until(secs(100));
    let closed = t.a.closed();
    assert!(matches!(closed, Some(AssocClosed::NotProtected { .. })), "{what}: {closed:?}");
    assert_eq!(t.z.received_bytes(), 0, "{what}");
    assert!(t.z.events().is_empty(), "{what}: nobody has opened one: {:?}", t.z.events());
}

const BOTH: [u8; 2] = [chunk_type::INIT, chunk_type::INIT_ACK];

#[test]
fn an_unchanged_handshake_is_as_one_without_anybody_between() {
    let mut t = beginning(Some(keys()));
    t.middle().rewrite(|passing| {
        BOTH.into_iter().for_each(|ty| change(passing, ty, Some));
        Verdict::Pass
    });
    t.run_to_end(secs(60));
    assert_eq!(t.z.received_bytes(), MIB);
    assert!(t.a.assoc().is_some_and(|a| a.peer().is_some()));
}

#[test]
fn the_parameter_cannot_be_taken_out() {
    for ty in BOTH {
        let mut t = beginning(Some(keys()));
        t.middle().rewrite(move |passing| {
            change(passing, ty, |p| (p.ty() != 0x8006).then_some(p));
            Verdict::Pass
        });
        assert_refused(t, &format!("chunk of type {ty}"));
    }
}

#[test]
fn the_parameter_cannot_be_changed() {
    type Change = fn(&DtlsKeyManagement) -> Option<DtlsKeyManagement>;
    let changes: [(&str, Change); 5] = [
        ("another method first", |p| DtlsKeyManagement::new(p.tie_breaker(), p.flags(), &[192, 0])),
        ("another method last", |p| DtlsKeyManagement::new(p.tie_breaker(), p.flags(), &[0, 192])),
        ("a tie breaker one higher", |p| {
            DtlsKeyManagement::new(p.tie_breaker().wrapping_add(1), p.flags(), p.methods())
        }),
        ("the least tie breaker", |p| DtlsKeyManagement::new(0, p.flags(), p.methods())),
        ("one role", |p| {
            DtlsKeyManagement::new(p.tie_breaker(), DtlsKeyManagementFlags::CLIENT, p.methods())
        }),
    ];
    for (ty, (what, new)) in BOTH.into_iter().flat_map(|ty| changes.map(|c| (ty, c))) {
        let mut t = beginning(Some(keys()));
        t.middle().rewrite(move |passing| {
            change(passing, ty, |p| match p {
                Parameter::DtlsKeyManagement(p) => new(&p).map(Parameter::DtlsKeyManagement),
                p => Some(p),
            });
            Verdict::Pass
        });
        assert_refused(t, &format!("{what}, chunk of type {ty}"));
    }
}

/// He lists his own address, and answers heartbeats there.
#[test]
fn an_address_that_was_put_into_the_list_gets_no_data() {
    for (ty, is_protected) in BOTH.into_iter().flat_map(|ty| [(ty, false), (ty, true)]) {
        let mut t = beginning(is_protected.then(keys));
        t.z.send_file(MIB);
        t.middle().answer_heartbeats();
        t.middle().rewrite(move |passing| {
            match passing.first_chunk() {
                Some(Chunk::Init(init)) if ty == chunk_type::INIT => {
                    let list = init.params.iter().filter_map(Result::ok);
                    let all = list.chain([Parameter::from(ATTACKER.ip())]).collect();
                    passing.replace(|p| p.push_init(&Init { params: all, ..init }));
                }
                Some(Chunk::InitAck(init)) if ty == chunk_type::INIT_ACK => {
                    let list = init.params.iter().filter_map(Result::ok);
                    let all = list.chain([Parameter::from(ATTACKER.ip())]).collect();
                    passing.replace(|p| p.push_init_ack(&Init { params: all, ..init }));
                }
                _ => {}
            }
            Verdict::Pass
        });
        t.run_until(secs(60));
        let what = format!("chunk of type {ty}, protected: {is_protected}");
        assert_eq!(t.middle().got(chunk_type::DATA) > 0, !is_protected, "{what}");
        if is_protected {
            assert!(t.middle().got(chunk_type::DTLS) > 0, "{what}: the address was asked");
            assert!(t.middle().longest_got() < 100, "{what}: by heartbeats only");
            assert_eq!((t.a.received_bytes(), t.z.received_bytes()), (MIB, MIB), "{what}");
            let all = [t.a.paths(), t.z.paths()].concat();
            let its = all.iter().filter(|p| p.remote == ATTACKER);
            assert!(its.into_iter().all(|p| p.state != PathState::Active), "{what}");
        }
    }
}

/// DATA of any kind comes at the peer's TSNs, from the moment on when the attacker knows them.
#[test]
fn data_injected_while_the_ends_agree_is_never_delivered() {
    let kinds = [(0, 4242), (0, 0), (1, 1 << 31), (3, 4242)];
    for ((stream, ppid), to) in kinds.into_iter().flat_map(|k| [(k, Side::A), (k, Side::Z)]) {
        for is_protected in [false, true] {
            let mut t = beginning(is_protected.then(keys));
            t.z.send_file(MIB);
            let run = catch_unwind(AssertUnwindSafe(|| {
                for _ in 0..600 {
                    t.run_for(Duration::from_millis(1));
                    if t.middle().tag(to) != 0 {
                        t.middle().forge(to, Forgery::Data { stream, ppid });
                    }
                }
                t.run_to_end(secs(60));
            }));
            let what = format!("stream {stream}, {ppid}, to {to:?}, protected: {is_protected}");
            // It is delivered, or the peer's own data then contradicts it.
            let is_harmed = run.is_err() || t.a.closed().is_some() || t.z.closed().is_some();
            assert_eq!(is_harmed, !is_protected, "{what}");
            if is_protected {
                assert_eq!(t.z.received_bytes(), MIB, "{what}");
                assert_eq!((t.a.closed(), t.z.closed()), (None, None), "{what}");
            }
        }
    }
}

/// The handshake cannot be repeated after the end of an association: no end begins with the same
/// keys again, nor is anything delivered again.
#[test]
fn a_whole_association_cannot_be_repeated() {
    let mut t = beginning(Some(keys()));
    t.a.shutdown();
    t.run_to_end(secs(60));
    assert_eq!(t.z.closed(), Some(&AssocClosed::Shutdown));
    for _ in 0..3 {
        let now = t.net.now();
        t.middle().replay_all(now, Side::Z, false);
        t.run_for(Duration::from_secs(5));
    }
    assert_eq!((t.z.received_bytes(), t.z.epoch()), (MIB, 0));
    assert_eq!(t.z.closed(), Some(&AssocClosed::Shutdown), "the application knows of no other");
}

/// The attacker adds DATA to COOKIE ECHO that looks like a message of the key management, at a TSN
/// that the client's file will have: the server would take that part of the file for a repetition.
/// He keeps SACKs back.
#[test]
fn a_number_of_the_files_cannot_be_taken_before_there_are_keys() {
    let identity = Identity::generate().expect("a key");
    let keys: Keys = Arc::new(TlsKeys::raw_public_keys(&identity, PeerKeys::Any));
    let mut t = beginning(Some(keys));
    let mut first = Tsn(0);
    t.middle().rewrite(move |passing| {
        let flags = DataFlags(3); // whole, and out of order
        match passing.first_chunk() {
            Some(Chunk::Init(init)) => first = init.initial_tsn,
            Some(Chunk::CookieEcho(cookie)) => {
                let tsn = Tsn(first.0.wrapping_add(20));
                passing.replace(|p| {
                    p.push_cookie_echo(&cookie)
                        && p.push_data(tsn, StreamId(0), Ssn(9), 4242, flags, b"forged")
                });
            }
            // The client would see that its peer has got what it has not sent.
            Some(Chunk::Sack(_)) => return Verdict::Drop,
            _ => {}
        }
        Verdict::Pass
    });
    t.run_until(secs(100));
    assert!(t.a.closed().is_some(), "somebody on the way has changed packets");
    assert_eq!(t.z.received_bytes(), 0);
    assert!(t.z.events().is_empty(), "nobody has opened one: {:?}", t.z.events());
}

/// He holds back the protected packets to a client for a second, so that the server cannot show its
/// keys, and forges restarts meanwhile. Each INIT that the client takes for one of the server may
/// have another parameter, and thus begin with other keys.
#[test]
fn a_client_can_at_most_be_ended_before_the_peer_has_shown_its_keys() {
    let mut t = beginning(Some(keys()));
    t.middle().rewrite(move |passing| match passing.first_chunk() {
        Some(Chunk::Dtls(_)) if passing.to == Side::A => Verdict::Drop,
        _ => Verdict::Pass,
    });
    for _ in 0..10 {
        t.run_for(Duration::from_millis(100));
        t.middle().forge(Side::A, Forgery::Restart);
    }
    t.run_for(Duration::from_millis(100));
    t.middle().stop_rewriting();
    t.run_to_end(secs(60));
    assert!(matches!(t.a.closed(), None | Some(AssocClosed::PeerAborted { .. })));
    assert_eq!((t.z.received_bytes() % MIB, t.a.epoch(), t.z.epoch()), (0, 0, 0));
}
