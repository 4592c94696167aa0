//! `manypath decrypt`, with a packet that another implementation sealed.

mod common;

use std::fs;
use std::path::PathBuf;

use common::{code, manypath, stderr, stdout};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

/// A COOKIE ACK in a record; see `crates/dtls/tests/records.rs`, which has the keys, too.
const RECORD: &str = "2bfbdd3d2894ba19d792c1b295bfaeb613671845a2fc2431";

fn bytes(hex: &str) -> Vec<u8> {
    let pair = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(pair).collect()
}

/// A pcap file with these SCTP packets in UDP and IP.
fn pcap(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut out = bytes("d4c3b2a1020004000000000000000000ffff000065000000");
    for sctp in packets {
        let len = (28 + sctp.len()) as u8;
        let ip = [0x45, 0, 0, len, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        let udp = [0x9c, 0x40, 0x26, 0xab, 0, len - 20, 0, 0];
        out.extend_from_slice(&[1, 0, 0, 0, 2, 0, 0, 0, len, 0, 0, 0, len, 0, 0, 0]);
        out.extend_from_slice(&[&ip[..], &udp, sctp].concat());
    }
    out
}

/// The protected packet, to the server of an association, whose tag is this.
fn protected(tag: &str) -> Vec<u8> {
    [&bytes("138813890000000000000000")[..4], &bytes(tag), &[0; 4], &[0x41, 0, 0, 29, 0]]
        .concat()
        .into_iter()
        .chain(bytes(RECORD))
        .chain([0; 3])
        .collect()
}

struct Files {
    dir: TempDir,
}

impl Files {
    fn new() -> Files {
        let files = Files { dir: tempdir().unwrap() };
        let hex =
            |from: u8, len: u8| (from..from + len).map(|n| format!("{n:02x}")).collect::<String>();
        let keys = [hex(0, 16), hex(100, 16), hex(200, 12)].join(" ");
        let line = format!("SCTP_DTLS_KEY 01020304 a1a2a3a4 client 3 1301 {keys}\n");
        fs::write(files.path("keys"), format!("# a comment\n{line}")).unwrap();
        let packets = [protected("a1a2a3a4"), protected("11111111"), vec![7; 40]];
        fs::write(files.path("in.pcap"), pcap(&packets)).unwrap();
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn decrypt(&self, capture: &str, keys: &str, out: &str) -> std::process::Output {
        let [capture, keys, out] =
            [capture, keys, out].map(|name| self.path(name).display().to_string());
        manypath(&["decrypt", &capture, "--keys", &keys, "--out", &out, "--json"])
    }
}

#[test]
fn a_capture_is_copied_with_its_packets_opened() {
    let files = Files::new();
    // Anybody may read the file that it replaces.
    fs::write(files.path("out.pcapng"), "older").unwrap();
    let output = files.decrypt("in.pcap", "keys", "out.pcapng");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let result: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let expected = serde_json::json!({
        "packets": 3, "written": 3, "opened": 1, "not_protected": 1,
        "not_opened": {"no_keys": 1}, "batches": 0, "cut_off": false,
    });
    assert_eq!(result, expected);
    let copy = fs::read(files.path("out.pcapng")).unwrap();
    let has = |part: &[u8]| copy.windows(part.len()).any(|window| window == part);
    // Source port to CRC32c, and the COOKIE ACK.
    let opened = [&bytes("13881389a1a2a3a4")[..], &crc().to_le_bytes(), &[11, 0, 0, 4]].concat();
    assert!(has(&opened), "the opened packet");
    assert!(has(&protected("11111111")) && has(&[7; 40]), "the others");
    assert!(has(b"opened: was protected by a DTLS chunk"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(files.path("out.pcapng")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "what was secret is plain in it");
    }
}

#[test]
fn a_packed_capture_is_unpacked() {
    use flate2::{Compression, write::GzEncoder};
    let files = Files::new();
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    std::io::copy(&mut fs::File::open(files.path("in.pcap")).unwrap(), &mut packed).unwrap();
    fs::write(files.path("in.pcap.gz"), packed.finish().unwrap()).unwrap();
    for capture in ["in.pcap", "in.pcap.gz"] {
        let output = files.decrypt(capture, "keys", &format!("{capture}.out"));
        assert_eq!(code(&output), 0, "{capture}: {}", stderr(&output));
    }
    let opened = |name: &str| fs::read(files.path(name)).unwrap();
    assert!(opened("in.pcap.out") == opened("in.pcap.gz.out"));
    // A truncated file is an error, and not a shorter capture.
    let whole = fs::read(files.path("in.pcap.gz")).unwrap();
    fs::write(files.path("cut.gz"), &whole[..whole.len() / 2]).unwrap();
    assert_ne!(code(&files.decrypt("cut.gz", "keys", "cut.out")), 0);
}

/// CRC32c of the opened packet with a checksum of zero, bit by bit (RFC 9260, Appendix A).
fn crc() -> u32 {
    let packet = bytes("13881389a1a2a3a4000000000b000004");
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    let byte = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc));
    !packet.iter().fold(!0, byte)
}

#[test]
fn wrong_files_are_refused_with_the_reason() {
    let files = Files::new();
    let refused = |capture: &str, keys: &str, out: &str, exit: i32, reason: &str| {
        let output = files.decrypt(capture, keys, out);
        assert_eq!(code(&output), exit, "{}", stderr(&output));
        assert!(stderr(&output).contains(reason), "{reason}: {}", stderr(&output));
        let result: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!(result["completed"], false);
    };
    fs::write(files.path("bad keys"), "# one\nSCTP_DTLS_KEY 1\n").unwrap();
    refused("in.pcap", "bad keys", "out", 2, "bad keys:2: SCTP_DTLS_KEY has 8 words");
    fs::write(files.path("no keys"), "CLIENT_RANDOM 00 00\n").unwrap();
    refused("in.pcap", "no keys", "out", 2, "set SSLKEYLOGFILE");
    refused("missing", "keys", "out", 2, "cannot read");
    refused("keys", "keys", "out", 2, "neither a pcap nor a pcapng file");
    refused("in.pcap", "keys", "in.pcap", 2, "copy of itself");
    refused("in.pcap", "keys", "keys", 2, "copy of itself");
    refused("in.pcap", "keys", "no/such/dir", 2, "cannot write");
    assert!(files.decrypt("in.pcap", "keys", "out").status.success(), "nothing was replaced");
}
