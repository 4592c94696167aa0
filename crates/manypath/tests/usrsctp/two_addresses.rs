//! Several addresses on one side or both. usrsctp can only be bound to addresses that an interface
//! has, so its own second address needs a network namespace; see tests/interop/README.md.

use manypath::{Association, Event, PathState, PathStats};

use crate::harness::{
    Case, Link, Opens, Pattern, Running, Setting, Verifier, in_namespace, in_two_namespaces,
    interop, pause, soon,
};
use crate::transfer::usrsctp_echoes;

const ONE: &[&str] = &["127.0.0.1"];
const TWO: &[&str] = &["127.0.0.1", "127.0.0.2"];
const NEAR: &[&str] = &["10.99.1.1", "10.99.2.1"];
const FAR: &[&str] = &["10.99.1.2", "10.99.2.2"];

/// Heartbeats of usrsctp, as soon as it can send them; it tells us of pairs of addresses only by
/// using them.
const HEARTBEATS: &str = "--rto-min-ms 50 --heartbeat-ms 100";

/// Waits until `count` paths are verified.
async fn paths_are_active(association: &Association, count: usize) {
    let active =
        |paths: Vec<PathStats>| paths.iter().filter(|p| p.state == PathState::Active).count();
    for _ in 0..500 {
        if active(association.paths()) >= count {
            return;
        }
        pause(10).await;
    }
    panic!("{count} paths are not active after 5 s: {:#?}", association.paths());
}

/// Sends more than one path takes at once when `paths` of them are verified, and checks that
/// usrsctp got it; returns the paths as they were at the end.
async fn manypath_sends(case: Case, paths: usize) -> Vec<PathStats> {
    let Running { association, peer, endpoint: _endpoint, .. } = case.start().await;
    paths_are_active(&association, paths).await;
    let sent = Pattern::new(&[1400, 300, 20_000], 3).send(&association, 2_000_000).await;
    soon("acknowledged", association.acknowledged()).await.expect("acknowledged");
    let paths = association.paths();
    association.shutdown().await.expect("everything is delivered");
    let report = peer.report().await;
    report.assert_ok("peer-shutdown");
    assert_eq!(Ok(report.number("bytes_received")), sent);
    paths
}

/// Receives; returns the paths, and the addresses that usrsctp confirmed.
async fn usrsctp_sends(case: Case) -> (Vec<PathStats>, Vec<String>) {
    let Running { association, peer, endpoint: _endpoint, .. } = case.start().await;
    let mut verifier = Verifier::new(0);
    let half = 200_000;
    while verifier.bytes < half {
        verifier.take(association.recv().await.expect("more").expect("more"));
    }
    let paths = association.paths();
    verifier.receive_all(&association).await.expect("everything until the shutdown");
    let report = peer.report().await;
    report.assert_ok("local-shutdown");
    assert_eq!(verifier.bytes, report.number("bytes_sent"));
    (paths, report.paths("confirmed").into_iter().map(str::to_owned).collect())
}

/// How many paths from or to different addresses of `side` carried data.
fn used(paths: &[PathStats], side: impl Fn(&PathStats) -> std::net::SocketAddr) -> usize {
    let mut addresses: Vec<_> =
        paths.iter().filter(|p| p.counters.acked_bytes > 0).map(side).collect();
    addresses.sort();
    addresses.dedup();
    addresses.len()
}

// ---- Two addresses of ours, one of usrsctp: anywhere ----

#[test]
fn our_two_addresses_both_carry_data_to_one_of_usrsctp() {
    interop(async {
        for opens in [Opens::Manypath, Opens::Usrsctp] {
            let task = format!("{HEARTBEATS} receive");
            let case = Case::new(opens, Setting::Fast, &task).addresses(TWO, ONE);
            let paths = manypath_sends(case, 2).await;
            assert_eq!(used(&paths, |p| p.local), 2, "{opens:?}: {paths:#?}");
        }
    });
}

#[test]
fn the_primary_alone_carries_data_without_cmt() {
    interop(async {
        for opens in [Opens::Manypath, Opens::Usrsctp] {
            let task = format!("{HEARTBEATS} receive");
            let case = Case::new(opens, Setting::Plain, &task)
                .addresses(TWO, ONE)
                .set(&[("hb_max_burst", "8")]);
            let paths = manypath_sends(case, 2).await;
            assert_eq!(used(&paths, |p| p.local), 1, "{opens:?}: {paths:#?}");
        }
    });
}

