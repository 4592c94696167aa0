//! Stream reconfiguration (RFC 6525): who has it, what an end asks for and when, and how it answers
//! the peer. `docs/rfc6525.md` names the test for each rule.

use bytes::Bytes;
use manypath_proto::testing::*;
use manypath_proto::{
    Event, ReconfigureError, RequestOutcome, SendError, SendOptions, StreamId, StreamRequest,
};
use manypath_wire::{
    Chunk, OutgoingReset, Parameter, ReConfig, ReConfigParameter, ReConfigResponse, ReConfigResult,
    Tsn, chunk_type,
};

use super::common::announced;

fn announcement() -> Parameter {
    Parameter::SupportedExtensions(vec![chunk_type::RE_CONFIG, chunk_type::I_DATA].into())
}

fn with_extension() -> Setup {
    Setup::client().set("stream_reconfiguration", "true").set("max_burst", "0")
}

/// A client with the extension, as its peer. Ten streams each way, one path.
fn client() -> Script {
    of(with_extension())
}

fn of(setup: Setup) -> Script {
    let mut t = setup.start();
    t.connect_to(init_ack().param(announcement()));
    t
}

/// A client whose streams 0 and 1 have sent and received two messages each, all acknowledged.
fn used() -> Script {
    let mut t = client();
    for stream in [0, 1, 0, 1] {
        t.try_send(stream, 10).expect("room");
    }
    t.peer(sack(4));
    t.peer([data(1), data(2).stream(1, 0), data(3).stream(0, 1), data(4).stream(1, 1)]);
    while t.recv().is_some() {}
    t.take_sent();
    t.events();
    t
}

/// The number of the endpoint's first request (RFC 6525 §4.1).
fn first_number(t: &Script) -> u32 {
    t.view().1.next().0
}

/// Sends one RE-CONFIG chunk of the peer.
fn tell(t: &mut Script, parameters: impl Into<Vec<ReConfigParameter>>) {
    t.peer(re_config(parameters));
}

fn ids(streams: &[u16]) -> Vec<StreamId> {
    streams.iter().map(|stream| StreamId(*stream)).collect()
}

fn outgoing(request: u32, last_tsn: u32, streams: &[u16]) -> ReConfigParameter {
    let (last_tsn, streams) = (Tsn(last_tsn), ids(streams));
    ReConfigParameter::OutgoingReset(OutgoingReset { request, response: 0, last_tsn, streams })
}

fn incoming(request: u32, streams: &[u16]) -> ReConfigParameter {
    ReConfigParameter::IncomingReset { request, streams: ids(streams) }
}

fn response(request: u32, result: ReConfigResult) -> ReConfigParameter {
    ReConfigParameter::Response(ReConfigResponse { request, result, next_tsns: None })
}

/// The parameters of all RE-CONFIG chunks that were sent.
fn said(t: &mut Script) -> Vec<ReConfigParameter> {
    let chunks = t.take_sent().into_iter().flat_map(|s| s.packet.chunks().collect::<Vec<_>>());
    let parameters = |chunk| match chunk {
        Ok(Chunk::ReConfig(chunk)) => chunk.parameters,
        _ => Vec::new(),
    };
    chunks.flat_map(parameters).collect()
}

/// The stream and the SSN of all DATA that was sent.
fn ssns(t: &mut Script) -> Vec<(u16, u16)> {
    let chunks = t.take_sent().into_iter().flat_map(|s| s.packet.chunks().collect::<Vec<_>>());
    let ssn = |chunk| match chunk {
        Ok(Chunk::Data(data)) => Some((data.stream.0, data.ssn.0)),
        _ => None,
    };
    chunks.filter_map(ssn).collect()
}

fn reset(t: &mut Script, streams: &[u16]) -> Result<(), ReconfigureError> {
    t.with(|a, now| a.reset_streams(now, &ids(streams)))
}

/// The answers to our requests among the events.
fn outcomes(t: &mut Script) -> Vec<RequestOutcome> {
    let outcome = |event| match event {
        Event::StreamsReconfigured { outcome, .. } => Some(outcome),
        _ => None,
    };
    t.events().into_iter().filter_map(outcome).collect()
}

// ---- Who has it (§5.1.1) ----

#[test]
fn re_config_is_announced_only_if_the_extension_is_on() {
    let types = |is_on: &str| {
        let mut t = Setup::client()
            .set("stream_reconfiguration", is_on)
            .set("partial_reliability", "false")
            .start();
        t.connect();
        announced(&t.expect_init())
    };
    assert_eq!(types("true"), [chunk_type::RE_CONFIG], "RFC 6525 §5.1.1");
    assert_eq!(types("false"), []);
}

