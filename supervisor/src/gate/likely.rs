//! What a failed command's output says of a denial. Programs print what they like, so this is never more than likely.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use ipc::denial::{Denial, Grade};
use ipc::path::WirePath;
use ipc::rights::Network;
use ipc::tool::{Access, CommandExit, CommandResult, ShellExec};

use super::Standing;
use super::standing::{is_kernel_tree, unreachable, unreadable};

/// What a program prints when the kernel refused it a path, in lower case.
const REFUSALS: [&str; 3] = [
    "permission denied",
    "read-only file system",
    "operation not permitted",
];

/// What a program prints when it reached nobody, in lower case.
const UNREACHED: [&str; 12] = [
    "could not resolve host",
    "couldn't resolve host",
    "could not resolve hostname",
    "temporary failure in name resolution",
    "name or service not known",
    "network is unreachable",
    "failed to lookup address",
    "getaddrinfo eai_again",
    "dns error",
    "socket: operation not permitted",
    "socket: permission denied",
    "unable to resolve host address",
];

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

/// The most lines that are looked at.
const MAX_LINES: usize = 4000;

impl Standing {
    /// The denial that a command most likely ran into, read from its output. Never one of a path that the rights cover.
    pub fn likely(&self, call: &ShellExec, result: &CommandResult) -> Option<Denial> {
        if matches!(result.exit, CommandExit::Code(0)) {
            return None;
        }
        // The network is off for every such command, whatever the rights: no right is missing.
        let networked = call.access != Access::Read;
        let text = [result.head.as_str(), result.tail.as_str()];
        let lines = || text.iter().flat_map(|text| text.lines()).take(MAX_LINES);
        lines()
            .find_map(|line| self.refused_path(call, line))
            .or_else(|| {
                lines()
                    .filter(|_| networked)
                    .find_map(|line| self.unreached(line))
            })
            .or_else(|| self.refused_socket(lines().filter(|_| networked)))
    }

    fn refused_path(&self, call: &ShellExec, line: &str) -> Option<Denial> {
        let lower = line.to_ascii_lowercase();
        let phrase = REFUSALS.iter().find(|phrase| lower.contains(**phrase))?;
        let message = Message {
            call,
            line,
            lower: &lower,
            phrase,
        };
        message
            .paths()
            .iter()
            .find_map(|named| self.missing_for(&message, named))
    }

    fn missing_for(&self, message: &Message<'_>, named: &str) -> Option<Denial> {
        let path = self.absolute(message.call, named)?;
        if !self.rights.allows_read(&path) {
            return Some(unreadable(&path, Grade::Likely));
        }
        let uncovered = !self.rights.allows_write(&path) && !is_kernel_tree(&path);
        (uncovered && message.is_about_writing(named)).then(|| self.unwritable(&path, Grade::Likely))
    }

    fn unreached(&self, line: &str) -> Option<Denial> {
        let lower = line.to_ascii_lowercase();
        if self.rights.net == Network::On || !UNREACHED.iter().any(|phrase| lower.contains(phrase)) {
            return None;
        }
        let host = host(line).unwrap_or("the network");
        Some(unreachable(host, Grade::Likely))
    }

    /// An interpreter's bare `Operation not permitted` under a trace that names a socket.
    fn refused_socket<'a>(&self, mut lines: impl Iterator<Item = &'a str>) -> Option<Denial> {
        let mut seen = false;
        let refused = lines.any(|line| {
            seen |= line.contains("socket");
            seen && line
                .to_ascii_lowercase()
                .trim_end()
                .ends_with("operation not permitted")
        });
        (refused && self.rights.net == Network::Off).then(|| unreachable("the network", Grade::Likely))
    }

    /// The path that a command names, without `.` and `..`; nothing is looked up.
    fn absolute(&self, call: &ShellExec, named: &str) -> Option<WirePath> {
        let cwd = call
            .cwd
            .as_ref()
            .map_or_else(PathBuf::new, |cwd| cwd.as_path().to_owned());
        let whole = self.project.as_path().join(cwd).join(named);
        let mut path = PathBuf::new();
        for component in whole.components() {
            match component {
                Component::ParentDir => {
                    path.pop();
                }
                Component::CurDir => {}
                other => path.push(other),
            }
        }
        path.is_absolute().then(|| WirePath::from(path))
    }
}

/// Whether a command failed most likely because it declared `access: "read"` and then did more.
pub fn declared_too_little(call: &ShellExec, result: &CommandResult) -> bool {
    let complains = |text: &str| {
        let lower = text.to_ascii_lowercase();
        REFUSALS
            .iter()
            .chain(&UNREACHED)
            .any(|phrase| lower.contains(phrase))
    };
    call.access == Access::Read
        && result.exit != CommandExit::Code(0)
        && (complains(&result.head) || complains(&result.tail))
}

/// One line that complains of a path.
struct Message<'a> {
    call: &'a ShellExec,
    line: &'a str,
    lower: &'a str,
    phrase: &'a str,
}

impl<'a> Message<'a> {
    /// The paths that the line names: quoted ones, then those between colons.
    fn paths(&self) -> Vec<&'a str> {
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
        paths
    }

    /// `tool: name: Permission denied`: a relative name without spaces just before the phrase.
    fn last_segment(&self, before: usize) -> Option<&'a str> {
        let segments: Vec<_> = self
            .line
            .get(..before)?
            .trim_end()
            .trim_end_matches(':')
            .split(": ")
            .collect();
        let [_, .., last] = segments.as_slice() else {
            return None;
        };
        (!last.contains(' ') && !last.is_empty()).then_some(*last)
    }

    /// Whether the refusal is one of changing the path, as far as the words tell.
    fn is_about_writing(&self, named: &str) -> bool {
        if self.call.access == Access::Read {
            // The command declared to write nothing: the missing right would not have helped.
            return false;
        }
        if self.phrase == "read-only file system" || WRITES.iter().any(|word| self.words().contains(word)) {
            return true;
        }
        let program = self.program();
        if program == "bash" || program == "sh" || program.ends_with("/bash") {
            // The shell says the same of `> PATH` and of a PATH that may not be executed or read.
            return self.redirects_to(named);
        }
        !READERS.contains(&program)
            && !self.lower.contains("cannot open")
            && !self.lower.contains("for reading")
    }

    /// The line without what it quotes: a path `…/writer.rs` tells nothing of writing.
    fn words(&self) -> String {
        let mut words = self.lower.to_owned();
        for name in quoted(self.line) {
            words = words.replace(&name.to_ascii_lowercase(), "");
        }
        words
            .split_whitespace()
            .filter(|word| !word.contains('/'))
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn program(&self) -> &'a str {
        let first = self.line.split(':').next().unwrap_or_default().trim();
        Path::new(first)
            .file_name()
            .and_then(OsStr::to_str)
            .unwrap_or(first)
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

/// The host in `Could not resolve host: NAME`, `… hostname NAME: …` or `… host address ‘NAME’`.
fn host(line: &str) -> Option<&str> {
    const PHRASE: &str = "resolve host";
    let at = line.to_ascii_lowercase().rfind(PHRASE)? + PHRASE.len();
    let rest = line.get(at..)?;
    let rest = rest
        .strip_prefix("name")
        .or_else(|| rest.strip_prefix(" address"))
        .unwrap_or(rest);
    let part = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    let name = rest.trim_start_matches(|c| !part(c)).split(|c| !part(c)).next()?;
    (!name.is_empty() && name.len() <= 253).then_some(name)
}
