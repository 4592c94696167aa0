//! The small value types of parameters that are neither a number, a time nor a size.

/// An amount of data for a window, in the unit its source states it in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Units {
    /// Multiples of the path maximum DATA chunk size (PMDCS, RFC 9260 §7.2).
    Pmdcs(u32),
    /// Multiples of the path MTU, as RFC 2960 and the papers count.
    Mtu(u32),
    /// Bytes.
    Bytes(u64),
}

impl Units {
    /// The amount in bytes on a path with this PMDCS and this MTU, both in bytes.
    pub fn bytes(self, pmdcs: usize, mtu: usize) -> u64 {
        match self {
            Self::Pmdcs(count) => u64::from(count) * pmdcs as u64,
            Self::Mtu(count) => u64::from(count) * mtu as u64,
            Self::Bytes(bytes) => bytes,
        }
    }

    /// True if it holds at least one packet, and no more than a window can be.
    pub(super) fn is_valid(self) -> bool {
        match self {
            Self::Pmdcs(count) | Self::Mtu(count) => (1..=1_000_000).contains(&count),
            Self::Bytes(bytes) => (512..=1 << 32).contains(&bytes),
        }
    }
}

/// Rule for the initial cwnd of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InitialCwnd {
    /// min(4·PMDCS, max(2·PMDCS, 4404 bytes)), RFC 9260 §7.2.1; 4344 bytes over IPv6.
    Rfc9260,
    /// A fixed amount.
    Fixed(Units),
}

impl InitialCwnd {
    /// The initial cwnd in bytes on a path with this PMDCS and this MTU, both in bytes.
    pub fn bytes(self, pmdcs: usize, mtu: usize, ipv6: bool) -> u64 {
        let three_packets = if ipv6 { 4344 } else { 4404 };
        match self {
            Self::Rfc9260 => (4 * pmdcs as u64).min((2 * pmdcs as u64).max(three_packets)),
            Self::Fixed(units) => units.bytes(pmdcs, mtu),
        }
    }
}

/// Rule for the initial ssthresh of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InitialSsthresh {
    /// The peer's advertised receiver window credit, as in its INIT or INIT ACK.
    PeerRwnd,
    /// As high as can be: slow start ends with the first loss.
    Unlimited,
    /// A fixed number of bytes.
    Bytes(u64),
}

impl InitialSsthresh {
    /// The initial ssthresh in bytes, given the a_rwnd of the peer's INIT or INIT ACK.
    pub fn bytes(self, peer_rwnd: u32) -> u64 {
        match self {
            Self::PeerRwnd => peer_rwnd.into(),
            Self::Unlimited => u64::MAX,
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// An enum whose variants have one-word names in configuration.
macro_rules! named {
    ($(#[$meta:meta])* $type:ident {
        $($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $type { $($(#[doc = $doc])+ $variant),+ }

        impl $type {
            /// Names of the variants, in their order.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Name of this variant in configuration.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The variant of that name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

named! {
    /// Rule that limits how much leaves a path at once.
    MaxBurstRule {
        /// RFC 9260 §6.1 (D), the second of its two ways: at most Max.Burst packets at each
        /// opportunity to send.
        Rfc9260 = "rfc9260",
        /// RFC 9260 §6.1 (D), the first of its two ways; also CMT-PF paper, section II-D: each
        /// opportunity cuts cwnd to flight_size + Max.Burst packets, and cwnd grows from there.
        CutsCwnd = "cuts_cwnd",
        /// At most Max.Burst packets per SACK and path; cwnd stays as it is.
        PerSack = "per_sack",
        /// Like `per_sack`, but only from the first cumulative ack of a retransmitted chunk on.
        AfterFastRetransmit = "after_fast_retransmit",
    }
}

named! {
    /// Growth of cwnd when paths reorder (CMT paper, section III-B).
    Cuc {
        /// RFC 9260: cwnd grows only when the cumulative TSN ack point advances.
        Off = "off",
        /// cwnd update for CMT: one pseudo-cumack per path.
        V1 = "v1",
        /// CUCv2: a second pseudo-cumack per path, for retransmitted TSNs.
        V2 = "v2",
    }
}

named! {
    /// The paths that may send one packet of retransmissions beyond cwnd.
    RtxPastCwnd {
        /// The path that the retransmission policy chooses, whichever it is.
        Any = "any",
        /// A path that lost the data of the last fast retransmit, if the policy chooses it. It may
        /// do so at each fast retransmit and again after a timeout, where `any` allows it once in a
        /// fast recovery.
        Loser = "loser",
    }
}

named! {
    /// When a verdict on two paths that may share a bottleneck is due.
    SharedVerdict {
        /// After each fast retransmit, by the Chernoff bound at the measured ratio: chance brings
        /// that ratio with a probability of at most zeta.
        Measured = "measured",
        /// Once the path with fewer fast retransmits has as many as that bound demands at delta,
        /// whatever the ratio is: the letter of the mTCP paper, section 3.2.2.
        Wait = "wait",
        /// After each fast retransmit, with a test whose error probability stays bounded all the
        /// same. Repetitions within the interval, and losses of slow start, do not count.
        Sequential = "sequential",
    }
}

named! {
    /// When msacmt_rtv2 goes back from new data on all paths to redundancy.
    RedundancyCycle {
        /// After a failure only (MSACMT-RTv2 paper, Algorithm 1, step 11).
        Keep = "keep",
        /// After each review of all paths, too: the cycle starts over.
        Restart = "restart",
        /// As with `restart`, but a review that leaves the order of the paths as it was doubles the
        /// flights until the next one. Another order, or a failure, makes them few again
        /// (MSACMT-RTv2 paper, section 5, without numbers).
        Dynamic = "dynamic",
    }
}

named! {
    /// The quality that comes first when msacmt_rt, msacmt_rt_once and msacmt_rtv2 rank paths. The
    /// others follow in the paper's order: RTT and RTO, cwnd, ssthresh, loss rate (MSACMT-RTv2
    /// paper, section 3.1).
    RedundancyOrder {
        /// The least RTT, then the least RTO.
        Rtt = "rtt",
        /// The largest cwnd.
        Cwnd = "cwnd",
        /// The largest ssthresh.
        Ssthresh = "ssthresh",
        /// The least loss rate.
        Loss = "loss",
    }
}

named! {
    /// A release of ns-2's SCTP module.
    #[derive(PartialOrd, Ord)]
    Ns2Release {
        /// August 2003: the retransmission policies on one path.
        R34 = "3.4",
        /// September 2005: FrSameRtoAlt, MFR with timestamps or HAR, one recovery for all paths.
        R35 = "3.5",
        /// June 2006: the first agent for CMT.
        R36 = "3.6",
        /// June 2007: CMT-PF, and verification of all paths before data.
        R37 = "3.7",
        /// 2009: the constants of RFC 4960. It is in ns-2 2.35.
        R38 = "3.8",
    }
}
