//! A transfer of a single file that is written to a stream, such as standard output, as it arrives.
//!
//! Nothing can be taken back: what was written before an error, or before an interruption, has been
//! read by somebody. The outcome says whether all of it was right.

use std::io::{self, Write};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use super::refusal::{Refusal, abandoned};
use super::{Said, Work, failed, stored};
use crate::frame::{FileHeader, Kind, Outcome, Ready};

/// Writes the file that the `work` of a transfer contains to `out`, and says what the sender is to
/// hear. Refuses more than `max_size` bytes, directories, and further files. Runs on a thread that
/// may block.
pub fn write_stream(
    out: impl Write,
    max_size: Option<u64>,
    mut work: mpsc::Receiver<Work>,
    said: &mpsc::Sender<Said>,
) {
    let mut stream = Stream { out, max_size, next: None, current: None, is_taken: false };
    // A closed channel means the transfer is over; the work's channel ends next.
    let mut say = |what: Said| drop(said.blocking_send(what));
    while let Some(item) = work.blocking_recv() {
        stream.handle(item, &mut say);
    }
    if let Some(header) = stream.next {
        say(failed(
            header,
            (Outcome::Abandoned, "the sender announced it and did not send it".to_owned()),
        ));
    }
}

struct Stream<W> {
    out: W,
    max_size: Option<u64>,
    /// The file that was announced and has not begun.
    next: Option<FileHeader>,
    current: Option<Current>,
    /// A file was announced.
    is_taken: bool,
}

/// The file whose content comes.
struct Current {
    header: FileHeader,
    sha256: Sha256,
    written: u64,
}

impl<W: Write> Stream<W> {
    fn handle(&mut self, work: Work, say: &mut impl FnMut(Said)) {
        match work {
            Work::Announce(header) => match self.check(&header) {
                Ok(()) => {
                    let (index, beginnings) = (header.index, Vec::new());
                    (self.next, self.is_taken) = (Some(header), true);
                    say(Said::Ready(Ready { index, beginnings }));
                }
                Err(refusal) => say(failed(header, refusal)),
            },
            Work::Begin { index, offset } => {
                let Some(header) = self.next.take_if(|next| next.index == index) else { return };
                if offset > 0 {
                    return say(failed(header, super::offers::not_there()));
                }
                self.current = Some(Current { header, sha256: Sha256::new(), written: 0 });
            }
            Work::Content(pieces) => {
                // Content of a file that failed was still in flight; it is dropped.
                let Some(mut current) = self.current.take() else { return };
                match self.write(&mut current, &pieces) {
                    Ok(()) => self.current = Some(current),
                    Err(refusal) => say(failed(current.header, refusal)),
                }
            }
            Work::End(sha256) => {
                let Some(current) = self.current.take() else { return };
                let header = current.header.clone();
                say(match self.end(current, sha256) {
                    Ok((size, sha256)) => stored(FileHeader { size, ..header }, Some(sha256)),
                    Err(refusal) => failed(header, refusal),
                });
            }
        }
    }

    fn check(&self, header: &FileHeader) -> Result<(), Refusal> {
        let refused = |what: &str| {
            let text = format!("{what}; the receiver writes one file to its standard output");
            Err((Outcome::CannotCreate, text))
        };
        match header.kind {
            Kind::Directory => refused("it is a directory"),
            Kind::File if self.is_taken => refused("it is one more file"),
            Kind::File => self.check_size(header.known_size().unwrap_or(0)),
        }
    }

    fn check_size(&self, bytes: u64) -> Result<(), Refusal> {
        match self.max_size {
            Some(max) if bytes > max => {
                let text = format!("at most {max} bytes are accepted in a transfer");
                Err((Outcome::TooLarge, text))
            }
            _ => Ok(()),
        }
    }

    fn write(&mut self, current: &mut Current, pieces: &[Bytes]) -> Result<(), Refusal> {
        for piece in pieces {
            current.written += piece.len() as u64;
            self.check_size(current.written)?;
            if current.header.known_size().is_some_and(|size| current.written > size) {
                return Err((Outcome::WriteFailed, "more content than announced".to_owned()));
            }
            self.out.write_all(piece).map_err(|e| refusal(&e))?;
            current.sha256.update(piece);
        }
        Ok(())
    }

    /// The length and the digest of a file that arrived as it was read.
    fn end(
        &mut self,
        current: Current,
        sha256: Option<[u8; 32]>,
    ) -> Result<(u64, [u8; 32]), Refusal> {
        let expected = sha256.ok_or_else(abandoned)?;
        self.out.flush().map_err(|e| refusal(&e))?;
        let Current { header, sha256, written } = current;
        let actual: [u8; 32] = sha256.finalize().into();
        if actual != expected || header.known_size().is_some_and(|size| size != written) {
            let text = "the bytes that arrived, and were written, are not those that were read";
            return Err((Outcome::DigestMismatch, text.to_owned()));
        }
        Ok((written, actual))
    }
}

