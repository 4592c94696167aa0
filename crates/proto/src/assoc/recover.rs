//! Recovery: SACKs, timeouts, outages and failed paths (RFC 9260 §6.3, §7.2, §8).

pub(super) mod ack;
pub(super) mod failure;
pub(super) mod false_acks;
pub(super) mod outage;
pub(super) mod timeout;
pub(super) mod timestamp;
