//! View of the session's log: a list of events, or one event in full.

use std::time::Duration;

use crate::card::CardPage;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRow {
    /// Byte offset of the event's line in the log file.
    pub at: u64,
    pub after: Duration,
    pub agent: String,
    /// Kind of the event, by its name in the log.
    pub kind: String,
    pub text: String,
}

/// Last events of the session log, and the number of earlier events that are not included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRows {
    pub rows: Vec<LogRow>,
    pub left_out: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Log {
    rows: Vec<LogRow>,
    left_out: u64,
    awaited: bool,
    filter: String,
    /// Kind of the listed events; `None` if all kinds are listed.
    kind: Option<String>,
    found: Vec<usize>,
    chosen: usize,
    /// Page with one event in full, shown instead of the list; `None` while the list is shown.
    pub event: Option<CardPage>,
}

impl Log {
    /// Returns an empty view that waits for the events.
    pub(crate) fn awaited() -> Self {
        Self { awaited: true, ..Self::default() }
    }

    /// Shows the events that were read, with the last one selected.
    pub(crate) fn read(&mut self, LogRows { rows, left_out }: LogRows) {
        (self.rows, self.left_out, self.awaited) = (rows, left_out, false);
        self.list();
        self.chosen = self.found.len().saturating_sub(1);
    }

    pub(crate) fn filter(&mut self, words: &str) {
        words.clone_into(&mut self.filter);
        self.list();
    }

    /// Limits the list to events of the selected kind, or lists all kinds again.
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
        // The same event stays selected if it is listed, else the next one is.
        self.chosen = chosen.map_or(0, |at| self.found.partition_point(|found| *found < at));
        self.go(0);
    }

    pub(crate) fn row(&self) -> Option<&LogRow> {
        self.rows.get(*self.found.get(self.chosen)?)
    }

    pub(crate) fn go(&mut self, rows: isize) {
        let last = self.found.len().saturating_sub(1);
        self.chosen = self.chosen.saturating_add_signed(rows).min(last);
    }

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
