//! The signals that ask the program to stop: SIGINT, and on Unix SIGTERM and SIGHUP.
//!
//! They are counted from the first question on, for the whole program, so that none is lost while
//! nobody waits. Before that a signal ends the program at once.

use std::io;
use std::sync::OnceLock;

use manypath_transfer::Stop;

/// Completes when the user or the system asks the program to stop, or has done so before.
pub(crate) async fn interrupted() {
    stop().stopped().await;
}

/// Counts signals from now on: from the moment at which others hear of this program, one that they
/// send is to end it in order.
pub(crate) fn listen() {
    stop();
}

/// The signals, for transfers. Counts them from now on.
pub(crate) fn stop() -> Stop {
    static STOP: OnceLock<Stop> = OnceLock::new();
    let stop = STOP.get_or_init(|| {
        let stop = Stop::new();
        // Without a handler the signal ends the program at once, which is what is wanted then.
        if let Ok(signals) = Signals::new() {
            tokio::spawn(signals.count(stop.clone()));
        }
        stop
    });
    stop.clone()
}

#[cfg(unix)]
struct Signals([tokio::signal::unix::Signal; 3]);

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [int, term, hup] = kinds.map(signal);
        Ok(Signals([int?, term?, hup?]))
    }

    async fn count(self, stop: Stop) {
        let Signals([mut int, mut term, mut hup]) = self;
        loop {
            tokio::select! {
                _ = int.recv() => {}
                _ = term.recv() => {}
                _ = hup.recv() => {}
            }
            stop.stop();
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Signals> {
        Ok(Signals)
    }

    async fn count(self, stop: Stop) {
        while tokio::signal::ctrl_c().await.is_ok() {
            stop.stop();
        }
    }
}
