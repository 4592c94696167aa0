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

/// The content of the file of that index comes, all of it.
fn begin(index: u32) -> Work {
    Work::Begin { index, offset: 0 }
}

fn digest(content: &[u8]) -> Option<[u8; 32]> {
    Some(Sha256::digest(content).into())
}

fn store(dir: &Path) -> Store<SystemDisk> {
    store_on(SystemDisk, dir)
}

fn store_on<D: Disk>(disk: D, dir: &Path) -> Store<D> {
    let mut store = Store {
        disk,
        dir: dir.to_owned(),
        overwrite: false,
        hidden: false,
        max_size: None,
        unnamed: true,
        keep_from: Some(5),
        holders: Holders::default(),
    };
    store.start().unwrap();
    store
}

/// Runs `work` through a store on `dir`; what became of each entry, by index.
fn run(dir: &Path, overwrite: bool, work: Vec<Work>) -> Vec<(u32, Outcome)> {
    run_in(&Store { overwrite, ..store(dir) }, work)
}

fn run_in<D: Disk>(store: &Store<D>, work: Vec<Work>) -> Vec<(u32, Outcome)> {
    statuses(store, work).into_iter().map(|status| (status.index, status.outcome)).collect()
}

/// The statuses that the sender hears, in the order of their indexes.
fn statuses<D: Disk>(store: &Store<D>, work: Vec<Work>) -> Vec<FileStatus> {
    let (work_tx, work_rx) = mpsc::channel(1000);
    let (done_tx, mut done_rx) = mpsc::channel(1000);
    for item in work {
        work_tx.try_send(item).unwrap();
    }
    drop(work_tx);
    store.write_all(Arc::default(), work_rx, &done_tx);
    drop(done_tx);
    let mut done: Vec<_> = std::iter::from_fn(|| done_rx.blocking_recv())
        .filter_map(|said| match said {
            Said::Done(done) => Some(done.status),
            _ => None,
        })
        .collect();
    done.sort_by_key(|status| status.index);
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
        Work::Announce(directory),
        Work::Announce(header(1, "d/e/x", 11)),
        begin(1),
        content(b"hello "),
        content(b"world"),
        Work::End(digest(b"hello world")),
        Work::Announce(header(2, "empty", 0)),
        begin(2),
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
        Work::Announce(header(0, "damaged", 5)),
        begin(0),
        content(b"hellx"),
        Work::End(digest(b"hello")),
        Work::Announce(header(1, "short", 6)),
        begin(1),
        content(b"hello"),
        Work::End(digest(b"hello")),
        Work::Announce(header(2, "long", 4)),
        begin(2),
        content(b"hello"),
        Work::End(digest(b"hello")),
        Work::Announce(header(3, "abandoned", 5)),
        begin(3),
        content(b"he"),
        Work::End(None),
        Work::Announce(header(4, "interrupted", 4)),
        begin(4),
        content(b"he"),
    ];
    use Outcome::{Abandoned, DigestMismatch, WriteFailed};
    let expected = [(0, DigestMismatch), (1, DigestMismatch), (2, WriteFailed), (3, Abandoned)];
    assert_eq!(run(dir.path(), false, work), expected);
    assert_eq!(listing(dir.path()), [""; 0]);
}

/// Announces a file; the lengths of the beginnings that are there.
fn announce(writer: &mut Writer<SystemDisk>, header: &FileHeader) -> Vec<u64> {
    let mut lengths = None;
    writer.handle(Work::Announce(header.clone()), &mut |said| match said {
        Said::Ready(ready) => lengths = Some(ready.beginnings.iter().map(|b| b.length).collect()),
        other => panic!("{other:?}"),
    });
    lengths.unwrap()
}

/// Sends the rest of a file; what became of it.
fn finish(
    writer: &mut Writer<SystemDisk>,
    offset: u64,
    rest: &'static [u8],
    all: &[u8],
) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let mut say = |said| match said {
        Said::Done(done) => outcomes.push(done.status.outcome),
        other => panic!("{other:?}"),
    };
    writer.handle(Work::Begin { index: 0, offset }, &mut say);
    writer.handle(content(rest), &mut say);
    writer.handle(Work::End(digest(all)), &mut say);
    writer.end(&mut say);
    outcomes
}

