//! Protected associations between real sockets.

mod common;

use common::{config, connected_to, options, pattern, within};
use manypath::keys::{Fingerprint, Identity, PeerKeys, SharedKey, TlsKeys};
use manypath::{
    AssocClosed, Association, ConnectError, ConnectTarget, Endpoint, EndpointOptions, PeerIdentity,
    Security, SendOptions,
};

const LOOPBACK: [&str; 2] = ["127.0.0.1", "127.0.0.2"];

fn endpoint(security: impl Into<Security>, accept: bool) -> Endpoint {
    let options = options(&LOOPBACK, accept);
    Endpoint::bind(EndpointOptions { security: security.into(), ..options }).expect("bound")
}

fn identity() -> Identity {
    Identity::generate().expect("a key")
}

fn pinned(key: &Identity) -> PeerKeys {
    PeerKeys::Pinned(vec![key.fingerprint()])
}

/// Sends a megabyte each way and ends the association.
async fn exchange(ours: &Association, theirs: &Association) {
    let data = pattern(1_000_000);
    for (from, to) in [(ours, theirs), (theirs, ours)] {
        from.send(SendOptions::default(), data.clone().into()).await.expect("sent");
        let message = within("a message", to.recv()).await.expect("no failure");
        assert!(message.expect("a message").payload.to_vec() == data, "as it was sent");
    }
    let (ended, last) =
        within("the end", async { tokio::join!(ours.shutdown(), theirs.recv()) }).await;
    assert_eq!((ended, last), (Ok(()), Ok(None)));
}

#[tokio::test]
async fn public_keys_are_proved_on_both_sides() {
    let (server_key, client_key) = (identity(), identity());
    let server = endpoint(TlsKeys::raw_public_keys(&server_key, pinned(&client_key)), true);
    let client = endpoint(TlsKeys::raw_public_keys(&client_key, pinned(&server_key)), false);
    let target = ConnectTarget::new(server.local_addresses());
    let (ours, theirs) = connected_to(&client, target, &server).await;
    assert!(ours.is_protected() && theirs.is_protected());
    for (association, key) in [(&ours, &server_key), (&theirs, &client_key)] {
        let PeerIdentity::PublicKey(shown) = association.identity().expect("a peer") else {
            panic!("{:?}", association.identity());
        };
        assert_eq!(Fingerprint::of(&shown), key.fingerprint());
    }
    assert_eq!(ours.binding(), theirs.binding());
    assert!(ours.binding().is_some());
    exchange(&ours, &theirs).await;
}

#[tokio::test]
async fn a_shared_key_protects_too() {
    let key = SharedKey::random().expect("random numbers");
    let (server, client) = (endpoint(key.clone(), true), endpoint(key, false));
    let target = ConnectTarget::new(server.local_addresses());
    let (ours, theirs) = connected_to(&client, target, &server).await;
    assert_eq!(ours.identity(), Some(PeerIdentity::SharedKey));
    exchange(&ours, &theirs).await;
}

