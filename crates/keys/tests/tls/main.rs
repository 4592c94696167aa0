//! Two ends of key management with TLS, driven against each other in memory.

mod certificates;
mod first;
mod harness;
mod hostile;
mod impostor;
mod key_log;
mod pki;
mod rekey;
mod speed;
