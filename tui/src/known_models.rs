//! Language models that `:model` accepts at once. A typing error in another name would only fail at the next request.

use similar::TextDiff;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownModels {
    pub set: Vec<KnownModel>,
    pub catalogue: Vec<KnownModel>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownModel {
    pub name: String,
    /// Size of the context window in tokens.
    pub window: u64,
    /// Price as text; `None` if unknown.
    pub price: Option<String>,
}

/// Minimum similarity of a suggested name to the typed one, from 0 to 1.
const LIKE: f32 = 0.6;

/// Maximum number of suggested names.
const MOST_OFFERED: usize = 3;

impl KnownModels {
    /// Returns an error with similar names for an unknown model; `None` for a known one.
    pub fn refusal(&self, name: &str) -> Option<String> {
        if self.knows(name) {
            return None;
        }
        let near = self.near(name);
        let near = if near.is_empty() { String::new() } else { format!("; similar: {}", near.join(", ")) };
        Some(format!(
            "unknown model {name}{near}; :model! {name} uses this name anyway, :model lists the known ones"
        ))
    }

    pub fn knows(&self, name: &str) -> bool {
        self.names().any(|known| stands_for(known, name))
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &KnownModel> {
        self.set.iter().chain(&self.catalogue)
    }

    pub(crate) fn named(&self, name: &str) -> Option<&KnownModel> {
        self.all().find(|known| known.name == name)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.all().map(|known| known.name.as_str())
    }

    pub(crate) fn near(&self, name: &str) -> Vec<&str> {
        let like = |known| (TextDiff::from_chars(known, name).ratio(), known);
        let mut near: Vec<_> = self.names().map(like).filter(|(ratio, _)| *ratio >= LIKE).collect();
        near.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let mut names: Vec<_> = near.into_iter().map(|(_, known)| known).collect();
        names.dedup();
        names.truncate(MOST_OFFERED);
        names
    }
}

/// True if `name` is `known`, or `known` with a date. If `known` ends with `*`, true if `name` has that prefix.
fn stands_for(known: &str, name: &str) -> bool {
    let is_date = |rest: &str| {
        let digits = rest.strip_prefix('-').map(|rest| rest.replace('-', ""));
        digits.is_some_and(|digits| digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    match known.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name.strip_prefix(known).is_some_and(|rest| rest.is_empty() || is_date(rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> KnownModels {
        let known = |name: &&str| KnownModel { name: (*name).to_owned(), ..KnownModel::default() };
        let names = |names: &[&str]| names.iter().map(known).collect();
        KnownModels {
            set: names(&["house-*", "qwen3-coder"]),
            catalogue: names(&["claude-opus-5-5", "claude-opus-5", "claude-haiku-5-5", "gpt-5"]),
        }
    }

    #[test]
    fn what_settings_and_catalogue_name_is_taken() {
        for name in
            ["qwen3-coder", "house-7b", "claude-opus-5-5", "claude-opus-5-5-20261101", "gpt-5-2026-11-01"]
        {
            assert_eq!(known().refusal(name), None, "{name}");
        }
    }

    #[test]
    fn a_name_that_nothing_knows_is_refused_with_those_that_are_like_it() {
        let said = known().refusal("claude-opos-5-5").unwrap();
        assert!(said.starts_with("unknown model claude-opos-5-5; similar: claude-opus-5-5, "), "{said}");
        assert!(
            said.ends_with("; :model! claude-opos-5-5 uses this name anyway, :model lists the known ones"),
            "{said}"
        );
        let said = known().refusal("nonsense-9").unwrap();
        assert!(said.starts_with("unknown model nonsense-9; :model!"), "{said}");
        for name in ["claude-opus-5-5-turbo", "gpt-5-1234567", "qwen3", "", "*"] {
            assert!(known().refusal(name).is_some(), "{name}");
        }
    }
}
