//! Commands that the user or the project defines: texts for the prompt, with placeholders for arguments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum size in bytes of a command's text with its arguments.
const MOST: usize = 256 << 10;

/// A command that the user or the project defines, in a file `NAME.md`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OwnCommand {
    /// The command's name, without the slash.
    pub name: String,
    /// One line about the command.
    pub description: String,
    /// The text of the message, with the placeholders `$ARGUMENTS` and `$1` to `$9`.
    pub text: String,
    /// True if the turn that the command starts only reads, and nothing is approved in it.
    pub reads: bool,
    /// The model that answers; absent for the session's model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// True if the project defines the command, and not the user.
    pub of_project: bool,
}

/// Part of a command's text: words, or a placeholder for arguments.
#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
    Words(&'a str),
    All,
    One(usize),
}

impl OwnCommand {
    /// True if the text has a placeholder for arguments.
    pub fn takes_arguments(&self) -> bool {
        parts(&self.text).iter().any(|part| !matches!(part, Part::Words(_)))
    }

    /// Returns the text with these arguments. Placeholders in arguments are not replaced. A text without placeholders
    /// is followed by the arguments.
    ///
    /// Fails if the message would be too long.
    pub fn with_arguments(&self, arguments: &str) -> Result<String, String> {
        let arguments = arguments.trim();
        let words = words(arguments);
        let mut message = String::new();
        for part in parts(&self.text) {
            message.push_str(match part {
                Part::Words(text) => text,
                Part::All => arguments,
                Part::One(at) => words.get(at).map_or("", String::as_str),
            });
            self.check(&message)?;
        }
        if !self.takes_arguments() && !arguments.is_empty() {
            message = format!("{}\n\n{arguments}", message.trim_end());
        }
        self.check(&message)?;
        Ok(message)
    }

    fn check(&self, message: &str) -> Result<(), String> {
        if message.len() <= MOST {
            return Ok(());
        }
        Err(format!(
            "cannot use /{}: with these arguments the command's text has more than {MOST} bytes",
            self.name
        ))
    }
}

/// Splits a text into words and placeholders. A backslash before a placeholder makes it plain text.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut begin, mut from) = (0, 0);
    while let Some(at) = text[from..].find('$').map(|at| from + at) {
        let Some((place, end)) = place(text, at) else {
            from = at + 1;
            continue;
        };
        if text[begin..at].ends_with('\\') {
            parts.push(Part::Words(&text[begin..at - 1]));
            begin = at;
        } else {
            parts.extend([Part::Words(&text[begin..at]), place]);
            begin = end;
        }
        from = end;
    }
    parts.push(Part::Words(&text[begin..]));
    parts
}

/// Returns the placeholder that begins with the dollar sign at `at`, and the position after it, if there is one.
fn place(text: &str, at: usize) -> Option<(Part<'_>, usize)> {
    const ALL: &str = "ARGUMENTS";
    let name = &text[at + 1..];
    let ends_word = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    if let Some(rest) = name.strip_prefix(ALL) {
        return ends_word(rest).then_some((Part::All, at + 1 + ALL.len()));
    }
    let digit = name.chars().next()?.to_digit(10).filter(|digit| *digit > 0)?;
    ends_word(&name[1..]).then_some((Part::One(digit as usize - 1), at + 2))
}

/// Splits arguments at blanks. Quotes keep an argument with blanks together.
fn words(arguments: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in arguments.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') if word.is_none() => (quote, word) = (Some(c), Some(String::new())),
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str, arguments: &str) -> String {
        let command = OwnCommand {
            name: "c".to_owned(),
            description: String::new(),
            text: text.to_owned(),
            reads: false,
            model: None,
            of_project: false,
        };
        command.with_arguments(arguments).unwrap_or_else(|error| error)
    }

    #[test]
    fn arguments_take_their_places_and_nothing_else_is_expanded() {
        for (text, arguments, expected) in [
            ("fix $ARGUMENTS now", " a  b ", "fix a  b now"),
            ("$1 then $2, $3.", "a 'b c'", "a then b c, ."),
            ("$2$1", "\"x\" y", "yx"),
            ("it's $1", "it's", "it's it's"),
            ("$ARGUMENTS", "$1 $ARGUMENTS $(id) `id` ${HOME}", "$1 $ARGUMENTS $(id) `id` ${HOME}"),
            ("costs $10, $0, $x, $ARGUMENTSX, $1st; $", "a", "costs $10, $0, $x, $ARGUMENTSX, $1st; $\n\na"),
            (r"\$1 and \$ARGUMENTS: $1", "a", "$1 and $ARGUMENTS: a"),
            ("$(rm -rf /) `id` $HOME", "", "$(rm -rf /) `id` $HOME"),
            ("say it.\n", "to me", "say it.\n\nto me"),
            ("é$1é $1", "ü", "é$1é ü"),
        ] {
            assert_eq!(expanded(text, arguments), expected, "{text}");
        }
    }

    #[test]
    fn a_message_has_a_bound() {
        let many = "$ARGUMENTS ".repeat(5000);
        assert!(expanded(&many, &"x".repeat(1000)).starts_with("cannot use /c: with these arguments"));
        assert!(expanded("short", &"x".repeat(MOST)).starts_with("cannot use /c"));
    }
}
