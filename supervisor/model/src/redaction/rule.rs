//! A rule of `rules.txt`. Each rule recognises one form of secret.

use std::collections::BTreeSet;

use memchr::memmem;
use regex_automata::Input;
use regex_automata::meta::{BuildError, Regex};

const LIST: &str = include_str!("rules.txt");

/// Id of the rule that recognises a secret by the name before it, such as `api_key=`, and not by its own form.
const GENERIC: &str = "generic-api-key";

/// Minimum Shannon entropy of a text that looks random, in bits per character.
const LEAST_ENTROPY: f64 = 3.3;

/// Maximum compiled size of a rule, in bytes.
const LARGEST: usize = 4 << 20;

#[derive(Debug, thiserror::Error)]
pub enum NotRules {
    #[error("line {0:?} of the list of rules is not a rule")]
    Line(&'static str),
    #[error("the regular expression of the rule {0} cannot be used: {1}")]
    Expression(&'static str, Box<BuildError>),
}

pub(super) struct RedactionRule {
    name: &'static str,
    /// Lower-case words. Every text with a secret of this form contains at least one of them (letter case is ignored).
    words: Vec<String>,
    expression: Regex,
}

pub(super) fn rules() -> Result<Vec<RedactionRule>, NotRules> {
    LIST.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(RedactionRule::new).collect()
}

impl RedactionRule {
    fn new(line: &'static str) -> Result<Self, NotRules> {
        let mut parts = line.splitn(3, "  ").map(str::trim);
        let (Some(name), Some(words), Some(expression)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(NotRules::Line(line));
        };
        let config = Regex::config().nfa_size_limit(Some(LARGEST)).onepass_size_limit(Some(LARGEST));
        let expression = Regex::builder().configure(config).build(expression);
        let expression = expression.map_err(|error| NotRules::Expression(name, Box::new(error)))?;
        Ok(Self { name, words: words.split(',').map(str::to_lowercase).collect(), expression })
    }

    pub(super) const fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn is_generic(&self) -> bool {
        self.name == GENERIC
    }

    /// Replaces this rule's secrets by its name. Returns the new text (`None` without secrets), and their number.
    pub(super) fn without(&self, text: &str) -> (Option<String>, u64) {
        let (mut without, mut kept, mut count) = (String::new(), 0, 0);
        let mut captures = self.expression.create_captures();
        let mut at = 0;
        while at <= text.len() {
            self.expression.captures(Input::new(text).range(at..), &mut captures);
            let Some(whole) = captures.get_match() else { break };
            let secret = captures.get_group(1).unwrap_or_else(|| whole.span());
            // After an empty match, the search continues at the next character.
            at = whole.end().max(at + 1);
            while !text.is_char_boundary(at) {
                at += 1;
            }
            let Some(found) = text.get(secret.start..secret.end) else { continue };
            if self.is_generic() && !looks_random(found) {
                continue;
            }
            without.push_str(text.get(kept..secret.start).unwrap_or_default());
            without.push_str("[redacted: ");
            without.push_str(self.name);
            without.push(']');
            kept = secret.end;
            count += 1;
        }
        without.push_str(text.get(kept..).unwrap_or_default());
        (if count > 0 { Some(without) } else { None }, count)
    }

    /// True if a lower-case text contains one of the rule's words. In most texts, only these words are searched for.
    pub(super) fn is_possible(&self, small: &str) -> bool {
        self.words.iter().any(|word| memmem::find(small.as_bytes(), word.as_bytes()).is_some())
    }
}

fn looks_random(text: &str) -> bool {
    let is_mixed =
        text.bytes().any(|byte| byte.is_ascii_digit()) && text.bytes().any(|byte| byte.is_ascii_alphabetic());
    is_mixed && entropy(text) >= LEAST_ENTROPY
}

fn entropy(text: &str) -> f64 {
    let kinds: BTreeSet<u8> = text.bytes().collect();
    let count = |kind: u8| text.bytes().filter(|byte| *byte == kind).count();
    #[expect(clippy::cast_precision_loss, reason = "a text of this rule is short")]
    let share = |kind: u8| count(kind) as f64 / text.len() as f64;
    kinds.into_iter().map(share).map(|share| -share * share.log2()).sum()
}
