//! Two ends of a proxy over loopback: ends, resets, slow readers, and peers that break the rules.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use manypath::{
    Association, BindTo, Config, ConnectTarget, Endpoint, EndpointOptions, Security, SendOptions,
    StreamId,
};
use manypath_proxy::frame::{
    Cause, Datagram, Frame, HostPort, PPID_DATA, PPID_DATAGRAM, PPID_FRAME, Target,
};
use manypath_proxy::rules::Rules;
use manypath_proxy::window::{WINDOW_INITIAL, WINDOW_MAX};
use manypath_proxy::{FORWARDS_MAX, Options, Remote, Session, SessionEnd, Side, socks};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(20);

/// Two associated endpoints; those that keep them alive.
async fn associated(streams: u16) -> (Association, Association, [Endpoint; 2]) {
    let mut config = Config::default();
    (config.outbound_streams, config.inbound_streams) = (streams, streams);
    let config = Arc::new(config);
    let bind = || vec![BindTo::Address([127, 0, 0, 1].into())];
    let options = EndpointOptions {
        bind: bind(),
        config: config.clone(),
        udp_port: 0,
        ..EndpointOptions::server(Security::Plain)
    };
    let far = Endpoint::bind(options).unwrap();
    let client = EndpointOptions::client(Security::Plain);
    let near = Endpoint::bind(EndpointOptions { bind: bind(), config, ..client }).unwrap();
    let target = ConnectTarget::new(far.local_addresses());
    let (out, incoming) = tokio::join!(near.connect(target), far.accept());
    (out.unwrap(), incoming.unwrap(), [near, far])
}

/// A far side, and the association of whoever is near.
struct Far {
    session: Arc<Session>,
    run: JoinHandle<SessionEnd>,
    association: Association,
    _endpoints: [Endpoint; 2],
}

async fn far(options: Options) -> Far {
    let (association, incoming, endpoints) = associated(64).await;
    let session = Session::new(incoming, Side::Accepting, options, Vec::new(), 64);
    let run = tokio::spawn({
        let session = session.clone();
        async move { session.run().await }
    });
    Far { session, run, association, _endpoints: endpoints }
}

/// Both sides, as they should be.
struct Both {
    near: Arc<Session>,
    far: Far,
}

async fn both(options: Options, remotes: Vec<Remote>) -> Both {
    let far = far(options).await;
    let association = far.association.clone();
    let near = Session::new(association, Side::Connecting, Options::new(), remotes, 64);
    tokio::spawn({
        let near = near.clone();
        async move { near.run().await }
    });
    Both { near, far }
}

/// A connected pair of TCP sockets.
async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let connecting = TcpStream::connect(listener.local_addr().unwrap());
    let (connected, accepted) = tokio::join!(connecting, listener.accept());
    (connected.unwrap(), accepted.unwrap().0)
}

fn target(address: SocketAddr) -> Target {
    Target::Tcp(HostPort { host: address.ip().to_string(), port: address.port() })
}

impl Both {
    /// A program here and a server there, connected through the proxy.
    async fn connection(&self) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (program, here) = pair().await;
        let (near, target) = (self.near.clone(), target(listener.local_addr().unwrap()));
        tokio::spawn(async move { near.relay(target, here).await });
        let (server, _) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
        (program, server)
    }

    /// Waits until no connection is open on either side.
    async fn until_idle(&self) {
        let idle = async {
            while self.near.counters().open + self.far.session.counters().open > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, idle).await.expect("all connections are over on both sides");
    }
}

async fn read(tcp: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut data = vec![0; length];
    timeout(PATIENCE, tcp.read_exact(&mut data)).await.expect("data in time").unwrap();
    data
}

/// The error that a reader sees.
async fn error(tcp: &mut TcpStream) -> std::io::ErrorKind {
    let mut data = [0; 1000];
    loop {
        match timeout(PATIENCE, tcp.read(&mut data)).await.expect("an end in time") {
            Ok(0) => panic!("an end in order"),
            Ok(_) => {}
            Err(e) => return e.kind(),
        }
    }
}

