use super::*;
use manypath_files::SystemDisk;
use manypath_files::frame::{Beginning, Ready};
use manypath_files::source::{Answer, Piece, Unwanted, Wishes, read_all};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

fn plan_of<const N: usize>(paths: [&PathBuf; N]) -> Result<Plan> {
    Plan::new(&paths.map(|path| path.clone().into()), None)
}

fn names(plan: &Plan) -> Vec<(&str, Kind, u64)> {
    let entry = |e: &'_ Entry| (e.header.kind, e.header.size);
    plan.entries.iter().map(|e| (e.header.name.as_str(), entry(e).0, entry(e).1)).collect()
}

#[test]
fn a_directory_is_walked_in_order_without_following_links() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("top");
    fs::create_dir_all(top.join("b/empty")).unwrap();
    fs::write(top.join("b/x"), "12345").unwrap();
    fs::write(top.join("a"), "").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("/etc", top.join("link")).unwrap();
    let plan = plan_of([&top]).unwrap();
    use Kind::{Directory, File};
    let expected = [
        ("top", Directory, 0),
        ("top/a", File, 0),
        ("top/b", Directory, 0),
        ("top/b/x", File, 5),
        ("top/b/empty", Directory, 0),
    ];
    assert_eq!(names(&plan), expected);
    assert_eq!((plan.bytes(), plan.least()), (Some(5), (5, 5)));
    assert_eq!(plan.skipped, if cfg!(unix) { vec![top.join("link")] } else { vec![] });
    let indexes: Vec<_> = plan.entries.iter().map(|e| e.header.index).collect();
    assert_eq!(indexes, [0, 1, 2, 3, 4]);
}

#[test]
fn two_files_of_one_name_and_missing_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for sub in ["a", "b"] {
        fs::create_dir(dir.path().join(sub)).unwrap();
        fs::write(dir.path().join(sub).join("x"), "").unwrap();
    }
    let twice = plan_of([&dir.path().join("a/x"), &dir.path().join("b/x")]);
    assert!(matches!(twice, Err(PlanError::SameName { .. })), "{twice:?}");
    let missing = plan_of([&dir.path().join("c")]);
    let is_missing =
        |why: &Why| matches!(why, Why::Unreadable { kind: io::ErrorKind::NotFound, .. });
    match missing {
        Err(PlanError::Nothing { first, more: 0 }) => assert!(is_missing(&first.why), "{first}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn standard_input_comes_last_and_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    fs::write(&path, "12345").unwrap();
    let sources = [Source::StandardInput, path.into()];
    let plan = Plan::new(&sources, None).unwrap();
    assert_eq!(names(&plan), [("x", Kind::File, 5), ("stdin", Kind::File, SIZE_UNKNOWN)]);
    assert!(plan.has_standard_input() && plan.bytes().is_none());
    let twice = Plan::new(&[Source::StandardInput, Source::StandardInput], None);
    assert!(matches!(twice, Err(PlanError::InputTwice)), "{twice:?}");
    let named = Plan::new(&sources, Some(Path::new("y")));
    assert!(matches!(named, Err(PlanError::NameForSeveral)), "{named:?}");
}

/// Reads the only file of a plan for a receiver that has these beginnings of it.
fn read(plan: &Plan, unwanted: Unwanted, beginnings: Vec<Beginning>) -> Vec<Piece> {
    let (answers_tx, answers) = mpsc::channel(3);
    let other = Ready { index: 7, beginnings: Vec::new() };
    for ready in [other, Ready { index: 0, beginnings }] {
        answers_tx.try_send(Answer::Ready(ready)).unwrap();
    }
    let (tx, mut rx) = mpsc::channel(1000);
    read_all(&SystemDisk, &plan.entries, 1000, &mut Wishes { answers, unwanted }, &tx);
    drop(tx);
    std::iter::from_fn(|| rx.blocking_recv()).collect()
}

#[test]
fn only_what_the_receiver_lacks_is_sent() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    fs::write(&path, "hello world").unwrap();
    let plan = plan_of([&path]).unwrap();
    let beginning = |length, text: &str| Beginning { length, sha256: Sha256::digest(text).into() };
    let (hello, all) = (beginning(6, "hello "), beginning(11, "hello world"));
    let (short, changed) = (beginning(3, "hel"), beginning(6, "jello "));
    let longer = beginning(12, "hello world!");
    for (beginnings, expected, rest) in [
        (vec![], 0, "hello world"),
        (vec![short, hello], 6, "world"),
        (vec![short, changed], 3, "lo world"),
        (vec![changed], 0, "hello world"),
        (vec![hello, longer], 6, "world"),
        (vec![all], 11, ""),
    ] {
        let (mut got, mut begins) = (Vec::new(), None);
        for piece in read(&plan, Unwanted::none(), beginnings) {
            match piece {
                Piece::Content(bytes) => got.extend(bytes),
                Piece::Begin { offset, .. } => begins = Some(offset),
                Piece::End { result, .. } => assert_eq!(result, Ok(Some(all.sha256))),
                Piece::Announce(_) | Piece::Working => {}
            }
        }
        assert_eq!((begins, &got[..]), (Some(expected), rest.as_bytes()));
    }
}

