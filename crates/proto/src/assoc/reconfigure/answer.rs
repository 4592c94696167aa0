//! The peer's requests to reset and add streams, and their answers (RFC 6525 §5.2).

use bytes::Bytes;
use manypath_wire::{
    ErrorCause, OutgoingReset, ReConfig, ReConfigParameter, ReConfigResponse, ReConfigResult,
    StreamId, Tsn,
};

use super::{Job, MAX_LISTED, MAX_WAITING, Sent};
use crate::assoc::Association;
use crate::assoc::send::control::Control;
use crate::assoc::state::State;
use crate::datagram::AddressPair;
use crate::event::{Event, StreamRequest};
use crate::rx::MAX_TSN_AHEAD;
use crate::time::Instant;

/// A reset that waits for TSNs that the peer sent before it (RFC 6525 §5.2.2, E2).
#[derive(Clone, Debug)]
struct Deferred {
    number: u32,
    last_tsn: Tsn,
    streams: Vec<StreamId>,
    /// Where the request came from.
    from: AddressPair,
}

/// The numbers of the peer's requests, and the latest answers.
#[derive(Debug)]
pub(super) struct Answers {
    /// The number of the next request.
    expected: u32,
    /// The latest answers, the last one first: as many as a chunk can have requests.
    given: [Option<(u32, ReConfigResult)>; 2],
    deferred: Option<Deferred>,
}

/// The place of a request's number among those of the peer.
enum Number {
    Next,
    Repeated(ReConfigResult),
    Bad,
}

impl Answers {
    pub(super) fn new(peers_initial_tsn: Tsn) -> Answers {
        Answers { expected: peers_initial_tsn.0, given: [None; 2], deferred: None }
    }

    /// The number of the last request that came, or what would be the one before the first.
    pub(super) fn last(&self) -> u32 {
        self.expected.wrapping_sub(1)
    }

    fn place(&self, number: u32) -> Number {
        let given = self.given.iter().flatten().find(|(of, _)| *of == number);
        match given {
            _ if number == self.expected => Number::Next,
            Some((_, result)) => Number::Repeated(*result),
            None => Number::Bad,
        }
    }

    /// Notes the answer to a request.
    fn note(&mut self, number: u32, result: ReConfigResult) {
        if number == self.expected {
            self.expected = self.expected.wrapping_add(1);
            self.given = [Some((number, result)), self.given[0]];
        } else if let Some(given) = self.given.iter_mut().flatten().find(|(of, _)| *of == number) {
            given.1 = result;
        }
    }
}

impl Association {
    /// Handles a RE-CONFIG chunk (RFC 6525 §5.2.1). An end that did not announce the extension
    /// skips it in silence, as the type of the chunk says.
    pub(crate) fn on_re_config(&mut self, now: Instant, from: AddressPair, chunk: &ReConfig) {
        if !self.state.is_open() || !self.is_released() || self.reconfigure_mut().is_none() {
            return;
        }
        if !is_valid(&chunk.parameters) {
            let text = Bytes::from_static(b"RE-CONFIG with parameters that do not go together");
            self.report(ErrorCause::ProtocolViolation(text));
            return;
        }
        let mut answers = Vec::new();
        for parameter in &chunk.parameters {
            if let ReConfigParameter::Response(response) = parameter {
                self.on_response(now, response.request, response.result);
            }
            let Some(request) = parameter.request() else { continue };
            let result = self.on_request(now, from, request, parameter);
            let is_of_tsns = matches!(parameter, ReConfigParameter::AssociationReset { .. });
            let next_tsns = if is_of_tsns { self.next_tsns() } else { None };
            let answer = |result| ReConfigResponse { request, result, next_tsns };
            answers.extend(result.map(answer));
        }
        if chunk.parameters.iter().any(|parameter| parameter.request().is_some()) {
            self.answer(from, answers);
        }
    }

    /// The TSNs that the two ends give next, this end's first. Answers to SSN/TSN resets have them
    /// (RFC 6525 §4.4), refusals too: other stacks send them, and usrsctp reads no shorter answer.
    fn next_tsns(&self) -> Option<(Tsn, Tsn)> {
        let cum = self.rx.receiver.as_ref()?.tracker.cum_tsn();
        Some((self.out.highest_tsn().next(), cum.next()))
    }

    /// Sends answers to where the requests came from, and a SACK (RFC 6525 §5.2.1).
    fn answer(&mut self, to: AddressPair, answers: Vec<ReConfigResponse>) {
        let parameters: Vec<_> = answers.into_iter().map(ReConfigParameter::Response).collect();
        if !parameters.is_empty() {
            self.reply(Control::ReConfigured { chunk: ReConfig { parameters }, to });
        }
        if let Some(r) = self.rx.receiver.as_mut() {
            r.delayed.demand_now();
        }
    }

