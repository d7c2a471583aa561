//! One line of a command's output that complains of a path: whether it was about changing it, and how.

use complaint::{ErrorLine, Line};
use ipc::denial::Operation;
use ipc::named::{Asked, NamedPlace};
use ipc::tool::{Access, ShellExec};

use super::succeeded::{SHOWS_TEXT, programs_in};

/// Programs whose complaint about a path is about reading it.
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

/// Programs that execute what they complain of.
const STARTERS: [&str; 10] =
    ["env", "find", "make", "nice", "nohup", "setsid", "stdbuf", "time", "timeout", "xargs"];

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
pub(super) struct DenialMessage<'a> {
    call: &'a ShellExec,
    complaint: ErrorLine<'a>,
    words: String,
}

impl<'a> DenialMessage<'a> {
    /// The line as a complaint, if it is one.
    pub(super) fn new(call: &'a ShellExec, line: Line<'a>) -> Option<Self> {
        let complaint = ErrorLine::new(line)?;
        let words = complaint.words();
        Some(Self { call, complaint, words })
    }

    /// The complaint itself.
    pub(super) const fn complaint(&self) -> &ErrorLine<'a> {
        &self.complaint
    }

    /// The error number that the words stand for.
    pub(super) const fn errno(&self) -> i32 {
        self.complaint.errno
    }

    /// Whether the refusal is one of changing the path, as far as the words tell.
    pub(super) fn is_about_writing(&self, named: &str) -> bool {
        self.tells_of_writing(named)
            || !(self.call.access == Access::Read
                || self.complaint.is_of_a_shell()
                || READERS.contains(&self.complaint.program())
                || STARTERS.contains(&self.complaint.program())
                || self.words.contains("cannot open")
                || self.words.contains("for reading"))
    }

    /// Whether the line itself says that the path was to be changed.
    pub(super) fn tells_of_writing(&self, named: &str) -> bool {
        if self.call.access == Access::Read {
            // The command declared to write nothing: the missing right would not have helped.
            return false;
        }
        matches!(self.errno(), libc::EROFS | libc::EXDEV)
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

    /// What the kernel answered whoever tried the same act again; nothing where that may have been another act.
    pub(super) fn answer(&self, place: &NamedPlace, operation: Operation) -> Option<i32> {
        // What exists and can be read and executed, and what does not exist, can only have been refused to a writer.
        let permits = place.permits;
        let can_be_only_that = place.nearest.is_some() || (permits.read && permits.execute);
        if operation == Operation::Write && !can_be_only_that && !self.tells_of_writing(&place.named) {
            return None;
        }
        let Asked { read, write, remove } = place.asked;
        match operation {
            Operation::Read => read,
            Operation::Write if matches!(self.errno(), libc::EBUSY | libc::EXDEV) => None,
            // A read-only mount refuses to change a mode as it refuses to write; a rule that keeps a file from being written says
            // nothing of its mode.
            Operation::Write if self.has(&ATTRIBUTES) => write.filter(|errno| *errno == libc::EROFS),
            Operation::Write if self.tells_of_removal() => remove,
            Operation::Write => write,
            _ => None,
        }
    }

    /// Whether the command itself most likely met the refusal. A command of nothing but programs that show text repeats the words of
    /// others, unless one of its own programs complains, or its shell of a redirection.
    pub(super) fn is_of_the_command(&self, named: &str) -> bool {
        let started = programs_in(&self.call.command);
        let only_shows = started.iter().all(|program| SHOWS_TEXT.contains(program));
        !only_shows || started.contains(&self.complaint.program()) || self.redirects_to(named)
    }

    /// True if the command's own text gives the place to the program that complains, or redirects to it: `touch /etc/x; true`. The
    /// line can then hardly be another's that is only shown.
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
