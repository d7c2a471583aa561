//! One line of a program's output that complains of a path: which path, and whether it was about changing it.

use std::ffi::OsStr;
use std::path::Path;

use ipc::tool::{Access, ShellExec};

/// What a program prints when the kernel refused it a path, in lower case.
pub(super) const REFUSALS: [&str; 3] =
    ["permission denied", "read-only file system", "operation not permitted"];

/// What a program prints where it would have moved or removed a place that is mounted, in lower case.
const HELD: &str = "device or resource busy";

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
const WRITES: [&str; 15] = [
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
    "lock",
    "save",
    "chang",
    "setting",
    "append",
];

/// Words of a message that tell of a name that was to go.
const REMOVALS: [&str; 5] = ["remov", "delet", "unlink", "renam", "cannot move"];

/// What stands around a name.
const QUOTES: [(char, char); 5] = [('\'', '\''), ('"', '"'), ('`', '`'), ('‘', '’'), ('“', '”')];

/// One line that complains of a path.
pub(super) struct Message<'a> {
    call: &'a ShellExec,
    line: &'a str,
    lower: &'a str,
    phrase: &'a str,
}

impl<'a> Message<'a> {
    /// The line as a complaint, if it is one; `lower` is the line in lower case.
    pub(super) fn new(call: &'a ShellExec, line: &'a str, lower: &'a str) -> Option<Self> {
        let phrase = REFUSALS.into_iter().chain([HELD]).find(|phrase| lower.contains(phrase))?;
        Some(Self { call, line, lower, phrase })
    }

    /// The paths that the line names: quoted ones, then those between colons.
    pub(super) fn paths(&self) -> Vec<&'a str> {
        let line = self.line;
        let mut paths = quoted(line);
        let before = self.lower.find(self.phrase).unwrap_or_default();
        let before_phrase = line.get(..before).unwrap_or_default();
        for segment in before_phrase.split(": ").skip(usize::from(has_speaker(before_phrase))) {
            paths.extend(path_in(segment));
        }
        paths.extend(self.last_segment(before));
        paths.retain(|path| !path.is_empty() && path.len() <= 4096);
        if paths.is_empty() && !self.is_of_a_shell() {
            paths.extend(path_in(before_phrase.split(": ").next().unwrap_or_default()));
        }
        paths
    }

    /// Whether the kernel said that the place cannot be moved or removed while something is mounted there.
    pub(super) fn is_held(&self) -> bool {
        self.phrase == HELD
    }

    /// `tool: name: Permission denied`: a relative name without spaces just before the phrase.
    fn last_segment(&self, before: usize) -> Option<&'a str> {
        let segments: Vec<_> =
            self.line.get(..before)?.trim_end().trim_end_matches(':').split(": ").collect();
        let [_, .., last] = segments.as_slice() else {
            return None;
        };
        (!last.contains(' ') && !last.is_empty()).then_some(*last)
    }

    /// The error number that the words stand for.
    pub(super) fn errno(&self) -> Option<i32> {
        match self.phrase {
            "read-only file system" => Some(libc::EROFS),
            "permission denied" => Some(libc::EACCES),
            _ => None,
        }
    }

    /// Whether the refusal is one of changing the path, as far as the words tell.
    pub(super) fn is_about_writing(&self, named: &str) -> bool {
        self.tells_of_writing(named)
            || !(self.call.access == Access::Read
                || self.is_of_a_shell()
                || READERS.contains(&self.program())
                || self.lower.contains("cannot open")
                || self.lower.contains("for reading"))
    }

    /// Whether the line itself says that the path was to be changed.
    pub(super) fn tells_of_writing(&self, named: &str) -> bool {
        if self.call.access == Access::Read {
            // The command declared to write nothing: the missing right would not have helped.
            return false;
        }
        self.phrase == "read-only file system"
            || WRITES.iter().any(|word| self.words().contains(word))
            // The shell says the same of `> PATH` and of a PATH that may not be executed or read.
            || (self.is_of_a_shell() && self.redirects_to(named))
    }

    /// Whether the line says that the path itself was to go: a right on the directory that it is in.
    pub(super) fn tells_of_removal(&self) -> bool {
        REMOVALS.iter().any(|word| self.words().contains(word))
    }

    fn is_of_a_shell(&self) -> bool {
        let program = self.program();
        program == "bash" || program == "sh"
    }

    /// The line without what it quotes: a path `…/writer.rs` tells nothing of writing.
    fn words(&self) -> String {
        let mut words = self.lower.to_owned();
        for name in quoted(self.line) {
            let name = name.to_ascii_lowercase();
            // With its quotes: a name of one letter stands in every word.
            for (open, close) in QUOTES {
                words = words.replace(&format!("{open}{name}{close}"), "");
            }
        }
        words.split_whitespace().filter(|word| !word.contains('/')).collect::<Vec<_>>().join(" ")
    }

    fn program(&self) -> &'a str {
        let first = self.line.split(':').next().unwrap_or_default().trim();
        Path::new(first).file_name().and_then(OsStr::to_str).unwrap_or(first)
    }

    fn redirects_to(&self, named: &str) -> bool {
        let command = &self.call.command;
        command.match_indices(named).any(|(at, _)| {
            let before = command[..at].trim_end_matches(['"', '\'']).trim_end();
            before.ends_with('>') || before.ends_with(">|")
        })
    }
}

/// Whether the line begins with the program's own path, `/usr/bin/bash: line 1: x: Permission denied`, as far as one can
/// tell: something else stands between it and the phrase.
fn has_speaker(before_phrase: &str) -> bool {
    before_phrase.split(": ").filter(|segment| !segment.trim().is_empty()).count() > 1
}

/// The absolute path of a segment between colons. `open /etc/x`: its last word, unless spaces belong to it.
fn path_in(segment: &str) -> Option<&str> {
    let segment = segment.trim().trim_end_matches(':');
    let last = segment.rsplit_once(' ').map(|(_, word)| word);
    [Some(segment), last].into_iter().flatten().find(|path| path.starts_with('/'))
}

/// What stands between quotes of any kind.
fn quoted(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (open, close) in QUOTES {
        let mut rest = line;
        while let Some((_, after)) = rest.split_once(open) {
            let Some((inner, tail)) = after.split_once(close) else {
                break;
            };
            found.push(inner);
            rest = tail;
        }
    }
    found
}