#[test]
fn a_file_that_is_refused_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    fs::write(&path, "hello world").unwrap();
    let plan = plan_of([&path]).unwrap();
    let (answers_tx, answers) = mpsc::channel(1);
    answers_tx.try_send(Answer::Refused(0)).unwrap();
    let (tx, mut rx) = mpsc::channel(1000);
    let mut wishes = Wishes { answers, unwanted: Unwanted::none() };
    read_all(&SystemDisk, &plan.entries, 1000, &mut wishes, &tx);
    assert!(matches!(rx.try_recv(), Ok(Piece::Announce(0))));
    assert!(rx.try_recv().is_err());
}

#[test]
fn content_comes_in_full_messages_with_the_digest_of_all() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let content: Vec<u8> = (0..100_003u32).map(|i| i as u8).collect();
    fs::write(&path, &content).unwrap();
    let plan = plan_of([&path]).unwrap();
    let mut pieces = read(&plan, Unwanted::none(), Vec::new()).into_iter();
    assert!(matches!(pieces.next(), Some(Piece::Announce(0))));
    assert!(matches!(pieces.next(), Some(Piece::Begin { index: 0, offset: 0 })));
    let mut got = Vec::new();
    loop {
        match pieces.next().unwrap() {
            Piece::Content(bytes) => {
                assert!(bytes.len() == 1000 || got.len() + bytes.len() == content.len());
                got.extend(bytes);
            }
            Piece::End { index, result } => {
                assert_eq!(index, 0);
                assert_eq!(result, Ok(Some(Sha256::digest(&content).into())));
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(got, content);
}

#[test]
fn a_file_that_shrinks_or_is_not_wanted_ends_early() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    fs::write(&path, vec![1; 5000]).unwrap();
    let plan = plan_of([&path]).unwrap();
    let end = |unwanted: &Unwanted| read(&plan, unwanted.clone(), Vec::new()).pop();
    let unwanted = Unwanted::none();
    unwanted.set(0);
    assert!(matches!(end(&unwanted), Some(Piece::End { result: Ok(None), .. })));
    fs::write(&path, vec![1; 10]).unwrap();
    assert!(matches!(end(&Unwanted::none()), Some(Piece::End { result: Err(_), .. })));
}

#[cfg(unix)]
#[test]
fn what_took_the_place_of_a_file_is_not_sent() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let (tree, outside) = (dir.path().join("tree"), dir.path().join("outside"));
    let (sub, file) = (tree.join("sub"), tree.join("sub/x"));
    let secret = outside.join("x");
    let why = |change: &dyn Fn()| {
        let _ = (fs::remove_dir_all(&tree), fs::remove_file(&tree), fs::remove_dir_all(&outside));
        fs::create_dir_all(&sub).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(&file, "text").unwrap();
        fs::write(&secret, "SECR").unwrap();
        let mut plan = plan_of([&tree]).unwrap();
        plan.entries.retain(|entry| entry.header.kind == Kind::File);
        plan.entries[0].header.index = 0;
        change();
        let mut pieces = read(&plan, Unwanted::none(), Vec::new());
        assert!(!pieces.iter().any(|piece| matches!(piece, Piece::Content(_))), "{pieces:?}");
        match pieces.pop() {
            Some(Piece::End { result: Err(why), .. }) => why,
            other => panic!("{other:?}"),
        }
    };
    let replace = |with: &dyn Fn()| {
        fs::remove_file(&file).unwrap();
        with();
    };
    let by_a_link = why(&|| replace(&|| symlink(&secret, &file).unwrap()));
    assert!(by_a_link.contains("symbolic link"), "{by_a_link}");
    let by_a_pipe = why(&|| {
        replace(&|| {
            let made = std::process::Command::new("mkfifo").arg(&file).status().unwrap();
            assert!(made.success());
        })
    });
    assert!(by_a_pipe.contains("not a regular file"), "{by_a_pipe}");
    let by_another = why(&|| fs::rename(&secret, &file).unwrap());
    assert!(by_another.contains("taken its place"), "{by_another}");
    let by_a_link_above = why(&|| {
        fs::rename(&sub, dir.path().join("aside")).unwrap();
        symlink(&outside, &sub).unwrap();
    });
    assert!(by_a_link_above.contains("taken its place"), "{by_a_link_above}");
    why(&|| fs::remove_file(&file).unwrap());
}

