//! Which path duplicates what another sends.

mod late;
mod msacmt_rt;
mod msacmt_rt_once;
mod msacmt_rtv2;
mod off;
mod rank;

pub use late::Late;
pub use msacmt_rt::MsacmtRt;
pub use msacmt_rt_once::MsacmtRtOnce;
pub use msacmt_rtv2::MsacmtRtv2;
pub use off::Off;

use super::{Needs, PolicyCx, registry};
use crate::view::PathId;

/// One path sends again what another sends, and no new data.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Cover {
    /// The path that carries the copies.
    pub redundant: PathId,
    /// The path whose DATA chunks are duplicated.
    pub covered: PathId,
}

/// Says which path duplicates which.
///
/// The engine tells it of *flights*. A flight of a path is all that is in flight there at one
/// moment; the next one begins when all of it is acknowledged, or found missing and sent again. It
/// failed if T3-rtx expired meanwhile.
pub trait RedundancyPolicy: std::fmt::Debug + Send {
    /// Of [`Needs`], `roles` is its own: false for a policy that never duplicates anything.
    fn needs(&self) -> Needs {
        Needs { roles: true, ..Needs::default() }
    }

    /// The paths' roles from now on. Asked before anything is sent, after what happened was told.
    fn cover(&mut self, cx: &mut PolicyCx<'_>) -> Option<Cover>;

    /// A flight of this path ended without a timeout.
    fn flight_succeeded(&mut self, path: PathId);

    /// T3-rtx expired on this path.
    fn flight_failed(&mut self, path: PathId);
}

registry!(RedundancyPolicy {
    "off" => |_| Box::new(Off),
    "late" => |_| Box::new(Late),
    "msacmt_rt" => |config| Box::new(MsacmtRt::new(config.redundancy_order)),
    "msacmt_rt_once" => |config| Box::new(MsacmtRtOnce::new(config.redundancy_order)),
    "msacmt_rtv2" => |config| {
        let (review, cycle) = (config.redundancy_review, config.redundancy_cycle);
        Box::new(MsacmtRtv2::new(review, cycle, config.redundancy_order))
    },
});

#[cfg(test)]
mod tests;
