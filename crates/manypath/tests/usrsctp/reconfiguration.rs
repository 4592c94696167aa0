//! Streams that are reset and added (RFC 6525) while data is in flight, as either side asks, with
//! DATA and with I-DATA, through a lossy relay.

use std::future::Future;
use std::time::Duration;

use manypath::{
    Association, Event, EventStream, ReconfigureError, RequestOutcome, SendOptions, StreamId,
    StreamRequest,
};

use crate::harness::{
    Case, Log, Opens, Pattern, RE_CONFIG, Running, Setting, Verifier, Wire, interop, pause,
};

const SIZES: &[usize] = &[100, 1400, 3000];
/// Each in one chunk: while usrsctp adds streams, it sends other messages between the fragments of
/// one, which only I-DATA allows.
const SHORT: &[usize] = &[100, 1400, 700];
const SIZE_LIST: &str = "--messages 100,1400,3000";
const STREAMS: u16 = 3;

/// As in `losses`; of the few requests and answers, some are lost, too.
const RELAY: &str = "--drop 60 --duplicate 20 --reorder 30 --delay 3";
/// Repairs on a busy machine take a while.
const PATIENCE: Duration = Duration::from_secs(30);
const PEER: &str = "--rto-min-ms 50 --linger-ms 1500 --reconfigure";
const PARAMETERS: &[(&str, &str)] = &[
    ("rto_initial", "200 ms"),
    ("rto_min", "100 ms"),
    ("stream_reconfiguration", "true"),
    ("outbound_streams", "3"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunks {
    Data,
    IData,
}

fn case(opens: Opens, setting: Setting, chunks: Chunks, seed: u32, task: &str) -> Case {
    let (option, interleaving) = match chunks {
        Chunks::Data => ("", "false"),
        Chunks::IData => ("--interleave", "true"),
    };
    let peer = format!("{PEER} {option} {task}");
    let relay = format!("{RELAY} --seed {seed}");
    Case::new(opens, setting, &peer)
        .set(PARAMETERS)
        .set(&[("message_interleaving", interleaving)])
        .relays(&[&relay])
}

/// The events of RFC 6525 of one association, in order.
struct Changes(EventStream);

impl Changes {
    fn of(association: &Association) -> Changes {
        assert!(association.reconfigures(), "both sides have the extension");
        Changes(association.events())
    }

    /// The next one.
    async fn next(&mut self) -> Event {
        let next = async {
            loop {
                let event = self.0.next().await.expect("an event before the end");
                let is_change = matches!(
                    event,
                    Event::StreamsReconfigured { .. }
                        | Event::IncomingStreamsReset { .. }
                        | Event::IncomingStreamsAdded { .. }
                );
                if is_change {
                    return event;
                }
            }
        };
        let event = tokio::time::timeout(PATIENCE, next).await;
        event.expect("streams change in time")
    }

    /// The next ones, in any order.
    async fn expect(&mut self, expected: Vec<Event>) {
        self.expect_with_resets([0; 3], expected).await;
    }

    /// The next ones, and those of the resets of each stream, which may come one by one.
    async fn expect_with_resets(&mut self, mut resets: [usize; 3], mut expected: Vec<Event>) {
        while resets != [0; 3] || !expected.is_empty() {
            let event = self.next().await;
            if let Event::IncomingStreamsReset { streams } = event {
                for (stream, left) in (0..).map(StreamId).zip(&mut resets) {
                    if streams.is_empty() || streams.contains(&stream) {
                        *left = left.checked_sub(1).expect("no more resets than expected");
                    }
                }
                continue;
            }
            let place = expected.iter().position(|e| *e == event);
            expected.remove(place.unwrap_or_else(|| panic!("{event:?}, not of {expected:?}")));
        }
    }
}

fn answered(request: StreamRequest, by_peer: bool) -> Event {
    Event::StreamsReconfigured { request, outcome: RequestOutcome::Performed, by_peer }
}

fn ids(streams: &[u16]) -> Vec<StreamId> {
    streams.iter().copied().map(StreamId).collect()
}

/// Sends one message after the other to usrsctp.
struct Sender<'a> {
    association: &'a Association,
    sizes: &'static [usize],
    /// All messages but each fourth are given up if they are lost.
    limited: bool,
    next: u32,
}

impl<'a> Sender<'a> {
    fn new(association: &'a Association, sizes: &'static [usize]) -> Sender<'a> {
        Sender { association, sizes, limited: false, next: 0 }
    }

    /// Sends messages to `streams` streams in turn.
    async fn send(&mut self, streams: u16, messages: u32) {
        for _ in 0..messages {
            let stream = self.next % u32::from(streams);
            self.send_to(stream as u16).await;
        }
    }

    async fn send_to(&mut self, stream: u16) {
        let (options, payload) = Pattern::new(self.sizes, 1).message(self.next);
        let may_be_lost = self.limited && !self.next.is_multiple_of(4);
        let max_retransmissions = may_be_lost.then_some(0);
        let options = SendOptions { stream: StreamId(stream), max_retransmissions, ..options };
        self.association.send(options, payload).await.expect("queued");
        self.next += 1;
    }

    /// Receives the echoes of all messages, and sends more to `stream` while they take long.
    async fn receive_all(&mut self, verifier: &mut Verifier, stream: u16) {
        let mut sent = 0;
        while sent != self.next {
            sent = self.next;
            self.send_until(stream, receive(self.association, verifier, sent)).await;
        }
    }

    /// Waits for something, and sends to `stream` meanwhile: usrsctp performs a reset that had to
    /// wait for lost data when the next DATA chunk arrives, and not before.
    async fn send_until<T>(&mut self, stream: u16, what: impl Future<Output = T>) -> T {
        let mut what = std::pin::pin!(what);
        loop {
            tokio::select! {
                result = &mut what => return result,
                () = pause(20) => self.send_to(stream).await,
            }
        }
    }
}

