use super::*;
use crate::relative::NameError;

fn client_frames() -> Vec<ClientFrame> {
    let name = RelativePath::from_bytes("dir/ü".as_bytes()).unwrap();
    vec![
        ClientFrame::Hello(Hello::new(vec![1, 2, 3], ENTRIES_MAX, 1 << 40)),
        ClientFrame::Hello(Hello { has_unknown_size: true, ..Hello::new(vec![1], 0, 0) }),
        ClientFrame::File(FileHeader {
            index: 3,
            kind: Kind::File,
            size: u64::MAX,
            mode: Some(0o644),
            modified: Some((-5, 999_999_999)),
            name: name.clone(),
        }),
        ClientFrame::File(FileHeader {
            index: 4,
            kind: Kind::Directory,
            size: 0,
            mode: None,
            modified: None,
            name,
        }),
        ClientFrame::End { index: 3, sha256: Some([8; 32]) },
        ClientFrame::End { index: 3, sha256: None },
        ClientFrame::Begin { index: 3, offset: 1 << 33 },
        ClientFrame::Working,
        ClientFrame::Finish { entries: 5 },
        ClientFrame::Password([7; 33]),
    ]
}

fn server_frames() -> Vec<ServerFrame> {
    let mut frames: Vec<_> = Outcome::ALL
        .into_iter()
        .map(|outcome| {
            ServerFrame::Status(FileStatus { index: 7, outcome, text: "because".into() })
        })
        .collect();
    frames.push(ServerFrame::Welcome(None));
    frames.push(ServerFrame::Working);
    let beginning = |length| Beginning { length, sha256: [length as u8; 32] };
    for beginnings in [vec![], vec![beginning(0)], (1..=32).map(beginning).collect()] {
        frames.push(ServerFrame::Ready(Ready { index: 6, beginnings }));
    }
    frames.push(ServerFrame::Password([9; 33]));
    frames.push(ServerFrame::Summary(Summary {
        stored: 1,
        failed: 2,
        bytes: 3,
        first_byte_ns: 4,
        max_delivery_gap_ns: 5,
        settle_ns: 6,
    }));
    frames
}

#[test]
fn frames_read_back_as_written_and_no_other_length_is_taken() {
    for frame in client_frames() {
        let bytes = frame.encode();
        assert_eq!(ClientFrame::decode(&bytes), Ok(frame));
        for end in 0..bytes.len() {
            assert!(ClientFrame::decode(&bytes[..end]).is_err(), "{bytes:?} cut at {end}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(ClientFrame::decode(&longer), Err(FrameError::Length));
    }
    for frame in server_frames() {
        let bytes = frame.encode();
        assert_eq!(ServerFrame::decode(&bytes), Ok(frame));
        for end in 0..bytes.len() {
            assert!(ServerFrame::decode(&bytes[..end]).is_err(), "{bytes:?} cut at {end}");
        }
    }
}

#[test]
fn the_hello_is_as_documented() {
    let old = Hello { reads_accepts: false, ..Hello::new(vec![0xaa], 2, 3) };
    let new = Hello { has_unknown_size: true, ..Hello::new(vec![0xaa], 2, 3) };
    for (hello, entries) in [(old, b"\0\0\0\x02"), (new, b"\xc0\0\0\x02")] {
        let expected = [&b"\x01MPFT\x02\x01\xaa"[..], entries, b"\0\0\0\0\0\0\0\x03"].concat();
        assert_eq!(ClientFrame::Hello(hello).encode(), expected);
    }
}

#[test]
fn a_welcome_says_more_only_to_those_who_ask_and_later_ones_may_say_yet_more() {
    assert_eq!(ServerFrame::Welcome(None).encode(), [16, 2]);
    for hidden in [false, true] {
        let welcome = ServerFrame::Welcome(Some(Accepts { hidden }));
        let bytes = welcome.encode();
        assert_eq!(bytes, [16, 2, u8::from(hidden)]);
        assert_eq!(ServerFrame::decode(&bytes), Ok(welcome.clone()));
        let later = [16, 2, u8::from(hidden) | 0xfe, 7, 7];
        assert_eq!(ServerFrame::decode(&later), Ok(welcome));
    }
    assert_eq!(ServerFrame::decode(&[16, 3]), Err(FrameError::Value("version")));
}

#[test]
fn hostile_values_are_errors() {
    assert_eq!(ClientFrame::decode(b"\x01HTTP\x01\x00"), Err(FrameError::Magic));
    assert_eq!(ClientFrame::decode(&[99]), Err(FrameError::Type(99)));
    assert_eq!(ServerFrame::decode(&[1]), Err(FrameError::Type(1)));
    let mut header = client_frames()[2].encode();
    let at = header.len() - "dir/ü".len();
    header[at..at + 3].copy_from_slice(b"../");
    let Err(FrameError::Name(unnamed)) = ClientFrame::decode(&header) else { panic!("accepted") };
    assert_eq!((unnamed.why, unnamed.name.as_str()), (NameError::Escapes, "..//\u{fc}"));
    let ClientFrame::File(accepted) = &client_frames()[2] else { panic!("not a file") };
    assert_eq!((unnamed.index, unnamed.size), (accepted.index, accepted.size));
    // A frame that is broken as well is no frame.
    header.push(0);
    assert_eq!(ClientFrame::decode(&header), Err(FrameError::Length));
}

#[test]
fn beginnings_that_are_too_many_or_out_of_order_are_errors() {
    let beginning = |length| Beginning { length, sha256: [1; 32] };
    let read = |lengths: &[u64]| {
        let beginnings = lengths.iter().copied().map(beginning).collect();
        ServerFrame::decode(&ServerFrame::Ready(Ready { index: 0, beginnings }).encode())
    };
    assert!(read(&[1, 2, 9]).is_ok());
    let many: Vec<u64> = (0..33).collect();
    for lengths in [&[2, 1][..], &[2, 2], &many] {
        assert_eq!(read(lengths), Err(FrameError::Value("beginnings")));
    }
}

#[test]
fn a_hello_of_another_version_can_be_told_apart() {
    let Ok(ClientFrame::Hello(hello)) = ClientFrame::decode(b"\x01MPFT\x07\x01\xaa\xff\xff") else {
        panic!("not understood")
    };
    assert_eq!((hello.version, hello.token), (7, vec![0xaa].into()));
}

#[test]
fn long_texts_are_cut_between_characters() {
    let text = "ü".repeat(TEXT_MAX);
    let status = FileStatus { index: 0, outcome: Outcome::DiskFull, text };
    let bytes = ServerFrame::Status(status).encode();
    assert!(bytes.len() < FRAME_MAX);
    assert!(
        matches!(ServerFrame::decode(&bytes), Ok(ServerFrame::Status(s)) if s.text.len() <= TEXT_MAX)
    );
}

#[test]
fn a_frame_prints_no_token() {
    let hello = ClientFrame::Hello(Hello::new(b"{".repeat(5), 1, 2));
    let printed = format!("{hello:?}");
    assert!(!printed.contains("123"), "{printed}");
}
