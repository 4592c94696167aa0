//! `send` and `recv` over loopback: what arrives, and what happens when it cannot.

mod common;

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use common::{MANYPATH, Receiver, code, listing, manypath, noise, send, skipped, stderr, stdout};
use tempfile::tempdir;

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "a test of real processes in real time")]
    Instant::now()
}

#[test]
fn files_directories_and_empty_files_arrive_as_they_were() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let (big, empty, tree) =
        (from.path().join("big"), from.path().join("empty"), from.path().join("tree"));
    let content = noise(30_000_000);
    fs::write(&big, &content).unwrap();
    fs::write(&empty, "").unwrap();
    fs::create_dir_all(tree.join("deep/er")).unwrap();
    fs::create_dir(tree.join("nothing")).unwrap();
    fs::write(tree.join("deep/er/ü x"), "small").unwrap();

    let mut receiver = Receiver::start(to.path(), &["--once"]);
    let (code, sent, err) = send(&[&big, &empty, &tree], &receiver.ticket, &[]);
    assert_eq!(code, 0, "{err}");
    assert!(!err.contains("NOT encrypted"), "{err}");
    assert_eq!(sent["encrypted"], true);
    let received = receiver.result();
    let (code, err) = receiver.end();
    assert_eq!(code, 0, "{err}");
    assert!(!err.contains("NOT encrypted"), "{err}");

    assert!(fs::read(to.path().join("big")).unwrap() == content);
    assert_eq!(fs::read(to.path().join("empty")).unwrap(), b"");
    assert_eq!(fs::read(to.path().join("tree/deep/er/ü x")).unwrap(), b"small");
    assert_eq!(listing(&to.path().join("tree")), ["deep", "nothing"]);
    assert_eq!(listing(to.path()), ["big", "empty", "tree"]);
    let mtime = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    assert_eq!(mtime(&big), mtime(&to.path().join("big")));

    for result in [&sent, &received] {
        assert_eq!(result["completed"], true);
        assert_eq!(result["bytes"], 30_000_005);
        assert_eq!(result["files_total"], 7);
        assert_eq!(result["files_failed"], 0);
        assert_eq!(result["preset"], "adaptive");
        assert!(result["goodput_bps"].as_u64().unwrap() > 0);
        assert!(result["max_delivery_gap_s"].as_f64().unwrap() > 0.0);
        assert!(result["first_byte_s"].as_f64().unwrap() > 0.0);
        for key in ["scenario", "seed", "trace_hash"] {
            assert!(result.get(key).is_some_and(serde_json::Value::is_null), "{key}");
        }
    }
    assert_eq!(sent["max_delivery_gap_s"], received["max_delivery_gap_s"]);
    assert!(sent["receive_buffer_blocked_s"].is_number());
    assert!(sent["message_latency_p99_s"].as_f64().is_some_and(|s| s > 0.0 && s < 60.0), "{sent}");
    assert!(sent["overhead"].as_f64().is_some_and(|o| (1.0..1.5).contains(&o)), "{sent}");
    assert!(received["message_latency_p99_s"].is_null() && received["overhead"].is_null());
    for result in [&sent, &received] {
        let interface = &result["paths"][0]["interface"];
        assert!(interface.as_str().is_some_and(|name| !name.is_empty()), "{result}");
    }
    assert!(err.contains(" %)"), "a share of each path: {err}");
    let path = &sent["paths"][0];
    for key in [
        "local",
        "remote",
        "state",
        "packets_sent",
        "data_chunks_sent",
        "redundant_chunks_sent",
        "bytes_sent",
        "retransmissions",
        "spurious_retransmissions",
        "fast_retransmits",
        "t3_expirations",
        "packets_dropped",
        "heartbeats_sent",
        "srtt_s",
        "cwnd_bytes",
        "state_changes",
    ] {
        assert!(path.get(key).is_some(), "{key}");
    }
}