#[test]
fn usrsctp_sends_to_our_two_addresses_with_cmt() {
    interop(async {
        for (opens, setting) in [(Opens::Manypath, Setting::Fast), (Opens::Usrsctp, Setting::Plain)]
        {
            let task = "--cmt 1 --heartbeat-ms 200 --pace-ms 1 send 600000";
            let case = Case::new(opens, setting, task).addresses(TWO, ONE);
            let (paths, _) = usrsctp_sends(case).await;
            let at = |ip: &str| -> u64 {
                let to = |p: &&PathStats| p.local.ip().to_string() == ip;
                paths.iter().filter(to).map(|p| p.counters.bytes_received).sum()
            };
            assert!(at(TWO[0]) > 20_000 && at(TWO[1]) > 20_000, "{opens:?}: {paths:#?}");
        }
    });
}

#[test]
fn both_paths_lose_packets() {
    interop(async {
        for cmt in [0, 1] {
            let lossy =
                |seed| format!("--drop 30 --duplicate 10 --reorder 30 --delay 3 --seed {seed}");
            let task = format!("{HEARTBEATS} --cmt {cmt} --linger-ms 1500 echo");
            let case = Case::new(Opens::Usrsctp, Setting::Fast, &task)
                .addresses(TWO, ONE)
                .relays(&[&lossy(1), &lossy(2)])
                .set(&[("rto_min", "100 ms")]);
            let running = case.start().await;
            paths_are_active(&running.association, 2).await;
            usrsctp_echoes(running, Pattern::new(&[100, 1400, 20_000], 5), 500_000).await;
        }
    });
}

#[test]
fn one_of_our_two_addresses_is_silent_for_a_while() {
    interop(async {
        // usrsctp uses one port for all addresses of its peer, that of the relays. By the time of
        // the outage it has heartbeated our second address, which therefore takes over.
        let outage = "--delay 2 --outage-at 800 --outage-for 600";
        let task = format!("{HEARTBEATS} --linger-ms 1500 receive");
        let case = Case::new(Opens::Usrsctp, Setting::Fast, &task)
            .addresses(TWO, ONE)
            .relays(&[outage, "--delay 2"])
            .set(&[("rto_min", "100 ms")]);
        let Running { association, peer, endpoint: _endpoint, relays: _relays } =
            case.start().await;
        let mut events = association.events();
        let mut sent = 0;
        for (options, payload) in Pattern::new(&[5000], 3).messages(2_000_000) {
            sent += payload.len() as u64;
            association.send(options, payload).await.expect("queued");
            pause(4).await;
        }
        association.shutdown().await.expect("everything is delivered");
        let report = peer.report().await;
        report.assert_ok("peer-shutdown");
        assert_eq!(report.number("bytes_received"), sent);
        let mut states = Vec::new();
        while let Some(event) = events.next().await {
            if let Event::PathState { to, .. } = event {
                states.push(to);
            }
        }
        let failed = states.iter().position(|&to| to == PathState::PotentiallyFailed);
        let back = states.iter().rposition(|&to| to == PathState::Active);
        assert!(failed.is_some() && failed < back, "it failed and came back: {states:?}");
    });
}

// ---- Two addresses of usrsctp, on one loopback interface ----

#[test]
fn two_addresses_each_manypath_sends() {
    in_namespace("two_addresses::two_addresses_each_manypath_sends", async {
        for opens in [Opens::Manypath, Opens::Usrsctp] {
            // With and without the delayed ack of CMT on usrsctp's side.
            let cmt = u8::from(opens == Opens::Usrsctp);
            let task = format!("{HEARTBEATS} --cmt {cmt} receive");
            let case = Case::new(opens, Setting::Fast, &task).addresses(TWO, TWO);
            let paths = manypath_sends(case, 2).await;
            assert_eq!(used(&paths, |p| p.remote), 2, "{opens:?}: {paths:#?}");
        }
    });
}

#[test]
fn two_addresses_each_usrsctp_sends_with_cmt() {
    in_namespace("two_addresses::two_addresses_each_usrsctp_sends_with_cmt", async {
        for (opens, setting) in [(Opens::Manypath, Setting::Fast), (Opens::Usrsctp, Setting::Plain)]
        {
            let task = "--cmt 1 --heartbeat-ms 200 --pace-ms 1 send 600000";
            let case = Case::new(opens, setting, task).addresses(TWO, TWO);
            let (paths, confirmed) = usrsctp_sends(case).await;
            assert!(paths.len() >= 2, "{opens:?}: {paths:#?}");
            let heard = |ip: &str| {
                paths
                    .iter()
                    .any(|p| p.local.ip().to_string() == ip && p.counters.bytes_received > 20_000)
            };
            assert!(heard(TWO[0]) && heard(TWO[1]), "{opens:?}: {confirmed:?} {paths:#?}");
        }
    });
}

