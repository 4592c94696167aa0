//! Memory that a hostile peer can make a server hold, measured by the kernel. One test: the whole
//! process is what is measured.
#![cfg(target_os = "linux")]

mod common;

use common::stranger::{Hold, Stranger};
use common::*;
use manypath::{Association, Endpoint, EndpointOptions, StrangerLimits};

/// A figure of /proc/self/status, in MiB.
fn memory(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    let kib: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib / 1024.0
}

fn listen(ip: &str) -> Endpoint {
    let strangers = Some(StrangerLimits::default());
    Endpoint::bind(EndpointOptions { strangers, ..options(&[ip], true) }).unwrap()
}

fn held(association: &Association) -> usize {
    association.stats().receive_buffered
}

/// How much of a train counts: its payload, the length of each of its datagrams, and whether the
/// message can be read at once or must wait for the one that is missing.
type Split = (usize, usize, bool);

/// Sends trains of datagrams of which one carries something and the others nothing, until the
/// server holds `until` bytes or `trains` were sent.
async fn hoard(
    stranger: &mut Stranger,
    association: &Association,
    hold: Hold,
    (payload, segment, unordered): Split,
    (until, trains): (usize, u32),
) {
    let payload = vec![7; payload];
    let count = (64_000 / segment).clamp(1, 64);
    for index in 1..=trains {
        // The last one of a train may be shorter. What is all zeros is no packet of anybody.
        let mut train = vec![0; segment * (count - 1)];
        train.extend(stranger.data(hold, index, unordered, &payload));
        stranger.send(train, segment).await;
        // The server runs in between; its socket has room for few such trains.
        tokio::task::yield_now().await;
        if held(association) >= until {
            return;
        }
    }
}

#[tokio::test]
async fn memory_is_bounded_whatever_a_peer_sends() {
    let server = listen("127.0.0.1");
    let mut stranger = Stranger::new("127.0.0.7", address(&server));
    let full = config(&[]).receive_buffer;
    let mut port = 5000;
    let splits: [Split; 7] = [
        (512, 1472, false),
        (512, 1472, true),
        (1400, 1472, false),
        (600, 9000, false),
        (3000, 16_000, false),
        (3000, 16_000, true),
        (16, 1200, false),
    ];
    for split @ (payload, segment, _) in splits {
        for (admit, peers) in [(false, 8), (true, 3)] {
            let mut all = Vec::new();
            for _ in 0..peers {
                port += 1;
                let hold = within("the handshake", stranger.open(port)).await.expect("taken");
                let association = within("it", server.accept()).await.expect("accepting");
                if admit {
                    association.admit();
                }
                let window = if admit { full } else { 64 << 10 };
                let until = (window - segment, 9000);
                hoard(&mut stranger, &association, hold, split, until).await;
                assert!(held(&association) <= window);
                all.push((association, hold));
            }
            let sum: usize = all.iter().map(|(a, _)| held(a)).sum();
            let (now, peak) = (memory("VmRSS"), memory("VmHWM"));
            let what = format!("{split:?}, admitted: {admit}");
            eprintln!("{what}: {sum} bytes held, {now:.0} MiB resident, at most {peak:.0}");
            // Less than a quarter arrives only where the number of chunks is the limit.
            assert!(payload < 100 || sum > peers * 64_000 / 4, "{what}: the test tests something");
            assert!(peak < 64.0, "{what}: {peak} MiB");
            for (association, hold) in all {
                stranger.abort(hold).await;
                within("the end", association.closed()).await;
            }
        }
    }
}
