//! Name of the project's git branch, for the status line. The worker reads it, as supervisors open no project files.

use ipc::message::{CallOutcome, Work};
use ipc::path::WirePath;
use ipc::tool::{ReadFile, ToolCall, ToolOutput};
use protocol::frontend::UiEventKind;

use super::order::OwnOrder;
use super::origin::OwnCall;

/// File in the git directory that names the branch.
const HEAD: &str = "HEAD";

/// Number of digits of a commit's id that are shown if no branch is checked out.
const DIGITS: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Branch {
    asked: u32,
    open: Option<(u32, BranchRead)>,
    /// True if a front end asked for the branch again during the read. The result may then be outdated.
    again: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BranchRead {
    /// `HEAD` in the project's own git directory.
    Head,
    /// File that replaces the git directory in a linked worktree (gitrepository-layout(5)).
    Link,
    /// `HEAD` in the git directory that [`BranchRead::Link`] names.
    Linked,
}

#[derive(Debug, PartialEq, Eq)]
enum NextRead {
    Read(BranchRead, WirePath),
    Found(Option<String>),
}

impl Branch {
    /// Returns the order to read the branch; `None` during a read, after which the branch is read again.
    pub(super) fn find(&mut self) -> Option<OwnOrder> {
        if self.open.is_some() {
            self.again = true;
            return None;
        }
        Some(self.read(BranchRead::Head, format!(".git/{HEAD}").as_str().into()))
    }

    pub(super) fn take(&mut self, count: u32, outcome: &CallOutcome) -> Vec<OwnOrder> {
        let Some((_, read)) = self.open.take_if(|(open, _)| *open == count) else { return Vec::new() };
        let text = match outcome {
            CallOutcome::Done(ToolOutput::File(file)) => Some(file.text.trim_end()),
            _ => None,
        };
        match next(read, text) {
            NextRead::Read(read, path) => vec![self.read(read, path)],
            NextRead::Found(name) => {
                let again = if std::mem::take(&mut self.again) { self.find() } else { None };
                [OwnOrder::Show(UiEventKind::Branch { name })].into_iter().chain(again).collect()
            }
        }
    }

    /// Forgets the open read once its worker is gone.
    pub(super) fn forget(&mut self) {
        (self.open, self.again) = (None, false);
    }

    fn read(&mut self, read: BranchRead, path: WirePath) -> OwnOrder {
        let count = self.asked;
        self.asked = self.asked.wrapping_add(1);
        self.open = Some((count, read));
        let read = ReadFile { path, offset: None, limit: Some(1), inside: false };
        OwnOrder::Send(OwnCall::Branch(count), Work::Run(ToolCall::ReadFile(read)))
    }
}

fn next(read: BranchRead, text: Option<&str>) -> NextRead {
    match (read, text) {
        (BranchRead::Head, None) => NextRead::Read(BranchRead::Link, ".git".into()),
        (BranchRead::Link, text) => match text.and_then(|text| text.strip_prefix("gitdir: ")) {
            Some(directory) => {
                NextRead::Read(BranchRead::Linked, format!("{directory}/{HEAD}").as_str().into())
            }
            None => NextRead::Found(None),
        },
        (BranchRead::Head | BranchRead::Linked, text) => NextRead::Found(text.and_then(named)),
    }
}

/// Returns the branch that a `HEAD` file names, or the first digits of the commit in it; `None` if it has neither.
fn named(head: &str) -> Option<String> {
    if let Some(reference) = head.strip_prefix("ref: ") {
        return Some(reference.strip_prefix("refs/heads/").unwrap_or(reference).to_owned());
    }
    let is_commit = head.len() >= DIGITS && head.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit.then(|| head.chars().take(DIGITS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_names_a_branch_or_a_commit() {
        let found = |name: &str| NextRead::Found(Some(name.to_owned()));
        for read in [BranchRead::Head, BranchRead::Linked] {
            assert_eq!(next(read, Some("ref: refs/heads/feature/a b")), found("feature/a b"));
            assert_eq!(next(read, Some("ref: refs/remotes/x")), found("refs/remotes/x"));
            assert_eq!(next(read, Some("0123456789abcdef0123456789abcdef01234567")), found("01234567"));
            assert_eq!(next(read, Some("a secret")), NextRead::Found(None));
        }
        assert_eq!(next(BranchRead::Linked, None), NextRead::Found(None));
    }

    #[test]
    fn a_linked_worktree_leads_to_its_own_directory() {
        assert_eq!(next(BranchRead::Head, None), NextRead::Read(BranchRead::Link, ".git".into()));
        let linked = NextRead::Read(BranchRead::Linked, "/r/.git/worktrees/w/HEAD".into());
        assert_eq!(next(BranchRead::Link, Some("gitdir: /r/.git/worktrees/w")), linked);
        for text in [None, Some("anything else")] {
            assert_eq!(next(BranchRead::Link, text), NextRead::Found(None));
        }
    }
}
