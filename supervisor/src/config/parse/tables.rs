//! The two tables whose keys the user chooses: `keys` and `prices`, both the user's own alone.

use toml_edit::{Item, TableLike, Value as Toml};
use tui::commands::KeyMode;
use tui::keymap::{Keymap, KeymapError, Rebinding};

use super::{Reader, Whose};
use crate::config::layer::{Binding, Price};

/// Their names.
pub(super) const NAMES: [&str; 2] = ["keys", "prices"];

/// What a price has.
const PRICE: [&str; 4] = ["input", "output", "cache_read", "cache_write"];

impl Reader<'_> {
    /// Reads one of the two.
    pub(super) fn own_table(&mut self, name: &str, at: Option<usize>, item: &Item) {
        if self.whose == Whose::Projects {
            return self.wrong(at, format!("`{name}` may stand only in the user's own config.toml"));
        }
        for (entry, at, item) in self.entries(name, at, item) {
            if name == "prices" {
                self.price(&entry, at, &item);
            } else {
                self.mode(&entry, at, &item);
            }
        }
        if name == "keys" && self.problems.is_empty() {
            self.check_keys();
        }
    }

    /// What a table holds, and where; nothing where it is none.
    fn entries(&mut self, name: &str, at: Option<usize>, item: &Item) -> Vec<(String, Option<usize>, Item)> {
        let Some(table) = item.as_table_like() else {
            self.wrong(at, format!("`{}` is a table: expected [{}]", shown(name), shown(name)));
            return Vec::new();
        };
        let at = |name: &str| start(table, name);
        table.iter().map(|(name, item)| (name.to_owned(), at(name), item.clone())).collect()
    }

    fn price(&mut self, model: &str, at: Option<usize>, item: &Item) {
        let number = |name: &str| {
            let item = item.as_table_like()?.get(name)?;
            #[expect(clippy::cast_precision_loss, reason = "a price in dollars is a small number")]
            let number = item.as_float().or_else(|| item.as_integer().map(|number| number as f64))?;
            (number.is_finite() && number >= 0.0).then_some(number)
        };
        let numbers = PRICE.map(number);
        let is_whole = item.as_table_like().is_some_and(|table| table.len() == PRICE.len());
        match (numbers, is_whole) {
            ([Some(input), Some(output), Some(cache_read), Some(cache_write)], true) => {
                let prices = tui::Prices { input, output, cache_read, cache_write };
                let origin = self.origin(at.unwrap_or_default());
                self.layer.prices.insert(model.to_owned(), Price { prices, origin });
            }
            _ => self.wrong(
                at,
                format!(
                    "`prices.{}`: expected {} in US dollars for a million tokens, and nothing else",
                    shown(model),
                    PRICE.join(", ")
                ),
            ),
        }
    }

    fn mode(&mut self, mode: &str, at: Option<usize>, item: &Item) {
        let Some(known) = KeyMode::ALL.into_iter().find(|known| known.as_str() == mode) else {
            let modes = KeyMode::ALL.map(KeyMode::as_str).join(", ");
            return self.wrong(
                at,
                format!("`keys.{}` is no mode of the terminal UI: expected one of {modes}", shown(mode)),
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

    /// All of them together: a key may move from one command to another.
    fn check_keys(&mut self) {
        let all: Vec<_> = self.layer.bindings.iter().map(|binding| binding.rebinding.clone()).collect();
        if let Err(error) = Keymap::new(&all) {
            let at = self.layer.bindings.iter().find(|binding| is_to_blame(binding, &error));
            let at = at.or(self.layer.bindings.first()).map(|binding| binding.at);
            self.wrong(at, error.to_string());
        }
    }
}

/// Whether a line is what the error speaks of: by itself it brings the same one about, or it names a command of it.
fn is_to_blame(binding: &Binding, error: &KeymapError) -> bool {
    let Rebinding { mode, command, keys } = &binding.rebinding;
    match error {
        KeymapError::Conflict { mode: other, key, first, second } => {
            mode.as_str() == *other && keys.contains(key) && (command == first || command == second)
        }
        _ => Keymap::new(std::slice::from_ref(&binding.rebinding)).is_err_and(|found| found == *error),
    }
}

fn start(table: &dyn TableLike, name: &str) -> Option<usize> {
    table.key(name).and_then(toml_edit::Key::span).map(|span| span.start)
}

/// A name from a file, as it may be shown.
fn shown(name: &str) -> String {
    name.chars().take(80).flat_map(char::escape_debug).collect()
}
