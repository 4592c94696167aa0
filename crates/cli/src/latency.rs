//! Latency of the messages that this end sends: from `send` to the acknowledgement of the last
//! byte.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use manypath::Association;
use manypath_sim::DurationHistogram;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};

/// How often acknowledgements are read, and so the resolution of latencies.
const TICK: Duration = Duration::from_millis(5);
/// Messages handed over within this time are timed together.
const TOGETHER: Duration = Duration::from_millis(1);

/// Measures the latencies of the messages handed to an association. The clocks of two hosts differ,
/// so the delivery itself cannot be timed here; the acknowledgement comes half a round trip later.
#[derive(Debug)]
pub(crate) struct AckLatency {
    log: Arc<Mutex<Log>>,
    association: Association,
    task: JoinHandle<()>,
}

impl AckLatency {
    /// Measures from now on. Every message sent from now on must be [noted](Self::handed_over).
    pub(crate) fn start(association: &Association) -> AckLatency {
        let sent = association.stats().bytes_acked + association.unacked_bytes() as u64;
        let log = Arc::new(Mutex::new(Log { handed_over: sent, ..Log::default() }));
        let (noted, asked) = (log.clone(), association.clone());
        let task = tokio::spawn(async move {
            let mut ticks = tokio::time::interval(TICK);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            loop {
                let now = ticks.tick().await;
                lock(&noted).acked(asked.stats().bytes_acked, now);
            }
        });
        AckLatency { log, association: association.clone(), task }
    }

    /// A message of this many bytes was sent now.
    pub(crate) fn handed_over(&self, bytes: usize) {
        self.handed_over_since(bytes, Instant::now());
    }

    /// A message of this many bytes was sent now. Its latency counts from `since`, which is no
    /// earlier than that of the message before.
    pub(crate) fn handed_over_since(&self, bytes: usize, since: Instant) {
        lock(&self.log).handed_over(bytes, since);
    }

    /// The time that 99 of 100 messages took at most, in seconds, once all that matter are
    /// acknowledged.
    pub(crate) fn p99_s(&self) -> Option<f64> {
        let mut log = lock(&self.log);
        log.acked(self.association.stats().bytes_acked, Instant::now());
        log.histogram.quantile_s(0.99)
    }
}

impl Drop for AckLatency {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Messages timed together.
#[derive(Debug)]
struct Batch {
    /// User bytes sent up to the end of the last of them.
    end: u64,
    messages: u64,
    /// When the first of them was handed over.
    at: Instant,
}

/// Messages that wait for their acknowledgement; never more than the send buffer holds.
#[derive(Debug, Default)]
struct Log {
    /// User bytes handed to the association.
    handed_over: u64,
    waiting: VecDeque<Batch>,
    histogram: DurationHistogram,
}

impl Log {
    fn handed_over(&mut self, bytes: usize, now: Instant) {
        self.handed_over += bytes as u64;
        let end = self.handed_over;
        match self.waiting.back_mut() {
            Some(last) if now.saturating_duration_since(last.at) < TOGETHER => {
                last.end = end;
                last.messages += 1;
            }
            _ => self.waiting.push_back(Batch { end, messages: 1, at: now }),
        }
    }

    /// This many user bytes are acknowledged, cumulatively.
    fn acked(&mut self, bytes: u64, now: Instant) {
        while let Some(batch) = self.waiting.front().filter(|batch| batch.end <= bytes) {
            self.histogram.add(now.saturating_duration_since(batch.at), batch.messages);
            self.waiting.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_message_takes_until_all_of_it_is_acknowledged() {
        let begin = Instant::now();
        let at = |micros| begin + Duration::from_micros(micros);
        let mut log = Log { handed_over: 70, ..Log::default() };
        log.handed_over(100, at(0));
        log.handed_over(100, at(900)); // with the first
        log.handed_over(100, at(5_000));
        log.acked(170, at(10_000));
        assert_eq!((log.waiting.len(), log.histogram.quantile_s(0.99)), (2, None));
        log.acked(369, at(20_000));
        let near = |wanted: f64, got: Option<f64>| (got.unwrap() / wanted - 1.0).abs() < 0.005;
        assert!(near(0.020, log.histogram.quantile_s(0.99)));
        log.acked(370, at(305_000));
        assert!(log.waiting.is_empty() && near(0.300, log.histogram.quantile_s(0.99)));
        assert!(near(0.020, log.histogram.quantile_s(0.5)), "two of three");
    }
}