/// Receives until this number of messages is here.
async fn receive(association: &Association, verifier: &mut Verifier, messages: u32) {
    while verifier.messages() < u64::from(messages) {
        let message = association.recv().await.expect("more").expect("more");
        verifier.take(message);
    }
}

fn assert_asked_and_answered(wire: &Wire) {
    let seen = |log: &Log| log.count(RE_CONFIG);
    let (ours, theirs) = (seen(&wire.of_manypath()), seen(&wire.of_usrsctp()));
    assert!(ours > 0 && theirs > 0, "RE-CONFIG: {ours} from manypath, {theirs} from usrsctp");
}

/// Resets two streams, one, and all.
async fn manypath_resets(case: Case) {
    let (running, wire) = case.start_watched().await;
    let Running { association, peer, endpoint: _endpoint, relays: _relays } = running;
    let mut changes = Changes::of(&association);
    let mut sender = Sender::new(&association, SIZES);
    let reset = |streams: &[u16]| answered(StreamRequest::ResetOutgoing(ids(streams)), false);
    for (streams, other) in [(&[0, 2][..], 1), (&[1], 0)] {
        sender.send(STREAMS, 40).await;
        association.reset_streams(&ids(streams)).expect("asked for");
        sender.send(STREAMS, 40).await;
        sender.send_until(other, changes.expect(vec![reset(streams)])).await;
    }
    association.acknowledged().await.expect("acknowledged");
    association.reset_streams(&[]).expect("asked for");
    sender.send(STREAMS, 40).await;
    changes.expect(vec![reset(&[])]).await;
    association.shutdown().await.expect("everything is delivered");
    let report = peer.report().await;
    report.assert_ok("peer-shutdown");
    assert_eq!(report.number("messages_received"), u64::from(sender.next));
    assert_eq!(report.number("number_restarts"), 6, "{report:?}");
    for stream in 0..STREAMS {
        assert_eq!(wire.of_manypath().restarts(stream), 2, "of stream {stream}");
    }
    assert_asked_and_answered(&wire);
}

#[test]
fn manypath_resets_streams() {
    interop(manypath_resets(case(Opens::Manypath, Setting::Fast, Chunks::Data, 71, "receive")));
}

