//! Data in both directions, whoever opens the association.

use std::net::UdpSocket;

use manypath::{AssocClosed, StreamId};

use crate::harness::{Case, Opens, Pattern, Running, Setting, Verifier, interop, say};

/// From less than the header of a message to the longest that usrsctp_peer takes.
const SIZES: &[usize] = &[1, 8, 100, 1444, 30_000, 1_048_576];
const SIZE_LIST: &str = "--messages 1,8,100,1444,30000,1048576";

/// manypath sends, and shuts down when all is queued.
async fn manypath_sends(opens: Opens, setting: Setting) {
    let Running { association, peer, endpoint: _endpoint, .. } =
        Case::new(opens, setting, "receive").start().await;
    let pattern = Pattern::new(SIZES, 7);
    let sent = pattern.send(&association, 6_000_000).await.expect("sent");
    association.shutdown().await.expect("everything is delivered");
    let report = peer.report().await;
    report.assert_ok("peer-shutdown");
    assert_eq!(report.number("bytes_received"), sent);
}

/// usrsctp sends, and shuts down when all is queued.
async fn usrsctp_sends(opens: Opens, setting: Setting) {
    let task = format!("{SIZE_LIST} --streams 7 send 6000000");
    manypath_receives(Case::new(opens, setting, &task).start().await).await;
}

#[test]
fn manypath_connects_and_sends() {
    interop(manypath_sends(Opens::Manypath, Setting::Fast));
}

#[test]
fn manypath_connects_and_sends_by_the_rfc() {
    interop(manypath_sends(Opens::Manypath, Setting::Plain));
}

#[test]
fn usrsctp_connects_and_manypath_sends() {
    interop(manypath_sends(Opens::Usrsctp, Setting::Fast));
}

#[test]
fn usrsctp_connects_and_manypath_sends_by_the_rfc() {
    interop(manypath_sends(Opens::Usrsctp, Setting::Plain));
}

#[test]
fn manypath_connects_and_usrsctp_sends() {
    interop(usrsctp_sends(Opens::Manypath, Setting::Fast));
}

#[test]
fn manypath_connects_and_usrsctp_sends_by_the_rfc() {
    interop(usrsctp_sends(Opens::Manypath, Setting::Plain));
}

#[test]
fn usrsctp_connects_and_sends() {
    interop(usrsctp_sends(Opens::Usrsctp, Setting::Fast));
}

#[test]
fn usrsctp_connects_and_sends_by_the_rfc() {
    interop(usrsctp_sends(Opens::Usrsctp, Setting::Plain));
}

/// usrsctp sends until it shuts the association down.
pub async fn manypath_receives(running: Running) {
    let Running { association, peer, endpoint: _endpoint, relays: _relays } = running;
    let mut verifier = Verifier::new(0);
    verifier.receive_all(&association).await.expect("everything until the shutdown");
    let report = peer.report().await;
    report.assert_ok("local-shutdown");
    assert_eq!(verifier.bytes, report.number("bytes_sent"));
    assert_eq!(verifier.messages(), report.number("messages_sent"));
    assert_eq!(association.closed().await, AssocClosed::Shutdown);
}

/// manypath sends, usrsctp returns each message, manypath verifies.
pub async fn usrsctp_echoes(running: Running, pattern: Pattern, bytes: u64) {
    let Running { association, peer, endpoint: _endpoint, .. } = running;
    let total = pattern.send_to_echo(&association, bytes).await;
    association.shutdown().await.expect("everything is delivered");
    let report = peer.report().await;
    report.assert_ok("peer-shutdown");
    assert_eq!((report.number("bytes_received"), report.number("bytes_sent")), (total, total));
}

/// usrsctp sends with `--echoed`, manypath verifies and returns each message, usrsctp verifies.
pub async fn manypath_echoes(running: Running, seed: u8) {
    let Running { association, peer, endpoint: _endpoint, .. } = running;
    let mut verifier = Verifier::new(seed);
    while let Some(message) = association.recv().await.expect("more, or the shutdown") {
        if let Some((options, payload)) = verifier.take(message) {
            association.send(options, payload).await.expect("returned");
        }
    }
    verifier.assert_complete();
    let report = peer.report().await;
    report.assert_ok("local-shutdown");
    assert_eq!(report.number("bytes_received"), verifier.bytes);
}

#[test]
fn usrsctp_listens_and_echoes() {
    interop(async {
        let case = Case::new(Opens::Manypath, Setting::Fast, "--seed 9 echo");
        let pattern = Pattern { seed: 9, ..Pattern::new(SIZES, 16) };
        usrsctp_echoes(case.start().await, pattern, 6_000_000).await;
    });
}

#[test]
fn usrsctp_connects_and_echoes() {
    interop(async {
        let case = Case::new(Opens::Usrsctp, Setting::Plain, "echo");
        usrsctp_echoes(case.start().await, Pattern::new(SIZES, 16), 6_000_000).await;
    });
}

#[test]
fn usrsctp_connects_and_manypath_echoes() {
    interop(async {
        let task = format!("--seed 5 {SIZE_LIST} --streams 5 --echoed send 6000000");
        manypath_echoes(Case::new(Opens::Usrsctp, Setting::Fast, &task).start().await, 5).await;
    });
}

#[test]
fn usrsctp_listens_and_manypath_echoes() {
    interop(async {
        let task = format!("{SIZE_LIST} --streams 5 --echoed send 6000000");
        manypath_echoes(Case::new(Opens::Manypath, Setting::Plain, &task).start().await, 0).await;
    });
}

