//! Opening an association: what is refused, and parameters and chunks that one side does not know
//! (RFC 9260 §3.2, §3.2.1), put into the packets on their way.

use std::net::SocketAddr;
use std::time::Duration;

use manypath::{AssocClosed, Association, ConnectError, ConnectTarget, Endpoint, EndpointOptions};

use crate::harness::{
    Case, Change, Chunk, Opens, PEER_SCTP_PORT, Pattern, Peer, Report, Rewriter, Seen, Setting,
    Verifier, free_udp_port, interop, nothing, pause, soon,
};

const DATA: u8 = 0;
const INIT: u8 = 1;
const INIT_ACK: u8 = 2;
const ERROR: u8 = 9;
/// A chunk type that nobody knows, to be skipped and reported.
const UNKNOWN_CHUNK: u8 = 0xFE;

/// Parameter of INIT ACK that carries what was not recognized.
const UNRECOGNIZED_PARAMETER: u16 = 8;
/// Error causes of ERROR.
const CAUSE_UNRECOGNIZED_CHUNK: u16 = 6;
const CAUSE_UNRECOGNIZED_PARAMETERS: u16 = 8;

/// Bytes in front of the parameters of INIT and INIT ACK.
const INIT_FIXED: usize = 16;

/// Types of parameters that nobody knows, by what their upper bits demand.
const SKIP: u16 = 0x9F01;
const SKIP_AND_REPORT: u16 = 0xDF02;
const STOP_AND_REPORT: u16 = 0x5F03;
const STOP: u16 = 0x1F04;

const LOOPBACK: [std::net::IpAddr; 1] = [std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST)];

/// Puts parameters into the chunks of type `kind`; none is a multiple of four bytes long.
fn insert(kind: u8, parameters: &'static [u16]) -> Change {
    Box::new(move |chunks| {
        for chunk in chunks.iter_mut().filter(|chunk| chunk.kind == kind) {
            for &parameter in parameters {
                chunk.push_parameter(parameter, b"opaque");
            }
        }
    })
}

/// The types of the parameters that the INIT ACK among `chunks` reports as unrecognized.
fn reported_in_init_ack(chunks: &[Chunk]) -> Vec<u16> {
    let init_ack = chunks.iter().find(|chunk| chunk.kind == INIT_ACK).expect("an INIT ACK");
    let parameters = init_ack.parameters(INIT_FIXED).into_iter();
    let reports = parameters.filter(|(kind, _)| *kind == UNRECOGNIZED_PARAMETER);
    reports.map(|(_, value)| u16::from_be_bytes([value[0], value[1]])).collect()
}

/// The values of this cause in the ERROR chunks.
fn causes(chunks: &[Chunk], cause: u16) -> Vec<Vec<u8>> {
    let errors = chunks.iter().filter(|chunk| chunk.kind == ERROR);
    let all = errors.flat_map(|error| error.parameters(0));
    all.filter(|(code, _)| *code == cause).map(|(_, value)| value).collect()
}

/// Echoes some messages, shuts down, and returns what passed by.
async fn exchange(association: Association, peer: Peer, rewriter: Rewriter) -> (Seen, Report) {
    Pattern::new(&[1000, 5000], 2).send_to_echo(&association, 60_000).await;
    soon("the shutdown", association.shutdown()).await.expect("everything is delivered");
    let report = soon("its report", peer.report()).await;
    report.assert_ok("peer-shutdown");
    (rewriter.seen(), report)
}

/// An endpoint, and a rewriter between it and the UDP port `peer`.
async fn endpoint_and_rewriter(
    accept: bool,
    peer: u16,
    changes: (Change, Change),
    delay: Duration,
) -> (Endpoint, Rewriter) {
    let opens = if accept { Opens::Usrsctp } else { Opens::Manypath };
    let options = Case::new(opens, Setting::Fast, "").endpoint_options();
    let endpoint = Endpoint::bind(options).expect("an endpoint");
    let manypath = (endpoint.udp_port(), changes.1);
    let rewriter = Rewriter::start((peer, changes.0), manypath, delay).await;
    (endpoint, rewriter)
}

/// manypath connects to an echoing usrsctp through a rewriter.
async fn manypath_connects(from_usrsctp: Change, from_manypath: Change) -> (Seen, Report) {
    let peer = Peer::listen(&[], &LOOPBACK, "echo").await;
    let changes = (from_usrsctp, from_manypath);
    let (endpoint, rewriter) =
        endpoint_and_rewriter(false, peer.udp_port, changes, Duration::ZERO).await;
    let attempt = endpoint.connect(target(rewriter.manypath_side, PEER_SCTP_PORT));
    let association = soon("manypath connects", attempt).await.expect("connected");
    exchange(association, peer, rewriter).await
}

