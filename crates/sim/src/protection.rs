//! Keys for protected associations of a run.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use manypath_dtls::manage::KeyManagement;
use manypath_keys::key_log::{KeyLog, NotOpened, Opener};
use manypath_keys::psk::SharedKey;

/// Key management of a host.
pub type Keys = Arc<dyn KeyManagement>;

/// A key that both ends of an association share. It is no secret: runs repeat to the bit, and each
/// association has keys of its own all the same.
pub fn shared_key() -> Keys {
    Arc::new(key())
}

fn key() -> SharedKey {
    SharedKey::new(b"of both ends, and of nobody else").expect("long enough")
}

/// The keys of a run, kept as they come about, to open its packets for a trace. It is the log of
/// any key management: give a clone to that, and another to
/// [`Tracer::opened_with`](crate::Tracer::opened_with).
#[derive(Clone, Debug, Default)]
pub struct RunKeys(Arc<Mutex<Opener>>);

impl RunKeys {
    /// [`shared_key`], whose keys these learn.
    #[must_use]
    pub fn shared_key(&self) -> Keys {
        Arc::new(key().log_keys(Arc::new(self.clone())))
    }

    pub(crate) fn open(&self, packet: &Bytes) -> Result<Bytes, NotOpened> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).open(packet)
    }
}

impl KeyLog for RunKeys {
    fn line(&self, line: &str) {
        let mut opener = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Packets whose keys are too many to keep are shown as they are.
        let _ = opener.learn(line);
    }
}