#[test]
fn nothing_is_asked_of_a_peer_without_the_extension() {
    let setup = |ours: &str| Setup::client().set("stream_reconfiguration", ours);
    let mut without = setup("true").established();
    let mut off = setup("false").start();
    off.connect_to(init_ack().param(announcement()));
    for t in [&mut without, &mut off] {
        assert!(!t.assoc().reconfigures());
        assert_eq!(reset(t, &[]), Err(ReconfigureError::NotSupported), "RFC 6525 §5.1.1");
        let asked = t.with(|a, now| a.request_stream_reset(now, &[]));
        assert_eq!(asked, Err(ReconfigureError::NotSupported));
        assert_eq!(t.with(|a, now| a.add_streams(now, 1, 1)), Err(ReconfigureError::NotSupported));
        t.expect_nothing();
        // The type says to skip it in silence.
        t.peer([re_config([incoming(1, &[])]), heartbeat(b"alive")]);
        t.expect("HEARTBEAT ACK");
        t.expect_nothing();
    }
}

#[test]
fn nothing_can_be_asked_before_the_association_is_open_or_while_it_closes() {
    let mut t = with_extension().start();
    t.connect();
    assert_eq!(reset(&mut t, &[0]), Err(ReconfigureError::NotOpen));
    let mut t = client();
    t.send(10);
    t.with(|a, now| a.shutdown(now));
    assert_eq!(reset(&mut t, &[0]), Err(ReconfigureError::NotOpen));
    assert_eq!(t.with(|a, now| a.add_streams(now, 1, 0)), Err(ReconfigureError::NotOpen));
}

// ---- Requests (§5.1) ----

#[test]
fn a_reset_carries_its_number_the_last_tsn_and_the_streams() {
    let mut t = used();
    let first = first_number(&t);
    assert_eq!(reset(&mut t, &[1, 0]), Ok(()));
    let last_tsn = t.view().1.add(4);
    let expected = OutgoingReset { request: first, response: 0, last_tsn, streams: ids(&[1, 0]) };
    assert_eq!(said(&mut t), [ReConfigParameter::OutgoingReset(expected)], "RFC 6525 §5.1.2");
    tell(&mut t, [response(first, ReConfigResult::PERFORMED)]);
    let request = StreamRequest::ResetOutgoing(ids(&[1, 0]));
    let outcome = RequestOutcome::Performed;
    assert_eq!(t.events(), [Event::StreamsReconfigured { request, outcome, by_peer: false }]);
    assert_eq!(reset(&mut t, &[]), Ok(()));
    let said = said(&mut t);
    let [ReConfigParameter::OutgoingReset(all)] = &said[..] else { panic!("{said:?}") };
    assert_eq!((all.request, &all.streams[..]), (first.wrapping_add(1), &[][..]));
}

#[test]
fn messages_given_after_the_reset_wait_for_its_answer_and_count_from_0() {
    for (is_all, result) in [(false, ReConfigResult::PERFORMED), (true, ReConfigResult::PERFORMED)]
    {
        let mut t = used();
        let first = first_number(&t);
        reset(&mut t, if is_all { &[] } else { &[1] }).expect("taken");
        t.take_sent();
        for stream in [0, 1, 1] {
            t.try_send(stream, 10).expect("room");
        }
        let others = ssns(&mut t);
        assert_eq!(others, if is_all { vec![] } else { vec![(0, 2)] }, "RFC 6525 §5.1.2, A1");
        t.run_ms(100);
        assert_eq!(ssns(&mut t), []);
        tell(&mut t, [response(first, result)]);
        let expected = if is_all { vec![(0, 0), (1, 0), (1, 1)] } else { vec![(1, 0), (1, 1)] };
        assert_eq!(ssns(&mut t), expected, "RFC 6525 §5.2.7");
    }
}

#[test]
fn messages_given_before_the_reset_leave_before_the_request() {
    let mut t = of(with_extension().set("initial_cwnd", "2 pmdcs"));
    let first = first_number(&t);
    t.with(|a, now| {
        for stream in [1, 2, 1] {
            let options = SendOptions { stream: StreamId(stream), ..SendOptions::default() };
            a.send(now, options, Bytes::from(vec![0; 2880])).expect("room");
        }
        a.reset_streams(now, &ids(&[1])).expect("taken");
    });
    t.try_send(1, 10).expect("room");
    assert_eq!(said(&mut t), [], "a message that has begun must be ended first");
    t.peer(sack(2));
    t.peer(sack(4));
    let last = t.take_sent().into_iter().flat_map(|s| s.packet.chunks().collect::<Vec<_>>()).last();
    let Some(Ok(Chunk::ReConfig(chunk))) = last else { panic!("{last:?}") };
    let [ReConfigParameter::OutgoingReset(reset)] = &chunk.parameters[..] else { panic!() };
    assert_eq!((reset.request, reset.last_tsn), (first, t.view().1.add(6)), "RFC 6525 §5.1.2, A3");
    t.peer(sack(6));
    assert_eq!(ssns(&mut t), []);
    tell(&mut t, [response(first, ReConfigResult::PERFORMED)]);
    assert_eq!(ssns(&mut t), [(1, 0)]);
}

