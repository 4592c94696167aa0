use std::fs;
use std::time::{Duration, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use super::*;
use crate::SystemDisk;
use crate::relative::RelativePath;

fn header(index: u32, name: &str, size: u64) -> FileHeader {
    let name = RelativePath::from_bytes(name.as_bytes()).unwrap();
    let (mode, modified) = (Some(0o640), Some((1_000_000_000, 5)));
    FileHeader { index, kind: Kind::File, size, mode, modified, name }
}

fn digest(content: &[u8]) -> Option<[u8; 32]> {
    Some(Sha256::digest(content).into())
}

fn store(dir: &Path) -> Store<SystemDisk> {
    let mut store = Store {
        disk: SystemDisk,
        dir: dir.to_owned(),
        overwrite: false,
        hidden: false,
        max_size: None,
        unnamed: true,
    };
    store.start().unwrap();
    store
}

/// Runs `work` through a store on `dir`; what became of each entry, by index.
fn run(dir: &Path, overwrite: bool, work: Vec<Work>) -> Vec<(u32, Outcome)> {
    run_in(&Store { overwrite, ..store(dir) }, work)
}

fn run_in(store: &Store<SystemDisk>, work: Vec<Work>) -> Vec<(u32, Outcome)> {
    let (work_tx, work_rx) = mpsc::channel(100);
    let (done_tx, mut done_rx) = mpsc::channel(100);
    for item in work {
        work_tx.try_send(item).unwrap();
    }
    drop(work_tx);
    store.write_all(work_rx, &done_tx);
    drop(done_tx);
    let mut done: Vec<_> = std::iter::from_fn(|| done_rx.blocking_recv())
        .map(|done| (done.status.index, done.status.outcome))
        .collect();
    done.sort_by_key(|(index, _)| *index);
    done
}

fn listing(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn content(bytes: &'static [u8]) -> Work {
    let middle = bytes.len() / 2;
    let pieces = [&bytes[..middle], &[], &bytes[middle..]];
    Work::Content(pieces.into_iter().map(Bytes::from_static).collect())
}

#[test]
fn files_arrive_whole_with_time_and_permissions() {
    let dir = tempfile::tempdir().unwrap();
    let directory = FileHeader { kind: Kind::Directory, ..header(0, "d", 0) };
    let work = vec![
        Work::Begin(directory),
        Work::Begin(header(1, "d/e/x", 11)),
        content(b"hello "),
        content(b"world"),
        Work::End(digest(b"hello world")),
        Work::Begin(header(2, "empty", 0)),
        Work::End(digest(b"")),
    ];
    use Outcome::Stored;
    assert_eq!(run(dir.path(), false, work), [(0, Stored), (1, Stored), (2, Stored)]);
    assert_eq!(fs::read(dir.path().join("d/e/x")).unwrap(), b"hello world");
    assert_eq!(fs::read(dir.path().join("empty")).unwrap(), b"");
    assert_eq!(listing(&dir.path().join("d/e")), ["x"], "no part file stays");
    let meta = fs::metadata(dir.path().join("d/e/x")).unwrap();
    assert_eq!(meta.modified().unwrap(), UNIX_EPOCH + Duration::new(1_000_000_000, 5));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(meta.permissions().mode() & 0o700, 0o600);
        assert_eq!(meta.permissions().mode() & 0o007, 0);
    }
}

#[test]
fn damaged_short_long_and_abandoned_files_leave_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let work = vec![
        Work::Begin(header(0, "damaged", 5)),
        content(b"hellx"),
        Work::End(digest(b"hello")),
        Work::Begin(header(1, "short", 6)),
        content(b"hello"),
        Work::End(digest(b"hello")),
        Work::Begin(header(2, "long", 4)),
        content(b"hello"),
        Work::End(digest(b"hello")),
        Work::Begin(header(3, "abandoned", 5)),
        content(b"he"),
        Work::End(None),
        Work::Begin(header(4, "interrupted", 5)),
        content(b"he"),
    ];
    use Outcome::{Abandoned, DigestMismatch, WriteFailed};
    let expected = [(0, DigestMismatch), (1, DigestMismatch), (2, WriteFailed), (3, Abandoned)];
    assert_eq!(run(dir.path(), false, work), expected);
    assert_eq!(listing(dir.path()), [""; 0]);
}

#[test]
fn existing_files_are_replaced_only_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("x");
    fs::write(&place, "old").unwrap();
    let work = || vec![Work::Begin(header(0, "x", 3)), content(b"new"), Work::End(digest(b"new"))];
    assert_eq!(run(dir.path(), false, work()), [(0, Outcome::Exists)]);
    assert_eq!(fs::read(&place).unwrap(), b"old");
    assert_eq!(run(dir.path(), true, work()), [(0, Outcome::Stored)]);
    assert_eq!(fs::read(&place).unwrap(), b"new");
    assert_eq!(listing(dir.path()), ["x"]);
}

