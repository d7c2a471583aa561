//! The catalogue of models: their APIs, limits, abilities and prices.
//!
//! The entries are in `models.toml`; users override them under `[models]`. Every property except the price has a
//! default for unknown models.

mod entry;
mod facts;
mod field;
mod name;
mod prices;

use std::sync::LazyLock;

use toml_edit::Document;

pub use entry::Entry;
pub use facts::{Api, Facts, ThinkingKind};
pub use field::{BadFact, FIELDS, Field};
pub use name::{Pattern, matching};

const BUILT_IN: &str = include_str!("models.toml");

static ENTRIES: LazyLock<Vec<(Pattern, Entry)>> = LazyLock::new(|| {
    // A test parses the same text, so this cannot fail in a released program.
    read(BUILT_IN).unwrap_or_else(|error| {
        tracing::error!(error, "the catalogue of models cannot be read");
        Vec::new()
    })
});

pub fn built_in(model: &str) -> Vec<&'static Entry> {
    matching(ENTRIES.iter(), model)
}

pub fn names() -> impl Iterator<Item = &'static str> {
    ENTRIES.iter().map(|(pattern, _)| pattern.as_str())
}

fn read(text: &str) -> Result<Vec<(Pattern, Entry)>, String> {
    let document = Document::parse(text).map_err(|error| error.to_string())?;
    let mut entries = Vec::new();
    for (name, item) in document.iter() {
        let fields = item.as_table_like().ok_or_else(|| format!("{name} is not a table"))?;
        let mut entry = Entry::default();
        for (field, value) in fields.iter() {
            entry.set(field, value).map_err(|misfit| format!("{name}.{field}: {misfit}"))?;
        }
        entries.push((Pattern::new(name), entry));
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use protocol::event::TokenUsage;

    use super::*;
    use crate::provider::anthropic::ApiVersion;

    fn facts(model: &str) -> Facts {
        Facts::of(&built_in(model))
    }

    #[test]
    fn the_catalogue_can_be_read_and_no_fact_in_it_contradicts_another() {
        let entries = read(BUILT_IN).expect("models.toml");
        assert!(entries.len() > 40, "{}", entries.len());
        for (pattern, _) in entries {
            let facts = facts(pattern.as_str());
            assert!(u64::from(facts.max_output) < facts.context, "{pattern:?}");
            if let Some(prices) = facts.prices {
                let rates = prices.rates;
                assert!(
                    rates.cache_read <= rates.input && rates.input <= rates.cache_write_5m,
                    "{pattern:?}"
                );
                assert!(rates.cache_write_5m <= rates.cache_write_1h, "{pattern:?}");
                assert!(prices.long.is_none_or(|long| long.above < facts.context), "{pattern:?}");
            }
        }
    }

    #[test]
    fn r8_the_facts_of_a_model_are_the_vendors() {
        let facts = facts("claude-opus-5-5");
        let known = (facts.api, facts.api_version, facts.context, facts.max_output);
        assert_eq!(known, (Api::Messages, ApiVersion::V2026_10_21, 1_000_000, 128_000));
        let million = |usage: TokenUsage| facts.prices.expect("a price").cost(&usage).to_string();
        let none = TokenUsage::default();
        assert_eq!(million(TokenUsage { input: 1_000_000, ..none }), "$4.00");
        assert_eq!(million(TokenUsage { output: 1_000_000, ..none }), "$20.00");
        assert_eq!(million(TokenUsage { cache_read: 1_000_000, ..none }), "$0.20");
        assert_eq!(million(TokenUsage { cache_creation: 1_000_000, ..none }), "$5.00");
        let hour = TokenUsage { cache_creation: 1_000_000, cache_creation_1h: 1_000_000, ..none };
        assert_eq!(million(hour), "$8.00");
    }

    #[test]
    fn a_dated_name_is_its_model_and_a_longer_name_is_another() {
        assert_eq!(facts("claude-haiku-4-5-20251001"), facts("claude-haiku-4-5"));
        assert_eq!(facts("gpt-5-2025-08-07"), facts("gpt-5"));
        assert_ne!(facts("gpt-5-mini").prices, facts("gpt-5").prices);
        // For an unknown model, the properties of its family apply.
        let sister = facts("gpt-5-gigantic");
        assert_eq!((sister.api, sister.prices), (Api::Chat, None));
    }

    #[test]
    fn a_model_that_nobody_knows_has_defaults_and_no_price() {
        assert!(built_in("llama-4-local").is_empty());
        assert_eq!(facts("llama-4-local"), Facts::default());
        assert_eq!(Facts::default().prices, None);
    }

    #[test]
    fn what_is_wrong_in_a_catalogue_is_named() {
        for (text, expected) in [
            ("a = 3", "a is not a table"),
            ("[a]\nwindow = 3", "a.window: unknown"),
            ("[a]\ncontext = 0", "a.context: expected a number of tokens"),
            ("[a]\napi = \"soap\"", "a.api: expected \"messages\", \"chat\" or \"responses\""),
            ("[a]\nprices = { input = 1 }", "a.prices: expected"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