#[test]
fn after_a_refusal_the_numbers_go_on() {
    let refusals = [
        (ReConfigResult::DENIED, RequestOutcome::Denied),
        (ReConfigResult::WRONG_SSN, RequestOutcome::WrongStream),
        (ReConfigResult::REQUEST_IN_PROGRESS, RequestOutcome::RequestInProgress),
        (ReConfigResult::BAD_SEQUENCE_NUMBER, RequestOutcome::BadSequenceNumber),
        (ReConfigResult(77), RequestOutcome::Other(77)),
    ];
    for (result, outcome) in refusals {
        let mut t = used();
        let first = first_number(&t);
        reset(&mut t, &[1]).expect("taken");
        t.try_send(1, 10).expect("room");
        t.take_sent();
        tell(&mut t, [response(first, result)]);
        assert_eq!(ssns(&mut t), [(1, 2)], "RFC 6525 §5.2.7: {result:?}");
        assert_eq!(outcomes(&mut t), [outcome]);
    }
}

#[test]
fn there_is_one_request_in_flight() {
    let mut t = used();
    let first = first_number(&t);
    t.with(|a, now| {
        a.reset_streams(now, &ids(&[0])).expect("taken");
        a.reset_streams(now, &ids(&[1])).expect("taken");
        a.request_stream_reset(now, &ids(&[2])).expect("taken");
        a.add_streams(now, 3, 4).expect("taken");
    });
    let mut kinds = Vec::new();
    for n in 0..5 {
        let said = said(&mut t);
        let [one] = &said[..] else { panic!("RFC 6525 §5.1.1: {said:?}") };
        assert_eq!(one.request(), Some(first.wrapping_add(n)));
        kinds.push(one.clone());
        tell(&mut t, [response(first.wrapping_add(n), ReConfigResult::PERFORMED)]);
    }
    let number = |n: u32| first.wrapping_add(n);
    assert_eq!(
        kinds[2],
        ReConfigParameter::IncomingReset { request: number(2), streams: ids(&[2]) }
    );
    assert_eq!(kinds[3], ReConfigParameter::AddOutgoing { request: number(3), streams: 3 });
    assert_eq!(kinds[4], ReConfigParameter::AddIncoming { request: number(4), streams: 4 });
    assert_eq!(outcomes(&mut t), [RequestOutcome::Performed; 5]);
}

#[test]
fn a_request_is_repeated_with_twice_the_wait_and_counts_as_a_failure() {
    let mut t = used();
    let start = t.now();
    reset(&mut t, &[1]).expect("taken");
    let mut times = Vec::new();
    t.run_ms(8000);
    for sent in t.take_sent() {
        if let Some(Ok(Chunk::ReConfig(chunk))) = sent.packet.chunks().next() {
            times.push(((sent.at - start).as_millis(), chunk));
        }
    }
    let waits: Vec<_> = times.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert_eq!(waits, [1000, 2000, 4000], "RFC 6525 §5.1.1");
    assert!(times.windows(2).all(|pair| pair[0].1 == pair[1].1), "the same chunk");
    assert!(t.path(1).counters.t3_expirations == 0);
    // With nobody there the association ends as with data (RFC 9260 §8.1).
    t.run_ms(600_000);
    assert!(t.assoc().closed().is_some());
}

#[test]
fn a_request_is_repeated_on_another_path() {
    let mut t = of(with_extension().paths(2));
    reset(&mut t, &[1]).expect("taken");
    t.run_ms(1500);
    let all = t.all_sent();
    let paths: Vec<_> = all.iter().filter(|words| words.ends_with("RE-CONFIG")).collect();
    assert_eq!(paths, ["P1 RE-CONFIG", "P2 RE-CONFIG"], "RFC 9260 §6.4");
}

#[test]
fn a_request_in_progress_is_repeated_without_counting_a_failure() {
    let mut t = used();
    let first = first_number(&t);
    t.try_send(0, 10).expect("room");
    reset(&mut t, &[1]).expect("taken");
    t.take_sent();
    t.peer(sack(5));
    tell(&mut t, [response(first, ReConfigResult::IN_PROGRESS)]);
    for _ in 0..20 {
        tell(&mut t, [response(first, ReConfigResult::IN_PROGRESS)]);
        t.take_sent();
        t.run_ms(1000);
        assert!(!said(&mut t).is_empty(), "RFC 6525 §5.2.7");
    }
    assert!(t.assoc().closed().is_none());
    assert_eq!(outcomes(&mut t), []);
}