/// An echoing usrsctp connects to manypath through a rewriter.
async fn usrsctp_connects(from_usrsctp: Change, from_manypath: Change) -> (Seen, Report) {
    let port = free_udp_port();
    let changes = (from_usrsctp, from_manypath);
    let (endpoint, rewriter) = endpoint_and_rewriter(true, port, changes, Duration::ZERO).await;
    let to = (&LOOPBACK[..], rewriter.usrsctp_side);
    let peer = Peer::connect_from(port, &[], &LOOPBACK, to, "echo").await;
    let association = soon("usrsctp connects", endpoint.accept()).await.expect("accepted");
    exchange(association, peer, rewriter).await
}

fn target(port: u16, sctp_port: u16) -> ConnectTarget {
    ConnectTarget { sctp_port, ..ConnectTarget::new([SocketAddr::new(LOOPBACK[0], port)]) }
}

#[test]
fn manypath_answers_an_init_with_unknown_parameters() {
    interop(async {
        let unknown = insert(INIT, &[SKIP, SKIP_AND_REPORT, STOP_AND_REPORT, SKIP_AND_REPORT]);
        let (seen, _) = usrsctp_connects(unknown, nothing()).await;
        // usrsctp's own INIT holds Forward-TSN-Supported, which the upper bits let us skip and
        // report.
        let reported = reported_in_init_ack(&seen.from_manypath);
        let ours = reported.into_iter().filter(|kind| kind & 0x0F00 == 0x0F00).collect::<Vec<_>>();
        assert_eq!(ours, [SKIP_AND_REPORT, STOP_AND_REPORT], "RFC 9260 §3.2.1: none after a stop");
    });
}

#[test]
fn manypath_stops_at_a_parameter_that_says_so_without_a_report() {
    interop(async {
        let unknown = insert(INIT, &[STOP, SKIP_AND_REPORT]);
        let (seen, _) = usrsctp_connects(unknown, nothing()).await;
        let reported = reported_in_init_ack(&seen.from_manypath);
        assert!(!reported.contains(&STOP) && !reported.contains(&SKIP_AND_REPORT), "{reported:x?}");
    });
}

#[test]
fn manypath_reports_unknown_parameters_of_an_init_ack() {
    interop(async {
        let unknown = insert(INIT_ACK, &[SKIP, SKIP_AND_REPORT]);
        let (seen, _) = manypath_connects(unknown, nothing()).await;
        let reported = causes(&seen.from_manypath, CAUSE_UNRECOGNIZED_PARAMETERS);
        let [report] = &reported[..] else { panic!("one cause in one ERROR: {reported:x?}") };
        let holds = |kind: u16| report.windows(2).any(|bytes| bytes == kind.to_be_bytes());
        assert!(holds(SKIP_AND_REPORT) && !holds(SKIP), "RFC 9260 §5.1 C: {report:x?}");
    });
}

#[test]
fn manypath_takes_reports_of_its_own_parameters() {
    interop(async {
        let unknown = insert(INIT, &[SKIP, SKIP_AND_REPORT, STOP_AND_REPORT]);
        let (seen, _) = manypath_connects(nothing(), unknown).await;
        let reported = reported_in_init_ack(&seen.from_usrsctp);
        assert_eq!(reported, [SKIP_AND_REPORT, STOP_AND_REPORT], "usrsctp does its part");
    });
}

#[test]
fn usrsctp_takes_an_init_ack_with_unknown_parameters() {
    interop(async {
        let unknown = insert(INIT_ACK, &[SKIP, SKIP_AND_REPORT]);
        let (seen, _) = usrsctp_connects(nothing(), unknown).await;
        let reported = causes(&seen.from_usrsctp, CAUSE_UNRECOGNIZED_PARAMETERS);
        assert!(!reported.is_empty(), "usrsctp does its part");
    });
}

/// Appends an unknown chunk to the first packet with DATA.
fn unknown_chunk_once() -> Change {
    let mut done = false;
    Box::new(move |chunks| {
        if !done && chunks.iter().any(|chunk| chunk.kind == DATA) {
            // A multiple of four bytes: usrsctp 0.9.5.0 forgets the padding of what it reports, and
            // then the rest of its packet cannot be told apart.
            chunks.push(Chunk { kind: UNKNOWN_CHUNK, flags: 0, value: b"unheard!".to_vec() });
            done = true;
        }
    })
}

