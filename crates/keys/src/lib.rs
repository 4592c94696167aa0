//! Key management for protected SCTP associations: the methods behind
//! [`manypath_dtls::manage::KeyManagement`], without I/O.
//!
//! | module | method | for |
//! | --- | --- | --- |
//! | [`psk`] | 0, pre-shared | simulations, tests, and users who have a key that both ends know |

pub mod psk;