/// The error of a connection attempt that must fail.
async fn refused(client: &Endpoint, server: &Endpoint) -> AssocClosed {
    let target = ConnectTarget::new(server.local_addresses());
    match within("a refusal", client.connect(target)).await {
        Err(ConnectError::Failed(closed)) => closed,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_short_limit_says_of_other_keys_what_a_long_one_says() {
    let server = endpoint(SharedKey::random().expect("random numbers"), true);
    let client = endpoint(SharedKey::random().expect("random numbers"), false);
    let target = ConnectTarget::new(server.local_addresses());
    let target = target.within(std::time::Duration::from_millis(500));
    let closed = match within("a refusal", client.connect(target)).await {
        Err(ConnectError::Failed(closed)) => closed,
        other => panic!("{other:?}"),
    };
    assert!(matches!(closed, AssocClosed::NotProtected { .. }), "{closed:?}");
    assert!(closed.to_string().contains("it has other keys"), "{closed}");
}

#[tokio::test]
async fn a_server_with_another_key_is_refused_before_anything_is_sent() {
    let server = endpoint(TlsKeys::raw_public_keys(&identity(), PeerKeys::Any), true);
    let expected = identity();
    let client = endpoint(TlsKeys::raw_public_keys(&identity(), pinned(&expected)), false);
    let closed = refused(&client, &server).await;
    let AssocClosed::NotProtected { reason, by_peer: false } = closed else {
        panic!("{closed:?}");
    };
    assert!(reason.contains("is not one that is expected"), "{reason}");
}

#[tokio::test]
async fn a_client_that_is_not_known_learns_that() {
    let server_key = identity();
    let server = endpoint(TlsKeys::raw_public_keys(&server_key, pinned(&identity())), true);
    let client = endpoint(TlsKeys::raw_public_keys(&identity(), pinned(&server_key)), false);
    let target = ConnectTarget::new(server.local_addresses());
    // The client may send before it knows; then the server ends the association, with a reason.
    let closed = match within("a decision", client.connect(target)).await {
        Err(ConnectError::Failed(closed)) => closed,
        Ok(association) => within("the end", association.closed()).await,
        Err(other) => panic!("{other:?}"),
    };
    let text = closed.to_string();
    assert!(text.contains("is not one that is expected"), "{text}");
}

#[tokio::test]
async fn protected_and_plain_ends_refuse_each_other() {
    let keys = || TlsKeys::raw_public_keys(&identity(), PeerKeys::Any);
    for (server, client) in [
        (Security::Plain, Security::from(keys())),
        (keys().into(), Security::Plain),
        (SharedKey::random().expect("random numbers").into(), keys().into()),
    ] {
        let (server, client) = (endpoint(server, true), endpoint(client, false));
        let closed = refused(&client, &server).await;
        assert!(matches!(closed, AssocClosed::NotProtected { .. }), "{closed:?}");
    }
}

#[tokio::test]
async fn a_target_may_be_protected_in_another_way_than_the_rest() {
    let server_key = identity();
    let server = endpoint(TlsKeys::raw_public_keys(&server_key, PeerKeys::Any), true);
    let client = endpoint(Security::Plain, false);
    let keys = TlsKeys::raw_public_keys(&identity(), pinned(&server_key));
    let target = ConnectTarget {
        security: Some(keys.into()),
        ..ConnectTarget::new(server.local_addresses())
    };
    let (ours, theirs) = connected_to(&client, target, &server).await;
    exchange(&ours, &theirs).await;
}

#[tokio::test]
async fn keys_are_replaced_under_way() {
    let server_key = identity();
    let config = config(&[("rekey_packets", "100"), ("old_keys_kept", "1 s")]);
    let with = |security: Security, accept| {
        let options = options(&LOOPBACK, accept);
        let config = config.clone();
        Endpoint::bind(EndpointOptions { security, config, ..options }).expect("bound")
    };
    let server = with(TlsKeys::raw_public_keys(&server_key, PeerKeys::Any).into(), true);
    let client = with(TlsKeys::raw_public_keys(&identity(), pinned(&server_key)).into(), false);
    let target = ConnectTarget::new(server.local_addresses());
    let (ours, theirs) = connected_to(&client, target, &server).await;
    for _ in 0..10 {
        let data = pattern(1_000_000);
        ours.send(SendOptions::default(), data.clone().into()).await.expect("sent");
        let message = within("a message", theirs.recv()).await.expect("no failure");
        assert!(message.expect("a message").payload.to_vec() == data, "as it was sent");
    }
    let replaced = [&ours, &theirs].map(|association| association.stats().keys_replaced);
    assert!(replaced.iter().all(|times| *times >= 3), "{replaced:?}");
    exchange(&ours, &theirs).await;
}

/// Peers with valid cookies that never say a word of the key management are many, and hold their
/// places; an honest one is let in all the same, within 2 s.
#[tokio::test]
async fn peers_that_never_agree_on_keys_keep_nobody_out() {
    let (server_key, limit) = (identity(), 32);
    let options = options(&LOOPBACK[..1], true);
    let config = config(&[("key_managements_max", &limit.to_string())]);
    let keys = TlsKeys::raw_public_keys(&server_key, PeerKeys::Any);
    let server = Endpoint::bind(EndpointOptions { security: keys.into(), config, ..options })
        .expect("bound");
    let address = server.local_addresses()[0];
    let mut silent = common::stranger::Stranger::new("127.0.0.7", address);
    let mut holds = Vec::new();
    for port in 1..=3 * limit as u16 {
        holds.push(silent.open_offering_tls(port).await.expect("a cookie is taken"));
    }
    let client = endpoint(TlsKeys::raw_public_keys(&identity(), pinned(&server_key)), false);
    let begin = tokio::time::Instant::now();
    let (ours, theirs) = connected_to(&client, ConnectTarget::new([address]), &server).await;
    assert!(begin.elapsed().as_secs_f64() < 2.0, "{:?}", begin.elapsed());
    exchange(&ours, &theirs).await;
    // The application has never heard of the others.
    let more = tokio::time::timeout(std::time::Duration::from_millis(100), server.accept()).await;
    assert!(more.is_err(), "nobody else is authenticated");
}
