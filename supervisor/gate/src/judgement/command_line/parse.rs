//! Parses a command into simple commands.
//!
//! Not a grammar of bash: accepts one form, in which nothing is expanded, substituted, nested or escaped, and in which
//! bash sees the same words.

use super::lexical::{MAX_LENGTH, is_blank, is_delimiter, is_plain, is_plain_word, is_quotable, is_quote};
use super::shell;

/// Maximum number of simple commands in a command that a prefix can cover.
const MAX_COMMANDS: usize = 64;

/// Operators that may join two commands, longer ones first.
const OPERATORS: [&str; 5] = ["&&", "||", "|", ";", "\n"];

/// Redirections that access no file. In a command, blanks may precede `/dev/null`.
const REDIRECTIONS: [&str; 8] =
    [">/dev/null", "1>/dev/null", "2>/dev/null", "&>/dev/null", "</dev/null", "2>&1", "1>&2", ">&2"];

/// The only file name that a redirection may have.
const NOWHERE: &str = "/dev/null";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SimpleCommand {
    pub(super) words: Vec<String>,
}

impl SimpleCommand {
    pub(super) fn program(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }
}

/// Returns the simple commands of a text. `None` if it is not certain that bash runs exactly these.
pub(super) fn simple_commands(text: &str) -> Option<Vec<SimpleCommand>> {
    if text.len() > MAX_LENGTH {
        return None;
    }
    let mut reader = WordReader { rest: text };
    reader.skip(is_space);
    let (mut commands, mut may_end) = (Vec::new(), true);
    while !reader.rest.is_empty() {
        if commands.len() == MAX_COMMANDS {
            return None;
        }
        commands.push(reader.command()?);
        may_end = reader.join()?;
    }
    may_end.then_some(commands)
}

struct WordReader<'a> {
    rest: &'a str,
}

impl<'a> WordReader<'a> {
    fn command(&mut self) -> Option<SimpleCommand> {
        let mut words = vec![self.program()?.to_owned()];
        // Blanks separate words and redirections.
        while self.skip(is_blank) {
            // "&>" begins like an operator.
            if !self.redirection() && !is_delimited(self.rest) {
                words.push(self.word()?);
            }
        }
        Some(SimpleCommand { words })
    }

    fn program(&mut self) -> Option<&'a str> {
        let name = self.plain().filter(|name| !name.contains('=') && !shell::is_reserved(name))?;
        is_delimited(self.rest).then_some(name)
    }

    fn word(&mut self) -> Option<String> {
        let mut word = self.piece()?.to_owned();
        while !is_delimited(self.rest) {
            word.push_str(self.piece()?);
        }
        Some(word)
    }

    /// Reads a part of a word, without its quotes. `None` if bash could change it.
    fn piece(&mut self) -> Option<&'a str> {
        let quoted = self.rest.starts_with(is_quote);
        if quoted { self.quoted() } else { self.plain() }
    }

    fn quoted(&mut self) -> Option<&'a str> {
        let quote = self.rest.chars().next()?;
        let (text, rest) = self.rest.strip_prefix(quote)?.split_once(quote)?;
        self.rest = rest;
        text.chars().all(|c| is_quotable(quote, c)).then_some(text)
    }

    fn plain(&mut self) -> Option<&'a str> {
        let end = self.rest.find(|c| !is_plain(c)).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        is_plain_word(text).then_some(text)
    }

    /// Skips a redirection. False if none of [`REDIRECTIONS`] follows.
    fn redirection(&mut self) -> bool {
        let rest = REDIRECTIONS.iter().find_map(|listed| behind(self.rest, listed));
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Skips an operator. True if the text may end after it; `None` if no operator of [`OPERATORS`] follows.
    fn join(&mut self) -> Option<bool> {
        if self.rest.is_empty() {
            return Some(true);
        }
        let operator = OPERATORS.iter().find(|operator| self.rest.starts_with(**operator))?;
        self.rest = self.rest.strip_prefix(operator)?;
        self.skip(is_space);
        Some(matches!(*operator, ";" | "\n"))
    }

    /// Skips matching characters. True if there were any.
    fn skip(&mut self, skipped: fn(char) -> bool) -> bool {
        let rest = self.rest.trim_start_matches(skipped);
        let any = rest.len() < self.rest.len();
        self.rest = rest;
        any
    }
}

/// Returns the text after the redirection `listed`. `None` if `text` begins otherwise: `2>&1x` redirects to a file.
fn behind<'a>(text: &'a str, listed: &str) -> Option<&'a str> {
    let rest = match listed.strip_suffix(NOWHERE) {
        Some(operator) => text.strip_prefix(operator)?.trim_start_matches(is_blank).strip_prefix(NOWHERE)?,
        None => text.strip_prefix(listed)?,
    };
    is_delimited(rest).then_some(rest)
}

fn is_delimited(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(is_delimiter)
}

const fn is_space(c: char) -> bool {
    is_blank(c) || c == '\n'
}
