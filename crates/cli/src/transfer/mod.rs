//! The transfer of files: protocol, reading, writing. `docs/protocol-transfer.md` describes it.

pub(crate) mod frame;
pub(crate) mod relative;
pub(crate) mod sink;
pub(crate) mod source;
