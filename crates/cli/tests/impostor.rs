//! Somebody stands in for the other end and checks guesses at its password. An attempt of a person
//! gives one guess, whatever the impostor does afterwards; a proxy that runs on gives none.

#![cfg(unix)]

mod common;

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use common::{MANYPATH, send};
use manypath::keys::{Identity, PeerKeys, TlsKeys};
use manypath::{Association, BindTo, Bytes, Endpoint, EndpointOptions, SendOptions};
use manypath_files::frame::{ClientFrame, PPID_CONTROL, STREAM, ServerFrame};
use manypath_trust::password::{Password, Server};
use serde_json::Value;
use tempfile::tempdir;
use tokio::runtime::Runtime;

const TOKEN: &str = "correct horse";
const CODE: &str = "482-109-357";

/// The impostor's answer to a client's proof, when it knows whether its guess was right.
#[derive(Copy, Clone, Debug)]
enum Ending {
    Abort(&'static str),
    Shutdown,
    /// A proof that is none.
    Proof,
    /// Something else than a proof.
    Welcome,
    /// It has not waited for a proof, and knows nothing.
    BusyBefore,
}

/// A peer with a key of its own that knows no password.
struct Impostor {
    port: u16,
    /// The clients that came.
    asked: Arc<AtomicUsize>,
    /// The guesses that it has checked.
    guesses: Arc<AtomicUsize>,
    /// Keeps it going.
    runtime: Runtime,
}

impl Impostor {
    fn start(port: u16, ending: Ending) -> Impostor {
        let runtime = Runtime::new().unwrap();
        let _entered = runtime.enter();
        let keys = TlsKeys::raw_public_keys(&Identity::generate().unwrap(), PeerKeys::Any);
        let options = EndpointOptions {
            bind: vec![BindTo::Address([127, 0, 0, 1].into())],
            udp_port: port,
            ..EndpointOptions::server(keys)
        };
        let endpoint = Endpoint::bind(options).unwrap();
        let (port, asked) = (endpoint.udp_port(), Arc::new(AtomicUsize::new(0)));
        let guesses = Arc::new(AtomicUsize::new(0));
        let (came, checked) = (asked.clone(), guesses.clone());
        runtime.spawn(async move {
            while let Some(association) = endpoint.accept().await {
                came.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(guess(association, ending, checked.clone()));
            }
        });
        Impostor { port, asked, guesses, runtime }
    }

    fn guesses(&self) -> usize {
        self.guesses.load(Ordering::Relaxed)
    }

    /// Makes room for the one it stood in for.
    fn leave(self) {
        self.runtime.shutdown_timeout(Duration::from_secs(1));
    }
}

async fn guess(association: Association, ending: Ending, guesses: Arc<AtomicUsize>) -> Option<()> {
    let share = password(&association).await?;
    if let Ending::BusyBefore = ending {
        association.abort(b"busy: later");
        return None;
    }
    let word = Password::new(b"a wrong guess".to_vec()).unwrap();
    let (_, answer) = Server::answer(&word, &association.binding()?, &share).ok()?;
    say(&association, ServerFrame::Password(answer)).await;
    let proof = password(&association).await?;
    guesses.fetch_add(1, Ordering::Relaxed);
    match ending {
        Ending::Abort(reason) => association.abort(reason.as_bytes()),
        Ending::Shutdown => drop(association.shutdown().await),
        Ending::Proof => say(&association, ServerFrame::Password(proof)).await,
        Ending::Welcome => say(&association, ServerFrame::Working).await,
        Ending::BusyBefore => {}
    }
    // Not gone before the other end has heard it.
    tokio::time::sleep(Duration::from_secs(2)).await;
    None
}

async fn say(association: &Association, frame: ServerFrame) {
    let options = SendOptions {
        stream: STREAM,
        ppid: PPID_CONTROL,
        unordered: false,
        ..SendOptions::default()
    };
    // The other end may have left.
    let _ = association.send(options, Bytes::from(frame.encode())).await;
}

/// The next message of the password exchange.
async fn password(association: &Association) -> Option<[u8; 33]> {
    let message = association.recv().await.ok()??;
    match ClientFrame::decode(&message.payload.to_vec()) {
        Ok(ClientFrame::Password(message)) => Some(message),
        _ => None,
    }
}

const ENDINGS: [Ending; 8] = [
    Ending::Abort("busy: other transfers"),
    Ending::Abort(""),
    Ending::Abort("not protected: keys differ"),
    Ending::Abort("protocol error"),
    Ending::Abort("not authorised: wrong token"),
    Ending::Shutdown,
    Ending::Proof,
    Ending::Welcome,
];

#[test]
fn a_sender_gives_an_impostor_one_guess() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("x");
    std::fs::write(&file, "x").unwrap();
    for ending in ENDINGS {
        for (option, secret) in [("--token", TOKEN), ("--code", CODE)] {
            let impostor = Impostor::start(0, ending);
            let dest = format!("127.0.0.1:{}", impostor.port);
            let (code, _, err) = send(&[&file], &dest, &[option, secret]);
            assert_eq!((code, impostor.guesses()), (5, 1), "{option}, {ending:?}: {err}");
            let says = ["did not prove", "does not know", "does not accept"];
            assert!(says.iter().any(|text| err.contains(text)), "{ending:?}: {err}");
        }
    }
}

