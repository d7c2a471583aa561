//! Suggestions for unknown keys.

use super::tables::NAMES;
use crate::settings::config::keys::KEYS;

/// Minimum similarity of two names for a suggestion, from 0 to 1.
const LIKE: f64 = 0.8;

/// Maximum length in bytes of a name that is compared. All keys are shorter.
const LONGEST: usize = 40;

/// Returns the key or table that `name` in the table `prefix` probably means: one of the same name in another table, or
/// one of a similar name in this table. `None` if there is none.
pub(super) fn nearest(prefix: &str, name: &str) -> Option<&'static str> {
    if name.len() > LONGEST {
        return None;
    }
    let tables = KEYS.iter().filter_map(|key| Some(key.name.split_once('.')?.0)).chain(NAMES);
    let all: Vec<&'static str> = KEYS.iter().map(|key| key.name).chain(tables).collect();
    if let Some(misplaced) = all.iter().find(|known| last(known) == name) {
        return Some(misplaced);
    }
    let likeness = |known: &str| strsim::jaro_winkler(last(known), name);
    let here = all.into_iter().filter(|known| known.starts_with(prefix));
    let in_table = |known: &str| known.contains('.');
    // Among equally similar keys, those outside of tables come first.
    let order = |a: &&str, b: &&str| likeness(a).total_cmp(&likeness(b)).then(in_table(b).cmp(&in_table(a)));
    here.filter(|known| likeness(known) >= LIKE).max_by(order)
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or_default()
}
