//! The first commands of somebody who has just installed manypath: nothing is prepared.

mod common;

use std::fs;
use std::process::{Command, Stdio};

use common::{MANYPATH, Receiver, code, listing, manypath, send, skipped, stderr};
use manypath_files::ticket::Ticket;
use tempfile::tempdir;

#[test]
fn a_directory_that_is_missing_is_created_with_those_above_it() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let file = from.path().join("x");
    fs::write(&file, "x").unwrap();
    let dir = to.path().join("down/loads");
    let receiver = Receiver::start(&dir, &["--once"]);
    let (code, _, err) = send(&[&file], &receiver.ticket, &[]);
    assert_eq!(code, 0, "{err}");
    let (code, err) = receiver.end();
    assert_eq!(code, 0, "{err}");
    assert!(err.contains(&format!("created the directory {}", dir.display())), "{err}");
    assert_eq!(listing(&dir), ["x"]);

    let receiver = Receiver::start(&dir, &[]);
    drop(receiver);
    let mut command = Command::new(MANYPATH);
    command.args(["recv", "--once", "--listen", "127.0.0.1", "--port", "0", "--dir", "relative"]);
    let receiver = Receiver::spawn({
        command.current_dir(to.path());
        command
    });
    drop(receiver);
    assert_eq!(listing(to.path()), ["down", "relative"]);
}

#[test]
fn a_file_in_place_of_a_directory_is_an_error() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("x");
    fs::write(&file, "x").unwrap();
    for (place, says) in [(file.clone(), "is not a directory"), (file.join("y"), "cannot create")] {
        let output = manypath(&["recv", "--port", "0", "--dir", place.to_str().unwrap()]);
        assert_eq!(code(&output), 1, "{}", stderr(&output));
        let err = stderr(&output);
        assert!(err.contains(says) && err.contains("--dir") && err.contains("try:"), "{err}");
    }
}

#[test]
fn a_token_file_that_is_missing_is_made_for_its_owner() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let [file, secret] = ["x", "secret"].map(|name| from.path().join(name));
    fs::write(&file, "x").unwrap();
    let secret = secret.to_str().unwrap();
    let receiver = Receiver::start(to.path(), &["--once", "--token-file", secret]);
    let made = fs::read_to_string(secret).unwrap();
    assert!(made.len() > 20 && made.ends_with('\n'), "{made:?}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(secret).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let dest = format!("127.0.0.1:{}", receiver.port);
    let (code, _, err) = send(&[&file], &dest, &["--token-file", secret]);
    assert_eq!(code, 0, "{err}");
    let (code, err) = receiver.end();
    assert_eq!(code, 0, "{err}");
    assert!(err.contains(&format!("made a random token in {secret}")), "{err}");
    assert!(!err.contains(made.trim()), "{err}");

    // The next start takes the same.
    let receiver = Receiver::start(to.path(), &["--once", "--token-file", secret]);
    assert_eq!(fs::read_to_string(secret).unwrap(), made);
    drop(receiver);
}

#[test]
fn a_sender_s_token_file_that_is_missing_is_an_error() {
    let dir = tempdir().unwrap();
    let [file, secret] = ["x", "secret"].map(|name| dir.path().join(name));
    fs::write(&file, "x").unwrap();
    let missing = secret.to_str().unwrap();
    let (code_, _, err) = send(&[&file], "127.0.0.1:9", &["--token-file", missing]);
    assert_eq!(code_, 2, "{err}");
    assert!(err.contains("`manypath recv --token-file FILE` makes"), "{err}");
    let words = ["proxy", "connect", "127.0.0.1:9", "-D", "127.0.0.1:0", "--token-file", missing];
    let output = manypath(&words);
    assert_eq!(code(&output), 2);
    let err = stderr(&output);
    assert!(err.contains("`manypath proxy listen --token-file FILE` makes"), "{err}");
    assert!(!secret.exists());
    // A directory that is missing is no place for it.
    let nowhere = dir.path().join("no/secret");
    let output = manypath(&["recv", "--port", "0", "--token-file", nowhere.to_str().unwrap()]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("cannot be created"), "{}", stderr(&output));
}

