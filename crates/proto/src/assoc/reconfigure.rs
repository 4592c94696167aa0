//! Stream reconfiguration (RFC 6525): this end's requests to reset and add streams. [`answer`] has
//! the answers to those of the peer.
//!
//! Requests wait in a queue, and one at a time is sent and repeated until it is answered. The state
//! is made when either end first asks for something.

mod answer;

use std::collections::VecDeque;
use std::time::Duration;

use manypath_wire::{OutgoingReset, ReConfig, ReConfigParameter, ReConfigResult, StreamId, Tsn};

use super::recover::timeout::TimeoutCause;
use super::send::control::Control;
use super::state::State;
use super::{AssocTimer, Association, Timer};
use crate::event::{Event, RequestOutcome, StreamRequest};
use crate::time::Instant;
use crate::view::PathId;
use answer::Answers;

/// Most requests that wait.
const MAX_WAITING: usize = 16;

/// Most streams that a request lists, so that its chunk fits a packet of 1280 bytes, protected or
/// not. More are asked for one list after another.
const MAX_LISTED: usize = 500;

/// Why streams cannot be reset or added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReconfigureError {
    /// This end or its peer does not have the extension (`stream_reconfiguration`).
    #[error("one end cannot reset or add streams (stream_reconfiguration)")]
    NotSupported,
    /// The association is not open yet, or it is shutting down.
    #[error("the association is not open, or it is shutting down")]
    NotOpen,
    /// There is no such stream.
    #[error("stream {stream} does not exist; the association has {streams} streams this way")]
    NoSuchStream {
        /// The stream asked for.
        stream: u16,
        /// The number of streams in this direction.
        streams: u16,
    },
    /// An earlier reset of one of the streams is not over.
    #[error("an earlier reset of one of these streams is not over")]
    InProgress,
    /// There would be more streams than SCTP can number.
    #[error("an association has at most 65535 streams each way")]
    TooManyStreams,
    /// Too many requests wait.
    #[error("{limit} requests wait already")]
    TooManyRequests {
        /// Most requests that may wait.
        limit: usize,
    },
}

/// A request, and who wants it.
#[derive(Clone, Debug)]
struct Job {
    request: StreamRequest,
    /// The number of the peer's request that this one answers.
    answers: Option<u32>,
    by_peer: bool,
}

/// A request that was sent and is not answered.
#[derive(Clone, Debug)]
struct Sent {
    job: Job,
    chunk: ReConfig,
    number: u32,
    /// The last TSN that was assigned before the request.
    last_tsn: Tsn,
    /// The path on which it was sent last.
    on: PathId,
    /// How long the next answer is waited for.
    wait: Duration,
    /// The peer answered to the last transmission that the request waits there.
    is_in_progress: bool,
    /// It was repeated because the peer has all TSNs of the time before.
    is_hurried: bool,
}

/// The state of the extension in an association.
#[derive(Debug)]
pub(crate) struct Reconfigure {
    /// The number of the next request.
    next: u32,
    waiting: VecDeque<Job>,
    sent: Option<Sent>,
    answers: Answers,
}

impl Reconfigure {
    /// RFC 6525 §4.1: requests are numbered from the initial TSN of the end that sends them.
    fn new(own_initial_tsn: Tsn, peers_initial_tsn: Tsn) -> Reconfigure {
        Reconfigure {
            next: own_initial_tsn.0,
            waiting: VecDeque::new(),
            sent: None,
            answers: Answers::new(peers_initial_tsn),
        }
    }

    /// Streams that waiting requests add to those that this end sends on.
    fn streams_to_add(&self) -> usize {
        let all = self.waiting.iter().chain(self.sent.iter().map(|sent| &sent.job));
        let added = |job: &Job| match job.request {
            StreamRequest::AddOutgoing(count) => usize::from(count),
            _ => 0,
        };
        all.map(added).sum()
    }
}

impl Association {
    // ---- Commands ----