#[tokio::test]
async fn a_half_closed_connection_goes_on_in_the_other_direction() {
    let both = both(Options::new(), Vec::new()).await;
    let (mut program, mut server) = both.connection().await;
    program.write_all(b"question").await.unwrap();
    program.shutdown().await.unwrap();
    let mut heard = Vec::new();
    timeout(PATIENCE, server.read_to_end(&mut heard)).await.unwrap().unwrap();
    assert_eq!(heard, b"question");
    // More than any first window.
    let answer = vec![7; 3_000_000];
    let (written, got) = tokio::join!(
        async {
            server.write_all(&answer).await.unwrap();
            drop(server);
        },
        read(&mut program, answer.len())
    );
    let () = written;
    assert_eq!(got, answer);
    assert_eq!(program.read(&mut [0; 1]).await.unwrap(), 0, "an end in order");
    drop(program);
    both.until_idle().await;
}

#[tokio::test]
async fn a_reset_on_one_side_is_a_reset_on_the_other() {
    let both = both(Options::new(), Vec::new()).await;
    let (mut program, server) = both.connection().await;
    manypath_proxy::reset(&server);
    drop(server);
    assert_eq!(error(&mut program).await, std::io::ErrorKind::ConnectionReset);
    let (program, mut server) = both.connection().await;
    manypath_proxy::reset(&program);
    drop(program);
    assert_eq!(error(&mut server).await, std::io::ErrorKind::ConnectionReset);
    both.until_idle().await;
}

#[tokio::test]
async fn a_reader_that_stops_holds_back_its_sender_and_nobody_else() {
    let both = both(Options::new(), Vec::new()).await;
    let (mut stopped, server) = both.connection().await;
    // As much as goes: until nothing went for a while.
    let mut sent = 0;
    let block = vec![1; 1 << 16];
    while let Ok(Ok(())) = timeout(Duration::from_millis(300), server.writable()).await {
        sent += server.try_write(&block).unwrap_or(0);
        assert!(sent < 200 << 20, "the sender is held back");
    }
    for _ in 0..3 {
        let (mut program, mut server) = both.connection().await;
        server.write_all(b"quick").await.unwrap();
        assert_eq!(read(&mut program, 5).await, b"quick");
    }
    let got = read(&mut stopped, sent).await;
    assert!(got.iter().all(|byte| *byte == 1));
    assert!(sent as u64 > u64::from(WINDOW_INITIAL) && sent < WINDOW_MAX as usize * 8);
}

#[tokio::test]
async fn a_target_that_refuses_or_is_forbidden_is_told_with_its_cause() {
    let rules = Rules { deny: vec!["*:9".parse().unwrap()], ..Rules::default() };
    let both = both(Options { rules, ..Options::new() }, Vec::new()).await;
    for (port, cause) in [(1, Cause::ConnectionRefused), (9, Cause::NotAllowed)] {
        let to = target(SocketAddr::from(([127, 0, 0, 1], port)));
        assert_eq!(both.near.open(to.clone()).await.err().unwrap().cause, cause);
        // A forward has begun by then: its program sees a reset.
        let (mut program, here) = pair().await;
        assert_eq!(both.near.relay(to, here).await.unwrap_err().cause, cause);
        assert_eq!(error(&mut program).await, std::io::ErrorKind::ConnectionReset);
    }
    let unknown = Target::Tcp(HostPort { host: "no-such-host.invalid".to_owned(), port: 80 });
    assert_eq!(both.near.open(unknown).await.err().unwrap().cause, Cause::HostUnreachable);
    both.until_idle().await;
}

#[tokio::test]
async fn streams_are_used_again_and_none_is_lost() {
    let both = both(Options::new(), Vec::new()).await;
    // 64 streams: 32 connections at a time.
    for round in 0..200_u32 {
        let (mut program, mut server) = both.connection().await;
        server.write_all(&round.to_be_bytes()).await.unwrap();
        assert_eq!(read(&mut program, 4).await, round.to_be_bytes());
        if round % 3 == 0 {
            manypath_proxy::reset(&program);
        }
    }
    both.until_idle().await;
    let mut open = Vec::new();
    for _ in 0..32 {
        open.push(both.connection().await);
    }
    let (_program, here) = pair().await;
    let to = target(SocketAddr::from(([127, 0, 0, 1], 1)));
    assert_eq!(both.near.relay(to, here).await.unwrap_err().cause, Cause::Busy);
}

