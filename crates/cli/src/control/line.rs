//! Lines of a bounded length.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// Reads a line without its end. `None` at the end of the input, also in the middle of a line: half
/// a request is none.
///
/// # Errors
/// The line is longer than `limit` bytes, or reading failed. What follows cannot be read then.
pub(super) async fn read(
    from: &mut (impl AsyncBufRead + Unpin),
    limit: usize,
) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    loop {
        let buffer = from.fill_buf().await?;
        if buffer.is_empty() {
            return Ok(None);
        }
        let end = buffer.iter().position(|&byte| byte == b'\n');
        let piece = &buffer[..end.unwrap_or(buffer.len())];
        if line.len() + piece.len() > limit {
            let text = format!("a line longer than {limit} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        line.extend_from_slice(piece);
        let used = piece.len() + usize::from(end.is_some());
        from.consume(used);
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    #[tokio::test]
    async fn lines_come_whole_whatever_the_pieces_are() {
        for capacity in [1, 2, 3, 100] {
            let mut from = BufReader::with_capacity(capacity, &b"one\n\nthree\nhal"[..]);
            let mut lines = Vec::new();
            while let Some(line) = read(&mut from, 5).await.unwrap() {
                lines.push(String::from_utf8(line).unwrap());
            }
            assert_eq!(lines, ["one", "", "three"], "half a line is none");
        }
    }

    #[tokio::test]
    async fn a_long_line_is_an_error_and_is_not_kept() {
        let endless = [b'x'; 1 << 16];
        for capacity in [1, 7, 1 << 16] {
            let mut from = BufReader::with_capacity(capacity, &endless[..]);
            let error = read(&mut from, 64).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
        let mut exact = BufReader::new(&b"12345\n"[..]);
        assert_eq!(read(&mut exact, 5).await.unwrap().unwrap(), b"12345");
    }
}
