//! The view that redundancy policies have of the paths and of what is in flight on them.

use manypath_wire::Tsn;

use super::room::has_room;
use crate::path::{Path, PathTable};
use crate::policy::recovery::Rules;
use crate::policy::redundant::{FlightPath, Flights, SentChunk};
use crate::time::Instant;
use crate::tx::{Outstanding, Sent};
use crate::view::PathId;

/// The parts of an association that the view is of.
pub(super) struct FlightsView<'a> {
    pub(super) out: &'a Outstanding,
    pub(super) paths: &'a PathTable,
    pub(super) rules: &'a Rules,
    pub(super) last_progress: Instant,
    pub(super) bytes_acked: u64,
    pub(super) bytes_copied: u64,
}

impl Flights for FlightsView<'_> {
    fn cum_tsn_ack_point(&self) -> Tsn {
        self.out.cum_tsn_ack_point()
    }

    fn last_progress(&self) -> Instant {
        self.last_progress
    }

    fn awaited(&self) -> Option<SentChunk> {
        let tsn = self.out.cum_tsn_ack_point().next();
        self.out.get(tsn).filter(|sent| !sent.is_abandoned).map(|sent| chunk(tsn, sent))
    }

    fn find_on(
        &self,
        path: PathId,
        accepts: &mut dyn FnMut(&SentChunk) -> bool,
    ) -> Option<SentChunk> {
        self.paths.get(path)?;
        let sent = self.out.sent_in_order(path).filter(|(_, sent)| !sent.is_abandoned);
        sent.map(|(tsn, sent)| chunk(tsn, sent)).find(accepts)
    }

    fn is_alone(&self, chunk: &SentChunk) -> bool {
        self.out.is_only_on(chunk.tsn, chunk.path)
    }

    fn path(&self, id: PathId) -> Option<FlightPath> {
        self.paths.get(id).map(view)
    }

    fn path_after(&self, after: Option<PathId>) -> Option<FlightPath> {
        self.paths.iter().find(|p| after.is_none_or(|after| p.id > after)).map(view)
    }

    fn has_room(&self, path: PathId) -> bool {
        self.paths.get(path).is_some_and(|p| has_room(p, self.out, self.rules))
    }

    fn bytes_acked(&self) -> u64 {
        self.bytes_acked
    }

    fn bytes_copied(&self) -> u64 {
        self.bytes_copied
    }
}

fn chunk(tsn: Tsn, sent: &Sent) -> SentChunk {
    SentChunk {
        tsn,
        path: sent.path,
        sent_at: sent.sent_at,
        size: sent.size(),
        is_first: sent.transmissions == 1,
    }
}

fn view(p: &Path) -> FlightPath {
    FlightPath {
        id: p.id,
        usable: p.role.usable,
        srtt: p.rto.srtt(),
        rtt_variation: p.rto.variation(),
        estimate: p.flow.estimate,
        last_active: p.liveness.last_active,
    }
}
