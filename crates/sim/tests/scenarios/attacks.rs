//! An active attacker on the path. Each attack is tried on an association without protection, to
//! show that it is one, and on a protected one, where it must change nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use manypath_keys::psk::SharedKey;
use manypath_proto::{AssocClosed, Event, Instant, PathState};
use manypath_sim::testing::Side;
use manypath_sim::testing::tamper::{ATTACKER, Disturbance, Forgery, Verdict};
use manypath_sim::{Keys, Pair, PairBuilder, chunk_type, millis, secs};
use manypath_wire::{Chunk, PacketBuilder};

use crate::MIB;

/// The key of both ends, or that nothing is protected.
fn keys(is_protected: bool) -> Option<Keys> {
    let key = || SharedKey::new(&[7; 32]).expect("long enough");
    is_protected.then(|| Arc::new(key()) as Keys)
}

/// Two paths with a man in the middle of both.
fn between(preset: &str, is_protected: bool) -> PairBuilder {
    let pair = Pair::two_paths(preset).profile("fast").delay_ms(10.0).packet_log(false);
    pair.keys_a(keys(is_protected)).keys_z(keys(is_protected)).with_middle()
}

/// Bytes that each end sends the other.
const BYTES: u64 = MIB;

/// Both ends send, and the attacker forges the same again and again. The second is true if an end
/// was given something that nobody had sent, or twice.
fn under_attack(builder: PairBuilder, to: Side, forgery: Option<Forgery>) -> (Pair, bool) {
    let mut t = builder.connect();
    t.a.send_file(BYTES);
    t.z.send_file(BYTES);
    let start = t.net.now();
    let attack = catch_unwind(AssertUnwindSafe(|| {
        for n in 1..=10 {
            t.run_until(start + Duration::from_millis(30 * n));
            forgery.into_iter().for_each(|forgery| t.middle().forge(to, forgery));
        }
        t.run_to_end(start + Duration::from_secs(60));
        // A path on which a timer expired at the very end comes back.
        t.run_until(t.net.now() + Duration::from_millis(500));
    }));
    (t, attack.is_err())
}

/// Nothing but what was sent is delivered, all of it, in an association that goes on.
fn assert_unharmed((t, is_deceived): &(Pair, bool), what: &str) {
    assert!(!is_deceived, "{what}: something forged was delivered");
    assert_eq!((t.a.received_bytes(), t.z.received_bytes()), (BYTES, BYTES), "{what}");
    assert_eq!((t.a.closed(), t.z.closed()), (None, None), "{what}");
    assert_eq!((t.a.epoch(), t.z.epoch()), (0, 0), "{what}");
    for host in [&t.a, &t.z] {
        assert!(host.is_established(), "{what}");
        assert_eq!(host.paths().len(), 2, "{what}: {:?}", host.paths());
        let states: Vec<_> = host.paths().iter().map(|p| p.state).collect();
        assert_eq!(states, [PathState::Active; 2], "{what}");
    }
}

/// The association ended, or an end believes so.
fn has_ended((t, _): &(Pair, bool)) -> bool {
    let has_it_all = t.a.received_bytes() == BYTES && t.z.received_bytes() == BYTES;
    (t.a.closed().is_some() || t.z.closed().is_some()) && !has_it_all
}

const SIDES: [Side; 2] = [Side::A, Side::Z];

#[test]
fn forged_abort_ends_only_what_is_not_protected() {
    for to in SIDES {
        for forgery in [Forgery::Abort, Forgery::AbortReflected, Forgery::AbortUnprotected] {
            let what = format!("{forgery:?} to {to:?}");
            let plain = under_attack(between("cmt-pf", false), to, Some(forgery));
            assert!(has_ended(&plain), "{what} is an attack");
            assert_unharmed(&under_attack(between("cmt-pf", true), to, Some(forgery)), &what);
        }
    }
}

