//! Hints about a command that never ran.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gate::shell_word::shell_word;

/// The place where its start stopped.
#[derive(Debug, Default)]
pub(super) struct Stopped {
    /// The stage of sandbox-exec, by its name; empty if it named none.
    pub(super) stage: String,
    /// The signal to us that ended the start, if one did.
    pub(super) signal: Option<i32>,
}

/// The program and the project of the command line.
pub(super) struct StopAsked {
    pub(super) program: OsString,
    pub(super) project: PathBuf,
}

impl Stopped {
    /// At a stage of sandbox-exec.
    pub(super) fn at(stage: String) -> Self {
        Self { stage, signal: None }
    }

    /// By a signal to us.
    pub(super) fn by(signal: i32) -> Self {
        Self { stage: String::new(), signal: Some(signal) }
    }

    /// True if the machine lacks something, and the command line is not at fault.
    pub(super) fn is_of_the_machine(&self) -> bool {
        !matches!(self.stage.as_str(), "execute" | "directory" | "rules")
    }

    /// A remedy. Most stages need something of the machine; some need something of the one who gave the command.
    pub(super) fn hint(&self, StopAsked { program, project }: &StopAsked) -> String {
        match self.stage.as_str() {
            "execute" => executable(program, project),
            "directory" => "choose a project with -C that you can enter".to_owned(),
            "rules" => format!("bailiwick explain{} . shows the access to the project", there(project)),
            _ => "bailiwick doctor shows the parts that this machine lacks".to_owned(),
        }
    }
}

/// A name without a slash is looked up in PATH, and `explain` would take it for a command.
fn executable(program: &OsStr, project: &Path) -> String {
    let word = shell_word(program);
    if program.as_bytes().contains(&b'/') {
        format!("bailiwick explain{} --as path {word} shows the access to it", there(project))
    } else {
        format!("install {word}, or name a program by its path")
    }
}

fn there(project: &Path) -> String {
    if project == Path::new(".") { String::new() } else { format!(" -C {}", shell_word(project)) }
}
