//! Page on which a person approves some hunks of a change, or a text of a file that the person has edited.

use ipc::path::WirePath;
use protocol::approval::{
    ApplyPatchApprovalParams, ChangePart, ChangedText, FileChange, FilePart, ReviewDecision,
};

use super::content::{allows, in_project};
use super::sheet::CardPage;
use crate::diff::{Diff, between, read_unified};
use crate::highlight::language_of;
use crate::model::{Block, Look, Part};
use crate::text::SafeText;

/// Files of a change, with the selected parts of each.
#[derive(Debug)]
pub(crate) struct PartPage {
    files: Vec<PartFile>,
    /// Index of the hunk or edited text at the cursor, counted over all files.
    at: usize,
    /// True if a file's text was edited after the last layout.
    has_other_text: bool,
    pub sheet: CardPage,
}

#[derive(Debug)]
struct PartFile {
    path: WirePath,
    change: FileChange,
    text: ChangedText,
    /// True at the index of each hunk that the person approves.
    hunks: Vec<bool>,
    /// Text from the person's editor, and true if the person approves it; `None` without an edit.
    edited: Option<(String, bool)>,
}

/// Row of the page, for one hunk or one edited text.
struct PartRow<'a> {
    is_chosen: bool,
    words: String,
    /// `Ok` with the diff of an approved part; `Err` with the plain text of a part that is not approved.
    body: Result<Diff, &'a str>,
}

/// Number of approved parts and number of all parts, for the hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub count: usize,
    pub of: usize,
    pub is_edited: bool,
    pub any_edited: bool,
}

impl PartFile {
    /// Number of hunks; one for an edited text.
    fn items(&self) -> usize {
        if self.edited.is_some() { 1 } else { self.hunks.len() }
    }

    /// Returns the approved hunks or text of the file; `None` if nothing in the file is approved.
    fn part(&self) -> Option<FilePart> {
        let path = self.path.clone();
        if let Some((text, is_chosen)) = &self.edited {
            return is_chosen.then(|| FilePart::Text { path, text: text.clone() });
        }
        let numbers = (1..).zip(&self.hunks).filter(|(_, is_chosen)| **is_chosen);
        let hunks: Vec<_> = numbers.map(|(number, _)| number).collect();
        (!hunks.is_empty()).then_some(FilePart::Hunks { path, hunks })
    }

    fn is_whole(&self) -> bool {
        self.edited.is_none() && self.hunks.iter().all(|is_chosen| *is_chosen)
    }
}

impl PartPage {
    /// Returns a page with every part approved; `None` if the request cannot be approved in part.
    pub(crate) fn of(params: &ApplyPatchApprovalParams) -> Option<Self> {
        let file = |(path, change): (&WirePath, &FileChange)| {
            let hunks = vec![true; change.hunks().len()];
            let text = params.texts.get(path)?.clone();
            Some(PartFile { path: path.clone(), change: change.clone(), text, hunks, edited: None })
        };
        let files = params.file_changes.0.iter().map(file).collect::<Option<Vec<_>>>()?;
        (params.in_part && !files.is_empty()).then(|| Self {
            files,
            at: 0,
            has_other_text: false,
            sheet: CardPage::default(),
        })
    }

    /// Moves the cursor by a number of parts, up if negative. Returns false if the cursor stays.
    pub(crate) fn choose(&mut self, by: isize) -> bool {
        let items: usize = self.files.iter().map(PartFile::items).sum();
        let at = self.at.saturating_add_signed(by).min(items.saturating_sub(1));
        std::mem::replace(&mut self.at, at) != at
    }

    pub(crate) fn toggle(&mut self) {
        let Some((file, hunk)) = self.selected() else { return };
        let Some(file) = self.files.get_mut(file) else { return };
        let edited = file.edited.as_mut().map(|(_, is_chosen)| is_chosen);
        if let Some(is_chosen) = edited.or_else(|| file.hunks.get_mut(hunk)) {
            *is_chosen = !*is_chosen;
        }
    }

    /// Returns the path and the new text of the file at the cursor; `None` for a file that is deleted.
    pub(crate) fn text(&self) -> Option<(WirePath, String)> {
        let file = self.files.get(self.selected()?.0)?;
        if matches!(file.change, FileChange::Delete { .. }) {
            return None;
        }
        let text = match &file.edited {
            Some((text, _)) => text.clone(),
            None if matches!(file.change, FileChange::Add { .. }) => file.text.new.clone(),
            None => file.text.with(|n| file.hunks.get(n) == Some(&true)),
        };
        Some((file.path.clone(), text))
    }

    /// Stores the text of a file from the person's editor. A text equal to the requested one approves all hunks
    /// instead; a text equal to the present file approves none.
    pub(crate) fn edit(&mut self, path: &WirePath, text: String) {
        let before: usize =
            self.files.iter().take_while(|file| file.path != *path).map(PartFile::items).sum();
        let Some(file) = self.files.iter_mut().find(|file| file.path == *path) else { return };
        let is_present = text == file.text.old && matches!(file.change, FileChange::Update { .. });
        if is_present || text == file.text.new {
            file.hunks.fill(!is_present);
            file.edited = None;
        } else {
            file.edited = Some((text, true));
        }
        self.at = before;
        self.has_other_text = true;
    }