#[tokio::test]
async fn the_end_of_the_association_resets_all_connections() {
    let both = both(Options::new(), Vec::new()).await;
    let (mut program, mut server) = both.connection().await;
    both.far.association.abort("gone");
    assert_eq!(error(&mut program).await, std::io::ErrorKind::ConnectionReset);
    assert_eq!(error(&mut server).await, std::io::ErrorKind::ConnectionReset);
    let (_program, here) = pair().await;
    let to = target(SocketAddr::from(([127, 0, 0, 1], 1)));
    assert!(both.near.relay(to, here).await.is_err());
}

#[tokio::test]
async fn remote_forwards_lead_back_where_they_are_allowed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = listener.local_addr().unwrap();
    let to = HostPort { host: to.ip().to_string(), port: to.port() };
    let at = HostPort { host: "127.0.0.1".to_owned(), port: 0 };
    let remote = || vec![Remote { at: at.clone(), to: to.clone() }];

    let careful = both(Options::new(), remote()).await;
    assert_eq!(careful.near.listen(0).await.unwrap_err().cause, Cause::NotAllowed);

    let options = Options { allow_remote_forwards: true, ..Options::new() };
    let both = both(options, remote()).await;
    let port = both.near.listen(0).await.unwrap();
    let mut program = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (mut server, _) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    program.write_all(b"back").await.unwrap();
    assert_eq!(read(&mut server, 4).await, b"back");
}

/// Sends the messages of a hostile peer; the far side must end the association for them.
async fn violates(messages: Vec<(u16, u32, Bytes)>) {
    let shown = format!("{messages:?}");
    let far = far(Options::new()).await;
    for (stream, ppid, payload) in messages {
        let unordered = ppid == PPID_DATAGRAM;
        let options =
            SendOptions { stream: StreamId(stream), ppid, unordered, ..SendOptions::default() };
        // An error means that it has ended already.
        let _ = far.association.send(options, payload).await;
    }
    let end = timeout(PATIENCE, far.run).await.expect(&shown).unwrap();
    assert!(matches!(end, SessionEnd::Violation(_)), "{shown}: {end}");
}

#[tokio::test]
async fn peers_that_break_the_rules_lose_the_association() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let frame = |stream, frame: Frame| (stream, PPID_FRAME, frame.encode());
    let open = |stream| frame(stream, Frame::Open(target(listener.local_addr().unwrap())));
    let at = || HostPort { host: "127.0.0.1".to_owned(), port: 0 };
    let data = |stream, length| (stream, PPID_DATA, Bytes::from(vec![0; length]));
    for messages in [
        vec![(1, PPID_FRAME, Bytes::from_static(b"\xff garbage"))],
        vec![(1, PPID_FRAME, Bytes::from(vec![16; 5000]))],
        vec![(1, 7, Bytes::from_static(b"another protocol"))],
        vec![(1, PPID_DATAGRAM, Bytes::from_static(b"\x00"))],
        vec![data(1, 10)],
        vec![open(2)],
        vec![open(1), open(1)],
        vec![frame(1, Frame::Open(Target::Forwarded(0)))],
        vec![frame(0, Frame::Listening { id: 0, port: 1 })],
        vec![frame(0, Frame::Listen { id: FORWARDS_MAX, at: at() })],
        vec![
            frame(0, Frame::Listen { id: 1, at: at() }),
            frame(0, Frame::Listen { id: 1, at: at() }),
        ],
        vec![open(1), frame(1, Frame::Credit(u32::MAX))],
        vec![open(1), frame(1, Frame::Accepted)],
        vec![open(1), frame(1, Frame::Close)],
        vec![open(1), frame(1, Frame::Fin), data(1, 1)],
    ] {
        violates(messages).await;
    }
    // Nobody reads at the target, and nobody has granted this much.
    let flood = std::iter::once(open(1)).chain((0..2000).map(|_| data(1, 60_000)));
    violates(flood.collect()).await;
}

