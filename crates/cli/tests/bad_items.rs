//! An item that cannot be sent or stored stops no other.

#![cfg(unix)]

mod common;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use common::{MANYPATH, Receiver, listing, noise, send};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::tempdir;

/// The names of a result with that status, sorted.
fn with_status<'a>(result: &'a Value, status: &str) -> Vec<&'a str> {
    let files = result["files"].as_array().unwrap().iter();
    let files = files.filter(|file| file["status"] == status);
    let mut names: Vec<_> = files.map(|file| file["name"].as_str().unwrap()).collect();
    names.sort();
    names
}

/// Makes directories within each other under `root` until a path is longer than 4096 bytes, which
/// no single call can name.
fn make_deep(root: &Path) {
    let nested = |at: &Path| (0..11).fold(at.to_owned(), |path, _| path.join("d".repeat(200)));
    let (upper, lower) = (nested(root), root.join("lower"));
    fs::create_dir_all(&upper).unwrap();
    fs::create_dir_all(nested(&lower)).unwrap();
    fs::rename(&lower, upper.join("lower")).unwrap();
}

#[test]
fn names_that_cannot_be_sent_are_listed_and_the_rest_is_stored() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let tree = from.path().join("tree");
    fs::create_dir_all(tree.join("bad\tdir")).unwrap();
    let good = ["IMG\u{200e}-1.jpg", "a\u{200f}b", "\u{feff}c", "plain"];
    let bad: [&[u8]; 4] = [b"tab\tx", b"new\nline", b"caf\xe9", b"bad\tdir/inside"];
    for name in good.iter().map(|name| name.as_bytes()).chain(bad) {
        fs::write(tree.join(OsStr::from_bytes(name)), name).unwrap();
    }
    make_deep(&tree);

    let mut receiver = Receiver::start(to.path(), &["--once"]);
    let (code, sent, err) = send(&[&tree], &receiver.ticket, &[]);
    let received = receiver.result();
    assert_eq!((code, receiver.end().0), (1, 0), "{err}");
    let refused = with_status(&sent, "name_refused");
    let expected = ["bad\tdir", "bad\tdir/inside", "caf\\xe9", "new\nline", "tab\tx"];
    assert_eq!(refused, expected.map(|name| format!("tree/{name}")), "{err}");
    // The path is too long for this system.
    let deep = with_status(&sent, "abandoned");
    assert!(matches!(deep[..], [name] if name.len() > 3000), "{deep:?}");
    assert_eq!((&sent["completed"], &sent["files_failed"]), (&false.into(), &6.into()));
    let error = sent["error"].as_str().unwrap();
    assert!(error.contains("not stored") && error.contains("cannot be sent"), "{error}");
    for shown in ["tree/tab\\tx", "tree/new\\nline", "tree/caf\\xe9", "tree/bad\\tdir/inside"] {
        assert!(err.contains(&format!("not stored: {shown} (name_refused): ")), "{shown}: {err}");
    }
    assert!(!err.contains('\t') && !err.contains('\u{200e}'), "{err}");

    assert_eq!(received["completed"], true, "{received}");
    for name in good {
        assert_eq!(fs::read(to.path().join("tree").join(name)).unwrap(), name.as_bytes());
    }
    assert!(!to.path().join("tree/tab\tx").exists());
}

#[test]
fn a_source_that_is_missing_keeps_no_other_from_being_sent() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let [there, missing, closed] = ["there", "missing", "closed"].map(|n| from.path().join(n));
    fs::write(&there, "text").unwrap();
    // As a descriptor: root may open everything.
    std::os::unix::fs::symlink("/proc/self/nothing", &closed).unwrap();
    let receiver = Receiver::start(to.path(), &["--once"]);
    let (code, sent, err) = send(&[&missing, &there, &closed], &receiver.ticket, &[]);
    assert_eq!((code, receiver.end().0), (1, 0), "{err}");
    assert_eq!(with_status(&sent, "stored"), ["there"]);
    assert_eq!(with_status(&sent, "abandoned"), ["closed", "missing"]);
    assert!(sent["files"][0]["error"].as_str().unwrap().contains("cannot read it"), "{sent}");
    assert_eq!(listing(to.path()), ["there"]);
    // Nothing is left to send.
    let (code, sent, err) = send(&[&missing, &closed], "127.0.0.1:9", &[]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("nothing was sent") && err.contains("another entry"), "{err}");
    assert_eq!(sent["completed"], false);
}

