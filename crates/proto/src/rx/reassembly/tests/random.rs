//! Random messages, sent in random order with losses and duplicates.

use std::collections::BTreeMap;

use super::*;

/// A message to send: stream, whether unordered, and the length of each of its fragments.
type Plan = (u16, bool, Vec<usize>);

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let fragments = prop::collection::vec(1usize..40, 1..8);
    prop::collection::vec((0u16..4, prop::bool::weighted(0.3), fragments), 1..40)
}

/// The chunks of all messages, TSNs from `initial`, and the data of each message by its number,
/// which is also the ppid of its chunks.
fn chunks_of(plans: &[Plan], initial: u32) -> (Vec<Data>, Vec<Vec<u8>>) {
    let mut next_ssn = [0u16; 4];
    let (mut chunks, mut bodies) = (Vec::new(), Vec::new());
    for (number, (stream, unordered, fragments)) in plans.iter().enumerate() {
        let ssn = next_ssn[usize::from(*stream)];
        next_ssn[usize::from(*stream)] += u16::from(!unordered);
        let mut body = Vec::new();
        for (i, &len) in fragments.iter().enumerate() {
            let flags = if i == 0 { BEGIN } else { 0 }
                | if i + 1 == fragments.len() { END } else { 0 }
                | if *unordered { UNORDERED } else { 0 };
            let tsn = initial.wrapping_add(chunks.len() as u32);
            let payload: Vec<u8> = (0..len).map(|j| (chunks.len() * 31 + j) as u8).collect();
            body.extend_from_slice(&payload);
            chunks.push(Data {
                ppid: number as u32,
                payload: Bytes::from(payload),
                ..chunk(tsn, *stream, ssn, flags, 0)
            });
        }
        bodies.push(body);
    }
    (chunks, bodies)
}

/// Puts parts together and remembers the order in which messages ended.
#[derive(Default)]
struct Application {
    unfinished: BTreeMap<u16, Vec<u8>>,
    finished: Vec<(u32, Vec<u8>)>,
    ordered: BTreeMap<u16, Vec<u16>>,
}

impl Application {
    fn take(&mut self, message: Message) {
        let body = self.unfinished.entry(message.stream.0).or_default();
        body.extend_from_slice(&message.payload.to_vec());
        if message.end_of_message {
            let body = std::mem::take(body);
            self.finished.push((message.ppid, body));
            if !message.unordered {
                self.ordered.entry(message.stream.0).or_default().push(message.ssn.0);
            }
        }
    }
}

/// Chunks of a packet at most.
const PACKET_CHUNKS: usize = 3;

