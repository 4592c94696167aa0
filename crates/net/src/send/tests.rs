//! Batches over real loopback sockets.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::time::Duration;

use manypath_proto::Transmit;
use tokio::time::timeout;

use super::*;
use crate::{BindTo, UdpReceiver};

fn bound(ips: &[&str]) -> UdpSockets {
    let wanted: Vec<BindTo> = ips.iter().map(|ip| ip.parse().unwrap()).collect();
    UdpSockets::bind(&wanted, 0).unwrap()
}

fn batch(local: SocketAddr, remote: SocketAddr, segment_size: usize, bytes: Vec<u8>) -> Outgoing {
    Outgoing::new(Transmit::new(local, remote, segment_size), bytes)
}

/// Sends as a driver does: until the socket has taken it or refused it.
async fn send(sockets: &mut UdpSockets, mut batch: Outgoing) {
    while sockets.try_send(&mut batch) == Sent::Blocked {
        let index = sockets.socket_for(batch.transmit.local).unwrap();
        let wait = poll_fn(|cx| sockets.poll_writable(index, cx));
        timeout(Duration::from_secs(5), wait).await.expect("the socket drains").unwrap();
    }
}

#[tokio::test]
async fn a_batch_arrives_as_its_packets() {
    let mut a = bound(&["127.0.0.1"]);
    let b = bound(&["127.0.0.2"]);
    let (from, to) = (a.bound().as_slice()[0], b.bound().as_slice()[0]);
    let bytes: Vec<u8> = (0..2500).map(|i| i as u8).collect();
    send(&mut a, batch(from, to, 1000, bytes.clone())).await;

    let (mut receiver, mut got) = (UdpReceiver::new(), Vec::new());
    while got.len() < 3 {
        let wait = poll_fn(|cx| receiver.poll_recv(cx, &b, &mut got));
        timeout(Duration::from_secs(5), wait).await.expect("the batch arrives");
    }
    let lengths: Vec<_> = got.iter().map(|d| d.payload.len()).collect();
    assert_eq!(lengths, [1000, 1000, 500]);
    assert_eq!(got.iter().flat_map(|d| d.payload.to_vec()).collect::<Vec<_>>(), bytes);
    assert!(got.iter().all(|d| d.local == to && d.remote == from));
}

#[tokio::test]
async fn a_wildcard_socket_sends_from_the_address_it_is_told() {
    let mut a = bound(&["0.0.0.0"]);
    let b = bound(&["0.0.0.0"]);
    let from = SocketAddr::new([127, 0, 0, 7].into(), a.bound().port());
    let to = SocketAddr::new([127, 0, 0, 9].into(), b.bound().port());
    send(&mut a, batch(from, to, 5, b"hello".to_vec())).await;

    let (mut receiver, mut got) = (UdpReceiver::new(), Vec::new());
    let wait = poll_fn(|cx| receiver.poll_recv(cx, &b, &mut got));
    timeout(Duration::from_secs(5), wait).await.expect("it arrives");
    assert_eq!(
        (got[0].remote, got[0].local),
        (from, to),
        "source and destination are the concrete ones"
    );
    assert_eq!(a.bound().sources_for(&[to])[0].ip(), SocketAddr::from(([127, 0, 0, 1], 0)).ip());
}

#[tokio::test]
async fn refused_packets_are_losses_and_counted() {
    let mut a = bound(&["127.0.0.1"]);
    let from = a.bound().as_slice()[0];
    let nowhere: SocketAddr = "192.0.2.1:9".parse().unwrap();
    // A loopback source cannot leave the host.
    send(&mut a, batch(from, nowhere, 100, vec![0; 250])).await;
    assert_eq!(a.send_failures().total(), 3, "{:?}", a.send_failures());
    assert!(a.max_segments() == bound(&["127.0.0.1"]).max_segments(), "GSO was not to blame");

    let gone = SocketAddr::new([127, 0, 0, 3].into(), from.port());
    send(&mut a, batch(gone, from, 100, vec![0; 100])).await;
    assert_eq!(a.send_failures().dropped, 1, "no socket has that address");
}

#[tokio::test]
async fn a_packet_too_long_loses_itself_only() {
    let mut a = bound(&["127.0.0.1"]);
    let b = bound(&["127.0.0.2"]);
    let (from, to) = (a.bound().as_slice()[0], b.bound().as_slice()[0]);
    send(&mut a, batch(from, to, 70_000, vec![0; 70_001])).await;
    assert_eq!(a.send_failures().too_long, 1, "{:?}", a.send_failures());
    let (mut receiver, mut got) = (UdpReceiver::new(), Vec::new());
    let wait = poll_fn(|cx| receiver.poll_recv(cx, &b, &mut got));
    timeout(Duration::from_secs(5), wait).await.expect("the rest arrives");
    assert_eq!(got[0].payload.len(), 1);
}

/// The next datagram.
async fn received(sockets: &UdpSockets) -> manypath_proto::Datagram {
    let (mut receiver, mut got) = (UdpReceiver::new(), Vec::new());
    let wait = poll_fn(|cx| receiver.poll_recv(cx, sockets, &mut got));
    timeout(Duration::from_secs(5), wait).await.expect("it arrives");
    got.remove(0)
}

#[tokio::test]
async fn packets_carry_what_the_engine_says_of_marks() {
    for ips in [["127.0.0.1", "127.0.0.2"], ["::1", "::1"]] {
        let [mut a, b] = ips.map(|ip| bound(&[ip]));
        let (from, to) = (a.bound().as_slice()[0], b.bound().as_slice()[0]);
        for is_ect in [true, false] {
            let mut transmit = Transmit::new(from, to, 5);
            transmit.is_ect = is_ect;
            send(&mut a, Outgoing::new(transmit, b"hello".to_vec())).await;
            let raw = &b.sockets[0];
            let mut byte = [0; 8];
            let mut meta = [quinn_udp::RecvMeta::default()];
            let wait = raw.io.readable();
            timeout(Duration::from_secs(5), wait).await.expect("it arrives").unwrap();
            let slices = &mut [std::io::IoSliceMut::new(&mut byte)];
            raw.state.recv(UdpSockRef::from(&raw.io), slices, &mut meta).unwrap();
            assert_eq!(meta[0].ecn, is_ect.then_some(EcnCodepoint::Ect0), "{ips:?}");
        }
        for (ecn, has_ce) in [(None, false), (Some(EcnCodepoint::Ce), true)] {
            let raw = &a.sockets[0];
            let contents = b"hello";
            let marked = quinn_udp::Transmit {
                destination: to,
                ecn,
                contents,
                segment_size: None,
                src_ip: None,
            };
            raw.state.try_send(UdpSockRef::from(&raw.io), &marked).unwrap();
            assert_eq!(received(&b).await.has_ce, has_ce, "{ips:?}");
        }
    }
}
