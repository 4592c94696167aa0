//! The treatment of chunks and parameters of unknown types.

/// The sender's wish, in the two upper bits of a type, for receivers that do not know the type
/// (RFC 9260 §3.2 for chunks, §3.2.1 for parameters).
///
/// | bits | `stop` | `report` |
/// | ---- | ------ | -------- |
/// | 00   | yes    | no       |
/// | 01   | yes    | yes      |
/// | 10   | no     | no       |
/// | 11   | no     | yes      |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnknownAction {
    /// Process nothing that follows in the packet (chunks) or in the chunk (parameters). Otherwise
    /// skip the unknown item and go on.
    pub stop: bool,
    /// Tell the peer: "Unrecognized Chunk Type" in an ERROR, or "Unrecognized Parameter" in an
    /// INIT ACK or ERROR.
    pub report: bool,
}

impl UnknownAction {
    /// The action that the upper bits of a chunk type ask for.
    #[must_use]
    pub const fn of_chunk(ty: u8) -> Self {
        Self { stop: ty & 0x80 == 0, report: ty & 0x40 != 0 }
    }

    /// The action that the upper bits of a parameter type ask for.
    #[must_use]
    pub const fn of_parameter(ty: u16) -> Self {
        Self::of_chunk((ty >> 8) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_upper_bits_decide() {
        let action = |stop, report| UnknownAction { stop, report };
        assert_eq!(UnknownAction::of_chunk(0x3f), action(true, false));
        assert_eq!(UnknownAction::of_chunk(0x40), action(true, true));
        assert_eq!(UnknownAction::of_chunk(0xbf), action(false, false));
        assert_eq!(UnknownAction::of_chunk(0xc0), action(false, true));
        assert_eq!(UnknownAction::of_parameter(0x3fff), action(true, false));
        assert_eq!(UnknownAction::of_parameter(0x4000), action(true, true));
        assert_eq!(UnknownAction::of_parameter(0x8000), action(false, false));
        assert_eq!(UnknownAction::of_parameter(0xc006), action(false, true));
    }
}
