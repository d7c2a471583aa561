//! Sets of hosts that an agent may reach by name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Port of a rule that names none: HTTPS.
const DEFAULT_PORT: u16 = 443;

/// Maximum length of a host name in bytes (RFC 1035, without the final dot).
const MAX_NAME: usize = 253;

/// Maximum length of one label of a host name in bytes (RFC 1035).
const MAX_LABEL: usize = 63;

/// Maximum number of rules of one list.
pub const MAX_RULES: usize = 1024;

/// Name of a host, never an address: labels of ASCII letters, digits, `-` and `_`, in lower case, without a final dot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostName(String);

/// The reason why a text is not a host name, rule or list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// A label or the whole text is empty.
    #[error("the host name has an empty part between two dots")]
    Empty,
    /// The text exceeds the maximum length.
    #[error("a host name can have at most {MAX_NAME} bytes, and {MAX_LABEL} between two dots")]
    TooLong,
    /// The text has a character that host names cannot have.
    #[error("{0:?} cannot be part of a host name")]
    Character(char),
    /// The text has a letter that is not ASCII.
    #[error("{0:?} is not an ASCII letter; a name in another script is written as `xn--…`")]
    Script(char),
    /// The text is an address, in any notation.
    #[error("an address is not a host name; `--reach` is for addresses of this machine and its neighbours")]
    Literal,
    /// The port is not a number from 1 to 65535.
    #[error("the port must be a number from 1 to 65535")]
    Port,
    /// The list exceeds [`MAX_RULES`].
    #[error("a list of hosts can have at most {MAX_RULES} entries")]
    TooMany,
    /// The list is empty.
    #[error("the list of hosts is empty")]
    NoRule,
}

impl HostName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True if this name is `parent` with additional labels before it.
    pub fn is_below(&self, parent: &Self) -> bool {
        self.0.strip_suffix(&parent.0).is_some_and(|rest| rest.ends_with('.'))
    }
}

impl FromStr for HostName {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let text = text.strip_suffix('.').unwrap_or(text);
        if text.len() > MAX_NAME {
            return Err(HostError::TooLong);
        }
        for label in text.split('.') {
            if label.is_empty() {
                return Err(HostError::Empty);
            }
            if label.len() > MAX_LABEL {
                return Err(HostError::TooLong);
            }
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if let Some(other) = label.chars().find(|&c| !is_plain(c)) {
                return Err(match other {
                    ':' => HostError::Literal,
                    other if other.is_ascii() => HostError::Character(other),
                    other => HostError::Script(other),
                });
            }
            if label.starts_with('-') || label.ends_with('-') {
                return Err(HostError::Character('-'));
            }
        }
        if text.rsplit('.').next().is_some_and(is_number) {
            return Err(HostError::Literal);
        }
        Ok(Self(text.to_ascii_lowercase()))
    }
}

/// True if resolvers take a name that ends in this label for an address, such as `127.1` or `0x7f000001`
/// (`inet_aton(3)`).
fn is_number(label: &str) -> bool {
    let hexadecimal = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

impl TryFrom<String> for HostName {
    type Error = HostError;

    fn try_from(text: String) -> Result<Self, HostError> {
        text.parse()
    }
}

impl From<HostName> for String {
    fn from(name: HostName) -> Self {
        name.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Entry of a list of hosts: a name, or all names below it, at one port. `NAME[:PORT]` or `*.NAME[:PORT]`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "String"))]
pub struct HostRule {
    name: HostName,
    below: bool,
    port: u16,
}

impl HostRule {
    /// Returns the rule for exactly this name and port.
    pub const fn exactly(name: HostName, port: u16) -> Self {
        Self { name, below: false, port }
    }

    /// Returns the name in the rule, without `*.`.
    pub const fn name(&self) -> &HostName {
        &self.name
    }

    /// Returns the port to which the rule applies.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// True if the rule is for the names below [`HostRule::name`], and not for that name itself.
    pub const fn is_for_names_below(&self) -> bool {
        self.below
    }

    /// True if the rule permits this name at its port.
    pub fn names(&self, name: &HostName) -> bool {
        if self.below { name.is_below(&self.name) } else { self.name == *name }
    }

    /// True if this rule permits everything that `other` permits.
    fn covers(&self, other: &Self) -> bool {
        let name = match (self.below, other.below) {
            (true, true) => other.name == self.name || other.name.is_below(&self.name),
            (true, false) => other.name.is_below(&self.name),
            (false, true) => false,
            (false, false) => other.name == self.name,
        };
        name && self.port == other.port
    }
}

