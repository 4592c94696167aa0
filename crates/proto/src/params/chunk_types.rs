//! Sets of chunk types.

use manypath_wire::chunk_type as ty;

/// The types that have a name in configuration.
const NAMES: [(u8, &str); 17] = [
    (ty::DATA, "data"),
    (ty::SACK, "sack"),
    (ty::HEARTBEAT, "heartbeat"),
    (ty::HEARTBEAT_ACK, "heartbeat_ack"),
    (ty::ABORT, "abort"),
    (ty::SHUTDOWN, "shutdown"),
    (ty::SHUTDOWN_ACK, "shutdown_ack"),
    (ty::ERROR, "error"),
    (ty::COOKIE_ECHO, "cookie_echo"),
    (ty::COOKIE_ACK, "cookie_ack"),
    (ty::NR_SACK, "nr_sack"),
    (ty::I_DATA, "i_data"),
    (ty::ASCONF_ACK, "asconf_ack"),
    (ty::RE_CONFIG, "re_config"),
    (ty::FORWARD_TSN, "forward_tsn"),
    (ty::ASCONF, "asconf"),
    (ty::I_FORWARD_TSN, "i_forward_tsn"),
];

/// The types that RFC 4895 §3.2 excludes.
const EXCLUDED: [u8; 4] = [ty::INIT, ty::INIT_ACK, ty::SHUTDOWN_COMPLETE, ty::AUTH];

/// A set of chunk types that can be authenticated: all but INIT, INIT ACK, SHUTDOWN COMPLETE and
/// AUTH (RFC 4895 §3.2). Its text is "none", or names and numbers with commas between.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkTypes([u64; 4]);

impl ChunkTypes {
    /// No type.
    pub const NONE: ChunkTypes = ChunkTypes([0; 4]);

    /// The set of these types, without those that cannot be authenticated.
    pub fn of(types: &[u8]) -> ChunkTypes {
        let possible = types.iter().filter(|ty| !EXCLUDED.contains(ty));
        possible.fold(ChunkTypes::NONE, |mut set, ty| {
            set.0[usize::from(ty >> 6)] |= 1 << (ty & 63);
            set
        })
    }

    /// The set with these types, too, except those that cannot be authenticated.
    #[must_use]
    pub fn with(self, types: &[u8]) -> ChunkTypes {
        let more = ChunkTypes::of(types);
        ChunkTypes(std::array::from_fn(|i| self.0[i] | more.0[i]))
    }

    /// True if the set contains a type.
    #[inline]
    pub const fn contains(self, ty: u8) -> bool {
        self.0[(ty >> 6) as usize] & 1 << (ty & 63) != 0
    }

    /// True if the set contains one of these types.
    pub fn contains_any(self, types: &[u8]) -> bool {
        types.iter().any(|ty| self.contains(*ty))
    }

    /// The types, in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(move |ty| self.contains(*ty))
    }

    /// The set with these names and numbers. `None` if one is not known, or cannot be
    /// authenticated.
    pub fn from_names(text: &str) -> Option<ChunkTypes> {
        let number = |name: &str| {
            let named = NAMES.iter().find(|(_, known)| *known == name).map(|(ty, _)| *ty);
            named.or_else(|| name.parse().ok()).filter(|ty| !EXCLUDED.contains(ty))
        };
        match text {
            "none" => Some(ChunkTypes::NONE),
            _ => {
                let types: Option<Vec<u8>> = text.split(',').map(|n| number(n.trim())).collect();
                Some(ChunkTypes::of(&types?))
            }
        }
    }

    /// The text that [`from_names`](Self::from_names) reads.
    pub fn names(self) -> String {
        let name = |ty: u8| {
            let known = NAMES.iter().find(|(known, _)| *known == ty);
            known.map_or_else(|| ty.to_string(), |(_, name)| (*name).to_owned())
        };
        let names: Vec<_> = self.iter().map(name).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_set_reads_as_that_set() {
        for text in ["none", "data", "data, sack, asconf_ack, asconf", "cookie_echo, 12, 255"] {
            let set = ChunkTypes::from_names(text).expect("known names");
            assert_eq!(set.names(), text);
        }
        let all = ChunkTypes::of(&(0..=u8::MAX).collect::<Vec<_>>());
        assert_eq!(ChunkTypes::from_names(&all.names()), Some(all));
        assert_eq!(all.iter().count(), 252);
        assert_eq!(ChunkTypes::from_names("0,3"), ChunkTypes::from_names("sack, data"));
    }

    #[test]
    fn types_that_cannot_be_authenticated_are_in_no_set() {
        for text in ["1", "data,2", "14", "15", "init", "", "data,,sack", "256", "none,data"] {
            assert_eq!(ChunkTypes::from_names(text), None, "{text}");
        }
        assert_eq!(ChunkTypes::of(&[1, 2, 14, 15, 3]), ChunkTypes::of(&[3]));
    }
}
