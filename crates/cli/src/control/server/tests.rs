//! A process and its clients, good and bad.

use manypath::{EndpointOptions, Security};
use tokio::io::AsyncReadExt;

use super::*;

struct Case {
    _scratch: tempfile::TempDir,
    dir: PathBuf,
    endpoint: Endpoint,
    task: JoinHandle<()>,
}

impl Drop for Case {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A process whose endpoint is bound to 127.0.0.1 and has no association.
fn case() -> Case {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("manypath");
    let bind = vec!["127.0.0.1".parse().unwrap()];
    let options = EndpointOptions { bind, ..EndpointOptions::client(Security::Plain) };
    let endpoint = Endpoint::bind(options).unwrap();
    let (listener, _) = listen(&dir, 7).unwrap();
    let task = {
        let (endpoint, live) = (endpoint.clone(), Live::start("send"));
        tokio::spawn(serve(listener, Subject { endpoint, live, command: "send" }))
    };
    Case { _scratch: scratch, dir, endpoint, task }
}

impl Case {
    /// The answers to a client that says this and then nothing more.
    async fn says(&self, text: &[u8]) -> String {
        let mut stream = UnixStream::connect(directory::socket(&self.dir, 7)).await.unwrap();
        // It may have hung up already.
        let _ = stream.write_all(text).await;
        let _ = stream.shutdown().await;
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard).await;
        String::from_utf8(heard).unwrap()
    }
}

#[tokio::test]
async fn requests_are_answered_one_after_the_other() {
    let case = case();
    let heard = case.says(b"{\"request\":\"paths\"}\n{\"request\":\"paths\"}\n").await;
    let answers: Vec<Answer> =
        heard.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let Answer::Paths(process) = &answers[0] else { panic!("{heard}") };
    assert_eq!((process.command.as_str(), process.associations.len()), ("send", 0));
    assert_eq!(answers.len(), 2);
}

#[tokio::test]
async fn a_rank_is_set_for_places_of_the_process_only() {
    let case = case();
    let set = async |place: &str, rank: &str| {
        let request = Request::SetRank { place: place.to_owned(), rank: rank.to_owned() };
        case.says(&[serde_json::to_vec(&request).unwrap(), b"\n".to_vec()].concat()).await
    };
    let ip = "127.0.0.1".parse().unwrap();
    assert!(set("127.0.0.1", "cost=3").await.contains("rank_set"));
    assert_eq!(case.endpoint.rank(ip), PathRank::Cost(3));
    for (place, rank, says) in [
        ("192.0.2.1", "backup", "no path from or to 192.0.2.1"),
        ("no-such0", "backup", "no interface"),
        ("*", "backup", "every address"),
        ("127.0.0.1", "cheap", "no rank"),
    ] {
        let heard = set(place, rank).await;
        assert!(heard.contains("refused") && heard.contains(says), "{heard}");
    }
    assert_eq!(case.endpoint.rank(ip), PathRank::Cost(3), "nothing else was changed");
}

#[tokio::test]
async fn bad_clients_get_an_error_and_harm_nobody() {
    let case = case();
    let long = vec![b'x'; 1 << 20];
    for (text, says) in [
        (&b"hello\n"[..], "not understood"),
        (b"\xff\xfe\n", "not understood"),
        (b"\n", "not understood"),
        (b"{\"request\":\"paths\"", ""),
        (b"", ""),
    ] {
        let heard = case.says(text).await;
        assert!(heard.contains(says) && heard.is_empty() == says.is_empty(), "{heard}");
    }
    // The system may drop the answer with the connection.
    let heard = case.says(&long).await;
    assert!(heard.is_empty() || heard.contains("longer than"), "{heard}");
    // Clients that say nothing do not keep others out until there are too many of them.
    let mut silent = Vec::new();
    for _ in 0..CLIENTS_MAX - 1 {
        silent.push(UnixStream::connect(directory::socket(&case.dir, 7)).await.unwrap());
    }
    assert!(case.says(b"{\"request\":\"paths\"}\n").await.contains("associations"));
}

#[tokio::test]
async fn the_socket_of_a_dead_process_is_replaced_and_that_of_a_live_one_is_not() {
    let case = case();
    let error = listen(&case.dir, 7).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    assert!(case.says(b"{\"request\":\"paths\"}\n").await.contains("associations"));
    case.task.abort();
    while UnixStream::connect(directory::socket(&case.dir, 7)).await.is_ok() {
        tokio::task::yield_now().await;
    }
    listen(&case.dir, 7).expect("nobody listens any more");
    let mode = fs::metadata(directory::socket(&case.dir, 7)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_live_view_gets_figures_and_sets_ranks_of_paths_there_are() {
    let case = case();
    let heard = case.says(b"{\"request\":\"figures\",\"since_ms\":null}\n").await;
    let Ok(Answer::Figures(process)) = serde_json::from_str(&heard) else { panic!("{heard}") };
    assert_eq!((process.command.as_str(), process.pid), ("send", std::process::id()));
    let set = async |path: u32, rank: &str| {
        let request = format!(
            "{{\"request\":\"set_path_rank\",\"association\":0,\"path\":{path},\"rank\":\"{rank}\"}}\n"
        );
        case.says(request.as_bytes()).await
    };
    for (path, rank, reason) in [
        (1, "backup", "no such path"),
        (0, "backup", "no such path"),
        (1, "first", "no rank"),
        (70_000, "backup", "not understood"),
    ] {
        let heard = set(path, rank).await;
        assert!(heard.contains("refused") && heard.contains(reason), "{path} {rank}: {heard}");
    }
}
