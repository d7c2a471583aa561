use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use protocol::shell_word::shell_word;

#[derive(Debug, Default)]
pub(super) struct Stopped {
    pub(super) stage: String,
    pub(super) signal: Option<i32>,
}

/// The program and the project that the command line names, for advice in error messages.
pub(super) struct StopAsked {
    pub(super) program: OsString,
    pub(super) project: PathBuf,
}

impl Stopped {
    pub(super) fn at(stage: String) -> Self {
        Self { stage, signal: None }
    }

    /// Returns the error for a command that did not start, because this process received `signal`.
    pub(super) fn by(signal: i32) -> Self {
        Self { stage: String::new(), signal: Some(signal) }
    }

    pub(super) fn is_of_the_machine(&self) -> bool {
        !matches!(self.stage.as_str(), "execute" | "directory" | "rules")
    }

    /// Returns advice for the step that failed: about the machine, or about the person's command line.
    pub(super) fn hint(&self, StopAsked { program, project }: &StopAsked) -> String {
        match self.stage.as_str() {
            "execute" => executable(program, project),
            "directory" => "use -C with a project directory that you can open".to_owned(),
            "rules" => format!("bailiwick explain{} . shows the access to the project", there(project)),
            _ => "bailiwick doctor shows the parts that this machine lacks".to_owned(),
        }
    }
}

/// Returns advice for a program that cannot be executed. A name without a slash is looked up in PATH.
fn executable(program: &OsStr, project: &Path) -> String {
    let word = shell_word(program);
    if program.as_bytes().contains(&b'/') {
        format!("bailiwick explain{} --as path {word} shows the access to this program", there(project))
    } else {
        format!("install {word}, or give the path of the program")
    }
}

fn there(project: &Path) -> String {
    if project == Path::new(".") { String::new() } else { format!(" -C {}", shell_word(project)) }
}