#[test]
fn usrsctp_connects_and_manypath_resets_streams() {
    interop(manypath_resets(case(Opens::Usrsctp, Setting::Fast, Chunks::Data, 72, "receive")));
}

#[test]
fn manypath_resets_streams_of_interleaved_messages() {
    interop(manypath_resets(case(Opens::Usrsctp, Setting::Fast, Chunks::IData, 73, "receive")));
}

/// manypath asks usrsctp, which returns messages, to reset one stream, and then all.
async fn usrsctp_resets_as_manypath_asks(
    opens: Opens,
    setting: Setting,
    chunks: Chunks,
    seed: u32,
) {
    let case = case(opens, setting, chunks, seed, "--streams 3 echo");
    let (running, wire) = case.start_watched().await;
    let Running { association, peer, endpoint: _endpoint, relays: _relays } = running;
    let mut changes = Changes::of(&association);
    let mut verifier = Verifier::new(0);
    let mut sender = Sender::new(&association, SIZES);
    for (streams, resets) in [(&[1][..], [0, 1, 0]), (&[], [1; 3])] {
        sender.send(STREAMS, 30).await;
        receive(&association, &mut verifier, sender.next).await;
        sender.send(STREAMS, 30).await;
        association.request_stream_reset(&ids(streams)).expect("asked for");
        let asked = answered(StreamRequest::ResetIncoming(ids(streams)), false);
        let (sent, expected) = (sender.next, changes.expect_with_resets(resets, vec![asked]));
        let all = async { tokio::join!(expected, receive(&association, &mut verifier, sent)) };
        sender.send_until(0, all).await;
    }
    sender.send(STREAMS, 30).await;
    receive(&association, &mut verifier, sender.next).await;
    verifier.assert_complete();
    association.shutdown().await.expect("everything is delivered");
    let report = peer.report().await;
    report.assert_ok("peer-shutdown");
    assert_eq!([0, 1, 2].map(|stream| verifier.restarts(stream)), [1, 2, 1]);
    assert_eq!(report.number("number_restarts"), 0, "{report:?}");
    assert_asked_and_answered(&wire);
}

#[test]
fn usrsctp_resets_streams_as_asked() {
    interop(usrsctp_resets_as_manypath_asks(Opens::Manypath, Setting::Fast, Chunks::Data, 74));
}

#[test]
fn usrsctp_resets_streams_of_interleaved_messages_as_asked_by_the_rfc() {
    interop(usrsctp_resets_as_manypath_asks(Opens::Usrsctp, Setting::Plain, Chunks::IData, 75));
}

#[test]
fn manypath_adds_streams_in_both_directions() {
    interop(async {
        let case = case(Opens::Manypath, Setting::Fast, Chunks::Data, 76, "--streams 3 echo");
        let (running, wire) = case.start_watched().await;
        let Running { association, peer, endpoint: _endpoint, relays: _relays } = running;
        let mut changes = Changes::of(&association);
        let mut verifier = Verifier::new(0);
        let mut sender = Sender::new(&association, SHORT);
        assert_eq!(association.streams(), Some((3, 3)));
        sender.send(STREAMS, 30).await;
        association.add_streams(2, 4).expect("asked for");
        sender.send(STREAMS, 30).await;
        receive(&association, &mut verifier, 60).await;
        let out = answered(StreamRequest::AddOutgoing(2), false);
        let asked = answered(StreamRequest::AddIncoming(4), false);
        let added = Event::IncomingStreamsAdded { added: 4, streams: 7 };
        changes.expect(vec![out, asked, added]).await;
        assert_eq!(association.streams(), Some((5, 7)));
        sender.send(5, 60).await;
        receive(&association, &mut verifier, 120).await;
        verifier.assert_complete();
        association.shutdown().await.expect("everything is delivered");
        let report = peer.report().await;
        report.assert_ok("peer-shutdown");
        assert_eq!(report.events("streams-changed").len(), 2, "{report:?}");
        assert_asked_and_answered(&wire);
    });
}

