//! How associations end: shutdown and abort from each side, with data pending, and a peer that
//! dies.

use manypath::{AssocClosed, Endpoint, Event, PathState, SendError, SendOptions};

use crate::harness::{
    Case, Opens, Pattern, Peer, Running, Setting, Verifier, interop, pause, soon,
};

/// usrsctp_peer's reason, as `PeerAborted` gives it.
fn aborted_by_usrsctp() -> AssocClosed {
    AssocClosed::PeerAborted { cause: 12, reason: b"interop test".to_vec() }
}

#[test]
fn usrsctp_shuts_down_while_our_data_is_pending() {
    interop(async {
        for opens in [Opens::Manypath, Opens::Usrsctp] {
            let task = "--close shutdown receive 300000";
            let Running { association, peer, endpoint: _endpoint, .. } =
                Case::new(opens, Setting::Fast, task).start().await;
            // More is in the send buffer than usrsctp reads.
            let pattern = Pattern::new(&[1000, 40_000], 3);
            let sent = pattern.send_until_shutdown(&association, 3_000_000).await;
            assert!(sent > 300_000);
            assert_eq!(soon("the end", association.recv()).await, Ok(None), "RFC 9260 §9.2");
            let late = association.send(SendOptions::default(), "late".into()).await;
            let refused =
                matches!(late, Err(SendError::ShutDown | SendError::Closed(AssocClosed::Shutdown)));
            assert!(refused, "{late:?}");
            assert_eq!(soon("over", association.closed()).await, AssocClosed::Shutdown);
            let report = peer.report().await;
            report.assert_ok("local-shutdown");
            assert_eq!(report.number("bytes_received"), sent, "what was pending is delivered");
        }
    });
}

#[test]
fn manypath_shuts_down_while_data_of_usrsctp_is_pending() {
    interop(async {
        for opens in [Opens::Manypath, Opens::Usrsctp] {
            let task = "--expect-close shutdown send 1000000";
            let Running { association, peer, endpoint: _endpoint, .. } =
                Case::new(opens, Setting::Plain, task).start().await;
            Pattern::new(&[1000], 1).send(&association, 5000).await.expect("queued");
            let mut verifier = Verifier::new(0);
            // Without it, SHUTDOWN may arrive before usrsctp's first message is queued.
            verifier.receive(&association, 10_000).await;
            let (end, received) =
                tokio::join!(association.shutdown(), verifier.receive_all(&association));
            assert_eq!((end, received), (Ok(()), Ok(())));
            let report = peer.report().await;
            // usrsctp may send what it has queued, and takes no more: its sender gets an error,
            // which is what it then reports.
            assert_eq!(report.text("closed_by"), "peer-shutdown");
            assert_eq!(report.number("bytes_received"), 5000);
            assert_eq!(report.number("bytes_sent"), verifier.bytes);
        }
    });
}

#[test]
fn both_sides_shut_down_at_once() {
    interop(async {
        // SHUTDOWN takes 60 ms each way; ours leaves when usrsctp's is halfway.
        let case = Case::new(Opens::Manypath, Setting::Fast, "--close shutdown echo 20000")
            .relays(&["--delay 60"]);
        let Running { association, peer, relays, endpoint: _endpoint } = case.start().await;
        Pattern::new(&[1000], 1).send(&association, 20_000).await.expect("queued");
        Verifier::new(0).receive(&association, 20_000).await;
        pause(80).await;
        let end = soon("the end", association.shutdown()).await;
        assert_eq!(end, Ok(()), "RFC 9260 §9.2: both answer SHUTDOWN with SHUTDOWN ACK");
        peer.report().await.assert_ok("local-shutdown");
        drop(relays);
    });
}

#[test]
fn manypath_aborts() {
    interop(async {
        for opens in [Opens::Manypath, Opens::Usrsctp] {
            let task = "--expect-close abort receive";
            let Running { association, peer, endpoint: _endpoint, .. } =
                Case::new(opens, Setting::Fast, task).start().await;
            let sent = Pattern::new(&[1000], 1).send(&association, 300_000).await;
            soon("acknowledged", association.acknowledged()).await.expect("acknowledged");
            association.abort("enough");
            assert_eq!(association.closed().await, AssocClosed::Aborted);
            let report = soon("usrsctp knows", peer.report()).await;
            report.assert_ok("peer-abort");
            assert_eq!(Ok(report.number("bytes_received")), sent);
        }
    });
}

#[test]
fn manypath_aborts_in_the_middle_of_a_transfer_from_usrsctp() {
    interop(async {
        let task = "--expect-close abort --pace-ms 1 send 100000000";
        let Running { association, peer, endpoint: _endpoint, .. } =
            Case::new(Opens::Usrsctp, Setting::Plain, task).start().await;
        let mut verifier = Verifier::new(0);
        verifier.receive(&association, 100_000).await;
        association.abort("enough");
        let report = soon("usrsctp knows", peer.report()).await;
        assert_eq!(report.text("closed_by"), "peer-abort");
    });
}

