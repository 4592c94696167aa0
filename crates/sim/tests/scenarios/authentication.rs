//! Authentication of chunks (RFC 4895) between two engines: data flows through loss and over
//! several paths, keys change meanwhile, and ends restart.

use std::time::Duration;

use manypath_proto::{AuthReport, Event};
use manypath_sim::chunk_type::{AUTH, DATA};
use manypath_sim::{Pair, PairBuilder, secs};
use manypath_wire::Chunk;

use crate::MIB;

/// Two paths between ends that take data and SACKs only if they are authenticated.
fn pair(preset: &str) -> PairBuilder {
    let pair = Pair::two_paths(preset).profile("fast").delay_ms(10.0);
    pair.set("authentication", "true").set("authenticated_chunks", "data, i_data, sack, nr_sack")
}

/// AUTH chunks that failed, and chunks that lacked one, at both ends.
fn discarded(t: &Pair) -> u64 {
    let stats = [t.a.stats(), t.z.stats()].into_iter().flatten();
    stats.map(|stats| stats.auth_failures + stats.unauthenticated_dropped).sum()
}

#[test]
fn everything_arrives_authenticated_through_loss() {
    for (seed, preset) in (1..).zip(["sctp", "cmt", "cmt-pf", "adaptive", "mtcp", "msacmt-rtv2"]) {
        let mut pair = pair(preset).seed(seed);
        for path in 0..2 {
            pair = pair.path(path, |p| p.loss(0.02));
        }
        let mut t = pair.connect();
        t.a.send_file(MIB);
        t.z.send_file(MIB / 4);
        t.run_to_end(secs(120));
        assert_eq!((t.z.received_bytes(), t.a.received_bytes()), (MIB, MIB / 4), "{preset}");
        assert_eq!(discarded(&t), 0, "{preset}");
        assert!(t.sent(AUTH).by(t.a.node()).count() >= 700, "{preset}");
    }
}

#[test]
fn keys_change_while_data_flows_and_nothing_is_lost() {
    let mut t = pair("cmt").path(0, |p| p.loss(0.01)).connect();
    t.a.send_file(16 * MIB);
    t.z.send_file(16 * MIB);
    for key in 1..=5_u16 {
        let secret = vec![key as u8; 16];
        for host in [&mut t.a, &mut t.z] {
            host.command(|a| a.change_auth_keys(|keys| keys.set(key, secret.clone())))
                .expect("room");
        }
        t.run_for(Duration::from_millis(50));
        t.a.command(|a| a.change_auth_keys(|keys| keys.activate(key))).expect("it exists");
        t.run_for(Duration::from_millis(30));
        t.z.command(|a| a.change_auth_keys(|keys| keys.activate(key))).expect("it exists");
        // Packets under way have the key of before.
        t.run_for(Duration::from_millis(500));
        for host in [&mut t.a, &mut t.z] {
            host.command(|a| a.change_auth_keys(|keys| keys.remove(key - 1)))
                .expect("another one is active");
        }
    }
    t.run_to_end(secs(120));
    assert_eq!((t.z.received_bytes(), t.a.received_bytes()), (16 * MIB, 16 * MIB));
    assert_eq!(discarded(&t), 0);
    let is_new = |event: &Event| matches!(event, Event::Authentication(AuthReport::NewKey { .. }));
    for host in [&t.a, &t.z] {
        assert_eq!(host.events().iter().filter(|(_, event)| is_new(event)).count(), 5);
    }
    let uses = |key| t.sent(AUTH).chunks().filter(|(_, c)| is_of(c, key)).count();
    assert!((0..=5).all(|key| uses(key) > 0), "each key was used");
}

fn is_of(chunk: &Chunk, key: u16) -> bool {
    matches!(chunk, Chunk::Auth(auth) if auth.key == key)
}

#[test]
fn a_host_that_restarts_agrees_on_new_keys() {
    let mut t = pair("cmt").connect();
    t.a.send_file(MIB);
    t.run_for(Duration::from_millis(60));
    t.a.kill_and_restart();
    t.run_for(Duration::from_millis(500));
    let before = t.z.received_bytes();
    t.a.send_file(MIB);
    t.run_to_end(secs(60));
    assert_eq!(t.z.received_bytes(), before + MIB);
    assert!(t.z.events().iter().any(|(_, event)| *event == Event::Restarted));
}

#[test]
fn each_end_decides_for_what_it_receives() {
    let pair = Pair::two_paths("cmt").profile("fast").set("authentication", "true");
    let mut t = pair.set_a("authenticated_chunks", "none").set_z("authenticated_chunks", "data");
    t = t.set("message_interleaving", "false");
    let mut t = t.connect();
    t.a.send_file(MIB);
    t.z.send_file(MIB);
    t.run_to_end(secs(60));
    assert_eq!((t.z.received_bytes(), t.a.received_bytes()), (MIB, MIB));
    assert!(t.sent(AUTH).by(t.a.node()).count() > 0);
    assert_eq!(t.sent(AUTH).by(t.z.node()).count(), 0, "a wants nothing authenticated");
    assert!(t.sent(DATA).by(t.z.node()).count() > 0);
}

#[test]
fn an_end_with_the_extension_talks_to_one_without() {
    for (a, z) in [("true", "false"), ("false", "true")] {
        let mut t = pair("cmt").set_a("authentication", a).set_z("authentication", z).connect();
        t.a.send_file(MIB);
        t.run_to_end(secs(60));
        assert_eq!(t.z.received_bytes(), MIB);
        assert_eq!(t.sent(AUTH).count(), 0);
        let told = Event::Authentication(AuthReport::NotSupported);
        let is_told = [&t.a, &t.z].map(|h| h.events().iter().any(|(_, event)| *event == told));
        assert_eq!(is_told, [a == "true", z == "true"]);
    }
}