    /// Handles a request and gives its result; `None` if a request of this end answers it.
    fn on_request(
        &mut self,
        now: Instant,
        from: AddressPair,
        number: u32,
        parameter: &ReConfigParameter,
    ) -> Option<ReConfigResult> {
        let place = self.reconfigure.as_ref()?.answers.place(number);
        let result = match place {
            Number::Bad => return Some(ReConfigResult::BAD_SEQUENCE_NUMBER),
            Number::Repeated(result) => return Some(result),
            Number::Next => match parameter {
                ReConfigParameter::OutgoingReset(reset) => {
                    self.end_request_by(now, |sent| {
                        // E1: such a request may answer one of this end.
                        let is_reset = matches!(sent.job.request, StreamRequest::ResetIncoming(_));
                        is_reset && sent.number == reset.response
                    });
                    self.reset_incoming(from, reset)
                }
                ReConfigParameter::IncomingReset { streams, .. } => {
                    self.reset_outgoing_for_peer(number, streams)
                }
                // An end may deny any request (§5.2.1). This one denies to begin with other TSNs.
                ReConfigParameter::AssociationReset { .. } => ReConfigResult::DENIED,
                ReConfigParameter::AddOutgoing { streams, .. } => self.add_incoming(now, *streams),
                ReConfigParameter::AddIncoming { streams, .. } => {
                    self.add_outgoing_for_peer(number, *streams)
                }
                ReConfigParameter::Response(_) => return None,
            },
        };
        let r = self.reconfigure.as_mut()?;
        r.answers.note(number, result);
        // Sent at once, the request that the peer asked for is also the answer (§5.2.3, F1).
        let answers = |job: &Job| job.answers == Some(number);
        let is_reset = matches!(parameter, ReConfigParameter::IncomingReset { .. });
        let is_first = r.sent.is_none() && r.waiting.front().is_some_and(answers);
        let is_answered = is_reset && is_first && self.queue.may_request_reset();
        (!is_answered).then_some(result)
    }

    /// The peer resets streams that it sends on (RFC 6525 §5.2.2).
    fn reset_incoming(&mut self, from: AddressPair, reset: &OutgoingReset) -> ReConfigResult {
        let (Some(receiver), Some(r)) = (self.rx.receiver.as_mut(), self.reconfigure.as_mut())
        else {
            return ReConfigResult::DENIED;
        };
        let OutgoingReset { request: number, last_tsn, ref streams, .. } = *reset;
        let exists = |stream: &StreamId| usize::from(stream.0) < receiver.inbound.streams();
        let cum = receiver.tracker.cum_tsn();
        if !streams.iter().all(exists) {
            return ReConfigResult::WRONG_SSN;
        }
        if r.answers.deferred.is_some() {
            return ReConfigResult::REQUEST_IN_PROGRESS;
        }
        if last_tsn.gt(cum) {
            // No end has more TSNs in flight than gap ack blocks can tell of.
            if last_tsn.distance_from(cum) > MAX_TSN_AHEAD || !self.state.may_receive_data() {
                return ReConfigResult::DENIED;
            }
            let streams = streams.clone();
            r.answers.deferred = Some(Deferred { number, last_tsn, streams, from });
            return ReConfigResult::IN_PROGRESS;
        }
        self.perform_reset(streams)
    }

    fn perform_reset(&mut self, streams: &[StreamId]) -> ReConfigResult {
        let is_done = self.rx.receiver.as_mut().is_some_and(|r| r.inbound.reset_streams(streams));
        if !is_done {
            return ReConfigResult::WRONG_SSN;
        }
        // The application can read all that was sent before the reset before it learns of it.
        self.tell_if_readable();
        self.events.push(Event::IncomingStreamsReset { streams: streams.to_vec() });
        ReConfigResult::PERFORMED
    }

    /// Performs a reset that waited for TSNs, once all have arrived, and says so (E3 to E6).
    #[inline]
    pub(crate) fn end_deferred_reset(&mut self) {
        if self.reconfigure.as_ref().is_some_and(|r| r.answers.deferred.is_some()) {
            self.perform_deferred_reset();
        }
    }

    #[inline(never)]
    fn perform_deferred_reset(&mut self) {
        let Some(cum) = self.rx.receiver.as_ref().map(|r| r.tracker.cum_tsn()) else { return };
        let Some(r) = self.reconfigure.as_mut() else { return };
        let due = r.answers.deferred.take_if(|deferred| deferred.last_tsn.le(cum));
        let Some(Deferred { number, streams, from, .. }) = due else { return };
        let result = self.perform_reset(&streams);
        if let Some(r) = self.reconfigure.as_mut() {
            r.answers.note(number, result);
        }
        self.answer(from, vec![ReConfigResponse { request: number, result, next_tsns: None }]);
    }

