//! One line of a command's output that complains of a path: whether it was about changing it, and how.

use ipc::complaint::{Complaint, NamedPlace};
use ipc::tool::{Access, ShellExec};

/// Programs whose complaint about a path is about reading it.
const READERS: [&str; 17] = [
    "cat",
    "cd",
    "cmp",
    "diff",
    "du",
    "file",
    "find",
    "grep",
    "head",
    "less",
    "ls",
    "md5sum",
    "rg",
    "sha256sum",
    "stat",
    "tail",
    "wc",
];

/// Words of a message that tell of a change.
const WRITES: [&str; 16] = [
    "cannot touch",
    "creat",
    "writ",
    "remov",
    "delet",
    "unlink",
    "renam",
    "mkdir",
    "cannot move",
    "overwrite",
    "output file",
    "save",
    "chang",
    "setting",
    "append",
    "lock",
];

/// Words of a message that tell of a name that was to go.
const REMOVALS: [&str; 5] = ["remov", "delet", "unlink", "renam", "cannot move"];

/// Words of a message that tell of a mode, an owner or times, which only the owner may change.
const ATTRIBUTES: [&str; 6] =
    ["permissions of", "ownership of", "group of", "times of", "attribute", "chmod"];

/// A complaint, and the call that it came from.
pub(super) struct Message<'a> {
    call: &'a ShellExec,
    complaint: Complaint<'a>,
    words: String,
}

impl<'a> Message<'a> {
    /// The line as a complaint, if it is one.
    pub(super) fn new(call: &'a ShellExec, line: &'a str) -> Option<Self> {
        let complaint = Complaint::new(line)?;
        let words = complaint.words();
        Some(Self { call, complaint, words })
    }

    /// The complaint itself.
    pub(super) const fn complaint(&self) -> &Complaint<'a> {
        &self.complaint
    }

    /// The error number that the words stand for.
    pub(super) fn errno(&self) -> Option<i32> {
        match self.complaint.phrase() {
            "read-only file system" => Some(libc::EROFS),
            "permission denied" | "accessdeniedexception" => Some(libc::EACCES),
            "operation not permitted" => Some(libc::EPERM),
            _ if self.complaint.is_apart() => Some(libc::EXDEV),
            _ => None,
        }
    }

    /// Whether the refusal is one of changing the path, as far as the words tell.
    pub(super) fn is_about_writing(&self, named: &str) -> bool {
        self.tells_of_writing(named)
            || !(self.call.access == Access::Read
                || self.complaint.is_of_a_shell()
                || READERS.contains(&self.complaint.program())
                || self.words.contains("cannot open")
                || self.words.contains("for reading"))
    }

    /// Whether the line itself says that the path was to be changed.
    pub(super) fn tells_of_writing(&self, named: &str) -> bool {
        if self.call.access == Access::Read {
            // The command declared to write nothing: the missing right would not have helped.
            return false;
        }
        matches!(self.errno(), Some(libc::EROFS | libc::EXDEV))
            || self.has(&WRITES)
            // The shell says the same of `> PATH` and of a PATH that may not be executed or read.
            || (self.complaint.is_of_a_shell() && self.redirects_to(named))
    }

    /// Whether the line says that the path itself was to go: a right on the directory that it is in.
    pub(super) fn tells_of_removal(&self) -> bool {
        self.has(&REMOVALS)
    }

    /// Whether the line says that the mode of a path was to be changed.
    pub(super) fn tells_of_mode(&self) -> bool {
        self.call.access != Access::Read
            && (self.words.contains("permissions of") || self.words.contains("chmod"))
    }

    /// Whether the line says that a file was to become somebody else's, which only root may do.
    pub(super) fn tells_of_owner(&self) -> bool {
        self.words.contains("ownership of")
    }

    /// Whether plain permissions would have let the change happen.
    pub(super) fn is_permitted(&self, place: &NamedPlace) -> bool {
        match place.permits {
            permits if self.has(&ATTRIBUTES) => permits.own,
            permits if self.tells_of_removal() => permits.remove,
            permits => permits.write,
        }
    }

    fn has(&self, any: &[&str]) -> bool {
        any.iter().any(|word| self.words.contains(word))
    }

    fn redirects_to(&self, named: &str) -> bool {
        let command = &self.call.command;
        command.match_indices(named).any(|(at, _)| {
            let before = command[..at].trim_end_matches(['"', '\'']).trim_end();
            before.ends_with('>') || before.ends_with(">|")
        })
    }
}