#[tokio::test]
async fn a_peer_that_opens_more_than_it_may_is_refused_and_the_others_go_on() {
    let options = Options { connections_max: 5, ..Options::new() };
    let both = both(options, Vec::new()).await;
    let mut open = Vec::new();
    for _ in 0..5 {
        open.push(both.connection().await);
    }
    for _ in 0..20 {
        let to = target(SocketAddr::from(([127, 0, 0, 1], 1)));
        assert_eq!(both.near.open(to).await.err().unwrap().cause, Cause::Busy);
    }
    for (program, server) in &mut open {
        server.write_all(b"still").await.unwrap();
        assert_eq!(read(program, 5).await, b"still");
    }
}

#[tokio::test]
async fn datagrams_go_there_and_back_within_the_rules() {
    let server = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = server.local_addr().unwrap().port();
    let rules = Rules { deny: vec!["*:9".parse().unwrap()], ..Rules::default() };
    let both = both(Options { rules, ..Options::new() }, Vec::new()).await;
    let opened = both.near.open(Target::Udp(both.near.udp_number())).await.ok().unwrap();
    let to = |port| HostPort { host: "127.0.0.1".to_owned(), port };
    opened.send_datagram(to(9), Bytes::from_static(b"forbidden")).await.unwrap();
    opened.send_datagram(to(port), Bytes::from_static(b"ping")).await.unwrap();
    let mut buffer = [0; 100];
    let (length, from) = timeout(PATIENCE, server.recv_from(&mut buffer)).await.unwrap().unwrap();
    assert_eq!(&buffer[..length], b"ping");
    server.send_to(b"pong", from).await.unwrap();
    let datagram = timeout(PATIENCE, opened.recv_datagram()).await.unwrap().unwrap();
    assert_eq!((datagram.address.port, &datagram.data[..]), (port, &b"pong"[..]));
    opened.end().await;
    both.until_idle().await;
}

#[tokio::test]
async fn only_hosts_that_a_client_sent_to_may_send_to_it() {
    let server = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let stranger = tokio::net::UdpSocket::bind("127.0.0.2:0").await.unwrap();
    let to = |port| HostPort { host: "127.0.0.1".to_owned(), port };
    let both = both(Options::new(), Vec::new()).await;
    let opened = both.near.open(Target::Udp(both.near.udp_number())).await.ok().unwrap();
    let port = server.local_addr().unwrap().port();
    opened.send_datagram(to(port), Bytes::from_static(b"ping")).await.unwrap();
    let mut buffer = [0; 100];
    let (_, from) = timeout(PATIENCE, server.recv_from(&mut buffer)).await.unwrap().unwrap();
    stranger.send_to(b"stranger", from).await.unwrap();
    server.send_to(b"pong", from).await.unwrap();
    let datagram = timeout(PATIENCE, opened.recv_datagram()).await.unwrap().unwrap();
    assert_eq!(&datagram.data[..], b"pong");
    // From then on, because the client spoke to it.
    let known =
        HostPort { host: "127.0.0.2".to_owned(), port: stranger.local_addr().unwrap().port() };
    opened.send_datagram(known, Bytes::from_static(b"ping")).await.unwrap();
    let _ = timeout(PATIENCE, stranger.recv_from(&mut buffer)).await.unwrap().unwrap();
    stranger.send_to(b"no stranger", from).await.unwrap();
    let datagram = timeout(PATIENCE, opened.recv_datagram()).await.unwrap().unwrap();
    assert_eq!(&datagram.data[..], b"no stranger");
    // An answer from loopback is from the host that an unspecified address means.
    let anywhere = HostPort { host: "0.0.0.0".to_owned(), port };
    let other = both.near.open(Target::Udp(both.near.udp_number())).await.ok().unwrap();
    other.send_datagram(anywhere, Bytes::from_static(b"ping")).await.unwrap();
    let (_, from) = timeout(PATIENCE, server.recv_from(&mut buffer)).await.unwrap().unwrap();
    server.send_to(b"pong", from).await.unwrap();
    let datagram = timeout(PATIENCE, other.recv_datagram()).await.unwrap().unwrap();
    assert_eq!(&datagram.data[..], b"pong");
}