impl FromStr for HostRule {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let (below, rest) = text.strip_prefix("*.").map_or((false, text), |rest| (true, rest));
        if rest.contains('/') {
            return Err(HostError::Character('/'));
        }
        let (name, port) = match rest.split_once(':') {
            // More than one colon: an address of IPv6.
            Some((_, port)) if port.contains(':') => return Err(HostError::Literal),
            Some((name, port)) => {
                let digits = port.bytes().all(|byte| byte.is_ascii_digit());
                let port = port.parse().ok().filter(|&port| digits && port > 0).ok_or(HostError::Port)?;
                (name, port)
            }
            None => (rest, DEFAULT_PORT),
        };
        Ok(Self { name: name.parse()?, below, port })
    }
}

impl TryFrom<String> for HostRule {
    type Error = HostError;

    fn try_from(text: String) -> Result<Self, HostError> {
        text.parse()
    }
}

impl From<HostRule> for String {
    fn from(rule: HostRule) -> Self {
        rule.to_string()
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, below, port } = self;
        f.write_str(if *below { "*." } else { "" })?;
        name.fmt(f)?;
        if *port == DEFAULT_PORT { Ok(()) } else { write!(f, ":{port}") }
    }
}

/// A list of hosts, never empty. It is sorted, and no entry covers another, so lists of the same hosts are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<HostRule>", into = "Vec<HostRule>")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "Vec<String>"))]
pub struct Hosts(Vec<HostRule>);

impl Hosts {
    /// Returns the list of these rules, or `None` if there are none.
    pub fn new(rules: impl IntoIterator<Item = HostRule>) -> Option<Self> {
        let mut rules: Vec<_> = rules.into_iter().collect();
        rules.sort_unstable();
        rules.dedup();
        let all = rules.clone();
        rules.retain(|rule| !all.iter().any(|other| other != rule && other.covers(rule)));
        (!rules.is_empty()).then_some(Self(rules))
    }

    /// Returns the rules, sorted.
    pub fn rules(&self) -> &[HostRule] {
        &self.0
    }

    /// True if this name may be reached at this port.
    pub fn allows(&self, name: &HostName, port: u16) -> bool {
        self.0.iter().any(|rule| rule.port == port && rule.names(name))
    }

    /// True if this list permits everything that `other` permits.
    pub fn covers(&self, other: &Self) -> bool {
        other.0.iter().all(|rule| self.0.iter().any(|own| own.covers(rule)))
    }

    /// Returns the greatest list that both lists cover; `None` if they have nothing in common.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Option<Self> {
        let pairs = self.0.iter().flat_map(|own| other.0.iter().map(move |theirs| (own, theirs)));
        Self::new(pairs.filter_map(|(own, theirs)| {
            if own.covers(theirs) { Some(theirs.clone()) } else { theirs.covers(own).then(|| own.clone()) }
        }))
    }

    /// Returns the smallest list that covers both lists.
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        Self::new(self.0.iter().chain(&other.0).cloned()).unwrap_or_else(|| self.clone())
    }
}

impl From<HostRule> for Hosts {
    fn from(rule: HostRule) -> Self {
        Self(vec![rule])
    }
}

impl TryFrom<Vec<HostRule>> for Hosts {
    type Error = HostError;

    fn try_from(rules: Vec<HostRule>) -> Result<Self, HostError> {
        if rules.len() > MAX_RULES {
            return Err(HostError::TooMany);
        }
        Self::new(rules).ok_or(HostError::NoRule)
    }
}

impl From<Hosts> for Vec<HostRule> {
    fn from(hosts: Hosts) -> Self {
        hosts.0
    }
}

