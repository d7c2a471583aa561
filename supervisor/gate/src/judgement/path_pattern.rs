//! Which files a path pattern covers.
//!
//! A pattern that was approved for the session lets changes of matching files through without a prompt. It is relative to
//! the project and stays in it, whatever it says; what the host runs later is never covered.

use std::fmt;
use std::path::{Component, Path};

use globset::{GlobBuilder, GlobMatcher};

use crate::protected::is_acted_on;

/// The longest pattern, in bytes: what it compiles to grows with it.
const MAX_LENGTH: usize = 512;

/// A glob over the paths of a project: `*` and `?` stay within a name, `**` is any number of directories, `{a,b}` a choice,
/// `[a-z]` one of these characters.
#[derive(Clone, Debug)]
pub struct PathPattern {
    text: String,
    matcher: GlobMatcher,
}

/// Why a text is no path pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// There is nothing in it.
    #[error("a path pattern has at least one name")]
    Empty,
    /// It is too long.
    #[error("a path pattern has at most {MAX_LENGTH} bytes")]
    TooLong,
    /// It does not begin in the project.
    #[error("a path pattern is relative to the project: {0:?} is not")]
    Absolute(String),
    /// A part of it is no name.
    #[error(
        "a path pattern consists of names and stays in the project: {0:?} has `.`, `..` or an empty name"
    )]
    Component(String),
    /// It has characters that stand for something else, or cannot be seen.
    #[error("a path pattern has no {0:?}")]
    Character(char),
    /// It names what is never covered.
    #[error("{0:?} is what the user's own programs act on: each change of it is asked for")]
    Protected(String),
    /// It is no glob.
    #[error("{pattern:?} is no pattern: {reason}")]
    Glob {
        /// What was given.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl PathPattern {
    /// A pattern, from what a user typed.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        check(text)?;
        let bad = |error: globset::Error| PatternError::Glob {
            pattern: text.to_owned(),
            reason: error.kind().to_string(),
        };
        let glob =
            GlobBuilder::new(text).literal_separator(true).backslash_escape(false).build().map_err(bad)?;
        Ok(Self { text: text.to_owned(), matcher: glob.compile_matcher() })
    }

    /// Whether a change of the file at `path`, absolute and without links, is covered in this project.
    pub fn covers(&self, project: &Path, path: &Path) -> bool {
        let Ok(relative) = path.strip_prefix(project) else { return false };
        project.is_absolute()
            && is_literal(project)
            && is_literal(path)
            && relative.to_str().is_some_and(|text| !text.is_empty() && !text.chars().any(char::is_control))
            && !is_acted_on(relative)
            && self.matcher.is_match(relative)
    }

    /// What it would cover, and what never, in a sentence for the one who approves it.
    pub fn preview(&self) -> String {
        format!(
            "Matches paths in the project like `{self}`; never .git, editor tasks, or settings of shells and agents: these \
             still ask."
        )
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Whether each component of an absolute path is a name, as it is written: `Path` drops `.` and empty ones itself.
fn is_literal(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
}

fn check(text: &str) -> Result<(), PatternError> {
    if text.is_empty() {
        return Err(PatternError::Empty);
    }
    if text.len() > MAX_LENGTH {
        return Err(PatternError::TooLong);
    }
    if text.starts_with(['/', '~']) {
        return Err(PatternError::Absolute(text.to_owned()));
    }
    let odd = |c: char| c == '\\' || c.is_control() || (c.is_whitespace() && c != ' ');
    if let Some(c) = text.chars().find(|c| odd(*c)) {
        return Err(PatternError::Character(c));
    }
    let mut names = text.split('/');
    if names.any(|name| ["", ".", ".."].contains(&name)) {
        return Err(PatternError::Component(text.to_owned()));
    }
    if is_acted_on(&literal_beginning(text)) {
        return Err(PatternError::Protected(text.to_owned()));
    }
    Ok(())
}

/// The names before the first that matches more than itself.
fn literal_beginning(text: &str) -> std::path::PathBuf {
    text.split('/').take_while(|name| !name.contains(['*', '?', '[', '{'])).collect()
}
