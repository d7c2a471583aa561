use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::cost::{Prices, Usd};
use protocol::event::TokenUsage;

use super::request::RelayEstimate;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub max_usd: Option<Usd>,
    /// Maximum tokens of all prompts and replies together; `None` without a limit.
    pub max_tokens: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub requests: u64,
    pub refused: u64,
    /// Tokens that the client has spent, including estimates.
    pub tokens: u64,
    /// Money that the client has spent, including estimates.
    pub cost: Usd,
    /// The part of the spent money that is estimated, because replies were incomplete.
    pub estimated: Usd,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoBudget {
    /// The rest of the budget is reserved for other requests, which are not complete yet.
    Now,
    Spent(String),
}

#[derive(Debug, Default)]
struct Books {
    account: Account,
    open_tokens: u64,
    /// Reserved money in picodollars (10⁻¹² dollars).
    open_picos: u64,
}

#[derive(Clone, Debug)]
pub(super) struct RelayLedger {
    limits: Limits,
    books: Arc<Mutex<Books>>,
}

/// Budget that is reserved for one request. Dropping this value charges the estimate, because the reply may have begun.
#[derive(Debug)]
pub(super) struct Reservation {
    ledger: RelayLedger,
    estimate: RelayEstimate,
    is_open: bool,
}

impl RelayLedger {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, books: Arc::default() }
    }

    pub(super) fn account(&self) -> Account {
        self.books().account
    }

    pub(super) fn refused(&self) -> u64 {
        let mut books = self.books();
        books.account.refused += 1;
        books.account.refused
    }

    /// Reserves the estimated budget for a request. Fails if the rest of the budget is smaller.
    pub(super) fn reserve(&self, estimate: RelayEstimate) -> Result<Reservation, NoBudget> {
        let mut books = self.books();
        let Account { tokens, cost, .. } = books.account;
        let alone = self.over(tokens.saturating_add(estimate.tokens()), (cost + estimate.cost).picos());
        if let Some(limit) = alone {
            return Err(NoBudget::Spent(format!(
                "the budget of this client has no room for this request: its limit is {limit}, {cost} and \
                 {tokens} tokens are spent, and the request can cost up to {} and {} tokens",
                estimate.cost,
                estimate.tokens()
            )));
        }
        let open_tokens = books.open_tokens.saturating_add(estimate.tokens());
        let open_picos = books.open_picos.saturating_add(estimate.cost.picos());
        if self.over(tokens.saturating_add(open_tokens), cost.picos().saturating_add(open_picos)).is_some() {
            return Err(NoBudget::Now);
        }
        (books.open_tokens, books.open_picos) = (open_tokens, open_picos);
        books.account.requests += 1;
        Ok(Reservation { ledger: self.clone(), estimate, is_open: true })
    }

    /// Returns the limit that this spending would exceed; `None` if there is no such limit.
    fn over(&self, tokens: u64, picos: u64) -> Option<String> {
        let Limits { max_usd, max_tokens } = self.limits;
        let money = max_usd.filter(|max| picos > max.picos()).map(|max| max.to_string());
        money.or_else(|| max_tokens.filter(|max| tokens > *max).map(|max| format!("{max} tokens")))
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation {
    /// Charges the tokens that the provider reported. Returns their cost.
    pub(super) fn settle(mut self, usage: &TokenUsage, prices: &Prices) -> Usd {
        let cost = prices.cost(usage);
        self.close(usage.total(), cost, Usd::ZERO);
        cost
    }

    /// Charges an incomplete reply as the longest possible one, and its prompt by the provider's count if it is known.
    pub(super) fn settle_cut(mut self, usage: Option<&TokenUsage>, prices: &Prices) -> Usd {
        let known =
            usage.map(|usage| TokenUsage { output: self.estimate.output.max(usage.output), ..*usage });
        let known = known.map(|usage| (usage.total(), prices.cost(&usage)));
        let (tokens, cost) = known.unwrap_or((self.estimate.tokens(), self.estimate.cost));
        self.close(tokens, cost, cost);
        cost
    }

    /// Charges nothing, because the provider has not begun to answer the request.
    pub(super) fn release(mut self) {
        self.close(0, Usd::ZERO, Usd::ZERO);
    }

    fn close(&mut self, tokens: u64, cost: Usd, estimated: Usd) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        let mut books = self.ledger.books();
        books.open_tokens = books.open_tokens.saturating_sub(self.estimate.tokens());
        books.open_picos = books.open_picos.saturating_sub(self.estimate.cost.picos());
        books.account.tokens = books.account.tokens.saturating_add(tokens);
        books.account.cost += cost;
        books.account.estimated += estimated;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let RelayEstimate { cost, .. } = self.estimate;
        self.close(self.estimate.tokens(), cost, cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(text: &str) -> Usd {
        text.parse().expect("an amount")
    }

    fn estimate(cost: &str) -> RelayEstimate {
        RelayEstimate { prompt: 100, output: 100, cost: usd(cost) }
    }

    fn ledger(max: &str) -> RelayLedger {
        RelayLedger::new(Limits { max_usd: Some(usd(max)), max_tokens: None })
    }

    #[test]
    fn what_is_open_counts_and_what_is_dropped_is_paid() {
        let ledger = ledger("1");
        let first = ledger.reserve(estimate("0.6")).expect("room");
        assert_eq!(ledger.reserve(estimate("0.6")).expect_err("none now"), NoBudget::Now);
        first.release();
        assert_eq!(ledger.account().cost, Usd::ZERO);
        drop(ledger.reserve(estimate("0.6")).expect("room again"));
        let account = ledger.account();
        assert_eq!((account.cost, account.estimated, account.tokens), (usd("0.6"), usd("0.6"), 200));
        let error = ledger.reserve(estimate("0.6")).expect_err("none any more");
        assert!(matches!(error, NoBudget::Spent(why) if why.contains("$1.00") && why.contains("$0.60")));
        assert!(ledger.reserve(estimate("0.4")).is_ok());
    }

    #[test]
    fn a_reply_that_broke_off_costs_its_prompt_and_the_longest_reply() {
        let [one, ten] = ["1", "10"].map(|price| price.parse().expect("a price"));
        let rates = protocol::cost::Rates {
            input: one,
            output: ten,
            cache_write_5m: one,
            cache_write_1h: one,
            cache_read: one,
        };
        let prices = Prices { rates, long: None };
        let ledger = ledger("1");
        let reserved = ledger.reserve(estimate("0.6")).expect("room");
        let usage = TokenUsage { input: 1_000, output: 3, ..TokenUsage::default() };
        let cost = reserved.settle_cut(Some(&usage), &prices);
        assert_eq!(cost, usd("0.002"));
        assert_eq!(ledger.account().estimated, cost);
    }

    #[test]
    fn tokens_are_a_limit_of_their_own() {
        let ledger = RelayLedger::new(Limits { max_usd: None, max_tokens: Some(300) });
        let open = ledger.reserve(estimate("5")).expect("room");
        assert_eq!(ledger.reserve(estimate("5")).expect_err("none now"), NoBudget::Now);
        drop(open);
        assert!(matches!(ledger.reserve(estimate("5")), Err(NoBudget::Spent(_))));
    }
}