#[test]
fn an_interrupted_file_goes_on_where_it_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let header = header(0, "x", 11);
    let interrupt = || {
        let mut writer = store(dir.path()).writer(Arc::default());
        announce(&mut writer, &header);
        writer.handle(begin(0), &mut |_| {});
        writer.handle(content(b"hello "), &mut |_| {});
    };
    interrupt();
    assert_eq!(listing(dir.path()).len(), 1, "what arrived is kept");
    let mut writer = store(dir.path()).writer(Arc::default());
    assert_eq!(announce(&mut writer, &header), [6]);
    assert_eq!(finish(&mut writer, 6, b"world", b"hello world"), [Outcome::Stored]);
    assert_eq!(fs::read(dir.path().join("x")).unwrap(), b"hello world");
    assert_eq!(listing(dir.path()), ["x"]);

    fs::remove_file(dir.path().join("x")).unwrap();
    interrupt();
    let mut writer = store(dir.path()).writer(Arc::default());
    assert_eq!(announce(&mut writer, &header), [6]);
    let other = b"jello world";
    assert_eq!(finish(&mut writer, 0, other, other), [Outcome::Stored], "the source was changed");
    assert_eq!(fs::read(dir.path().join("x")).unwrap(), other);

    fs::remove_file(dir.path().join("x")).unwrap();
    interrupt();
    let mut writer = store(dir.path()).writer(Arc::default());
    announce(&mut writer, &header);
    let never = [Outcome::DigestMismatch];
    assert_eq!(finish(&mut writer, 3, b"lo world", b"hello world"), never, "nothing ends there");
    let forgetful = Store { keep_from: None, ..store(dir.path()) };
    assert_eq!(announce(&mut forgetful.writer(Arc::default()), &header), [0; 0]);
    assert_eq!(forgetful.clone().start().unwrap(), 1);
    assert_eq!(listing(dir.path()), [""; 0]);
}

#[test]
fn a_transfer_that_nobody_ends_gives_its_file_to_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let (store, header) = (store(dir.path()), header(0, "x", 11));
    let holder = Arc::<Holder>::default();
    let mut old = store.writer(holder.clone());
    announce(&mut old, &header);
    old.handle(begin(0), &mut |_| {});
    old.handle(content(b"hello "), &mut |_| {});
    let ends = std::thread::spawn(move || {
        while !holder.is_contested() {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(old);
    });
    let mut new = store.writer(Arc::default());
    let (mut lengths, mut waits) = (Vec::new(), 0);
    new.handle(Work::Announce(header), &mut |said| match said {
        Said::Ready(ready) => lengths.extend(ready.beginnings.iter().map(|b| b.length)),
        Said::Working => waits += 1,
        other => panic!("{other:?}"),
    });
    ends.join().unwrap();
    assert_eq!(lengths, [6]);
    assert!(waits > 0, "the sender hears of it");
}

#[test]
fn a_file_that_is_there_need_not_be_sent() {
    let dir = tempfile::tempdir().unwrap();
    let (place, header) = (dir.path().join("x"), header(0, "x", 5));
    fs::write(&place, "hello").unwrap();
    for overwrite in [false, true] {
        let mut writer = Store { overwrite, ..store(dir.path()) }.writer(Arc::default());
        assert_eq!(announce(&mut writer, &header), [5]);
        assert_eq!(finish(&mut writer, 5, b"", b"hello"), [Outcome::DigestMismatch; 1]);
    }
    let mut writer = store(dir.path()).writer(Arc::default());
    announce(&mut writer, &header);
    assert_eq!(finish(&mut writer, 0, b"jello", b"jello"), [Outcome::Exists]);
    let mut writer = Store { overwrite: true, ..store(dir.path()) }.writer(Arc::default());
    announce(&mut writer, &header);
    assert_eq!(finish(&mut writer, 0, b"jello", b"jello"), [Outcome::Stored]);
    assert_eq!(fs::read(&place).unwrap(), b"jello");
}

