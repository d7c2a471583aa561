//! The values that keys of the settings can have.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use ipc::rights::Network;
use protocol::cost::Usd;

use super::keys::{Kind, Preset};
use super::origin::ConfigOrigin;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Number(u64),
    Amount(Usd),
    Time(Duration),
    Switch(bool),
    Network(Network),
    /// A list. Each element has its own origin.
    List(Vec<Element>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// Words of the element. An element has several words only if it is the beginning of a command.
    pub words: Vec<OsString>,
    pub origin: ConfigOrigin,
}

impl Element {
    pub fn word(word: impl Into<OsString>, origin: ConfigOrigin) -> Self {
        Self { words: vec![word.into()], origin }
    }

    pub fn first(&self) -> &OsStr {
        self.words.first().map(OsString::as_os_str).unwrap_or_default()
    }

    /// True if both elements are equal, or set the same environment variable.
    pub(super) fn is_like(&self, other: &Self, kind: Kind) -> bool {
        match kind {
            Kind::Variables => variable(self.first()) == variable(other.first()),
            _ => self.words == other.words,
        }
    }
}

/// Returns the name of the variable from `NAME` or `NAME=VALUE`.
fn variable(setting: &OsStr) -> &[u8] {
    setting.as_bytes().split(|byte| *byte == b'=').next().unwrap_or_default()
}

/// Returns a number of seconds as a duration; `None` if it is not between a thousandth of a second and a year.
pub fn time_of(seconds: f64) -> Option<Duration> {
    let fits = (0.001..=31_536_000.0).contains(&seconds);
    fits.then(|| Duration::try_from_secs_f64(seconds).ok()).flatten()
}

impl Value {
    /// Returns a number for the strictness of the value. A lower number is stricter.
    pub(super) fn width(&self, kind: Kind) -> u64 {
        match (self, kind) {
            (Self::Text(word), Kind::Choice(words)) => {
                let at = words.iter().position(|known| known == word);
                at.and_then(|at| u64::try_from(at).ok()).unwrap_or(u64::MAX)
            }
            (Self::Number(number), _) => *number,
            (Self::Amount(amount), _) => amount.picos(),
            (Self::Time(time), _) => u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
            (Self::Switch(on), _) => u64::from(!on),
            _ => u64::MAX,
        }
    }

    pub fn elements(&self) -> &[Element] {
        match self {
            Self::List(elements) => elements,
            _ => &[],
        }
    }
}

impl Preset {
    pub fn value(self) -> Option<Value> {
        match self {
            Self::Word(word) => Some(Value::Text(word.to_owned())),
            Self::Number(number) => Some(Value::Number(number)),
            Self::Off => Some(Value::Switch(false)),
            Self::NoNetwork => Some(Value::Network(Network::Off)),
            Self::Empty => Some(Value::List(Vec::new())),
            Self::Unset(_) => None,
        }
    }
}

/// Writes the value in one line as in a file, with terminal controls escaped.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Number(number) => number.fmt(f),
            Self::Amount(amount) => amount.dollars().fmt(f),
            Self::Time(time) => time.as_secs_f64().fmt(f),
            Self::Switch(on) => on.fmt(f),
            Self::Network(Network::Hosts(hosts)) => {
                let hosts: Vec<_> =
                    hosts.rules().iter().map(|rule| format!("{:?}", rule.to_string())).collect();
                write!(f, "[{}]", hosts.join(", "))
            }
            Self::Network(net @ (Network::Off | Network::On)) => write!(f, "{:?}", net.flag()),
            Self::List(elements) => {
                let elements: Vec<_> = elements.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", elements.join(", "))
            }
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.words.iter().map(|word| format!("{:?}", word.to_string_lossy())).collect();
        f.write_str(&words.join(" "))
    }
}
