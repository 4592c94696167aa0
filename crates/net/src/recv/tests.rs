//! The life of receive buffers.

use proptest::prelude::*;

use super::*;

fn receiver_with(length: usize, stride: usize) -> UdpReceiver {
    let mut receiver = UdpReceiver::new();
    receiver.metas[0].len = length;
    receiver.metas[0].stride = stride;
    receiver.metas[0].addr = "127.0.0.1:5".parse().unwrap();
    receiver
}

fn spare(receiver: &UdpReceiver) -> usize {
    receiver.spare.spare.lock().unwrap().len()
}

#[test]
fn a_full_buffer_is_lent_and_comes_back() {
    let mut receiver = receiver_with(BUFFER, 1400);
    let lent = receiver.buffers[0].as_ptr();
    let mut out = Vec::new();
    receiver.split(0, "127.0.0.2:6".parse().unwrap(), &mut out);
    assert_eq!(out.len(), BUFFER.div_ceil(1400));
    assert_eq!(out[0].payload.as_ptr(), lent, "no copy");
    assert_ne!(receiver.buffers[0].as_ptr(), lent, "the slot has another buffer meanwhile");
    let last = out.pop();
    drop(out);
    assert_eq!(spare(&receiver), 0, "one slice is still read");
    drop(last);
    assert_eq!(spare(&receiver), 1);
}

#[test]
fn a_short_datagram_does_not_pin_its_buffer() {
    let mut receiver = receiver_with(1400, 1400);
    let (slot, mut out) = (receiver.buffers[0].as_ptr(), Vec::new());
    receiver.split(0, "127.0.0.2:6".parse().unwrap(), &mut out);
    assert_eq!(out[0].payload.len(), 1400);
    assert_eq!(receiver.buffers[0].as_ptr(), slot);
    assert_ne!(out[0].payload.as_ptr(), slot);
}

#[test]
fn spare_buffers_are_bounded_and_of_one_size() {
    let pool = Arc::new(SpareBuffers::default());
    let lent: Vec<_> = (0..2 * SPARE).map(|_| pool.lend(pool.take(), 1)).collect();
    drop(pool.lend(Box::from([0; 100]), 100));
    assert_eq!((pool.lent(), pool.spare.lock().unwrap().len()), (2 * SPARE * BUFFER, 0));
    drop(lent);
    assert_eq!((pool.lent(), pool.spare.lock().unwrap().len()), (0, SPARE));
}

/// Receives one train and keeps one datagram of it: datagrams of `stride` bytes, `length` in all,
/// of which one is kept.
fn keep_one(receiver: &mut UdpReceiver, length: usize, stride: usize, which: usize) -> Bytes {
    (receiver.metas[0].len, receiver.metas[0].stride) = (length, stride);
    let mut out = Vec::new();
    receiver.split(0, "127.0.0.2:6".parse().unwrap(), &mut out);
    assert_eq!(out.iter().map(|d| d.payload.len()).sum::<usize>(), length);
    assert!(out[..out.len() - 1].iter().all(|d| d.payload.len() == stride));
    let which = which % out.len();
    out.swap_remove(which).payload
}

#[test]
fn one_datagram_of_each_train_keeps_a_bounded_sum_of_buffers() {
    let mut receiver = receiver_with(0, 0);
    let mut kept = Vec::new();
    for i in 0..16_000 {
        kept.push(keep_one(&mut receiver, BUFFER, 1472, i));
    }
    // 22 MiB are kept, and were part of 1000 MiB.
    assert!(kept.iter().map(Bytes::len).sum::<usize>() > 20 << 20);
    assert_eq!(receiver.spare.lent(), LENT_MAX);
    drop(kept);
    assert_eq!(receiver.spare.lent(), 0);
    assert_eq!(spare(&receiver), SPARE, "the rest is given back");
    let again = keep_one(&mut receiver, BUFFER, 1472, 0);
    assert_eq!((again.len(), receiver.spare.lent()), (1472, BUFFER), "lent again");
}

proptest! {
    /// Whatever comes together and whichever datagrams are kept: what is kept alive beside these is
    /// at most [`LENT_MAX`] and one batch.
    #[test]
    fn any_split_keeps_a_bounded_sum_of_buffers(
        trains in prop::collection::vec((1usize..=BUFFER, 1usize..=BUFFER, any::<usize>()), 1..1500),
    ) {
        let mut receiver = receiver_with(0, 0);
        let mut kept = Vec::new();
        for &(length, stride, which) in &trains {
            // Trains have 64 datagrams at most.
            let stride = stride.min(length).max(length.div_ceil(64));
            kept.push(keep_one(&mut receiver, length, stride, which));
            prop_assert!(receiver.spare.lent() < LENT_MAX + BUFFER);
        }
        let lent = receiver.spare.lent();
        let several = trains.iter().filter(|&&(length, stride, _)| stride < length);
        let all: usize = several.map(|&(length, ..)| length).sum();
        prop_assert!(lent >= all.min(LENT_MAX), "counted: {} of {}", lent, all);
        drop(kept);
        prop_assert_eq!(receiver.spare.lent(), 0);
    }
}

#[test]
fn empty_datagrams_and_missing_strides_are_harmless() {
    let mut out = Vec::new();
    receiver_with(0, 0).split(0, "127.0.0.2:6".parse().unwrap(), &mut out);
    assert!(out.is_empty());
    receiver_with(10, 0).split(0, "127.0.0.2:6".parse().unwrap(), &mut out);
    assert_eq!(out.len(), 1);
}
