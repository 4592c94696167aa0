//! From DEST and options to endpoints and associations, for all commands that use the network.

pub(crate) mod bind;
pub(crate) mod code;
pub(crate) mod dest;
pub(crate) mod exposed;
pub(crate) mod found;
pub(crate) mod host;
pub(crate) mod link_local;
pub(crate) mod near;
pub(crate) mod reach;
pub(crate) mod relayed;
pub(crate) mod rendezvous;
pub(crate) mod secret;
pub(crate) mod security;
pub(crate) mod strangers;
pub(crate) mod token;
pub(crate) mod transport;
pub(crate) mod uplinks;
pub(crate) mod via;
