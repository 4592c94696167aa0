//! Changes of addresses (RFC 5061) between two engines: hosts are renumbered while data flows, with
//! packets that are authenticated, or protected.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use manypath_keys::psk::SharedKey;
use manypath_proto::{AddressChange, AddressOutcome, Event};
use manypath_sim::chunk_type::{ASCONF, ASCONF_ACK};
use manypath_sim::{End, Keys, Pair, PairBuilder, millis, secs};

use crate::MIB;

/// A secret that both ends know.
fn keys() -> Keys {
    Arc::new(SharedKey::new(&[1; 32]).expect("long enough"))
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn on(pair: PairBuilder) -> PairBuilder {
    let pair = pair.profile("fast").rate_mbps(20.0).delay_ms(20.0);
    pair.set("address_reconfiguration", "true")
}

fn address(net: u8, host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, net, host], 9899))
}

fn told(t: &Pair, by: End, change: AddressChange) -> bool {
    let host = if by == End::Near { &t.a } else { &t.z };
    let done = Event::AddressRequest { change, outcome: AddressOutcome::Done };
    host.events().iter().any(|(_, event)| *event == done)
}

/// The only path is renumbered at one end 3 s after the start. How long after the new address came
/// all was told, and data flowed again.
fn renumbered(pair: PairBuilder, end: End, away: u64) -> f64 {
    let mut t = on(pair).connect();
    let (old, new) = match end {
        End::Near => (address(1, 1), address(1, 77)),
        End::Far => (address(1, 2), address(1, 77)),
    };
    t.net.path(0).at(secs(3)).renumber(end, ms(away), Some(new));
    t.a.send_file(40 * MIB);
    t.z.send_file(MIB);
    t.run_until(secs(3) + ms(away.max(30)));
    let before = t.z.received_bytes();
    let again = t.run_until_true(secs(60), |t| t.z.received_bytes() > before);
    assert!(again, "{end:?}: {:#?} and {:#?}", t.a.paths(), t.z.paths());
    let pause = (t.net.now() - (secs(3) + ms(away))).as_secs_f64();
    t.run_to_end(secs(200));
    assert_eq!((t.z.received_bytes(), t.a.received_bytes()), (40 * MIB, MIB), "{end:?}");
    assert_eq!((t.a.epoch(), t.z.epoch()), (0, 0), "one association throughout");
    assert!(told(&t, end, AddressChange::Added(new.ip())), "{:?}", t.a.events());
    assert!(told(&t, end, AddressChange::Deleted(old.ip())));
    assert_eq!((t.a.paths().len(), t.z.paths().len()), (1, 1));
    pause
}

#[test]
fn a_host_with_one_address_is_renumbered_and_goes_on_within_a_second() {
    for end in [End::Near, End::Far] {
        for away in [0, 200, 1000, 5000] {
            let pause = renumbered(Pair::one_path("cmt-pf").seed(away + 1), end, away);
            assert!(pause < 1.0, "{end:?}, away {away} ms: {pause} s");
        }
    }
}

#[test]
fn a_protected_client_moves_to_another_address() {
    for end in [End::Near, End::Far] {
        let pause = renumbered(Pair::one_path("cmt-pf").keys(keys()), end, 500);
        assert!(pause < 1.0, "{end:?}: {pause} s");
    }
    let mut t = on(Pair::one_path("cmt-pf").keys(keys())).connect();
    t.net.path(0).at(secs(3)).renumber(End::Near, ms(500), None);
    t.a.send_file(20 * MIB);
    t.run_to_end(secs(60));
    assert_eq!(t.z.received_bytes(), 20 * MIB);
    assert_eq!(t.sent(ASCONF).count(), 0, "all of it is sealed");
}

#[test]
fn an_address_beside_another_is_told_on_the_path_that_works() {
    for preset in ["cmt", "cmt-pf", "adaptive", "mtcp"] {
        for end in [End::Near, End::Far] {
            let mut t = on(Pair::two_paths(preset)).connect();
            let new = address(2, 77);
            t.net.path(1).at(secs(3)).renumber(end, ms(2000), Some(new));
            t.a.send_file(60 * MIB);
            let carries = |t: &Pair| {
                t.a.paths()
                    .iter()
                    .any(|p| [p.local, p.remote].contains(&new) && p.counters.acked_bytes > 0)
            };
            assert!(t.run_until_true(secs(7), carries), "{preset} {end:?}: {:#?}", t.a.paths());
            let result = t.run_to_end(secs(60)).result();
            assert!(result.completed, "{preset} {end:?}");
            assert!(result.max_delivery_gap_s < 0.5, "{preset}: {}", result.max_delivery_gap_s);
            assert!(told(&t, end, AddressChange::Added(new.ip())), "{preset} {end:?}");
        }
    }
}

#[test]
fn from_one_network_to_another_and_back_through_losses_the_file_is_whole() {
    for seed in 1..=5 {
        let pair = Pair::one_path("cmt-pf").loss(0.02).seed(seed);
        let mut t = on(pair).connect();
        for n in 0..20 {
            let to = [address(1, 201), address(1, 1)][n % 2];
            let at = secs(2 + 3 * n as u64);
            t.net.path(0).at(at).renumber(End::Near, ms(300 * (n as u64 % 4)), Some(to));
        }
        t.a.send_file(60 * MIB);
        t.z.send_file(MIB);
        let result = t.run_to_end(secs(300)).result();
        assert!(result.completed, "seed {seed}: {result:#?}");
        assert!(result.max_delivery_gap_s < 4.0, "seed {seed}: {}", result.max_delivery_gap_s);
        assert_eq!((t.a.received_bytes(), t.a.epoch(), t.z.epoch()), (MIB, 0, 0));
        assert!(t.sent(ASCONF).count() >= 15 && t.sent(ASCONF_ACK).count() >= 15);
    }
}

#[test]
fn hosts_move_at_the_same_time() {
    // Each tells the other of its new address from there; who does not hear of it in time goes on
    // by the packets that come.
    for (seed, gap) in [(1, 0), (2, 10), (3, 100), (4, 1000)] {
        let mut t = on(Pair::two_paths("cmt-pf").seed(seed)).connect();
        t.net.path(0).at(secs(3)).renumber(End::Near, ms(200), Some(address(1, 77)));
        t.net.path(1).at(secs(3) + ms(gap)).renumber(End::Far, ms(200), Some(address(2, 77)));
        t.a.send_file(40 * MIB);
        let result = t.run_to_end(secs(100)).result();
        assert!(result.completed, "seed {seed}: {:#?} {:#?}", t.a.paths(), t.z.paths());
        assert_eq!((t.a.epoch(), t.z.epoch()), (0, 0));
    }
}

#[test]
fn an_end_with_the_extension_moves_as_ever_beside_one_without() {
    let mut t = on(Pair::one_path("cmt-pf")).set_z("address_reconfiguration", "false").connect();
    t.net.path(0).at(secs(3)).renumber(End::Near, ms(500), None);
    t.a.send_file(20 * MIB);
    t.run_to_end(secs(60));
    assert_eq!(t.z.received_bytes(), 20 * MIB);
    assert_eq!(t.sent(ASCONF).count(), 0);
    assert!(t.net.now() > millis(3500));
}
