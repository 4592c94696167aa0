//! The agreement of the handshake: extensions that both ends use, and how many streams there are.

use manypath_wire::chunk_type;

use crate::assoc::Association;
use crate::assoc::ecn::Ecn;
use crate::assoc::receive::sack_path::SackPaths;
use crate::assoc::recover::timestamp::Timestamps;
use crate::config::Config;
use crate::sizes::DataKind;

/// The extensions that one end announced (RFC 5061 §4.2.7).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extensions {
    /// The TIMESTAMP chunk.
    pub(crate) timestamp: bool,
    /// The SACK PATH chunk.
    pub(crate) sack_path: bool,
    /// The NR-SACK chunk.
    pub(crate) nr_sack: bool,
    /// The I-DATA chunk (RFC 8260 §2.2.1).
    pub(crate) interleaving: bool,
    /// The end can do without a SACK for every second packet.
    pub(crate) rare_sacks: bool,
    /// The CANDIDATES chunk.
    pub(crate) candidates: bool,
    /// FORWARD TSN, and I-FORWARD-TSN with I-DATA (RFC 3758, RFC 8260 §2.3).
    pub(crate) partial_reliability: bool,
    /// Packets with checksum 0, by the method that this end has, too (RFC 9653 §5.1). It has a
    /// parameter of its own.
    pub(crate) zero_checksum: bool,
    /// The RE-CONFIG chunk (RFC 6525 §5.1.1).
    pub(crate) reconfiguration: bool,
    /// Explicit congestion notification (RFC 4960, appendix A). It has a parameter of its own.
    pub(crate) ecn: bool,
    /// The AUTH chunk (RFC 4895). It has parameters of its own, which count.
    pub(crate) authentication: bool,
    /// The ASCONF chunk (RFC 5061).
    pub(crate) address_reconfiguration: bool,
}

impl Extensions {
    /// Reads the chunk types in Supported Extensions.
    pub(super) fn of_types(types: &[u8]) -> Extensions {
        Extensions {
            timestamp: types.contains(&chunk_type::TIMESTAMP),
            sack_path: types.contains(&chunk_type::SACK_PATH),
            nr_sack: types.contains(&chunk_type::NR_SACK),
            interleaving: types.contains(&chunk_type::I_DATA),
            rare_sacks: types.contains(&chunk_type::RARE_SACKS),
            candidates: types.contains(&chunk_type::CANDIDATES),
            partial_reliability: types.contains(&chunk_type::FORWARD_TSN),
            zero_checksum: false,
            reconfiguration: types.contains(&chunk_type::RE_CONFIG),
            ecn: false,
            authentication: false,
            address_reconfiguration: types.contains(&chunk_type::ASCONF),
        }
    }

    /// A bit for each extension, for the cookie.
    pub(super) fn to_bits(self) -> u16 {
        let announced = [
            self.timestamp,
            self.sack_path,
            self.nr_sack,
            self.interleaving,
            self.rare_sacks,
            self.candidates,
            self.partial_reliability,
            self.zero_checksum,
            self.reconfiguration,
            self.ecn,
            self.authentication,
            self.address_reconfiguration,
        ];
        (0..).zip(announced).map(|(bit, is_known)| u16::from(is_known) << bit).sum()
    }

    /// The extensions that these bits stand for.
    pub(super) fn from_bits(bits: u16) -> Extensions {
        let is_known = |bit: u16| bits & 1 << bit != 0;
        Extensions {
            timestamp: is_known(0),
            sack_path: is_known(1),
            nr_sack: is_known(2),
            interleaving: is_known(3),
            rare_sacks: is_known(4),
            candidates: is_known(5),
            partial_reliability: is_known(6),
            zero_checksum: is_known(7),
            reconfiguration: is_known(8),
            ecn: is_known(9),
            authentication: is_known(10),
            address_reconfiguration: is_known(11),
        }
    }

