//! What a failed command's output says of a denial. Programs print what they like, so this is never more than likely.

use std::path::{Component, PathBuf};

use ipc::denial::{Denial, Grade};
use ipc::path::WirePath;
use ipc::rights::Network;
use ipc::tool::{Access, CommandExit, CommandResult, ShellExec};

use super::Standing;
use super::message::{Message, REFUSALS};
use super::standing::is_kernel_tree;

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
            .or_else(|| lines().filter(|_| networked).find_map(|line| self.unreached(line)))
            .or_else(|| self.refused_socket(lines().filter(|_| networked)))
    }

    fn refused_path(&self, call: &ShellExec, line: &str) -> Option<Denial> {
        let lower = line.to_ascii_lowercase();
        let message = Message::new(call, line, &lower)?;
        message.paths().iter().find_map(|named| self.missing_for(call, &message, named))
    }

    fn missing_for(&self, call: &ShellExec, message: &Message<'_>, named: &str) -> Option<Denial> {
        let path = self.absolute(call, named)?;
        if !self.rights.allows_read(&path) {
            // Nearly every complaint about what is hidden is one of reading it, so a change has to be told in so many words.
            return Some(if message.tells_of_writing(named) {
                self.unwritable(&path, Grade::Likely, None)
            } else {
                self.unreadable(&path, Grade::Likely)
            });
        }
        if message.is_held() {
            return self.holds(&path).then(|| self.immovable(&path, Grade::Likely));
        }
        let uncovered = !self.allows_write(&path) && !is_kernel_tree(&path);
        (uncovered && message.is_about_writing(named)).then(|| {
            let denial = Denial { errno: None, ..self.unwritable(&path, Grade::Likely, message.errno()) };
            if message.tells_of_removal() { self.of_removal(denial, &path) } else { denial }
        })
    }

    /// Who may write a file may not take it away: that is a matter of its directory, for Landlock as for mounts.
    fn of_removal(&self, denial: Denial, path: &WirePath) -> Denial {
        match path.as_path().parent().map(WirePath::from).filter(|parent| !self.allows_write(parent)) {
            Some(parent) if denial.grant.is_some() => Denial {
                missing_right: format!("write {parent}"),
                grant: self.write_grant(&parent),
                ..denial
            },
            _ => denial,
        }
    }

    fn unreached(&self, line: &str) -> Option<Denial> {
        let lower = line.to_ascii_lowercase();
        if self.rights.net == Network::On || !UNREACHED.iter().any(|phrase| lower.contains(phrase)) {
            return None;
        }
        let host = host(line).unwrap_or("the network");
        Some(self.unreachable(host, Grade::Likely))
    }

    /// An interpreter's bare `Operation not permitted` under a trace that names a socket.
    fn refused_socket<'a>(&self, mut lines: impl Iterator<Item = &'a str>) -> Option<Denial> {
        let mut seen = false;
        let refused = lines.any(|line| {
            seen |= line.contains("socket");
            seen && line.to_ascii_lowercase().trim_end().ends_with("operation not permitted")
        });
        (refused && self.rights.net == Network::Off).then(|| self.unreachable("the network", Grade::Likely))
    }

    /// The path that a command names, without `.` and `..`; nothing is looked up.
    fn absolute(&self, call: &ShellExec, named: &str) -> Option<WirePath> {
        let cwd = call.cwd.as_ref().map_or_else(PathBuf::new, |cwd| cwd.as_path().to_owned());
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
        REFUSALS.iter().chain(&UNREACHED).any(|phrase| lower.contains(phrase))
    };
    call.access == Access::Read
        && result.exit != CommandExit::Code(0)
        && (complains(&result.head) || complains(&result.tail))
}

/// The host in `Could not resolve host: NAME`, `… hostname NAME: …` or `… host address ‘NAME’`.
fn host(line: &str) -> Option<&str> {
    const PHRASE: &str = "resolve host";
    let at = line.to_ascii_lowercase().rfind(PHRASE)? + PHRASE.len();
    let rest = line.get(at..)?;
    let rest = rest.strip_prefix("name").or_else(|| rest.strip_prefix(" address")).unwrap_or(rest);
    let part = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    let name = rest.trim_start_matches(|c| !part(c)).split(|c| !part(c)).next()?;
    (!name.is_empty() && name.len() <= 253).then_some(name)
}
