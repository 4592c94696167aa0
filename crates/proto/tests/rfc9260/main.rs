//! One endpoint against a scripted peer: what RFC 9260 demands, clause by clause.
//!
//! The table in `docs/rfc9260.md` names the test for each rule.

mod acknowledge;
mod addresses;
mod admission;
mod attacks;
mod authentication;
mod candidates;
mod changes;
mod collision;
mod common;
mod congestion;
mod cookies;
mod direct;
mod ecn;
mod handshake;
mod immediate;
mod interleaving;
mod life;
mod mtcp;
mod multipath;
mod nr_sack;
mod ootb;
mod packet_sizes;
mod parameters;
mod partial_reliability;
mod paths;
mod policies;
mod random;
mod rare_sacks;
mod raw_ip;
mod reconfiguration;
mod retransmit;
mod roaming;
mod send;
mod shutdown;
mod table;
mod third_parties;
mod timestamps;
mod zero_checksum;
