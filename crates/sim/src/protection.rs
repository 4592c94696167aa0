//! Keys for protected associations of a run.

use std::sync::Arc;

use manypath_dtls::manage::KeyManagement;
use manypath_keys::psk::SharedKey;

/// Key management of a host.
pub type Keys = Arc<dyn KeyManagement>;

/// A key that both ends of an association share. It is no secret: runs repeat to the bit, and each
/// association has keys of its own all the same.
pub fn shared_key() -> Keys {
    Arc::new(SharedKey::new(b"of both ends, and of nobody else").expect("long enough"))
}
