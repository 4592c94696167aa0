//! Reading SACKs: what each says about the outstanding chunks.

pub(super) mod copies;
pub(super) mod cuc;
pub(super) mod digest;
pub(super) mod doubts;
pub(super) mod echo;
pub(super) mod late;
pub(super) mod missing;
pub(super) mod nr_sacked;
pub(super) mod rack;
pub(super) mod spurious;
