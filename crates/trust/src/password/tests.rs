use proptest::prelude::*;
use sha2::{Digest, Sha256};
use spake2::{Ed25519Group, Group};

use super::keys::{Proofs, Role, identities, library_password};
use super::random::System;
use super::testing::{Seeded, fuzz_password};
use super::*;
use crate::Fingerprint;

const BINDING: [u8; 32] = [7; 32];
/// The binding of a man in the middle's other channel.
const OTHER_BINDING: [u8; 32] = [8; 32];

fn password(text: &str) -> Password {
    Password::new(text.as_bytes().to_vec()).unwrap()
}

/// Runs an exchange; what the server and the client say in the end.
fn exchange(
    (client_word, client_binding): (&str, [u8; 32]),
    (server_word, server_binding): (&str, [u8; 32]),
) -> (Result<(), PasswordError>, Option<Result<(), PasswordError>>) {
    let (client, first) = Client::start(&password(client_word), &client_binding).unwrap();
    let (server, second) = Server::answer(&password(server_word), &server_binding, &first).unwrap();
    let (client, third) = client.answer(&second).unwrap();
    match server.finish(&third) {
        Ok(fourth) => (Ok(()), Some(client.finish(&fourth))),
        Err(error) => (Err(error), None),
    }
}

#[test]
fn both_ends_learn_that_the_other_has_the_password() {
    for word in ["123456", "x", "ein \u{fc}bles Wort", &"a".repeat(255)] {
        assert_eq!(exchange((word, BINDING), (word, BINDING)), (Ok(()), Some(Ok(()))));
    }
}

#[test]
fn with_a_wrong_password_the_server_proves_nothing() {
    for (client, server) in [("123456", "123457"), ("a", "a "), ("a", "A"), ("aa", "a")] {
        let ends = exchange((client, BINDING), (server, BINDING));
        assert_eq!(ends, (Err(PasswordError::Wrong), None), "{client} and {server}");
    }
}

#[test]
fn the_right_password_is_refused_on_two_different_channels() {
    let ends = exchange(("123456", BINDING), ("123456", OTHER_BINDING));
    assert_eq!(ends, (Err(PasswordError::Wrong), None));
}

#[test]
fn a_server_without_the_password_is_refused_by_the_client() {
    let (client, first) = Client::start(&password("123456"), &BINDING).unwrap();
    let (server, second) = Server::answer(&password("000000"), &BINDING, &first).unwrap();
    let (client, third) = client.answer(&second).unwrap();
    // It accepts whatever it gets, and shows the proof of its own key, or the client's own.
    let forged = Kind::ServerProof.message(Kind::ClientProof.content(&third).unwrap());
    assert_eq!(client.finish(&forged), Err(PasswordError::Wrong));
    assert_eq!(server.finish(&third), Err(PasswordError::Wrong));
}

#[test]
fn a_recorded_exchange_does_not_open_another_one() {
    let word = password("123456");
    let (client, first) = Client::start(&word, &BINDING).unwrap();
    let (server, second) = Server::answer(&word, &BINDING, &first).unwrap();
    let (client, third) = client.answer(&second).unwrap();
    let fourth = server.finish(&third).unwrap();
    assert_eq!(client.finish(&fourth), Ok(()));
    // To a server, even if the channel had the same binding.
    let (server, _) = Server::answer(&word, &BINDING, &first).unwrap();
    assert_eq!(server.finish(&third), Err(PasswordError::Wrong));
    // To a client.
    let (client, _) = Client::start(&word, &BINDING).unwrap();
    let (client, _) = client.answer(&second).unwrap();
    assert_eq!(client.finish(&fourth), Err(PasswordError::Wrong));
}

#[test]
fn messages_out_of_order_are_malformed() {
    let word = password("123456");
    let (client, first) = Client::start(&word, &BINDING).unwrap();
    // Its own message, back to it.
    assert_eq!(client.answer(&first).unwrap_err(), PasswordError::Malformed);
    let (server, second) = Server::answer(&word, &BINDING, &first).unwrap();
    assert_eq!(server.finish(&first), Err(PasswordError::Malformed));
    let error = Server::answer(&word, &BINDING, &second).unwrap_err();
    assert_eq!(error, PasswordError::Malformed);
}

/// The encoding of a point by its y below 256: 2 is the y of no point, 1 is the neutral element's,
/// 0 that of a point of order 4.
fn point(y: u8) -> [u8; ELEMENT_LEN] {
    let mut point = [0; ELEMENT_LEN];
    point[0] = y;
    point
}