/// usrsctp resets and adds streams, and asks manypath to do that, while it returns messages.
async fn usrsctp_does_all(opens: Opens, setting: Setting, chunks: Chunks, seed: u32) {
    let task = "--streams 3 --do 20:reset-out --do 40:reset-in=1 --do 60:add-out=2 --do 80:add-in=3 \
        echo";
    let (running, wire) = case(opens, setting, chunks, seed, task).start_watched().await;
    let Running { association, peer, endpoint: _endpoint, relays: _relays } = running;
    let mut changes = Changes::of(&association);
    let mut verifier = Verifier::new(0);
    let sizes = if chunks == Chunks::IData { SIZES } else { SHORT };
    let mut sender = Sender::new(&association, sizes);
    sender.send(STREAMS, 100).await;
    let expected = vec![
        answered(StreamRequest::ResetOutgoing(ids(&[1])), true),
        Event::IncomingStreamsAdded { added: 2, streams: 5 },
        answered(StreamRequest::AddOutgoing(3), true),
    ];
    let all = async {
        tokio::join!(
            changes.expect_with_resets([1; 3], expected),
            receive(&association, &mut verifier, 100),
        )
    };
    sender.send_until(0, all).await;
    assert_eq!(association.streams(), Some((6, 5)));
    sender.send(5, 50).await;
    receive(&association, &mut verifier, sender.next).await;
    verifier.assert_complete();
    association.shutdown().await.expect("everything is delivered");
    let report = peer.report().await;
    report.assert_ok("peer-shutdown");
    assert_eq!([0, 1, 2].map(|stream| verifier.restarts(stream)), [1, 1, 1]);
    assert_eq!([0, 1, 2].map(|stream| wire.of_manypath().restarts(stream)), [0, 1, 0]);
    assert_eq!(report.number("number_restarts"), 1, "{report:?}");
    assert_asked_and_answered(&wire);
}

#[test]
fn usrsctp_resets_and_adds_streams() {
    interop(usrsctp_does_all(Opens::Usrsctp, Setting::Fast, Chunks::Data, 77));
}

#[test]
fn usrsctp_resets_and_adds_streams_by_the_rfc() {
    interop(usrsctp_does_all(Opens::Manypath, Setting::Plain, Chunks::Data, 78));
}

#[test]
fn usrsctp_resets_and_adds_streams_of_interleaved_messages() {
    interop(usrsctp_does_all(Opens::Manypath, Setting::Fast, Chunks::IData, 79));
}

#[test]
fn both_reset_streams_at_the_same_time() {
    interop(async {
        let task = "--streams 3 --do 20:reset-out --do 20:reset-in=1 --do 60:reset-in=0 \
            --do 60:reset-out=1 --do 80:reset-out echo";
        let case = case(Opens::Manypath, Setting::Fast, Chunks::Data, 80, task);
        let (running, wire) = case.start_watched().await;
        let Running { association, peer, endpoint: _endpoint, relays: _relays } = running;
        let mut changes = Changes::of(&association);
        let mut verifier = Verifier::new(0);
        let mut sender = Sender::new(&association, SIZES);
        for _ in 0..5 {
            // A reset that usrsctp has asked for may not be done.
            while let Err(error) = association.reset_streams(&[]) {
                assert_eq!(error, ReconfigureError::InProgress);
                sender.send_to(2).await;
                sender.receive_all(&mut verifier, 2).await;
            }
            association.request_stream_reset(&ids(&[2])).expect("asked for");
            sender.send(STREAMS, 20).await;
            sender.receive_all(&mut verifier, 2).await;
            let mut answers = 0;
            while answers < 2 {
                if let Event::StreamsReconfigured { outcome, by_peer: false, .. } =
                    changes.next().await
                {
                    let is_fine =
                        outcome.is_success() || outcome == RequestOutcome::RequestInProgress;
                    assert!(is_fine, "{outcome:?}");
                    answers += 1;
                }
            }
        }
        association.shutdown().await.expect("everything is delivered");
        let report = peer.report().await;
        report.assert_ok("peer-shutdown");
        assert!(report.number("number_restarts") >= 12, "{report:?}");
        assert_asked_and_answered(&wire);
    });
}