#[test]
fn forged_shutdown_ends_only_what_is_not_protected() {
    for to in SIDES {
        let plain = under_attack(between("cmt-pf", false), to, Some(Forgery::Shutdown));
        let (t, _) = &plain;
        let host = if to == Side::A { &t.a } else { &t.z };
        let believes = host.events().iter().any(|(_, e)| *e == Event::PeerShutdown);
        assert!(believes, "the end of the peer's data, while the peer still sends");
        let protected = under_attack(between("cmt-pf", true), to, Some(Forgery::Shutdown));
        assert_unharmed(&protected, "SHUTDOWN");
        let (t, _) = &protected;
        let all = t.a.events().iter().chain(t.z.events());
        assert!(!all.into_iter().any(|(_, e)| *e == Event::PeerShutdown));
    }
}

/// An end that has sent SHUTDOWN takes SHUTDOWN ACK for the end of the peer's data.
#[test]
fn forged_shutdown_ack_cuts_off_only_what_is_not_protected() {
    for is_protected in [false, true] {
        let mut t = between("cmt-pf", is_protected).connect();
        t.z.send_file(4 * BYTES);
        t.a.shutdown();
        for _ in 0..20 {
            t.run_for(Duration::from_millis(20));
            t.middle().forge(Side::A, Forgery::ShutdownAck);
            t.middle().forge(Side::A, Forgery::ShutdownComplete);
        }
        t.run_to_end(secs(60));
        assert_eq!(t.a.received_bytes() == 4 * BYTES, is_protected, "protected: {is_protected}");
        if is_protected {
            assert_eq!(t.a.closed(), Some(&AssocClosed::Shutdown));
            assert_eq!(t.z.closed(), Some(&AssocClosed::Shutdown));
        }
    }
}

#[test]
fn forged_data_is_delivered_only_where_nothing_is_protected() {
    let kinds = [(0, 0), (0, 4242), (1, 1 << 31)];
    for (to, (stream, ppid)) in SIDES.into_iter().flat_map(|to| kinds.map(|kind| (to, kind))) {
        let forgery = Forgery::Data { stream, ppid };
        let plain = under_attack(between("cmt-pf", false), to, Some(forgery));
        // It is delivered, or the peer's own data then contradicts it, which ends the association.
        assert!(plain.1 || has_ended(&plain), "{forgery:?} to {to:?} is an attack");
        let protected = under_attack(between("cmt-pf", true), to, Some(forgery));
        assert_unharmed(&protected, &format!("{forgery:?} to {to:?}"));
    }
}

/// The attacker drops data and acknowledges it himself: it would be lost for good.
#[test]
fn forged_sack_hides_no_loss_from_a_protected_sender() {
    for (is_protected, forgery) in
        [(false, Forgery::Sack), (true, Forgery::Sack), (true, Forgery::NrSack)]
    {
        let mut t = between("cmt-pf", is_protected).connect();
        t.a.send_file(BYTES);
        let mut count = 0;
        t.middle().rewrite(move |passing| {
            count += u32::from(passing.to == Side::Z && passing.payload.len() > 500);
            if count % 20 == 10 && passing.payload.len() > 500 {
                Verdict::Drop
            } else {
                Verdict::Pass
            }
        });
        for _ in 0..600 {
            t.run_for(Duration::from_millis(2));
            t.middle().forge(Side::A, forgery);
        }
        t.middle().stop_rewriting();
        t.run_to_end(secs(60));
        let has_all = t.z.received_bytes() == BYTES;
        assert_eq!(has_all, is_protected, "{forgery:?}: {} bytes", t.z.received_bytes());
        if is_protected {
            assert_eq!(t.z.epoch(), 0);
        }
    }
}

#[test]
fn forged_sack_ends_only_what_is_not_protected() {
    let plain = under_attack(between("cmt-pf", false), Side::A, Some(Forgery::SackUnsent));
    assert!(has_ended(&plain), "it acknowledges what was never sent, a violation of the protocol");
    let protected = under_attack(between("cmt-pf", true), Side::A, Some(Forgery::SackUnsent));
    assert_unharmed(&protected, "SACK");
}

