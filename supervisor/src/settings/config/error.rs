//! The errors of settings files, each with its place and a remedy.

use std::fmt;
use std::io;
use std::path::PathBuf;

use protocol::shell_word::shell_word;

use super::origin::{SettingPlace, printable};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub place: SettingPlace,
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, what } = self;
        write!(f, "{}:{}: {what}", place, place.column)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("cannot read {}: {source}", printable(.file))]
    Unreadable { file: PathBuf, source: io::Error },
    /// The project's directory cannot be read.
    #[error("cannot read the project {}: {source}\n  hint: ls -ld {} shows the owner of the project", printable(.project), printable(.project))]
    UnreadableProject { project: PathBuf, source: io::Error },
    /// The path is not a regular file.
    #[error("{} is {what}, and not a regular file of settings\n  hint: remove that path, or put a regular file there", printable(.file))]
    NotAFile {
        file: PathBuf,
        /// The kind of the file in words.
        what: &'static str,
    },
    #[error("{} has more than {most} bytes\n  hint: settings are short; check the content of this file", printable(.file))]
    TooLarge { file: PathBuf, most: usize },
    /// Other users could change the file, and with it the access of agents.
    #[error(
        "{} has mode {mode:03o}: other users can change this file, and with it the access of agents\n  hint: chmod go-w {}",
        printable(.path), shell_word(.path)
    )]
    OpenToOthers { path: PathBuf, mode: u32 },
    #[error("{} belongs to uid {owner}\n  hint: use a file of your own", printable(.path))]
    Foreign { path: PathBuf, owner: u32 },
    /// The file has errors.
    #[error("{}", lines(.0))]
    Wrong(Vec<Problem>),
    /// The project's file has an error in a setting that could restrict agents.
    #[error("{}\n  hint: correct the file: a limit that cannot be read would have no effect", lines(.0))]
    WrongInProject(Vec<Problem>),
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
