//! Lines that an MCP server writes. Their length is limited before they are parsed.

use ipc::mcp::MAX_LINE;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

#[derive(Debug, thiserror::Error)]
pub(super) enum LineError {
    #[error("a line of more than {MAX_LINE} bytes")]
    TooLong,
    #[error("the server's standard output cannot be read: {0}")]
    Io(#[from] std::io::Error),
}

/// Reader of a server's lines of at most [`MAX_LINE`] bytes.
#[derive(Debug)]
pub(super) struct ServerLines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
}

impl<R: AsyncRead + Unpin> ServerLines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader: BufReader::with_capacity(64 << 10, reader), line: Vec::new() }
    }

    /// Returns the next line; `None` at the end of the stream. A last line without a line end is dropped. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, LineError> {
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                return Ok(None);
            }
            let end = memchr::memchr(b'\n', available);
            let taken = end.unwrap_or(available.len());
            if self.line.len() + taken > MAX_LINE {
                return Err(LineError::TooLong);
            }
            self.line.extend_from_slice(&available[..taken]);
            self.reader.consume(end.map_or(taken, |end| end + 1));
            if end.is_some() {
                let mut line = std::mem::take(&mut self.line);
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                return Ok(Some(line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(bytes: &[u8]) -> Vec<Result<Option<Vec<u8>>, String>> {
        let mut lines = ServerLines::new(bytes);
        let mut all = Vec::new();
        loop {
            let line = lines.next().await.map_err(|error| error.to_string());
            let is_last = !matches!(line, Ok(Some(_)));
            all.push(line);
            if is_last {
                return all;
            }
        }
    }

    #[tokio::test]
    async fn lines_come_without_their_ends_and_a_cut_one_does_not() {
        let found = lines(b"a\r\n\nb\nc").await;
        let expected: [&[u8]; 3] = [b"a", b"", b"b"];
        let whole: Vec<_> = found.iter().filter_map(|line| line.as_ref().unwrap().as_deref()).collect();
        assert_eq!(whole, expected);
    }

    #[tokio::test]
    async fn a_line_has_a_bound() {
        let fits = [vec![b'x'; MAX_LINE], b"\n".to_vec()].concat();
        assert_eq!(lines(&fits).await[0].as_ref().unwrap().as_ref().unwrap().len(), MAX_LINE);
        let beyond = [vec![b'x'; MAX_LINE + 1], b"\n".to_vec()].concat();
        assert!(lines(&beyond).await[0].as_ref().unwrap_err().starts_with("a line of more than"));
    }
}
