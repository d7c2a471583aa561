use protocol::cost::Prices;
use toml_edit::Item;

use super::field::{BadFact, FIELDS};
use super::{Api, Facts, ThinkingKind};
use crate::provider::Effort;
use crate::provider::anthropic::ApiVersion;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub api: Option<Api>,
    pub api_version: Option<ApiVersion>,
    /// Maximum tokens of a prompt and its reply together; `None` if the entry does not set it.
    pub context: Option<u64>,
    pub max_output: Option<u32>,
    pub prices: Option<Prices>,
    pub thinking: Option<ThinkingKind>,
    pub effort: Option<Vec<Effort>>,
    pub images: Option<bool>,
}

impl Entry {
    /// Sets one property from a settings file. Fails for an unknown name or an invalid value.
    pub fn set(&mut self, name: &str, item: &Item) -> Result<(), BadFact> {
        let field = FIELDS.iter().find(|field| field.name == name).ok_or(BadFact::Unknown)?;
        (field.read)(self, item).ok_or(BadFact::Expected(field.expected))
    }
}

impl From<Facts> for Entry {
    fn from(facts: Facts) -> Self {
        let Facts { api, api_version, context, max_output, prices, thinking, effort, images } = facts;
        Self {
            api: Some(api),
            api_version: Some(api_version),
            context: Some(context),
            max_output: Some(max_output),
            prices,
            thinking: Some(thinking),
            effort,
            images: Some(images),
        }
    }
}