/// The answers go on to a path that is dead, or the peer's old address.
#[test]
fn a_request_in_progress_that_is_answered_no_more_takes_another_path() {
    let mut t = of(with_extension().paths(2));
    let first = first_number(&t);
    reset(&mut t, &[1]).expect("taken");
    tell(&mut t, [response(first, ReConfigResult::IN_PROGRESS)]);
    t.run_ms(2500);
    let all = t.all_sent();
    let paths: Vec<_> = all.iter().filter(|words| words.ends_with("RE-CONFIG")).collect();
    assert_eq!(paths, ["P1 RE-CONFIG", "P1 RE-CONFIG", "P2 RE-CONFIG"]);
}

#[test]
fn a_request_in_progress_is_repeated_as_soon_as_the_peer_has_what_it_waits_for() {
    let mut t = used();
    let first = first_number(&t);
    t.try_send(0, 10).expect("room");
    reset(&mut t, &[1]).expect("taken");
    tell(&mut t, [response(first, ReConfigResult::IN_PROGRESS)]);
    t.take_sent();
    t.peer(sack(5));
    assert_eq!(said(&mut t).len(), 1);
    tell(&mut t, [response(first, ReConfigResult::IN_PROGRESS)]);
    assert_eq!(said(&mut t).len(), 0, "a peer that has all is asked again in an RTO");
}

#[test]
fn an_answer_to_no_request_in_flight_is_discarded() {
    let mut t = used();
    let first = first_number(&t);
    tell(&mut t, [response(first, ReConfigResult::PERFORMED)]);
    reset(&mut t, &[1]).expect("taken");
    tell(&mut t, [response(first.wrapping_add(1), ReConfigResult::PERFORMED)]);
    tell(&mut t, [response(first.wrapping_sub(1), ReConfigResult::DENIED)]);
    assert_eq!(outcomes(&mut t), [], "RFC 6525 §5.2.7");
    tell(&mut t, [response(first, ReConfigResult::PERFORMED)]);
    tell(&mut t, [response(first, ReConfigResult::DENIED)]);
    assert_eq!(outcomes(&mut t), [RequestOutcome::Performed]);
}

#[test]
fn requests_are_checked_and_limited() {
    let mut t = used();
    let none = Err(ReconfigureError::NoSuchStream { stream: 10, streams: 10 });
    assert_eq!(reset(&mut t, &[3, 10]), none);
    assert_eq!(t.with(|a, now| a.request_stream_reset(now, &ids(&[10]))), none);
    let too_many = Err(ReconfigureError::TooManyStreams);
    assert_eq!(t.with(|a, now| a.add_streams(now, 65_526, 0)), too_many);
    assert_eq!(t.with(|a, now| a.add_streams(now, 0, 65_526)), too_many);
    assert_eq!(t.with(|a, now| a.add_streams(now, 0, 0)), Ok(()));
    t.expect_nothing();
    assert_eq!(reset(&mut t, &[3]), Ok(()));
    assert_eq!(reset(&mut t, &[2, 3]), Err(ReconfigureError::InProgress));
    assert_eq!(reset(&mut t, &[]), Err(ReconfigureError::InProgress));
    for _ in 0..16 {
        assert_eq!(t.with(|a, now| a.add_streams(now, 1, 0)), Ok(()));
    }
    let limit = Err(ReconfigureError::TooManyRequests { limit: 16 });
    assert_eq!(t.with(|a, now| a.add_streams(now, 1, 0)), limit);
}

#[test]
fn a_long_list_is_asked_for_in_parts_that_fit_packets() {
    let mut t = with_extension().set("outbound_streams", "1200").start();
    t.connect_to(init_ack().param(announcement()).streams(1200, 1200));
    let first = first_number(&t);
    let all: Vec<u16> = (0..1200).collect();
    reset(&mut t, &all).expect("taken");
    let mut listed = Vec::new();
    for n in 0..3 {
        let sent = t.take_sent();
        assert!(sent.iter().all(|s| s.packet.bytes().len() <= 1280 - 48));
        for chunk in sent.iter().flat_map(|s| s.packet.chunks().collect::<Vec<_>>()) {
            let Ok(Chunk::ReConfig(ReConfig { parameters })) = chunk else { continue };
            let [ReConfigParameter::OutgoingReset(reset)] = &parameters[..] else { panic!() };
            listed.extend(reset.streams.iter().map(|stream| stream.0));
        }
        tell(&mut t, [response(first.wrapping_add(n), ReConfigResult::PERFORMED)]);
    }
    assert_eq!(listed, all);
}

