use manypath_sim::{LinkSpec, QueueLimit};

use super::*;

async fn path_to(server: &UdpSocket, link: LinkSpec) -> EmulatedPath {
    let localhost = "127.0.0.1".parse().unwrap();
    let at = server.local_addr().unwrap();
    let spec = PathSpec::hops([link]);
    EmulatedPath::start(localhost, at, &spec, Rng::from_number(7), Epoch::default()).await.unwrap()
}

#[tokio::test]
async fn datagrams_pass_both_ways_after_the_delay() {
    let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let path = path_to(&server, LinkSpec::mbps_ms(100.0, 30.0)).await;
    let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let begin = Instant::now();
    client.send_to(b"ping", path.address()).await.unwrap();
    let mut buffer = [0; 100];
    let (len, from) = server.recv_from(&mut buffer).await.unwrap();
    assert_eq!(&buffer[..len], b"ping");
    server.send_to(b"pong", from).await.unwrap();
    let (len, from) = client.recv_from(&mut buffer).await.unwrap();
    assert_eq!((&buffer[..len], from), (&b"pong"[..], path.address()));
    assert!(begin.elapsed() >= Duration::from_millis(60));
    let one = |stats: LinkStats| (stats.packets, stats.bytes, stats.dropped());
    assert_eq!((one(path.to_server()), one(path.to_client())), ((1, 32, 0), (1, 32, 0)));
}

#[tokio::test]
async fn the_links_are_the_simulator_s_in_real_time() {
    let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    // 1000 bytes take 100 ms, two are held, and the way is shut from 350 to 600 ms.
    let link = LinkSpec::mbps_ms(0.08, 5.0)
        .queue(QueueLimit::Packets(2))
        .down(SimInstant::from_millis(350), Some(Duration::from_millis(250)));
    let path = path_to(&server, link).await;
    let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let send = async |numbers: std::ops::Range<u8>| {
        for number in numbers {
            client.send_to(&[number; 1000 - UDP_IPV4_HEADERS], path.address()).await.unwrap();
        }
    };
    let (begin, mut buffer) = (Instant::now(), [0; 1500]);
    send(0..5).await;
    for expected in 0..2 {
        server.recv_from(&mut buffer).await.unwrap();
        assert_eq!(buffer[0], expected, "what fits arrives in order");
    }
    assert!(begin.elapsed() >= Duration::from_millis(205));
    sleep_until(begin + Duration::from_millis(450)).await;
    assert!(path.is_down(), "without a packet that would tell");
    send(5..7).await;
    sleep_until(begin + Duration::from_millis(650)).await;
    assert!(!path.is_down());
    send(7..8).await;
    server.recv_from(&mut buffer).await.unwrap();
    assert_eq!(buffer[0], 7);
    let stats = path.to_server();
    assert_eq!((stats.packets, stats.overflowed, stats.cut), (3, 3, 2));
    assert_eq!(path.dropped(), (5, 0));
}