#[test]
fn a_name_taken_during_the_transfer_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let work = [Work::Begin(header(0, "x", 3)), content(b"new"), Work::End(digest(b"new"))];
    for unnamed in [true, false] {
        let mut writer = Store { unnamed, ..store(dir.path()) }.writer();
        let _ = fs::remove_file(dir.path().join("x"));
        assert!(work.iter().all(|item| writer.handle(item.clone()).is_empty()));
        fs::write(dir.path().join("x"), "other").unwrap();
        assert_eq!(writer.flush()[0].status.outcome, Outcome::Exists);
        drop(writer);
        assert_eq!(fs::read(dir.path().join("x")).unwrap(), b"other");
        assert_eq!(listing(dir.path()), ["x"]);
    }
}

#[test]
fn names_as_long_as_the_file_system_allows_have_room_for_the_part() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["n".repeat(255), "ü".repeat(127)] {
        let work = vec![Work::Begin(header(0, &name, 0)), Work::End(digest(b""))];
        assert_eq!(run(dir.path(), false, work), [(0, Outcome::Stored)]);
        assert!(dir.path().join(&name).exists());
    }
}

#[cfg(unix)]
#[test]
fn nothing_is_written_through_symbolic_links() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), dir.path().join("link")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("y"), dir.path().join("y")).unwrap();
    let directory = FileHeader { kind: Kind::Directory, ..header(1, "link", 0) };
    let work = vec![
        Work::Begin(header(0, "link/x", 0)),
        Work::End(digest(b"")),
        Work::Begin(directory),
        Work::Begin(header(2, "y", 0)),
        Work::End(digest(b"")),
    ];
    use Outcome::{CannotCreate, Exists, Stored};
    assert_eq!(run(dir.path(), true, work), [(0, CannotCreate), (1, Exists), (2, Stored)]);
    assert_eq!(listing(outside.path()), [""; 0]);
    assert!(dir.path().join("y").symlink_metadata().unwrap().is_file(), "the link is replaced");
}

#[test]
fn hidden_files_are_stored_only_when_asked_and_names_of_ours_never() {
    let dir = tempfile::tempdir().unwrap();
    let ours = ".manypath-part-0123456789abcdef";
    let work = || {
        let directory = FileHeader { kind: Kind::Directory, ..header(2, ".ssh", 0) };
        vec![
            Work::Begin(header(0, ".ssh/authorized_keys", 1)),
            content(b"k"),
            Work::End(digest(b"k")),
            Work::Begin(header(1, "a/.b/c", 0)),
            Work::End(digest(b"")),
            Work::Begin(directory),
            Work::Begin(header(3, ours, 0)),
            Work::End(digest(b"")),
        ]
    };
    use Outcome::{NameRefused, Stored};
    let refused = [0, 1, 2, 3].map(|index| (index, NameRefused));
    assert_eq!(run(dir.path(), false, work()), refused);
    assert_eq!(listing(dir.path()), [""; 0], "not even a directory");
    let store = Store { hidden: true, ..store(dir.path()) };
    let expected = [(0, Stored), (1, Stored), (2, Stored), (3, NameRefused)];
    assert_eq!(run_in(&store, work()), expected);
    assert_eq!(listing(dir.path()), [".ssh", "a"]);
}

#[test]
fn a_transfer_is_as_large_as_it_may_be_whatever_it_says() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store { max_size: Some(8), ..store(dir.path()) };
    assert_eq!(store.refuses(8), None);
    assert_eq!(store.refuses(9).unwrap().0, Outcome::TooLarge);
    let file = |index, name: &str| {
        vec![Work::Begin(header(index, name, 5)), content(b"12345"), Work::End(digest(b"12345"))]
    };
    let work = [file(0, "a"), file(1, "b"), vec![Work::Begin(header(2, "c", 3))]].concat();
    use Outcome::{Stored, TooLarge};
    assert_eq!(
        run_in(&store, work),
        [(0, Stored), (1, TooLarge)],
        "the third fits, but never ends"
    );
    assert_eq!(listing(dir.path()), ["a"]);
}

#[test]
fn what_does_not_fit_on_the_disk_is_refused_before_it_is_sent() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    assert_eq!(store.refuses(u64::MAX).unwrap().0, Outcome::DiskFull);
    assert_eq!(store.refuses(1), None);
    let work = vec![Work::Begin(header(0, "x", u64::MAX - 1))];
    assert_eq!(run_in(&store, work), [(0, Outcome::DiskFull)]);
}