#[test]
fn files_that_were_announced_and_not_sent_are_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let files = (0..300).map(|i| Work::Announce(header(i, &i.to_string(), 1)));
    let done = run(dir.path(), false, files.take(100).collect());
    assert_eq!(done.len(), 100);
    assert!(done.iter().all(|(_, outcome)| *outcome == Outcome::Abandoned));
}

#[test]
fn existing_files_are_replaced_only_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("x");
    fs::write(&place, "old").unwrap();
    let work = || {
        vec![
            Work::Announce(header(0, "x", 3)),
            begin(0),
            content(b"new"),
            Work::End(digest(b"new")),
        ]
    };
    assert_eq!(run(dir.path(), false, work()), [(0, Outcome::Exists)]);
    assert_eq!(fs::read(&place).unwrap(), b"old");
    assert_eq!(run(dir.path(), true, work()), [(0, Outcome::Stored)]);
    assert_eq!(fs::read(&place).unwrap(), b"new");
    assert_eq!(listing(dir.path()), ["x"]);
}

#[test]
fn a_name_taken_during_the_transfer_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let work =
        [Work::Announce(header(0, "x", 3)), begin(0), content(b"new"), Work::End(digest(b"new"))];
    use Outcome::{Exists, Stored};
    for (unnamed, there, outcome) in [
        (true, "other", Exists),
        (false, "other", Exists),
        (true, "one", Exists),
        (true, "new", Stored),
        (false, "new", Stored),
    ] {
        let mut writer = Store { unnamed, ..store(dir.path()) }.writer(Arc::default());
        let _ = fs::remove_file(dir.path().join("x"));
        let mut outcomes = Vec::new();
        let mut say = |said| {
            if let Said::Done(done) = said {
                outcomes.push(done.status.outcome);
            }
        };
        work.iter().for_each(|item| writer.handle(item.clone(), &mut say));
        fs::write(dir.path().join("x"), there).unwrap();
        writer.flush(&mut say);
        assert_eq!(outcomes, [outcome]);
        drop(writer);
        assert_eq!(fs::read_to_string(dir.path().join("x")).unwrap(), there);
        assert_eq!(listing(dir.path()), ["x"]);
    }
}

#[test]
fn names_as_long_as_the_file_system_allows_have_room_for_the_part() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["n".repeat(255), "ü".repeat(127)] {
        let work = vec![Work::Announce(header(0, &name, 0)), begin(0), Work::End(digest(b""))];
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
        Work::Announce(header(0, "link/x", 0)),
        begin(0),
        Work::End(digest(b"")),
        Work::Announce(directory),
        Work::Announce(header(2, "y", 0)),
        begin(2),
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
            Work::Announce(header(0, ".ssh/authorized_keys", 1)),
            begin(0),
            content(b"k"),
            Work::End(digest(b"k")),
            Work::Announce(header(1, "a/.b/c", 0)),
            begin(1),
            Work::End(digest(b"")),
            Work::Announce(directory),
            Work::Announce(header(3, ours, 0)),
            begin(3),
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
        vec![
            Work::Announce(header(index, name, 5)),
            begin(index),
            content(b"12345"),
            Work::End(digest(b"12345")),
        ]
    };
    let work =
        [file(0, "a"), file(1, "b"), vec![Work::Announce(header(2, "c", 3)), begin(2)]].concat();
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
    let work = vec![Work::Announce(header(0, "x", u64::MAX - 1)), begin(0)];
    assert_eq!(run_in(&store, work), [(0, Outcome::DiskFull)]);
}

