//! One line of a program's output that complains of a path: which path, and whether it was about changing it.

use std::ffi::OsStr;
use std::path::Path;

use ipc::tool::{Access, ShellExec};

/// What a program prints when the kernel refused it a path, in lower case.
pub(super) const REFUSALS: [&str; 3] =
    ["permission denied", "read-only file system", "operation not permitted"];

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
        let phrase = REFUSALS.into_iter().find(|phrase| lower.contains(phrase))?;
        Some(Self { call, line, lower, phrase })
    }

    /// The paths that the line names: quoted ones, then those between colons.
    pub(super) fn paths(&self) -> Vec<&'a str> {
        let line = self.line;
        let mut paths = quoted(line);
        let before = self.lower.find(self.phrase).unwrap_or_default();
        // `open /etc/x: permission denied`: the path is the segment's last word, unless spaces belong to it.
        for segment in line.get(..before).unwrap_or_default().split(": ") {
            let segment = segment.trim().trim_end_matches(':');
            if segment.starts_with('/') {
                paths.push(segment);
            } else if let Some((_, word)) = segment.rsplit_once(' ')
                && word.starts_with('/')
            {
                paths.push(word);
            }
        }
        paths.extend(self.last_segment(before));
        paths.retain(|path| !path.is_empty() && path.len() <= 4096);
        self.without_program(paths)
    }

    /// `/usr/bin/bash: line 1: PATH: Read-only file system`: who complains is not what it complains of, where that is named.
    fn without_program(&self, mut paths: Vec<&'a str>) -> Vec<&'a str> {
        let mut segments = self.line.split(": ");
        let program = segments.next().unwrap_or_default().trim();
        let is_script = segments.next().is_some_and(|place| place.starts_with("line "));
        if is_script || paths.iter().any(|path| *path != program) {
            paths.retain(|path| *path != program);
        }
        paths
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

    fn is_of_a_shell(&self) -> bool {
        let program = self.program();
        program == "bash" || program == "sh"
    }

    /// The line without what it quotes: a path `…/writer.rs` tells nothing of writing.
    fn words(&self) -> String {
        let mut words = self.lower.to_owned();
        for name in quoted(self.line) {
            words = words.replace(&name.to_ascii_lowercase(), "");
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

/// What stands between quotes of any kind.
fn quoted(line: &str) -> Vec<&str> {
    const PAIRS: [(char, char); 5] = [('\'', '\''), ('"', '"'), ('`', '`'), ('‘', '’'), ('“', '”')];
    let mut found = Vec::new();
    for (open, close) in PAIRS {
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