/// A relay that leads everybody who asks for a number to `impostor`, an IPv4 address.
fn hostile_relay(impostor: SocketAddr) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let SocketAddr::V4(to) = impostor else { panic!("IPv4") };
    thread::spawn(move || {
        let mut question = [0; 2048];
        // Until the test process ends.
        while let Ok((len, from)) = socket.recv_from(&mut question) {
            assert!((20..60).contains(&len), "it sees a number and nothing else");
            // RFC 8489 §5: a success of the same method; §14.2: an address, with the cookie on it.
            let cookie = [0x21, 0x12, 0xa4, 0x42];
            let mut answer = question[..20].to_vec();
            answer[0] |= 1;
            answer[2..4].copy_from_slice(&[0, 12]);
            answer.extend([0, 0x16, 0, 8, 0, 1]);
            answer.extend(to.port().to_be_bytes().iter().zip(cookie).map(|(byte, c)| byte ^ c));
            answer.extend(to.ip().octets().iter().zip(cookie).map(|(byte, c)| byte ^ c));
            socket.send_to(&answer, from).unwrap();
        }
    });
    address
}

#[test]
fn a_hostile_relay_that_leads_to_an_impostor_gets_one_guess_at_the_words() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("x");
    std::fs::write(&file, "x").unwrap();
    for ending in [Ending::Abort("busy: other transfers"), Ending::Proof, Ending::Welcome] {
        let impostor = Impostor::start(0, ending);
        let relay = hostile_relay(([127, 0, 0, 1], impostor.port).into());
        let (code, _, err) = send(&[&file], &format!("7-cabana-anvil@{relay}"), &[]);
        assert_eq!((code, impostor.guesses()), (5, 1), "{ending:?}: {err}");
    }
}

#[test]
fn a_receiver_that_is_busy_before_anything_is_proved_is_asked_again() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("x");
    std::fs::write(&file, "x").unwrap();
    let impostor = Impostor::start(0, Ending::BusyBefore);
    let dest = format!("127.0.0.1:{}", impostor.port);
    let (code, _, err) = send(&[&file], &dest, &["--token", TOKEN, "--connect-timeout", "2 s"]);
    assert_eq!((code, impostor.guesses()), (1, 0), "{err}");
    assert!(err.contains("busy with others"), "{err}");
    let asked = impostor.asked.load(Ordering::Relaxed);
    assert!(asked >= 3, "{asked} times");
}

#[test]
fn a_proxy_gives_an_impostor_at_its_start_one_guess() {
    for ending in ENDINGS {
        let impostor = Impostor::start(0, ending);
        let dest = format!("127.0.0.1:{}", impostor.port);
        let words = ["proxy", "connect", &dest, "--token", TOKEN, "-D", "127.0.0.1:0"];
        let done = common::manypath(&words);
        let err = common::stderr(&done);
        assert_eq!((common::code(&done), impostor.guesses()), (5, 1), "{ending:?}: {err}");
    }
}

