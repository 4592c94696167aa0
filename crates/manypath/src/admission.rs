//! Strangers that come, go, and are admitted.

use manypath_proto::{AssocId, Instant};

use crate::shared::Inner;

/// Abort reason for a stranger whose place a newer one takes. Programs look for "busy".
const CROWDED_OUT: &[u8] = b"busy: others came before you said who you are; try again later";

impl Inner {
    /// A stranger came; the oldest goes if there are too many.
    pub(crate) fn stranger_came(&mut self, now: Instant, id: AssocId) {
        let Some(strangers) = &mut self.strangers else { return };
        let ip = self.assocs.engine.assoc(id).and_then(|assoc| {
            let primary = assoc.primary();
            assoc.paths().find(|p| p.id == primary).map(|p| p.remote.ip())
        });
        // Without a path it is over already.
        let Some(goes) = ip.and_then(|ip| strangers.add(id, ip)) else { return };
        self.assocs.abort(now, goes, CROWDED_OUT);
        if self.take_from_accept_queue(goes) {
            self.release(now, goes);
        }
    }

    /// The association is over, or nobody's any more.
    pub(crate) fn stranger_left(&mut self, id: AssocId) {
        if let Some(strangers) = &mut self.strangers {
            strangers.remove(id);
        }
    }

    /// The application knows the peer: it gets the configured receive buffer, and its place for
    /// good.
    pub(crate) fn admit(&mut self, now: Instant, id: AssocId) {
        self.stranger_left(id);
        self.stranger_known();
        if let Some(assoc) = self.assocs.engine.assoc_mut(id) {
            assoc.seek_direct_paths(now);
            let full = assoc.config().first_receive_buffer();
            if assoc.receive_buffer() < full {
                assoc.set_receive_buffer(now, full);
            }
            self.assocs.kick();
        }
    }
}
