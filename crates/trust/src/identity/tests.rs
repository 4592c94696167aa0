use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Barrier;
use std::thread;

use proptest::prelude::*;
use tempfile::tempdir;

use super::*;

/// A key of random digits between the lines of PEM.
#[derive(Debug, PartialEq, Eq)]
struct Digits(u64);

const BEGIN: &str = "-----BEGIN TEST KEY-----\n";
const END: &str = "\n-----END TEST KEY-----\n";

impl IdentityKey for Digits {
    fn generate() -> Result<Digits, String> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(|e| e.to_string())?;
        Ok(Digits(u64::from_be_bytes(bytes)))
    }

    fn from_pem(pem: &str) -> Result<Digits, String> {
        let digits = pem.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END));
        let digits = digits.and_then(|digits| digits.parse().ok());
        digits.map(Digits).ok_or_else(|| "no test key".to_owned())
    }

    fn to_pem(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("{BEGIN}{}{END}", self.0))
    }
}

fn load_or_create(path: &Path) -> Result<Identity<Digits>, IdentityError> {
    Identity::load_or_create(path)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Writes a file that only this user can read.
fn write(path: &Path, content: &[u8]) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn a_key_is_made_once_and_stays() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("identity");
    let made = load_or_create(&file).unwrap();
    assert!(made.created);
    assert_eq!(mode(&file), 0o600);
    let read = load_or_create(&file).unwrap();
    assert!(!read.created);
    assert_eq!(read.key, made.key);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
    // A read-only file is fine, and a link to one.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o400)).unwrap();
    symlink(&file, dir.path().join("link")).unwrap();
    assert_eq!(load_or_create(&dir.path().join("link")).unwrap().key, made.key);
}

#[test]
fn all_who_start_at_once_get_the_same_key() {
    for _ in 0..20 {
        let dir = tempdir().unwrap();
        let file = dir.path().join("identity");
        let start = Barrier::new(8);
        let identities: Vec<_> = thread::scope(|scope| {
            let one = || {
                start.wait();
                load_or_create(&file).unwrap()
            };
            let all: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let keys: BTreeSet<u64> = identities.iter().map(|identity| identity.key.0).collect();
        assert_eq!(keys.len(), 1);
        assert_eq!(identities.iter().filter(|identity| identity.created).count(), 1);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}

#[test]
fn a_file_that_others_can_read_is_refused_and_left_alone() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("identity");
    load_or_create(&file).unwrap();
    let content = fs::read(&file).unwrap();
    for exposed in [0o644, 0o640, 0o604, 0o620, 0o602, 0o660] {
        fs::set_permissions(&file, fs::Permissions::from_mode(exposed)).unwrap();
        let error = load_or_create(&file).unwrap_err();
        assert!(matches!(error, IdentityError::Exposed { .. }), "{error}");
        assert!(error.to_string().contains(&format!("{exposed:04o}")), "{error}");
        assert_eq!((mode(&file), fs::read(&file).unwrap()), (exposed, content.clone()));
    }
}

#[test]
fn a_file_of_another_user_is_refused() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("identity");
    load_or_create(&file).unwrap();
    // Only root can give files away.
    if std::os::unix::fs::chown(&file, Some(65_534), None).is_err() {
        return;
    }
    let error = load_or_create(&file).unwrap_err();
    assert!(matches!(error, IdentityError::Owner(_)), "{error}");
}

#[test]
fn a_file_that_is_no_key_is_refused_and_left_alone() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("identity");
    for content in [&b""[..], b"secret notes", b"\xff\xfe", &vec![b'a'; (64 << 10) + 1]] {
        write(&file, content);
        let error = load_or_create(&file).unwrap_err();
        assert!(matches!(error, IdentityError::NotAKey { .. }), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
        assert_eq!(fs::read(&file).unwrap(), content);
    }
}

/// A key in a file that does not end is not looked for any longer than this.
#[test]
fn a_key_with_more_than_64_kib_around_it_is_refused() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("identity");
    let of_length = |len: usize| {
        let digits = len - BEGIN.len() - END.len();
        format!("{BEGIN}{:0digits$}{END}", 7)
    };
    write(&file, of_length(64 << 10).as_bytes());
    assert_eq!(load_or_create(&file).unwrap().key, Digits(7));
    write(&file, of_length((64 << 10) + 1).as_bytes());
    let error = load_or_create(&file).unwrap_err();
    assert!(error.to_string().contains("longer than 64 KiB"), "{error}");
}

#[test]
fn places_where_no_file_can_be_are_errors() {
    let dir = tempdir().unwrap();
    let error = load_or_create(dir.path()).unwrap_err();
    assert!(matches!(error, IdentityError::NotAFile(_)), "{error}");
    let error = load_or_create(&dir.path().join("none/identity")).unwrap_err();
    assert!(matches!(error, IdentityError::Create { .. }), "{error}");
    // A pipe that nobody writes into does not hold it up.
    let pipe = dir.path().join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let error = load_or_create(&pipe).unwrap_err();
    assert!(matches!(error, IdentityError::NotAFile(_)), "{error}");
    // A link to nothing is not followed to create a file.
    let link = dir.path().join("link");
    symlink(dir.path().join("nothing"), &link).unwrap();
    let error = load_or_create(&link).unwrap_err();
    assert!(matches!(error, IdentityError::Create { .. }), "{error}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_content_is_read_or_refused(content in prop::collection::vec(any::<u8>(), 0..200)) {
        let dir = tempdir().unwrap();
        let file = dir.path().join("identity");
        write(&file, &content);
        prop_assert!(load_or_create(&file).is_err());
        prop_assert_eq!(fs::read(&file).unwrap(), content);
    }
}
