//! The part of a measurement that both ends play.

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
}

impl From<Report> for Carried {
    fn from(report: Report) -> Carried {
        let seconds = report.time.as_secs_f64();
        let goodput = if seconds > 0.0 { report.bytes as f64 * 8.0 / seconds } else { 0.0 };
        Carried { bytes: report.bytes, seconds, goodput_bps: goodput as u64 }
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
        Run { association, begin, cpu_begin, received: AtomicU64::new(0), latency }
    }

    /// 99th-percentile message latency in seconds, from `send` to the acknowledgement of the last
    /// byte; `None` if it was not measured or nothing was sent.
    pub(crate) fn latency_p99_s(&self) -> Option<f64> {
        self.latency.as_ref().and_then(AckLatency::p99_s)
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
        let ((), time) = tokio::try_join!(sending, receiving)?;
        let ours = Report { bytes: self.received(), time, cpu: self.cpu_begin.elapsed() };
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
            let options = SendOptions { stream: STREAM, ppid: PPID_CONTENT, unordered: false };
            let mut left = request.bytes.unwrap_or(u64::MAX);
            while left > 0 && self.begin.elapsed() < request.time {
                let len = left.min(message.len() as u64);
                let content = message.slice(..len as usize);
                self.association.send(options, content).await.map_err(Broken::Send)?;
                if let Some(latency) = &self.latency {
                    latency.handed_over(len as usize);
                }
                left -= len;
            }
        }
        send(self.association, Frame::End).await
    }

    /// Receives until the peer's end; the time to the last content.
    async fn receive_content(&self) -> Result<Duration, Broken> {
        let mut last = Duration::ZERO;
        loop {
            match next(self.association).await? {
                Incoming::Content(bytes) => {
                    self.received.fetch_add(bytes as u64, Ordering::Relaxed);
                    last = self.begin.elapsed();
                }
                Incoming::Frame(Frame::End) => return Ok(last),
                Incoming::Frame(_) => return Err(Broken::Protocol),
            }
        }
    }
}

/// Sends a frame.
pub(crate) async fn send(association: &Association, frame: Frame) -> Result<(), Broken> {
    let (options, bytes) = first(frame);
    association.send(options, bytes).await.map_err(Broken::Send)
}

/// A frame as the first message of an association.
pub(crate) fn first(frame: Frame) -> (SendOptions, Bytes) {
    let options = SendOptions { stream: STREAM, ppid: PPID_CONTROL, unordered: false };
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