    /// The chunk types of the extensions, for Supported Extensions.
    pub(super) fn types(self) -> impl Iterator<Item = u8> {
        let announced = [
            (self.timestamp, chunk_type::TIMESTAMP),
            (self.sack_path, chunk_type::SACK_PATH),
            (self.nr_sack, chunk_type::NR_SACK),
            (self.interleaving, chunk_type::I_DATA),
            (self.rare_sacks, chunk_type::RARE_SACKS),
            (self.candidates, chunk_type::CANDIDATES),
            (self.partial_reliability, chunk_type::FORWARD_TSN),
            (self.partial_reliability && self.interleaving, chunk_type::I_FORWARD_TSN),
            (self.reconfiguration, chunk_type::RE_CONFIG),
            (self.authentication, chunk_type::AUTH),
            (self.address_reconfiguration, chunk_type::ASCONF),
            (self.address_reconfiguration, chunk_type::ASCONF_ACK),
        ];
        announced.into_iter().filter_map(|(is_used, chunk)| is_used.then_some(chunk))
    }
}

/// The agreement, with the state of the extensions in use.
#[derive(Debug)]
pub(crate) struct Agreed {
    /// Messages may be sent on streams 0 up to this number, exclusive.
    pub(crate) streams_out: u16,
    /// Both ends use timestamps.
    pub(crate) timestamps: Option<Timestamps>,
    /// Both ends use NR-SACKs.
    pub(crate) nr_sack: bool,
    /// The peer needs no SACK for every second packet.
    pub(crate) rare_sacks: bool,
    /// The peer looks for direct paths, if this end does.
    pub(crate) candidates: bool,
    /// Both ends know FORWARD TSN.
    pub(crate) partial_reliability: bool,
    /// Packets to the peer have checksum 0.
    pub(crate) zero_checksum: bool,
    /// Both ends can reset and add streams.
    pub(crate) reconfiguration: bool,
    /// Both ends want to change addresses. It needs authentication, too.
    pub(crate) address_reconfiguration: bool,
    /// The state of explicit congestion notification, if both ends use it.
    pub(crate) ecn: Option<Box<Ecn>>,
    /// The kind of chunks that carry user data in both directions.
    pub(crate) data_kind: DataKind,
    pub(crate) sack_paths: SackPaths,
}

impl Agreed {
    /// The agreement before the handshake, as the configuration has it.
    pub(crate) fn new(config: &Config) -> Agreed {
        Agreed {
            streams_out: config.outbound_streams,
            timestamps: None,
            nr_sack: false,
            rare_sacks: false,
            candidates: false,
            partial_reliability: false,
            zero_checksum: false,
            reconfiguration: false,
            address_reconfiguration: false,
            ecn: None,
            data_kind: DataKind::Data,
            sack_paths: SackPaths::new(config),
        }
    }
}

impl Association {
    /// Uses from now on the extensions that the configuration asks for and the peer announced.
    pub(crate) fn agree(&mut self, peer: Extensions) {
        let both = self.config.timestamp && peer.timestamp;
        self.agreed.timestamps = both.then(|| Timestamps::new(&mut self.rng.fork("timestamps")));
        self.agree_on_sack_path(peer.sack_path);
        self.agreed.nr_sack = self.config.nr_sack && peer.nr_sack;
        self.agreed.rare_sacks = peer.rare_sacks;
        self.agreed.candidates = peer.candidates;
        self.agreed.partial_reliability =
            self.config.partial_reliability && peer.partial_reliability;
        self.agreed.zero_checksum = self.config.zero_checksum && peer.zero_checksum;
        self.agreed.reconfiguration = self.config.stream_reconfiguration && peer.reconfiguration;
        self.agreed.address_reconfiguration =
            self.config.address_reconfiguration && peer.address_reconfiguration;
        self.agreed.ecn = (self.config.ecn && peer.ecn).then(Box::default);
        self.agreed.data_kind = if self.config.message_interleaving && peer.interleaving {
            DataKind::IData
        } else {
            DataKind::Data
        };
        self.queue.set_kind(self.agreed.data_kind);
        if self.interleaves()
            && let Some(r) = self.rx.receiver.as_mut()
        {
            r.inbound.interleave();
        }
    }

    /// Messages may be given up after something of them was sent: both ends know FORWARD TSN (RFC
    /// 3758). Known once the association is established.
    pub fn is_partially_reliable(&self) -> bool {
        self.agreed.partial_reliability
    }

    /// Messages of different streams are interleaved: both ends use I-DATA chunks (RFC 8260). Known
    /// once the association is established.
    pub fn interleaves(&self) -> bool {
        self.agreed.data_kind == DataKind::IData
    }
}
