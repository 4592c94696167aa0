//! Answers while others take places, and clients that get none.

use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

use super::*;
use crate::live::Live;
use crate::metrics;

/// Far below the patience with a connection.
const SOON: Duration = Duration::from_secs(5);

async fn connect(from: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::from(from), 0).into()).unwrap();
    socket.connect(to).await.unwrap()
}

/// The rest of a request, and the status of its answer; 0 if the connection ended without one.
async fn finish(mut stream: TcpStream, request: &str) -> u16 {
    let answered = async {
        let _ = stream.write_all(request.as_bytes()).await;
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard).await;
        let text = String::from_utf8(heard).unwrap();
        text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    };
    timeout(SOON, answered).await.expect("an answer soon")
}

fn get(address: SocketAddr) -> String {
    format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n")
}

async fn server() -> (Server, SocketAddr) {
    let local = (Ipv4Addr::LOCALHOST, 0).into();
    let server = metrics::serve(local, Live::start("test")).await.unwrap();
    let address = server.address();
    (server, address)
}

#[tokio::test]
async fn metrics_are_for_no_other_site_and_no_other_name() {
    let (_server, address) = server().await;
    let port = address.port();
    for (headers, status) in [
        (format!("Host: {address}\r\n"), 200),
        (format!("Host: localhost:{port}\r\n"), 200),
        (format!("Host: rebound.example:{port}\r\n"), 403),
        (format!("Host: {address}\r\nOrigin: http://other.example\r\n"), 403),
        (format!("Host: {address}\r\nSec-Fetch-Site: cross-site\r\n"), 403),
        // A page of another server on this host.
        (format!("Host: {address}\r\nSec-Fetch-Site: same-site\r\n"), 403),
        (String::new(), 403),
    ] {
        let stream = connect([127, 0, 0, 1], address).await;
        let request = format!("GET /metrics HTTP/1.1\r\n{headers}\r\n");
        assert_eq!(finish(stream, &request).await, status, "{headers:?}");
    }
}

#[test]
fn a_host_may_have_the_name_that_the_system_gives_it() {
    let here = Ipv4Addr::new(192, 0, 2, 7).into();
    for (host, is_ours) in [
        ("192.0.2.7:9464", true),
        ("server.example:9464", true),
        ("Server.Example", true),
        ("localhost:9464", false),
        ("example:9464", false),
        ("server.example.attacker.example:9464", false),
        ("server.example:port", false),
    ] {
        assert_eq!(names(host, here, Some("server.example")), is_ours, "{host}");
        assert_eq!(names(host, here, None), is_ours && host.starts_with("192"), "{host}");
    }
    assert!(!names(":9464", here, Some("")), "a host without a name");
}

#[tokio::test]
async fn connections_that_ask_for_nothing_take_no_place_from_others() {
    let (_server, address) = server().await;
    let mut idle = Vec::new();
    for _ in 0..2 * CONNECTIONS_MAX {
        idle.push(connect([127, 0, 0, 1], address).await);
    }
    // Connections that begin to ask take none, too.
    for stream in idle.iter_mut().rev().take(CONNECTIONS_MAX) {
        let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\n").await;
    }
    let asking = connect([127, 0, 0, 1], address).await;
    assert_eq!(finish(asking, &get(address)).await, 200);
}

#[tokio::test]
async fn an_address_with_many_connections_takes_no_place_from_another_address() {
    let (_server, address) = server().await;
    let request = get(address);
    let (head, rest) = request.split_at(10);
    let mut slow = connect([127, 0, 0, 1], address).await;
    slow.write_all(head.as_bytes()).await.unwrap();
    let mut idle = Vec::new();
    for _ in 0..3 * CONNECTIONS_MAX {
        idle.push(connect([127, 0, 0, 2], address).await);
    }
    assert_eq!(finish(slow, rest).await, 200);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_does_not_ask_ends_after_twenty_seconds() {
    let (_server, address) = server().await;
    let mut silent = connect([127, 0, 0, 1], address).await;
    silent.write_all(b"GET /metrics HTTP/1.1\r\n").await.unwrap();
    let begun = tokio::time::Instant::now();
    let ended = timeout(Duration::from_secs(60), silent.read_to_end(&mut Vec::new())).await;
    assert!(ended.is_ok(), "it is still there");
    assert!((19..=21).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_server_that_is_dropped_takes_no_connection() {
    let (server, address) = server().await;
    drop(server);
    for _ in 0..100 {
        let socket = TcpSocket::new_v4().unwrap();
        if socket.connect(address).await.is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the server goes on");
}