/// Displays the rules, separated by blanks.
impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, rule) in self.0.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { " " })?;
            rule.fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::arbitrary::hosts;
    use super::*;

    #[test]
    fn a_name_is_one_of_the_domain_name_system_and_never_an_address() {
        for (text, name) in [
            ("PyPI.org", "pypi.org"),
            ("a.b.", "a.b"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("_x.db", "_x.db"),
        ] {
            assert_eq!(text.parse().map(|HostName(name)| name), Ok(name.to_owned()));
        }
        let long = "a.".repeat(127) + "a";
        for (text, error) in [
            ("", HostError::Empty),
            (".", HostError::Empty),
            ("a..b", HostError::Empty),
            (".a", HostError::Empty),
            ("a..", HostError::Empty),
            (&"a".repeat(64), HostError::TooLong),
            (&long, HostError::TooLong),
            ("b\u{fc}cher.example", HostError::Script('\u{fc}')),
            ("p\u{443}pi.org", HostError::Script('\u{443}')),
            ("a\0b", HostError::Character('\0')),
            ("a b", HostError::Character(' ')),
            ("*.a", HostError::Character('*')),
            ("-a.b", HostError::Character('-')),
            ("127.0.0.1", HostError::Literal),
            ("127.1", HostError::Literal),
            ("2130706433", HostError::Literal),
            ("0x7f.1", HostError::Literal),
            ("0x7f000001", HostError::Literal),
            ("0x", HostError::Literal),
            ("017700000001", HostError::Literal),
            ("::1", HostError::Literal),
            ("[::1]", HostError::Character('[')),
        ] {
            assert_eq!(text.parse::<HostName>(), Err(error), "{text:?}");
        }
    }

    #[test]
    fn a_rule_is_written_as_it_is_read() {
        for text in ["pypi.org", "*.pypi.org", "pypi.org:80", "*.pypi.org:8443"] {
            assert_eq!(text.parse::<HostRule>().unwrap().to_string(), text);
        }
        assert_eq!("A.example:443".parse::<HostRule>().unwrap().to_string(), "a.example");
        for (text, error) in [
            ("a:", HostError::Port),
            ("a:0", HostError::Port),
            ("a:+1", HostError::Port),
            ("a:65536", HostError::Port),
            ("a:1:2", HostError::Literal),
            ("*", HostError::Character('*')),
            ("*.", HostError::Empty),
            ("*.*.a", HostError::Character('*')),
            ("a.*", HostError::Character('*')),
            ("*.10.0.0.1", HostError::Literal),
        ] {
            assert_eq!(text.parse::<HostRule>(), Err(error), "{text:?}");
        }
    }

    fn list(text: &str) -> Hosts {
        Hosts::new(text.split(' ').map(|rule| rule.parse().unwrap())).unwrap()
    }

    #[test]
    fn names_below_a_name_are_those_with_more_labels() {
        let hosts = list("*.pypi.org a.example:80");
        let allows = |name: &str, port| hosts.allows(&name.parse().unwrap(), port);
        assert!(allows("files.pypi.org", 443) && allows("a.b.pypi.org", 443) && allows("a.example", 80));
        for (name, port) in [
            ("pypi.org", 443),
            ("xpypi.org", 443),
            ("files.pypi.org", 80),
            ("a.example", 443),
            ("pypi.org.evil.example", 443),
        ] {
            assert!(!allows(name, port), "{name}:{port}");
        }
        assert_eq!(list("*.a *.b.a x.a b.a:80 *.a").to_string(), "*.a b.a:80");
    }

    proptest! {
        #[test]
        fn meet_is_the_greatest_list_that_both_cover(a in hosts(), b in hosts(), c in hosts()) {
            let met = a.meet(&b);
            prop_assert_eq!(&met, &b.meet(&a));
            prop_assert_eq!(a.meet(&a), Some(a.clone()));
            prop_assert_eq!(a.covers(&b), met.as_ref() == Some(&b));
            prop_assert_eq!(met.clone().and_then(|met| met.meet(&c)), b.meet(&c).and_then(|met| a.meet(&met)));
            if let Some(met) = met {
                prop_assert!(a.covers(&met) && b.covers(&met));
            }
            let joined = a.join(&b);
            prop_assert!(joined.covers(&a) && joined.covers(&b));
            prop_assert_eq!(c.covers(&a) && c.covers(&b), c.covers(&joined));
        }

        #[test]
        fn a_name_of_both_lists_is_one_of_their_meet(a in hosts(), b in hosts(), name in super::super::arbitrary::host_name(), port in 80..82u16) {
            let met = a.meet(&b).is_some_and(|met| met.allows(&name, port));
            prop_assert_eq!(met, a.allows(&name, port) && b.allows(&name, port));
            prop_assert_eq!(a.join(&b).allows(&name, port), a.allows(&name, port) || b.allows(&name, port));
        }

        #[test]
        fn any_text_is_a_rule_or_an_error(text in ".{0,40}") {
            if let Ok(rule) = text.parse::<HostRule>() {
                prop_assert_eq!(rule.to_string().parse(), Ok(rule));
            }
        }
    }
}