    /// Resets streams that this end sends on: their next messages are numbered from 0 again (RFC
    /// 6525 §5.1.2). An empty list means all streams. Messages given before leave with the old
    /// numbers, and then the peer is asked. Messages given from now on wait for its answer.
    ///
    /// [`Event::StreamsReconfigured`] tells the result. If the peer refuses, the numbers go on.
    ///
    /// # Errors
    /// Gives the reason why nothing was done.
    pub fn reset_streams(
        &mut self,
        _now: Instant,
        streams: &[StreamId],
    ) -> Result<(), ReconfigureError> {
        self.may_reconfigure()?;
        check_streams(streams, usize::from(self.agreed.streams_out))?;
        if self.queue.resets_any(streams) {
            return Err(ReconfigureError::InProgress);
        }
        self.check_room(streams.len().div_ceil(MAX_LISTED).max(1))?;
        for list in lists(streams) {
            self.queue.begin_reset(list);
            self.push_job(StreamRequest::ResetOutgoing(list.to_vec()), None);
        }
        Ok(())
    }

    /// Asks the peer to reset streams that it sends on (RFC 6525 §5.1.3). An empty list means all
    /// streams. [`Event::StreamsReconfigured`] tells whether it agrees, and
    /// [`Event::IncomingStreamsReset`] when it has done it.
    ///
    /// # Errors
    /// Gives the reason why nothing was done.
    pub fn request_stream_reset(
        &mut self,
        _now: Instant,
        streams: &[StreamId],
    ) -> Result<(), ReconfigureError> {
        self.may_reconfigure()?;
        check_streams(streams, self.inbound_streams())?;
        self.check_room(streams.len().div_ceil(MAX_LISTED).max(1))?;
        for list in lists(streams) {
            self.push_job(StreamRequest::ResetIncoming(list.to_vec()), None);
        }
        Ok(())
    }

    /// Adds streams that this end sends on, and asks the peer to add streams that it sends on (RFC
    /// 6525 §5.1.5, §5.1.6). [`Event::StreamsReconfigured`] tells the result for each direction:
    /// from then on [`outbound_streams`](Self::outbound_streams) counts the new ones.
    ///
    /// # Errors
    /// Gives the reason why nothing was done.
    pub fn add_streams(
        &mut self,
        _now: Instant,
        outgoing: u16,
        incoming: u16,
    ) -> Result<(), ReconfigureError> {
        self.may_reconfigure()?;
        let to_add = self.reconfigure.as_ref().map_or(0, |r| r.streams_to_add());
        let most = usize::from(u16::MAX);
        let streams_out = usize::from(self.agreed.streams_out) + to_add + usize::from(outgoing);
        if streams_out > most || self.inbound_streams() + usize::from(incoming) > most {
            return Err(ReconfigureError::TooManyStreams);
        }
        self.check_room(usize::from(outgoing > 0) + usize::from(incoming > 0))?;
        if outgoing > 0 {
            self.push_job(StreamRequest::AddOutgoing(outgoing), None);
        }
        if incoming > 0 {
            self.push_job(StreamRequest::AddIncoming(incoming), None);
        }
        Ok(())
    }

    /// True if both ends can reset and add streams (RFC 6525). Known once the association is
    /// established.
    pub fn reconfigures(&self) -> bool {
        self.agreed.reconfiguration
    }

    /// The number of streams that the peer may send on; 0 before the handshake.
    pub fn inbound_streams(&self) -> usize {
        self.rx.receiver.as_ref().map_or(0, |r| r.inbound.streams())
    }

    fn may_reconfigure(&self) -> Result<(), ReconfigureError> {
        if !matches!(self.state, State::Established) || !self.is_released() {
            Err(ReconfigureError::NotOpen)
        } else if self.agreed.reconfiguration {
            Ok(())
        } else {
            Err(ReconfigureError::NotSupported)
        }
    }

    fn check_room(&self, requests: usize) -> Result<(), ReconfigureError> {
        let waiting = self.reconfigure.as_ref().map_or(0, |r| r.waiting.len());
        if waiting + requests <= MAX_WAITING {
            Ok(())
        } else {
            Err(ReconfigureError::TooManyRequests { limit: MAX_WAITING })
        }
    }

    /// The state of the extension. `None` if it is not in use.
    fn reconfigure_mut(&mut self) -> Option<&mut Reconfigure> {
        if !self.agreed.reconfiguration {
            return None;
        }
        let (own, peers) = (self.ends.id.initial_tsn, self.rx.receiver.as_ref()?.initial_tsn);
        Some(self.reconfigure.get_or_insert_with(|| Box::new(Reconfigure::new(own, peers))))
    }