#[test]
fn new_streams_can_be_used_once_the_peer_has_agreed() {
    let mut t = used();
    let first = first_number(&t);
    let none = |streams| Err(SendError::NoSuchStream { stream: 12, streams });
    t.with(|a, now| a.add_streams(now, 3, 0)).expect("taken");
    assert_eq!(t.try_send(12, 1), none(10), "RFC 6525 §5.1.5");
    tell(&mut t, [response(first, ReConfigResult::DENIED)]);
    assert_eq!(t.try_send(12, 1), none(10));
    t.with(|a, now| a.add_streams(now, 3, 0)).expect("taken");
    tell(&mut t, [response(first.wrapping_add(1), ReConfigResult::PERFORMED)]);
    assert_eq!((t.try_send(12, 1), t.assoc().outbound_streams()), (Ok(()), 13));
    let outcomes = outcomes(&mut t);
    assert_eq!(outcomes, [RequestOutcome::Denied, RequestOutcome::Performed]);
}

// ---- Answers (§5.2) ----

#[test]
fn the_peers_reset_makes_its_streams_begin_again() {
    let mut t = used();
    tell(&mut t, [outgoing(1, 4, &[1])]);
    let sent = t.all_sent().join(", ");
    assert_eq!(sent, "RE-CONFIG, SACK 4", "RFC 6525 §5.2.1: a SACK, too");
    assert_eq!(t.events(), [Event::IncomingStreamsReset { streams: ids(&[1]) }]);
    t.peer([data(5).stream(1, 0), data(6).stream(0, 2)]);
    assert!(t.recv().is_some() && t.recv().is_some());
    tell(&mut t, [outgoing(2, 6, &[])]);
    assert_eq!(said(&mut t), [response(2, ReConfigResult::PERFORMED)]);
    t.peer([data(7).stream(0, 0), data(8).stream(1, 0), data(9).stream(9, 0)]);
    assert!((0..3).all(|_| t.recv().is_some()), "RFC 6525 §5.2.2, E3");
}

#[test]
fn a_reset_is_performed_with_i_data_too() {
    let mut t = of(with_extension().set("message_interleaving", "true"));
    assert!(t.assoc().interleaves());
    t.peer([i_data(1).message(1, 0, 0), i_data(2).message(1, 1, 0), i_data(3).message(2, 0, 0)]);
    assert!((0..3).all(|_| t.recv().is_some()));
    tell(&mut t, [outgoing(1, 3, &[1])]);
    t.peer([i_data(4).message(1, 0, 0), i_data(5).message(2, 1, 0)]);
    assert!((0..2).all(|_| t.recv().is_some()), "RFC 8260 §2.3.2");
    let first = first_number(&t);
    t.try_send(1, 10).expect("room");
    reset(&mut t, &[1]).expect("taken");
    tell(&mut t, [response(first, ReConfigResult::PERFORMED)]);
    t.take_sent();
    t.try_send(1, 10).expect("room");
    t.next_sent();
    assert_eq!(t.last_i_data()[0].mid.0, 0);
}

#[test]
fn a_reset_waits_for_tsns_that_were_sent_before_it() {
    let mut t = used();
    t.peer(data(6).stream(1, 3));
    tell(&mut t, [outgoing(1, 6, &[1])]);
    assert_eq!(said(&mut t), [response(1, ReConfigResult::IN_PROGRESS)], "RFC 6525 §5.2.2, E2");
    assert_eq!(outcomes(&mut t), []);
    // Asked again, it still waits.
    tell(&mut t, [outgoing(1, 6, &[1])]);
    assert_eq!(said(&mut t), [response(1, ReConfigResult::IN_PROGRESS)]);
    t.peer(data(5).stream(1, 2));
    assert_eq!(said(&mut t), [response(1, ReConfigResult::PERFORMED)], "E5, E6");
    assert_eq!(
        t.events(),
        [Event::Readable, Event::IncomingStreamsReset { streams: ids(&[1]) }],
        "what was sent before can be read before"
    );
    assert!(t.recv().is_some() && t.recv().is_some());
    tell(&mut t, [outgoing(1, 6, &[1])]);
    assert_eq!(said(&mut t), [response(1, ReConfigResult::PERFORMED)]);
    t.peer(data(7).stream(1, 0));
    assert!(t.recv().is_some());
}

#[test]
fn data_of_after_a_reset_that_waits_is_taken_after_it() {
    let mut t = used();
    tell(&mut t, [outgoing(1, 5, &[1])]);
    t.take_sent();
    t.peer([data(6).stream(1, 0), data(7).stream(0, 2)]);
    assert!(t.recv().is_some(), "other streams go on");
    assert!(t.recv().is_none(), "RFC 6525 §5.2.2, E2");
    t.peer(data(5).stream(1, 2));
    t.peer(data(6).stream(1, 0));
    assert!(t.recv().is_some() && t.recv().is_some() && t.recv().is_none());
    assert!(t.assoc().closed().is_none());
}

