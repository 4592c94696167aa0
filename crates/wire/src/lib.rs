//! SCTP on the wire.