/// Asks for an association of datagrams as a program at this address and port: its connection,
/// and where datagrams go.
async fn associate(near: &Arc<Session>, ip: [u8; 4], port: u16) -> (TcpStream, SocketAddr) {
    let (mut program, here) = pair().await;
    let near = near.clone();
    tokio::spawn(async move { socks::serve(&near, here).await });
    let request = [&[5, 1, 0, 5, 3, 0, 1][..], &ip, &port.to_be_bytes()].concat();
    program.write_all(&request).await.unwrap();
    let reply = read(&mut program, 2 + 10).await;
    assert_eq!(&reply[..6], [5, 0, 5, 0, 0, 1]);
    let at = [reply[6], reply[7], reply[8], reply[9]];
    (program, SocketAddr::from((at, u16::from_be_bytes([reply[10], reply[11]]))))
}

#[tokio::test]
async fn datagrams_are_taken_only_from_the_port_that_a_program_named() {
    let both = both(Options::new(), Vec::new()).await;
    let server = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = server.local_addr().unwrap().port();
    let datagram =
        |data: &[u8]| [&[0, 0, 0, 1, 127, 0, 0, 1][..], &port.to_be_bytes(), data].concat();
    // An address that is not the program's, as behind a NAT, names nothing; nor does port 0.
    for (ip, is_named) in [
        ([127, 0, 0, 1], true),
        ([0, 0, 0, 0], true),
        ([10, 0, 0, 1], false),
        ([0, 0, 0, 0], false),
    ] {
        let program = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let other = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let elsewhere = tokio::net::UdpSocket::bind("127.0.0.2:0").await.unwrap();
        let port_of = |socket: &tokio::net::UdpSocket| socket.local_addr().unwrap().port();
        let named = match (is_named, ip) {
            (true, _) => port_of(&program),
            (false, [10, ..]) => port_of(&other),
            (false, _) => 0,
        };
        let (_connection, at) = associate(&both.near, ip, named).await;
        elsewhere.send_to(&datagram(b"elsewhere"), at).await.unwrap();
        let (first, second) = if is_named { (&other, &program) } else { (&program, &other) };
        first.send_to(&datagram(b"first"), at).await.unwrap();
        second.send_to(&datagram(b"second"), at).await.unwrap();
        let mut buffer = [0; 100];
        let came = timeout(PATIENCE, server.recv_from(&mut buffer)).await.unwrap().unwrap();
        let expected = if is_named { &b"second"[..] } else { b"first" };
        assert_eq!(&buffer[..came.0], expected, "{ip:?}:{named}");
        server.send_to(b"answer", came.1).await.unwrap();
        let length = timeout(PATIENCE, program.recv(&mut buffer)).await.unwrap().unwrap();
        assert!(buffer[..length].ends_with(b"answer"));
        let more = timeout(Duration::from_millis(100), server.recv_from(&mut buffer)).await;
        assert!(more.is_err(), "{ip:?}:{named}: another program's datagram was passed on");
    }
}

/// Texts that are no host, as one odd program may send them.
const NO_HOSTS: [&str; 6] = ["", "a\0b", "a b", "a\nb", "a\u{200e}b", "\u{e9}.example"];

#[tokio::test]
async fn a_host_that_is_none_is_refused_at_the_door() {
    let both = both(Options::new(), Vec::new()).await;
    let (mut program, mut server) = both.connection().await;
    let long = "a".repeat(254);
    for host in NO_HOSTS.into_iter().chain([long.as_str()]) {
        let to = || Target::Tcp(HostPort { host: host.to_owned(), port: 80 });
        let why = both.near.open(to()).await.err().unwrap();
        assert_eq!(why.cause, Cause::HostUnreachable, "{host:?}");
        let (_program, here) = pair().await;
        let why = both.near.relay(to(), here).await.unwrap_err();
        assert_eq!(why.cause, Cause::HostUnreachable, "{host:?}");
    }
    // Nothing reached the far side, and nobody else notices.
    assert_eq!(both.far.session.counters().opened, 1);
    server.write_all(b"still").await.unwrap();
    assert_eq!(read(&mut program, 5).await, b"still");
}