#[test]
fn few_descriptors_make_a_receiver_slower_and_lose_no_file() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let tree = from.path().join("tree");
    fs::create_dir(&tree).unwrap();
    for i in 0..400 {
        fs::write(tree.join(format!("{i:03}")), i.to_string()).unwrap();
    }
    let listen = ["recv", "--listen", "127.0.0.1", "--port", "0", "--dir"];
    for round in ["new", "there already"] {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n 48; exec \"$0\" \"$@\"", MANYPATH]).args(listen);
        command.arg(to.path()).arg("--once");
        let receiver = Receiver::spawn(command);
        let (code, sent, err) = send(&[&tree], &receiver.ticket, &[]);
        assert_eq!(code, 0, "{round}: {err}");
        assert_eq!((&sent["files_total"], &sent["files_failed"]), (&401.into(), &0.into()));
        assert_eq!(receiver.end().0, 0, "{round}");
        assert_eq!(listing(&to.path().join("tree")).len(), 400);
    }
}

#[test]
fn an_unfinished_file_that_is_not_ours_is_left_alone() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let file = from.path().join("x");
    let content = noise(3_000_000);
    fs::write(&file, &content).unwrap();
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    // As another user would put it there: it has a second name, and anybody may write to it.
    let digest = Sha256::digest(b"x");
    let kept: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let kept = to.path().join(format!(".manypath-kept-{kept}"));
    let theirs = from.path().join("theirs");
    fs::write(&theirs, &content[..2_000_000]).unwrap();
    fs::set_permissions(&theirs, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    fs::hard_link(&theirs, &kept).unwrap();

    let receiver = Receiver::start(to.path(), &["--once"]);
    let (code, sent, err) = send(&[&file], &receiver.ticket, &[]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(sent["resumed_bytes"], 0, "nothing of it is used");
    let (_, said) = receiver.end();
    assert!(said.contains("x starts again"), "{said}");
    let stored = fs::metadata(to.path().join("x")).unwrap();
    assert_eq!((stored.nlink(), stored.mode() & 0o777), (1, 0o600));
    assert!(fs::read(to.path().join("x")).unwrap() == content);
    assert_eq!(fs::read(&theirs).unwrap(), content[..2_000_000]);
}

/// A sender of another make may announce what no receiver can store.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_refused_by_the_receiver_does_not_end_the_transfer() {
    use manypath::{ConnectTarget, Endpoint, EndpointOptions, Security, SendOptions, StreamId};
    use manypath_files::frame::{
        ClientFrame, FileHeader, Hello, Kind, Outcome, PPID_CONTENT, PPID_CONTROL, ServerFrame,
    };
    use manypath_files::relative::RelativePath;
    use manypath_files::ticket::Ticket;

    let to = tempdir().unwrap();
    let mut receiver = Receiver::start(to.path(), &["--once", "--insecure"]);
    let token = Ticket::parse(&receiver.ticket).unwrap().token;
    let bind = vec!["127.0.0.1".parse().unwrap()];
    let client = EndpointOptions::client(Security::Plain);
    let endpoint = Endpoint::bind(EndpointOptions { bind, ..client }).unwrap();
    let address = format!("127.0.0.1:{}", receiver.port).parse().unwrap();
    let association = endpoint.connect(ConnectTarget::new(vec![address])).await.unwrap();
    let header = |index, name: &str| {
        let name = RelativePath::from_bytes(name.as_bytes()).unwrap();
        let (kind, size) = (Kind::File, 4);
        ClientFrame::File(FileHeader { index, kind, size, mode: None, modified: None, name })
    };
    let mut hostile = header(0, "aaa/x").encode();
    let at = hostile.len() - 5;
    hostile[at..at + 3].copy_from_slice(b"../");
    let sha256 = Some(Sha256::digest(b"text").into());
    let frames = [
        ClientFrame::Hello(Hello::new(token, 2, 8)).encode(),
        hostile,
        header(1, "y").encode(),
        ClientFrame::Begin { index: 1, offset: 0 }.encode(),
        b"text".to_vec(),
        ClientFrame::End { index: 1, sha256 }.encode(),
        ClientFrame::Finish { entries: 2 }.encode(),
    ];
    for frame in frames {
        let ppid = if frame == b"text" { PPID_CONTENT } else { PPID_CONTROL };
        let options =
            SendOptions { stream: StreamId(0), ppid, unordered: false, ..SendOptions::default() };
        association.send(options, frame.into()).await.unwrap();
    }
    let mut outcomes = Vec::new();
    loop {
        let message = association.recv().await.unwrap().unwrap();
        match ServerFrame::decode(&message.payload.into_bytes()).unwrap() {
            ServerFrame::Status(status) => outcomes.push((status.index, status.outcome)),
            ServerFrame::Summary(summary) => {
                assert_eq!((summary.stored, summary.failed), (1, 1));
                break;
            }
            _ => {}
        }
    }
    outcomes.sort_by_key(|(index, _)| *index);
    assert_eq!(outcomes, [(0, Outcome::NameRefused), (1, Outcome::Stored)]);
    let received = receiver.result();
    assert_eq!(with_status(&received, "name_refused"), ["..//x"]);
    assert_eq!(listing(to.path()), ["y"]);
}
