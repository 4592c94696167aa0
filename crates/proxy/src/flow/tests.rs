use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::frame::Cause;

/// One side, what it has sent that has not arrived, and what it knows.
struct Side {
    flow: Flow,
    out: VecDeque<Item>,
    unread: usize,
    sent: usize,
    got: usize,
    was_reset: bool,
    peer_ended: bool,
}

enum Item {
    Frame(Frame),
    Data(usize),
}

impl Side {
    fn new(is_opener: bool, budget: &Arc<Budget>) -> Side {
        let flow = Flow::new(is_opener, budget, Duration::ZERO);
        let out = VecDeque::new();
        Side { flow, out, unread: 0, sent: 0, got: 0, was_reset: false, peer_ended: false }
    }

    fn send(&mut self, frame: Option<Frame>) {
        self.was_reset |= matches!(frame, Some(Frame::Reset));
        self.out.extend(frame.map(Item::Frame));
    }

    /// Takes an item that has arrived.
    fn arrive(&mut self, item: Item) {
        match item {
            Item::Data(bytes) => {
                if self.flow.received(bytes).unwrap() {
                    self.unread += bytes;
                    self.got += bytes;
                }
            }
            Item::Frame(frame) => match self.flow.heard(frame).unwrap() {
                Heard::Reset | Heard::Refused(_) => {
                    self.was_reset = true;
                    let last = self.flow.end();
                    self.send(last);
                }
                Heard::Fin => self.peer_ended = true,
                _ => {}
            },
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Send(bool, usize),
    Read(bool, usize),
    Fin(bool),
    Reset(bool),
    Deliver(bool, usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (any::<bool>(), 1..40_000_usize).prop_map(|(s, n)| Step::Send(s, n)),
        6 => (any::<bool>(), 1..40_000_usize).prop_map(|(s, n)| Step::Read(s, n)),
        1 => any::<bool>().prop_map(Step::Fin),
        1 => prop::bool::weighted(0.3).prop_flat_map(|_| any::<bool>().prop_map(Step::Reset)),
        8 => (any::<bool>(), 1..5_usize).prop_map(|(s, n)| Step::Deliver(s, n)),
    ]
}

fn deliver(sides: &mut [Side; 2], from: usize, count: usize) {
    for _ in 0..count {
        let Some(item) = sides[from].out.pop_front() else { return };
        sides[1 - from].arrive(item);
    }
}

proptest! {
    /// Whatever two honest sides do, no side sees a violation, all data arrives unless there was a
    /// reset, and once both are done the connection is over on both sides with nothing on the way.
    #[test]
    fn honest_sides_never_break_the_protocol(steps in prop::collection::vec(step(), 0..200)) {
        let budget = Budget::new(1 << 20);
        let mut sides = [Side::new(true, &budget), Side::new(false, &budget)];
        sides[1].send(Some(Frame::Accepted));
        let mut ms = 0;
        for step in steps {
            ms += 7;
            let now = Duration::from_millis(ms);
            match step {
                Step::Send(s, n) => {
                    let side = &mut sides[usize::from(s)];
                    let n = n.min(side.flow.sendable());
                    if n > 0 {
                        side.flow.sending(n);
                        side.sent += n;
                        side.out.push_back(Item::Data(n));
                    }
                }
                Step::Read(s, n) => {
                    let side = &mut sides[usize::from(s)];
                    let n = n.min(side.unread);
                    side.unread -= n;
                    let credit = side.flow.taken(n, now);
                    side.send(credit);
                }
                Step::Fin(s) => {
                    let side = &mut sides[usize::from(s)];
                    let fin = side.flow.fin();
                    side.send(fin);
                }
                Step::Reset(s) => {
                    let side = &mut sides[usize::from(s)];
                    let last = side.flow.end();
                    side.send(last);
                }
                Step::Deliver(s, n) => deliver(&mut sides, usize::from(s), n),
            }
        }
        // Everybody finishes.
        for side in &mut sides {
            let fin = side.flow.fin();
            side.send(fin);
        }
        for from in [0, 1, 0, 1] {
            deliver(&mut sides, from, usize::MAX);
        }
        for side in &mut sides {
            let last = side.flow.end();
            side.send(last);
        }
        for from in [0, 1, 0, 1] {
            deliver(&mut sides, from, usize::MAX);
        }
        prop_assert!(sides.iter().all(|s| s.flow.is_over() && s.out.is_empty()));
        if sides.iter().all(|s| !s.was_reset) {
            prop_assert_eq!((sides[0].sent, sides[1].sent), (sides[1].got, sides[0].got));
        }
        drop(sides);
        prop_assert_eq!(budget.used(), 0);
    }
}

fn flow(is_opener: bool) -> Flow {
    Flow::new(is_opener, &Budget::new(0), Duration::ZERO)
}

#[test]
fn hostile_frames_are_violations() {
    let refused = || Frame::Refused(Refusal::new(Cause::Failed, ""));
    let cases: [(bool, Vec<Frame>); 8] = [
        (false, vec![Frame::Accepted]),
        (false, vec![refused()]),
        (true, vec![Frame::Accepted, Frame::Accepted]),
        (true, vec![Frame::Accepted, refused()]),
        (false, vec![Frame::Fin, Frame::Fin]),
        (false, vec![Frame::Close]),
        (false, vec![Frame::Reset, Frame::Credit(1)]),
        (false, vec![Frame::Ping]),
    ];
    for (is_opener, mut frames) in cases {
        let mut flow = flow(is_opener);
        let last = frames.pop().unwrap();
        frames.into_iter().for_each(|frame| drop(flow.heard(frame).unwrap()));
        assert!(flow.heard(last.clone()).is_err(), "{last:?}");
    }
    for bytes in [0, u32::MAX] {
        assert!(flow(false).heard(Frame::Credit(bytes)).is_err(), "credit {bytes}");
    }
}

#[test]
fn data_that_may_not_come_is_a_violation() {
    assert!(flow(true).received(1).is_err(), "before the answer");
    let mut ended = flow(false);
    ended.heard(Frame::Fin).unwrap();
    assert!(ended.received(1).is_err(), "after the end");
    assert!(flow(false).received(WINDOW_INITIAL as usize + 1).is_err(), "beyond the window");
}

#[test]
fn a_half_closed_connection_goes_on_in_the_other_direction() {
    let mut flow = flow(false);
    assert_eq!(flow.heard(Frame::Fin), Ok(Heard::Fin));
    for _ in 0..1000 {
        flow.sending(flow.sendable());
        assert_eq!(flow.heard(Frame::Credit(10_000)), Ok(Heard::Credit));
    }
    assert_eq!(flow.fin(), Some(Frame::Fin));
    assert_eq!(flow.end(), Some(Frame::Close));
}
