//! Stream reconfiguration (RFC 6525) between two engines: numbers begin again while data flows,
//! through loss and over several paths. The hosts check the order of all messages of a stream.

use std::collections::BTreeMap;
use std::time::Duration;

use manypath_proto::{Event, Instant, RequestOutcome, StreamId, StreamRequest};
use manypath_sim::chunk_type::{DATA, I_DATA, RE_CONFIG};
use manypath_sim::{Host, Pair, PairBuilder, millis, secs, shared_key};
use manypath_wire::Chunk;

fn pair(preset: &str) -> PairBuilder {
    Pair::two_paths(preset).profile("fast").delay_ms(20.0).set("stream_reconfiguration", "true")
}

/// Resets streams that `a` sends on, all if none is named.
fn reset(t: &mut Pair, streams: &[u16]) {
    let now = t.net.now();
    let streams: Vec<_> = streams.iter().copied().map(StreamId).collect();
    t.a.command(|assoc| assoc.reset_streams(now, &streams)).expect("taken");
}

fn count(host: &Host, is_it: impl Fn(&Event) -> bool) -> usize {
    host.events().iter().filter(|(_, event)| is_it(event)).count()
}

fn is_performed(event: &Event) -> bool {
    matches!(event, Event::StreamsReconfigured { outcome: RequestOutcome::Performed, .. })
}

fn is_reset(event: &Event) -> bool {
    matches!(event, Event::IncomingStreamsReset { .. })
}

/// How often each number of an ordered message was sent on a stream by `a`, with other TSNs.
fn uses_of_numbers(t: &Pair, stream: u16) -> BTreeMap<u32, usize> {
    let mut tsns = BTreeMap::new();
    let of_type = |ty| t.sent(ty).by(t.a.node()).chunks().collect::<Vec<_>>();
    for (_, chunk) in [DATA, I_DATA].into_iter().flat_map(of_type) {
        let (tsn, id, number, flags) = match chunk {
            Chunk::Data(data) => (data.tsn, data.stream, u32::from(data.ssn.0), data.flags),
            Chunk::IData(data) => (data.tsn, data.stream, data.mid.0, data.flags),
            other => panic!("{other:?} is no user data"),
        };
        if id.0 == stream && flags.begin() && !flags.unordered() {
            tsns.insert(tsn.0, number);
        }
    }
    let mut uses = BTreeMap::new();
    tsns.into_values().for_each(|number| *uses.entry(number).or_default() += 1);
    uses
}

/// Messages before, between and after resets of stream 1, beside others on stream 2.
fn reset_in_traffic(pair: PairBuilder) -> Pair {
    let mut t = pair.connect();
    for round in 0..4_u16 {
        for i in 0..30_u16 {
            t.a.send(1, 1 + usize::from(i) * 400);
            t.a.send(2, 1500);
            t.a.send_unordered(1, 700);
        }
        t.run_for(Duration::from_millis(50));
        reset(&mut t, if round == 2 { &[] } else { &[1] });
        let limit = t.net.now() + Duration::from_secs(60);
        let done = 1 + usize::from(round);
        t.run_until_true(limit, |pair| count(&pair.a, is_performed) == done);
    }
    t.a.send(1, 10);
    t.run_to_end(secs(600));
    assert_eq!(t.z.received_messages(), 4 * 90 + 1);
    assert_eq!(count(&t.z, is_reset), 4);
    t
}

#[test]
fn numbers_begin_again_while_data_flows() {
    for (interleaving, scheduler) in [("false", "fcfs"), ("false", "rr"), ("true", "wfq")] {
        let pair = pair("cmt").set("message_interleaving", interleaving);
        let t = reset_in_traffic(pair.set("stream_scheduler", scheduler));
        let uses = uses_of_numbers(&t, 1);
        assert_eq!(uses[&0], 5, "RFC 6525 §5.1.2: each time from 0 on");
        assert_eq!((uses[&29], uses.len()), (4, 30), "{uses:?}");
        assert_eq!(uses_of_numbers(&t, 2)[&0], 2, "once with all streams");
    }
}

#[test]
fn resets_survive_loss_duplicates_and_reordering() {
    for (seed, preset) in (1..).zip(["cmt", "cmt-pf", "adaptive", "mtcp", "msacmt-rtv2", "sctp"]) {
        let mut pair = pair(preset).seed(seed);
        for path in 0..2 {
            pair = pair.path(path, |p| p.loss(0.05));
        }
        reset_in_traffic(pair);
    }
}

