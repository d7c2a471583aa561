//! Complaints in a command's output: lines that say that the kernel refused a path, and which path.
//!
//! The worker looks at the places that an output complains of, and the supervisor's gate judges the same lines, so both read
//! them by this one table. `sandbox-exec`, which confines, does not link it. Programs print what they like: nothing here is
//! more than what they say.

#![forbid(unsafe_code)]

mod calls;
mod lines;
mod names;
mod places;

pub use calls::{DENIED_CALLS, DeniedCall, When, denied_call};
pub use lines::{Line, lines};
pub use places::{complains, find, named_in, processes_in, resolved, start_of};

use std::ffi::OsStr;
use std::path::Path;

use names::{is_quoted_at, quoted};

/// What a program prints when the kernel refused it a path, in lower case.
pub const REFUSALS: [&str; 4] =
    ["permission denied", "read-only file system", "operation not permitted", "accessdeniedexception"];

/// What a program prints where it would have moved or removed a place that is mounted, in lower case.
const HELD: &str = "device or resource busy";

/// What a program prints where it would have moved or linked across places that are held apart, in lower case.
const APART: [&str; 2] = ["invalid cross-device link", "cross-device link not permitted"];

/// Programs, and calls, that signal a process by its number.
const SIGNALLERS: [&str; 7] = ["kill", "killpg", "pkill", "sigqueue", "tgkill", "tkill", "pidfd_send_signal"];

/// Where POSIX shared memory and semaphores lie (`shm_overview(7)`, `sem_overview(7)`).
const MEMORY: &str = "/dev/shm";

/// Words of a line that names a call for POSIX shared memory or semaphores, in lower case.
const OF_MEMORY: [&str; 3] = ["shm_open", "sem_open", "could not open shared memory segment"];

/// Begins each name that Python's `multiprocessing.shared_memory` makes up.
const PYTHONS_SEGMENT: &str = "/psm_";

/// What a program prints where the kernel does not have a call, in lower case.
const NOT_THERE: &str = "function not implemented";

/// One line that complains of a path.
#[derive(Clone, Debug)]
pub struct Complaint<'a> {
    line: &'a str,
    lower: String,
    phrase: &'static str,
    at: usize,
    /// Whether a trace above it ends in a call for shared memory.
    in_memory: bool,
}

impl<'a> Complaint<'a> {
    /// The line as a complaint, if it is one.
    pub fn new(line: impl Into<Line<'a>>) -> Option<Self> {
        let line = line.into();
        let complaint = Self::of(line.text, REFUSALS.into_iter().chain([HELD]).chain(APART))?;
        Some(Self { in_memory: line.in_memory, ..complaint })
    }

    /// The line as a complaint of a system call, if it is one.
    fn of_a_call(line: &'a str) -> Option<Self> {
        Self::of(line, ["operation not permitted", NOT_THERE].into_iter())
    }

    fn of(line: &'a str, mut phrases: impl Iterator<Item = &'static str>) -> Option<Self> {
        let lower = line.to_ascii_lowercase();
        let (phrase, at) = phrases.find_map(|phrase| Some((phrase, lower.find(phrase)?)))?;
        let complaint = Self { line, lower, phrase, at, in_memory: false };
        (!complaint.is_quotation()).then_some(complaint)
    }

    /// The whole line in lower case.
    pub fn lower(&self) -> &str {
        &self.lower
    }

