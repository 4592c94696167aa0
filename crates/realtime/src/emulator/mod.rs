//! A link emulator in user space: rate, delay, drop-tail queue, loss and outages over loopback
//! sockets, without privileges. [`link`] decides and knows no socket; [`relay`] moves the packets.

pub mod link;
pub mod relay;
