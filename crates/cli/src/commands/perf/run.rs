//! The part of a measurement that both ends play.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use cpu_time::ProcessTime;
use manypath::{AssocClosed, Association, SendError, SendOptions};
use serde::Serialize;
use tokio::time::Instant;

use super::frame::{FRAME_MAX, Frame, PPID_CONTENT, PPID_CONTROL, Report, Request, STREAM};
use crate::latency::AckLatency;

/// Why a measurement broke off.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The association is over.
    Closed(AssocClosed),
    /// The peer does not speak this protocol.
    Protocol,
    /// A message could not be sent.
    Send(SendError),
}

/// A measurement under way.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    association: &'a Association,
    begin: Instant,
    cpu_begin: ProcessTime,
    sent: AtomicU64,
    received: AtomicU64,
    latency: Option<AckLatency>,
}

/// The traffic of one direction.
#[derive(Copy, Clone, Debug, Serialize)]
pub(crate) struct Carried {
    /// Content bytes received.
    pub bytes: u64,
    /// From the beginning to the last byte.
    pub seconds: f64,
    /// Bits per second over that time.
    pub goodput_bps: u64,
    /// The longest pause between two deliveries to the receiving application, in seconds; null of a
    /// measurement that ended early.
    pub max_delivery_gap_s: Option<f64>,
}

impl Carried {
    fn new(bytes: u64, time: Duration, longest_gap: Option<Duration>) -> Carried {
        let seconds = time.as_secs_f64();
        let goodput = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
        Carried {
            bytes,
            seconds,
            goodput_bps: goodput as u64,
            max_delivery_gap_s: longest_gap.map(|gap| gap.as_secs_f64()),
        }
    }

    /// The traffic of a direction so far.
    fn so_far(bytes: u64, time: Duration) -> Carried {
        Carried::new(bytes, time, None)
    }
}

impl From<Report> for Carried {
    fn from(report: Report) -> Carried {
        Carried::new(report.bytes, report.time, Some(report.longest_gap))
    }
}

/// The figures of a measurement; of one that ended early those so far.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Measured {
    /// The content that the server received.
    pub up: Carried,
    /// The content that the client received.
    pub down: Carried,
    /// Processor time of this process.
    pub cpu: Duration,
    /// Processor time of the peer; `None` if it did not say.
    pub peer_cpu: Option<Duration>,
    /// 99th-percentile message latency in seconds; `None` if it was not measured.
    pub latency_p99_s: Option<f64>,
}

impl Measured {
    /// The figures of a measurement that ends early, with the bytes that arrived so far.
    pub(crate) fn so_far(run: &Run<'_>, up: u64, down: u64) -> Measured {
        let time = run.begin.elapsed();
        Measured {
            up: Carried::so_far(up, time),
            down: Carried::so_far(down, time),
            cpu: run.cpu(),
            peer_cpu: None,
            latency_p99_s: run.latency_p99_s(),
        }
    }
}

/// A message that arrived.
enum Incoming {
    Frame(Frame),
    Content(usize),
}

