//! The numbers of streams: which side may use which, and which are free.
//!
//! The side that connected opens odd streams, the side that accepted it even ones from 2 on. A
//! stream is free again for its opener when the last frames of both directions have passed
//! ([`Frame::is_last`](crate::frame::Frame::is_last)): messages of a stream arrive in order, so
//! nothing of the old connection can come after that.

use std::collections::VecDeque;

/// Free stream numbers of one side, the longest unused first.
#[derive(Debug)]
pub struct Streams {
    free: VecDeque<u16>,
    /// The next one that was never used.
    next: u32,
    end: u32,
}

impl Streams {
    /// The odd or even streams below `count`, without the control stream.
    pub fn new(odd: bool, count: u16) -> Streams {
        Streams { free: VecDeque::new(), next: if odd { 1 } else { 2 }, end: count.into() }
    }

    /// Takes a stream; `None` if all are in use. One that was used before comes first, because
    /// streams cost the peer memory.
    pub fn take(&mut self) -> Option<u16> {
        if let Some(stream) = self.free.pop_front() {
            return Some(stream);
        }
        if self.next >= self.end {
            return None;
        }
        let stream = u16::try_from(self.next).ok()?;
        self.next += 2;
        Some(stream)
    }

    /// Gives a stream back.
    pub fn give_back(&mut self, stream: u16) {
        self.free.push_back(stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sides_never_take_the_same_stream_and_use_them_again() {
        let mut all = Vec::new();
        for odd in [true, false] {
            let mut streams = Streams::new(odd, 10);
            let taken: Vec<u16> = std::iter::from_fn(|| streams.take()).collect();
            streams.give_back(taken[1]);
            streams.give_back(taken[0]);
            assert_eq!((streams.take(), streams.take()), (Some(taken[1]), Some(taken[0])));
            assert_eq!(streams.take(), None);
            all.extend(taken);
        }
        all.sort_unstable();
        assert_eq!(all, (1..10).collect::<Vec<_>>());
        assert_eq!(Streams::new(true, u16::MAX).take(), Some(1));
    }
}
