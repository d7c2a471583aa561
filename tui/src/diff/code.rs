//! Syntax highlighting of the lines of a change.

use super::{Diff, Kind};
use crate::highlight::{CodeRead, Readers, Side, TOGETHER, Unread};

const MOST: usize = 2000;

#[derive(Clone, Debug, Default)]
pub(super) struct Code {
    /// Language; `None` once no line is left to highlight.
    language: Option<String>,
    read: usize,
    readers: Option<Readers>,
    /// Number of the open highlighting request.
    awaited: Option<u64>,
}

impl Diff {
    /// Sets the language of the change.
    #[must_use]
    pub(crate) fn in_language(mut self, language: &str) -> Self {
        self.code.language = (!language.is_empty()).then(|| language.to_owned());
        self
    }

    /// Forgets an open request, whose answer another change will get.
    pub(crate) fn forget_reading(&mut self) {
        if self.code.awaited.take().is_some() {
            // The parser's state is with the request.
            self.code.language = None;
        }
    }

    /// True if lines are left to highlight and no request is open.
    pub(crate) const fn is_plain(&self) -> bool {
        self.code.language.is_some() && self.code.awaited.is_none()
    }

    /// Returns the next lines to highlight, in a request with the given number.
    pub(crate) fn begin_reading(&mut self, number: u64) -> Unread {
        self.code.awaited = Some(number);
        let lines = self.lines.iter().skip(self.code.read).take(TOGETHER).map(|line| {
            let side = match line.kind {
                Kind::Same => Side::Both,
                Kind::Added => Side::After,
                Kind::Removed => Side::Before,
                Kind::Gap => Side::Gap,
                Kind::Note => Side::None,
            };
            (side, [line.text.as_str(), "\n"].concat())
        });
        let language = self.code.language.clone().unwrap_or_default();
        Unread { language, readers: self.code.readers.take(), lines: lines.collect() }
    }

    /// Applies highlighted lines; returns true if the display changed.
    pub(crate) fn has_read(&mut self, read: &CodeRead) -> bool {
        if self.code.awaited != Some(read.number) {
            return false;
        }
        for (line, kinds) in self.lines.iter_mut().skip(self.code.read).zip(&read.kinds) {
            line.kinds.clone_from(kinds);
        }
        self.code.read += read.kinds.len();
        self.code.awaited = None;
        self.code.readers.clone_from(&read.readers);
        if read.readers.is_none() || self.code.read >= self.lines.len().min(MOST) {
            self.code.language = None;
        }
        true
    }
}