#[cfg(target_os = "linux")]
#[test]
fn a_directory_that_was_replaced_is_not_listed() {
    use manypath_files::{identity, list_found};
    let dir = tempfile::tempdir().unwrap();
    let (sub, outside) = (dir.path().join("sub"), dir.path().join("outside"));
    fs::create_dir(&sub).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("x"), "secret").unwrap();
    fs::write(sub.join("y"), "text").unwrap();
    let found = identity(&fs::symlink_metadata(&sub).unwrap());
    let names = || -> io::Result<Vec<_>> {
        Ok(list_found(&sub, found)?.iter().map(fs::DirEntry::file_name).collect())
    };
    assert_eq!(names().unwrap(), ["y"]);
    fs::rename(&sub, dir.path().join("aside")).unwrap();
    assert!(names().is_err());
    std::os::unix::fs::symlink(&outside, &sub).unwrap();
    assert!(names().is_err());
    fs::remove_file(&sub).unwrap();
    fs::rename(&outside, &sub).unwrap();
    assert!(names().unwrap_err().to_string().contains("taken its place"));
}

#[cfg(unix)]
#[test]
fn a_link_that_is_named_stands_for_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let (file, link) = (dir.path().join("x"), dir.path().join("link"));
    fs::write(&file, "hello world").unwrap();
    std::os::unix::fs::symlink("x", &link).unwrap();
    let plan = plan_of([&link]).unwrap();
    assert_eq!(names(&plan), [("link", Kind::File, 11)]);
    let pieces = read(&plan, Unwanted::none(), Vec::new());
    assert!(matches!(pieces.last(), Some(Piece::End { result: Ok(Some(_)), .. })), "{pieces:?}");
}

#[cfg(unix)]
#[test]
fn what_cannot_be_sent_is_noted_and_hidden_ones_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("top");
    fs::create_dir(&top).unwrap();
    for name in ["a", "b\t", ".c\t", ".d"] {
        fs::write(top.join(name), "1").unwrap();
    }
    let mut plan = plan_of([&top]).unwrap();
    let unsent = |plan: &Plan| -> Vec<String> {
        plan.unsent.iter().map(|unsent| unsent.name.clone()).collect()
    };
    assert_eq!(unsent(&plan), ["top/.c\t", "top/b\t"]);
    assert_eq!(plan.leave_out_hidden(), 2);
    assert_eq!(unsent(&plan), ["top/b\t"]);
    assert_eq!(names(&plan), [("top", Kind::Directory, 0), ("top/a", Kind::File, 1)]);
    let text = plan.unsent[0].to_string();
    assert!(text.contains("b\\t cannot be sent") && !text.contains('\t'), "{text}");
}

#[test]
fn times_before_1970_round_down() {
    let second = std::time::Duration::from_millis;
    assert_eq!(since_1970(UNIX_EPOCH + second(1500)), (1, 500_000_000));
    assert_eq!(since_1970(UNIX_EPOCH - second(1500)), (-2, 500_000_000));
    assert_eq!(since_1970(UNIX_EPOCH - second(1000)), (-1, 0));
}