/// After the refusal usrsctp repeats the request for ever; it is refused each time.
#[test]
fn a_reset_of_the_association_is_denied_and_all_goes_on() {
    interop(async {
        let task =
            format!("{SIZE_LIST} --streams 3 --do 50:reset-association --await 1 send 200000");
        let case = case(Opens::Manypath, Setting::Fast, Chunks::Data, 81, &task);
        let (running, wire) = case.start_watched().await;
        let Running { association, peer, endpoint: _endpoint, relays: _relays } = running;
        let mut verifier = Verifier::new(0);
        verifier.receive_all(&association).await.expect("everything until the shutdown");
        let report = peer.report().await;
        report.assert_ok("local-shutdown");
        assert_eq!(verifier.messages(), report.number("messages_sent"));
        let answers = report.events("association-reset");
        assert!(answers.len() == 1 && answers[0]["refused"] == true, "{report:?}");
        assert_eq!([0, 1, 2].map(|stream| verifier.restarts(stream)), [0; 3]);
        assert_asked_and_answered(&wire);
    });
}

#[test]
fn manypath_resets_streams_between_messages_that_are_given_up() {
    interop(async {
        let task = "--reliable-every 4 receive";
        let case = case(Opens::Manypath, Setting::Fast, Chunks::Data, 82, task);
        let case = case.set(&[("partial_reliability", "true")]);
        let (running, wire) = case.start_watched().await;
        let Running { association, peer, endpoint: _endpoint, relays: _relays } = running;
        let mut changes = Changes::of(&association);
        let mut sender = Sender { limited: true, ..Sender::new(&association, SIZES) };
        for _ in 0..5 {
            sender.send(STREAMS, 40).await;
            association.reset_streams(&ids(&[0, 1])).expect("asked for");
            let reset = answered(StreamRequest::ResetOutgoing(ids(&[0, 1])), false);
            sender.send_until(2, changes.expect(vec![reset])).await;
        }
        sender.send(STREAMS, 40).await;
        association.shutdown().await.expect("what is reliable is delivered");
        let report = peer.report().await;
        report.assert_ok("peer-shutdown");
        assert_eq!(report.number("reliable_received"), u64::from(sender.next.div_ceil(4)));
        assert_eq!(report.number("number_restarts"), 10, "{report:?}");
        let stats = association.stats();
        assert!(stats.messages_abandoned > 0 && stats.forward_tsns_sent > 0, "{stats:?}");
        assert_asked_and_answered(&wire);
    });
}

#[test]
fn usrsctp_resets_streams_between_messages_that_are_given_up() {
    interop(async {
        let resets: String =
            (1..6).map(|round| format!("--do {}:reset-out ", 40 * round)).collect();
        let task = format!(
            "{SIZE_LIST} --streams 3 --pace-ms 1 --limit rtx=0 --reliable-every 4 {resets} --await 15 \
             send 360000"
        );
        let case = case(Opens::Usrsctp, Setting::Fast, Chunks::Data, 83, &task);
        let case = case.set(&[("partial_reliability", "true")]);
        let (running, wire) = case.start_watched().await;
        let Running { association, peer, endpoint: _endpoint, relays: _relays } = running;
        let mut verifier = Verifier::new(0);
        verifier.numbers_may_be_missing = true;
        verifier.receive_what_comes(&association).await.expect("messages until the shutdown");
        let report = peer.report().await;
        report.assert_ok("local-shutdown");
        assert_eq!(verifier.reliable(4), report.number("messages_sent").div_ceil(4));
        assert_eq!([0, 1, 2].map(|stream| verifier.restarts(stream)), [5; 3]);
        assert!(report.number("given_up") > 0 && verifier.messages() > 0, "{report:?}");
        assert!(association.stats().forward_tsns_received > 0, "{:?}", association.stats());
        assert_asked_and_answered(&wire);
    });
}