/// A process ends after this time at the latest, so that a test which waits for it fails.
const PATIENCE: Duration = Duration::from_secs(100);

/// A process with events on its standard output; killed when dropped.
struct Running {
    child: Arc<Mutex<Child>>,
    out: BufReader<ChildStdout>,
}

impl Running {
    fn start(words: &[&str]) -> Running {
        let mut command = Command::new(MANYPATH);
        command.args(words).arg("--json").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let child = Arc::new(Mutex::new(child));
        let watched = Arc::downgrade(&child);
        thread::spawn(move || {
            thread::sleep(PATIENCE);
            let Some(child) = watched.upgrade() else { return };
            // It may have ended by itself.
            let _ = child.lock().unwrap().kill();
        });
        Running { child, out }
    }

    /// The next event with this name.
    fn event(&mut self, name: &str) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.out.read_line(&mut line).unwrap(), 0, "it ended before {name}");
            let event: Value = serde_json::from_str(&line).unwrap();
            if event["event"] == name {
                return event;
            }
        }
    }

    fn stop(&self) {
        let mut child = self.child.lock().unwrap();
        // It may have ended by itself.
        let _ = child.kill();
        let _ = child.wait();
    }

    fn has_ended(&self) -> bool {
        self.child.lock().unwrap().try_wait().unwrap().is_some()
    }

    /// Stops it; all that it has said on standard error.
    fn said(&self) -> String {
        self.stop();
        let mut err = self.child.lock().unwrap().stderr.take().unwrap();
        let mut text = String::new();
        err.read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

fn far(dir: &Path, port: &str) -> Running {
    let [key, token] = ["far.key", "token"].map(|name| dir.join(name).display().to_string());
    let words = ["proxy", "listen", "--listen", "127.0.0.1", "--port", port];
    let words = [&words[..], &["--identity", &key, "--token-file", &token]].concat();
    Running::start(&words)
}

#[test]
fn a_proxy_that_runs_gives_an_impostor_no_guess_and_finds_the_far_side_again() {
    let dir = tempdir().unwrap();
    std::fs::write(dir.path().join("token"), TOKEN).unwrap();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut real = far(dir.path(), "0");
    let listening = real.event("listening");
    let port = listening["port"].to_string();
    let (dest, to) = (format!("127.0.0.1:{port}"), server.local_addr().unwrap());
    let forward = format!("127.0.0.1:0:{to}");
    let mut near = Running::start(&["proxy", "connect", &dest, "--token", TOKEN, "-L", &forward]);
    let ready = near.event("ready");
    assert_eq!(ready["peer_key"], listening["key"], "the key is told, too");
    let at = ready["ports"][0]["listen"][0].as_str().unwrap().to_owned();
    assert!(TcpStream::connect(&at).is_ok() && server.accept().is_ok());

    real.stop();
    let impostor = Impostor::start(port.parse().unwrap(), Ending::Abort("busy"));
    // Somebody wants to go through, so the proxy looks for its far side.
    let waits = TcpStream::connect(&at).unwrap();
    let waiting = near.event("waiting");
    assert_eq!(waiting["pause_s"], 20, "{waiting}");
    thread::sleep(Duration::from_secs(4));
    assert_eq!((impostor.guesses(), near.has_ended()), (0, false));
    impostor.leave();
    drop(waits);

    let mut real = far(dir.path(), &port);
    real.event("listening");
    let again = near.event("reconnected");
    assert_eq!(again["peer_key"], listening["key"]);
    let said = near.said();
    assert_eq!(said.matches("nothing was shown to it; next attempt in 20 s").count(), 1, "{said}");
    let pinned = format!("only its key is accepted: {}", listening["key"].as_str().unwrap());
    assert!(said.contains(&pinned), "{said}");
}
