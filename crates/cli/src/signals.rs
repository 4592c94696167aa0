//! The signals that ask the program to stop: SIGINT, and on Unix SIGTERM and SIGHUP.
//!
//! They are counted from the first question on, for the whole program, so that none is lost while
//! nobody waits. Before that a signal ends the program at once.

use std::future::pending;
use std::io;
use std::sync::OnceLock;

use tokio::sync::watch;

/// Completes when the user or the system asks the program to stop, or has done so before.
pub(crate) async fn interrupted() {
    raised_above(0, counted()).await;
}

/// Counts signals from now on: from the moment at which others hear of this program, one that they
/// send is to end it in order.
pub(crate) fn listen() {
    counted();
}

/// Completes with the next signal that asks the program to stop. Earlier ones do not count.
pub(crate) async fn next_interrupt() {
    let count = counted();
    let before = *count.borrow();
    raised_above(before, count).await;
}

/// How many signals came.
fn counted() -> watch::Receiver<u64> {
    static COUNT: OnceLock<watch::Receiver<u64>> = OnceLock::new();
    let count = COUNT.get_or_init(|| {
        let (sender, receiver) = watch::channel(0);
        // Without a handler the signal ends the program at once, which is what is wanted then.
        if let Ok(signals) = Signals::new() {
            tokio::spawn(signals.count(sender));
        }
        receiver
    });
    count.clone()
}

async fn raised_above(before: u64, mut count: watch::Receiver<u64>) {
    if count.wait_for(|&now| now > before).await.is_err() {
        pending::<()>().await;
    }
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

    async fn count(self, count: watch::Sender<u64>) {
        let Signals([mut int, mut term, mut hup]) = self;
        loop {
            tokio::select! {
                _ = int.recv() => {}
                _ = term.recv() => {}
                _ = hup.recv() => {}
            }
            count.send_modify(|count| *count += 1);
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

    async fn count(self, count: watch::Sender<u64>) {
        while tokio::signal::ctrl_c().await.is_ok() {
            count.send_modify(|count| *count += 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    #[tokio::test]
    async fn a_signal_that_comes_while_nobody_waits_is_not_lost() {
        let (sender, count) = watch::channel(0);
        sender.send_modify(|count| *count += 1);
        raised_above(0, count).await;
    }

    #[tokio::test]
    async fn who_waits_for_the_next_signal_does_not_take_an_earlier_one() {
        let (sender, count) = watch::channel(1);
        let next = raised_above(1, count);
        tokio::pin!(next);
        tokio::select! {
            biased;
            () = &mut next => panic!("the earlier one was taken"),
            () = ready(()) => {}
        }
        sender.send_modify(|count| *count += 1);
        next.await;
    }
}
