//! Addresses that come and go (RFC 5061), of each side, over two links between two namespaces.
//! usrsctp knows those of its host when it starts, and tells of them when the test says so; ours
//! follow the system.

use manypath::{AddressChange, AddressOutcome, Association, Event, PathState, PathStats};

use crate::harness::{
    Case, Link, Opens, Pattern, Running, Setting, Verifier, in_two_namespaces, pause,
};

const NEAR: [&str; 2] = ["10.99.1.1", "10.99.2.1"];
const FAR: [&str; 2] = ["10.99.1.2", "10.99.2.2"];

/// usrsctp's timers, so that the cases are short.
const QUICK: &str = "--rto-min-ms 50 --heartbeat-ms 200";

fn case(opens: Opens, setting: Setting, links: &[Link], task: &str) -> Case {
    Case::new(opens, setting, &format!("{QUICK} {task}"))
        .addresses(&NEAR, &FAR)
        .peer_prefix(&links[0].far_prefix())
        .set(&[("address_reconfiguration", "true")])
}

/// Waits until the association says so.
async fn until(association: &Association, what: &str, is_so: impl Fn(&Association) -> bool) {
    for _ in 0..1000 {
        if is_so(association) {
            return;
        }
        pause(10).await;
    }
    panic!("not within 10 s: {what}: {:#?}", association.paths());
}

/// True if a path works to or from this address.
fn works(association: &Association, ip: &str) -> bool {
    let has = |p: &PathStats| [p.local, p.remote].iter().any(|end| end.ip().to_string() == ip);
    association.paths().iter().any(|p| p.state == PathState::Active && has(p))
}

/// Sends messages one after another while something happens.
async fn sends_while(association: &Association, happens: impl Future<Output = ()>) -> u64 {
    let mut sent = 0;
    let pattern = Pattern::new(&[1400], 3);
    let mut messages = pattern.messages(u64::MAX);
    let sending = async {
        loop {
            let (options, payload) = messages.next().expect("endless");
            sent += payload.len() as u64;
            association.send(options, payload).await.expect("queued");
            pause(3).await;
        }
    };
    tokio::select! {
        () = sending => unreachable!("it has no end"),
        () = happens => {}
    }
    sent
}

/// Ends the association, and checks that usrsctp got everything. Returns what it reported of paths.
async fn ends(running: Running, sent: u64) -> impl Fn(&str) -> Vec<String> {
    let Running { association, peer, endpoint: _endpoint, .. } = running;
    association.shutdown().await.expect("everything is delivered");
    let report = peer.report().await;
    report.assert_ok("peer-shutdown");
    assert_eq!(report.number("bytes_received"), sent);
    move |state| report.paths(state).into_iter().map(str::to_owned).collect()
}

fn done(change: AddressChange) -> Event {
    Event::AddressRequest { change, outcome: AddressOutcome::Done }
}

/// The events of the association so far, and those to come.
struct Events(std::sync::Arc<std::sync::Mutex<Vec<Event>>>);

impl Events {
    fn of(association: &Association) -> Events {
        let (all, mut stream) = (std::sync::Arc::default(), association.events());
        let events = Events(std::sync::Arc::clone(&all));
        tokio::spawn(async move {
            while let Some(event) = stream.next().await {
                all.lock().expect("the events").push(event);
            }
        });
        events
    }

    fn have(&self, event: &Event) -> bool {
        self.0.lock().expect("the events").contains(event)
    }
}

#[test]
fn an_address_of_manypath_goes_and_comes_back_while_it_sends() {
    let name = "addresses::an_address_of_manypath_goes_and_comes_back_while_it_sends";
    in_two_namespaces(name, async |links: [Link; 2]| {
        for (opens, setting) in [(Opens::Manypath, Setting::Fast), (Opens::Usrsctp, Setting::Plain)]
        {
            let running = case(opens, setting, &links, "receive").start().await;
            let association = running.association.clone();
            assert!(association.reconfigures_addresses());
            let events = Events::of(&association);
            let (first, second) = (NEAR[0].parse().unwrap(), NEAR[1].parse().unwrap());
            let is_done = |change| events.have(&done(change));
            let sent = sends_while(&association, async {
                until(&association, "both work", |a| works(a, NEAR[0]) && works(a, NEAR[1])).await;
                links[1].has_address(1, false);
                let deleted = AddressChange::Deleted(second);
                until(&association, "it is deleted", |_| is_done(deleted)).await;
                pause(200).await;
                links[1].has_address(1, true);
                let added = AddressChange::Added(second);
                until(&association, "it is added", |a| is_done(added) && works(a, NEAR[1])).await;
                pause(200).await;
                links[0].has_address(1, false);
                let deleted = AddressChange::Deleted(first);
                until(&association, "the other is deleted", |_| is_done(deleted)).await;
                pause(300).await;
            })
            .await;
            let of = ends(running, sent).await;
            let has = |state, ip: &str| of(state).iter().any(|of| of == ip);
            assert!(has("added", NEAR[1]), "{opens:?}: {:?}", of("added"));
            assert!(has("removed", NEAR[1]) && has("removed", NEAR[0]), "{:?}", of("removed"));
            links[0].has_address(1, true);
        }
    });
}

