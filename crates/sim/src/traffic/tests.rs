use super::*;

fn message(stream: u16, number: u32, unordered: bool, payload: &'static [u8]) -> Message {
    Message {
        stream: StreamId(stream),
        ssn: manypath_wire::Ssn(0),
        ppid: number.wrapping_add(FIRST_PPID),
        unordered,
        payload: Bytes::from_static(payload).into(),
        end_of_message: true,
        is_cut_off: false,
    }
}

fn sent(stream: u16, number: u32, unordered: bool, length: usize) -> Message {
    message(stream, number, unordered, content(stream, unordered, number, length))
}

#[test]
fn messages_as_sent_pass() {
    let mut receiver = Receiver::default();
    receiver.take(Instant::from_millis(1), &sent(0, 0, false, 100));
    receiver.take(Instant::from_millis(5), &sent(3, 1, true, 7));
    receiver.take(Instant::from_millis(6), &sent(3, 0, true, 9));
    receiver.take(Instant::from_millis(7), &sent(0, 1, false, LONGEST_MESSAGE));
    assert_eq!((receiver.messages, receiver.bytes), (4, 116 + LONGEST_MESSAGE as u64));
    assert_eq!(receiver.longest_gap, Duration::from_millis(4));
}

#[test]
fn parts_make_a_message() {
    let mut receiver = Receiver::default();
    let whole = content(0, false, 0, 5000);
    let mut first = message(0, 0, false, &whole[..3000]);
    first.end_of_message = false;
    receiver.take(Instant::ZERO, &first);
    assert_eq!(receiver.messages, 0);
    receiver.take(Instant::ZERO, &message(0, 0, false, &whole[3000..]));
    assert_eq!((receiver.messages, receiver.bytes), (1, 5000));
}

#[test]
#[should_panic(expected = "came twice")]
fn a_message_that_comes_twice_is_found() {
    let mut receiver = Receiver::default();
    receiver.take(Instant::ZERO, &sent(0, 2, true, 10));
    receiver.take(Instant::ZERO, &sent(0, 2, true, 10));
}

#[test]
#[should_panic(expected = "out of order")]
fn a_missing_ordered_message_is_found() {
    Receiver::default().take(Instant::ZERO, &sent(0, 1, false, 10));
}

#[test]
#[should_panic(expected = "is damaged")]
fn a_shortened_message_is_found() {
    let whole = content(0, false, 0, 500);
    Receiver::default().take(Instant::ZERO, &message(0, 0, false, &whole[..499]));
}
