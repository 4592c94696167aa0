//! SCTP over IP itself (protocol 132), where usrsctp has raw sockets, too. Either end answers
//! packets for ports that nobody has in its own way, so each has a namespace.

use manypath::{AssocClosed, ConnectError, ConnectTarget, Endpoint};

use crate::harness::{
    Case, Link, Opens, Pattern, Running, Setting, in_two_namespaces, pause, soon,
};
use crate::transfer::{manypath_echoes, manypath_receives, usrsctp_echoes};

const FAMILIES: [(&str, &str); 2] = [("10.99.1.1", "10.99.1.2"), ("fd00:99:1::1", "fd00:99:1::2")];
const SIZE_LIST: &str = "--messages 1,8,100,1444,1452,30000,1048576";

fn case(opens: Opens, setting: Setting, task: &str, links: &[Link; 2], family: usize) -> Case {
    let (ours, theirs) = FAMILIES[family];
    Case::new(opens, setting, task)
        .addresses(&[ours], &[theirs])
        .peer_prefix(&links[0].far_prefix())
        .over_ip()
}

/// Both ends open, with both settings, over one family.
async fn each(family: usize, links: &[Link; 2]) {
    for (opens, setting) in [
        (Opens::Manypath, Setting::Fast),
        (Opens::Usrsctp, Setting::Fast),
        (Opens::Manypath, Setting::Plain),
        (Opens::Usrsctp, Setting::Plain),
    ] {
        let task = format!("{SIZE_LIST} --streams 7 send 3000000");
        let running = case(opens, setting, &task, links, family).start().await;
        let paths = running.association.paths();
        assert!(paths.iter().all(|p| p.local.port() == 0 && p.remote.port() == 0), "{paths:?}");
        manypath_receives(running).await;

        let running = case(opens, setting, "echo", links, family).start().await;
        usrsctp_echoes(running, Pattern::new(&[1, 1452, 30_000], 7), 2_000_000).await;

        let task = format!("{SIZE_LIST} --echoed --seed 9 send 2000000");
        manypath_echoes(case(opens, setting, &task, links, family).start().await, 9).await;
    }
}

#[test]
fn data_goes_both_ways_over_ipv4() {
    in_two_namespaces("raw_ip::data_goes_both_ways_over_ipv4", async |links: [Link; 2]| {
        each(0, &links).await;
    });
}

#[test]
fn data_goes_both_ways_over_ipv6() {
    in_two_namespaces("raw_ip::data_goes_both_ways_over_ipv6", async |links: [Link; 2]| {
        each(1, &links).await;
    });
}

#[test]
fn a_link_is_cut_and_comes_back_over_ip() {
    let name = "raw_ip::a_link_is_cut_and_comes_back_over_ip";
    in_two_namespaces(name, async |links: [Link; 2]| {
        for opens in [Opens::Manypath, Opens::Usrsctp] {
            let task = "--rto-min-ms 50 --heartbeat-ms 200 --path-max-retrans 2 receive";
            let Running { association, peer, endpoint: _endpoint, .. } =
                Case::new(opens, Setting::Fast, task)
                    .addresses(&["10.99.1.1", "10.99.2.1"], &["10.99.1.2", "10.99.2.2"])
                    .peer_prefix(&links[0].far_prefix())
                    .set(&[("rto_min", "100 ms"), ("rto_initial", "200 ms")])
                    .over_ip()
                    .start()
                    .await;
            let mut sent = 0;
            let pattern = Pattern::new(&[1400], 3);
            let mut next = pattern.messages(u64::MAX);
            for link in &links {
                for cut in [false, true, false] {
                    link.cut(cut);
                    for _ in 0..100 {
                        let (options, payload) = next.next().expect("endless");
                        sent += payload.len() as u64;
                        association.send(options, payload).await.expect("queued");
                        pause(5).await;
                    }
                }
            }
            association.shutdown().await.expect("everything is delivered");
            let report = peer.report().await;
            report.assert_ok("peer-shutdown");
            assert_eq!(report.number("bytes_received"), sent);
        }
    });
}

#[test]
fn a_host_without_an_sctp_stack_is_named() {
    let name = "raw_ip::a_host_without_an_sctp_stack_is_named";
    in_two_namespaces(name, async |links: [Link; 2]| {
        for family in [0, 1] {
            let options = case(Opens::Manypath, Setting::Fast, "echo", &links, family);
            let endpoint = Endpoint::bind(options.endpoint_options()).expect("an endpoint");
            let there = std::net::SocketAddr::new(FAMILIES[family].1.parse().expect("one"), 0);
            let attempt = endpoint.connect(ConnectTarget::new([there]));
            let error = soon("the kernel says so", attempt).await.expect_err("nobody is there");
            assert_eq!(error, ConnectError::Failed(AssocClosed::NoSuchProtocol));
        }
    });
}
