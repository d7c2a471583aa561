use protocol::cost::{Prices, Usd};
use protocol::event::TokenUsage;

/// Prices of the model; `None` if they are unknown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tariff(pub(super) Option<Prices>);

impl Tariff {
    /// Returns the cost of these tokens; `None` without a token count or without prices.
    pub(super) fn cost(self, usage: &TokenUsage) -> Option<Usd> {
        let prices = self.0.filter(|_| *usage != TokenUsage::default())?;
        Some(prices.cost(usage))
    }
}
