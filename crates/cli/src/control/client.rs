//! Asks running processes, and removes the sockets of dead ones.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::protocol::{ANSWER_MAX, Answer, Request};
use super::{directory, line};

/// How long a process may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The answer of a process.
#[derive(Debug)]
pub(crate) struct Heard {
    /// The process.
    pub(crate) pid: u32,
    /// Its answer, or why there is none.
    pub(crate) answer: Result<Answer, String>,
}

/// How long a live view waits for an answer.
const PATIENCE_OF_VIEWS: Duration = Duration::from_secs(1);

/// Asks the processes of this user, or the one with this number: in the order of their numbers.
/// Sockets that nobody listens on are removed.
pub(crate) async fn ask(only: Option<u32>, request: &Request) -> Vec<Heard> {
    ask_in(&directory::candidates(), only, |_| request.clone(), PATIENCE).await
}

/// The same for a live view, each process something of its own.
pub(crate) async fn ask_each(only: Option<u32>, request: impl Fn(u32) -> Request) -> Vec<Heard> {
    ask_in(&directory::candidates(), only, request, PATIENCE_OF_VIEWS).await
}

async fn ask_in(
    dirs: &[impl AsRef<Path>],
    only: Option<u32>,
    request: impl Fn(u32) -> Request,
    patience: Duration,
) -> Vec<Heard> {
    let sockets = dirs.iter().flat_map(|dir| directory::sockets(dir.as_ref()));
    let wanted = sockets.filter(|(pid, _)| only.is_none_or(|only| only == *pid));
    let mut heard = Vec::new();
    for (pid, path) in wanted {
        let asked = timeout(patience, ask_one(&path, &request(pid))).await;
        let answer = match asked {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(e)) if is_of_nobody(&e) => {
                remove_stale(&path);
                continue;
            }
            Ok(Err(e)) => Err(e.to_string()),
            Err(_) => Err(format!("no answer within {} s", patience.as_secs_f64())),
        };
        heard.push(Heard { pid, answer });
    }
    heard.sort_by_key(|heard| heard.pid);
    heard
}

/// Nobody listens: the process is dead, or has just ended.
fn is_of_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound)
}

/// Removes a socket if still nobody listens on it: a new process may have got the number.
fn remove_stale(path: &Path) {
    let again = std::os::unix::net::UnixStream::connect(path);
    if again.is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused) {
        let _ = fs::remove_file(path);
    }
}

async fn ask_one(path: &Path, request: &Request) -> io::Result<Answer> {
    let stream = UnixStream::connect(path).await?;
    if stream.peer_cred()?.uid() != directory::user() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is another user's"));
    }
    let (from, mut to) = stream.into_split();
    let mut text = serde_json::to_vec(request)?;
    text.push(b'\n');
    to.write_all(&text).await?;
    let mut from = BufReader::new(from);
    let Some(answer) = line::read(&mut from, ANSWER_MAX).await? else {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it gave no answer"));
    };
    let not_understood = |e| io::Error::new(io::ErrorKind::InvalidData, format!("its answer: {e}"));
    serde_json::from_slice(&answer).map_err(not_understood)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use tokio::io::AsyncReadExt;

    use super::*;

    fn private() -> (tempfile::TempDir, std::path::PathBuf) {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("manypath");
        directory::make(&dir).unwrap();
        (scratch, dir)
    }

    async fn heard(dir: &Path) -> Vec<(u32, String)> {
        let heard = ask_in(&[dir], None, |_| Request::Paths, Duration::from_millis(200)).await;
        heard
            .into_iter()
            .map(|h| (h.pid, h.answer.map_or_else(|e| e, |a| format!("{a:?}"))))
            .collect()
    }

    #[tokio::test]
    async fn the_socket_of_a_dead_process_is_removed() {
        let (_scratch, dir) = private();
        let path = directory::socket(&dir, 7);
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        assert_eq!(heard(&dir).await, []);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_process_that_does_not_answer_holds_nobody_up() {
        let (_scratch, dir) = private();
        let path = directory::socket(&dir, 7);
        let _silent = UnixListener::bind(&path).unwrap();
        let heard = heard(&dir).await;
        assert!(heard[0].1.contains("no answer within 0.2 s"), "{heard:?}");
        assert!(path.exists(), "it is not dead");
    }

    #[tokio::test]
    async fn nonsense_is_an_error_that_names_it() {
        let endless = "x".repeat(ANSWER_MAX + 1);
        for (says, expected) in [
            ("hello\n", "its answer"),
            ("", "no answer"),
            (&endless, "longer than"),
            ("{}", "no answer"),
        ] {
            let (_scratch, dir) = private();
            let listener = tokio::net::UnixListener::bind(directory::socket(&dir, 7)).unwrap();
            let says = says.to_owned();
            let serving = tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = [0; 20];
                stream.read_exact(&mut request).await.unwrap();
                let _ = stream.write_all(says.as_bytes()).await;
            });
            let heard = ask_in(&[&dir], None, |_| Request::Paths, Duration::from_secs(20)).await;
            let error = heard[0].answer.as_ref().unwrap_err();
            assert!(error.contains(expected), "{error}");
            serving.await.unwrap();
        }
    }
}