    /// True if user data belongs to the time after a reset that waits for TSNs. It is not taken, so
    /// that the peer sends it again (E2).
    #[inline]
    pub(crate) fn awaits_reset(&self, stream: StreamId, tsn: Tsn) -> bool {
        let deferred = self.reconfigure.as_ref().and_then(|r| r.answers.deferred.as_ref());
        deferred.is_some_and(|deferred| {
            let is_of_it = deferred.streams.is_empty() || deferred.streams.contains(&stream);
            is_of_it && tsn.gt(deferred.last_tsn)
        })
    }

    /// The peer wants this end to reset streams that it sends on (RFC 6525 §5.2.3).
    fn reset_outgoing_for_peer(&mut self, number: u32, streams: &[StreamId]) -> ReConfigResult {
        let exists = |stream: &StreamId| stream.0 < self.agreed.streams_out;
        if !streams.iter().all(exists) {
            return ReConfigResult::WRONG_SSN;
        }
        if self.queue.resets_all(streams) || self.queue.are_reset(streams) {
            return ReConfigResult::NOTHING_TO_DO;
        }
        if self.queue.resets_any(streams) {
            return ReConfigResult::REQUEST_IN_PROGRESS;
        }
        if !self.may_ask_for_peer() || streams.len() > MAX_LISTED {
            return ReConfigResult::DENIED;
        }
        self.queue.begin_reset(streams);
        self.push_job(StreamRequest::ResetOutgoing(streams.to_vec()), Some(number));
        ReConfigResult::PERFORMED
    }

    /// True if this end may send a request that the peer asks for.
    fn may_ask_for_peer(&self) -> bool {
        let has_room = self.reconfigure.as_ref().is_some_and(|r| r.waiting.len() < MAX_WAITING);
        has_room && matches!(self.state, State::Established)
    }

    /// The peer adds streams that it sends on (RFC 6525 §5.2.5).
    fn add_incoming(&mut self, now: Instant, count: u16) -> ReConfigResult {
        let limit = usize::from(self.config.inbound_streams);
        let may_receive = self.state.may_receive_data();
        let Some(r) = self.rx.receiver.as_mut() else { return ReConfigResult::DENIED };
        let streams = r.inbound.streams() + usize::from(count);
        if count == 0 || streams > limit || !may_receive {
            return ReConfigResult::DENIED;
        }
        r.inbound.add_streams(count);
        let streams = u16::try_from(streams).unwrap_or(u16::MAX);
        self.events.push(Event::IncomingStreamsAdded { added: count, streams });
        // Some ends answer the request to add streams by doing it, and by nothing else.
        self.end_request_by(now, |sent| matches!(sent.job.request, StreamRequest::AddIncoming(_)));
        ReConfigResult::PERFORMED
    }

    /// Ends the request of this end that is not answered, if a request of the peer is its answer.
    fn end_request_by(&mut self, now: Instant, is_answered: impl Fn(&Sent) -> bool) {
        let sent = self.reconfigure.as_ref().and_then(|r| r.sent.as_ref());
        if let Some(number) = sent.filter(|sent| is_answered(sent)).map(|sent| sent.number) {
            self.on_response(now, number, ReConfigResult::PERFORMED);
        }
    }

    /// The peer wants this end to add streams that it sends on (RFC 6525 §5.2.6).
    fn add_outgoing_for_peer(&mut self, number: u32, count: u16) -> ReConfigResult {
        let to_add = self.reconfigure.as_ref().map_or(0, |r| r.streams_to_add());
        let streams = usize::from(self.agreed.streams_out) + to_add + usize::from(count);
        // The peer gets no more streams of this end than it may have the other way.
        let limit = self.config.inbound_streams.max(self.config.outbound_streams);
        if count == 0 || streams > usize::from(limit) || !self.may_ask_for_peer() {
            return ReConfigResult::DENIED;
        }
        self.push_job(StreamRequest::AddOutgoing(count), Some(number));
        ReConfigResult::PERFORMED
    }
}

/// True if a chunk may have these parameters (RFC 6525 §3.1).
fn is_valid(parameters: &[ReConfigParameter]) -> bool {
    use ReConfigParameter::{
        AddIncoming, AddOutgoing, IncomingReset, OutgoingReset as Outgoing, Response,
    };
    match parameters {
        [] | [_] => true,
        [one, other] => {
            let goes = |a: &ReConfigParameter, b: &ReConfigParameter| {
                matches!(
                    (a, b),
                    (Outgoing(_), IncomingReset { .. } | Response(_))
                        | (AddOutgoing { .. }, AddIncoming { .. })
                        | (Response(_), Response(_))
                )
            };
            goes(one, other) || goes(other, one)
        }
        _ => false,
    }
}
