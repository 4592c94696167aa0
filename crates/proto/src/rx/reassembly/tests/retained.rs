//! Memory that what is held keeps alive, whatever sizes the peer chooses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::super::retain::READY_PACKET;
use super::*;

/// A received packet that counts the bytes of all that are alive.
struct Packet {
    bytes: Vec<u8>,
    alive: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for Packet {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Packet {
    fn drop(&mut self) {
        self.alive.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

fn packet(alive: &Arc<AtomicUsize>, len: usize) -> Bytes {
    alive.fetch_add(len, Ordering::Relaxed);
    Bytes::from_owner(Packet { bytes: vec![7; len], alive: Arc::clone(alive) })
}

/// The lengths of a packet and of the payloads of its chunks, as far as they fit.
fn packets() -> impl Strategy<Value = Vec<(usize, Vec<usize>)>> {
    let len = prop_oneof![500usize..2000, 2000usize..65_000];
    let payload = prop_oneof![1usize..600, 400usize..3000, 3000usize..65_000];
    prop::collection::vec((len, prop::collection::vec(payload, 1..6)), 1..80)
}

/// Takes the packets in, with the first TSN missing unless `in_order`, so that nothing is popped;
/// what is alive at most beyond twice the bytes that are counted.
fn excess(packets: &[(usize, Vec<usize>)], in_order: bool) -> usize {
    let alive = Arc::new(AtomicUsize::new(0));
    let mut r = Receiver::new(Limits::for_receive_buffer(1 << 20));
    let mut most = 0;
    // Out of order, the first TSN stays missing.
    let mut tsn = INITIAL + u32::from(!in_order);
    for (len, payloads) in packets {
        let whole = packet(&alive, *len);
        r.inbound.begin_packet(*len);
        let mut at = 0;
        for payload in payloads {
            let end = (at + payload).min(*len);
            if at == end {
                break;
            }
            let data = chunk(tsn, 0, (tsn - INITIAL) as u16, WHOLE, 0);
            let taken = r.accept(Data { payload: whole.slice(at..end), ..data });
            tsn += u32::from(taken.expect("no violation") == Arrival::New);
            at = end;
        }
        drop(whole);
        let alive = alive.load(Ordering::Relaxed);
        most = most.max(alive.saturating_sub(2 * r.inbound.buffered_bytes()));
    }
    drop(r);
    assert_eq!(alive.load(Ordering::Relaxed), 0, "all is given back");
    most
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Packets that are kept alive have at most twice the bytes that are held.
    #[test]
    fn held_payloads_keep_at_most_twice_their_size(packets in packets()) {
        prop_assert_eq!(excess(&packets, false), 0);
    }

    /// Ready messages may keep small packets too, but only up to a limit.
    #[test]
    fn ready_payloads_keep_little_more(packets in packets()) {
        let most = READY_UNCOPIED * READY_PACKET;
        prop_assert!(excess(&packets, true) <= most);
    }

    #[test]
    fn of_a_peer_that_is_not_admitted_no_packet_is_kept(packets in packets(), ready in any::<bool>()) {
        let alive = Arc::new(AtomicUsize::new(0));
        let mut r = Receiver::new(Limits::for_receive_buffer(1 << 16));
        r.inbound.copy_all(true);
        for (i, (len, payloads)) in packets.iter().enumerate() {
            let whole = packet(&alive, *len);
            r.inbound.begin_packet(*len);
            let tsn = INITIAL + i as u32 + u32::from(!ready);
            let data = chunk(tsn, 0, (tsn - INITIAL) as u16, WHOLE, 0);
            let payload = whole.slice(..payloads[0].min(*len));
            r.accept(Data { payload, ..data }).expect("no violation");
            drop(whole);
            prop_assert_eq!(alive.load(Ordering::Relaxed), 0);
        }
    }
}

/// A peer's best attack: few bytes in large packets.
#[test]
fn many_short_messages_in_large_packets_keep_little_when_ready() {
    let packets = vec![(60_000, vec![1]); 1000];
    assert_eq!(excess(&packets, true), 0);
    let packets = vec![(READY_PACKET, vec![1]); 5000];
    let most = READY_UNCOPIED * READY_PACKET;
    let excess = excess(&packets, true);
    assert!((most / 2..=most).contains(&excess), "{excess}");
}
