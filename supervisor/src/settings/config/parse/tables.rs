//! Parses the tables with free names, which only the person's file may have: `keys`, `models`, and roles in `agents`.

use gate::roles::{MOST_ROLES, RoleDraft, RoleField};
use model::provider::catalogue::{Entry, Pattern};
use toml_edit::{Item, TableLike, Value as Toml};
use tui::commands::KeyMode;
use tui::keymap::{Keymap, KeymapError, Rebinding};

use super::{FileOwner, SettingsReader, only_the_users};
use crate::settings::config::layer::{Binding, ModelEntry, RoleEntry};
use crate::settings::config::project_roles::unknown_tool;

pub(super) const NAMES: [&str; 2] = ["keys", "models"];

impl SettingsReader<'_> {
    pub(super) fn own_table(&mut self, name: &str, at: Option<usize>, item: &Item) {
        if self.whose == FileOwner::Projects {
            return self.void(at, only_the_users(name));
        }
        for (entry, at, item) in self.entries(name, at, item) {
            if name == "models" {
                self.model(&entry, at, &item);
            } else {
                self.mode(&entry, at, &item);
            }
        }
        if name == "keys" && self.problems.is_empty() {
            self.check_keys();
        }
    }

    /// Returns the entries of a table with their byte offsets. If the item is no table, reports that and returns none.
    pub(super) fn entries(
        &mut self,
        name: &str,
        at: Option<usize>,
        item: &Item,
    ) -> Vec<(String, Option<usize>, Item)> {
        let Some(table) = item.as_table_like() else {
            self.wrong(at, format!("`{}` is a table: expected [{}]", shown(name), shown(name)));
            return Vec::new();
        };
        let at = |name: &str| start(table, name);
        table.iter().map(|(name, item)| (name.to_owned(), at(name), item.clone())).collect()
    }

    fn model(&mut self, model: &str, at: Option<usize>, item: &Item) {
        let mut entry = Entry::default();
        for (field, at, value) in self.entries(&format!("models.{model}"), at, item) {
            if let Err(misfit) = entry.set(&field, &value) {
                self.wrong(at, format!("`models.{}.{}`: {misfit}", shown(model), shown(&field)));
            }
        }
        let origin = self.origin(at.unwrap_or_default());
        self.layer.models.push(ModelEntry { pattern: Pattern::new(model), entry, origin });
    }

    pub(super) fn role(&mut self, name: &str, at: Option<usize>, item: &Item) {
        let full = format!("agents.{name}");
        if self.whose == FileOwner::Projects {
            return self.void(at, only_the_users(&shown(&full)));
        }
        let mut draft = RoleDraft::default();
        let mut fits = true;
        for (field, at, item) in self.entries(&full, at, item) {
            let value = field_of(&item).ok_or_else(|| "expected a text, or a list of texts".to_owned());
            if let Err(why) = value.and_then(|value| draft.set(&field, value)) {
                fits = false;
                self.wrong(at, format!("`{}.{}`: {why}", shown(&full), shown(&field)));
            }
        }
        if !fits {
            return;
        }
        match draft.finish(name) {
            Ok(_) if self.layer.roles.len() >= MOST_ROLES => {
                self.wrong(at, format!("there are more than {MOST_ROLES} roles"));
            }
            Ok(role) => {
                if let Some(why) = unknown_tool(&role) {
                    return self.wrong(at, format!("`{}.tools`: {why}", shown(&full)));
                }
                let origin = self.origin(at.unwrap_or_default());
                self.layer.roles.push(RoleEntry { role, origin });
            }
            Err(why) => self.wrong(at, why),
        }
    }

    fn mode(&mut self, mode: &str, at: Option<usize>, item: &Item) {
        let Some(known) = KeyMode::ALL.into_iter().find(|known| known.as_str() == mode) else {
            let modes = KeyMode::ALL.map(KeyMode::as_str).join(", ");
            return self.wrong(
                at,
                format!("`keys.{}` is not a mode of the terminal UI: expected one of {modes}", shown(mode)),
            );
        };
        for (command, at, item) in self.entries(&format!("keys.{mode}"), at, item) {
            let keys = match item.as_value() {
                Some(Toml::String(key)) => Some(vec![key.value().clone()]),
                Some(Toml::Array(keys)) => keys.iter().map(|key| key.as_str().map(str::to_owned)).collect(),
                _ => None,
            };
            match keys {
                Some(keys) => {
                    let origin = self.origin(at.unwrap_or_default());
                    let rebinding = Rebinding { mode: known, command, keys };
                    self.layer.bindings.push(Binding { rebinding, at: at.unwrap_or_default(), origin });
                }
                None => self.wrong(
                    at,
                    format!(
                        "`keys.{mode}.{}`: expected a key, or a list of keys, as in [\"y\", \"ctrl-y\"]",
                        shown(&command)
                    ),
                ),
            }
        }
    }

    fn check_keys(&mut self) {
        let all: Vec<_> = self.layer.bindings.iter().map(|binding| binding.rebinding.clone()).collect();
        if let Err(error) = Keymap::new(&all) {
            let at = self.layer.bindings.iter().find(|binding| is_to_blame(binding, &error));
            let at = at.or(self.layer.bindings.first()).map(|binding| binding.at);
            self.wrong(at, error.to_string());
        }
    }
}

/// True if this binding causes the error: it does so alone, or the error names the binding's command.
fn is_to_blame(binding: &Binding, error: &KeymapError) -> bool {
    let Rebinding { mode, command, keys } = &binding.rebinding;
    match error {
        KeymapError::Conflict { mode: other, key, first, second } => {
            mode.as_str() == *other && keys.contains(key) && (command == first || command == second)
        }
        _ => Keymap::new(std::slice::from_ref(&binding.rebinding)).is_err_and(|found| found == *error),
    }
}

/// Converts an item to the field of a role; `None` if it is neither a text, a number, nor a list of texts.
fn field_of(item: &Item) -> Option<RoleField> {
    match item.as_value()? {
        Toml::String(text) => Some(RoleField::Text(text.value().clone())),
        Toml::Integer(number) => Some(RoleField::Text(number.value().to_string())),
        Toml::Float(number) => Some(RoleField::Text(number.value().to_string())),
        Toml::Array(list) => {
            let names = list.iter().map(|name| name.as_str().map(str::to_owned));
            names.collect::<Option<_>>().map(RoleField::List)
        }
        _ => None,
    }
}

fn start(table: &dyn TableLike, name: &str) -> Option<usize> {
    table.key(name).and_then(toml_edit::Key::span).map(|span| span.start)
}

fn shown(name: &str) -> String {
    name.chars().take(80).flat_map(char::escape_debug).collect()
}