#[test]
fn a_client_with_one_address_moves_to_another_while_it_sends() {
    let name = "addresses::a_client_with_one_address_moves_to_another_while_it_sends";
    in_two_namespaces(name, async |links: [Link; 2]| {
        for setting in [Setting::Fast, Setting::Plain] {
            let case = case(Opens::Manypath, setting, &links, "--keep-listening receive")
                .addresses(&NEAR[..1], &FAR[..1])
                .on_all_addresses();
            let running = case.start().await;
            let association = running.association.clone();
            let events = Events::of(&association);
            let sent = sends_while(&association, async {
                pause(300).await;
                links[0].has_address(1, false);
                pause(100).await;
                links[0].has_address(7, true);
                let moved = |ip: &str| ip.parse().unwrap();
                let added = done(AddressChange::Added(moved("10.99.1.7")));
                let deleted = done(AddressChange::Deleted(moved(NEAR[0])));
                until(&association, "it has moved", |a| {
                    events.have(&added) && events.have(&deleted) && works(a, "10.99.1.7")
                })
                .await;
                pause(500).await;
            })
            .await;
            let of = ends(running, sent).await;
            assert!(of("added").iter().any(|ip| ip == "10.99.1.7"), "{:?}", of("added"));
            assert!(of("removed").iter().any(|ip| ip == NEAR[0]), "{:?}", of("removed"));
            links[0].has_address(7, false);
            links[0].has_address(1, true);
        }
    });
}

#[test]
fn usrsctp_gets_an_address_and_loses_another() {
    let name = "addresses::usrsctp_gets_an_address_and_loses_another";
    in_two_namespaces(name, async |links: [Link; 2]| {
        for opens in [Opens::Manypath, Opens::Usrsctp] {
            let task = format!(
                "--do 50:add-address={} --do 600:delete-address={} receive",
                FAR[1], FAR[0]
            );
            let case = case(opens, Setting::Plain, &links, &task).addresses(&NEAR, &FAR[..1]);
            let running = case.start().await;
            let association = running.association.clone();
            let events = Events::of(&association);
            let added = Event::PeerAddress(AddressChange::Added(FAR[1].parse().unwrap()));
            let deleted = Event::PeerAddress(AddressChange::Deleted(FAR[0].parse().unwrap()));
            let sent = sends_while(&association, async {
                until(&association, "it is added", |a| events.have(&added) && works(a, FAR[1]))
                    .await;
                // Nothing must be on its way to the other when that goes: usrsctp would abort.
                let is_there = |p: &PathStats| {
                    p.remote.ip().to_string() == FAR[1] && p.state == PathState::Active
                };
                let there = association.paths().into_iter().find(is_there).expect("it works");
                association.set_primary(there.id);
                until(&association, "it is deleted", |_| events.have(&deleted)).await;
                assert!(!works(&association, FAR[0]), "{:#?}", association.paths());
                pause(300).await;
            })
            .await;
            let _ = ends(running, sent).await;
        }
    });
}

#[test]
fn each_side_prefers_an_address() {
    let name = "addresses::each_side_prefers_an_address";
    in_two_namespaces(name, async |links: [Link; 2]| {
        for (opens, setting) in [(Opens::Manypath, Setting::Fast), (Opens::Usrsctp, Setting::Plain)]
        {
            let task = format!("--do 150:prefer-address={} receive", FAR[1]);
            let running = case(opens, setting, &links, &task).start().await;
            let association = running.association.clone();
            let events = Events::of(&association);
            let preferred = Event::PeerAddress(AddressChange::Primary(FAR[1].parse().unwrap()));
            let asked = done(AddressChange::Primary(NEAR[1].parse().unwrap()));
            let sent = sends_while(&association, async {
                until(&association, "both links work", |a| works(a, NEAR[1])).await;
                association.set_peer_primary(NEAR[1].parse().unwrap()).expect("it is known");
                until(&association, "usrsctp is asked", |_| events.have(&asked)).await;
                until(&association, "it asks", |_| events.have(&preferred)).await;
            })
            .await;
            let of = ends(running, sent).await;
            let made = of("made-primary");
            assert!(made.iter().any(|ip| ip == NEAR[1]), "{opens:?}: {made:?}");
        }
    });
}

#[test]
fn usrsctp_sends_to_a_client_that_moves() {
    let name = "addresses::usrsctp_sends_to_a_client_that_moves";
    in_two_namespaces(name, async |links: [Link; 2]| {
        let task = "--keep-listening --pace-ms 3 --expect-close shutdown send 800000";
        let case = case(Opens::Manypath, Setting::Fast, &links, task)
            .addresses(&NEAR[..1], &FAR[..1])
            .on_all_addresses();
        let Running { association, peer, endpoint: _endpoint, .. } = case.start().await;
        let mut verifier = Verifier::new(0);
        let moving = async {
            pause(400).await;
            links[0].has_address(1, false);
            pause(100).await;
            links[0].has_address(7, true);
        };
        let ((), ()) = tokio::join!(moving, verifier.receive(&association, 800_000));
        association.shutdown().await.expect("usrsctp answers");
        let report = peer.report().await;
        report.assert_ok("peer-shutdown");
        assert_eq!(verifier.bytes, report.number("bytes_sent"));
        assert!(report.paths("added").contains(&"10.99.1.7"), "{report:?}");
    });
}