    /// Lets a request wait for its turn. `answers` is the number of the peer's request for it.
    fn push_job(&mut self, request: StreamRequest, answers: Option<u32>) {
        if let Some(r) = self.reconfigure_mut() {
            r.waiting.push_back(Job { request, answers, by_peer: answers.is_some() });
        }
    }

    // ---- Requests ----

    /// Sends the next request if it may be sent now, and repeats one that the peer can now fulfil.
    #[inline]
    pub(super) fn reconfigure_if_due(&mut self, now: Instant) {
        if self.reconfigure.is_some() {
            self.send_due_request(now);
        }
    }

    #[inline(never)]
    fn send_due_request(&mut self, now: Instant) {
        if !self.state.may_send_data() {
            return;
        }
        let acked = self.out.cum_tsn_ack_point();
        let Some(r) = self.reconfigure.as_mut() else { return };
        match &mut r.sent {
            // The peer waited for TSNs, and has them now.
            Some(sent) if sent.is_in_progress && !sent.is_hurried && sent.last_tsn.le(acked) => {
                (sent.is_in_progress, sent.is_hurried) = (false, true);
                let on = sent.on;
                self.send_request(now, on);
            }
            Some(_) => {}
            None => self.send_next_request(now),
        }
    }

    /// Sends the next request (RFC 6525 §5.1.1: there is never more than one in flight).
    fn send_next_request(&mut self, now: Instant) {
        if !matches!(self.state, State::Established) {
            return;
        }
        let last_tsn = self.out.highest_tsn();
        let Some(r) = self.reconfigure.as_mut() else { return };
        let is_reset = |job: &Job| matches!(job.request, StreamRequest::ResetOutgoing(_));
        let may_leave = |job: &&Job| match &job.request {
            StreamRequest::ResetOutgoing(streams) => {
                self.queue.may_request_reset() && !self.out.may_list(streams)
            }
            _ => true,
        };
        if r.waiting.front().filter(may_leave).is_none() {
            return;
        }
        let Some(job) = r.waiting.pop_front() else { return };
        if is_reset(&job) {
            self.queue.reset_requested();
        }
        let request = r.next;
        r.next = r.next.wrapping_add(1);
        let parameter = match job.request.clone() {
            StreamRequest::ResetOutgoing(streams) => {
                // RFC 6525 §4.1: without a request to answer, the last one that came.
                let response = job.answers.unwrap_or(r.answers.last());
                let reset = OutgoingReset { request, response, last_tsn, streams };
                ReConfigParameter::OutgoingReset(reset)
            }
            StreamRequest::ResetIncoming(streams) => {
                ReConfigParameter::IncomingReset { request, streams }
            }
            StreamRequest::AddOutgoing(streams) => {
                ReConfigParameter::AddOutgoing { request, streams }
            }
            StreamRequest::AddIncoming(streams) => {
                ReConfigParameter::AddIncoming { request, streams }
            }
        };
        let chunk = ReConfig { parameters: vec![parameter] };
        let on = self.control_path();
        let wait = self.paths.get(on).map_or(self.config.rto_initial, |p| p.rto.rto());
        let number = request;
        let sent = Sent {
            job,
            chunk,
            number,
            last_tsn,
            on,
            wait,
            is_in_progress: false,
            is_hurried: false,
        };
        if let Some(r) = self.reconfigure.as_mut() {
            r.sent = Some(sent);
        }
        self.send_request(now, on);
    }

    /// Sends the request on a path and starts the Re-configuration Timer (RFC 6525 §5.1.1).
    fn send_request(&mut self, now: Instant, on: PathId) {
        let Some(sent) = self.reconfigure.as_mut().and_then(|r| r.sent.as_mut()) else { return };
        sent.on = on;
        let at = now + sent.wait;
        let is_queued = |c: &Control| matches!(c, Control::ReConfig { .. });
        if !self.control.iter().any(is_queued) {
            self.control.push_back(Control::ReConfig { on });
        }
        self.timers.set(Timer::Assoc(AssocTimer::Reconfigure), at);
    }

