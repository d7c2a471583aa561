//! Descriptions of the keys of settings, for the reference page and for `bailiwick config keys`.

use super::keys::{Key, Kind, Preset, ProjectMay};

impl Key {
    pub(crate) fn expected(&self) -> String {
        let words =
            |words: &[&str]| words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        match self.kind {
            Kind::Text => "text".to_owned(),
            Kind::Address => "address".to_owned(),
            Kind::Choice([choice]) => format!("`{choice}`"),
            Kind::Choice(choices) => format!("one of {}", words(choices)),
            Kind::Choices(choices) => format!("list of any of {}", words(choices)),
            Kind::Paths => "list of paths".to_owned(),
            Kind::Variables => "list of `NAME` or `NAME=VALUE`".to_owned(),
            Kind::Commands => "list of lists of words".to_owned(),
            Kind::Names => "list of names".to_owned(),
            Kind::Count { least, most } => format!("number, {least} to {most}"),
            Kind::Time => "number, 0.001 to 31536000".to_owned(),
            Kind::Amount => "US dollars".to_owned(),
            Kind::Switch => "`true` or `false`".to_owned(),
            Kind::Network => "`off`, or list of hosts".to_owned(),
        }
    }

    /// Returns the default value as text.
    pub(crate) fn default(&self) -> String {
        match self.preset {
            Preset::Word(word) => format!("`{word}`"),
            Preset::Number(number) => format!("`{number}`"),
            Preset::Off => "`false`".to_owned(),
            Preset::NoNetwork => "`off`".to_owned(),
            Preset::Empty => "empty".to_owned(),
            Preset::Unset(meaning) => meaning.to_owned(),
        }
    }

    /// Returns in words what a project's file can do with the key.
    pub(crate) fn in_a_project(&self) -> &'static str {
        match self.project {
            ProjectMay::Narrow => "can add to the list",
            ProjectMay::Lower if matches!(self.kind, Kind::Choice([_]) | Kind::Network) => {
                "can only restrict the value"
            }
            ProjectMay::Lower => "can restrict the value; can extend it if trusted",
            ProjectMay::IfTrusted => "can set the value if trusted",
            ProjectMay::Never => "never",
        }
    }
}
