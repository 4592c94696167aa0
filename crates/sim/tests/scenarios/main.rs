//! Scenarios: two engines on a simulated network, one behaviour each. The names say what must hold,
//! the messages which clause demands it.

mod addresses;
mod attacks;
mod attacks_on_handshake;
mod authentication;
mod bbr;
mod buffers;
mod candidates;
mod cmt_paper;
mod coupled;
mod crowds;
mod cubic;
mod direct;
mod ecn;
mod failure;
mod fairness;
mod full_speed;
mod handshake;
mod hostile;
mod interleaving;
mod jitter;
mod latency;
mod lifetimes;
mod mtcp_paper;
mod nat;
mod nat_boxes;
mod ns2;
mod ns2_one_path;
mod ns2_releases;
mod outages;
mod packet_sizes;
mod pauses;
mod pf_paper;
mod protection;
mod rack;
mod ranks;
mod reconfiguration;
mod redundancy;
mod repeatable;
mod roaming;
mod shared_hops;
mod silence;
mod slow_path;
mod start_under_loss;
mod strangers;

mod transfer;

/// Bytes of a mebibyte.
const MIB: u64 = 1 << 20;
