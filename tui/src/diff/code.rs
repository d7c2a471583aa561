use super::{DiffLine, Kind};
use crate::highlight::{CodeRead, Readers, Side, TOGETHER, Unread};

const MOST: usize = 2000;

/// Progress of the highlighting of a diff: the number of highlighted lines, and the open request for more lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Code {
    language: Option<String>,
    read: usize,
    readers: Option<Readers>,
    awaited: Option<u64>,
}

impl Code {
    /// Starts the highlighting of code in a language; an empty name turns it off.
    pub(super) fn of(language: &str) -> Self {
        Self { language: (!language.is_empty()).then(|| language.to_owned()), ..Self::default() }
    }

    /// Drops an open request for highlighting: the answer would go to another diff.
    pub(super) fn forget(&mut self) {
        if self.awaited.take().is_some() {
            // The dropped request holds the state of the parser.
            self.language = None;
        }
    }

    /// True if there is code that is neither highlighted nor requested.
    pub(super) const fn is_plain(&self) -> bool {
        self.language.is_some() && self.awaited.is_none()
    }

    /// Returns the next lines to highlight, and records `number` as the number of this request.
    pub(super) fn begin(&mut self, number: u64, lines: &[DiffLine]) -> Unread {
        self.awaited = Some(number);
        let lines = lines.iter().skip(self.read).take(TOGETHER).map(|line| {
            let side = match line.kind {
                Kind::Same => Side::Both,
                Kind::Added => Side::After,
                Kind::Removed => Side::Before,
                Kind::Gap => Side::Gap,
                Kind::Note => Side::None,
            };
            (side, [line.text.as_str(), "\n"].concat())
        });
        let language = self.language.clone().unwrap_or_default();
        Unread { language, readers: self.readers.take(), lines: lines.collect() }
    }

    /// Applies the result of a highlighting request to the lines. False if it belongs to another request.
    pub(super) fn has_read(&mut self, read: &CodeRead, lines: &mut [DiffLine]) -> bool {
        if self.awaited != Some(read.number) {
            return false;
        }
        for (line, kinds) in lines.iter_mut().skip(self.read).zip(&read.kinds) {
            line.kinds.clone_from(kinds);
        }
        self.read += read.kinds.len();
        self.awaited = None;
        self.readers.clone_from(&read.readers);
        if read.readers.is_none() || self.read >= lines.len().min(MOST) {
            self.language = None;
        }
        true
    }
}