#[test]
fn a_repeated_request_gets_the_same_answer_and_does_nothing() {
    let mut t = used();
    for _ in 0..2 {
        tell(&mut t, [outgoing(1, 4, &[1])]);
        assert_eq!(said(&mut t), [response(1, ReConfigResult::PERFORMED)], "RFC 6525 §5.2.1");
    }
    assert_eq!(t.events().len(), 1);
    let add = ReConfigParameter::AddOutgoing { request: 2, streams: 5 };
    for _ in 0..2 {
        tell(&mut t, [add.clone()]);
        assert_eq!(said(&mut t), [response(2, ReConfigResult::PERFORMED)]);
        assert_eq!(t.assoc().inbound_streams(), 15);
    }
    // The last two are known, as a chunk may have two requests.
    tell(&mut t, [outgoing(1, 4, &[1])]);
    assert_eq!(said(&mut t), [response(1, ReConfigResult::PERFORMED)]);
}

#[test]
fn a_request_whose_number_is_not_the_next_is_refused() {
    let mut t = used();
    for number in [0, 2, 77, u32::MAX] {
        tell(&mut t, [outgoing(number, 4, &[1])]);
        let refused = response(number, ReConfigResult::BAD_SEQUENCE_NUMBER);
        assert_eq!(said(&mut t), [refused], "RFC 6525 §5.2.1");
    }
    assert_eq!(t.events(), []);
    tell(&mut t, [outgoing(1, 4, &[1])]);
    assert_eq!(said(&mut t), [response(1, ReConfigResult::PERFORMED)]);
}

#[test]
fn parameters_that_do_not_go_together_are_reported() {
    let add = |request| ReConfigParameter::AddOutgoing { request, streams: 1 };
    let bad = [
        vec![outgoing(1, 4, &[0]), add(2)],
        vec![add(1), add(2)],
        vec![outgoing(1, 4, &[0]), outgoing(2, 4, &[1])],
        vec![incoming(1, &[0]), response(9, ReConfigResult::DENIED)],
        vec![outgoing(1, 4, &[0]), incoming(2, &[0]), response(9, ReConfigResult::DENIED)],
    ];
    for parameters in bad {
        let mut t = used();
        tell(&mut t, parameters);
        t.expect("ERROR 13");
        assert_eq!(t.events(), [], "RFC 6525 §3.1");
    }
    let mut t = used();
    tell(&mut t, []);
    t.expect_nothing();
}

#[test]
fn two_requests_in_a_chunk_are_answered_in_a_chunk() {
    let mut t = used();
    let both = [
        ReConfigParameter::AddOutgoing { request: 1, streams: 1 },
        ReConfigParameter::AddIncoming { request: 2, streams: 2 },
    ];
    tell(&mut t, both);
    let first = first_number(&t);
    let (done, streams) = (ReConfigResult::PERFORMED, 2);
    let expected = [
        response(1, done),
        response(2, done),
        ReConfigParameter::AddOutgoing { request: first, streams },
    ];
    // The peer's own request is what it asked for, in a chunk of its own.
    let mut said = said(&mut t);
    said.sort_by_key(|parameter| parameter.request().is_some());
    assert_eq!(said, expected, "RFC 6525 §5.2.1");
}

#[test]
fn the_peer_may_ask_for_a_reset_of_what_it_receives() {
    let mut t = used();
    let first = first_number(&t);
    tell(&mut t, [incoming(1, &[1, 0])]);
    let last_tsn = t.view().1.add(4);
    let reset = OutgoingReset { request: first, response: 1, last_tsn, streams: ids(&[1, 0]) };
    let answer = [ReConfigParameter::OutgoingReset(reset)];
    assert_eq!(said(&mut t), answer, "RFC 6525 §5.2.3, §5.1.2 A4: the request is the answer");
    t.try_send(1, 10).expect("room");
    tell(&mut t, [incoming(1, &[1, 0])]);
    assert_eq!(said(&mut t), [response(1, ReConfigResult::PERFORMED)]);
    tell(&mut t, [response(first, ReConfigResult::PERFORMED)]);
    assert_eq!(ssns(&mut t), [(1, 0)]);
    let (request, outcome) =
        (StreamRequest::ResetOutgoing(ids(&[1, 0])), RequestOutcome::Performed);
    assert_eq!(t.events(), [Event::StreamsReconfigured { request, outcome, by_peer: true }]);
}

#[test]
fn a_reset_that_must_wait_is_answered_at_once_and_asked_for_later() {
    let mut t = of(with_extension().set("initial_cwnd", "1 pmdcs"));
    let first = first_number(&t);
    t.send_messages(4, 1400);
    t.take_sent();
    tell(&mut t, [incoming(1, &[0])]);
    assert_eq!(said(&mut t), [response(1, ReConfigResult::PERFORMED)]);
    t.peer(sack(1));
    t.peer(sack(3));
    let said = said(&mut t);
    let [ReConfigParameter::OutgoingReset(reset)] = &said[..] else { panic!("{said:?}") };
    assert_eq!((reset.request, reset.response), (first, 1));
}

