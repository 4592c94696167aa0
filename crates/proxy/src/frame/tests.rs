use proptest::prelude::*;

use super::*;
use crate::testing;

fn address() -> impl Strategy<Value = HostPort> {
    ("[!-~]{1,253}", any::<u16>()).prop_map(|(host, port)| HostPort { host, port })
}

fn refusal() -> impl Strategy<Value = Refusal> {
    (0..Cause::ALL.len(), "\\PC{0,100}").prop_map(|(i, text)| Refusal::new(Cause::ALL[i], text))
}

fn frame() -> impl Strategy<Value = Frame> {
    prop_oneof![
        (any::<u8>(), prop::collection::vec(any::<u8>(), 0..=TOKEN_MAX))
            .prop_map(|(version, token)| Frame::Hello { version, token: token.into() }),
        any::<u64>().prop_map(|instance| Frame::Welcome { instance }),
        (any::<u16>(), address()).prop_map(|(id, at)| Frame::Listen { id, at }),
        any::<(u16, u16)>().prop_map(|(id, port)| Frame::Listening { id, port }),
        (any::<u16>(), refusal()).prop_map(|(id, why)| Frame::NotListening { id, why }),
        address().prop_map(|to| Frame::Open(Target::Tcp(to))),
        any::<u16>().prop_map(|id| Frame::Open(Target::Forwarded(id))),
        any::<u32>().prop_map(|n| Frame::Open(Target::Udp(n))),
        refusal().prop_map(Frame::Refused),
        any::<u32>().prop_map(Frame::Credit),
        (0..5_usize).prop_map(|i| {
            [Frame::Ping, Frame::Accepted, Frame::Fin, Frame::Reset, Frame::Close][i].clone()
        }),
    ]
}

proptest! {
    #[test]
    fn a_frame_reads_as_it_was_written(frame in frame()) {
        let bytes = frame.encode();
        prop_assert!(bytes.len() <= FRAME_MAX);
        prop_assert_eq!(Frame::decode(&bytes), Ok(frame));
    }

    #[test]
    fn a_frame_that_was_cut_or_lengthened_is_refused(frame in frame(), more in 1..9_usize) {
        let bytes = frame.encode();
        for end in 0..bytes.len() {
            prop_assert!(Frame::decode(&bytes[..end]).is_err());
        }
        let long: Vec<u8> = bytes.iter().copied().chain((0..more).map(|_| 0)).collect();
        prop_assert!(Frame::decode(&long).is_err());
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        testing::fuzz_frames(&bytes);
    }

    #[test]
    fn a_datagram_reads_as_it_was_written(
        number in any::<u32>(), address in address(), data in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        let datagram = Datagram { number, address, data: data.into() };
        prop_assert_eq!(Datagram::decode(&datagram.encode()), Ok(datagram));
    }
}

#[test]
fn a_long_text_is_cut_between_characters() {
    let why = Refusal::new(Cause::Failed, "é".repeat(400));
    let Ok(Frame::Refused(read)) = Frame::decode(&Frame::Refused(why).encode()) else { panic!() };
    assert_eq!(read.text, "é".repeat(TEXT_MAX / 2));
}

#[test]
fn a_host_that_is_none_is_read_as_an_empty_one() {
    for host in ["", "a\x1b[2J", "a b", "a\0", "a\n", "\u{e9}.example"] {
        let at = HostPort { host: host.to_owned(), port: 1 };
        assert!(!at.is_valid());
        let none = HostPort { host: String::new(), port: 1 };
        let bytes = Frame::Open(Target::Tcp(at.clone())).encode();
        assert_eq!(Frame::decode(&bytes), Ok(Frame::Open(Target::Tcp(none.clone()))));
        let bytes = Frame::Listen { id: 1, at: at.clone() }.encode();
        assert_eq!(Frame::decode(&bytes), Ok(Frame::Listen { id: 1, at: none.clone() }));
        let datagram = |address| Datagram { number: 7, address, data: Bytes::from_static(b"x") };
        assert_eq!(Datagram::decode(&datagram(at).encode()), Ok(datagram(none)));
    }
}

#[test]
fn a_frame_prints_no_token() {
    let hello = Frame::Hello { version: VERSION, token: b"{".repeat(5).into() };
    let printed = format!("{hello:?}");
    assert!(!printed.contains("123"), "{printed}");
}