/// A run with forgeries that no protected end may react to is, to the nanosecond and the byte of
/// each window, one without.
#[test]
fn forgeries_change_neither_times_nor_windows() {
    let facts = |t: &Pair| {
        let of = |host: &manypath_sim::Host| {
            let windows: Vec<_> = host.paths().iter().map(|p| (p.cwnd, p.srtt)).collect();
            (windows, host.last_received())
        };
        (of(&t.a), of(&t.z))
    };
    // These say that the peer may have lost its state: it is asked, by heartbeats.
    let asks = [
        Forgery::Abort,
        Forgery::AbortReflected,
        Forgery::AbortUnprotected,
        Forgery::BundledBefore,
        Forgery::Restart,
        Forgery::OldCookies,
        // Refused by an ABORT, which goes to the peer.
        Forgery::Init,
    ];
    for preset in ["sctp", "cmt-pf", "mtcp"] {
        for to in SIDES {
            // Without the attacker, or with packets that say nothing: an end may send more than one
            // burst if it is woken in between.
            let calm = [None, Some(Forgery::Empty)]
                .map(|calm| facts(&under_attack(between(preset, true), to, calm).0));
            for forgery in Forgery::ALL {
                let what = format!("{preset}: {forgery:?} to {to:?}");
                let attacked = under_attack(between(preset, true), to, Some(forgery));
                assert_unharmed(&attacked, &what);
                if !asks.contains(&forgery) {
                    let facts = facts(&attacked.0);
                    assert!(calm.contains(&facts), "{what}: {facts:?}, but {calm:?}");
                }
            }
        }
    }
}

/// The window of an unprotected sender closes, and it waits; or it ends, if it skips a TSN to test
/// its peer just then, for the forger acknowledges everything.
#[test]
fn forged_windows_stop_only_what_is_not_protected() {
    let last = |is_protected, forgery| {
        let mut t = between("sctp", is_protected).connect();
        t.a.send_file(BYTES);
        for _ in 0..400 {
            t.run_for(Duration::from_millis(2));
            t.middle().forge(Side::A, forgery);
        }
        t.run_to_end(secs(60));
        let ends = t.a.closed().is_some() && !is_protected && forgery != Forgery::Empty;
        assert!(ends || t.z.received_bytes() == BYTES, "{:?}", t.a.events());
        if ends { u64::MAX } else { t.z.last_received().expect("it received").as_nanos() }
    };
    let (closed, nothing) = (Forgery::SackWindowZero, Forgery::Empty);
    let (attacked, calm) = (last(false, closed), last(false, nothing));
    assert!(attacked > calm + 50_000_000, "an attack: {attacked} ns for {calm}");
    assert_eq!(last(true, closed), last(true, nothing));
}

#[test]
fn forged_restart_succeeds_only_where_nothing_is_protected() {
    let (t, _) = under_attack(between("cmt-pf", false), Side::Z, Some(Forgery::Restart));
    let has_restarted = |t: &Pair| t.z.events().iter().any(|(_, e)| *e == Event::Restarted);
    assert!(has_restarted(&t), "{:?}", t.z.events());
    let protected = under_attack(between("cmt-pf", true), Side::Z, Some(Forgery::Restart));
    assert_unharmed(&protected, "restart");
    assert!(!has_restarted(&protected.0));
}

/// An unprotected association withstands copies too: TSNs tell them, and its tags old cookies. Only
/// their source may be new, see below.
#[test]
fn replayed_packets_change_nothing() {
    for is_protected in [false, true] {
        let mut t = between("cmt-pf", is_protected).connect();
        t.a.send_file(BYTES);
        t.z.send_file(BYTES);
        for n in 0..20 {
            t.run_for(Duration::from_millis(if n < 10 { 20 } else { 2000 }));
            let now = t.net.now();
            SIDES.into_iter().for_each(|to| t.middle().replay_all(now, to, false));
            SIDES.into_iter().for_each(|to| t.middle().forge(to, Forgery::OldCookies));
        }
        t.run_for(Duration::from_secs(20));
        assert_unharmed(&(t, false), &format!("protected: {is_protected}"));
    }
}

/// Keys of old epochs are dropped: what was held back until then counts no more, and comes again.
#[test]
fn packets_of_old_epochs_count_only_for_a_while() {
    let refused = |held: Duration| {
        let mut t = between("cmt-pf", true)
            .set("rekey_packets", "300")
            .set("old_keys_kept", "1 s")
            .connect();
        let mut count = 0;
        t.middle().rewrite(move |passing| {
            count += u32::from(passing.payload.len() > 500);
            if count % 20 == 10 { Verdict::Hold(held) } else { Verdict::Pass }
        });
        t.a.send_file(4 * BYTES);
        t.run_for(Duration::from_secs(8));
        t.middle().stop_rewriting();
        t.run_for(Duration::from_secs(8));
        assert_eq!(t.z.received_bytes(), 4 * BYTES, "held back for {held:?}");
        assert!(t.a.is_established() && t.z.is_established());
        t.z.stats().expect("an association").records_refused
    };
    assert_eq!(refused(Duration::from_millis(100)), 0, "late, but in time");
    assert!(refused(Duration::from_secs(5)) > 10);
}

