//! Removes secrets from text that leaves the machine. It recognises secrets by their form.
//!
//! The rules (`rules.txt`) have forms that providers document, under the names that secret scanners use. Secrets
//! without a form (a password in a sentence), and those that are split or encoded, are not found.

mod json;
mod rule;

use std::borrow::Cow;
use std::collections::BTreeMap;

pub use self::rule::NotRules;
use self::rule::{RedactionRule, rules};

/// Version of the rules: the date of their last change.
pub const RULES_OF: &str = "2026-11-25";

pub struct Redaction {
    rules: Vec<RedactionRule>,
    found: BTreeMap<&'static str, u64>,
}

impl Redaction {
    pub fn new() -> Result<Self, NotRules> {
        Ok(Self { rules: rules()?, found: BTreeMap::new() })
    }

    pub fn line<'a>(&mut self, json: &'a str) -> Cow<'a, str> {
        json::without(json, self)
    }

    pub fn text<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        let (mut text, mut small) = (Cow::Borrowed(text), text.to_lowercase());
        for rule in &self.rules {
            if !rule.is_possible(&small) {
                continue;
            }
            let (without, count) = rule.without(&text);
            if let Some(without) = without {
                *self.found.entry(rule.name()).or_default() += count;
                small = without.to_lowercase();
                text = Cow::Owned(without);
            }
        }
        text
    }

    /// Redacts the value of a field if the field's name suggests a secret; `None` if the value stays as it is.
    fn value(&mut self, name: &str, value: &str) -> Option<String> {
        let rule = self.rules.iter().find(|rule| rule.is_generic())?;
        if !rule.is_possible(&name.to_lowercase()) {
            return None;
        }
        let whole = format!("{name}={value}");
        let (without, count) = rule.without(&whole);
        let without = without?.strip_prefix(&format!("{name}="))?.to_owned();
        *self.found.entry(rule.name()).or_default() += count;
        Some(without)
    }

    pub const fn found(&self) -> &BTreeMap<&'static str, u64> {
        &self.found
    }
}

#[cfg(test)]
mod tests;
