//! Peers that open associations and say nothing.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::stranger::Stranger;
use common::*;
use manypath::{AssocClosed, Association, Endpoint, EndpointOptions, StrangerLimits};

/// A server that admits whoever says something, answers, and keeps the silent; how many it keeps.
fn serve(limits: StrangerLimits) -> (Endpoint, Arc<AtomicUsize>) {
    let server = EndpointOptions { strangers: Some(limits), ..options(&["127.0.0.1"], true) };
    let server = Endpoint::bind(EndpointOptions { max_associations: 1000, ..server }).unwrap();
    let (accepting, kept) = (server.clone(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&kept);
    tokio::spawn(async move {
        while let Some(association) = accepting.accept().await {
            tokio::spawn(greet(association, Arc::clone(&count)));
        }
    });
    (server, kept)
}

async fn greet(association: Association, kept: Arc<AtomicUsize>) {
    kept.fetch_add(1, Ordering::Relaxed);
    while let Ok(Some(hello)) = association.recv().await {
        association.admit();
        let _ = association.send(on(0), hello.payload.into_bytes()).await;
    }
    kept.fetch_sub(1, Ordering::Relaxed);
}

/// Opens an association and is greeted.
async fn honest(ip: &str, server: &Endpoint) -> Association {
    let client = client(&[ip]);
    let connected = within("connected", client.connect(address(server))).await.expect("connected");
    connected.send(on(0), "hello".into()).await.unwrap();
    let answer = within("the answer", connected.recv()).await.expect("not sent away");
    assert_eq!(answer.expect("an answer").payload.to_vec(), b"hello");
    connected
}

#[tokio::test]
async fn hundreds_of_silent_peers_keep_nobody_out() {
    let limits = StrangerLimits::default();
    let (server, kept) = serve(limits);
    let mut silent =
        ["127.0.0.7", "127.0.0.8", "127.0.0.9"].map(|ip| Stranger::new(ip, address(&server)));
    let mut known = Vec::new();
    for i in 0..331_u16 {
        let stranger = &mut silent[usize::from(i % 3)];
        let taken = within("taken", stranger.open(10_000 + i)).await;
        assert!(taken.is_some(), "the oldest goes, not the newest");
        if i == 33 || i == 330 {
            known.push(honest("127.0.0.7", &server).await);
        }
        // All of loopback's 127.0.0.0/24 is one network.
        assert!(kept.load(Ordering::Relaxed) <= limits.per_network + known.len() + 1);
    }
    assert!(kept.load(Ordering::Relaxed) > limits.per_network / 2, "silent ones are kept as well");
    // Who is known is not crowded out.
    for association in &known {
        association.send(on(0), "still here".into()).await.unwrap();
        let answer = within("the answer", association.recv()).await.expect("open");
        assert_eq!(answer.expect("an answer").payload.to_vec(), b"still here");
    }
}

#[tokio::test]
async fn who_is_crowded_out_is_told_to_come_again() {
    let limits = StrangerLimits { per_address: 1, ..StrangerLimits::default() };
    let (server, _) = serve(limits);
    let (first, second) = (client(&["127.0.0.7"]), client(&["127.0.0.7"]));
    let first = within("connected", first.connect(address(&server))).await.expect("connected");
    let second = within("connected", second.connect(address(&server))).await.expect("connected");
    let AssocClosed::PeerAborted { reason, .. } = within("the end", first.closed()).await else {
        panic!("aborted by the server")
    };
    assert!(reason.starts_with(b"busy"), "{}", String::from_utf8_lossy(&reason));
    assert_eq!(second.close_reason(), None);
}

#[tokio::test]
async fn what_nobody_accepts_makes_room_too() {
    let limits = StrangerLimits { total: 4, ..StrangerLimits::default() };
    let server = EndpointOptions {
        strangers: Some(limits),
        accept_backlog: 4,
        ..options(&["127.0.0.1"], true)
    };
    let server = Endpoint::bind(server).unwrap();
    let mut silent = Stranger::new("127.0.0.7", address(&server));
    for port in 1..=20 {
        assert!(within("taken", silent.open(port)).await.is_some(), "port {port}");
    }
    let known = tokio::spawn({
        let server = server.clone();
        async move {
            while let Some(association) = server.accept().await {
                tokio::spawn(greet(association, Arc::default()));
            }
        }
    });
    honest("127.0.0.8", &server).await;
    known.abort();
}

#[tokio::test]
async fn a_transfer_begins_with_the_whole_window_when_its_sender_is_admitted() {
    let (server, _) = serve(StrangerLimits::default());
    let known = honest("127.0.0.7", &server).await;
    let full = config(&[]).receive_buffer;
    // The answer came with a SACK that tells of the room.
    assert!(known.stats().peer_window > full / 2, "{}", known.stats().peer_window);
}