    /// Drops the edited text of the file at the cursor; the selection of hunks applies again.
    pub(crate) fn undo(&mut self) {
        let Some((file, _)) = self.selected() else { return };
        if let Some(file) = self.files.get_mut(file) {
            self.has_other_text |= file.edited.take().is_some();
        }
    }

    pub(crate) fn chosen(&self) -> Chosen {
        let of_file = |file: &PartFile| match file.edited {
            Some((_, is_chosen)) => usize::from(is_chosen),
            None => file.hunks.iter().filter(|is_chosen| **is_chosen).count(),
        };
        Chosen {
            count: self.files.iter().map(of_file).sum(),
            of: self.files.iter().map(PartFile::items).sum(),
            any_edited: self.files.iter().any(|file| file.edited.is_some()),
            is_edited: self.selected().is_some_and(|(file, _)| self.files[file].edited.is_some()),
        }
    }

    /// Returns the answer that approves the selected parts; `None` if no part is selected.
    pub(crate) fn decision(&self, params: &ApplyPatchApprovalParams) -> Option<ReviewDecision> {
        if self.files.iter().all(PartFile::is_whole) {
            return Some(ReviewDecision::Approved);
        }
        let files: Vec<_> = self.files.iter().filter_map(PartFile::part).collect();
        if files.is_empty() {
            return None;
        }
        let part = ChangePart::of(&params.digest, &params.file_changes, files)?;
        Some(ReviewDecision::ApprovedInPart { part })
    }

    /// Lays out the page and scrolls to the cursor. If no text has changed, a page that counts as read stays so.
    pub(crate) fn lay(
        &mut self,
        params: &ApplyPatchApprovalParams,
        project: &WirePath,
        revision: u64,
        size: (u16, u16),
    ) {
        let mut parts = Vec::new();
        let (mut item, mut selected) = (0, 0);
        for file in &self.files {
            let words = match file.change {
                FileChange::Add { .. } => "create ",
                FileChange::Delete { .. } => "delete ",
                FileChange::Update { .. } => "edit ",
            };
            parts.push(Part::new(SafeText::labelled(words, in_project(&file.path, project)), Look::Heading));
            for PartRow { is_chosen, words, body } in file.rows() {
                if item == self.at {
                    selected = parts.len();
                }
                let mark = if item == self.at { "▸" } else { " " };
                let taken = if is_chosen { "[x]" } else { "[ ]" };
                let left_out = if is_chosen { "" } else { " · left out" };
                let look = if item == self.at { Look::Heading } else { Look::Assistant };
                let line = SafeText::line(&format!("{taken} {words}{left_out}"));
                parts.push(Part::new(line, look).after(format!("{mark} "), "  ".to_owned()));
                // Only text that would be written is shown as a coloured diff.
                parts.push(match body {
                    Ok(diff) => Part::diff(diff.in_language(&language_of(file.path.as_bytes()))),
                    Err(text) => Part::new(SafeText::exact(text), Look::Output),
                });
                item += 1;
            }
        }
        parts.extend(allows(&params.grant, project));
        let is_read = self.sheet.is_read() && !std::mem::take(&mut self.has_other_text);
        self.sheet.renew(Block::of(parts), revision);
        if is_read {
            self.sheet.set_read();
        }
        self.sheet.reveal(selected, 1, size);
    }

    /// Returns the index of the file at the cursor, and the index of the hunk in that file.
    fn selected(&self) -> Option<(usize, usize)> {
        let mut rest = self.at;
        for (n, file) in self.files.iter().enumerate() {
            if rest < file.items() {
                return Some((n, rest));
            }
            rest -= file.items();
        }
        None
    }
}

impl PartFile {
    fn rows(&self) -> Vec<PartRow<'_>> {
        if let Some((text, is_chosen)) = &self.edited {
            let words = "the text as you edited it".to_owned();
            let body =
                if *is_chosen { Ok(between(&self.text.old, text, Some(1))) } else { Err(text.as_str()) };
            return vec![PartRow { is_chosen: *is_chosen, words, body }];
        }
        let shown = self.change.hunks();
        let count = shown.len();
        let mut rows = Vec::new();
        for (number, (hunk, is_chosen)) in (1..).zip(shown.into_iter().zip(&self.hunks)) {
            let (words, diff): (_, fn(&str) -> Diff) = match self.change {
                FileChange::Add { .. } => ("the new file".to_owned(), Diff::added),
                FileChange::Delete { .. } => ("its removal".to_owned(), Diff::removed),
                FileChange::Update { .. } => (format!("hunk {number} of {count}"), read_unified),
            };
            let body = if *is_chosen { Ok(diff(hunk)) } else { Err(hunk.trim_end_matches('\n')) };
            rows.push(PartRow { is_chosen: *is_chosen, words, body });
        }
        rows
    }
}
