//! FrSameRtoAlt (retransmission policies paper, section 3).

use super::{LossCause, RtxCandidate, RtxPolicy, alternate, if_room, same};
use crate::policy::PolicyCx;
use crate::view::PathId;

/// Fast retransmissions take the path of the transmission before, as in RTX-SAME; retransmissions
/// after a timeout take the next one, as in AllRtxAlt.
#[derive(Debug, Default)]
pub struct FrSameRtoAlt;

impl RtxPolicy for FrSameRtoAlt {
    fn choose(&mut self, cx: &mut PolicyCx<'_>, lost: &RtxCandidate) -> Option<PathId> {
        let chosen = match lost.cause {
            LossCause::FastRetransmit => same(cx, lost.last_path),
            LossCause::Timeout => alternate(cx, lost.last_path),
        };
        if_room(cx, chosen)
    }
}
