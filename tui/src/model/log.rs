//! The view of the session's log: its events, a line each, and one of them whole.

use std::time::Duration;

use crate::card::CardPage;

/// An event of the log in a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRow {
    /// The place of its line in the file, in bytes.
    pub at: u64,
    pub after: Duration,
    pub agent: String,
    /// The kind of the event, as the log has it.
    pub kind: String,
    pub text: String,
}

/// The log as far as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRows {
    /// The last events, in their order.
    pub rows: Vec<LogRow>,
    /// The number of those before them.
    pub left_out: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Log {
    rows: Vec<LogRow>,
    left_out: u64,
    awaited: bool,
    /// The words that a row has to have.
    filter: String,
    /// The one kind that is listed, if only one is.
    kind: Option<String>,
    /// The places of the rows that are listed.
    found: Vec<usize>,
    chosen: usize,
    /// The event that shows instead of the list.
    pub event: Option<CardPage>,
}

impl Log {
    /// A view whose rows are on their way.
    pub(crate) fn awaited() -> Self {
        Self { awaited: true, ..Self::default() }
    }

    /// The rows have come; the last one is chosen.
    pub(crate) fn read(&mut self, LogRows { rows, left_out }: LogRows) {
        (self.rows, self.left_out, self.awaited) = (rows, left_out, false);
        self.list();
        self.chosen = self.found.len().saturating_sub(1);
    }

    /// Lists the rows with these words alone; none lists all of them again.
    pub(crate) fn filter(&mut self, words: &str) {
        words.clone_into(&mut self.filter);
        self.list();
    }

    /// Switches between the events of the chosen one's kind and those of every kind.
    pub(crate) fn toggle_kind(&mut self) {
        let chosen = self.row().map(|row| row.kind.clone());
        self.kind = if self.kind.is_some() { None } else { chosen };
        self.list();
    }

    fn list(&mut self) {
        let words: Vec<_> = self.filter.split_whitespace().map(str::to_lowercase).collect();
        let has = |row: &LogRow| {
            let text = format!("{} {} {}", row.agent, row.kind, row.text).to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        let chosen = self.found.get(self.chosen).copied();
        let of_kind = |row: &LogRow| self.kind.as_ref().is_none_or(|kind| *kind == row.kind);
        let rows = self.rows.iter().enumerate().filter(|(_, row)| of_kind(row) && has(row));
        self.found = rows.map(|(at, _)| at).collect();
        // The event that was chosen stays so, or else the next one that is listed.
        self.chosen = chosen.map_or(0, |at| self.found.partition_point(|found| *found < at));
        self.go(0);
    }

    pub(crate) fn row(&self) -> Option<&LogRow> {
        self.rows.get(*self.found.get(self.chosen)?)
    }

    /// Moves the choice by so many rows.
    pub(crate) fn go(&mut self, rows: isize) {
        let last = self.found.len().saturating_sub(1);
        self.chosen = self.chosen.saturating_add_signed(rows).min(last);
    }

    /// The rows that a list of this height shows, each with the word whether it is the chosen one.
    pub(crate) fn shown(&self, height: u16) -> impl Iterator<Item = (&LogRow, bool)> {
        let height = usize::from(height);
        let top = self.chosen.saturating_sub(height / 2).min(self.found.len().saturating_sub(height));
        let rows = self.found.iter().enumerate().skip(top).take(height);
        rows.filter_map(|(at, row)| Some((self.rows.get(*row)?, at == self.chosen)))
    }

    pub(crate) fn heading(&self) -> String {
        if self.awaited {
            return "reading the log".to_owned();
        }
        let (found, all) = (self.found.len(), self.rows.len());
        let events = if found == all { format!("{all} events") } else { format!("{found} of {all} events") };
        let older = if self.left_out == 0 {
            String::new()
        } else {
            format!(", {} older ones left out", self.left_out)
        };
        let kind = self.kind.as_ref().map(|kind| format!(" · only {kind}")).unwrap_or_default();
        let words =
            if self.filter.is_empty() { String::new() } else { format!(" · with {:?}", self.filter) };
        format!("the session's log · {events}{older}{kind}{words}")
    }
}
