//! ABORT and ERROR (RFC 9260 §3.3.7, §3.3.10): both carry error causes.

use super::{FLAG_T, RawChunk, chunk_type};
use crate::builder::PacketBuilder;
use crate::cause::{Causes, ErrorCause};

/// An ABORT chunk: the association is over, at once.
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// |   type = 6    |  reserved   |T|            length             |
/// +---------------+---------------+---------------+---------------+
/// | error causes, none or more …                                  |
/// +---------------+---------------+---------------+---------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abort {
    /// The T bit: the packet's verification tag is the receiver's own, reflected (§8.5.1).
    pub tag_reflected: bool,
    /// Why; malformed causes do not make the ABORT itself invalid.
    pub causes: Causes,
}

/// An ERROR chunk: something was wrong with what was received. By itself it ends nothing.
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// |   type = 9    |   flags = 0   |            length             |
/// +---------------+---------------+---------------+---------------+
/// | error causes, one or more …                                   |
/// +---------------+---------------+---------------+---------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorChunk {
    /// The errors reported.
    pub causes: Causes,
}

impl Abort {
    pub(super) fn decode(raw: &RawChunk<'_>) -> Self {
        Self { tag_reflected: raw.flags & FLAG_T != 0, causes: causes(raw) }
    }

    pub(super) fn push(&self, packet: &mut PacketBuilder<'_>) -> bool {
        packet.push_chunk(chunk_type::ABORT, flags(self.tag_reflected), self.causes.as_bytes())
    }
}

impl ErrorChunk {
    pub(super) fn decode(raw: &RawChunk<'_>) -> Self {
        Self { causes: causes(raw) }
    }

    pub(super) fn push(&self, packet: &mut PacketBuilder<'_>) -> bool {
        packet.push_chunk(chunk_type::ERROR, 0, self.causes.as_bytes())
    }
}

impl PacketBuilder<'_> {
    /// Appends an ABORT chunk with all of `causes`, or nothing if they do not fit: an ABORT without
    /// causes is valid too, and better than none.
    pub fn push_abort(&mut self, tag_reflected: bool, causes: &[ErrorCause]) -> bool {
        self.push_with(chunk_type::ABORT, flags(tag_reflected), |out, _| {
            ErrorCause::put_list(causes, out);
        })
    }

    /// Appends an ERROR chunk with all of `causes`, or nothing if they do not fit.
    pub fn push_error(&mut self, causes: &[ErrorCause]) -> bool {
        self.push_with(chunk_type::ERROR, 0, |out, _| ErrorCause::put_list(causes, out))
    }
}

fn causes(raw: &RawChunk<'_>) -> Causes {
    Causes::received(raw.value_from(0), raw.value_offset(0))
}

fn flags(tag_reflected: bool) -> u8 {
    if tag_reflected { FLAG_T } else { 0 }
}
