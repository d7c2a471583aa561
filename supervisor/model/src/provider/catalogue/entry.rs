//! What one source says of a model.

use protocol::cost::Prices;
use toml_edit::Item;

use super::field::{BadFact, FIELDS};
use super::{Api, Facts, ThinkingKind};
use crate::provider::Effort;
use crate::provider::anthropic::ApiVersion;

/// Facts about a model from one source; another source may have the missing ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The API that it is asked by.
    pub api: Option<Api>,
    /// The version of the Messages API.
    pub api_version: Option<ApiVersion>,
    /// The most tokens of a prompt and its reply.
    pub context: Option<u64>,
    /// The most tokens of a reply.
    pub max_output: Option<u32>,
    /// Prices of the model.
    pub prices: Option<Prices>,
    /// Way of configuring its thinking.
    pub thinking: Option<ThinkingKind>,
    /// The levels of effort that it knows.
    pub effort: Option<Vec<Effort>>,
    /// True if it accepts pictures.
    pub images: Option<bool>,
}

impl Entry {
    /// Says one thing, from a file.
    pub fn set(&mut self, name: &str, item: &Item) -> Result<(), BadFact> {
        let field = FIELDS.iter().find(|field| field.name == name).ok_or(BadFact::Unknown)?;
        (field.read)(self, item).ok_or(BadFact::Expected(field.expected))
    }
}

/// Everything at once.
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
