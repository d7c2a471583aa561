mod key;

use std::collections::BTreeMap;

pub use key::{Key, NoKey};

use crate::commands::{self, Command, KeyMode, TABLE};

#[derive(Clone, Debug)]
pub struct Keymap {
    bindings: BTreeMap<KeyMode, Vec<(Key, Command)>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebinding {
    pub mode: KeyMode,
    pub command: String,
    pub keys: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeymapError {
    #[error("no command is called {0:?}")]
    NoCommand(String),
    #[error("the mode {mode} has no command {command}")]
    OtherMode { command: String, mode: &'static str },
    #[error(transparent)]
    NoKey(#[from] NoKey),
    #[error("in the mode {mode} the key {key} would do both {first} and {second}")]
    Conflict { mode: &'static str, key: String, first: &'static str, second: &'static str },
    #[error("{key} cannot answer approvals: this key is easily pressed by accident")]
    Careless { key: String },
    #[error("in the mode {mode} the key {key} writes text")]
    WritesText { mode: &'static str, key: String },
    #[error("the command {command} has to have a key in the mode {mode}")]
    Needed { mode: &'static str, command: &'static str },
}

/// Commands that must have a key: those that deny a request and those that leave a view.
const NEEDED: &[(KeyMode, Command)] = &[
    (KeyMode::Approval, Command::Deny),
    (KeyMode::Denied, Command::Deny),
    (KeyMode::Scope, Command::Back),
    (KeyMode::Agents, Command::CloseAgents),
    (KeyMode::Comments, Command::Back),
    (KeyMode::Steps, Command::Back),
    (KeyMode::Form, Command::Back),
    (KeyMode::Versions, Command::Back),
    (KeyMode::Plan, Command::ClosePlan),
    (KeyMode::Log, Command::CloseLog),
    (KeyMode::Rewind, Command::CloseRewind),
    (KeyMode::Page, Command::ClosePage),
    (KeyMode::Findings, Command::CloseFindings),
    (KeyMode::Select, Command::CloseSelection),
    (KeyMode::Insert, Command::Leave),
    (KeyMode::Command, Command::Leave),
];

impl Keymap {
    /// Applies rebindings to the default keys. Fails if a name is unknown, if a key is unsafe for an approval, or if a
    /// needed command loses all of its keys.
    pub fn new(rebindings: &[Rebinding]) -> Result<Self, KeymapError> {
        let mut map = Self::from_table()?;
        for rebinding in rebindings {
            map.rebind(rebinding)?;
        }
        map.check()?;
        Ok(map)
    }

    pub fn command(&self, mode: KeyMode, key: Key) -> Option<Command> {
        let bindings = self.bindings.get(&mode)?;
        bindings.iter().find(|(bound, _)| *bound == key).map(|(_, command)| *command)
    }

    pub fn keys(&self, mode: KeyMode, command: Command) -> Vec<String> {
        let bindings = self.bindings.get(&mode).into_iter().flatten();
        bindings.filter(|(_, bound)| *bound == command).map(|(key, _)| key.to_string()).collect()
    }

    pub(crate) fn hint(&self, mode: KeyMode, command: Command) -> String {
        let mut bindings = self.bindings.get(&mode).into_iter().flatten();
        bindings.find(|(_, bound)| *bound == command).map(|(key, _)| key.label()).unwrap_or_default()
    }

    fn from_table() -> Result<Self, KeymapError> {
        let mut bindings: BTreeMap<KeyMode, Vec<(Key, Command)>> = BTreeMap::new();
        for row in TABLE {
            for (mode, keys) in row.keys {
                for key in *keys {
                    bindings.entry(*mode).or_default().push((key.parse()?, row.command));
                }
            }
        }
        Ok(Self { bindings })
    }

    fn rebind(&mut self, rebinding: &Rebinding) -> Result<(), KeymapError> {
        let Rebinding { mode, command, keys } = rebinding;
        let row = commands::named(command).ok_or_else(|| KeymapError::NoCommand(command.clone()))?;
        if !row.keys.iter().any(|(possible, _)| possible == mode) {
            return Err(KeymapError::OtherMode { command: command.clone(), mode: mode.as_str() });
        }
        let bindings = self.bindings.entry(*mode).or_default();
        bindings.retain(|(_, bound)| *bound != row.command);
        for key in keys {
            bindings.push((key.parse()?, row.command));
        }
        Ok(())
    }

    fn check(&self) -> Result<(), KeymapError> {
        for (mode, bindings) in &self.bindings {
            for (at, (key, command)) in bindings.iter().enumerate() {
                check_key(*mode, *key, *command)?;
                let Some((_, second)) = bindings.iter().skip(at + 1).find(|(other, _)| other == key) else {
                    continue;
                };
                let [first, second] = [*command, *second].map(name);
                return Err(KeymapError::Conflict {
                    mode: mode.as_str(),
                    key: key.to_string(),
                    first,
                    second,
                });
            }
        }
        let lost = NEEDED.iter().find(|(mode, command)| self.keys(*mode, *command).is_empty());
        match lost {
            Some((mode, command)) => {
                Err(KeymapError::Needed { mode: mode.as_str(), command: name(*command) })
            }
            None => Ok(()),
        }
    }
}

fn check_key(mode: KeyMode, key: Key, command: Command) -> Result<(), KeymapError> {
    if mode.decides() && key.is_enter_or_space() && command != Command::Toggle {
        return Err(KeymapError::Careless { key: key.to_string() });
    }
    if mode.is_for_text() && key.is_text() {
        return Err(KeymapError::WritesText { mode: mode.as_str(), key: key.to_string() });
    }
    Ok(())
}

fn name(command: Command) -> &'static str {
    commands::row(command).map_or("?", |row| row.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rebind(mode: KeyMode, command: &str, keys: &[&str]) -> Result<Keymap, KeymapError> {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        Keymap::new(&[Rebinding { mode, command: command.to_owned(), keys }])
    }

    #[test]
    fn the_table_has_no_conflict_of_its_own() {
        Keymap::new(&[]).unwrap();
        for (at, row) in TABLE.iter().enumerate() {
            assert!(
                TABLE.iter().skip(at + 1).all(|other| other.name != row.name && other.command != row.command)
            );
        }
    }

    #[test]
    fn a_rebinding_replaces_the_keys_of_its_command_in_its_mode() {
        let map = rebind(KeyMode::Approval, "approve_once", &["1", "alt-y"]).unwrap();
        assert_eq!(map.command(KeyMode::Approval, "y".parse().unwrap()), None);
        assert_eq!(map.keys(KeyMode::Approval, Command::ApproveOnce), ["1", "alt-y"]);
        assert_eq!(map.keys(KeyMode::Scope, Command::Confirm), ["y"]);
    }

    #[test]
    fn what_cannot_be_bound_says_why() {
        let because = |mode, command, keys: &[&str]| rebind(mode, command, keys).unwrap_err().to_string();
        insta::assert_snapshot!(
            [
                because(KeyMode::Approval, "approve_once", &["enter"]),
                because(KeyMode::Approval, "deny", &["space"]),
                because(KeyMode::Scope, "confirm", &["ctrl-m"]),
                because(KeyMode::Approval, "approve_once", &["n"]),
                because(KeyMode::Insert, "submit", &["x"]),
                because(KeyMode::Normal, "approve_once", &["y"]),
                because(KeyMode::Normal, "fly", &["y"]),
                because(KeyMode::Approval, "deny", &[]),
            ]
            .join("\n"),
            @r#"
        enter cannot answer approvals: this key is easily pressed by accident
        space cannot answer approvals: this key is easily pressed by accident
        ctrl-m cannot answer approvals: this key is easily pressed by accident
        in the mode approval the key n would do both deny and approve_once
        in the mode insert the key x writes text
        the mode normal has no command approve_once
        no command is called "fly"
        the command deny has to have a key in the mode approval
        "#
        );
    }
}
