//! One connection's state, shared by the task that reads the association and the one that relays.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::flow::{Flow, Heard, Violation};
use crate::frame::{Frame, Refusal};
use crate::session::Session;

/// Data that has arrived, or the end of it.
pub(crate) enum Inbound {
    Data(Vec<Bytes>),
    Fin,
}

/// Why a connection ended out of order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The peer reset it.
    Peer,
    /// This side's TCP connection failed.
    Local,
    /// The association is over.
    Session,
}

/// One connection.
pub(crate) struct Conn {
    pub(crate) session: Arc<Session>,
    pub(crate) stream: u16,
    pub(crate) is_opener: bool,
    /// The number of a UDP association.
    pub(crate) udp: Option<u32>,
    state: Mutex<State>,
    /// Something arrived for the reader of `inbound`, or the answer.
    arrived: Notify,
    /// There is credit.
    credit: Notify,
}

struct State {
    flow: Flow,
    inbound: VecDeque<Bytes>,
    /// The peer sends no more.
    fin: bool,
    reset: bool,
    answer: Option<Result<(), Refusal>>,
    datagrams: VecDeque<Bytes>,
}

/// Datagrams of one connection that wait; as with any queue of UDP, more are dropped.
const DATAGRAMS_MAX: usize = 256;

impl Conn {
    pub(crate) fn new(
        session: &Arc<Session>,
        stream: u16,
        is_opener: bool,
        udp: Option<u32>,
    ) -> Arc<Conn> {
        let flow = Flow::new(is_opener, session.budget(), session.now());
        let state = State {
            flow,
            inbound: VecDeque::new(),
            fin: false,
            reset: false,
            answer: None,
            datagrams: VecDeque::new(),
        };
        Arc::new(Conn {
            session: session.clone(),
            stream,
            is_opener,
            udp,
            state: Mutex::new(state),
            arrived: Notify::new(),
            credit: Notify::new(),
        })
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- What arrives ----

    /// Data has arrived.
    pub(crate) fn on_data(&self, chunks: Vec<Bytes>) -> Result<(), Violation> {
        let bytes = chunks.iter().map(Bytes::len).sum();
        let mut state = self.locked();
        if state.flow.received(bytes)? {
            state.inbound.extend(chunks);
            drop(state);
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// A datagram has arrived.
    pub(crate) fn on_datagram(&self, bytes: Bytes) {
        let mut state = self.locked();
        if state.datagrams.len() < DATAGRAMS_MAX && !state.flow.has_ended() {
            state.datagrams.push_back(bytes);
            drop(state);
            self.arrived.notify_one();
        }
    }

    /// A frame has arrived; true if the connection is over with it.
    pub(crate) fn on_frame(&self, frame: Frame) -> Result<bool, Violation> {
        let mut state = self.locked();
        match state.flow.heard(frame)? {
            Heard::Nothing => {}
            Heard::Accepted => state.answer = Some(Ok(())),
            Heard::Refused(why) => {
                state.answer = Some(Err(why));
                // For a connection whose data did not wait for the answer.
                state.reset = true;
            }
            Heard::Credit => self.credit.notify_one(),
            Heard::Fin => state.fin = true,
            Heard::Reset => {
                state.reset = true;
                state.inbound.clear();
            }
        }
        let is_over = state.flow.is_over();
        drop(state);
        self.arrived.notify_one();
        Ok(is_over)
    }

    // ---- The relaying task ----

    /// Waits for the answer to our `Open`.
    pub(crate) async fn answer(&self) -> Result<Result<(), Refusal>, Broken> {
        loop {
            {
                let mut state = self.locked();
                if let Some(answer) = state.answer.take() {
                    return Ok(answer);
                }
                if state.reset {
                    return Err(Broken::Peer);
                }
            }
            self.arrived.notified().await;
        }
    }

    /// The answer to our `Open`, if it has come and nobody waited for it.
    pub(crate) fn take_answer(&self) -> Option<Result<(), Refusal>> {
        self.locked().answer.take()
    }

    /// Waits for data, or the end of it.
    pub(crate) async fn inbound(&self) -> Result<Inbound, Broken> {
        loop {
            {
                let mut state = self.locked();
                if state.reset {
                    return Err(Broken::Peer);
                }
                if !state.inbound.is_empty() {
                    return Ok(Inbound::Data(std::mem::take(&mut state.inbound).into()));
                }
                if state.fin {
                    return Ok(Inbound::Fin);
                }
            }
            self.arrived.notified().await;
        }
    }

    /// Waits until the peer resets the connection.
    pub(crate) async fn until_reset(&self) -> Broken {
        loop {
            if self.locked().reset {
                return Broken::Peer;
            }
            self.arrived.notified().await;
        }
    }

    /// Waits for a datagram; `None` once the peer ended the association of datagrams.
    pub(crate) async fn datagram(&self) -> Option<Bytes> {
        loop {
            {
                let mut state = self.locked();
                if state.reset || state.fin {
                    return None;
                }
                if let Some(bytes) = state.datagrams.pop_front() {
                    return Some(bytes);
                }
            }
            self.arrived.notified().await;
        }
    }

    /// Waits until data may be sent; how many bytes.
    pub(crate) async fn sendable(&self) -> usize {
        loop {
            let sendable = self.locked().flow.sendable();
            if sendable > 0 {
                return sendable;
            }
            self.credit.notified().await;
        }
    }

    /// Sends data, at most [`sendable`](Conn::sendable).
    pub(crate) async fn send(&self, data: Bytes) -> Result<(), Broken> {
        self.locked().flow.sending(data.len());
        self.session.send_data(self.stream, data).await
    }

    /// Notes that `bytes` of [`inbound`](Conn::inbound) were passed on.
    pub(crate) async fn taken(&self, bytes: usize) -> Result<(), Broken> {
        let credit = self.locked().flow.taken(bytes, self.session.now());
        self.session.send_frame(self.stream, credit).await
    }

    /// Says that no more data follows.
    pub(crate) async fn fin(&self) -> Result<(), Broken> {
        let fin = self.locked().flow.fin();
        self.session.send_frame(self.stream, fin).await
    }

    /// Says that the target is connected.
    pub(crate) async fn accept(&self) -> Result<(), Broken> {
        self.session.send_frame(self.stream, Some(Frame::Accepted)).await
    }

    /// Ends the connection with a refusal.
    pub(crate) async fn refuse(&self, why: Refusal) {
        let (last, is_over) = {
            let mut state = self.locked();
            (state.flow.refuse(why), state.flow.is_over())
        };
        self.last(last, is_over).await;
    }

    /// Ends the connection on this side, in order or with a reset.
    pub(crate) async fn end(&self) {
        let (last, is_over) = {
            let mut state = self.locked();
            state.inbound.clear();
            state.datagrams.clear();
            (state.flow.end(), state.flow.is_over())
        };
        self.last(last, is_over).await;
    }

    async fn last(&self, last: Option<Frame>, is_over: bool) {
        // If the association is over, so are its streams.
        let _ = self.session.send_frame(self.stream, last).await;
        if is_over {
            self.session.remove(self.stream);
        }
    }
}
