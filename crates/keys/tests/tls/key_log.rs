//! The log of keys for tools that decrypt captures.

use std::fmt;
use std::sync::{Arc, Mutex};

use manypath_dtls::manage::Role;
use manypath_dtls::{CipherSuite, KeyMaterial, OpeningKeys, aws_lc};
use manypath_keys::key_log::{KeyLog, KeyLogFile};

use crate::harness::{End, Pair, agreement, anybody};

#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

/// Sessions print their log, which must not hide that they print keys themselves.
impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").finish_non_exhaustive()
    }
}

impl KeyLog for Lines {
    fn line(&self, line: &str) {
        self.0.lock().unwrap().push(line.to_owned());
    }
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = |i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hexadecimal digits");
    (0..hex.len()).step_by(2).map(digits).collect()
}

/// Opens a record as a tool would, with nothing but a log.
fn open(lines: &[String], direction: &str, epoch: u64, record: &[u8]) -> Option<Vec<u8>> {
    let prefix = format!("SCTP_DTLS_KEY 01020304 a1a2a3a4 {direction} {epoch} ");
    let rest = lines.iter().find_map(|line| line.strip_prefix(&prefix)).expect("a line for it");
    let [suite, key, sn_key, iv] = rest.split(' ').collect::<Vec<_>>()[..] else {
        panic!("another form: {rest}")
    };
    let suite = CipherSuite::from_id(u16::from_str_radix(suite, 16).unwrap()).unwrap();
    let material = KeyMaterial {
        key: bytes_of(key),
        sequence_number_key: bytes_of(sn_key),
        iv: bytes_of(iv).try_into().unwrap(),
    };
    let cipher = aws_lc::cipher(suite, &material).unwrap();
    let mut record = record.to_vec();
    let (_, chunks) = OpeningKeys::new(cipher, material.iv, epoch).open(&mut record).ok()?;
    Some(record[chunks].to_vec())
}

/// The directions are those of key management, whoever begins a rekeying.
#[test]
fn a_tool_with_the_log_reads_everything() {
    let logs = [Arc::new(Lines::default()), Arc::new(Lines::default())];
    let client = anybody().log_keys(logs[0].clone());
    let server = anybody().log_keys(logs[1].clone());
    let mut pair = Pair::established(&client, &server);
    for epoch in [3, 4, 5] {
        match epoch {
            4 => pair.client.rekey(),
            5 => pair.server.rekey(),
            _ => {}
        }
        pair.run();
        let (ping, pong) = (pair.client.seal(b"ping"), pair.server.seal(b"pong"));
        for log in &logs {
            let lines = log.0.lock().unwrap();
            assert_eq!(open(&lines, "client", epoch, &ping), Some(b"ping".to_vec()));
            assert_eq!(open(&lines, "server", epoch, &pong), Some(b"pong".to_vec()));
            assert_eq!(open(&lines, "server", epoch, &ping), None);
        }
    }
    let lines = logs[0].0.lock().unwrap();
    let secrets = |label: &str| lines.iter().filter(|line| line.starts_with(label)).count();
    assert_eq!(secrets("CLIENT_HANDSHAKE_TRAFFIC_SECRET "), 3);
    assert_eq!(secrets("EXPORTER_SECRET "), 3);
}

#[test]
fn a_file_gets_whole_lines_at_its_end() {
    let dir = std::env::temp_dir().join(format!("manypath-keys-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("keys.log");
    std::fs::write(&path, "# old\n").unwrap();
    let log = Arc::new(KeyLogFile::open(&path).unwrap());
    Pair::established(&anybody().log_keys(log.clone()), &anybody().log_keys(log));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("# old\n") && text.ends_with('\n'));
    assert_eq!(text.matches("SCTP_DTLS_KEY ").count(), 4, "two directions, by two ends");
    assert!(KeyLogFile::open(dir.join("missing").join("file")).is_err());
    std::fs::remove_dir_all(&dir).unwrap();
}

#[cfg(unix)]
#[test]
fn a_new_file_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let dir = std::env::temp_dir().join(format!("manypath-keys-mode-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("keys.log");
    KeyLogFile::open(&path).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!(mode & 0o7777, 0o600);
}

/// Without being asked, a session prints no key either.
#[test]
fn nothing_prints_keys() {
    let client = anybody();
    let lines = Arc::new(Lines::default());
    let logged = client.clone().log_keys(lines.clone());
    let mut pair = Pair {
        client: End::new(&logged, agreement(Role::Client)),
        server: End::new(&anybody(), agreement(Role::Server)),
    };
    pair.run();
    let printed = format!("{:?} {:?}", pair.client.session, pair.server.session);
    for line in lines.0.lock().unwrap().iter() {
        let secret = line.rsplit(' ').next().unwrap();
        assert!(!printed.contains(secret));
    }
    let before = lines.0.lock().unwrap().len();
    Pair::established(&client, &anybody());
    assert_eq!(lines.0.lock().unwrap().len(), before, "only those with a log write to it");
}
