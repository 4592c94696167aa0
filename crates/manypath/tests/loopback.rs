//! Two endpoints on loopback: what applications rely on.

mod common;

use std::time::Duration;

use common::*;
use manypath::{
    AssocClosed, BindError, Bytes, Config, ConnectError, ConnectTarget, Endpoint, EndpointOptions,
    Event, EventStream, ReconfigureError, RequestOutcome, SendError, StreamId, StreamRequest,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn a_transfer_over_two_addresses_ends_with_everything_delivered() {
    let (a, z) = (client(&["127.0.0.3", "127.0.0.4"]), server(&["127.0.0.1", "127.0.0.2"]));
    let (from, to) = connected(&a, &z).await;
    assert_eq!(from.paths().len(), 2, "one per local address: {:?}", from.paths());

    const SIZE: usize = 8 << 20;
    let reader = tokio::spawn(async move {
        let mut got = Vec::new();
        while let Some(message) = to.recv().await.unwrap() {
            got.extend_from_slice(&message.payload.to_vec());
        }
        (got, to.closed().await)
    });
    let data = Bytes::from(pattern(SIZE));
    for start in (0..SIZE).step_by(50_000) {
        let message = data.slice(start..SIZE.min(start + 50_000));
        within("back-pressure ends", from.send(on(0), message)).await.unwrap();
    }
    let paths = from.paths();
    within("shutdown", from.shutdown()).await.unwrap();
    let (got, end) = within("the reader ends", reader).await.unwrap();
    assert!(got == data, "all bytes in order");
    assert_eq!(end, AssocClosed::Shutdown);
    assert!(paths.iter().all(|p| p.counters.packets_sent > 10), "both paths carry data: {paths:?}");
}

#[tokio::test]
async fn a_server_on_every_address_answers_from_the_one_it_was_called_at() {
    let z = Endpoint::bind(EndpointOptions { bind: Vec::new(), ..options(&[], true) }).unwrap();
    let a = client(&["127.0.0.3", "127.0.0.4"]);
    let remotes = ["127.0.0.8", "127.0.0.9"].map(|ip| (ip, z.udp_port()));
    let remotes = remotes.map(|(ip, port)| format!("{ip}:{port}").parse().unwrap());
    let (from, to) = connected_to(&a, ConnectTarget::new(remotes), &z).await;
    from.send(on(0), pattern(1_000_000).into()).await.unwrap();
    assert!(within("the message", to.recv()).await.unwrap().is_some());
    to.send(on(0), pattern(1_000_000).into()).await.unwrap();
    assert!(within("the reply", from.recv()).await.unwrap().is_some());
    let at_z: Vec<_> = to.paths().iter().map(|p| p.local).collect();
    assert!(remotes.iter().all(|r| at_z.contains(r)), "{at_z:?}");
    assert!(!z.local_addresses().is_empty());
}

#[tokio::test]
async fn ipv6_carries_as_well() {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        eprintln!("skipped: this host has no IPv6 loopback");
        return;
    }
    let (a, z) = (client(&["::1", "127.0.0.1"]), server(&["::1", "127.0.0.1"]));
    let (from, to) = connected(&a, &z).await;
    assert_eq!(from.paths().len(), 2, "one in each family: {:?}", from.paths());
    from.send(on(0), pattern(2_000_000).into()).await.unwrap();
    let message = within("the message", to.recv()).await.unwrap().unwrap();
    assert!(message.payload.to_vec() == pattern(2_000_000));
    from.shutdown().await.unwrap();
}

#[tokio::test]
async fn ipv4_addresses_in_ipv6_ones_are_taken_as_ipv4_addresses() {
    let (a, z) = (client(&["::ffff:127.0.0.3"]), server(&["::ffff:127.0.0.1", "127.0.0.2"]));
    let port = z.udp_port();
    let place = |text: &str, port| std::net::SocketAddr::new(text.parse().unwrap(), port);
    // The third is the second.
    let remotes = ["::ffff:127.0.0.1", "::ffff:127.0.0.2", "127.0.0.2"].map(|ip| place(ip, port));
    let (from, _to) = connected_to(&a, ConnectTarget::new(remotes), &z).await;
    let ways = || from.paths().iter().map(|p| (p.local.ip(), p.remote.ip())).collect::<Vec<_>>();
    let ip = |text: &str| text.parse::<std::net::IpAddr>().unwrap();
    let first = (ip("127.0.0.3"), ip("127.0.0.1"));
    assert_eq!(ways()[0], first);
    assert!(ways().iter().all(|(local, remote)| local.is_ipv4() && remote.is_ipv4()));
    let (local, remote) = (place("::ffff:127.0.0.3", a.udp_port()), remotes[0]);
    assert_eq!(from.add_path(local, remote), None, "it is there");
    let backup = manypath::PathRank::Backup;
    a.set_rank(manypath::BindTo::Address(local.ip()), backup).unwrap();
    assert!(from.paths().iter().all(|path| path.rank == backup), "{:?}", from.paths());
    assert_eq!(a.rank(local.ip()), backup);
}