/// The attacker sends copies of the peer's packets from an address of his own, and answers
/// heartbeats there.
#[test]
fn an_attacker_draws_data_to_himself_only_if_nothing_is_protected() {
    for is_protected in [false, true] {
        let mut t = between("cmt-pf", is_protected).connect();
        t.middle().answer_heartbeats();
        t.a.send_file(4 * BYTES);
        t.z.send_file(4 * BYTES);
        for _ in 0..5 {
            t.run_for(Duration::from_millis(50));
            let now = t.net.now();
            SIDES.into_iter().for_each(|to| t.middle().replay_all(now, to, true));
        }
        t.run_until(secs(60));
        assert_eq!(t.middle().got(chunk_type::DATA) > 0, !is_protected);
        assert_eq!(t.middle().got(chunk_type::DTLS), 0);
        if is_protected {
            assert_eq!((t.a.paths().len(), t.z.paths().len()), (2, 2));
            assert_eq!((t.a.received_bytes(), t.z.received_bytes()), (4 * BYTES, 4 * BYTES));
        }
    }
}

/// He lets packets arrive from his address in place of the peer's, the first time that they do: the
/// address becomes a path, which must be verified. All it gets is heartbeats.
#[test]
fn a_diverted_packet_draws_nothing_but_heartbeats() {
    // `data_before_verification` of the profiles of the papers is not for protected associations.
    for (profile, preset) in [("fast", "cmt-pf"), ("rfc9260", "mtcp"), ("2006", "mtcp")] {
        let mut t = between(preset, true).profile(profile).connect();
        t.middle().answer_heartbeats();
        let mut count = 0;
        t.middle().rewrite(move |passing| {
            count += 1;
            if count % 50 == 0 {
                passing.remote = ATTACKER;
            }
            Verdict::Pass
        });
        t.a.send_file(BYTES);
        t.z.send_file(BYTES);
        t.run_to_end(secs(300));
        assert_eq!((t.a.received_bytes(), t.z.received_bytes()), (BYTES, BYTES), "{profile}");
        assert!(t.middle().got(chunk_type::DTLS) > 0, "{profile}: it was asked");
        let longest = t.middle().longest_got();
        assert!(longest < 100, "{profile}, {preset}: {longest} bytes are no heartbeat");
        for host in [&t.a, &t.z] {
            let is_attackers = |p: &&manypath_proto::PathStats| p.remote == ATTACKER;
            assert!(host.paths().iter().filter(is_attackers).all(|p| p.state != PathState::Active));
        }
    }
}

#[test]
fn flipped_bits_are_noticed() {
    let mut t = between("cmt-pf", true).connect();
    (0..2).for_each(|path| t.middle().disturb(path, Disturbance { percent: 100, drops: false }));
    t.a.send_file(BYTES);
    t.z.send_file(BYTES);
    t.run_to_end(secs(300));
    assert_eq!((t.a.received_bytes(), t.z.received_bytes()), (BYTES, BYTES));
    assert_eq!((t.a.closed(), t.z.closed()), (None, None));
    assert!(t.middle().forged() > 1000);
}

/// The peer is asked after a forged ABORT. A path that the attacker cuts does not answer; another
/// does.
#[test]
fn forged_abort_on_a_cut_path_does_not_end_what_another_path_carries() {
    for to in SIDES {
        let mut t = between("cmt-pf", true).connect();
        t.net.path(0).cut();
        t.a.send_file(BYTES);
        for _ in 0..60 {
            t.run_for(Duration::from_millis(500));
            t.middle().forge(to, Forgery::AbortReflected);
            t.middle().forge(to, Forgery::Restart);
        }
        assert_eq!((t.a.closed(), t.z.closed()), (None, None));
        assert_eq!(t.z.received_bytes(), BYTES);
    }
}

