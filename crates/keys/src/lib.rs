//! Methods of key management for the SCTP DTLS chunk, without I/O: implementations of
//! [`KeyManagement`](manypath_dtls::manage::KeyManagement).
//!
//! - [`tls`]: keys from TLS 1.3 handshakes, with raw public keys or with certificates.
//! - [`psk`]: keys from a secret that both ends have.
//! - [`key_log`]: a log of keys for tools that decrypt captures. It is off unless asked for.

pub mod key_log;
pub mod psk;
#[cfg(feature = "tls")]
pub mod tls;