    /// The words of the refusal, in lower case.
    pub fn phrase(&self) -> &'static str {
        self.phrase
    }

    /// What stands before the words of the refusal.
    pub fn before(&self) -> &'a str {
        self.line.get(..self.at).unwrap_or_default()
    }

    /// Whether the kernel said that the place cannot be moved or removed while something is mounted there.
    pub fn is_held(&self) -> bool {
        self.phrase == HELD
    }

    /// Whether the kernel said that what is moved or linked would leave its place.
    pub fn is_apart(&self) -> bool {
        APART.contains(&self.phrase)
    }

    /// The program that complains.
    pub fn program(&self) -> &'a str {
        let first = self.line.split(':').next().unwrap_or_default().trim();
        Path::new(first).file_name().and_then(OsStr::to_str).unwrap_or(first)
    }

    /// The process that may not be signalled: `kill: 12: …`, `bash: line 1: kill: (12) - Operation not permitted`.
    pub fn process(&self) -> Option<u32> {
        let segments: Vec<_> = self.before().trim_end_matches([' ', ':', '-', ')']).split(": ").collect();
        let [.., program, number] = segments.as_slice() else { return None };
        let name = Path::new(program.trim()).file_name()?.to_str()?;
        number.trim_start_matches('(').parse().ok().filter(|_| SIGNALLERS.contains(&name))
    }

    /// Whether a shell complains.
    pub fn is_of_a_shell(&self) -> bool {
        matches!(self.program(), "bash" | "sh" | "dash")
    }

    /// The line without what it quotes, nor words that are paths: a path `…/writer.rs` tells nothing of writing.
    pub fn words(&self) -> String {
        let words = names::without_quoted(self.line, &self.lower);
        words.split_whitespace().filter(|word| !word.contains('/')).collect::<Vec<_>>().join(" ")
    }

    /// Whether it is about POSIX shared memory or semaphores, whose names are no paths.
    fn is_of_memory(&self) -> bool {
        let names_segment = || quoted(self.line).iter().any(|name| name.starts_with(PYTHONS_SEGMENT));
        let says_so = || OF_MEMORY.iter().any(|words| self.lower.contains(words));
        self.phrase == "permission denied" && (self.in_memory || says_so() || names_segment())
    }

    /// The paths that the line names: quoted ones, then those between colons.
    pub fn paths(&self) -> Vec<&'a str> {
        if self.is_of_memory() {
            return vec![MEMORY];
        }
        let before = self.before();
        if let Some(path) = names::redirected(before).filter(|_| self.is_of_a_shell()) {
            return usable(vec![path]);
        }
        let mut paths = quoted(self.line);
        for segment in before.split(": ").skip(usize::from(has_speaker(before))) {
            paths.extend(names::path_in(segment));
        }
        paths.extend(last_segment(before));
        if paths.is_empty() && !self.is_of_a_shell() {
            paths.extend(names::path_in(before.split(": ").next().unwrap_or_default()));
        }
        if let Some(path) = self.after().filter(|path| !paths.contains(path)) {
            paths.push(path);
        }
        usable(paths)
    }

    /// `AccessDeniedException: /etc/x`, `Permission denied @ rb_sysopen - /etc/x (Errno::EACCES)`.
    fn after(&self) -> Option<&'a str> {
        let rest = self.line.get(self.at + self.phrase.len()..)?;
        let end = |c: char| c.is_whitespace() || ",;()".contains(c);
        rest.split(end).map(|word| word.trim_matches([':', '.'])).find(|word| word.starts_with('/'))
    }

    /// Whether the line only repeats what another program once said: a match that a search shows, a test's name, a text between
    /// quotes, another machine's word.
    fn is_quotation(&self) -> bool {
        let first = self.line.split(char::is_whitespace).next().unwrap_or_default();
        let is_match = first.split_once(':').is_some_and(|(name, rest)| {
            !name.is_empty() && !rest.is_empty() && !rest.starts_with(['/', ':'])
        }) || is_numbered(first);
        let is_test = first == "test" && (self.lower.contains(" ... ") || self.lower.ends_with("..."));
        let rest = self.lower.get(self.at + self.phrase.len()..).unwrap_or_default();
        // Another machine's refusal, as ssh passes it on.
        let is_remote = rest.starts_with(" (publickey") || rest.starts_with(" (password");
        is_match || is_test || is_remote || self.lower.contains("assert") || is_quoted_at(self.line, self.at)
    }
}

/// Those that can be paths of files.
fn usable(mut paths: Vec<&str>) -> Vec<&str> {
    paths.retain(|path| !path.is_empty() && path.len() <= 4096 && !is_a_shells_own(path));
    paths
}

/// `/dev/tcp/HOST/PORT`, which bash connects to and nobody has as a file.
fn is_a_shells_own(path: &str) -> bool {
    path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/")
}

/// `name:12:`, as searches and compilers begin a line that quotes or concerns a file.
fn is_numbered(first: &str) -> bool {
    let mut parts = first.split(':').skip(1);
    parts.next().is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether the line begins with the program's own path, `/usr/bin/bash: line 1: x: Permission denied`, as far as one can
/// tell: something else stands between it and the phrase.
fn has_speaker(before: &str) -> bool {
    before.split(": ").filter(|segment| !segment.trim().is_empty()).count() > 1
}

/// `tool: name: Permission denied`: a relative name without spaces just before the phrase.
fn last_segment(before: &str) -> Option<&str> {
    let segments: Vec<_> = before.trim_end().trim_end_matches(':').split(": ").collect();
    let [_, .., last] = segments.as_slice() else {
        return None;
    };
    let is_name = !last.contains([' ', '[', '(']) && !last.is_empty();
    // `Error: EACCES: permission denied`: the error's own name.
    let is_code = last.starts_with('E') && last.bytes().all(|byte| byte.is_ascii_uppercase());
    (is_name && !is_code).then_some(*last)
}

#[cfg(test)]
mod tests;