impl<'a> Run<'a> {
    /// Begins now.
    pub(crate) fn new(association: &'a Association, measures_latency: bool) -> Run<'a> {
        let latency = measures_latency.then(|| AckLatency::start(association));
        let (begin, cpu_begin) = (Instant::now(), ProcessTime::now());
        let (sent, received) = (AtomicU64::new(0), AtomicU64::new(0));
        Run { association, begin, cpu_begin, sent, received, latency }
    }

    /// 99th-percentile message latency in seconds, to the acknowledgement of the last byte; `None`
    /// if it was not measured or nothing was sent. It counts from `send`, or with a rate from the
    /// time at which the message is due.
    pub(crate) fn latency_p99_s(&self) -> Option<f64> {
        self.latency.as_ref().and_then(AckLatency::p99_s)
    }

    /// When it began.
    pub(crate) fn begin(&self) -> Instant {
        self.begin
    }

    /// The processor time of this process since then.
    fn cpu(&self) -> Duration {
        self.cpu_begin.elapsed()
    }

    /// Content bytes handed to the association so far.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Content bytes received so far.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Plays this end's part; the reports of this end and of the peer.
    pub(crate) async fn play(
        &self,
        request: &Request,
        sends: bool,
    ) -> Result<(Report, Report), Broken> {
        let sending = self.send_content(request, sends);
        let receiving = self.receive_content();
        let ((), (time, longest_gap)) = tokio::try_join!(sending, receiving)?;
        let (bytes, cpu) = (self.received(), self.cpu());
        let ours = Report { bytes, time, longest_gap, cpu };
        send(self.association, Frame::Report(ours)).await?;
        match next(self.association).await? {
            Incoming::Frame(Frame::Report(theirs)) => Ok((ours, theirs)),
            _ => Err(Broken::Protocol),
        }
    }

    async fn send_content(&self, request: &Request, sends: bool) -> Result<(), Broken> {
        if sends {
            // One buffer for all messages; they share it.
            let message = Bytes::from(vec![0; request.message_size]);
            let options = SendOptions {
                stream: STREAM,
                ppid: PPID_CONTENT,
                unordered: false,
                ..SendOptions::default()
            };
            let mut left = request.bytes.unwrap_or(u64::MAX);
            while left > 0 && self.begin.elapsed() < request.time {
                let due = request.rate.map(|rate| due(self.sent(), rate));
                if let Some(due) = due.filter(|due| *due > self.begin.elapsed()) {
                    tokio::time::sleep_until(self.begin + due.min(request.time)).await;
                    continue;
                }
                let len = left.min(message.len() as u64);
                let content = message.slice(..len as usize);
                self.association.send(options, content).await.map_err(Broken::Send)?;
                if let Some(latency) = &self.latency {
                    let from = due.map_or_else(Instant::now, |due| self.begin + due);
                    latency.handed_over_since(len as usize, from);
                }
                self.sent.fetch_add(len, Ordering::Relaxed);
                left -= len;
            }
        }
        send(self.association, Frame::End).await
    }

    /// Receives until the peer's end; the time to the last content, and the longest pause between
    /// two deliveries of content.
    async fn receive_content(&self) -> Result<(Duration, Duration), Broken> {
        let mut last = None;
        let mut longest_gap = Duration::ZERO;
        loop {
            match next(self.association).await? {
                Incoming::Content(bytes) => {
                    self.received.fetch_add(bytes as u64, Ordering::Relaxed);
                    let now = self.begin.elapsed();
                    longest_gap = longest_gap.max(now - last.replace(now).unwrap_or(now));
                }
                Incoming::Frame(Frame::End) => return Ok((last.unwrap_or_default(), longest_gap)),
                Incoming::Frame(_) => return Err(Broken::Protocol),
            }
        }
    }
}

/// When the byte after the first `sent` ones is due, from the beginning, at a rate in bit/s.
fn due(sent: u64, rate: NonZeroU64) -> Duration {
    let nanos = u128::from(sent) * 8_000_000_000 / u128::from(rate.get());
    // Centuries; a measurement takes an hour at most.
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Sends a frame.
pub(crate) async fn send(association: &Association, frame: Frame) -> Result<(), Broken> {
    let (options, bytes) = first(frame);
    association.send(options, bytes).await.map_err(Broken::Send)
}

/// A frame as the first message of an association.
pub(crate) fn first(frame: Frame) -> (SendOptions, Bytes) {
    let options = SendOptions {
        stream: STREAM,
        ppid: PPID_CONTROL,
        unordered: false,
        ..SendOptions::default()
    };
    (options, frame.encode().into())
}

/// The next frame, where no content may come.
pub(crate) async fn next_frame(association: &Association) -> Result<Frame, Broken> {
    match next(association).await? {
        Incoming::Frame(frame) => Ok(frame),
        Incoming::Content(_) => Err(Broken::Protocol),
    }
}

async fn next(association: &Association) -> Result<Incoming, Broken> {
    let message = association.recv().await.map_err(Broken::Closed)?;
    let message = message.ok_or(Broken::Closed(AssocClosed::Shutdown))?;
    match message.ppid {
        PPID_CONTENT => Ok(Incoming::Content(message.payload.len())),
        // Frames are far too short to come in parts.
        PPID_CONTROL if message.end_of_message && message.payload.len() <= FRAME_MAX => {
            let bytes = message.payload.into_bytes();
            Frame::decode(&bytes).map(Incoming::Frame).map_err(|_| Broken::Protocol)
        }
        _ => Err(Broken::Protocol),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_due_at_the_rate() {
        let due = |sent, rate| due(sent, NonZeroU64::new(rate).unwrap());
        assert_eq!(due(0, 20_000_000), Duration::ZERO);
        assert_eq!(due(2_500_000, 20_000_000), Duration::from_secs(1));
        assert_eq!(due(1_000, 3), Duration::from_nanos(2_666_666_666_666));
        assert_eq!(due(u64::MAX, 1), Duration::from_nanos(u64::MAX));
    }
}
