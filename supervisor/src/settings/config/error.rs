//! What is wrong with a file of settings: what, where, and what to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use gate::shell_word::shell_word;

use super::origin::{SettingPlace, printable};

/// One thing that is wrong in a file.
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
    /// The project itself cannot be read.
    #[error("cannot read the project {}: {source}\n  hint: ls -ld {} shows whose it is", printable(.project), printable(.project))]
    UnreadableProject {
        /// Its directory.
        project: PathBuf,
        source: io::Error,
    },
    /// It is no regular file.
    #[error("{} is {what}, and not a file of settings\n  hint: remove it, or put a regular file there", printable(.file))]
    NotAFile {
        file: PathBuf,
        /// Its kind, in words.
        what: &'static str,
    },
    #[error("{} has more than {most} bytes\n  hint: settings are short; look at what it holds", printable(.file))]
    TooLarge {
        file: PathBuf,
        /// The limit in bytes.
        most: usize,
    },
    /// Others could widen what agents may do.
    #[error(
        "{} has mode {mode:03o}: others may change it, and with it what agents may do\n  hint: chmod go-w {}",
        printable(.path), shell_word(.path)
    )]
    OpenToOthers {
        /// The file or directory.
        path: PathBuf,
        mode: u32,
    },
    /// It belongs to another user.
    #[error("{} belongs to uid {owner}\n  hint: use a file of your own", printable(.path))]
    Foreign {
        /// The file or directory.
        path: PathBuf,
        owner: u32,
    },
    /// It has errors.
    #[error("{}", lines(.0))]
    Wrong(Vec<Problem>),
    /// Something in a project's file is wrong that may narrow.
    #[error("{}\n  hint: correct the file: a limit in it that cannot be read would be lost", lines(.0))]
    WrongInProject(Vec<Problem>),
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
