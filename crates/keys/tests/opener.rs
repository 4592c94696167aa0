//! Captures opened with the log of a session's keys.

use std::fmt;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use manypath_dtls::manage::{
    Agreement, KeyAction, KeyManagement, KeySession, METHOD_PRE_SHARED, Role,
};
use manypath_dtls::{HEADER_LEN, SealingKeys};
use manypath_keys::key_log::{KeyLineError, KeyLog, KeyLogError, NotOpened, Opener};
use manypath_keys::psk::SharedKey;
use manypath_wire::{Checksum, Chunk, CommonHeader, Packet, PacketBuilder};
use proptest::prelude::*;

const CLIENT_TAG: u32 = 0x0102_0304;
const SERVER_TAG: u32 = 0xa1a2_a3a4;
const COOKIE_ACK: [u8; 4] = [11, 0, 0, 4];

/// A log in memory.
#[derive(Default)]
struct Lines(Mutex<String>);

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").finish_non_exhaustive()
    }
}

impl KeyLog for Lines {
    fn line(&self, line: &str) {
        let mut lines = self.0.lock().unwrap();
        lines.push_str(line);
        lines.push('\n');
    }
}

/// The end of an association that seals.
struct End {
    session: Box<dyn KeySession>,
    sealing: Option<SealingKeys>,
    /// The tag that the other end expects.
    tag: u32,
}

impl End {
    fn new(key: &SharedKey, role: Role) -> End {
        let parameters =
            (Bytes::from_static(b"of the client"), Bytes::from_static(b"the server's"));
        let tags = (CLIENT_TAG, SERVER_TAG);
        let session = key.begin(Agreement::new(role, METHOD_PRE_SHARED, parameters, tags));
        let tag = if role == Role::Client { SERVER_TAG } else { CLIENT_TAG };
        let mut end = End { session, sealing: None, tag };
        end.act();
        end
    }

    fn act(&mut self) {
        while let Some(action) = self.session.poll() {
            if let KeyAction::SealWith(keys) = action {
                self.sealing = Some(keys);
            }
        }
    }

    fn rekey(&mut self) {
        let epoch = self.sealing.as_ref().unwrap().epoch();
        self.session.opened(epoch);
        self.session.rekey();
        self.act();
        assert_eq!(self.sealing.as_ref().unwrap().epoch(), epoch + 1);
    }

    fn seal(&mut self, chunks: &[u8]) -> Bytes {
        let mut record = vec![0; HEADER_LEN];
        record.extend_from_slice(chunks);
        self.sealing.as_mut().unwrap().seal(&mut record, 0).unwrap();
        packet(self.tag, |builder| assert!(builder.push_dtls(false, &record)))
    }

    /// Seals packets that nobody captures.
    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.sealing.as_mut().unwrap().seal(&mut vec![0; HEADER_LEN], 0).unwrap();
        }
    }
}