#[test]
fn a_share_of_small_order_is_no_way_around_the_password() {
    let word = password("123456");
    let no_point = Kind::ClientShare.message(&point(2));
    let error = Server::answer(&word, &BINDING, &no_point).unwrap_err();
    assert_eq!(error, PasswordError::Malformed);
    for y in [0, 1] {
        let first = Kind::ClientShare.message(&point(y));
        // Without the password's part these would be the keys, even with the right password.
        for element in [point(0), point(1)] {
            let (server, second) = Server::answer(&word, &BINDING, &first).unwrap();
            let theirs = *Kind::ServerShare.content(&second).unwrap();
            let proof = client_proof(&word, &BINDING, (&point(y), &theirs), &element);
            assert_eq!(server.finish(&proof), Err(PasswordError::Wrong));
        }
    }
}

/// The client's proof of a password, computed apart from the library from x y B.
fn client_proof(
    password: &Password,
    binding: &[u8; 32],
    shares: (&[u8; 32], &[u8; 32]),
    element: &[u8],
) -> Message {
    let ((client, server), word) = (identities(binding), library_password(password));
    let mut transcript = Sha256::new();
    for part in [&word[..], &client[..], &server[..]] {
        transcript.update(Sha256::digest(part));
    }
    let key = transcript.chain_update(shares.0).chain_update(shares.1).chain_update(element);
    let proofs = Proofs::new(&key.finalize(), Role::Client, binding, shares).unwrap();
    Kind::ClientProof.message(proofs.own())
}

/// A man in the middle who is a server to the client, and has guessed `guess`.
struct Rogue {
    client_share: [u8; 32],
    own_share: [u8; 32],
    own_secret: <Ed25519Group as Group>::Scalar,
    recorded: Message,
}

impl Rogue {
    /// Has a client that knows `word` prove it.
    fn record(word: &str, guess: &str) -> Rogue {
        let (client, first) = Client::start(&password(word), &BINDING).unwrap();
        let own_secret = Ed25519Group::random_scalar(&mut Seeded::new(3));
        let guessed = Ed25519Group::scalarmult(&Ed25519Group::const_n(), &scalar(guess));
        let own = Ed25519Group::add(&Ed25519Group::basepoint_mult(&own_secret), &guessed);
        let own_share = Ed25519Group::element_to_bytes(&own).try_into().unwrap();
        let (_, recorded) = client.answer(&Kind::ServerShare.message(&own_share)).unwrap();
        let client_share = *Kind::ClientShare.content(&first).unwrap();
        Rogue { client_share, own_share, own_secret, recorded }
    }

    /// Those of `words` with which the recording can be explained.
    fn search<'a>(&self, words: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
        let share = Ed25519Group::bytes_to_element(&self.client_share).unwrap();
        let explains = |word: &&String| {
            let part = Ed25519Group::scalar_neg(&scalar(word));
            let part = Ed25519Group::scalarmult(&Ed25519Group::const_m(), &part);
            let theirs = Ed25519Group::add(&share, &part);
            let element = Ed25519Group::scalarmult(&theirs, &self.own_secret);
            let element = Ed25519Group::element_to_bytes(&element);
            let shares = (&self.client_share, &self.own_share);
            client_proof(&password(word), &BINDING, shares, &element) == self.recorded
        };
        words.filter(explains).map(String::as_str).collect()
    }
}

fn scalar(word: &str) -> <Ed25519Group as Group>::Scalar {
    Ed25519Group::hash_to_scalar(&library_password(&password(word)))
}

/// Every 499th of the million passwords of six digits, and the right one.
fn six_digits() -> Vec<String> {
    let mut words: Vec<String> = (0..1_000_000).step_by(499).map(|n| format!("{n:06}")).collect();
    words.push("483920".to_owned());
    words
}

#[test]
fn a_recording_of_a_wrong_guess_tells_no_password_from_another() {
    let words = six_digits();
    let rogue = Rogue::record("483920", "483921");
    assert_eq!(rogue.search(words.iter()), [""; 0]);
}

/// The search of the test above does find a password that a recording gives away: the one guess
/// that a man in the middle has.
#[test]
fn a_recording_of_the_right_guess_confirms_it_and_nothing_else() {
    let words = six_digits();
    let rogue = Rogue::record("483920", "483920");
    assert_eq!(rogue.search(words.iter()), ["483920"]);
}

