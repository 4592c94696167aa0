//! A host that is so busy that an endpoint gets no turn for a while.

mod common;

use std::sync::mpsc;
use std::time::Duration;

use common::*;
use manypath::{Association, ConnectTarget};
use tokio::runtime::{Builder, Runtime};

/// The answer may have been read before the host is busy, but not in all of these.
const TURNS: usize = 5;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn timeouts(association: &Association) -> u64 {
    association.paths().iter().map(|path| path.counters.t3_expirations).sum()
}

/// The answers have arrived, and the timer is late: it must not be judged before they are read.
#[test]
fn answers_that_wait_to_be_read_are_no_timeouts() {
    let (told, port) = mpsc::channel();
    let server = std::thread::spawn(move || {
        runtime().block_on(async {
            let z = server(&["127.0.0.1"]);
            told.send(address(&z)).unwrap();
            for _ in 0..TURNS {
                let to = within("a client", z.accept()).await.unwrap();
                while let Ok(Some(_)) = to.recv().await {}
            }
        });
    });
    let remote = port.recv().unwrap();
    runtime().block_on(async {
        let a = client(&["127.0.0.3"]);
        for turn in 0..TURNS {
            let target = ConnectTarget::new([remote]);
            let from = within("the handshake", a.connect(target)).await.unwrap();
            for _ in 0..20 {
                from.send(on(0), pattern(2000).into()).await.unwrap();
                tokio::time::sleep(Duration::from_millis(5)).await; // an RTT that is short
            }
            from.send(on(0), pattern(5000).into()).await.unwrap();
            tokio::task::yield_now().await; // the driver sends
            std::thread::sleep(Duration::from_millis(400));
            from.send(on(0), pattern(5000).into()).await.unwrap(); // the driver is to run at once
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert_eq!(timeouts(&from), 0, "in turn {turn}: {:?}", from.paths());
            within("shutdown", from.shutdown()).await.unwrap();
        }
    });
    server.join().unwrap();
}
