use super::{Diff, Kind};
use crate::highlight::{CodeRead, Readers, Side, TOGETHER, Unread};

const MOST: usize = 2000;

#[derive(Clone, Debug, Default)]
pub(super) struct Code {
    language: Option<String>,
    read: usize,
    readers: Option<Readers>,
    awaited: Option<u64>,
}

impl Diff {
    #[must_use]
    pub(crate) fn in_language(mut self, language: &str) -> Self {
        self.code.language = (!language.is_empty()).then(|| language.to_owned());
        self
    }

    /// Drops an open request, whose answer another change will get.
    pub(crate) fn forget_reading(&mut self) {
        if self.code.awaited.take().is_some() {
            // The parser's state is with the request.
            self.code.language = None;
        }
    }

    pub(crate) const fn is_plain(&self) -> bool {
        self.code.language.is_some() && self.code.awaited.is_none()
    }

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

    /// True if the display changed.
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