#[test]
fn one_file_s_digest_is_the_result_s() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let file = from.path().join("abc");
    fs::write(&file, "abc").unwrap();
    let receiver = Receiver::start(to.path(), &["--once"]);
    let (code, result, err) = send(&[&file], &receiver.ticket, &[]);
    assert_eq!(code, 0, "{err}");
    // FIPS 180-2, appendix B.1.
    let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(result["sha256"], expected);
    assert_eq!(result["files"][0]["sha256"], expected);
}

#[test]
fn two_paths_share_a_transfer() {
    if !cfg!(target_os = "linux") {
        skipped("only Linux has 127.0.0.2 without configuration");
        return;
    }
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let file = from.path().join("x");
    fs::write(&file, noise(10_000_000)).unwrap();
    let mut command = Command::new(MANYPATH);
    command.args(["recv", "--once", "--listen", "127.0.0.1,127.0.0.2", "--port", "0", "--dir"]);
    command.arg(to.path());
    let mut receiver = Receiver::spawn(command);
    let bind = ["--bind", "127.0.0.3,127.0.0.4"];
    let (code, result, err) = send(&[&file], &receiver.ticket, &bind);
    assert_eq!(code, 0, "{err}");
    let paths = result["paths"].as_array().unwrap();
    assert!(paths.len() >= 2, "{paths:?}");
    let busy = paths.iter().filter(|p| p["bytes_acked"].as_u64().unwrap() > 100_000).count();
    assert!(busy >= 2, "{paths:?}");
    let received = receiver.result();
    let paths = received["paths"].as_array().unwrap();
    let bytes: Vec<_> = paths.iter().map(|p| p["data_bytes_received"].as_u64().unwrap()).collect();
    let sum: u64 = bytes.iter().sum();
    assert!((10_000_000..10_010_000).contains(&sum), "each byte on one path: {bytes:?}");
    let (_, told) = receiver.end();
    for told in [&err, &told] {
        let shares = told.lines().last().unwrap_or_default();
        assert!(told.contains("\n  x 10.0 MB\n"), "{told}");
        assert!(shares.contains(" %), ") && shares.contains(" MB ("), "{told}");
    }
}

#[test]
fn a_server_takes_one_transfer_after_another_and_ends_quietly() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let mut receiver = Receiver::start(to.path(), &[]);
    for name in ["a", "b"] {
        let file = from.path().join(name);
        fs::write(&file, name).unwrap();
        let (code, _, err) = send(&[&file], &receiver.ticket, &[]);
        assert_eq!(code, 0, "{err}");
        assert_eq!(receiver.result()["files"][0]["name"], name);
    }
    assert_eq!(listing(to.path()), ["a", "b"]);
    signal(receiver.id(), "TERM");
    assert_eq!(receiver.end().0, 0, "stopping an idle server is no failure");
}