    /// The chunk of the request that is not answered, if there is one.
    pub(super) fn request_chunk(&self) -> Option<&ReConfig> {
        self.reconfigure.as_ref()?.sent.as_ref().map(|sent| &sent.chunk)
    }

    /// The Re-configuration Timer expired: repeats the request on the next path, with twice the
    /// wait, and counts the failure (RFC 6525 §5.1.1). A peer that has answered "In progress" is
    /// only asked again (§5.2.7).
    pub(super) fn on_reconfigure_timer(&mut self, now: Instant) {
        if !self.state.may_send_data() {
            return;
        }
        let most = self.config.rto_max;
        let Some(sent) = self.reconfigure.as_mut().and_then(|r| r.sent.as_mut()) else { return };
        let failed = sent.on;
        if std::mem::take(&mut sent.is_in_progress) {
            self.send_request(now, failed);
            return;
        }
        sent.wait = (sent.wait * 2).min(most);
        self.count_timeout(now, failed, TimeoutCause::Data);
        if self.closed().is_none() {
            let next = self.control_path_after(failed);
            self.send_request(now, next);
        }
    }

    /// Handles the answer to a request (RFC 6525 §5.2.7). Answers to others than the one in flight
    /// are discarded.
    fn on_response(&mut self, now: Instant, number: u32, result: ReConfigResult) {
        let rto =
            |a: &Association, on| a.paths.get(on).map_or(a.config.rto_initial, |p| p.rto.rto());
        let Some(sent) = self.reconfigure.as_ref().and_then(|r| r.sent.as_ref()) else { return };
        if sent.number != number {
            return;
        }
        if result == ReConfigResult::IN_PROGRESS {
            let wait = rto(self, sent.on);
            if let Some(sent) = self.reconfigure.as_mut().and_then(|r| r.sent.as_mut()) {
                (sent.is_in_progress, sent.wait) = (true, wait);
            }
            self.timers.set(Timer::Assoc(AssocTimer::Reconfigure), now + wait);
            return;
        }
        let Some(sent) = self.reconfigure.as_mut().and_then(|r| r.sent.take()) else { return };
        self.timers.stop(Timer::Assoc(AssocTimer::Reconfigure));
        self.control.retain(|c| !matches!(c, Control::ReConfig { .. }));
        self.end_job(sent.job, RequestOutcome::of(result));
        self.continue_shutdown(now);
    }

    fn end_job(&mut self, Job { request, by_peer, .. }: Job, outcome: RequestOutcome) {
        let is_done = outcome.is_success();
        match &request {
            StreamRequest::ResetOutgoing(_) => self.queue.end_reset(is_done),
            StreamRequest::AddOutgoing(count) if is_done => {
                self.agreed.streams_out = self.agreed.streams_out.saturating_add(*count);
            }
            _ => {}
        }
        self.events.push(Event::StreamsReconfigured { request, outcome, by_peer });
    }

    /// Gives up the requests that wait, because the association is shutting down. Messages that
    /// waited for them leave now.
    pub(super) fn cancel_requests(&mut self) {
        let Some(r) = self.reconfigure.as_mut() else { return };
        let waiting = std::mem::take(&mut r.waiting);
        self.queue.cancel_resets();
        for Job { request, by_peer, .. } in waiting {
            let outcome = RequestOutcome::Cancelled;
            self.events.push(Event::StreamsReconfigured { request, outcome, by_peer });
        }
    }
}

fn check_streams(asked: &[StreamId], streams: usize) -> Result<(), ReconfigureError> {
    match asked.iter().find(|stream| usize::from(stream.0) >= streams) {
        None => Ok(()),
        Some(stream) => {
            let streams = u16::try_from(streams).unwrap_or(u16::MAX);
            Err(ReconfigureError::NoSuchStream { stream: stream.0, streams })
        }
    }
}

/// The lists of the requests for these streams: one that is empty for all.
fn lists(streams: &[StreamId]) -> impl Iterator<Item = &[StreamId]> {
    let all = streams.is_empty().then_some(streams);
    all.into_iter().chain(streams.chunks(MAX_LISTED))
}
