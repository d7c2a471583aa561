//! Page on which a person chooses a part of a change: some hunks, or another text of a file.

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

/// Files of a change with what is chosen of each.
#[derive(Debug)]
pub(crate) struct PartPage {
    files: Vec<PartFile>,
    /// Index of the selected item: a hunk, or the edited text of a file.
    at: usize,
    /// True if a text changed after the last layout.
    has_other_text: bool,
    pub sheet: CardPage,
}

#[derive(Debug)]
struct PartFile {
    path: WirePath,
    change: FileChange,
    text: ChangedText,
    /// True for each hunk that is chosen.
    hunks: Vec<bool>,
    /// Another new text, and whether it is chosen; the hunks do not count then.
    edited: Option<(String, bool)>,
}

/// Item of a file on the page.
struct PartRow<'a> {
    is_chosen: bool,
    words: String,
    /// The difference, or the bare text of what is left out.
    body: Result<Diff, &'a str>,
}

/// Numbers of what is chosen, for the hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub count: usize,
    pub of: usize,
    /// True if the selected item is an edited text.
    pub is_edited: bool,
    /// True if a file has an edited text.
    pub any_edited: bool,
}

impl PartFile {
    /// Returns the number of items of the file in the list.
    fn items(&self) -> usize {
        if self.edited.is_some() { 1 } else { self.hunks.len() }
    }

    /// Returns the chosen part of the file; `None` if nothing is chosen.
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
    /// Returns the page of a request, with everything chosen; `None` if no part of it can be approved.
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

    /// Selects another item; returns false if there is none in that direction.
    pub(crate) fn choose(&mut self, by: isize) -> bool {
        let items: usize = self.files.iter().map(PartFile::items).sum();
        let at = self.at.saturating_add_signed(by).min(items.saturating_sub(1));
        std::mem::replace(&mut self.at, at) != at
    }

    /// Takes the selected item, or leaves it out.
    pub(crate) fn toggle(&mut self) {
        let Some((file, hunk)) = self.selected() else { return };
        let Some(file) = self.files.get_mut(file) else { return };
        let edited = file.edited.as_mut().map(|(_, is_chosen)| is_chosen);
        if let Some(is_chosen) = edited.or_else(|| file.hunks.get_mut(hunk)) {
            *is_chosen = !*is_chosen;
        }
    }

    /// Returns the path of the selected file and the text that it would have; `None` for a file that is removed.
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

    /// Takes another new text of a file. The text that was asked for chooses all hunks, and the present one none.
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

    /// Drops the edited text of the selected file; its hunks count again.
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

    /// Returns the answer that approves what is chosen; `None` if that is nothing.
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

    /// Lays out the page for an area of this size, and scrolls to the selected item. What was read stays read while the
    /// texts are the same.
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
                // The colours of a change stand for what would be written.
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

    /// Returns the indexes of the selected file and of the hunk in it.
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