#[test]
fn a_wrong_token_is_exit_code_5_and_strangers_do_not_end_the_receiver() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let file = from.path().join("x");
    fs::write(&file, "x").unwrap();
    let receiver = Receiver::start(to.path(), &["--once", "--token", "correct horse"]);
    let dest = format!("127.0.0.1:{}", receiver.port);
    for (token, says) in
        [(&["--token", "wrong horse!"][..], "does not accept this token"), (&[], "wants a token")]
    {
        let (code, result, err) = send(&[&file], &dest, token);
        assert_eq!(code, 5, "{err}");
        assert!(err.contains(says) && err.contains("try: give the token"), "{err}");
        assert_eq!(result["completed"], false);
    }
    assert_eq!(listing(to.path()), [""; 0]);
    let (code, _, err) = send(&[&file], &dest, &["--token", "correct horse"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(receiver.end().0, 0);
    assert_eq!(listing(to.path()), ["x"]);
}

#[test]
fn no_answer_is_exit_code_4() {
    let (from, silent) = (tempdir().unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let file = from.path().join("x");
    fs::write(&file, "x").unwrap();
    let dest = silent.local_addr().unwrap().to_string();
    let begin = now();
    let (code, result, err) = send(&[&file], &dest, &["--connect-timeout", "1s"]);
    assert_eq!(code, 4, "{err}");
    assert!(err.contains("no answer") && err.contains(&dest) && err.contains("firewall"), "{err}");
    assert_eq!(result["completed"], false);
    assert!(begin.elapsed() < Duration::from_secs(10));
}

/// A relay that passes everything to a receiver, and of its answers only packets that begin with a
/// chunk of these types.
struct Relay {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Relay {
    fn start(receiver: SocketAddr, passes: &'static [u8]) -> Relay {
        let socket = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            Arc::new(socket)
        };
        let (front, back) = (socket(), socket());
        let address = front.local_addr().unwrap();
        let sender = Arc::new(Mutex::new(None));
        let is_over = Arc::new(AtomicBool::new(false));
        let there = {
            let (front, back) = (Arc::clone(&front), Arc::clone(&back));
            let (sender, is_over) = (Arc::clone(&sender), Arc::clone(&is_over));
            move || {
                let mut buffer = [0; 65_535];
                while !is_over.load(Ordering::Relaxed) {
                    let Ok((len, from)) = front.recv_from(&mut buffer) else { continue };
                    *sender.lock().unwrap() = Some(from);
                    let _ = back.send_to(&buffer[..len], receiver);
                }
            }
        };
        let again = {
            let is_over = Arc::clone(&is_over);
            move || {
                let mut buffer = [0; 65_535];
                while !is_over.load(Ordering::Relaxed) {
                    let Ok((len, _)) = back.recv_from(&mut buffer) else { continue };
                    let Some(sender) = *sender.lock().unwrap() else { continue };
                    if len > 12 && passes.contains(&buffer[12]) {
                        let _ = front.send_to(&buffer[..len], sender);
                    }
                }
            }
        };
        let threads = vec![thread::spawn(there), thread::spawn(again)];
        Relay { address, is_over, threads }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Whoever answered is there: what is wrong is something else than address, port and firewall.
#[test]
fn a_receiver_that_falls_silent_in_the_handshake_is_told_from_one_that_is_not_there() {
    const INIT_ACK: u8 = 2;
    const COOKIE_ACK: u8 = 11;
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let file = from.path().join("x");
    fs::write(&file, "x").unwrap();
    let receiver = Receiver::start(to.path(), &["--token", "correct horse"]);
    let at = format!("127.0.0.1:{}", receiver.port).parse().unwrap();
    for (passes, exit, says) in [
        (&[INIT_ACK, COOKIE_ACK][..], 5, "cannot be protected: the peer did not complete"),
        (&[INIT_ACK], 4, "the peer answered the first packet, and none of the longer ones"),
    ] {
        let relay = Relay::start(at, passes);
        let dest = relay.address.to_string();
        let options = ["--token", "correct horse", "--connect-timeout", "2s"];
        let begin = now();
        let (code, _, err) = send(&[&file], &dest, &options);
        assert!(err.contains(says) && !err.contains("no answer from"), "{err}");
        assert_eq!(code, exit, "{err}");
        assert!(begin.elapsed() < Duration::from_secs(8), "{:?}", begin.elapsed());
    }
}

#[test]
fn what_cannot_be_read_is_exit_code_1_before_anything_is_sent() {
    let dir = tempdir().unwrap();
    let output = manypath(&["send", dir.path().join("missing").to_str().unwrap(), "127.0.0.1:9"]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("missing") && stderr(&output).contains("nothing was sent"));
    #[cfg(unix)]
    {
        let fifo = dir.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let output = manypath(&["send", fifo.to_str().unwrap(), "127.0.0.1:9"]);
        assert_eq!(code(&output), 1, "a pipe has no size; opening it would block");
        assert!(stderr(&output).contains("neither a file nor a directory"));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_without_read_permission_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempdir().unwrap();
    let file = dir.path().join("secret");
    fs::write(&file, "x").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    // Root reads everything; as somebody else it cannot.
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", MANYPATH, "send"]);
    let output = match fs::read(&file) {
        Ok(_) if !Path::new("/usr/bin/setpriv").exists() => {
            skipped("root without setpriv reads every file");
            return;
        }
        Ok(_) => command.arg(&file).arg("127.0.0.1:9").output().unwrap(),
        Err(_) => manypath(&["send", file.to_str().unwrap(), "127.0.0.1:9"]),
    };
    if output.status.code() == Some(126) || output.status.code() == Some(127) {
        skipped("the built binary cannot be run by another user here");
        return;
    }
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains("secret"), "{}", stderr(&output));
}

#[test]
fn a_port_in_use_is_exit_code_1_with_a_remedy() {
    let dir = tempdir().unwrap();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let dir = dir.path().to_str().unwrap();
    for args in [
        &["recv", "--listen", "127.0.0.1", "--port", &port, "--dir", dir][..],
        &["perf", "server", "--listen", "127.0.0.1", "--port", &port],
    ] {
        let output = manypath(args);
        assert_eq!(code(&output), 1);
        assert_eq!(stdout(&output), "");
        assert!(stderr(&output).contains("in use") && stderr(&output).contains(&port));
    }
}

#[test]
fn an_address_that_is_not_ours_is_named() {
    let output = manypath(&["recv", "--listen", "192.0.2.254", "--port", "0"]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("192.0.2.254"), "{}", stderr(&output));
}

#[test]
fn an_existing_file_is_kept_unless_overwriting_is_asked_for() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let files = [from.path().join("x"), from.path().join("y")];
    for file in &files {
        fs::write(file, "new").unwrap();
    }
    fs::write(to.path().join("x"), "old").unwrap();
    let receiver = Receiver::start(to.path(), &["--once"]);
    let (code, result, err) = send(&[&files[0], &files[1]], &receiver.ticket, &[]);
    assert_eq!(code, 1);
    assert!(err.contains("x exists there") && err.contains("--overwrite"), "{err}");
    assert_eq!(result["files"][0]["status"], "exists");
    assert_eq!(result["files"][1]["status"], "stored");
    assert_eq!(receiver.end().0, 1);
    assert_eq!(fs::read(to.path().join("x")).unwrap(), b"old");
    assert_eq!(fs::read(to.path().join("y")).unwrap(), b"new");

    let receiver = Receiver::start(to.path(), &["--once", "--overwrite"]);
    let (code, _, err) = send(&[&files[0]], &receiver.ticket, &[]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(fs::read(to.path().join("x")).unwrap(), b"new");
    assert_eq!(listing(to.path()), ["x", "y"]);
}

/// An unfinished file is there to go on from, and nothing else.
fn assert_only_kept(dir: &Path) {
    let left = listing(dir);
    assert!(left.len() == 1 && left[0].starts_with(".manypath-kept-"), "{left:?}");
}

/// A file that takes some seconds even over loopback.
fn large_file(dir: &Path) -> std::path::PathBuf {
    let file = dir.join("large");
    fs::File::create(&file).unwrap().set_len(20_000_000_000).unwrap(); // sparse
    file
}

#[test]
fn a_killed_receiver_is_exit_code_3_and_leaves_no_final_name() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let file = large_file(from.path());
    let mut receiver = Receiver::with_progress(to.path(), &["--once"], true);
    let ticket = receiver.ticket.clone();
    let quick = ["--set", "association_timeout=2s"];
    let sending = thread::spawn(move || send(&[&file], &ticket, &quick));
    receiver.wait_for_bytes(1_000_000);
    receiver.kill();
    let (code, result, err) = sending.join().unwrap();
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("no path answers any more"), "{err}");
    assert!(err.contains("run the same command again"), "{err}");
    assert_eq!(result["completed"], false);
    assert_only_kept(to.path());
}

#[test]
fn a_killed_sender_leaves_only_what_it_goes_on_from() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let file = large_file(from.path());
    let more = ["--once", "--set", "association_timeout=2s", "--set", "hb_interval=1s"];
    let mut receiver = Receiver::with_progress(to.path(), &more, true);
    let mut sender =
        Command::new(MANYPATH).arg("send").arg(&file).arg(&receiver.ticket).spawn().unwrap();
    receiver.wait_for_bytes(1_000_000);
    sender.kill().unwrap();
    sender.wait().unwrap();
    assert_eq!(receiver.result()["completed"], false);
    assert_eq!(receiver.end().0, 3);
    assert_only_kept(to.path());
}

#[cfg(unix)]
#[test]
fn an_interruption_at_either_end_is_told_to_the_other() {
    for interrupt_receiver in [true, false] {
        let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
        let file = large_file(from.path());
        let mut receiver = Receiver::with_progress(to.path(), &["--once"], true);
        let sender = Command::new(MANYPATH)
            .arg("send")
            .arg(&file)
            .arg(&receiver.ticket)
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        receiver.wait_for_bytes(1_000_000);
        signal(if interrupt_receiver { receiver.id() } else { sender.id() }, "INT");
        let sent = sender.wait_with_output().unwrap();
        let (received, said) = receiver.end();
        assert_eq!((code(&sent), received), (3, 3), "{} {said}", stderr(&sent));
        let (told, stopped) =
            if interrupt_receiver { (stderr(&sent), said) } else { (said, stderr(&sent)) };
        assert!(stopped.contains("interrupted"), "{stopped}");
        assert!(told.contains("was stopped"), "{told}");
        assert_only_kept(to.path());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_exit_code_1_at_both_ends_and_leaves_nothing() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let file = |name: &str, len: usize| {
        let path = from.path().join(name);
        fs::write(&path, noise(len)).unwrap();
        path
    };
    let (too_large, first, second) = (file("large", 5_000_000), file("a", 100_000), file("b", 5));
    // A small disk of its own in a mount namespace of its own, gone with the receiver.
    // It has room for one file: that one more does not fit is not known before it is created.
    let script = "mount -t tmpfs -o size=1m,nr_inodes=2 tmpfs \"$1\" && shift && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(to.path());
    let mut probe = Command::new("unshare");
    probe.args(["--mount", "sh", "-c", script, "sh"]).arg(to.path()).arg("true");
    if !probe.output().is_ok_and(|output| output.status.success()) {
        skipped("a full disk needs the right to mount (run as root)");
        assert!(std::env::var_os("CI").is_none(), "in CI this test must run");
        return;
    }
    command.args([MANYPATH, "recv", "--once", "--listen", "127.0.0.1", "--port", "0", "--dir"]);
    command.arg(to.path());
    let mut receiver = Receiver::spawn(command);
    let place = format!("/proc/{}/root{}", receiver.id(), to.path().display());
    let (code, result, err) = send(&[&too_large], &receiver.ticket, &[]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("refuses the transfer") && err.contains("are free on the disk"), "{err}");
    assert!(err.contains("try: free space"), "{err}");
    assert_eq!((&result["completed"], &result["bytes"]), (&false.into(), &0.into()));

    let (code, result, err) = send(&[&first, &second], &receiver.ticket, &[]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("disk is full") && err.contains("b:"), "{err}");
    let status = |name: &str| {
        let files = result["files"].as_array().unwrap();
        files.iter().find(|f| f["name"] == name).unwrap()["status"].clone()
    };
    assert_eq!((status("a"), status("b")), ("stored".into(), "disk_full".into()));
    // It lingers a moment only; what cannot be seen any more cannot be damaged either.
    if let Ok(left) = fs::read_dir(&place) {
        let left: Vec<_> = left.map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["a"]);
    }
    assert_eq!(receiver.result()["files_failed"], 1);
    let (code, err) = receiver.end();
    assert_eq!(code, 1);
    assert!(err.contains("disk is full"), "{err}");
}

#[test]
fn a_receiver_takes_what_it_was_told_to_and_says_what_it_does_not() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let file = |name: &str, len: usize| {
        let path = from.path().join(name);
        fs::write(&path, noise(len)).unwrap();
        path
    };
    let (plain, hidden, large) = (file("plain", 10), file(".hidden", 10), file("large", 3_000));
    let strict = Receiver::start(to.path(), &["--max-size", "2kB"]);
    let (code, _, err) = send(&[&large], &strict.ticket, &[]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("at most 2000 are accepted") && err.contains("--max-size"), "{err}");
    let (code, result, err) = send(&[&plain, &hidden], &strict.ticket, &[]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains(".hidden: hidden files") && err.contains("--hidden"), "{err}");
    assert_eq!(result["files_failed"], 1, "{result}");
    assert_eq!(listing(to.path()), ["plain"]);

    let willing = Receiver::start(to.path(), &["--hidden"]);
    let (code, _, err) = send(&[&hidden], &willing.ticket, &[]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(listing(to.path()), [".hidden", "plain"]);
}

#[cfg(unix)]
#[test]
fn a_name_that_is_not_plain_text_is_not_sent() {
    let from = tempdir().unwrap();
    for name in ["a\x1b[2J", "a\u{202e}gpj.exe"] {
        let file = from.path().join(name);
        fs::write(&file, "x").unwrap();
        let output = manypath(&["send", file.to_str().unwrap(), "127.0.0.1:9"]);
        assert_eq!(code(&output), 1);
        let err = stderr(&output);
        assert!(err.contains("cannot be sent") && err.contains("\\u{"), "{err}");
        assert!(!err.contains(['\x1b', '\u{202e}']), "{err}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_stays_closed_is_not_waited_for_for_ever() {
    use manypath::{Endpoint, EndpointOptions, Security, SendOptions, StreamId};
    use manypath_files::frame::{PPID_CONTROL, Ready, ServerFrame};

    let from = tempdir().unwrap();
    let file = large_file(from.path());
    // A receiver that says "send", and then takes nothing. Its engine goes on answering.
    let bind = vec!["127.0.0.1".parse().unwrap()];
    let options = EndpointOptions {
        udp_port: 0,
        accept: true,
        bind,
        ..EndpointOptions::client(Security::Plain)
    };
    let endpoint = Endpoint::bind(options).unwrap();
    let dest = format!("127.0.0.1:{}", endpoint.udp_port());
    let sending = tokio::task::spawn_blocking(move || {
        send(&[&file], &dest, &["--insecure", "--stall-timeout", "2s"])
    });
    let association = endpoint.accept().await.unwrap();
    let hello = association.recv().await.unwrap();
    assert!(hello.is_some());
    let control = SendOptions {
        stream: StreamId(0),
        ppid: PPID_CONTROL,
        unordered: false,
        ..SendOptions::default()
    };
    let ready = ServerFrame::Ready(Ready { index: 0, beginnings: Vec::new() });
    for frame in [ServerFrame::Welcome(None), ready] {
        association.send(control, frame.encode().into()).await.unwrap();
    }
    let (code, result, err) = sending.await.unwrap();
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("no progress for 2 s") && err.contains("accepts no more data"), "{err}");
    assert_eq!(result["completed"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_wants_no_token_gets_nothing() {
    use manypath::keys::{Identity, PeerKeys, TlsKeys};
    use manypath::{Endpoint, EndpointOptions, SendOptions, StreamId};
    use manypath_files::frame::{PPID_CONTROL, ServerFrame};

    let from = tempdir().unwrap();
    let file = from.path().join("x");
    fs::write(&file, "x").unwrap();
    // Somebody at the receiver's address, with a key of his own, who welcomes everybody.
    let keys = TlsKeys::raw_public_keys(&Identity::generate().unwrap(), PeerKeys::Any);
    let bind = vec!["127.0.0.1".parse().unwrap()];
    let client = EndpointOptions::client(keys);
    let options = EndpointOptions { udp_port: 0, accept: true, bind, ..client };
    let endpoint = Endpoint::bind(options).unwrap();
    let dest = format!("127.0.0.1:{}", endpoint.udp_port());
    let sending = tokio::task::spawn_blocking(move || send(&[&file], &dest, &[]));
    let association = endpoint.accept().await.unwrap();
    assert!(association.recv().await.unwrap().is_some(), "the hello");
    let control = SendOptions {
        stream: StreamId(0),
        ppid: PPID_CONTROL,
        unordered: false,
        ..SendOptions::default()
    };
    association.send(control, ServerFrame::Welcome(None).encode().into()).await.unwrap();
    let (code, result, err) = sending.await.unwrap();
    assert_eq!(code, 5, "{err}");
    assert!(err.contains("asks for no token") && err.contains("--token-file"), "{err}");
    assert_eq!(result["completed"], false);
    assert!(association.recv().await.is_err(), "an ABORT, and nothing before it");
}

#[cfg(unix)]
#[test]
fn a_peer_that_does_not_go_on_is_given_up() {
    for stop_receiver in [true, false] {
        let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
        let file = large_file(from.path());
        let (patient, impatient) = (["--stall-timeout", "off"], ["--stall-timeout", "1s"]);
        let (ours, theirs) =
            if stop_receiver { (patient, impatient) } else { (impatient, patient) };
        let mut receiver = Receiver::with_progress(to.path(), &["--once", ours[0], ours[1]], true);
        let sender = Command::new(MANYPATH)
            .arg("send")
            .args(theirs)
            .arg(&file)
            .arg(&receiver.ticket)
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        receiver.wait_for_bytes(1_000_000);
        // Longer than the limit, but shorter than the time after which paths are given up.
        let stopped = if stop_receiver { receiver.id() } else { sender.id() };
        signal(stopped, "STOP");
        let (sent, (received, said)) = if stop_receiver {
            let sent = sender.wait_with_output().unwrap();
            signal(stopped, "CONT");
            (sent, receiver.end())
        } else {
            let received = receiver.end();
            signal(stopped, "CONT");
            (sender.wait_with_output().unwrap(), received)
        };
        let err = stderr(&sent);
        assert_eq!((code(&sent), received), (3, 3), "{err} {said}");
        let (gave_up, told) = if stop_receiver { (err, said) } else { (said, err) };
        assert!(gave_up.contains("no progress for 1 s"), "{gave_up}");
        assert!(gave_up.contains("--stall-timeout"), "{gave_up}");
        assert!(told.contains("gave up: the transfer made no progress"), "{told}");
        assert_only_kept(to.path());
    }
}

#[test]
fn a_peer_that_is_no_receiver_is_recognised() {
    let from = tempdir().unwrap();
    let file = from.path().join("x");
    fs::write(&file, "x").unwrap();
    let mut command = Command::new(MANYPATH);
    command.args(["perf", "server", "--listen", "127.0.0.1", "--port", "0", "--json"]);
    let mut server = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut out = std::io::BufReader::new(server.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    let listening: serde_json::Value = serde_json::from_str(&line).unwrap();
    let (code, _, err) = send(&[&file], &format!("127.0.0.1:{}", listening["port"]), &[]);
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("perf"), "{err}");
}

/// Sends a signal by its name.
fn signal(process: u32, name: &str) {
    let status = Command::new("kill").args(["-s", name, &process.to_string()]).status().unwrap();
    assert!(status.success());
}
