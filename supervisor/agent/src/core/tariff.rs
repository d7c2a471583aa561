//! Costs of replies.

use protocol::cost::{Prices, Usd};
use protocol::event::TokenUsage;

/// Prices of the model, where they are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tariff(pub(super) Option<Prices>);

impl Tariff {
    /// Returns the cost of a reply. A reply whose tokens nobody told has no cost that could be told.
    pub(super) fn cost(self, usage: &TokenUsage) -> Option<Usd> {
        let prices = self.0.filter(|_| *usage != TokenUsage::default())?;
        Some(prices.cost(usage))
    }
}
