//! Associations whose keys come from a shared secret.

use bytes::Bytes;
use manypath_dtls::manage::{
    Agreement, KeyAction, KeyManagement, KeySession, METHOD_PRE_SHARED, Peer, Role,
};
use manypath_dtls::{Epochs, FIRST_EPOCH, HEADER_LEN, SealingKeys};
use manypath_keys::psk::{MIN_SECRET_LEN, SecretTooShort, SharedKey};

/// One end of an association.
struct End {
    session: Box<dyn KeySession>,
    opening: Epochs,
    sealing: Option<SealingKeys>,
    peer: Option<Peer>,
}

impl End {
    /// An end with the key of these tests, and these tags and parameters of client and server.
    fn new(role: Role, tags: (u32, u32), parameters: [&'static str; 2]) -> End {
        let key = SharedKey::new(&[7; 32]).unwrap();
        let [client, server] = parameters.map(Bytes::from);
        let agreement = Agreement::new(role, METHOD_PRE_SHARED, (client, server), tags);
        let session = key.begin(agreement);
        let mut end = End { session, opening: Epochs::default(), sealing: None, peer: None };
        end.act();
        end
    }

    fn act(&mut self) {
        while let Some(action) = self.session.poll() {
            match action {
                KeyAction::OpenWith(keys) => self.opening.install(keys),
                KeyAction::SealWith(keys) => self.sealing = Some(keys),
                KeyAction::Authenticated(peer) => self.peer = Some(peer),
                other => panic!("{other:?}"),
            }
        }
    }

    /// The epoch of the keys that it seals with.
    fn epoch(&self) -> u64 {
        self.sealing.as_ref().unwrap().epoch()
    }

    fn rekey(&mut self) {
        self.session.rekey();
        self.act();
    }

    fn seal(&mut self) -> Vec<u8> {
        let mut record = [&[0; HEADER_LEN][..], b"chunks"].concat();
        self.sealing.as_mut().unwrap().seal(&mut record, 0).unwrap();
        record
    }

    /// True if it opens a record.
    fn opens(&mut self, mut record: Vec<u8>) -> bool {
        let Ok((opened, _)) = self.opening.open(&mut record) else { return false };
        self.session.opened(opened.epoch);
        self.act();
        true
    }
}

const TAGS: (u32, u32) = (1, 2);
const PARAMETERS: [&str; 2] = ["of the client", "of the server"];

fn pair() -> (End, End) {
    (End::new(Role::Client, TAGS, PARAMETERS), End::new(Role::Server, TAGS, PARAMETERS))
}

#[test]
fn a_secret_has_sixteen_bytes_at_least() {
    assert_eq!(MIN_SECRET_LEN, 16);
    assert!(matches!(SharedKey::new(&[7; 15]), Err(SecretTooShort)));
    assert!(SharedKey::new(&[7; 16]).is_ok());
}

/// All associations of an end have the same secret, and begin with the same epoch and record.
#[test]
fn each_association_has_keys_of_its_own() {
    let (mut client, mut server) = pair();
    let record = client.seal();
    for tags in [(1, 3), (3, 2), (2, 1)] {
        assert!(!End::new(Role::Server, tags, PARAMETERS).opens(record.clone()), "{tags:?}");
    }
    for parameters in [["of the client", "weakened"], ["weakened", "of the server"]] {
        assert!(!End::new(Role::Server, TAGS, parameters).opens(record.clone()), "{parameters:?}");
    }
    assert!(!client.opens(record.clone()), "the other direction has others");
    assert!(server.opens(record));
}

/// The binding names the association to protocols of the application, such as that of passwords.
#[test]
fn each_association_has_a_binding_of_its_own() {
    let binding = |tags, parameters| {
        let mut client = End::new(Role::Client, tags, parameters);
        let mut server = End::new(Role::Server, tags, parameters);
        assert!(server.opens(client.seal()) && client.opens(server.seal()));
        let [client, server] = [client, server].map(|end| end.peer.unwrap().binding);
        assert_eq!(client, server);
        client
    };
    let first = binding(TAGS, PARAMETERS);
    assert_ne!(first, binding((1, 3), PARAMETERS));
    assert_ne!(first, binding(TAGS, ["of the client", "changed on the way"]));
    assert_ne!(first, binding(TAGS, ["changed on the way", "of the server"]));
}

/// The peer has the keys of one more epoch than it uses, and none of those after it.
#[test]
fn keys_are_not_replaced_again_before_the_peer_has_followed() {
    let (mut client, mut server) = pair();
    client.rekey();
    assert_eq!(client.epoch(), FIRST_EPOCH, "the peer has shown no keys yet");
    assert!(client.opens(server.seal()));
    client.rekey();
    client.rekey();
    assert_eq!(client.epoch(), FIRST_EPOCH + 1, "the peer has not followed");
    assert!(server.opens(client.seal()) && client.opens(server.seal()));
    client.rekey();
    assert_eq!(client.epoch(), FIRST_EPOCH + 2);
    assert!(server.opens(client.seal()));
}

#[test]
fn an_end_follows_new_keys_and_replaces_none_for_records_of_its_own_epoch() {
    let (mut client, mut server) = pair();
    assert!(client.opens(server.seal()) && client.opens(server.seal()));
    assert_eq!(client.epoch(), FIRST_EPOCH);
    client.rekey();
    assert!(server.opens(client.seal()));
    assert_eq!(server.epoch(), FIRST_EPOCH + 1);
    assert!(server.opens(client.seal()));
    assert_eq!(server.epoch(), FIRST_EPOCH + 1);
}
