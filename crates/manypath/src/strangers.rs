//! Peers that opened an association and that the application knows nothing of yet.

use manypath_proto::CrowdLimits;

/// Limits on peers that opened an association and were not
/// [admitted](crate::Association::admit) yet.
///
/// Nobody is turned away for them: a newcomer takes the place of an older one, of its own address
/// or network if those have many. So peers that open associations and stay silent cost others
/// nothing, as long as an honest one says who it is before enough newer ones of its network come to
/// take its place. Values of 0 count as 1.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct StrangerLimits {
    /// Receive buffer of each, in bytes, if the configured one is larger: what it can make this
    /// host hold.
    pub receive_buffer: usize,
    /// Strangers at a time. When there are more, the oldest of the network (/24, or /64 of IPv6)
    /// with most of them goes.
    pub total: usize,
    /// Strangers of one network (/24, or /64 of IPv6) at a time. When there are more, its oldest
    /// goes.
    pub per_network: usize,
    /// Strangers of one address at a time. When there are more, its oldest goes.
    pub per_address: usize,
}

impl Default for StrangerLimits {
    /// 64 KiB each; 64 in all, 32 of a network, 16 of an address.
    fn default() -> StrangerLimits {
        StrangerLimits { receive_buffer: 64 << 10, total: 64, per_network: 32, per_address: 16 }
    }
}

impl StrangerLimits {
    /// The limits on their number.
    pub(crate) fn crowd(&self) -> CrowdLimits {
        let StrangerLimits { total, per_network, per_address, .. } = *self;
        CrowdLimits { total, per_network, per_address }
    }
}
