//! The content and frames that arrive at a receiver, on their way to the disk.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use manypath::{AssocClosed, Association};
use manypath_files::frame::{AHEAD, Kind};
use manypath_files::sink::{Said, Work};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::ReceiveError;
use super::order::{Order, Step};
use crate::event::{Event, Events};
use crate::messages::{Incoming, Messages};
use crate::meter::DeliveryMeter;
use crate::tally::Tally;

/// Takes what arrives and passes it to the disk.
pub(super) struct Intake<'a, F> {
    association: &'a Association,
    work: mpsc::Sender<Work>,
    /// For entries that the disk never sees.
    unnamed: mpsc::Sender<Said>,
    meter: DeliveryMeter,
    /// Content, and what was there before.
    received: &'a Tally,
    /// Messages.
    heard: &'a AtomicU64,
    /// Content that was there before.
    resumed: u64,
    order: Order,
    /// Files that were announced and have not begun: name and size.
    announced: BTreeMap<u32, (String, u64)>,
    events: &'a Events<F>,
}

impl<'a, F: FnMut(Event<'_>) + Send> Intake<'a, F> {
    pub(super) fn new(
        association: &'a Association,
        work: mpsc::Sender<Work>,
        unnamed: mpsc::Sender<Said>,
        received: &'a Tally,
        heard: &'a AtomicU64,
        events: &'a Events<F>,
    ) -> Intake<'a, F> {
        Intake {
            association,
            work,
            unnamed,
            meter: DeliveryMeter::new(Instant::now()),
            received,
            heard,
            resumed: 0,
            order: Order::default(),
            announced: BTreeMap::new(),
            events,
        }
    }

    /// Runs until the sender has nothing more.
    pub(super) async fn run(&mut self, messages: &mut Messages) -> Result<(), ReceiveError> {
        loop {
            let incoming = next(self.association, messages).await?;
            self.heard.fetch_add(1, Ordering::Relaxed);
            let work = match incoming {
                Incoming::Content(pieces) => {
                    self.order.content()?;
                    let bytes = pieces.iter().map(Bytes::len).sum();
                    self.meter.delivered(Instant::now(), bytes);
                    self.received.add(bytes as u64);
                    Work::Content(pieces)
                }
                Incoming::Frame(bytes) => match self.order.frame(&bytes)? {
                    Step::Work(work) => work,
                    Step::Unnamed(unnamed) => {
                        let said = self.unnamed.send(Said::Unnamed(unnamed)).await;
                        said.map_err(|_| ReceiveError::Writer)?;
                        continue;
                    }
                    Step::Nothing => continue,
                    Step::End => return Ok(()),
                },
            };
            self.note(&work);
            self.work.send(work).await.map_err(|_| ReceiveError::Writer)?;
        }
    }

    /// Notes what is there of a file that begins.
    fn note(&mut self, work: &Work) {
        match work {
            Work::Announce(header) if header.kind == Kind::File => {
                if self.announced.len() == AHEAD {
                    // Only a name in an event would be missing.
                    self.announced.pop_first();
                }
                let name = header.name.as_str().to_owned();
                self.announced.insert(header.index, (name, header.size));
            }
            Work::Begin { index, offset } => {
                self.resumed += offset;
                self.received.add(*offset);
                let file = self.announced.remove(index);
                // Files that were refused never begin.
                self.announced = self.announced.split_off(index);
                if *offset > 0
                    && let Some((name, size)) = file
                {
                    self.events.tell(Event::Resumed { name: &name, offset: *offset, size });
                }
            }
            Work::Announce(_) | Work::Content(_) | Work::End(_) => {}
        }
    }

    /// Closes the work's channel; the measurements, and the content that was there before.
    pub(super) fn end(self) -> (DeliveryMeter, u64) {
        (self.meter, self.resumed)
    }
}

/// The next frame or content.
pub(super) async fn next(
    association: &Association,
    messages: &mut Messages,
) -> Result<Incoming, ReceiveError> {
    loop {
        let message = association.recv().await.map_err(ReceiveError::Closed)?;
        let message = message.ok_or(ReceiveError::Closed(AssocClosed::Shutdown))?;
        match messages.take(message) {
            Ok(Some(incoming)) => return Ok(incoming),
            Ok(None) => {}
            Err(_) => return Err(ReceiveError::Order("a message of another protocol")),
        }
    }
}
