//! Inputs of key derivation (draft-ietf-tsvwg-dtls-chunk-key-management, "Key Derivation").

/// The label of all exports from a TLS connection.
pub const EXPORTER_LABEL: &[u8] = b"EXPORTER_TLS_FOR_DTLS_IN_SCTP";

/// Who seals with a key.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The client of the key management.
    Client,
    /// Its server.
    Server,
}

/// The use of a key.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum KeyRole {
    /// The association's packets.
    Primary,
    /// A restart of the association.
    Restart,
}

/// A part of [`KeyMaterial`](crate::KeyMaterial).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// Key of the record payload.
    Key,
    /// Key that masks sequence numbers.
    SequenceNumberKey,
    /// Initialization vector.
    Iv,
}

/// The context of an export. The two parameters are those of INIT and INIT ACK as they were on the
/// wire, with their header and without padding: if one was changed on the way, the ends derive
/// different keys.
#[must_use]
pub fn exporter_context(
    direction: Direction,
    role: KeyRole,
    kind: KeyKind,
    client_parameter: &[u8],
    server_parameter: &[u8],
) -> Vec<u8> {
    let direction = match direction {
        Direction::Client => 0,
        Direction::Server => 1,
    };
    let role = match role {
        KeyRole::Primary => 0,
        KeyRole::Restart => 1,
    };
    let kind = match kind {
        KeyKind::Key => 0,
        KeyKind::SequenceNumberKey => 1,
        KeyKind::Iv => 2,
    };
    [&[direction, role, kind], client_parameter, server_parameter].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two keys with one context would be one key: both directions would use it with the same
    /// nonces.
    #[test]
    fn each_key_has_a_context_of_its_own() {
        let mut all = Vec::new();
        for direction in [Direction::Client, Direction::Server] {
            for role in [KeyRole::Primary, KeyRole::Restart] {
                for kind in [KeyKind::Key, KeyKind::SequenceNumberKey, KeyKind::Iv] {
                    let context = exporter_context(direction, role, kind, b"client", b"server");
                    assert!(context.ends_with(b"clientserver"));
                    all.push(context[..3].to_vec());
                }
            }
        }
        // The draft's numbers, in this order.
        let expected = [[0, 0], [0, 1], [1, 0], [1, 1]];
        let expected =
            expected.map(|[direction, role]| [0, 1, 2].map(|kind| [direction, role, kind]));
        assert_eq!(all, expected.concat());
    }
}
