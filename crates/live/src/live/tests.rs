//! A transfer over two loopback paths, as it is sampled.

use std::net::SocketAddr;

use bytes::Bytes;
use manypath::{Config, ConnectTarget, Endpoint, EndpointOptions, Security, SendOptions};

use super::*;
use crate::metrics;

/// A client with two paths to a server, and both of their endpoints.
async fn pair() -> (Association, Association, [Endpoint; 2]) {
    let bind = |ips: &[&str]| ips.iter().map(|ip| ip.parse().unwrap()).collect();
    let options = EndpointOptions {
        bind: bind(&["127.0.0.1", "127.0.0.2"]),
        udp_port: 0,
        ..EndpointOptions::server(Security::Plain)
    };
    let server = Endpoint::bind(options).unwrap();
    // A preset that fills both paths, however little there is to send.
    let config = Config::build("fast", "cmt-pf", &[]).unwrap();
    let options = EndpointOptions {
        config: config.into(),
        bind: bind(&["127.0.0.11", "127.0.0.12"]),
        ..EndpointOptions::client(Security::Plain)
    };
    let client = Endpoint::bind(options).unwrap();
    let port = server.udp_port();
    let remotes = ["127.0.0.1", "127.0.0.2"];
    let remotes = remotes.map(|ip| SocketAddr::new(ip.parse().unwrap(), port));
    let (here, there) = tokio::join!(client.connect(ConnectTarget::new(remotes)), server.accept());
    (here.unwrap(), there.unwrap(), [client, server])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_is_sampled_and_its_ranks_change() {
    let (here, there, _endpoints) = pair().await;
    let live = Live::start("test");
    let watching = live.watch(&here, Some(Total::Sent(1_000_000)));
    let reading = tokio::spawn(async move { while let Ok(Some(_)) = there.recv().await {} });
    for _ in 0..100 {
        here.send(SendOptions::default(), Bytes::from_static(&[7; 10_000])).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    here.acknowledged().await.unwrap();
    let process = live.process(None);
    let association = &process.associations[0];
    assert_eq!((association.acked_bytes, association.done_bytes), (1_000_000, 1_000_000));
    let sampled: f64 = {
        let pairs = association.paths.iter().flat_map(|path| path.samples.windows(2));
        pairs.map(|pair| pair[1].up_bps / 8e3 * (pair[1].at_ms - pair[0].at_ms) as f64).sum()
    };
    // But for the first sample and what came after the last.
    assert!((300_000.0..1_001_000.0).contains(&sampled), "{sampled} bytes were sampled");
    assert!(association.paths.iter().all(|path| path.srtt_s.is_some()));
    assert!(live.process(Some(process.now_ms)).associations[0].paths[0].samples.len() <= 2);

    let path = association.paths[1].path;
    let number = association.association;
    assert_eq!(live.set_rank(number, path, "backup"), Ok(true));
    assert_eq!(live.process(None).associations[0].paths[1].rank, "backup");
    assert_eq!(live.set_rank(number, 0, "backup"), Ok(false));
    assert_eq!(live.set_rank(number, 300, "backup"), Ok(false));
    assert_eq!(live.set_rank(number + 1, path, "backup"), Ok(false));
    assert!(live.set_rank(number, path, "first").is_err());

    let text = metrics::text(&live);
    assert!(text.contains("manypath_acked_bytes_total 1000000\n"), "{text}");
    drop(watching);
    let text = metrics::text(&live);
    assert!(text.contains("manypath_acked_bytes_total 1000000\n"), "the sum stays: {text}");
    assert!(!text.contains("manypath_path_"), "its paths are gone: {text}");
    reading.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn associations_beyond_the_limit_are_counted() {
    let (here, _there, _endpoints) = pair().await;
    let live = Live::start("test");
    live.state().unlisted = 3;
    let watching = live.watch(&here, None);
    let text = metrics::text(&live);
    assert!(text.contains("manypath_associations 4\n"), "{text}");
    assert!(text.contains("manypath_associations_unlisted 3\n"), "{text}");
    drop(watching);
    assert_eq!(live.process(None).unlisted, 3);
}

/// `proxy connect` looks with a second endpoint if the far side still answers. The first
/// associations of two endpoints have the same number there.
#[tokio::test(flavor = "multi_thread")]
async fn associations_of_two_endpoints_do_not_take_each_others_place() {
    let (first, _there, _endpoints) = pair().await;
    let (second, _other, _others) = pair().await;
    assert_eq!(first.id(), second.id());
    let live = Live::start("test");
    let _watching = live.watch(&first, None);
    let looking = live.watch(&second, None);
    let shown = |live: &Live| {
        let shown = live.process(None).associations;
        shown.iter().map(|a| (a.association, a.paths[0].remote.clone())).collect::<Vec<_>>()
    };
    let both = shown(&live);
    assert_eq!(both.len(), 2);
    assert_ne!(both[0].0, both[1].0);
    drop(looking);
    assert_eq!(shown(&live), both[..1], "the first one stays");
    assert_eq!(both[0].1, first.paths()[0].remote.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_associations_are_watched_and_the_others_counted() {
    let live = Live::start("test");
    let mut all = Vec::new();
    let (_here, _there, [_client, server]) = pair().await;
    for number in 1..=66 {
        let options = EndpointOptions {
            bind: vec![format!("127.0.1.{number}").parse().unwrap()],
            ..EndpointOptions::client(Security::Plain)
        };
        let client = Endpoint::bind(options).unwrap();
        let to = SocketAddr::new([127, 0, 0, 1].into(), server.udp_port());
        let ends = tokio::join!(client.connect(ConnectTarget::new([to])), server.accept());
        let (here, there) = (ends.0.unwrap(), ends.1.unwrap());
        all.push((live.watch(&there, None), here, client));
    }
    let process = live.process(None);
    assert_eq!((process.associations.len(), process.unlisted), (64, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_so_many_paths_have_a_past() {
    let (here, _there, _endpoints) = pair().await;
    let live = Live::start("test");
    let _watching = live.watch(&here, None);
    let mut state = live.state();
    let watched = state.watched.values_mut().next().unwrap();
    assert_eq!(here.paths().len(), 2);
    for (room, used) in [(0, 0), (1, 1), (5, 2)] {
        let mut left = room;
        watched.paths.clear();
        watched.read(0, &mut left);
        assert_eq!((watched.paths.len(), left), (used, room - used), "room for {room}");
    }
    watched.paths.insert(200, History::default());
    watched.read(0, &mut 5);
    assert!(!watched.paths.contains_key(&200), "a path that is gone has none");
}

#[tokio::test]
async fn events_are_kept_in_bounds() {
    let live = Live::start("test");
    (0..1000).for_each(|n| live.note(&format!("{n} {}", "x".repeat(10_000))));
    let events = live.process(None).events;
    assert_eq!(events.len(), EVENTS_MAX);
    assert!(events[0].text.starts_with("800 ") && events[0].text.len() == TEXT_MAX);
}
