//! Ranks of paths over sockets: who carries data, and how that changes while it flows.

mod common;

use std::time::Duration;

use common::relay::Relay;
use common::*;
use manypath::{
    Association, BindTo, Bytes, ConnectTarget, Endpoint, EndpointOptions, Event, PathRank,
    RankPlaceError, SuppressReason,
};

const CHEAP: &str = "127.0.0.3";
const DEAR: &str = "127.0.0.4";

fn place(text: &str) -> BindTo {
    text.parse().unwrap()
}

fn client_with(ranks: Vec<(BindTo, PathRank)>) -> Endpoint {
    // A machine that stands still for less than a second is no path that fails, and the socket of a
    // relay that is not read meanwhile holds all that is in flight.
    let patient = config(&[
        ("send_buffer", "64 KiB"),
        ("rto_initial", "1 s"),
        ("rto_min", "1 s"),
        ("rto_max", "1 s"),
        ("hb_interval", "200 ms"),
    ]);
    Endpoint::bind(EndpointOptions { ranks, config: patient, ..options(&[CHEAP, DEAR], false) })
        .unwrap()
}

/// DATA chunks that were sent from an address.
fn chunks_from(association: &Association, local: &str) -> u64 {
    let from_there = |p: &&manypath::PathStats| p.local.ip().to_string() == local;
    association.paths().iter().find(from_there).map_or(0, |p| p.counters.data_chunks_sent)
}

async fn send(from: &Association, to: &Association, messages: usize) {
    let sending = async {
        for _ in 0..messages {
            from.send(on(0), Bytes::from(pattern(10_000))).await.unwrap();
        }
    };
    let receiving = async {
        for _ in 0..messages {
            assert_eq!(to.recv().await.unwrap().unwrap().payload.to_vec(), pattern(10_000));
        }
    };
    within("the messages", async { tokio::join!(sending, receiving) }).await;
}

async fn until_verified(association: &Association) {
    let verified = async {
        while association.paths().iter().filter(|p| p.srtt.is_some()).count() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within("both paths are verified", verified).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranks_are_set_when_an_endpoint_is_bound_and_later() {
    let client = client_with(vec![(place(DEAR), PathRank::Backup)]);
    let server = server(&["127.0.0.1", "127.0.0.2"]);
    let (from, to) = connected(&client, &server).await;
    until_verified(&from).await;
    let mut events = from.events();

    send(&from, &to, 500).await;
    assert_eq!(chunks_from(&from, DEAR), 0, "the last resort");
    let suppressed: Vec<_> =
        from.paths().iter().map(|p| (p.local.ip().to_string(), p.rank, p.suppressed)).collect();
    assert!(suppressed.contains(&(CHEAP.into(), PathRank::NORMAL, None)), "{suppressed:?}");
    let dearer = Some(SuppressReason::Dearer);
    assert!(suppressed.contains(&(DEAR.into(), PathRank::Backup, dearer)), "{suppressed:?}");

    client.set_rank(place(DEAR), PathRank::NORMAL).unwrap();
    client.set_rank(place(CHEAP), PathRank::Cost(9)).unwrap();
    assert_eq!(client.rank(CHEAP.parse().unwrap()), PathRank::Cost(9));
    let before = chunks_from(&from, CHEAP);
    send(&from, &to, 100).await;
    assert!(chunks_from(&from, DEAR) > 500, "it is the cheap one now");
    assert_eq!(chunks_from(&from, CHEAP), before);
    let told = async {
        let mut ranks = Vec::new();
        while ranks.len() < 2 {
            let event = events.next().await.expect("the association goes on");
            if let Event::PathRank { rank, .. } = event {
                ranks.push(rank);
            }
        }
        ranks
    };
    assert_eq!(within("events", told).await, [PathRank::NORMAL, PathRank::Cost(9)]);

    let cheap = from.paths().iter().find(|p| p.local.ip().to_string() == CHEAP).unwrap().id;
    assert!(from.set_path_rank(cheap, PathRank::Cost(1)));
    assert_eq!(from.path_rank(cheap), Some(PathRank::Cost(1)));
    assert!(!from.set_path_rank(manypath::PathId(30), PathRank::Backup), "no such path");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_takes_over_and_gives_back() {
    let client = client_with(vec![(place(DEAR), PathRank::Backup)]);
    let server = server(&["127.0.0.1"]);
    let relays = [
        Relay::start("127.0.0.5", address(&server)).await,
        Relay::start("127.0.0.6", address(&server)).await,
    ];
    let target = ConnectTarget::new(relays.iter().map(|r| r.address));
    let (from, to) = connected_to(&client, target, &server).await;
    until_verified(&from).await;
    send(&from, &to, 100).await;
    assert_eq!(chunks_from(&from, DEAR), 0);

    // Whichever relay the cheap path goes through.
    let cheap = from.paths().iter().find(|p| p.local.ip().to_string() == CHEAP).unwrap().remote;
    let relay = relays.iter().find(|r| r.address == cheap).unwrap();
    relay.cut(true);
    send(&from, &to, 200).await;
    let carried = chunks_from(&from, DEAR);
    assert!(carried > 500, "{carried} chunks on the last resort");

    relay.cut(false);
    let back = async {
        while from.paths().iter().any(|p| p.state != manypath::PathState::Active) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within("the cheap path answers", back).await;
    let before = chunks_from(&from, DEAR);
    send(&from, &to, 200).await;
    assert_eq!(chunks_from(&from, DEAR), before, "all on the cheap path again");
}

#[tokio::test]
async fn places_that_cannot_have_a_rank_are_named() {
    let bound = Endpoint::bind(EndpointOptions {
        ranks: vec![(BindTo::Any, PathRank::Backup)],
        ..options(&[CHEAP], false)
    });
    assert!(bound.unwrap_err().to_string().contains("every address"));
    let client = client(&[CHEAP]);
    let error = client.set_rank(place("no-such0"), PathRank::Backup).unwrap_err();
    assert_eq!(error, RankPlaceError::NoInterface("no-such0".into()));
}
