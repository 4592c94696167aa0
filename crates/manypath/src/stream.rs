//! One stream as bytes, for code that reads and writes them.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use manypath_proto::{AssocClosed, SendOptions, StreamId, sizes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::association::Association;
use crate::error::{OpenStreamError, SendError, closed_error};

/// Bytes per message: 16 chunks that each fill a packet of Ethernet over IPv4 and UDP, 1444 bytes.
/// All packets of a message but the last are full.
const MESSAGE: usize = 16 * sizes::user_data_within(sizes::ETHERNET_MTU, sizes::UDP_IPV4_HEADERS);

impl Association {
    /// Opens one stream as bytes in both directions. Meanwhile its messages do not come through
    /// [`recv`](Association::recv).
    ///
    /// SCTP knows no end of a single stream: the reader sees the end when the peer shuts the
    /// association down, so a protocol with several streams says in its bytes where each one ends.
    /// All streams share one receive buffer; one that is open and not read ends up holding up the
    /// others.
    pub fn stream(&self, stream: StreamId) -> Result<(SendStream, RecvStream), OpenStreamError> {
        let opened =
            self.shared().with(|inner, _| inner.assocs.state(self.id()).inbox.open(stream));
        if !opened {
            return Err(OpenStreamError::InUse(stream));
        }
        Ok((SendStream::new(self.clone(), stream), RecvStream::new(self.clone(), stream)))
    }
}

/// The sending half of a byte stream, see [`Association::stream`].
///
/// Bytes are gathered into messages of about 23 kB; `flush` sends what is left. `shutdown` flushes
/// and ends this half only on this side: the peer's reader sees the end when the association shuts
/// down.
#[derive(Debug)]
pub struct SendStream {
    association: Association,
    options: SendOptions,
    gathered: BytesMut,
    /// A message that waits for room.
    waiting: Option<Bytes>,
    ended: bool,
}

impl SendStream {
    fn new(association: Association, stream: StreamId) -> SendStream {
        let options = SendOptions { stream, ..SendOptions::default() };
        SendStream { association, options, gathered: BytesMut::new(), waiting: None, ended: false }
    }

    /// The association the stream belongs to.
    pub fn association(&self) -> &Association {
        &self.association
    }

    /// Sends `bytes` behind what was written before, as one message and without copying them.
    pub async fn send(&mut self, bytes: Bytes) -> Result<(), SendError> {
        if self.ended {
            return Err(SendError::ShutDown);
        }
        std::future::poll_fn(|cx| self.poll_drain(cx)).await?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.association.send(self.options, bytes).await
    }

    /// Queues everything gathered.
    fn poll_drain(&mut self, cx: &Context<'_>) -> Poll<Result<(), SendError>> {
        ready!(self.poll_waiting(cx))?;
        if !self.gathered.is_empty() {
            self.waiting = Some(self.gathered.split().freeze());
            ready!(self.poll_waiting(cx))?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_waiting(&mut self, cx: &Context<'_>) -> Poll<Result<(), SendError>> {
        if let Some(message) = &self.waiting {
            let result = ready!(self.association.poll_send(cx, self.options, message));
            self.waiting = None;
            result?;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let coop = ready!(tokio::task::coop::poll_proceed(cx));
        if this.ended {
            return Poll::Ready(Err(SendError::ShutDown.into()));
        }
        if this.gathered.len() >= MESSAGE {
            ready!(this.poll_drain(cx))?;
        }
        ready!(this.poll_waiting(cx))?;
        this.gathered.reserve(MESSAGE - this.gathered.len());
        let taken = data.len().min(MESSAGE - this.gathered.len());
        this.gathered.extend_from_slice(&data[..taken]);
        if this.gathered.len() >= MESSAGE
            && let Poll::Ready(result) = this.poll_drain(cx)
        {
            result?;
        }
        coop.made_progress();
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_drain(cx).map_err(io::Error::from)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_drain(cx))?;
        this.ended = true;
        Poll::Ready(Ok(()))
    }
}

/// The receiving half of a byte stream, see [`Association::stream`]. Ends when the peer has shut
/// the association down; what is not read when it is dropped is lost.
#[derive(Debug)]
pub struct RecvStream {
    association: Association,
    stream: StreamId,
    /// Received, not yet read.
    rest: Bytes,
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        let id = self.association.id();
        self.association.shared().with(|inner, _| {
            inner.assocs.state(id).inbox.close(self.stream);
            inner.assocs.wake_readers(id);
        });
    }
}

impl RecvStream {
    fn new(association: Association, stream: StreamId) -> RecvStream {
        RecvStream { association, stream, rest: Bytes::new() }
    }

    /// The association the stream belongs to.
    pub fn association(&self) -> &Association {
        &self.association
    }

    /// The next bytes as they arrived, not copied; `None` at the end. Cancel safe.
    pub async fn recv(&mut self) -> Result<Option<Bytes>, AssocClosed> {
        std::future::poll_fn(|cx| {
            let coop = ready!(tokio::task::coop::poll_proceed(cx));
            let result = ready!(self.poll_chunk(cx));
            coop.made_progress();
            Poll::Ready(result)
        })
        .await
    }

    fn poll_chunk(&mut self, cx: &Context<'_>) -> Poll<Result<Option<Bytes>, AssocClosed>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Ok(Some(std::mem::take(&mut self.rest))));
        }
        let (id, stream) = (self.association.id(), self.stream);
        self.association.shared().with(|inner, now| inner.assocs.poll_chunk(cx, now, id, stream))
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let coop = ready!(tokio::task::coop::poll_proceed(cx));
        let mut read = false;
        while out.remaining() > 0 {
            match this.poll_chunk(cx) {
                Poll::Ready(Ok(Some(mut chunk))) => {
                    out.put_slice(&chunk.split_to(chunk.len().min(out.remaining())));
                    this.rest = chunk;
                    read = true;
                }
                _ if read => break,
                Poll::Ready(Ok(None)) => break,
                Poll::Ready(Err(closed)) => return Poll::Ready(Err(closed_error(closed))),
                Poll::Pending => return Poll::Pending,
            }
        }
        coop.made_progress();
        Poll::Ready(Ok(()))
    }
}