#[test]
fn there_is_nothing_to_do_for_streams_that_are_reset_or_just_being_reset() {
    let mut t = used();
    tell(&mut t, [incoming(1, &[5, 6])]);
    let nothing = |number| [response(number, ReConfigResult::NOTHING_TO_DO)];
    assert_eq!(said(&mut t), nothing(1), "RFC 6525 §5.2.3: they are at 0");
    let first = first_number(&t);
    reset(&mut t, &[0, 1]).expect("taken");
    t.take_sent();
    tell(&mut t, [incoming(2, &[1])]);
    assert_eq!(said(&mut t), nothing(2), "RFC 6525 §5.2.3: complete overlap");
    tell(&mut t, [incoming(3, &[])]);
    assert_eq!(said(&mut t), [response(3, ReConfigResult::REQUEST_IN_PROGRESS)]);
    tell(&mut t, [response(first, ReConfigResult::PERFORMED)]);
    tell(&mut t, [incoming(4, &[0, 1])]);
    assert_eq!(said(&mut t), nothing(4));
}

#[test]
fn a_request_of_the_peer_can_answer_one_of_ours() {
    let mut t = used();
    let first = first_number(&t);
    t.with(|a, now| a.request_stream_reset(now, &ids(&[1]))).expect("taken");
    assert_eq!(said(&mut t), [incoming(first, &[1])], "RFC 6525 §5.1.3");
    let (last_tsn, streams) = (Tsn(4), ids(&[1]));
    let reset = OutgoingReset { request: 1, response: first, last_tsn, streams };
    tell(&mut t, [ReConfigParameter::OutgoingReset(reset)]);
    let request = StreamRequest::ResetIncoming(ids(&[1]));
    let outcome = RequestOutcome::Performed;
    let answered = Event::StreamsReconfigured { request, outcome, by_peer: false };
    let done = Event::IncomingStreamsReset { streams: ids(&[1]) };
    assert_eq!(t.events(), [answered, done], "RFC 6525 §5.2.2, E1");
    t.take_sent();
    t.run_ms(5000);
    assert_eq!(said(&mut t), [], "the timer is stopped");
}

#[test]
fn a_request_of_the_peer_answers_no_other_request_of_ours() {
    let mut t = used();
    let first = first_number(&t);
    reset(&mut t, &[1]).expect("taken");
    let (last_tsn, streams) = (Tsn(4), ids(&[1]));
    let reset = OutgoingReset { request: 1, response: first, last_tsn, streams };
    tell(&mut t, [ReConfigParameter::OutgoingReset(reset)]);
    assert_eq!(outcomes(&mut t), [], "RFC 6525 §4.1: there it names the last request that came");
}

#[test]
fn a_reset_of_streams_that_do_not_exist_is_refused() {
    let mut t = used();
    tell(&mut t, [outgoing(1, 4, &[0, 10])]);
    tell(&mut t, [incoming(2, &[0, 10])]);
    let wrong = |number| response(number, ReConfigResult::WRONG_SSN);
    assert_eq!(said(&mut t), [wrong(1), wrong(2)]);
    assert_eq!(t.events(), []);
}

#[test]
fn a_reset_across_a_message_that_never_came_is_refused() {
    let mut t = used();
    t.peer(data(5).stream(1, 3));
    tell(&mut t, [outgoing(1, 5, &[1])]);
    assert_eq!(said(&mut t), [response(1, ReConfigResult::WRONG_SSN)]);
    tell(&mut t, [outgoing(2, 5 + 70_000, &[1])]);
    assert_eq!(said(&mut t), [response(2, ReConfigResult::DENIED)]);
    assert_eq!(t.events(), []);
}

#[test]
fn an_association_reset_is_denied() {
    let mut t = used();
    // Both ends have given four TSNs. usrsctp takes no answer without the next ones.
    let next_tsns = Some((t.view().1.add(5), Tsn(5)));
    let result = ReConfigResult::DENIED;
    let denied = [ReConfigParameter::Response(ReConfigResponse { request: 1, result, next_tsns })];
    for _ in 0..2 {
        tell(&mut t, [ReConfigParameter::AssociationReset { request: 1 }]);
        assert_eq!(said(&mut t), denied, "RFC 6525 §4.4, §5.2.1");
    }
    t.peer(data(5).stream(0, 2));
    assert!(t.recv().is_some(), "nothing has changed");
}

#[test]
fn the_peer_may_add_streams_up_to_a_limit() {
    let mut t = of(with_extension().set("inbound_streams", "20"));
    let add = |request, streams| ReConfigParameter::AddOutgoing { request, streams };
    for (number, count, result) in [
        (1, 11, ReConfigResult::DENIED),
        (2, 0, ReConfigResult::DENIED),
        (3, 10, ReConfigResult::PERFORMED),
        (4, 1, ReConfigResult::DENIED),
        (5, u16::MAX, ReConfigResult::DENIED),
    ] {
        tell(&mut t, [add(number, count)]);
        assert_eq!(said(&mut t), [response(number, result)], "RFC 6525 §5.2.5");
    }
    assert_eq!(t.events(), [Event::IncomingStreamsAdded { added: 10, streams: 20 }]);
    t.peer(data(1).stream(19, 0));
    assert!(t.recv().is_some());
}

