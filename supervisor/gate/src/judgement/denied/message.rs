//! Lines of a command's output that complain about a path.

use complaint::{ErrorLine, Line};
use ipc::denial::Operation;
use ipc::named::{Asked, NamedPlace};
use ipc::tool::{Access, ShellExec};

use super::succeeded::{SHOWS_TEXT, programs_in};

/// Programs whose complaints are about reading.
const READERS: [&str; 16] = [
    "cat",
    "cd",
    "cmp",
    "diff",
    "du",
    "file",
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

/// Programs that start other programs. Their complaint about a path may mean that they could not execute it.
const STARTERS: [&str; 10] =
    ["env", "find", "make", "nice", "nohup", "setsid", "stdbuf", "time", "timeout", "xargs"];

/// Parts of words in messages about changing a file.
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

/// Parts of words in messages about removing a name from a directory.
const REMOVALS: [&str; 5] = ["remov", "delet", "unlink", "renam", "cannot move"];

/// Parts of messages about a mode, an owner or times of a file, which only its owner may change.
const ATTRIBUTES: [&str; 6] =
    ["permissions of", "ownership of", "group of", "times of", "attribute", "chmod"];

pub(super) struct DenialMessage<'a> {
    call: &'a ShellExec,
    complaint: ErrorLine<'a>,
    words: String,
}

impl<'a> DenialMessage<'a> {
    /// Reads a line of the output of `call`. `None` if it is no complaint about a path.
    pub(super) fn new(call: &'a ShellExec, line: Line<'a>) -> Option<Self> {
        let complaint = ErrorLine::new(line)?;
        let words = complaint.words();
        Some(Self { call, complaint, words })
    }

    pub(super) const fn complaint(&self) -> &ErrorLine<'a> {
        &self.complaint
    }

    pub(super) const fn errno(&self) -> i32 {
        self.complaint.errno
    }

    /// True if the complaint is about changing the path `named`, as far as its text tells.
    pub(super) fn is_about_writing(&self, named: &str) -> bool {
        self.tells_of_writing(named)
            || !(self.call.access == Access::Read
                || self.complaint.is_of_a_shell()
                || READERS.contains(&self.complaint.program())
                || STARTERS.contains(&self.complaint.program())
                || self.words.contains("cannot open")
                || self.words.contains("for reading"))
    }

    /// True if the line itself says that the path `named` was to be changed.
    pub(super) fn tells_of_writing(&self, named: &str) -> bool {
        if self.call.access == Access::Read {
            // The command declared not to write, so a right to write would not have helped.
            return false;
        }
        matches!(self.errno(), libc::EROFS | libc::EXDEV)
            || self.has(&WRITES)
            // A shell gives the same error for `> PATH` and for a PATH that it cannot execute.
            || (self.complaint.is_of_a_shell() && self.redirects_to(named))
    }

    /// True if the line says that a path was to be removed. This needs write access to its directory.
    pub(super) fn tells_of_removal(&self) -> bool {
        self.has(&REMOVALS)
    }

    pub(super) fn tells_of_mode(&self) -> bool {
        self.call.access != Access::Read
            && (self.words.contains("permissions of") || self.words.contains("chmod"))
    }

    /// True if the line says that a file's owner was to be changed, which only root may do.
    pub(super) fn tells_of_owner(&self) -> bool {
        self.words.contains("ownership of")
    }

    pub(super) fn is_permitted(&self, place: &NamedPlace) -> bool {
        match place.permits {
            permits if self.has(&ATTRIBUTES) => permits.own,
            permits if self.tells_of_removal() => permits.remove,
            permits => permits.write,
        }
    }

    /// Returns the errno of the repeated access, 0 if it succeeded; `None` if the command may have tried other access.
    pub(super) fn answer(&self, place: &NamedPlace, operation: Operation) -> Option<i32> {
        // A file that can be read and executed, or does not exist, can only have been denied for writing.
        let permits = place.permits;
        let can_be_only_that = place.nearest.is_some() || (permits.read && permits.execute);
        if operation == Operation::Write && !can_be_only_that && !self.tells_of_writing(&place.named) {
            return None;
        }
        let Asked { read, write, remove } = place.asked;
        match operation {
            Operation::Read => read,
            Operation::Write if matches!(self.errno(), libc::EBUSY | libc::EXDEV) => None,
            // A read-only mount denies changes of modes like writes. Landlock rules against writes do not.
            Operation::Write if self.has(&ATTRIBUTES) => write.filter(|errno| *errno == libc::EROFS),
            Operation::Write if self.tells_of_removal() => remove,
            Operation::Write => write,
            _ => None,
        }
    }

    /// True if the command itself most likely met the denial, and does not only show the text of other programs.
    pub(super) fn is_of_the_command(&self, named: &str) -> bool {
        let started = programs_in(&self.call.command);
        let only_shows = started.iter().all(|program| SHOWS_TEXT.contains(program));
        !only_shows || started.contains(&self.complaint.program()) || self.redirects_to(named)
    }

    /// True if the command passes the path to the complaining program, or redirects to it. Then the line is hardly a
    /// text that the command only shows.
    pub(super) fn is_of_an_own_word(&self, named: &str) -> bool {
        let command = &self.call.command;
        let is_named = command.contains(named) && programs_in(command).contains(&self.complaint.program());
        is_named || self.redirects_to(named)
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