#[test]
fn a_man_in_the_middle_who_passes_messages_on_gets_one_proof_that_explains_nothing() {
    let word = password("483920");
    let (client, first) = Client::start(&word, &BINDING).unwrap();
    let (server, second) = Server::answer(&word, &OTHER_BINDING, &first).unwrap();
    let (_, third) = client.answer(&second).unwrap();
    assert_eq!(server.finish(&third), Err(PasswordError::Wrong), "and no proof of the server");
    // What he can compute for each password without a logarithm.
    let bytes = |kind: Kind, message| *kind.content(message).unwrap();
    let shares = (bytes(Kind::ClientShare, &first), bytes(Kind::ServerShare, &second));
    let less = |share: &[u8; 32], constant, word: &str| {
        let share = Ed25519Group::bytes_to_element(share).unwrap();
        let part = Ed25519Group::scalarmult(&constant, &Ed25519Group::scalar_neg(&scalar(word)));
        Ed25519Group::element_to_bytes(&Ed25519Group::add(&share, &part))
    };
    for word in six_digits().iter().rev().take(200) {
        let x = less(&shares.0, Ed25519Group::const_m(), word);
        let y = less(&shares.1, Ed25519Group::const_n(), word);
        for element in [&shares.0[..], &shares.1[..], &x, &y, &point(1)] {
            for binding in [BINDING, OTHER_BINDING] {
                let shares = (&shares.0, &shares.1);
                assert_ne!(client_proof(&password(word), &binding, shares, element), third);
            }
        }
    }
}

#[test]
fn passwords_have_a_length_and_do_not_show() {
    assert_eq!(Password::new(vec![]).unwrap_err(), PasswordLength);
    assert_eq!(Password::new(vec![b'a'; 256]).unwrap_err(), PasswordLength);
    assert_eq!(format!("{:?}", password("hunter2")), "Password(..)");
}

/// A share that is not random gives the password away.
#[test]
fn without_random_numbers_nothing_is_sent() {
    let word = password("123456");
    let client = Client::start_by(&word, &BINDING, System::failing());
    assert_eq!(client.unwrap_err(), PasswordError::NoRandomness);
    let (_, first) = Client::start(&word, &BINDING).unwrap();
    let server = Server::answer_by(&word, &BINDING, &first, System::failing());
    assert_eq!(server.unwrap_err(), PasswordError::NoRandomness);
}

#[test]
fn the_exchange_stays_as_it_is() {
    // Guards against a change of labels, order or library: old and new versions would not agree.
    let word = password("123456");
    let (client, first) = Client::start_with(&word, &BINDING, &mut Seeded::new(1)).unwrap();
    let (server, second) =
        Server::answer_with(&word, &BINDING, &first, &mut Seeded::new(2)).unwrap();
    let (_, third) = client.answer(&second).unwrap();
    let fourth = server.finish(&third).unwrap();
    const EXPECTED: &str =
        "sha256:12faa09fd770847799bec7d687f1887e9f105e3ed34e2d8056a6144a8df21709";
    let mut all = Sha256::new();
    for (kind, message) in (1..).zip([first, second, third, fourth]) {
        assert_eq!(message[0], kind);
        all.update(message);
    }
    assert_eq!(Fingerprint::new(all.finalize().into()).to_string(), EXPECTED);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn changed_messages_are_refused(
        choice: u8,
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..80),
            prop::collection::vec(any::<u8>(), MESSAGE_LEN),
        ],
    ) {
        fuzz_password(&[&[choice], &bytes[..]].concat());
    }

    #[test]
    fn a_flipped_bit_is_noticed(which in 0..4_u8, bit in 0..8 * MESSAGE_LEN) {
        let mut bytes = vec![0; 1 + MESSAGE_LEN];
        bytes[0] = which | 4;
        bytes[1 + bit / 8] = 1 << (bit % 8);
        fuzz_password(&bytes);
    }

    #[test]
    fn truncated_messages_are_malformed(len in 0..MESSAGE_LEN, more in 1..100_usize) {
        let word = password("123456");
        let (client, first) = Client::start(&word, &BINDING).unwrap();
        let longer = [&first[..], &vec![0; more]].concat();
        for wrong in [&first[..len], &longer] {
            let error = Server::answer(&word, &BINDING, wrong).unwrap_err();
            prop_assert_eq!(error, PasswordError::Malformed);
        }
        let (server, second) = Server::answer(&word, &BINDING, &first).unwrap();
        let (_, third) = client.answer(&second).unwrap();
        prop_assert_eq!(server.finish(&third[..len]), Err(PasswordError::Malformed));
    }

    #[test]
    fn any_two_different_passwords_differ(
        one in prop::collection::vec(any::<u8>(), 1..40),
        other in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        let same = one == other;
        let [one, other] = [one, other].map(|bytes| Password::new(bytes).unwrap());
        let (client, first) = Client::start(&one, &BINDING).unwrap();
        let (server, second) = Server::answer(&other, &BINDING, &first).unwrap();
        let (_, third) = client.answer(&second).unwrap();
        prop_assert_eq!(server.finish(&third).is_ok(), same);
    }
}