#[tokio::test]
async fn a_peer_that_passes_such_a_host_on_loses_that_connection_only() {
    let options = Options { allow_remote_forwards: true, ..Options::new() };
    let far = far(options).await;
    let send = async |stream, ppid, payload| {
        let options = SendOptions {
            stream: StreamId(stream),
            ppid,
            unordered: ppid == PPID_DATAGRAM,
            ..SendOptions::default()
        };
        far.association.send(options, payload).await.expect("the association goes on");
    };
    let next = async || {
        let message = timeout(PATIENCE, far.association.recv()).await.unwrap();
        let message = message.expect("the association goes on").expect("a message");
        (message.stream.0, Frame::decode(&message.payload.to_vec()).unwrap())
    };
    let none = |host: &str| HostPort { host: host.to_owned(), port: 80 };
    let mut stream = 1;
    for host in NO_HOSTS {
        send(stream, PPID_FRAME, Frame::Open(Target::Tcp(none(host))).encode()).await;
        let (on, Frame::Refused(why)) = next().await else { panic!("{host:?} is not refused") };
        assert_eq!((on, why.cause), (stream, Cause::HostUnreachable), "{host:?}");
        stream += 2;
    }
    send(0, PPID_FRAME, Frame::Listen { id: 0, at: none("a b") }.encode()).await;
    let (0, Frame::NotListening { why, .. }) = next().await else { panic!("it listens") };
    assert_eq!(why.cause, Cause::HostUnreachable);
    // Datagrams to such a host are lost, and others go on.
    let server = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    send(stream, PPID_FRAME, Frame::Open(Target::Udp(5)).encode()).await;
    assert_eq!(next().await, (stream, Frame::Accepted));
    let datagram = |address| Datagram { number: 5, address, data: Bytes::from_static(b"x") };
    send(stream, PPID_DATAGRAM, datagram(none("a\0b")).encode()).await;
    let port = server.local_addr().unwrap().port();
    let to = HostPort { host: "127.0.0.1".to_owned(), port };
    send(stream, PPID_DATAGRAM, datagram(to).encode()).await;
    let mut buffer = [0; 10];
    let (length, _) = timeout(PATIENCE, server.recv_from(&mut buffer)).await.unwrap().unwrap();
    assert_eq!(&buffer[..length], b"x");
}

#[tokio::test]
async fn programs_that_name_no_host_get_a_reply_of_socks_and_others_go_on() {
    let both = both(Options::new(), Vec::new()).await;
    let (mut program, mut server) = both.connection().await;
    for host in NO_HOSTS {
        let (mut odd, here) = pair().await;
        let near = both.near.clone();
        let served = tokio::spawn(async move { socks::serve(&near, here).await });
        let head = [5, 1, 0, 5, 1, 0, 3, host.len() as u8];
        let request = [&head[..], host.as_bytes(), &[0, 80]].concat();
        odd.write_all(&request).await.unwrap();
        // No authentication, then "host unreachable" (RFC 1928 §6).
        let reply = read(&mut odd, 2 + 10).await;
        assert_eq!(&reply[..4], [5, 0, 5, 4], "{host:?}");
        assert!(timeout(PATIENCE, served).await.unwrap().unwrap().is_err(), "{host:?}");
    }
    server.write_all(b"still").await.unwrap();
    assert_eq!(read(&mut program, 5).await, b"still");
}

#[tokio::test]
async fn datagrams_and_connections_to_unspecified_addresses_are_judged_as_loopback() {
    let server = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = server.local_addr().unwrap().port();
    let rules = Rules { deny: vec!["127.0.0.0/8:*".parse().unwrap()], ..Rules::default() };
    let private = Rules { deny_private: true, ..Rules::default() };
    for rules in [rules, private] {
        let both = both(Options { rules, ..Options::new() }, Vec::new()).await;
        let opened = both.near.open(Target::Udp(both.near.udp_number())).await.ok().unwrap();
        for host in ["0.0.0.0", "::", "::ffff:0.0.0.0", "::ffff:127.0.0.1", "127.0.0.1"] {
            let to = HostPort { host: host.to_owned(), port };
            opened.send_datagram(to.clone(), Bytes::from_static(b"x")).await.unwrap();
            let why = both.near.open(Target::Tcp(to)).await.err().expect(host);
            assert_eq!(why.cause, Cause::NotAllowed, "{host}: {why}");
        }
        let mut buffer = [0; 10];
        let came = timeout(Duration::from_millis(300), server.recv_from(&mut buffer)).await;
        assert!(came.is_err(), "a datagram reached loopback");
    }
}