/// Sends until all is acknowledged: again and again the chunks not received, in an order that the
/// keys choose.
///
/// With `keeps` the receiver promises after every third chunk what it will not discard, and must
/// then hold it.
fn transfer(
    plans: &[Plan],
    initial: u32,
    limits: Limits,
    (keys, window): (&[u16], usize),
    keeps: bool,
) {
    let (chunks, bodies) = chunks_of(plans, initial);
    let mut tracker = TsnTracker::new(Tsn(initial));
    let mut inbound = Inbound::new(4, limits);
    let mut app = Application::default();
    let mut keys = keys.iter().cycle().copied();
    let mut rounds = 0;
    let mut promised = std::collections::BTreeSet::new();
    while tracker.cum_tsn() != Tsn(initial.wrapping_add(chunks.len() as u32 - 1)) {
        rounds += 1;
        assert!(rounds < 10_000, "no progress at {:?}", tracker.cum_tsn());
        let from = tracker.cum_tsn().next().distance_from(Tsn(initial)) as usize;
        let to = chunks.len().min(from + window);
        let mut order: Vec<(u16, usize)> =
            (from..to).map(|i| (keys.next().unwrap_or(0), i)).collect();
        order.sort_unstable();
        for (n, (key, i)) in order.into_iter().enumerate() {
            if n % PACKET_CHUNKS == 0 {
                inbound.begin_packet(0);
            }
            if key % 5 == 0 && rounds % 3 != 0 {
                continue; // lost
            }
            let seen = tracker.contains(chunks[i].tsn);
            let arrival = inbound.accept(chunks[i].clone(), &mut tracker).expect("no violation");
            assert_eq!(arrival == Arrival::Duplicate, seen);
            let bytes = inbound.buffered_bytes();
            // A chunk alone may exceed the limits, and a packet of the next ones below what is
            // promised.
            let more_chunks = if keeps { PACKET_CHUNKS } else { 0 };
            let more_bytes = more_chunks * inbound.room.largest;
            let is_alone = inbound.buffered_chunks() == 1;
            assert!(bytes <= limits.receive_buffer + more_bytes || is_alone, "{bytes}");
            assert!(inbound.buffered_chunks() <= limits.max_chunks + more_chunks);
            if keeps && key % 3 == 1 {
                let kept = inbound.keep(&tracker);
                let is_kept = |c: &&Data| tracker.contains(c.tsn) && c.tsn.le(kept);
                promised.extend(chunks.iter().filter(is_kept).map(|c| c.tsn.0));
            }
            assert!(promised.iter().all(|&tsn| tracker.contains(Tsn(tsn))), "a promise is broken");
            if key % 3 == 0 {
                while let Some(message) = inbound.pop() {
                    app.take(message);
                }
            }
            if key % 37 == 0 {
                inbound.drop_highest(&mut tracker);
            }
        }
        while let Some(message) = inbound.pop() {
            app.take(message);
        }
    }
    assert_eq!((inbound.buffered_bytes(), inbound.buffered_chunks()), (0, 0));
    assert!(inbound.held.is_empty() && inbound.waiting.is_empty() && inbound.deferred.is_empty());
    assert!(inbound.streams.iter().all(|stream| stream.waiting == 0));
    for (stream, ssns) in &app.ordered {
        assert!(ssns.iter().zip(0..).all(|(&ssn, i)| ssn == i), "stream {stream}: {ssns:?}");
    }
    app.finished.sort_unstable();
    let expected: Vec<(u32, Vec<u8>)> = (0..).zip(bodies).collect();
    assert_eq!(app.finished, expected, "each message exactly once, its bytes intact");
}

proptest! {
    #[test]
    fn every_message_is_delivered_once_in_the_order_of_its_stream(
        plans in plans(),
        initial in prop_oneof![any::<u32>(), u32::MAX - 30..=u32::MAX],
        keys in prop::collection::vec(any::<u16>(), 50..400),
    ) {
        transfer(&plans, initial, Limits::for_receive_buffer(1 << 20), (&keys, 1000), false);
    }

    #[test]
    fn also_with_little_memory(
        plans in plans(),
        initial in any::<u32>(),
        keys in prop::collection::vec(any::<u16>(), 50..400),
        receive_buffer in 40usize..300,
        max_chunks in 2usize..20,
        point in 1usize..100,
        window in 1usize..60,
    ) {
        let partial_delivery_point = receive_buffer * point / 100;
        let limits = Limits { receive_buffer, max_chunks, partial_delivery_point };
        transfer(&plans, initial, limits, (&keys, window), false);
        transfer(&plans, initial, limits, (&keys, window), true);
    }

    #[test]
    fn hostile_chunks_neither_panic_nor_fill_memory(
        chunks in prop::collection::vec((0u32..40, 0u16..5, 0u16..4, 0u8..8, 1usize..60), 1..200),
        limits in (50usize..300, 2usize..20, 1usize..200),
    ) {
        let (receive_buffer, max_chunks, partial_delivery_point) = limits;
        let limits = Limits { receive_buffer, max_chunks, partial_delivery_point };
        let mut r = Receiver::new(limits);
        for (i, (tsn, stream, ssn, flags, len)) in chunks.into_iter().enumerate() {
            let tsn = r.tracker.cum_tsn().0.wrapping_add(tsn);
            match r.accept(chunk(tsn, stream, ssn, flags, len)) {
                // The engine would abort.
                Err(violation) if violation.is_fatal() => r = Receiver::new(limits),
                _ => {}
            }
            let bytes = r.inbound.buffered_bytes();
            prop_assert!(bytes <= receive_buffer || r.inbound.buffered_chunks() == 1);
            prop_assert!(r.inbound.buffered_chunks() <= max_chunks);
            if i % 7 == 0 {
                r.inbound.pop();
            }
        }
    }
}