// ---- Two links ----

#[test]
fn two_links_carry_data_together() {
    let name = "two_addresses::two_links_carry_data_together";
    in_two_namespaces(name, async |links: [Link; 2]| {
        for opens in [Opens::Manypath, Opens::Usrsctp] {
            // The default sends so little by the sooner link alone.
            let case = Case::new(opens, Setting::Fast, "receive")
                .set(&[("scheduler", "fill_in_turn")])
                .addresses(NEAR, FAR)
                .peer_prefix(&links[0].far_prefix());
            let paths = manypath_sends(case, 2).await;
            assert_eq!(paths.len(), 2, "one a link: {paths:#?}");
            assert_eq!(used(&paths, |p| p.remote), 2, "{opens:?}: {paths:#?}");
            let task = "--cmt 1 --pace-ms 1 send 600000";
            let case = Case::new(opens, Setting::Fast, task)
                .addresses(NEAR, FAR)
                .peer_prefix(&links[0].far_prefix());
            let (paths, confirmed) = usrsctp_sends(case).await;
            let all = paths.iter().all(|p| p.counters.bytes_received > 20_000);
            assert!(all, "{opens:?}: {confirmed:?} {paths:#?}");
        }
    });
}

#[test]
fn a_link_is_cut_and_comes_back_while_manypath_sends() {
    let name = "two_addresses::a_link_is_cut_and_comes_back_while_manypath_sends";
    in_two_namespaces(name, async |links: [Link; 2]| {
        for (opens, setting) in [(Opens::Manypath, Setting::Fast), (Opens::Usrsctp, Setting::Plain)]
        {
            let peer = "--rto-min-ms 50 --heartbeat-ms 200 --path-max-retrans 2 receive";
            let case = Case::new(opens, setting, peer)
                .addresses(NEAR, FAR)
                .peer_prefix(&links[0].far_prefix())
                .set(&[("rto_min", "100 ms"), ("rto_initial", "200 ms")]);
            let running = case.start().await;
            // Whichever path is primary: one of these hits it.
            let mut sent = 0;
            let pattern = Pattern::new(&[1400], 3);
            let mut next = pattern.messages(u64::MAX);
            for link in &links {
                for cut in [false, true, false] {
                    link.cut(cut);
                    for _ in 0..150 {
                        let (options, payload) = next.next().expect("endless");
                        sent += payload.len() as u64;
                        running.association.send(options, payload).await.expect("queued");
                        pause(5).await;
                    }
                }
            }
            let Running { association, peer, endpoint: _endpoint, .. } = running;
            association.shutdown().await.expect("everything is delivered");
            let report = peer.report().await;
            report.assert_ok("peer-shutdown");
            assert_eq!(report.number("bytes_received"), sent);
        }
    });
}

#[test]
fn a_link_is_cut_while_usrsctp_sends() {
    let name = "two_addresses::a_link_is_cut_while_usrsctp_sends";
    in_two_namespaces(name, async |links: [Link; 2]| {
        let task = "--rto-min-ms 50 --heartbeat-ms 200 --path-max-retrans 2 --cmt 1 --pace-ms 2 \
                    --expect-close shutdown send 800000";
        let case = Case::new(Opens::Manypath, Setting::Fast, task)
            .addresses(NEAR, FAR)
            .peer_prefix(&links[0].far_prefix());
        let Running { association, peer, endpoint: _endpoint, .. } = case.start().await;
        let mut verifier = Verifier::new(0);
        let cutting = async {
            pause(500).await;
            links[0].cut(true);
        };
        let ((), ()) = tokio::join!(cutting, verifier.receive(&association, 800_000));
        // While usrsctp sends with CMT, it does not notice within 5 s: gap ack blocks report the
        // losses before T3-rtx expires. Then its heartbeats are not answered.
        pause(3000).await;
        association.shutdown().await.expect("usrsctp answers on the other path");
        let report = peer.report().await;
        report.assert_ok("peer-shutdown");
        assert_eq!(verifier.bytes, report.number("bytes_sent"));
        assert!(report.paths("unreachable").contains(&NEAR[0]), "usrsctp noticed: {report:?}");
    });
}
