use agent::core::{ModelChoice, Window};
use model::provider::RequestOptions;

use crate::engine::driver::Models;

pub(super) struct OneModel;

impl Models for OneModel {
    fn choose(&self, name: &str) -> Result<ModelChoice, String> {
        let choice = ModelChoice {
            name: name.to_owned(),
            max_tokens: 1,
            options: RequestOptions::default(),
            sees_images: true,
            prices: None,
            window: Window::default(),
        };
        Some(choice).filter(|_| name == "n").ok_or_else(|| format!("{name} is another provider's"))
    }
}
