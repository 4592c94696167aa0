//! Both ends in one process, over loopback.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use manypath::keys::SharedKey;
use manypath::{Association, ConnectTarget, Endpoint, EndpointOptions};
use manypath_files::source::Source;
use manypath_transfer::{
    Event, Inbox, InboxOptions, Offer, OfferError, Options, Outcome, PeerReason, Plan,
    ReceiveError, Route, SendError, Showing, Ticket, receive, send, send_to,
};
use tempfile::TempDir;

/// A directory with two files to send, and another one to receive them.
fn directories() -> (TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (photos, inbox) = (dir.path().join("photos"), dir.path().join("inbox"));
    fs::create_dir(&photos).unwrap();
    fs::write(photos.join("a"), vec![7; 300_000]).unwrap();
    fs::write(photos.join("b"), "text").unwrap();
    (dir, photos, inbox)
}

fn loopback() -> Route {
    let connect_limit = Duration::from_secs(30);
    Route { bind: vec!["127.0.0.1".parse().unwrap()], connect_limit, ..Route::default() }
}

async fn open_inbox(directory: &Path) -> Inbox {
    let options = InboxOptions { route: loopback(), ..InboxOptions::default() };
    Inbox::open(directory, options).await.unwrap()
}

/// The two ends of an association of two programs that share a secret.
async fn associated() -> (Association, Association) {
    let endpoint = |accept| {
        let key = SharedKey::new(b"sixteen bytes or more of secret!").unwrap();
        let bind = loopback().bind;
        Endpoint::bind(EndpointOptions { bind, accept, ..EndpointOptions::client(key) }).unwrap()
    };
    let (server, client) = (endpoint(true), endpoint(false));
    let target = ConnectTarget::new(server.local_addresses());
    let (out, incoming) = tokio::join!(client.connect(target), server.accept());
    (out.unwrap(), incoming.unwrap())
}

/// The names of entries with their outcomes, in order.
fn note(log: &mut Vec<(String, Outcome)>, event: &Event<'_>) {
    if let Event::Entry(entry) = event {
        log.push((entry.header.name.as_str().to_owned(), entry.outcome));
    }
}

#[tokio::test]
async fn a_directory_goes_over_an_association_of_the_program() {
    let (_dir, photos, inbox) = directories();
    let (out, incoming) = associated().await;
    let options = Options::default();
    let (mut here, mut there) = (Vec::new(), Vec::new());
    let (sent, received) = tokio::join!(
        send(out, [&photos], &options, |event| note(&mut here, &event)),
        receive(incoming, &inbox, &options, |event| note(&mut there, &event)),
    );
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert_eq!((sent.summary.stored, sent.summary.bytes), (3, 300_004));
    assert_eq!((received.summary.stored, received.summary.bytes), (3, 300_004));
    let stored = |name: &str| (name.to_owned(), Outcome::Stored);
    let mut expected = [stored("photos"), stored("photos/a"), stored("photos/b")];
    for log in [&mut here, &mut there] {
        log.sort_by(|a, b| a.0.cmp(&b.0));
        expected.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(**log, expected);
    }
    assert_eq!(fs::read(inbox.join("photos/a")).unwrap(), vec![7; 300_000]);
}

#[tokio::test]
async fn both_ends_learn_that_an_entry_was_not_stored() {
    let (_dir, photos, inbox) = directories();
    fs::create_dir_all(inbox.join("photos")).unwrap();
    fs::write(inbox.join("photos/b"), "other").unwrap();
    let mut open = open_inbox(&inbox).await;
    let (ticket, options, route) = (open.ticket().clone(), Options::default(), loopback());
    let (sent, received) = tokio::join!(
        send_to(&ticket, [&photos], &route, &options, |_| {}),
        open.receive(&options, |_| {}),
    );
    let Err(SendError::NotStored(sent)) = sent else { panic!("{sent:?}") };
    let Err(ReceiveError::NotStored(counts)) = received else { panic!("{received:?}") };
    for files in [sent.files, counts] {
        assert_eq!((files.total, files.failed), (3, 1));
        let first = files.first_failure.unwrap();
        assert_eq!((first.name.as_str(), first.outcome), ("photos/b", Outcome::Exists));
    }
    assert_eq!(fs::read(inbox.join("photos/b")).unwrap(), b"other");
}

#[tokio::test]
async fn a_sender_with_another_token_is_sent_away() {
    let (_dir, photos, inbox) = directories();
    let mut open = open_inbox(&inbox).await;
    let ticket = Ticket { token: b"another token"[..].into(), ..open.ticket().clone() };
    let (options, route) = (Options::default(), loopback());
    let sent = tokio::select! {
        sent = send_to(&ticket, [&photos], &route, &options, |_| {}) => sent,
        incoming = open.next(&options) => panic!("{incoming:?}"),
    };
    let Err(SendError::Offer(OfferError::Ended(closed))) = sent else { panic!("{sent:?}") };
    assert_eq!(PeerReason::of(&closed), Some(PeerReason::NotAuthorised));
    assert!(!SendError::Closed(closed).is_resumable());
    assert!(fs::read_dir(&inbox).unwrap().next().is_none());
}

#[tokio::test]
async fn whoever_asks_for_no_token_gets_nothing() {
    let (_dir, photos, inbox) = directories();
    let (out, incoming) = associated().await;
    let plan = Plan::new(&[Source::Path(photos)], None).unwrap();
    let options = Options::default();
    let (offered, received) = tokio::join!(
        Offer::new(plan, Showing::Nothing).over(out),
        receive(incoming, &inbox, &options, |_| {}),
    );
    assert!(matches!(offered, Err(OfferError::AsksForNoToken)), "{offered:?}");
    assert!(matches!(received, Err(ReceiveError::Closed(_))), "{received:?}");
    assert!(fs::read_dir(&inbox).unwrap().next().is_none());
}

#[tokio::test]
async fn an_end_that_is_asked_to_stop_tells_the_other() {
    let (_dir, photos, inbox) = directories();
    fs::write(photos.join("large"), vec![1; 50_000_000]).unwrap();
    let (out, incoming) = associated().await;
    let progress_every = Some(Duration::from_millis(5));
    let (sending, receiving) =
        (Options::default(), Options { progress_every, ..Options::default() });
    let stop = receiving.stop.clone();
    let (sent, received) = tokio::join!(
        send(out, [&photos], &sending, |_| {}),
        receive(incoming, &inbox, &receiving, |event| {
            if matches!(event, Event::Progress { done: 1.., .. }) {
                stop.stop();
            }
        }),
    );
    assert!(matches!(received, Err(ReceiveError::Stopped)), "{received:?}");
    let Err(SendError::Closed(closed)) = sent else { panic!("{sent:?}") };
    assert_eq!(PeerReason::of(&closed), Some(PeerReason::Interrupted));
    assert!(SendError::Closed(closed).is_resumable());
}

#[tokio::test]
async fn transfers_can_be_spawned() {
    let (_dir, photos, inbox) = directories();
    let mut open = open_inbox(&inbox).await;
    let ticket = open.ticket().clone();
    let sending = tokio::spawn(async move {
        let (route, options) = (loopback(), Options::default());
        send_to(&ticket, [photos], &route, &options, |_| {}).await
    });
    let receiving =
        tokio::spawn(async move { open.receive(&Options::default(), |_| {}).await.map(|_| open) });
    sending.await.unwrap().unwrap();
    receiving.await.unwrap().unwrap().close().await;
}
