//! Command prefixes that a user typed, and descriptions of the commands that they cover.

use super::lexical::{MAX_LENGTH, is_plain_word};
use super::{programs, shell};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    #[error("a command prefix needs at least one word: the name of the program")]
    Empty,
    #[error("a command prefix can have at most {MAX_LENGTH} bytes")]
    TooLong,
    /// The word has a special meaning to a shell.
    #[error(
        "{0:?} is not a plain word: a command prefix cannot contain quotes, variables, patterns, operators or redirections"
    )]
    NotPlain(String),
    #[error("{0:?} is a word of the shell itself, and can change the meaning of the rest of a command")]
    Shell(String),
}

pub fn parse_prefix(text: &str) -> Result<Vec<String>, PrefixError> {
    if text.len() > MAX_LENGTH {
        return Err(PrefixError::TooLong);
    }
    // Other white space is left in the words, which are then rejected.
    let words: Vec<_> = text.split([' ', '\t']).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    check_prefix(&words)?;
    Ok(words)
}

/// Fails unless these words are a valid prefix.
pub fn check_prefix(words: &[String]) -> Result<(), PrefixError> {
    let program = words.first().ok_or(PrefixError::Empty)?;
    if let Some(word) = words.iter().find(|word| !is_plain_word(word)) {
        return Err(PrefixError::NotPlain(word.clone()));
    }
    if shell::is_part_of_it(program) { Err(PrefixError::Shell(program.clone())) } else { Ok(()) }
}

/// Describes the commands that a prefix matches, for the person who approves it.
pub fn preview(prefix: &[String]) -> String {
    let refused = match check_prefix(prefix) {
        Ok(()) => None,
        Err(error) => Some(format!("Matches nothing: {error}.")),
    };
    refused.unwrap_or_else(|| {
        let words = prefix.join(" ");
        let mut text = format!(
            "Matches `{words} …`, alone or joined by ; && || | or a line break with other allowed commands. Bailiwick still asks for lines with $, backquotes, globs, redirections to files, & or VAR=."
        );
        if let Some(warning) = warning(prefix) {
            text.push(' ');
            text.push_str(&warning);
        }
        text
    })
}

fn warning(prefix: &[String]) -> Option<String> {
    let program = prefix.first()?;
    if programs::runs_anything(prefix) {
        return Some(format!("Careful: `{program}` runs other programs, so this allows any program."));
    }
    let all = prefix.len() == 1 && programs::has_subcommands(program);
    all.then(|| format!("Careful: this allows everything that `{program}` can do."))
}