#[test]
fn resets_go_inside_protected_packets_and_wait_for_no_keys() {
    let pair = pair("cmt").keys(shared_key()).set("rekey_packets", "20");
    let mut t = pair.connect();
    for _ in 0..10 {
        for _ in 0..30 {
            t.a.send(0, 1000);
        }
        reset(&mut t, &[]);
        t.a.send(0, 100);
        t.run_for(Duration::from_millis(500));
    }
    t.run_to_end(secs(60));
    assert_eq!(t.z.received_messages(), 310);
    assert_eq!((count(&t.a, is_performed), count(&t.z, is_reset)), (10, 10));
    assert!(t.a.stats().is_some_and(|stats| stats.keys_replaced > 5), "{:?}", t.a.stats());
    assert_eq!(t.sent(RE_CONFIG).count(), 0, "none in plain");
}

#[test]
fn a_request_takes_another_path_when_its_own_is_dead() {
    let mut t = pair("cmt").connect();
    t.a.send(1, 1000);
    t.run_for(Duration::from_millis(500));
    t.net.path(0).cut();
    reset(&mut t, &[1]);
    t.a.send(1, 1000);
    t.run_until(secs(20));
    assert_eq!(t.z.received_messages(), 2);
    assert_eq!((count(&t.a, is_performed), count(&t.z, is_reset)), (1, 1));
}

#[test]
fn both_ends_reset_and_add_streams_at_the_same_time() {
    let mut t = pair("cmt").loss(0.03).connect();
    for round in 0..5 {
        for stream in 0..4 {
            t.a.send(stream, 3000);
            t.z.send(stream, 3000);
        }
        let now = t.net.now();
        for host in [&mut t.a, &mut t.z] {
            host.command(|assoc| {
                assoc.reset_streams(now, &[StreamId(1)]).expect("taken");
                assoc.request_stream_reset(now, &[StreamId(2)]).expect("taken");
                assoc.add_streams(now, 2, 1).expect("taken");
            });
        }
        t.run_until(secs(10 * (round + 1)));
    }
    assert_eq!((t.z.received_messages(), t.a.received_messages()), (20, 20));
    for host in [&t.a, &t.z] {
        let assoc = host.assoc().expect("it is open");
        assert_eq!(assoc.outbound_streams(), 16 + 5 * 3, "RFC 6525 §5.1.5, §5.1.6");
        assert_eq!(assoc.inbound_streams(), 16 + 5 * 3);
        let by_peer = |event: &Event| {
            let add = |request: &StreamRequest| matches!(request, StreamRequest::AddOutgoing(1));
            matches!(event, Event::StreamsReconfigured { request, by_peer: true, .. } if add(request))
        };
        assert_eq!(count(host, by_peer), 5);
    }
}

#[test]
fn messages_that_wait_for_a_reset_arrive_before_a_shutdown() {
    for at in [0, 5, 15, 30, 45, 60, 200] {
        let mut t = pair("cmt").connect();
        t.a.send(1, 20_000);
        t.z.send(1, 20_000);
        t.run_until(millis(500));
        reset(&mut t, &[1]);
        t.a.send(1, 20_000);
        t.run_for(Duration::from_millis(at));
        t.z.shutdown();
        t.a.shutdown();
        t.run_until(secs(10));
        assert!(t.a.closed().is_some() && t.z.closed().is_some(), "after {at} ms");
        assert_eq!(t.z.received_messages(), 2, "RFC 9260 §9.2, after {at} ms");
    }
}

#[test]
fn a_run_without_the_extension_is_the_same_as_before_it_existed() {
    let hash = |is_on: &str| {
        let pair = Pair::two_paths("cmt").profile("fast").set("stream_reconfiguration", is_on);
        let mut t = pair.connect();
        t.a.send(1, 300_000);
        t.run_to_end(secs(60));
        (t.a.sent_bytes(), t.net.now())
    };
    assert_eq!(hash("true"), hash("false"), "the announcement takes no room of its own");
}

#[test]
fn the_instants_of_a_reset_are_those_of_a_round_trip() {
    let mut t = pair("sctp").connect();
    t.a.send(1, 1000);
    t.run_until(secs(1));
    let begun: Instant = t.net.now();
    reset(&mut t, &[1]);
    let done = t.run_until_event(is_performed);
    assert!(done - begun < Duration::from_millis(45), "{:?}", done - begun);
}