fn refusal(error: &io::Error) -> Refusal {
    let text = match error.kind() {
        io::ErrorKind::BrokenPipe => {
            "the program that reads the receiver's standard output has ended".to_owned()
        }
        _ => format!("the receiver cannot write to its standard output: {error}"),
    };
    (Outcome::WriteFailed, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::SIZE_UNKNOWN;
    use crate::relative::RelativePath;

    /// Takes as many bytes, and then fails as a pipe does that nobody reads.
    struct Pipe {
        taken: Vec<u8>,
        room: usize,
    }

    impl Write for &mut Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let length = bytes.len().min(self.room - self.taken.len());
            self.taken.extend(&bytes[..length]);
            if length == 0 { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(length) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn announce(index: u32, kind: Kind, size: u64) -> Work {
        let name = RelativePath::from_bytes(b"stdin").unwrap();
        Work::Announce(FileHeader { index, kind, size, mode: None, modified: None, name })
    }

    fn content(text: &'static str) -> Work {
        Work::Content(vec![Bytes::from_static(text.as_bytes())])
    }

    fn end(text: &str) -> Work {
        Work::End(Some(Sha256::digest(text).into()))
    }

    /// The bytes written to a pipe with this room, and the outcome and size of each entry.
    fn run(room: usize, max_size: Option<u64>, work: Vec<Work>) -> (String, Vec<(Outcome, u64)>) {
        let mut pipe = Pipe { taken: Vec::new(), room };
        let (work_tx, work_rx) = mpsc::channel(100);
        let (said_tx, mut said_rx) = mpsc::channel(100);
        work.into_iter().for_each(|item| work_tx.try_send(item).unwrap());
        drop(work_tx);
        write_stream(&mut pipe, max_size, work_rx, &said_tx);
        drop(said_tx);
        let done = std::iter::from_fn(|| said_rx.blocking_recv()).filter_map(|said| match said {
            Said::Done(done) => Some((done.status.outcome, done.header.size)),
            _ => None,
        });
        let done = done.collect();
        (String::from_utf8(pipe.taken).unwrap(), done)
    }

    #[test]
    fn a_file_of_any_size_is_written_as_it_comes() {
        let begin = || Work::Begin { index: 0, offset: 0 };
        for size in [SIZE_UNKNOWN, 11] {
            let work = || {
                let file = announce(0, Kind::File, size);
                vec![file, begin(), content("hello "), content("world"), end("hello world")]
            };
            let all = "hello world".to_owned();
            assert_eq!(run(99, None, work()), (all.clone(), vec![(Outcome::Stored, 11)]));
            assert_eq!(run(99, Some(11), work()), (all, vec![(Outcome::Stored, 11)]));
            // The pipe is closed after three bytes: it has them, and the sender hears of it.
            assert_eq!(run(3, None, work()), ("hel".into(), vec![(Outcome::WriteFailed, size)]));
        }
        let file = || announce(0, Kind::File, SIZE_UNKNOWN);
        let long = vec![file(), begin(), content("hello "), content("world"), end("hello world")];
        let (written, done) = run(99, Some(10), long);
        assert_eq!((written.as_str(), done[0].0), ("hello ", Outcome::TooLarge));
        let other = vec![file(), begin(), content("hello"), end("hallo")];
        assert_eq!(run(99, None, other).1[0].0, Outcome::DigestMismatch);
        let given_up = vec![file(), begin(), content("he"), Work::End(None)];
        assert_eq!(run(99, None, given_up).1[0].0, Outcome::Abandoned);
        assert_eq!(run(99, None, vec![file()]).1[0].0, Outcome::Abandoned);
    }

    #[test]
    fn only_one_file_is_taken_and_only_from_its_beginning() {
        let file = |index| announce(index, Kind::File, 2);
        let work = vec![
            announce(0, Kind::Directory, 0),
            file(1),
            file(2),
            Work::Begin { index: 1, offset: 0 },
            content("ab"),
            end("ab"),
            // Of the one that was refused.
            Work::Begin { index: 2, offset: 0 },
            content("cd"),
            end("cd"),
        ];
        let (written, done) = run(99, None, work);
        use Outcome::{CannotCreate, Stored};
        let outcomes: Vec<Outcome> = done.iter().map(|done| done.0).collect();
        assert_eq!(
            (written.as_str(), &outcomes[..]),
            ("ab", &[CannotCreate, CannotCreate, Stored][..])
        );
        let (_, done) = run(99, None, vec![file(0), Work::Begin { index: 0, offset: 1 }]);
        assert_eq!(done[0].0, Outcome::DigestMismatch);
        let long = vec![file(0), Work::Begin { index: 0, offset: 0 }, content("abc"), end("abc")];
        assert_eq!(run(99, None, long), (String::new(), vec![(Outcome::WriteFailed, 2)]));
    }
}