#[test]
fn a_file_of_unknown_size_is_stored_with_the_size_that_it_has() {
    let dir = tempfile::tempdir().unwrap();
    let unknown = |index, name| header(index, name, crate::frame::SIZE_UNKNOWN);
    let work = |end| {
        vec![
            Work::Announce(unknown(0, "x")),
            begin(0),
            content(b"hello "),
            content(b"world"),
            Work::End(end),
        ]
    };
    use Outcome::{Abandoned, DigestMismatch, Exists, Stored, TooLarge};
    assert_eq!(run(dir.path(), false, work(digest(b"hello"))), [(0, DigestMismatch)]);
    assert_eq!(run(dir.path(), false, work(None)), [(0, Abandoned)]);
    assert_eq!(listing(dir.path()), [""; 0], "nothing is kept of it");
    assert_eq!(run(dir.path(), false, work(digest(b"hello world"))), [(0, Stored)]);
    assert_eq!(fs::read(dir.path().join("x")).unwrap(), b"hello world");
    // Nobody knows whether it is the same, so it is not replaced.
    assert_eq!(run(dir.path(), false, work(digest(b"hello world"))), [(0, Exists)]);
    assert_eq!(run(dir.path(), true, work(digest(b"hello world"))), [(0, Stored)]);
    // The limit of a transfer counts for what it has, alone and with others.
    let limited = |max| Store { max_size: Some(max), overwrite: true, ..store(dir.path()) };
    assert_eq!(run_in(&limited(10), work(digest(b"hello world"))), [(0, TooLarge)]);
    let and_more = [
        work(digest(b"hello world")),
        vec![
            Work::Announce(header(1, "y", 5)),
            begin(1),
            content(b"hello"),
            Work::End(digest(b"hello")),
        ],
    ];
    assert_eq!(run_in(&limited(15), and_more.concat()), [(0, Stored), (1, TooLarge)]);
    assert_eq!(run_in(&limited(16), and_more.concat()), [(0, Stored), (1, Stored)]);
}

#[cfg(feature = "testing")]
#[test]
fn a_name_that_the_file_system_refuses_is_named_and_the_rest_is_stored() {
    use crate::testing::{Faults, SimDisk};
    use Outcome::{NameRefused, Stored};
    let dir = Path::new("/in");
    // With and without files that have no name, as exFAT and others are.
    for unnamed in [true, false] {
        let faults = Faults { refused_characters: ":?", unnamed, ..Faults::none() };
        let disk = SimDisk::new(manypath_proto::Rng::from_number(1), faults);
        disk.put_dir(dir);
        let file = |index, name, bytes: &'static [u8]| {
            let end = Work::End(digest(bytes));
            let announced = Work::Announce(header(index, name, bytes.len() as u64));
            vec![announced, begin(index), content(bytes), end]
        };
        let directory = FileHeader { kind: Kind::Directory, ..header(4, "e?", 0) };
        let work = [
            file(0, "10:30", b"abc"),
            // So long that its beginning is kept.
            file(1, "10:31", b"long enough"),
            file(2, "plain", b"abc"),
            file(3, "d:/x", b"abc"),
            vec![Work::Announce(directory)],
            file(5, "d/y", b"long enough"),
        ];
        let said = statuses(&store_on(disk.clone(), dir), work.concat());
        let outcomes: Vec<_> = said.iter().map(|status| status.outcome).collect();
        let expected = [NameRefused, NameRefused, Stored, NameRefused, NameRefused, Stored];
        assert_eq!(outcomes, expected, "{said:?}");
        for (index, name) in [(0, "10:30"), (1, "10:31"), (3, "d:"), (4, "e?")] {
            let expected =
                format!("the receiver's file system refuses the name {name:?}: invalid argument");
            assert_eq!(said[index].text, expected);
        }
        let there: Vec<_> = disk.files().into_keys().collect();
        assert_eq!(there, ["/in/d/y", "/in/plain"], "nothing is left of the others");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_too_long_for_the_file_system_is_refused_as_such() {
    // Names have at most 255 bytes here, and paths 4,096.
    let dir = tempfile::tempdir().unwrap();
    let part = "d".repeat(255);
    let name = vec![part.as_str(); 15].join("/");
    let deep = dir.path().join("e".repeat(255));
    fs::create_dir(&deep).unwrap();
    let said = statuses(&store(&deep), vec![Work::Announce(header(0, &name, 3)), begin(0)]);
    assert_eq!(said[0].outcome, Outcome::NameRefused, "{said:?}");
    assert!(said[0].text.contains("File name too long"), "{said:?}");
}
