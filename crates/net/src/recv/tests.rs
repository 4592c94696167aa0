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

/// How many whole buffers are spare, and how many bytes are lent, if one looks now.
fn held(receiver: &mut UdpReceiver) -> (usize, usize) {
    receiver.lent.look_at_all();
    (receiver.lent.spare.len(), receiver.lent.bytes)
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
    assert_eq!(held(&mut receiver), (0, BUFFER), "one part is still read");
    drop(last);
    assert_eq!(held(&mut receiver), (1, 0));
    assert_eq!(receiver.lent.take().as_ptr(), lent, "the same one");
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

/// Receives one train and keeps one datagram of it: datagrams of `stride` bytes, `length` in all,
/// of which one is kept.
fn keep_one(receiver: &mut UdpReceiver, length: usize, stride: usize, which: usize) -> BytesMut {
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
    assert!(kept.iter().map(BytesMut::len).sum::<usize>() > 20 << 20);
    assert_eq!(held(&mut receiver), (0, LENT_MAX));
    drop(kept);
    assert_eq!(held(&mut receiver), (SPARE, 0), "the rest is given back");
    let again = keep_one(&mut receiver, BUFFER, 1472, 0);
    assert_eq!((again.len(), held(&mut receiver).1), (1472, BUFFER), "lent again");
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
            prop_assert!(receiver.lent.bytes < LENT_MAX + BUFFER);
        }
        let lent = held(&mut receiver).1;
        let several = trains.iter().filter(|&&(length, stride, _)| stride < length);
        let all: usize = several.map(|&(length, ..)| length).sum();
        prop_assert!(lent >= all.min(LENT_MAX), "counted: {} of {}", lent, all);
        drop(kept);
        prop_assert_eq!(held(&mut receiver).1, 0);
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