#[test]
fn usrsctp_aborts_what_it_receives() {
    interop(async {
        for opens in [Opens::Manypath, Opens::Usrsctp] {
            let task = "--close abort receive 300000";
            let Running { association, peer, endpoint: _endpoint, .. } =
                Case::new(opens, Setting::Fast, task).start().await;
            // Not beyond what it reads, or its ABORT would wait behind data of ours.
            Pattern::new(&[1000], 1).send(&association, 300_000).await.expect("queued");
            assert_eq!(soon("the abort", association.closed()).await, aborted_by_usrsctp());
            let late = association.send(SendOptions::default(), "late".into()).await;
            assert_eq!(late, Err(SendError::Closed(aborted_by_usrsctp())));
            peer.report().await.assert_ok("local-abort");
        }
    });
}

#[test]
fn what_usrsctp_sent_before_its_abort_is_received() {
    interop(async {
        for opens in [Opens::Manypath, Opens::Usrsctp] {
            let task = "--close abort --messages 1000,20000 send 500000";
            let Running { association, peer, endpoint: _endpoint, .. } =
                Case::new(opens, Setting::Plain, task).start().await;
            let mut verifier = Verifier::new(0);
            let end = soon("the abort", verifier.receive_all(&association)).await;
            assert_eq!(end, Err(aborted_by_usrsctp()));
            let report = peer.report().await;
            report.assert_ok("local-abort");
            assert_eq!(verifier.bytes, report.number("bytes_sent"), "it was all acknowledged");
        }
    });
}

#[test]
fn a_killed_usrsctp_is_noticed() {
    interop(async {
        let case = Case::new(Opens::Manypath, Setting::Fast, "receive")
            .set(&[("association_timeout", "1500 ms")]);
        let Running { association, peer, endpoint: _endpoint, .. } = case.start().await;
        let mut events = association.events();
        let pattern = Pattern::new(&[10_000], 1);
        pattern.send(&association, 200_000).await.expect("queued");
        peer.kill().await;
        let last = pattern.message(1000);
        association.send(last.0, last.1).await.expect("queued");
        assert_eq!(soon("it is noticed", association.closed()).await, AssocClosed::PathsFailed);
        let mut failed = false;
        while let Some(event) = events.next().await {
            let pf = PathState::PotentiallyFailed;
            failed |= matches!(event, Event::PathState { to, .. } if to == pf);
        }
        assert!(failed, "the path was potentially failed first");
    });
}

#[test]
fn a_killed_usrsctp_is_noticed_by_counting_timeouts() {
    interop(async {
        let case = Case::new(Opens::Usrsctp, Setting::Plain, "receive").set(&[
            ("association_max_retrans", "3"),
            ("rto_initial", "100 ms"),
            ("rto_min", "100 ms"),
            // On a busy machine RTTs of a second are measured.
            ("rto_max", "500 ms"),
        ]);
        let Running { association, peer, endpoint: _endpoint, .. } = case.start().await;
        Pattern::new(&[10_000], 1).send(&association, 200_000).await.expect("queued");
        soon("acknowledged", association.acknowledged()).await.expect("acknowledged");
        peer.kill().await;
        Pattern::new(&[1000], 1).send(&association, 10_000).await.expect("queued");
        assert_eq!(soon("it is noticed", association.closed()).await, AssocClosed::PathsFailed);
    });
}

#[test]
fn a_usrsctp_that_died_and_came_back_restarts_the_association() {
    interop(async {
        let case = Case::new(Opens::Usrsctp, Setting::Fast, "receive");
        let Running { association, peer, endpoint, .. } = case.start().await;
        let mut events = association.events();
        Pattern::new(&[1000], 1).send(&association, 50_000).await.expect("queued");
        soon("acknowledged", association.acknowledged()).await.expect("acknowledged");
        let (udp_port, loopback) = (peer.udp_port, [[127, 0, 0, 1].into()]);
        peer.kill().await;

        let to = (&loopback[..], endpoint.udp_port());
        let peer = Peer::connect_from(udp_port, &[], &loopback, to, "echo").await;
        let restarted = async {
            while let Some(event) = events.next().await {
                if event == Event::Restarted {
                    return;
                }
            }
            panic!("the association ended: {:?}", association.close_reason());
        };
        soon("the restart, RFC 9260 §5.2.4 A", restarted).await;
        Pattern::new(&[1000], 1).send_to_echo(&association, 100_000).await;
        association.shutdown().await.expect("everything is delivered");
        peer.report().await.assert_ok("peer-shutdown");
    });
}

#[test]
fn dropping_all_handles_delivers_and_shuts_down() {
    interop(async {
        let Running { association, peer, endpoint, .. } =
            Case::new(Opens::Manypath, Setting::Fast, "receive").start().await;
        let sent = Pattern::new(&[20_000], 1).send(&association, 1_000_000).await;
        drop((association, endpoint));
        let report = soon("usrsctp has everything", peer.report()).await;
        report.assert_ok("peer-shutdown");
        assert_eq!(Ok(report.number("bytes_received")), sent);
    });
}

#[test]
fn closing_the_endpoint_shuts_down_and_aborting_it_aborts() {
    interop(async {
        let start =
            async |task: &str| Case::new(Opens::Manypath, Setting::Fast, task).start().await;
        let Running { association: _association, peer, endpoint, .. } = start("receive").await;
        soon("closed", Endpoint::close(&endpoint)).await;
        peer.report().await.assert_ok("peer-shutdown");
        let Running { association: _association, peer, endpoint, .. } =
            start("--expect-close abort receive").await;
        endpoint.abort("no more");
        soon("usrsctp knows", peer.report()).await.assert_ok("peer-abort");
    });
}