fn packet(tag: u32, push: impl FnOnce(&mut PacketBuilder<'_>)) -> Bytes {
    let header = CommonHeader { source_port: 5000, destination_port: 5001, verification_tag: tag };
    let mut bytes = Vec::new();
    let mut builder = PacketBuilder::new(&mut bytes, header, 1500);
    push(&mut builder);
    builder.finish(true);
    bytes.into()
}

/// Both ends of an association, and the log that both write to.
fn association() -> (End, End, Arc<Lines>) {
    let log = Arc::new(Lines::default());
    let key = SharedKey::new(&[7; 32]).unwrap().log_keys(log.clone());
    (End::new(&key, Role::Client), End::new(&key, Role::Server), log)
}

fn opener(log: &Lines) -> Opener {
    let mut opener = Opener::default();
    assert!(opener.read(log.0.lock().unwrap().as_bytes()).unwrap() >= 2);
    opener
}

/// The chunks of an opened packet, whose header must be right.
fn chunks(opened: &Bytes, tag: u32) -> Vec<u8> {
    let packet = Packet::parse(opened.clone(), Checksum::Verify).expect("the right checksum");
    assert_eq!((packet.header.source_port, packet.header.destination_port), (5000, 5001));
    assert_eq!(packet.header.verification_tag, tag);
    opened[12..].to_vec()
}

/// The record is one that Python made; see `crates/dtls/tests/records.rs`.
#[test]
fn a_packet_of_another_implementation_is_opened() {
    let hex =
        |from: u8, len: u8| (from..from + len).map(|n| format!("{n:02x}")).collect::<String>();
    let keys = [hex(0, 16), hex(100, 16), hex(200, 12)].join(" ");
    let line = format!("SCTP_DTLS_KEY 01020304 a1a2a3a4 client 3 1301 {keys}");
    let record = "2bfbdd3d2894ba19d792c1b295bfaeb613671845a2fc2431";
    let record: Vec<u8> = (0..record.len() / 2)
        .map(|i| u8::from_str_radix(&record[2 * i..2 * i + 2], 16).unwrap())
        .collect();
    let sealed = packet(SERVER_TAG, |builder| assert!(builder.push_dtls(false, &record)));
    let mut opener = Opener::default();
    assert_eq!(opener.learn(&line), Ok(true));
    let opened = opener.open(&sealed).unwrap();
    assert_eq!(chunks(&opened, SERVER_TAG), COOKIE_ACK);
    let parsed = Packet::parse(opened.clone(), Checksum::Verify).unwrap();
    assert!(matches!(parsed.chunks().next(), Some(Ok(Chunk::CookieAck))));
    assert_eq!(sealed.len(), opened.len() + 28);
}

#[test]
fn both_directions_and_all_epochs_open_as_often_as_they_come() {
    let (mut client, mut server, log) = association();
    let mut packets = Vec::new();
    for number in 0..20u8 {
        for end in [&mut client, &mut server] {
            let chunks = [3, 0, 0, 8, number, 1, 2, 3];
            packets.push((end.tag, chunks, end.seal(&chunks)));
            end.rekey();
        }
    }
    let mut opener = opener(&log);
    // Again from the end: no order is asked for.
    for (tag, expected, sealed) in packets.iter().chain(packets.iter().rev()) {
        assert_eq!(chunks(&opener.open(sealed).unwrap(), *tag), expected);
    }
}

#[test]
fn a_capture_may_begin_in_the_middle_of_an_association() {
    let (mut client, _, log) = association();
    for _ in 0..30 {
        client.skip(10);
        client.rekey();
    }
    client.skip(200_000);
    let sealed = client.seal(&COOKIE_ACK);
    assert_eq!(chunks(&opener(&log).open(&sealed).unwrap(), SERVER_TAG), COOKIE_ACK);
}

#[test]
fn a_record_may_lack_the_padding_of_its_last_chunk() {
    let (mut client, _, log) = association();
    let sealed = client.seal(&[4, 0, 0, 5, 9]);
    let opened = opener(&log).open(&sealed).unwrap();
    assert_eq!(chunks(&opened, SERVER_TAG), [4, 0, 0, 5, 9, 0, 0, 0]);
}

#[test]
fn what_is_not_opened_has_a_reason() {
    let (mut client, mut server, log) = association();
    let mut opener = opener(&log);
    let sealed = client.seal(&COOKIE_ACK);
    let plain = packet(SERVER_TAG, |builder| assert!(builder.push_chunk(11, 0, &[])));
    assert_eq!(opener.open(&plain), Err(NotOpened::NotProtected));
    assert_eq!(opener.open(&sealed.slice(..9)), Err(NotOpened::NotProtected));
    assert_eq!(opener.open(&sealed.slice(..20)), Err(NotOpened::Malformed));
    let record = &sealed[17..41];
    let bundle = packet(SERVER_TAG, |builder| {
        assert!(builder.push_dtls(false, record) && builder.push_chunk(11, 0, &[]));
    });
    assert_eq!(opener.open(&bundle), Err(NotOpened::Malformed));
    let restart = packet(SERVER_TAG, |builder| assert!(builder.push_dtls(true, record)));
    assert_eq!(opener.open(&restart), Err(NotOpened::Restart));
    let stranger = packet(SERVER_TAG + 1, |builder| assert!(builder.push_dtls(false, record)));
    assert_eq!(opener.open(&stranger), Err(NotOpened::NoKeys));
    let reflected = packet(CLIENT_TAG, |builder| assert!(builder.push_dtls(false, record)));
    assert_eq!(opener.open(&reflected), Err(NotOpened::NotAuthentic));
    let mut damaged = sealed.to_vec();
    damaged[30] ^= 1;
    assert_eq!(opener.open(&damaged.into()), Err(NotOpened::NotAuthentic));
    // Epochs 3 and 4 are in the log from the beginning, 6 is not.
    for _ in 0..3 {
        server.rekey();
    }
    assert_eq!(opener.open(&server.seal(&COOKIE_ACK)), Err(NotOpened::NoKeys));
    assert!(opener.open(&sealed).is_ok());
}

#[test]
fn other_lines_are_ignored_and_wrong_ones_are_errors_with_their_number() {
    let key = "00".repeat(16);
    let iv = "1f".repeat(12);
    let right = format!("SCTP_DTLS_KEY 01020304 a1a2a3a4 client 3 1301 {key} {key} {iv}");
    let long = format!("#{}", "x".repeat(100_000));
    let around = format!("# a comment\n\nCLIENT_RANDOM 00 11\n\u{e9}\n{long}\n");
    let mut log = around.clone().into_bytes();
    log.extend_from_slice(b"\xff\xfe no text\n");
    log.extend_from_slice(format!("{right}\r\n{right}").as_bytes());
    assert_eq!(Opener::default().read(&log[..]).unwrap(), 2);

    let error = |line: &str| match Opener::default().read(format!("{around}{line}\n").as_bytes()) {
        Err(KeyLogError::Line { line: 6, error }) => error,
        other => panic!("{line}: {other:?}"),
    };
    let with = |from: &str, to: &str| error(&right.replace(from, to));
    assert_eq!(error("SCTP_DTLS_KEY"), KeyLineError::Words(0));
    assert_eq!(error(&format!("{right} more")), KeyLineError::Words(9));
    assert_eq!(with("01020304", "1020304"), KeyLineError::Tag);
    assert_eq!(with("01020304", "+1020304"), KeyLineError::Tag);
    assert_eq!(with("client", "sender"), KeyLineError::Direction);
    assert_eq!(with(" 3 ", " +3 "), KeyLineError::Epoch);
    assert_eq!(with(" 3 ", " 18446744073709551616 "), KeyLineError::Epoch);
    assert_eq!(with("1301", "1304"), KeyLineError::Suite);
    // The keys of the other suites are longer.
    let message = with("1301", "1302").to_string();
    assert_eq!(message, "the key has 64 hexadecimal digits");
    assert!(matches!(with(&iv, "zz"), KeyLineError::Key { digits: 24, .. }));
    assert_eq!(error(&format!("{right}{}", " ".repeat(5000))), KeyLineError::NoText);
    let text = Opener::default().read(&b"\nSCTP_DTLS_KEY\n"[..]).unwrap_err().to_string();
    assert_eq!(text, "line 2: SCTP_DTLS_KEY has 8 words after it, not 0");
}

#[test]
fn nothing_prints_keys() {
    let (_, _, log) = association();
    let printed = format!("{:?}", opener(&log));
    let lines = log.0.lock().unwrap();
    let key = lines.lines().next().unwrap().rsplit(' ').next().unwrap();
    assert!(!printed.contains(key) && printed.contains("keys: 4"), "{printed}");
}

proptest! {
    #[test]
    fn any_lines_and_packets_are_taken(
        lines in proptest::collection::vec("(SCTP_DTLS_KEY )?[0-9a-f client]{0,300}", 0..8),
        bytes in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let (_, _, log) = association();
        let mut opener = opener(&log);
        for line in &lines {
            let _ = opener.learn(line);
        }
        let header = [&[0x13, 0x88, 0x13, 0x89][..], &SERVER_TAG.to_be_bytes(), &[0; 4]].concat();
        let chunk = [0x41, 0, 0, (bytes.len() + 6) as u8, 0, 0x2b];
        for packet in [bytes.clone(), [&header[..], &bytes].concat(), [&header[..], &chunk, &bytes].concat()] {
            prop_assert!(opener.open(&packet.into()).is_err());
        }
    }
}
