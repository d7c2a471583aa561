//! A prefix as a user writes it, and what it would cover.

use super::lexical::{MAX_LENGTH, is_plain_word};
use super::{programs, shell};

/// Why a text is no prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// There is no word in it.
    #[error("a prefix has at least one word, the program")]
    Empty,
    /// It is longer than any command that could be covered.
    #[error("a prefix has at most {MAX_LENGTH} bytes")]
    TooLong,
    /// A word in it is more than a word to a shell.
    #[error(
        "{0:?} is not a plain word: a prefix has no quotes, variables, patterns, operators or redirections"
    )]
    NotPlain(String),
    /// What it begins with is no program.
    #[error("{0:?} is part of the shell itself: what it does to the rest of a command cannot be told")]
    Shell(String),
}

/// The words of a prefix, from what a user typed.
pub fn parse_prefix(text: &str) -> Result<Vec<String>, PrefixError> {
    if text.len() > MAX_LENGTH {
        return Err(PrefixError::TooLong);
    }
    // Other white space is left in the words, and refused with them.
    let words: Vec<_> = text.split([' ', '\t']).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    check_prefix(&words)?;
    Ok(words)
}

/// Whether these words are a prefix that a user could have typed.
pub fn check_prefix(words: &[String]) -> Result<(), PrefixError> {
    let program = words.first().ok_or(PrefixError::Empty)?;
    if let Some(word) = words.iter().find(|word| !is_plain_word(word)) {
        return Err(PrefixError::NotPlain(word.clone()));
    }
    if shell::is_part_of_it(program) { Err(PrefixError::Shell(program.clone())) } else { Ok(()) }
}

/// Describes the commands that a prefix matches, for the one who approves it.
pub fn preview(prefix: &[String]) -> String {
    let refused = match check_prefix(prefix) {
        Ok(()) => None,
        Err(error) => Some(format!("Matches nothing: {error}.")),
    };
    refused.unwrap_or_else(|| {
        let words = prefix.join(" ");
        let mut text = format!(
            "Matches `{words} …`, alone or joined by ; && || | or a line break with other allowed commands. Lines \
             with $, backquotes, globs, redirections to files, & or VAR= still ask."
        );
        if let Some(warning) = warning(prefix) {
            text.push(' ');
            text.push_str(&warning);
        }
        text
    })
}

/// What one may not see in so few words.
fn warning(prefix: &[String]) -> Option<String> {
    let program = prefix.first()?;
    if programs::runs_anything(prefix) {
        return Some(format!("Careful: `{program}` runs other programs, so this allows any program."));
    }
    let all = prefix.len() == 1 && programs::has_subcommands(program);
    all.then(|| format!("Careful: this allows everything that `{program}` can do."))
}