#[tokio::test]
async fn a_link_local_address_without_its_interface_is_refused_at_once() {
    let remote = std::net::SocketAddr::new("fe80::7".parse().unwrap(), 9899);
    for bind in [&["127.0.0.1", "::1"][..], &[]] {
        let a = client(bind);
        let opening = a.connect(ConnectTarget::new([remote]));
        let error = within("the refusal", opening).await.unwrap_err();
        assert!(error.to_string().contains("fe80::7"), "{error}");
        assert!(matches!(error, ConnectError::NoPath { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_first_message_is_there_when_the_association_is() {
    let (a, z) = (client(&["127.0.0.1"]), server(&["127.0.0.1"]));
    let first = Bytes::from_static(b"hello");
    let opening = a.connect_with(ConnectTarget::new([address(&z)]), on(0), first.clone());
    let (from, to) = within("the handshake", async { tokio::join!(opening, z.accept()) }).await;
    let (from, to) = (from.unwrap(), to.unwrap());
    let message = within("the first message", to.recv()).await.unwrap().unwrap();
    assert_eq!(message.payload.to_vec(), b"hello");
    from.send(on(0), Bytes::from_static(b"again")).await.unwrap();
    let message = within("the second", to.recv()).await.unwrap().unwrap();
    assert_eq!(message.payload.to_vec(), b"again", "in its order");
}

#[tokio::test]
async fn a_first_message_that_nobody_could_be_sent_is_refused_at_once() {
    let (a, z) = (client(&["127.0.0.1"]), server(&["127.0.0.1"]));
    let to = ConnectTarget::new([address(&z)]);
    let refused = a.connect_with(to.clone(), on(0), Bytes::new()).await;
    assert!(matches!(refused, Err(ConnectError::FirstMessage(_))), "{refused:?}");
    within("the handshake", a.connect(to)).await.unwrap(); // and nothing of the attempt is left
}

#[tokio::test]
async fn messages_keep_their_boundaries_streams_and_labels() {
    let (a, z) = (client(&["127.0.0.1"]), server(&["127.0.0.1"]));
    let (from, to) = connected(&a, &z).await;
    let sizes = [1, 2, 1443, 1444, 1445, 10_000, 100_000];
    for (i, size) in sizes.into_iter().enumerate() {
        let options = manypath::SendOptions { ppid: 7 + i as u32, ..on(3) };
        from.send(options, pattern(size).into()).await.unwrap();
    }
    for (i, size) in sizes.into_iter().enumerate() {
        let message = within("a message", to.recv()).await.unwrap().unwrap();
        assert_eq!((message.stream, message.ppid), (StreamId(3), 7 + i as u32));
        assert!(message.payload.to_vec() == pattern(size), "message of {size} bytes");
        assert!(message.end_of_message && !message.unordered);
    }
}

#[tokio::test]
async fn each_stream_is_in_order_both_ways() {
    let (a, z) = (client(&["127.0.0.1"]), server(&["127.0.0.1"]));
    let (ours, theirs) = connected(&a, &z).await;
    const STREAMS: u16 = 16;
    const EACH: u32 = 200;
    let run = |me: manypath::Association| async move {
        let sender = me.clone();
        let sending = async move {
            for i in 0..EACH {
                for stream in 0..STREAMS {
                    let number = Bytes::copy_from_slice(&i.to_be_bytes());
                    sender.send(on(stream), number).await.unwrap();
                }
            }
        };
        let receiving = async {
            let mut next = [0; STREAMS as usize];
            for _ in 0..EACH * u32::from(STREAMS) {
                let message = me.recv().await.unwrap().unwrap();
                let expected = &mut next[usize::from(message.stream.0)];
                assert_eq!(message.payload.to_vec(), u32::to_be_bytes(*expected));
                *expected += 1;
            }
        };
        tokio::join!(sending, receiving);
    };
    within("all messages", async { tokio::join!(run(ours), run(theirs)) }).await;
}

#[tokio::test]
async fn a_sender_waits_for_a_slow_reader() {
    let small = config(&[("send_buffer", "100 kB"), ("receive_buffer", "100 kB")]);
    let bind = |accept| {
        let options = options(&["127.0.0.1"], accept);
        Endpoint::bind(EndpointOptions { config: small.clone(), ..options }).unwrap()
    };
    let (a, z) = (bind(false), bind(true));
    let (from, to) = connected(&a, &z).await;
    let message = Bytes::from(pattern(10_000));

    let mut queued = 0;
    let stalled = async {
        loop {
            from.send(on(0), message.clone()).await.unwrap();
            queued += message.len();
        }
    };
    assert!(tokio::time::timeout(Duration::from_millis(500), stalled).await.is_err());
    assert!((100_000..=250_000).contains(&queued), "two buffers of 100 kB hold {queued} bytes");

    let reader = async {
        let mut got = 0;
        while got < 10 * queued {
            got += to.recv().await.unwrap().unwrap().payload.len();
        }
    };
    let writer = async {
        for _ in 0..10 * queued / message.len() {
            from.send(on(0), message.clone()).await.unwrap();
        }
    };
    within("reading lets the sender go on", async { tokio::join!(reader, writer) }).await;
}

#[tokio::test]
async fn what_cannot_be_sent_says_why() {
    let (a, z) = (client(&["127.0.0.1"]), server(&["127.0.0.1"]));
    let (from, _to) = connected(&a, &z).await;
    assert_eq!(from.send(on(0), Bytes::new()).await, Err(SendError::Empty));
    let no_stream = from.send(on(60_000), "x".into()).await;
    assert_eq!(no_stream, Err(SendError::NoSuchStream(StreamId(60_000))));
    let huge = Bytes::from(vec![0; 100 << 20]);
    assert!(matches!(from.send(on(0), huge).await, Err(SendError::TooLarge { .. })));
    from.abort("test");
    let closed = from.send(on(0), "x".into()).await;
    assert_eq!(closed, Err(SendError::Closed(AssocClosed::Aborted)));
}

#[tokio::test]
async fn the_reason_of_an_abort_arrives() {
    let (a, z) = (client(&["127.0.0.1"]), server(&["127.0.0.1"]));
    let (from, to) = connected(&a, &z).await;
    from.abort("disk full");
    let end = within("the abort arrives", to.closed()).await;
    let AssocClosed::PeerAborted { cause, reason } = end else { panic!("{end:?}") };
    assert_eq!((cause, &reason[..]), (12, &b"disk full"[..]), "User-Initiated Abort");
    assert_eq!(within("ours", from.closed()).await, AssocClosed::Aborted);
    assert!(to.recv().await.is_err());
}

#[tokio::test]
async fn accepting_is_bounded() {
    let z = Endpoint::bind(EndpointOptions { accept_backlog: 1, ..options(&["127.0.0.1"], true) })
        .unwrap();
    let a = client(&["127.0.0.1"]);
    let b = client(&["127.0.0.1"]);
    let first = within("connects", a.connect(address(&z))).await.unwrap();
    // The handshake itself succeeds; the ABORT with the reason follows at once.
    let end = match within("an answer", b.connect(address(&z))).await {
        Ok(second) => within("the refusal", second.closed()).await,
        Err(ConnectError::Failed(end)) => end,
        Err(other) => panic!("{other}"),
    };
    assert!(end.to_string().contains("too many associations wait"), "{end}");
    let accepted = within("accept", z.accept()).await.unwrap();
    first.send(on(0), "still there".into()).await.unwrap();
    assert!(within("the first one works", accepted.recv()).await.unwrap().is_some());
}

#[tokio::test]
async fn two_clients_share_a_server() {
    let z = server(&["127.0.0.1", "127.0.0.2"]);
    let (a, b) = (client(&["127.0.0.3"]), client(&["127.0.0.3"]));
    let (from_a, at_z_a) = connected(&a, &z).await;
    let (from_b, at_z_b) = connected(&b, &z).await;
    from_a.send(on(0), "a".into()).await.unwrap();
    from_b.send(on(0), "b".into()).await.unwrap();
    for (at_z, expected) in [(&at_z_a, b"a"), (&at_z_b, b"b")] {
        let message = within("a message", at_z.recv()).await.unwrap().unwrap();
        assert_eq!(message.payload.to_vec(), expected);
    }
    from_a.abort("a leaves");
    within("a is gone", at_z_a.closed()).await;
    at_z_b.send(on(0), "reply".into()).await.unwrap();
    assert!(within("b stays", from_b.recv()).await.unwrap().is_some());
}

#[tokio::test]
async fn binding_says_what_is_wrong() {
    let z = server(&["127.0.0.1"]);
    let taken = EndpointOptions { udp_port: z.udp_port(), ..options(&["127.0.0.1"], true) };
    let error = Endpoint::bind(taken).unwrap_err();
    assert!(matches!(error, BindError::Socket(manypath::SocketError::InUse(_))), "{error}");
    assert!(error.to_string().contains(&format!("127.0.0.1:{}", z.udp_port())), "{error}");
    let config = config(&[("checksum", "false")]);
    let unchecked = EndpointOptions { config, ..options(&["127.0.0.1"], true) };
    let error = Endpoint::bind(unchecked).unwrap_err();
    assert!(error.to_string().contains("checksum = false: must be true"), "{error}");
}

#[tokio::test]
async fn the_papers_profile_fits_its_packets_into_udp() {
    let config = std::sync::Arc::new(Config::build("2006", "cmt", &[]).unwrap());
    let with = |accept| EndpointOptions {
        config: std::sync::Arc::clone(&config),
        ..options(&["127.0.0.1"], accept)
    };
    let (a, z) = (Endpoint::bind(with(false)).unwrap(), Endpoint::bind(with(true)).unwrap());
    let (from, to) = connected(&a, &z).await;
    from.send(on(0), Bytes::from(pattern(30_000))).await.unwrap();
    let got = within("it arrives", to.recv()).await.unwrap().expect("a message");
    assert!(got.payload.to_vec() == pattern(30_000), "unchanged");
    let longest =
        from.paths().iter().map(|p| p.counters.bytes_sent / p.counters.packets_sent).max();
    assert!(longest.is_some_and(|bytes| bytes <= 1472), "IP and UDP headers fit the MTU as well");
}

#[tokio::test]
async fn connecting_says_what_is_wrong() {
    let a = client(&["127.0.0.1"]);
    let none = a.connect(ConnectTarget::new([])).await.unwrap_err();
    assert_eq!(none, ConnectError::NoRemote);
    let v6 = a.connect(ConnectTarget::new(["[::1]:9899".parse().unwrap()])).await.unwrap_err();
    assert!(matches!(v6, ConnectError::NoPath { .. }), "{v6}");
    let zero = ConnectTarget { sctp_port: 0, ..address(&a).into() };
    assert!(matches!(a.connect(zero).await, Err(ConnectError::Refused(_))));
    assert!(a.accept().await.is_none(), "a client accepts nobody");
}

#[tokio::test]
async fn nobody_there_is_a_clear_error() {
    let quick =
        config(&[("rto_initial", "50 ms"), ("rto_min", "50 ms"), ("max_init_retransmits", "2")]);
    let options = EndpointOptions { config: quick, ..options(&["127.0.0.1"], false) };
    let a = Endpoint::bind(options).unwrap();
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let error = within("gives up", a.connect(silent.local_addr().unwrap())).await.unwrap_err();
    assert_eq!(error, ConnectError::Failed(AssocClosed::HandshakeTimedOut));
}

#[tokio::test]
async fn an_attempt_ends_with_the_limit_of_its_target() {
    let a = client(&["127.0.0.1"]);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let limit = Duration::from_millis(300);
    let target = ConnectTarget::new([silent.local_addr().unwrap()]).within(limit);
    let begin = tokio::time::Instant::now();
    let error = within("gives up", a.connect(target)).await.unwrap_err();
    assert_eq!(error, ConnectError::Failed(AssocClosed::HandshakeTimedOut));
    let time = begin.elapsed();
    assert!(time >= limit && time < 7 * limit, "{time:?}");
}

#[tokio::test]
async fn a_dropped_association_still_delivers() {
    let (a, z) = (client(&["127.0.0.1"]), server(&["127.0.0.1"]));
    let (from, to) = connected(&a, &z).await;
    to.send(on(0), pattern(300_000).into()).await.unwrap();
    from.send(on(0), pattern(500_000).into()).await.unwrap();
    drop(from);
    let message = within("a message", to.recv()).await.unwrap().unwrap();
    assert_eq!(message.payload.len(), 500_000);
    assert!(within("the end", to.recv()).await.unwrap().is_none());
    assert_eq!(within("shut down", to.closed()).await, AssocClosed::Shutdown);
}

#[tokio::test]
async fn closing_an_endpoint_delivers_first() {
    let (a, z) = (client(&["127.0.0.1"]), server(&["127.0.0.1"]));
    let (from, to) = connected(&a, &z).await;
    from.send(on(0), pattern(500_000).into()).await.unwrap();
    let reader = tokio::spawn(async move {
        let message = to.recv().await.unwrap().unwrap();
        assert!(to.recv().await.unwrap().is_none());
        message.payload.len()
    });
    within("close", a.close()).await;
    assert_eq!(within("the reader", reader).await.unwrap(), 500_000);
    assert_eq!(from.close_reason(), Some(AssocClosed::Shutdown));
    let refused = a.connect(address(&z)).await.unwrap_err();
    assert_eq!(refused, ConnectError::EndpointClosed);
}

#[test]
fn a_stopped_runtime_tells_the_peer_and_blocks_nobody() {
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    let (here, there) = (runtime(), runtime());
    let z = here.block_on(async { server(&["127.0.0.1"]) });
    let a = there.block_on(async { client(&["127.0.0.1"]) });
    let target = address(&z);
    let from = there.spawn({
        let a = a.clone();
        async move { a.connect(target).await.unwrap() }
    });
    let to = here.block_on(within("accept", z.accept())).unwrap();
    let from = here.block_on(within("connected", from)).unwrap();

    there.shutdown_timeout(Duration::from_secs(5));
    let end = here.block_on(within("the peer learns of it", to.closed()));
    assert!(matches!(end, AssocClosed::PeerAborted { .. }), "{end}");
    assert_eq!(here.block_on(within("ours is over", from.closed())), AssocClosed::Aborted);
}

#[tokio::test]
async fn bytes_flow_through_streams_beside_messages() {
    let (a, z) = (client(&["127.0.0.1"]), server(&["127.0.0.1"]));
    let (ours, theirs) = connected(&a, &z).await;
    let (mut out, _) = ours.stream(StreamId(5)).unwrap();
    let (_, mut input) = theirs.stream(StreamId(5)).unwrap();
    assert!(theirs.stream(StreamId(5)).is_err(), "one reader a stream");

    let data = pattern(3_000_000);
    let expected = data.clone();
    let writer = async {
        ours.send(on(1), "beside".into()).await.unwrap();
        out.write_all(&data).await.unwrap();
        out.flush().await.unwrap();
        out.send("the end".into()).await.unwrap();
        ours.shutdown().await.unwrap();
    };
    let reader = async {
        let mut got = Vec::new();
        input.read_to_end(&mut got).await.unwrap();
        assert_eq!(got.split_off(expected.len()), b"the end");
        assert!(got == expected, "all bytes in order");
    };
    let messages = async {
        let message = theirs.recv().await.unwrap().unwrap();
        assert_eq!((message.stream, message.payload.to_vec()), (StreamId(1), b"beside".to_vec()));
        assert!(theirs.recv().await.unwrap().is_none());
    };
    within("both", async { tokio::join!(writer, reader, messages) }).await;
}

#[tokio::test]
async fn a_stream_nobody_reads_holds_a_bounded_amount() {
    let small = config(&[("send_buffer", "200 kB"), ("receive_buffer", "200 kB")]);
    let bind = |accept| {
        let options = options(&["127.0.0.1"], accept);
        Endpoint::bind(EndpointOptions { config: small.clone(), ..options }).unwrap()
    };
    let (a, z) = (bind(false), bind(true));
    let (from, to) = connected(&a, &z).await;
    let (_, mut unread) = to.stream(StreamId(1)).unwrap();
    let other = to.clone();
    let waiting = tokio::spawn(async move { other.recv().await.unwrap().unwrap() });

    let mut queued = 0;
    let message = Bytes::from(pattern(20_000));
    let stalled = async {
        loop {
            from.send(on(1), message.clone()).await.unwrap();
            queued += message.len();
        }
    };
    assert!(tokio::time::timeout(Duration::from_millis(700), stalled).await.is_err());
    assert!(queued < 2_000_000, "1 MiB and the buffers: {queued}");
    assert!(!waiting.is_finished());

    // Reading the stream frees the way for the message behind it.
    let sender = tokio::spawn(async move {
        from.send(on(0), "at last".into()).await.unwrap();
        from
    });
    let drain = async { while unread.recv().await.unwrap().is_some() {} };
    let message = tokio::select! {
        message = waiting => message.unwrap(),
        () = drain => panic!("the stream has not ended"),
        () = tokio::time::sleep(LONG) => panic!("the message is held up"),
    };
    assert_eq!(message.payload.to_vec(), b"at last");
    drop(sender.await.unwrap());
}

#[tokio::test]
async fn events_tell_the_end_and_then_stop() {
    let (a, z) = (client(&["127.0.0.1"]), server(&["127.0.0.1"]));
    let (from, to) = connected(&a, &z).await;
    let mut events = to.events();
    from.abort("over");
    let closed = async {
        let mut last = None;
        while let Some(event) = events.next().await {
            last = Some(event);
        }
        last
    };
    let last = within("the stream of events ends", closed).await;
    assert!(
        matches!(last, Some(manypath::Event::Closed(AssocClosed::PeerAborted { .. }))),
        "{last:?}"
    );
    assert!(to.events().next().await.is_none(), "nothing follows");
}

#[tokio::test]
async fn an_idle_endpoint_ends_with_its_last_handle() {
    let (a, z) = (client(&["127.0.0.1"]), server(&["127.0.0.1"]));
    let (from, to) = connected(&a, &z).await;
    let port = z.udp_port();
    drop(z);
    from.send(on(0), "works on".into()).await.unwrap();
    assert!(within("the association goes on", to.recv()).await.unwrap().is_some());
    from.shutdown().await.unwrap();
    drop(to);
    let start = tokio::time::Instant::now();
    while Endpoint::bind(EndpointOptions { udp_port: port, ..options(&["127.0.0.1"], true) })
        .is_err()
    {
        assert!(start.elapsed() < LONG, "the socket is closed in the end");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn streams_begin_again_and_more_are_added_while_the_association_is_open() {
    let (a, z) = (client(&["127.0.0.3"]), server(&["127.0.0.1"]));
    let (from, to) = connected(&a, &z).await;
    assert!(from.reconfigures() && to.reconfigures(), "the profile fast has the extension");
    let (mut asked, mut told) = (from.events(), to.events());
    from.send(on(1), Bytes::from_static(b"before")).await.unwrap();
    from.reset_streams(&[StreamId(1)]).unwrap();
    from.send(on(1), Bytes::from_static(b"after")).await.unwrap();
    for expected in [b"before".as_slice(), b"after"] {
        let message = within("a message", to.recv()).await.unwrap().unwrap();
        assert_eq!((message.payload.to_vec().as_slice(), message.ssn.0), (expected, 0));
    }
    let streams = vec![StreamId(1)];
    let outcome = RequestOutcome::Performed;
    let is_answer = |request| Event::StreamsReconfigured { request, outcome, by_peer: false };
    let answer = is_answer(StreamRequest::ResetOutgoing(streams.clone()));
    within("the answer", event(&mut asked, answer)).await;
    within("the reset", event(&mut told, Event::IncomingStreamsReset { streams })).await;

    let before = from.streams().unwrap();
    from.add_streams(3, 0).unwrap();
    within("the answer", event(&mut asked, is_answer(StreamRequest::AddOutgoing(3)))).await;
    assert_eq!(from.streams(), Some((before.0 + 3, before.1)));
    from.send(on(before.0 + 2), Bytes::from_static(b"new")).await.unwrap();
    let message = within("a message", to.recv()).await.unwrap().unwrap();
    assert_eq!(message.stream, StreamId(before.0 + 2));
    from.shutdown().await.unwrap();
    assert_eq!(from.reset_streams(&[]), Err(ReconfigureError::NotOpen));
}

/// Waits until an event comes.
async fn event(events: &mut EventStream, expected: Event) {
    while let Some(event) = events.next().await {
        if event == expected {
            return;
        }
    }
    panic!("{expected:?} did not come");
}