#[test]
fn each_side_reports_the_unknown_chunk_of_the_other_and_goes_on() {
    interop(async {
        let (seen, report) = manypath_connects(unknown_chunk_once(), unknown_chunk_once()).await;
        for chunks in [&seen.from_manypath, &seen.from_usrsctp] {
            let reported = causes(chunks, CAUSE_UNRECOGNIZED_CHUNK);
            let [report] = &reported[..] else { panic!("one report: {reported:x?}") };
            assert_eq!(report[..4], [UNKNOWN_CHUNK, 0, 0, 12]);
        }
        let told = report.events("remote-error").into_iter();
        let told = told.filter(|error| error["cause"] == CAUSE_UNRECOGNIZED_CHUNK);
        assert_eq!(told.count(), 1, "usrsctp understood ours");
    });
}

#[test]
fn both_sides_open_at_once() {
    interop(async {
        let port = free_udp_port();
        // usrsctp is started and sends its INIT well before ours has arrived.
        let delay = Duration::from_millis(150);
        let (endpoint, rewriter) =
            endpoint_and_rewriter(false, port, (nothing(), nothing()), delay).await;
        let ours = endpoint.connect(target(rewriter.manypath_side, PEER_SCTP_PORT));
        let to = (&LOOPBACK[..], rewriter.usrsctp_side);
        let theirs = Peer::connect_from(port, &[], &LOOPBACK, to, "echo");
        let (association, peer) = soon("both connect", async { tokio::join!(ours, theirs) }).await;
        let (seen, report) = exchange(association.expect("connected"), peer, rewriter).await;
        let inits = |chunks: &[Chunk]| chunks.iter().filter(|chunk| chunk.kind == INIT).count();
        let both = inits(&seen.from_manypath) > 0 && inits(&seen.from_usrsctp) > 0;
        assert!(both, "the INITs crossed, RFC 9260 §5.2.1");
        assert_eq!(report.events("comm-up").len(), 1, "one association: {report:?}");
    });
}

#[test]
fn a_nat_in_front_of_whoever_opens_forgets_its_port() {
    interop(async {
        for usrsctp_opens in [true, false] {
            let task = "--rto-min-ms 50 --heartbeat-ms 200 echo";
            let port = free_udp_port();
            let (endpoint, rewriter) =
                endpoint_and_rewriter(usrsctp_opens, port, (nothing(), nothing()), Duration::ZERO)
                    .await;
            let (association, peer) = if usrsctp_opens {
                let to = (&LOOPBACK[..], rewriter.usrsctp_side);
                let peer = Peer::connect_from(port, &[], &LOOPBACK, to, task).await;
                (soon("accepted", endpoint.accept()).await.expect("accepted"), peer)
            } else {
                let peer = Peer::listen_on(port, &[], &LOOPBACK, task).await;
                let attempt = endpoint.connect(target(rewriter.manypath_side, PEER_SCTP_PORT));
                (soon("connected", attempt).await.expect("connected"), peer)
            };
            let mut verifier = Verifier::new(0);
            let pattern = Pattern::new(&[1000], 2);
            let sending = async {
                for (n, (options, payload)) in pattern.messages(400_000).enumerate() {
                    if n == 100 {
                        rewriter.rebind(!usrsctp_opens).await;
                    }
                    association.send(options, payload).await.expect("queued");
                    pause(2).await;
                }
            };
            soon("all comes back", async {
                tokio::join!(sending, verifier.receive(&association, 400_000))
            })
            .await;
            soon("the shutdown", association.shutdown()).await.expect("everything is delivered");
            soon("its report", peer.report()).await.assert_ok("peer-shutdown");
        }
    });
}

#[test]
fn usrsctp_refuses_an_sctp_port_that_nobody_listens_on() {
    interop(async {
        let case = Case::new(Opens::Manypath, Setting::Plain, "");
        let endpoint = Endpoint::bind(case.endpoint_options()).expect("an endpoint");
        let peer = Peer::listen(&[], &LOOPBACK, "receive").await;
        let attempt = endpoint.connect(target(peer.udp_port, PEER_SCTP_PORT + 1));
        let refused = soon("an answer", attempt).await.expect_err("refused");
        let aborted = AssocClosed::PeerAborted { cause: 0, reason: Vec::new() };
        assert_eq!(refused, ConnectError::Failed(aborted), "RFC 9260 §8.4 (3)");
        peer.kill().await;
    });
}

#[test]
fn manypath_refuses_if_it_does_not_accept() {
    interop(async {
        let case = Case::new(Opens::Manypath, Setting::Plain, "");
        let endpoint = Endpoint::bind(EndpointOptions { accept: false, ..case.endpoint_options() });
        let endpoint = endpoint.expect("an endpoint");
        let to = (&LOOPBACK[..], endpoint.udp_port());
        let peer = Peer::connect_from(free_udp_port(), &[], &LOOPBACK, to, "receive").await;
        let report = soon("usrsctp gives up at once", peer.report()).await;
        assert_eq!((report.text("closed_by"), report.number("bytes")), ("peer-abort", 0));
    });
}
