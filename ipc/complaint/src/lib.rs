//! Lines of a command's output that report a denied path.
//!
//! The worker examines the paths in these lines, and the supervisor judges the same lines. Output proves nothing, since
//! programs can print any text.

#![forbid(unsafe_code)]

mod calls;
mod lines;
mod names;
mod places;
mod start;

pub use calls::{DeniedCall, When, denied_call, denied_calls};
pub use lines::{Line, lines};
pub use places::{find, named_in, processes_in, resolved};
pub use start::start;

use std::ffi::OsStr;
use std::ops::Range;
use std::path::Path;

use libc::{EACCES, EBUSY, EPERM, EROFS, EXDEV};
use names::quoted;

/// Lower-case phrases with which programs report a denied path, each with its error number. EBUSY and EXDEV come from
/// moves and links across mounts.
pub const REFUSALS: [(&str, i32); 7] = [
    ("permission denied", EACCES),
    ("read-only file system", EROFS),
    ("operation not permitted", EPERM),
    ("accessdeniedexception", EACCES),
    ("device or resource busy", EBUSY),
    ("invalid cross-device link", EXDEV),
    ("cross-device link not permitted", EXDEV),
];

/// Names of programs and calls that signal a process by its pid.
const SIGNALLERS: [&str; 7] = ["kill", "killpg", "pkill", "sigqueue", "tgkill", "tkill", "pidfd_send_signal"];

/// Directory of POSIX shared memory and semaphores (`shm_overview(7)`, `sem_overview(7)`).
const MEMORY: &str = "/dev/shm";

/// Lower-case phrases that mention a call for POSIX shared memory or semaphores.
const OF_MEMORY: [&str; 3] = ["shm_open", "sem_open", "could not open shared memory segment"];

/// Line of output that reports a denied path.
#[derive(Clone, Debug)]
pub struct ErrorLine<'a> {
    line: &'a str,
    lower: String,
    pub errno: i32,
    at: Range<usize>,
    /// True if the line ends a Python stack trace whose last call created shared memory or a semaphore.
    in_memory: bool,
}

impl<'a> ErrorLine<'a> {
    /// Returns the line if it reports a denied path, else `None`.
    pub fn new(line: Line<'a>) -> Option<Self> {
        Some(Self { in_memory: line.in_memory, ..Self::of(line.text, &REFUSALS)? })
    }

    fn of(line: &'a str, phrases: &[(&str, i32)]) -> Option<Self> {
        let lower = line.to_ascii_lowercase();
        let found = |(phrase, errno): &(&str, i32)| Some((lower.find(phrase)?, phrase.len(), *errno));
        let (at, length, errno) = phrases.iter().find_map(found)?;
        let complaint = Self { line, lower, errno, at: at..at + length, in_memory: false };
        (!complaint.is_quotation()).then_some(complaint)
    }

    fn before(&self) -> &'a str {
        self.line.get(..self.at.start).unwrap_or_default()
    }

    pub fn program(&self) -> &'a str {
        let first = self.line.split(':').next().unwrap_or_default().trim();
        Path::new(first).file_name().and_then(OsStr::to_str).unwrap_or(first)
    }

    /// Returns the pid of the process that could not be signalled, from `kill: 12: …` or `kill: (12) - Operation not
    /// permitted`; `None` for other lines.
    pub fn process(&self) -> Option<u32> {
        let segments: Vec<_> = self.before().trim_end_matches([' ', ':', '-', ')']).split(": ").collect();
        let [.., program, number] = segments.as_slice() else { return None };
        let name = Path::new(program.trim()).file_name()?.to_str()?;
        number.trim_start_matches('(').parse().ok().filter(|_| SIGNALLERS.contains(&name))
    }

    pub fn is_of_a_shell(&self) -> bool {
        matches!(self.program(), "bash" | "sh" | "dash")
    }

    /// Returns the line without quoted texts and paths, whose words mislead: `…/writer.rs` says nothing about writing.
    pub fn words(&self) -> String {
        let words = names::without_quoted(self.line, &self.lower);
        words.split_whitespace().filter(|word| !word.contains('/')).collect::<Vec<_>>().join(" ")
    }

    fn is_of_memory(&self) -> bool {
        // Python's `multiprocessing.shared_memory` generates names with this prefix.
        let names_segment = || quoted(self.line).iter().any(|name| name.starts_with("/psm_"));
        let says_so = || OF_MEMORY.iter().any(|words| self.lower.contains(words));
        self.errno == EACCES && (self.in_memory || says_so() || names_segment())
    }

    /// Returns the paths in the line: first those in quotes, then those between colons.
    pub fn paths(&self) -> Vec<&'a str> {
        if self.is_of_memory() {
            return vec![MEMORY];
        }
        let before = self.before();
        if let Some(path) = names::redirected(before).filter(|_| self.is_of_a_shell()) {
            return usable(vec![path]);
        }
        let mut paths = quoted(self.line);
        let mut segments = before.split(": ").filter(|segment| !segment.trim().is_empty());
        // The first segment is mostly the program's own name, as in `/usr/bin/bash: line 1: x: Permission denied`.
        let (first, rest) = (segments.next().unwrap_or_default(), segments.collect::<Vec<_>>());
        paths.extend(rest.iter().filter_map(|segment| names::path_in(segment)));
        paths.extend(rest.last().and_then(|last| names::name_in(last)));
        if paths.is_empty() && (rest.is_empty() || !self.is_of_a_shell()) {
            paths.extend(names::path_in(first));
        }
        if let Some(path) = self.after().filter(|path| !paths.contains(path)) {
            paths.push(path);
        }
        usable(paths)
    }

    /// Returns the path after the phrase that reports the error, as in `AccessDeniedException: /etc/x` or `Permission
    /// denied @ rb_sysopen - /etc/x (Errno::EACCES)`.
    fn after(&self) -> Option<&'a str> {
        let rest = self.line.get(self.at.end..)?;
        let end = |c: char| c.is_whitespace() || ",;()".contains(c);
        rest.split(end).map(|word| word.trim_matches([':', '.'])).find(|word| word.starts_with('/'))
    }

    /// True if the line only quotes an error: a search result, a test's name, a message of another machine.
    fn is_quotation(&self) -> bool {
        let first = self.line.split(char::is_whitespace).next().unwrap_or_default();
        let is_match = first.split_once(':').is_some_and(|(name, rest)| {
            !name.is_empty() && !rest.is_empty() && !rest.starts_with(['/', ':'])
        });
        let is_test = first == "test" && (self.lower.contains(" ... ") || self.lower.ends_with("..."));
        let rest = self.lower.get(self.at.end..).unwrap_or_default();
        let phrase = self.lower.get(self.at.clone()).unwrap_or_default();
        let is_quoted = !names::without_quoted(self.line, &self.lower).contains(phrase);
        // Another machine's refusal, as ssh passes it on.
        let is_remote = rest.starts_with(" (publickey") || rest.starts_with(" (password");
        is_match || is_test || is_remote || self.lower.contains("assert") || is_quoted
    }
}

/// Removes texts that are too long, and names like `/dev/tcp/HOST/PORT`: for these bash opens a connection, no file.
fn usable(mut paths: Vec<&str>) -> Vec<&str> {
    let is_a_shells_own = |path: &str| path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/");
    paths.retain(|path| !path.is_empty() && path.len() <= 4096 && !is_a_shells_own(path));
    paths
}

#[cfg(test)]
mod tests;