#[test]
fn the_peer_may_ask_for_more_streams_up_to_a_limit() {
    let mut t = of(with_extension().set("inbound_streams", "20"));
    let first = first_number(&t);
    let add = |request, streams| ReConfigParameter::AddIncoming { request, streams };
    tell(&mut t, [add(1, 11)]);
    tell(&mut t, [add(2, 0)]);
    let denied = |number| response(number, ReConfigResult::DENIED);
    assert_eq!(said(&mut t), [denied(1), denied(2)], "RFC 6525 §5.2.6");
    tell(&mut t, [add(3, 10)]);
    let request = ReConfigParameter::AddOutgoing { request: first, streams: 10 };
    assert_eq!(said(&mut t), [response(3, ReConfigResult::PERFORMED), request]);
    tell(&mut t, [add(4, 1)]);
    assert_eq!(said(&mut t), [denied(4)], "those that are asked for count");
    tell(&mut t, [response(first, ReConfigResult::PERFORMED)]);
    assert_eq!(t.assoc().outbound_streams(), 20);
}

#[test]
fn streams_that_the_peer_adds_at_our_request_answer_it() {
    let mut t = used();
    t.with(|a, now| a.add_streams(now, 0, 2)).expect("taken");
    tell(&mut t, [ReConfigParameter::AddOutgoing { request: 1, streams: 2 }]);
    assert_eq!(outcomes(&mut t), [RequestOutcome::Performed]);
    assert_eq!(t.assoc().inbound_streams(), 12);
}

#[test]
fn a_flood_of_requests_draws_few_answers_and_fills_no_memory() {
    let mut t = of(with_extension().set("initial_cwnd", "1 pmdcs"));
    t.send_messages(20, 1400);
    t.take_sent();
    let flood: Vec<_> = (1..500)
        .map(|request| re_config([ReConfigParameter::AddIncoming { request, streams: 1 }]))
        .collect();
    t.peer(flood);
    assert_eq!(said(&mut t).len(), 3, "two answers, and the one request that may be in flight");
    for request in 3..100 {
        tell(&mut t, [ReConfigParameter::AddIncoming { request, streams: 1 }]);
    }
    let denied = response(99, ReConfigResult::DENIED);
    assert_eq!(said(&mut t).last(), Some(&denied), "sixteen requests wait");
}

// ---- Shutdown (RFC 9260 §9.2) ----

#[test]
fn a_shutdown_gives_up_requests_that_wait_and_sends_all_messages() {
    let mut t = used();
    let first = first_number(&t);
    t.with(|a, now| {
        a.reset_streams(now, &ids(&[0])).expect("taken");
        a.reset_streams(now, &ids(&[1])).expect("taken");
    });
    t.take_sent();
    t.try_send(0, 10).expect("room");
    t.try_send(1, 10).expect("room");
    t.with(|a, now| a.shutdown(now));
    assert_eq!(outcomes(&mut t), [RequestOutcome::Cancelled]);
    assert_eq!(ssns(&mut t), [(1, 2)]);
    t.peer(sack(5));
    t.run_ms(1000);
    assert_eq!(said(&mut t).len(), 1, "a request in flight is repeated, as messages wait for it");
    tell(&mut t, [response(first, ReConfigResult::PERFORMED)]);
    assert_eq!(ssns(&mut t), [(0, 0)]);
    t.peer(sack(6));
    t.expect("SHUTDOWN 4");
}

#[test]
fn the_peers_reset_is_answered_during_a_shutdown_but_nothing_new_is_asked_for() {
    let mut t = used();
    t.try_send(0, 10).expect("room");
    t.with(|a, now| a.shutdown(now));
    t.take_sent();
    tell(&mut t, [outgoing(1, 4, &[1]), incoming(2, &[1])]);
    let answers = [response(1, ReConfigResult::PERFORMED), response(2, ReConfigResult::DENIED)];
    assert_eq!(said(&mut t), answers);
}

#[test]
fn a_restarted_peer_counts_from_its_new_initial_tsn() {
    let mut t = Setup::server().set("stream_reconfiguration", "true").start();
    t.accept(init().param(announcement()));
    tell(&mut t, [outgoing(1, 0, &[])]);
    assert_eq!(said(&mut t), [response(1, ReConfigResult::PERFORMED)]);
    t.accept(init().tag(PEER_TAG + 1).tsn(500).param(announcement()));
    tell(&mut t, [outgoing(500, 499, &[])]);
    assert_eq!(said(&mut t), [response(500, ReConfigResult::PERFORMED)]);
}
