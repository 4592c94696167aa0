//! The order of frames that a receiver insists on.

use manypath_files::frame::{ClientFrame, FrameError, Unnamed};
use manypath_files::sink::Work;

use super::ReceiveError;

/// The step that a frame asks for.
#[derive(Debug)]
pub(super) enum Step {
    /// The disk has something to do.
    Work(Work),
    /// The sender hears that an entry cannot have its name; the others can be stored.
    Unnamed(Unnamed),
    /// Nothing: the sender is still there.
    Nothing,
    /// It was the last.
    End,
}

/// The order that a sender keeps.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// The index of the file whose content comes.
    current: Option<u32>,
    /// The next header's index.
    next: u32,
    /// The least index of the next file that begins.
    least: u32,
}

impl Order {
    /// Content came.
    pub(super) fn content(&self) -> Result<(), ReceiveError> {
        self.current.map(|_| ()).ok_or(ReceiveError::Order("content outside a file"))
    }

    fn announced(&mut self, index: u32) -> Result<(), ReceiveError> {
        if index != self.next {
            return Err(ReceiveError::Order("a file out of order"));
        }
        self.next = self.next.checked_add(1).ok_or(ReceiveError::Order("too many files"))?;
        Ok(())
    }

    pub(super) fn frame(&mut self, bytes: &[u8]) -> Result<Step, ReceiveError> {
        let frame = match ClientFrame::decode(bytes) {
            Ok(frame) => frame,
            Err(FrameError::Name(unnamed)) => {
                self.announced(unnamed.index)?;
                return Ok(Step::Unnamed(unnamed));
            }
            Err(broken) => return Err(ReceiveError::Frame(broken)),
        };
        match frame {
            ClientFrame::File(header) => {
                self.announced(header.index)?;
                Ok(Step::Work(Work::Announce(header)))
            }
            ClientFrame::Begin { index, offset } => {
                if self.current.is_some() || index < self.least || index >= self.next {
                    return Err(ReceiveError::Order("the beginning of a file out of order"));
                }
                self.current = Some(index);
                self.least = index + 1;
                Ok(Step::Work(Work::Begin { index, offset }))
            }
            ClientFrame::End { index, sha256 } => match self.current.take() {
                Some(current) if current == index => Ok(Step::Work(Work::End(sha256))),
                _ => Err(ReceiveError::Order("the end of another file")),
            },
            ClientFrame::Working => Ok(Step::Nothing),
            ClientFrame::Finish { entries } if self.current.is_none() && entries == self.next => {
                Ok(Step::End)
            }
            ClientFrame::Finish { .. } => Err(ReceiveError::Order("an end before all files")),
            ClientFrame::Hello(_) | ClientFrame::Password(_) => {
                Err(ReceiveError::Order("a second hello"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use manypath_files::frame::{FileHeader, Hello, Kind};
    use manypath_files::relative::RelativePath;

    use super::*;

    fn announce(index: u32, kind: Kind) -> ClientFrame {
        let name = RelativePath::from_bytes(b"x").unwrap();
        ClientFrame::File(FileHeader { index, kind, size: 1, mode: None, modified: None, name })
    }

    fn begin(index: u32) -> ClientFrame {
        ClientFrame::Begin { index, offset: 0 }
    }

    fn end(index: u32) -> ClientFrame {
        ClientFrame::End { index, sha256: None }
    }

    /// Takes `frames` in order; the text of the first refusal.
    fn take(frames: &[ClientFrame]) -> Result<Order, &'static str> {
        let mut order = Order::default();
        for frame in frames {
            match order.frame(&frame.encode()) {
                Ok(_) => {}
                Err(ReceiveError::Order(what)) => return Err(what),
                Err(other) => panic!("{other:?}"),
            }
        }
        Ok(order)
    }

    #[test]
    fn content_is_taken_within_a_file_only() {
        let has_content = |frames: &[ClientFrame]| take(frames).unwrap().content().is_ok();
        let file = announce(0, Kind::File);
        assert!(!has_content(&[]));
        assert!(!has_content(&[announce(0, Kind::Directory)]));
        assert!(!has_content(std::slice::from_ref(&file)));
        assert!(has_content(&[file.clone(), begin(0)]));
        assert!(has_content(&[file.clone(), begin(0), announce(1, Kind::File)]));
        assert!(!has_content(&[file, begin(0), end(0)]));
    }

    #[test]
    fn frames_out_of_order_are_refused() {
        let (file, directory) = (|n| announce(n, Kind::File), |n| announce(n, Kind::Directory));
        let finish = |entries| ClientFrame::Finish { entries };
        let hello = ClientFrame::Hello(Hello::new(vec![], 0, 0));
        let all = [directory(0), file(1), file(2), file(3), begin(1), ClientFrame::Working, end(1)];
        assert!(take(&[&all[..], &[begin(3), end(3), finish(4)]].concat()).is_ok());
        let beginning = "the beginning of a file out of order";
        for (frames, what) in [
            (vec![file(1)], "a file out of order"),
            (vec![file(0), file(0)], "a file out of order"),
            (vec![begin(0)], beginning),
            (vec![file(0), begin(0), begin(0)], beginning),
            (vec![file(0), file(1), begin(1), end(1), begin(0)], beginning),
            (vec![file(0), begin(0), end(0), begin(0)], beginning),
            (vec![file(0), begin(1)], beginning),
            (vec![end(0)], "the end of another file"),
            (vec![file(0), end(0)], "the end of another file"),
            (vec![file(0), begin(0), end(1)], "the end of another file"),
            (vec![file(0), begin(0), end(0), end(0)], "the end of another file"),
            (vec![file(0), begin(0), finish(1)], "an end before all files"),
            (vec![file(0), begin(0), end(0), finish(2)], "an end before all files"),
            (vec![hello], "a second hello"),
        ] {
            assert_eq!(take(&frames).unwrap_err(), what, "{frames:?}");
        }
    }
}
