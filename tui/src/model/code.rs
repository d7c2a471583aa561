use crate::highlight::{CodeRead, Readers, Side, TOGETHER, Unread};
use crate::text::{Ground, SafeText, Styled, Tone};

const MOST: usize = 64 << 10;

#[derive(Clone, Debug)]
pub(crate) struct CodeBlock {
    text: Styled,
    /// Code as the language model wrote it, if it contains tabs; `None` if the screen shows it unchanged.
    tabbed: Option<String>,
    language: String,
    read: usize,
    readers: Option<Readers>,
    awaited: Option<u64>,
    is_over: bool,
}

impl CodeBlock {
    pub(crate) fn new(untrusted: &str, language: &str) -> Self {
        Self {
            text: SafeText::prose(untrusted).into(),
            tabbed: untrusted.contains('\t').then(|| untrusted.to_owned()),
            language: language.to_owned(),
            read: 0,
            readers: None,
            awaited: None,
            is_over: language.is_empty(),
        }
    }

    /// Drops an open request for highlighting: the answer would go to another block.
    pub(crate) const fn forget_reading(&mut self) {
        if self.awaited.take().is_some() {
            // The dropped request holds the state of the parser.
            self.is_over = true;
        }
    }

    pub(crate) const fn styled(&self) -> &Styled {
        &self.text
    }

    pub(crate) fn push(&mut self, untrusted: &str) {
        if self.tabbed.is_some() || untrusted.contains('\t') {
            let before = self.tabbed.take().unwrap_or_else(|| self.text.text().as_str().to_owned());
            self.tabbed = Some(before + untrusted);
        }
        self.text.push_in(untrusted, Tone::default());
    }

    /// Replaces the code and keeps the highlighting. Returns false if `other` does not start with this code.
    pub(crate) fn becomes(&mut self, other: &Self) -> bool {
        let goes_on = self.language == other.language && self.text.goes_on_as(&other.text);
        if goes_on {
            self.tabbed.clone_from(&other.tabbed);
        }
        goes_on
    }

    /// Returns a line as the language model wrote it; `None` if the screen shows it unchanged.
    pub(crate) fn written_line(&self, line: usize) -> Option<String> {
        self.tabbed.as_ref()?.split('\n').nth(line).map(str::to_owned)
    }

    /// True if there are complete lines that are neither highlighted nor requested.
    pub(crate) fn is_plain(&self) -> bool {
        let rest = self.text.text().as_str().get(self.read..).unwrap_or_default();
        !self.is_over && self.awaited.is_none() && rest.contains('\n')
    }

    pub(crate) fn begin_reading(&mut self, number: u64) -> Unread {
        self.awaited = Some(number);
        let rest = self.text.text().as_str().get(self.read..).unwrap_or_default();
        let whole = rest.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let lines = whole.take(TOGETHER).map(|line| (Side::After, line.to_owned())).collect();
        Unread { language: self.language.clone(), readers: self.readers.take(), lines }
    }

    pub(crate) fn has_read(&mut self, read: &CodeRead) -> bool {
        if self.awaited != Some(read.number) {
            return false;
        }
        for kinds in &read.kinds {
            let rest = self.text.text().as_str().get(self.read..).unwrap_or_default();
            let Some(line) = rest.split_inclusive('\n').next().map(str::len) else { break };
            for (range, ink) in kinds {
                let tone = Tone::of(*ink).on(Ground::Code);
                self.text.add(self.read + range.start..self.read + range.end, tone);
            }
            self.read += line;
        }
        self.awaited = None;
        self.readers.clone_from(&read.readers);
        self.is_over = read.readers.is_none() || self.read > MOST;
        true
    }
}
