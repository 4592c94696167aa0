use proptest::prelude::*;

use super::*;

fn service() -> DomainName {
    DomainName::new(["_manypath", "_udp", "local"])
}

fn response() -> Message {
    let (instance, host) = (service().child("Laptop-01"), DomainName::new(["mp-01", "local"]));
    let data = [
        (service(), Data::Ptr(instance.clone())),
        (instance.clone(), Data::Srv { port: 9899, host: host.clone() }),
        (instance, Data::Txt(vec![b"name=Laptop".to_vec(), vec![0xff; 255]])),
        (host.clone(), Data::A(Ipv4Addr::new(192, 0, 2, 7))),
        (host, Data::Aaaa("2001:db8::7".parse().unwrap())),
    ];
    let records = data.map(|(name, data)| Record { name, ttl: 120, data }).to_vec();
    Message { is_response: true, questions: Vec::new(), records }
}

/// A message with a header for `questions` and `records`, and this behind it.
fn raw(questions: u16, records: u16, rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0x84, 0];
    bytes.extend(questions.to_be_bytes());
    bytes.extend(records.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(rest);
    bytes
}

#[test]
fn what_is_written_is_read() {
    let message = response();
    let bytes = message.write();
    assert_eq!(Message::read(&bytes), Ok(message));
    // Names are written once.
    assert_eq!(bytes.windows(9).filter(|w| w == b"_manypath").count(), 1);
    let questions = vec![Question { name: service(), kind: kind::PTR }];
    let query = Message { is_response: false, questions, records: Vec::new() };
    assert_eq!(Message::read(&query.write()), Ok(query));
}

#[test]
fn a_query_is_written_as_others_read_it() {
    let questions = vec![Question { name: DomainName::new(["a", "local"]), kind: kind::PTR }];
    let query = Message { is_response: false, questions, records: Vec::new() };
    // RFC 1035, section 4.1: header, then the question.
    let expected = b"\0\0\0\0\0\x01\0\0\0\0\0\0\x01a\x05local\0\0\x0c\0\x01";
    assert_eq!(query.write(), expected);
}

#[test]
fn every_shorter_message_is_malformed() {
    let bytes = response().write();
    for length in 0..bytes.len() {
        assert_eq!(Message::read(&bytes[..length]), Err(Malformed), "{length}");
    }
}

#[test]
fn pointers_lead_backwards_only() {
    // To itself, forwards, and two that lead to each other.
    for rest in [&b"\xc0\x0c"[..], b"\xc0\x10\0\0\0\0", b"\x01a\xc0\x0c", b"\xc0\x0e\xc0\x0c"] {
        let mut rest = rest.to_vec();
        rest.extend([0; 16]);
        assert_eq!(Message::read(&raw(1, 0, &rest)), Err(Malformed), "{rest:?}");
    }
    // The second question is the end of the first.
    let good = raw(2, 0, b"\x01a\x05local\0\0\x0c\0\x01\xc0\x0e\0\x0c\0\x01");
    let questions = Message::read(&good).unwrap().questions;
    assert_eq!(questions[1].name, DomainName::new(["local"]));
}

#[test]
fn a_chain_of_pointers_makes_no_long_name() {
    // Each name is a label and a pointer to the name before: 100 of them are too long.
    let mut rest = b"\x03abc\0\0\x0c\0\x01".to_vec();
    let mut before = 12_u16;
    for _ in 0..100 {
        let at = 12 + rest.len() as u16;
        rest.extend(b"\x03abc");
        rest.extend((0xc000 | before).to_be_bytes());
        rest.extend(b"\0\x0c\0\x01");
        before = at;
    }
    assert_eq!(Message::read(&raw(101, 0, &rest)), Err(Malformed));
    assert!(Message::read(&raw(60, 0, &rest)).is_ok());
}

#[test]
fn counts_that_are_no_counts_cost_nothing() {
    assert_eq!(Message::read(&raw(0xffff, 0xffff, &[])), Err(Malformed));
    // A question of five bytes, for the root, as often as fits.
    let many = raw(0xffff, 0, &b"\0\0\x0c\0\x01".repeat(1700));
    assert_eq!(Message::read(&many).unwrap().questions.len(), RECORDS_MAX);
    let record = b"\0\0\x01\0\x01\0\0\0\x78\0\x04\x7f\0\0\x01";
    let many = raw(0, 0xffff, &record.repeat(500));
    assert_eq!(Message::read(&many).unwrap().records.len(), RECORDS_MAX);
    assert_eq!(Message::read(&raw(0, 0xffff, &record.repeat(700))), Err(Malformed), "too long");
}

#[test]
fn records_of_other_kinds_are_skipped_and_lengths_must_be_right() {
    // NSEC (47), and an address of another class.
    let other = b"\x01a\0\0\x2f\0\x01\0\0\0\x78\0\x03\0\0\0\x01a\0\0\x01\0\x03\0\0\0\x78\0\x04aaaa";
    assert_eq!(Message::read(&raw(0, 2, other)).unwrap().records, []);
    for wrong in [
        &b"\0\0\x01\0\x01\0\0\0\x78\0\x05\x7f\0\0\x01\0"[..],
        b"\0\0\x01\0\x01\0\0\0\x78\0\x03\x7f\0\0\x01",
        b"\0\0\x10\0\x01\0\0\0\x78\0\x03\x05ab",
        b"\0\0\x21\0\x01\0\0\0\x78\0\x06\0\0\0\0\0\x50",
    ] {
        assert_eq!(Message::read(&raw(0, 1, wrong)), Err(Malformed), "{wrong:?}");
    }
}

#[test]
fn a_text_has_a_few_strings() {
    let mut rest = b"\0\0\x10\0\x01\0\0\0\x78\x08\0".to_vec();
    rest.extend(b"\x01a".repeat(1024));
    let records = Message::read(&raw(0, 1, &rest)).unwrap().records;
    let Data::Txt(strings) = &records[0].data else { panic!("{records:?}") };
    assert_eq!(strings.len(), STRINGS_MAX);
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = Message::read(&bytes);
        let mut behind = raw(2, 4, &[]);
        behind.extend(&bytes);
        if let Ok(message) = Message::read(&behind) {
            prop_assert_eq!(Message::read(&message.write()), Ok(message));
        }
    }
}
