//! Splits bytes into lines of limited length.

/// Maximum bytes of a line, without its end.
pub const MAX_LINE: usize = 16 << 20;

/// The bytes of a line, or the reason why they are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A whole line, without its end; never blank.
    Whole(Vec<u8>),
    /// A line of more than [`MAX_LINE`] bytes, which was dropped.
    TooLong,
    /// The input ended within a line, which is therefore incomplete.
    Cut,
}

/// Splits received bytes into lines.
#[derive(Debug, Default)]
pub struct Lines {
    pub(in crate::rpc) open: Vec<u8>,
    over: bool,
}

impl Lines {
    /// Adds bytes, and returns the lines that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut pieces = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            self.extend(piece);
            if pieces.peek().is_some() {
                lines.extend(self.close());
            }
        }
        lines
    }

    /// Handles the end of the input. Returns [`Line::Cut`] if it ended within a line, else `None`.
    pub fn end(&mut self) -> Option<Line> {
        self.close().map(|_| Line::Cut)
    }

    fn extend(&mut self, piece: &[u8]) {
        if self.over || self.open.len() + piece.len() > MAX_LINE {
            self.over = true;
            self.open = Vec::new();
        } else {
            self.open.extend_from_slice(piece);
        }
    }

    fn close(&mut self) -> Option<Line> {
        let line = std::mem::take(&mut self.open);
        if std::mem::take(&mut self.over) {
            return Some(Line::TooLong);
        }
        (!line.trim_ascii().is_empty()).then_some(Line::Whole(line))
    }
}