/// One that cannot stop packets, but forge them, does not make an outage the end.
#[test]
fn forged_abort_in_an_outage_does_not_end_the_association() {
    let outage = |forgery: Option<Forgery>| {
        let one = Pair::one_path("sctp").profile("fast").packet_log(false);
        let mut t = one.keys_a(keys(true)).keys_z(keys(true)).with_middle().connect();
        t.run_until(secs(2));
        t.net.path(0).cut();
        t.run_for(Duration::from_secs(1));
        forgery.into_iter().for_each(|forgery| {
            SIDES.into_iter().for_each(|to| t.middle().forge(to, forgery));
        });
        t.run_for(Duration::from_secs(9));
        t.net.path(0).restore();
        t.a.send_file(1000);
        t.run_until(secs(60));
        (t.z.received_bytes(), t.a.closed().cloned(), t.z.closed().cloned())
    };
    assert_eq!(outage(None), (1000, None, None));
    for forgery in [Forgery::Abort, Forgery::AbortReflected, Forgery::Restart] {
        assert_eq!(outage(Some(forgery)), (1000, None, None), "{forgery:?}");
    }
}

/// A third of the packets of the only path does not arrive.
#[test]
fn forged_abort_does_not_end_what_some_packets_get_through_to() {
    let one = Pair::one_path("sctp").profile("fast").loss(0.3).packet_log(false);
    let mut t = one.keys_a(keys(true)).keys_z(keys(true)).with_middle().connect();
    let until: Instant = t.net.now() + Duration::from_secs(120);
    while t.net.now() < until {
        t.run_for(Duration::from_millis(500));
        SIDES.into_iter().for_each(|to| t.middle().forge(to, Forgery::AbortReflected));
    }
    assert_eq!((t.a.closed(), t.z.closed()), (None, None));
    assert!(t.net.now() > millis(120_000));
}

/// A DTLS chunk stands alone in its packet (draft, section "DTLS Chunk Handling"), and with the R
/// bit it has other keys, which no end has. For a second he changes every protected packet to the
/// server, once from its first on and once in the middle of a file: the packet is dropped whole and
/// silently, with the record in it and the ABORT beside it.
#[test]
fn a_record_with_the_r_bit_or_beside_another_chunk_counts_for_nothing() {
    type Change = fn(&mut PacketBuilder<'_>, &[u8]) -> bool;
    let changes: [(&str, Change); 4] = [
        ("with the R bit", |p, record| p.push_dtls(true, record)),
        ("ABORT behind", |p, record| p.push_dtls(false, record) && p.push_abort(false, &[])),
        ("ABORT before", |p, record| p.push_abort(false, &[]) && p.push_dtls(false, record)),
        ("with the R bit, ABORT behind", |p, record| {
            p.push_dtls(true, record) && p.push_abort(false, &[])
        }),
    ];
    for ((what, change), from_start) in changes.into_iter().flat_map(|c| [(c, true), (c, false)]) {
        let what = format!("{what}, from the start: {from_start}");
        // Small packets: there is room for another chunk.
        let pair = between("sctp", true).set("mtu", "1200").set("pmtu_discovery", "false");
        let mut t = if from_start { pair.start() } else { pair.connect() };
        t.a.send_file(4 * BYTES);
        if !from_start {
            t.run_for(Duration::from_millis(100));
        }
        let before = t.z.received_bytes();
        t.middle().rewrite(move |passing| {
            if let (Side::Z, Some(Chunk::Dtls(chunk))) = (passing.to, passing.first_chunk()) {
                passing.replace(|p| change(p, &chunk.record));
            }
            Verdict::Pass
        });
        t.run_for(Duration::from_secs(1));
        assert_eq!((t.a.closed(), t.z.closed()), (None, None), "{what}");
        let new = t.z.received_bytes() - before;
        assert!(new <= 1 << 17, "{what}: {new} bytes, more than were on their way");
        t.middle().stop_rewriting();
        t.run_to_end(t.net.now() + Duration::from_secs(60));
        assert_eq!((t.a.closed(), t.z.closed()), (None, None), "{what}");
        assert_eq!(t.z.received_bytes(), 4 * BYTES, "{what}");
    }
}
