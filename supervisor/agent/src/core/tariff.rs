use protocol::cost::{Prices, Usd};
use protocol::event::TokenUsage;

/// `None` if the prices are unknown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tariff(pub(super) Option<Prices>);

impl Tariff {
    /// `None` for a reply without a token count.
    pub(super) fn cost(self, usage: &TokenUsage) -> Option<Usd> {
        let prices = self.0.filter(|_| *usage != TokenUsage::default())?;
        Some(prices.cost(usage))
    }
}
