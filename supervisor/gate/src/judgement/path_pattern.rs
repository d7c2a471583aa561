//! Path patterns, and the files that they cover.
//!
//! If a person approves a pattern for the session, matching files are changed without a request. A pattern is relative
//! to the project. It never covers files that the host runs later.

use std::fmt;
use std::path::{Component, Path};

use globset::{GlobBuilder, GlobMatcher};

use crate::protected::is_acted_on;

/// Maximum size of a pattern in bytes. The size of the compiled pattern grows with it.
const MAX_LENGTH: usize = 512;

/// Glob for paths in a project: `*` and `?` match within a name, `**` any number of directories, `{a,b}` one of the
/// choices, `[a-z]` one of the characters.
#[derive(Clone, Debug)]
pub struct PathPattern {
    text: String,
    matcher: GlobMatcher,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("a path pattern cannot be empty")]
    Empty,
    #[error("a path pattern can have at most {MAX_LENGTH} bytes")]
    TooLong,
    #[error("a path pattern must be relative to the project: {0:?} is not a relative path")]
    Absolute(String),
    #[error("a path pattern cannot contain `.`, `..` or an empty name: {0:?}")]
    Component(String),
    /// The pattern contains a special or invisible character.
    #[error("a path pattern cannot contain {0:?}")]
    Character(char),
    #[error("{0:?} affects your programs outside of the sandbox: Bailiwick asks before each change")]
    Protected(String),
    #[error("{pattern:?} is not a pattern: {reason}")]
    Glob { pattern: String, reason: String },
}

impl PathPattern {
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

    /// True if the pattern covers `path`, which is absolute and without links.
    pub fn covers(&self, project: &Path, path: &Path) -> bool {
        let Ok(relative) = path.strip_prefix(project) else { return false };
        project.is_absolute()
            && is_literal(project)
            && is_literal(path)
            && relative.to_str().is_some_and(|text| !text.is_empty() && !text.chars().any(char::is_control))
            && !is_acted_on(relative)
            && self.matcher.is_match(relative)
    }

    /// Returns the text for the person who approves the pattern: what it covers, and what it never covers.
    pub fn preview(&self) -> String {
        format!(
            "Matches paths in the project like `{self}`; never .git, editor tasks, or settings of shells and agents: Bailiwick still asks for these."
        )
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// True if each component of an absolute path is a name. `Path` itself drops `.` and empty components.
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

/// Returns the components before the first one with a wildcard.
fn literal_beginning(text: &str) -> std::path::PathBuf {
    text.split('/').take_while(|name| !name.contains(['*', '?', '[', '{'])).collect()
}