#[test]
fn unordered_messages_stay_unordered_and_whole() {
    interop(async {
        // No message is half as long: usrsctp would deliver it in part, and could come to a
        // standstill.
        let case = Case::new(Opens::Manypath, Setting::Fast, "--receive-buffer 1000000 echo");
        let pattern = Pattern { unordered: true, ..Pattern::new(&[5, 3000, 50, 70_000], 3) };
        usrsctp_echoes(case.start().await, pattern, 2_000_000).await;
        let task = "--receive-buffer 1000000 --unordered --messages 5,3000,50,70000 --streams 3 \
                    --echoed send 2000000";
        manypath_echoes(Case::new(Opens::Usrsctp, Setting::Plain, task).start().await, 0).await;
    });
}

#[test]
fn thousands_of_streams() {
    interop(async {
        let streams = [("outbound_streams", "2000"), ("inbound_streams", "3000")];
        let case = Case::new(Opens::Manypath, Setting::Fast, "--streams 5000 echo").set(&streams);
        usrsctp_echoes(case.start().await, Pattern::new(&[500], 2000), 2_000_000).await;
        let task = "--streams 3000 --messages 300 --echoed send 2000000";
        let case = Case::new(Opens::Usrsctp, Setting::Fast, task)
            .set(&[("outbound_streams", "3000"), ("inbound_streams", "3000")]);
        manypath_echoes(case.start().await, 0).await;
    });
}

#[test]
fn fewer_streams_than_asked_for_are_agreed_on() {
    interop(async {
        let case = Case::new(Opens::Manypath, Setting::Fast, "--streams 40 receive")
            .set(&[("outbound_streams", "30"), ("inbound_streams", "20")]);
        let Running { association, peer, endpoint: _endpoint, .. } = case.start().await;
        let on = |stream| manypath::SendOptions { stream: StreamId(stream), ..Default::default() };
        assert!(association.send(on(30), "x".into()).await.is_err(), "30 streams: 0 to 29");
        Pattern::new(&[1000], 30).send(&association, 100_000).await.expect("sent");
        association.shutdown().await.expect("delivered");
        let report = peer.report().await;
        report.assert_ok("peer-shutdown");
        let up = report.events("comm-up");
        assert_eq!((&up[0]["streams_out"], &up[0]["streams_in"]), (&20.into(), &30.into()));
    });
}

#[test]
fn ipv6() {
    if UdpSocket::bind("[::1]:0").is_err() {
        return say(format_args!("SKIPPED transfer::ipv6: this machine has no IPv6"));
    }
    interop(async {
        let case = Case::new(Opens::Manypath, Setting::Fast, "echo").addresses(&["::1"], &["::1"]);
        usrsctp_echoes(case.start().await, Pattern::new(&[2000], 4), 1_000_000).await;
        let case = Case::new(Opens::Usrsctp, Setting::Plain, "--echoed send 1000000")
            .addresses(&["::1"], &["::1"]);
        manypath_echoes(case.start().await, 0).await;
    });
}

#[test]
fn messages_longer_than_the_receive_buffer_come_in_parts() {
    interop(async {
        let task = "--messages 1048576,10,300000 --streams 3 send 5000000";
        let case =
            Case::new(Opens::Usrsctp, Setting::Fast, task).set(&[("receive_buffer", "100 kB")]);
        let Running { association, peer, endpoint: _endpoint, .. } = case.start().await;
        let mut verifier = Verifier::new(0);
        verifier.receive_all(&association).await.expect("everything");
        assert!(verifier.partial_deliveries > 0, "100 kB cannot hold 1 MiB");
        peer.report().await.assert_ok("local-shutdown");
    });
}

#[test]
fn nr_sack_is_not_used_unless_both_sides_offer_it() {
    interop(async {
        let case = Case::new(Opens::Manypath, Setting::Fast, "--nr-sack echo");
        usrsctp_echoes(case.start().await, Pattern::new(&[3000], 1), 500_000).await;
    });
}

#[test]
fn a_byte_stream_reads_what_usrsctp_sends_as_messages() {
    interop(async {
        let task = "--messages 100,5000,70000 send 1000000";
        let Running { association, peer, endpoint: _endpoint, .. } =
            Case::new(Opens::Manypath, Setting::Fast, task).start().await;
        let (_, mut reader) = association.stream(StreamId(0)).expect("not open yet");
        let mut got = Vec::new();
        while let Some(bytes) = reader.recv().await.expect("more, or the end") {
            got.extend_from_slice(&bytes);
        }
        let sent: Vec<u8> = Pattern::new(&[100, 5000, 70_000], 1)
            .messages(1_000_000)
            .flat_map(|(_, payload)| payload.to_vec())
            .collect();
        assert!(got == sent, "{} of {} bytes, or others", got.len(), sent.len());
        peer.report().await.assert_ok("local-shutdown");
    });
}

/// usrsctp sends in bursts, which arrive together.
#[test]
fn usrsctp_gets_a_sack_for_every_second_packet() {
    interop(async {
        let task = "--messages 1400 send 4800000";
        let case = Case::new(Opens::Usrsctp, Setting::Fast, task);
        let Running { association, peer, endpoint: _endpoint, .. } = case.start().await;
        let mut bytes = 0;
        while let Some(message) = association.recv().await.expect("a message") {
            bytes += message.payload.len();
            if bytes >= 4_800_000 {
                break;
            }
        }
        let counters = association.paths().remove(0).counters;
        let (sent, received) = (counters.packets_sent, counters.packets_received);
        assert!(sent * 100 >= received * 45, "{sent} SACKs for {received} packets");
        peer.report().await;
    });
}