/// `docs/proxy.md`, "Begin", in an empty directory.
#[test]
fn the_first_command_of_the_proxy_s_page_works() {
    let dir = tempdir().unwrap();
    let mut command = Command::new(MANYPATH);
    command.args(["proxy", "listen", "--identity", "proxy.key", "--token-file", "secret"]);
    command.args(["--listen", "127.0.0.1", "--port", "0"]);
    drop(Receiver::spawn({
        command.current_dir(dir.path());
        command
    }));
    assert_eq!(listing(dir.path()), ["proxy.key", "secret"]);
}

/// True with the rights for a network namespace.
#[cfg(target_os = "linux")]
fn can_unshare() -> bool {
    let mut probe = Command::new("unshare");
    probe.args([
        "--user",
        "--map-root-user",
        "--net",
        "sh",
        "-c",
        "ip link set lo up && python3 -V",
    ]);
    let can = probe.stdin(Stdio::null()).output().is_ok_and(|output| output.status.success());
    if !can {
        skipped("this needs network namespaces, ip and python3");
        assert!(std::env::var_os("CI").is_none(), "in CI this test must run");
    }
    can
}

/// Runs these words and more in a network namespace where another program has UDP port 9899.
#[cfg(target_os = "linux")]
fn beside_another_program(words: &str) -> Command {
    let other = "import os, socket, sys\n\
                 s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\n\
                 s.bind((\"::\", 9899))\n\
                 s.set_inheritable(True)\n\
                 os.execv(sys.argv[1], sys.argv[1:])";
    let setup = "ip link set lo up && ip addr add 10.99.7.7/24 dev lo";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "sh", "-c"]);
    command
        .arg(format!("{setup} && exec python3 -c '{other}' {MANYPATH} {words} \"$@\""))
        .arg("sh");
    command
}

/// The lines that a receiver says before it shows its ticket; ends it.
#[cfg(target_os = "linux")]
fn said_until_ticket(mut child: std::process::Child) -> String {
    use std::io::{BufRead, BufReader, Read};
    let mut ticket = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut ticket).unwrap();
    assert!(ticket.starts_with("manypath2:"), "{ticket}");
    child.kill().unwrap();
    child.wait().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    said
}

#[cfg(target_os = "linux")]
#[test]
fn beside_another_program_a_free_port_is_taken_and_told() {
    let dir = tempdir().unwrap();
    if !can_unshare() {
        return;
    }
    let words = format!("recv --dir {}", dir.path().display());
    let receiver = Receiver::spawn(beside_another_program(&words));
    assert_ne!(receiver.port, 9899);
    let ticket = Ticket::parse(&receiver.ticket).unwrap();
    assert_eq!(u64::from(ticket.port), receiver.port, "the ticket carries it");
    let err = receiver.said();
    assert!(err.contains("another program has UDP port 9899"), "{err}");

    // A port that is named is taken or fails; clients of the other commands type the usual one.
    let named = format!("{words} --port 9899");
    for words in [&*named, "perf server", "proxy listen"] {
        let output = beside_another_program(words).stdin(Stdio::null()).output().unwrap();
        let err = stderr(&output);
        assert_eq!(code(&output), 1, "{words}: {err}");
        assert!(err.contains("9899 is in use") && err.contains("--port PORT here"), "{err}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_receiver_with_private_addresses_says_who_can_reach_it() {
    if !can_unshare() {
        return;
    }
    for (address, reach) in [("10.99.8.8/24", "private"), ("203.0.113.5/24", "public")] {
        let dir = tempdir().unwrap();
        let script = format!(
            "ip link set lo up && ip addr add {address} dev lo && exec {MANYPATH} recv --dir {}",
            dir.path().display()
        );
        let start = |json: bool| {
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-root-user", "--net", "sh", "-c"]);
            command.arg(if json { format!("{script} \"$@\"") } else { script.clone() }).arg("sh");
            command
        };
        let receiver = Receiver::spawn(start(true));
        assert_eq!(receiver.listening["reach"], reach, "{}", receiver.listening);
        drop(receiver);
        let mut command = start(false);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let err = said_until_ticket(child);
        assert_eq!(err.contains("only senders in the same network"), reach == "private", "{err}");
        assert!(!err.contains("same network") || err.contains("forward UDP port 9899"), "{err}");
    }
}
