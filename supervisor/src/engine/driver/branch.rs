//! The branch of the project, for the status line. The agent's worker reads it by calls of our own, when a front end asks: nobody but a
//! worker opens anything in a project, and no process is started for it.

use ipc::id::CallId;
use ipc::message::{CallOutcome, Work};
use ipc::path::WirePath;
use ipc::tool::{ReadFile, ToolCall, ToolOutput};
use protocol::frontend::UiEventKind;

use super::call_origin::CallOrigin;
use super::{AgentRun, Shared};

/// The file that names the branch, in the project's git directory.
const HEAD: &str = "HEAD";

/// The digits of a commit that are shown where there is no branch.
const DIGITS: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Branch {
    asked: u32,
    open: Option<(CallId, BranchLook)>,
    /// True if it was asked for again meanwhile: what is read may be older than that.
    again: bool,
}

/// The file that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BranchLook {
    /// `HEAD` in the project's own directory.
    Head,
    /// The file that stands in the place of that directory in a linked worktree (gitrepository-layout(5)).
    Link,
    /// `HEAD` in the directory that it names.
    Linked,
}

/// The next step of a look.
#[derive(Debug, PartialEq, Eq)]
enum NextLook {
    Read(BranchLook, WirePath),
    Found(Option<String>),
}

impl Branch {
    /// The worker that was to read it is gone.
    pub(super) fn forget(&mut self) {
        (self.open, self.again) = (None, false);
    }

    fn read(&mut self, look: BranchLook, path: WirePath) -> (CallId, Work) {
        let call = CallOrigin::Branch(self.asked).id();
        self.asked = self.asked.wrapping_add(1);
        self.open = Some((call, look));
        (call, Work::Run(ToolCall::ReadFile(ReadFile { path, offset: None, limit: Some(1), inside: false })))
    }
}

impl AgentRun {
    /// Has the worker read the branch; once more if it does so already.
    pub(super) fn find_branch(&mut self) {
        if self.branch.open.is_some() {
            self.branch.again = true;
            return;
        }
        self.read_branch(BranchLook::Head, format!(".git/{HEAD}").as_str().into());
    }

    /// A file was read, or could not be.
    pub(super) fn take_branch(&mut self, shared: &Shared, call: CallId, outcome: &CallOutcome) {
        let Some((_, look)) = self.branch.open.take_if(|(open, _)| *open == call) else { return };
        let text = match outcome {
            CallOutcome::Done(ToolOutput::File(file)) => Some(file.text.trim_end()),
            _ => None,
        };
        match next(look, text) {
            NextLook::Read(look, path) => self.read_branch(look, path),
            NextLook::Found(name) => {
                self.sink.show(shared, UiEventKind::Branch { name });
                if std::mem::take(&mut self.branch.again) {
                    self.find_branch();
                }
            }
        }
    }

    fn read_branch(&mut self, look: BranchLook, path: WirePath) {
        let (call, work) = self.branch.read(look, path);
        self.worker.call(call, work);
    }
}

fn next(look: BranchLook, text: Option<&str>) -> NextLook {
    match (look, text) {
        (BranchLook::Head, None) => NextLook::Read(BranchLook::Link, ".git".into()),
        (BranchLook::Link, text) => match text.and_then(|text| text.strip_prefix("gitdir: ")) {
            Some(directory) => {
                NextLook::Read(BranchLook::Linked, format!("{directory}/{HEAD}").as_str().into())
            }
            None => NextLook::Found(None),
        },
        (BranchLook::Head | BranchLook::Linked, text) => NextLook::Found(text.and_then(named)),
    }
}

/// The branch that a `HEAD` names, or the beginning of the commit in it.
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
        let found = |name: &str| NextLook::Found(Some(name.to_owned()));
        for look in [BranchLook::Head, BranchLook::Linked] {
            assert_eq!(next(look, Some("ref: refs/heads/feature/a b")), found("feature/a b"));
            assert_eq!(next(look, Some("ref: refs/remotes/x")), found("refs/remotes/x"));
            assert_eq!(next(look, Some("0123456789abcdef0123456789abcdef01234567")), found("01234567"));
            assert_eq!(next(look, Some("a secret")), NextLook::Found(None));
        }
        assert_eq!(next(BranchLook::Linked, None), NextLook::Found(None));
    }

    #[test]
    fn a_linked_worktree_leads_to_its_own_directory() {
        assert_eq!(next(BranchLook::Head, None), NextLook::Read(BranchLook::Link, ".git".into()));
        let linked = NextLook::Read(BranchLook::Linked, "/r/.git/worktrees/w/HEAD".into());
        assert_eq!(next(BranchLook::Link, Some("gitdir: /r/.git/worktrees/w")), linked);
        for text in [None, Some("anything else")] {
            assert_eq!(next(BranchLook::Link, text), NextLook::Found(None));
        }
    }
}
