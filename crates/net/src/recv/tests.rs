//! The life of receive buffers.

use super::*;

fn receiver_with(length: usize, stride: usize) -> UdpReceiver {
    let mut receiver = UdpReceiver::new();
    receiver.metas[0].len = length;
    receiver.metas[0].stride = stride;
    receiver.metas[0].addr = "127.0.0.1:5".parse().unwrap();
    receiver
}

fn spare(receiver: &UdpReceiver) -> usize {
    receiver.spare.0.lock().unwrap().len()
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
fn spare_buffers_are_bounded() {
    let pool = SpareBuffers::default();
    for _ in 0..2 * SPARE {
        pool.give_back(Box::default());
    }
    assert_eq!(pool.0.lock().unwrap().len(), SPARE);
}

#[test]
fn empty_datagrams_and_missing_strides_are_harmless() {
    let mut out = Vec::new();
    receiver_with(0, 0).split(0, "127.0.0.2:6".parse().unwrap(), &mut out);
    assert!(out.is_empty());
    receiver_with(10, 0).split(0, "127.0.0.2:6".parse().unwrap(), &mut out);
    assert_eq!(out.len(), 1);
}
