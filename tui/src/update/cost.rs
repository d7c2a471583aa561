//! `:cost`: page with the tokens and cost of each agent in the session.

use protocol::event::{Account, TokenUsage};

use crate::model::{Block, Look, Model, Part};
use crate::text::SafeText;

pub(super) fn show(model: &mut Model) {
    let line = |name: &str, account: &Account| {
        Part::new(SafeText::line(&format!("{name:<14}{}", told(account))), Look::Fact)
    };
    let mut parts = vec![Part::new(SafeText::line("tokens and money of this session"), Look::Heading)];
    parts.push(line("all agents", &model.agents.spent_in_all()));
    let spent = model.agents.spent();
    if spent.iter().any(|(agent, _)| !agent.is_top_level()) {
        parts.extend(spent.iter().map(|(agent, account)| line(&format!("  agent {agent}"), account)));
    }
    if let Some(share) = model.agents.shown().session.filled() {
        let text = format!("{:<14}{share}% of the model's window", "context");
        parts.push(Part::new(SafeText::line(&text), Look::Fact));
    }
    model.open_page(Block::of(parts));
}

fn told(account: &Account) -> String {
    let is_priced = account.cost.is_some() || account.usage == TokenUsage::default();
    let unknown = match account.money() {
        _ if is_priced => "",
        Some(_) => " (the price of a part is not known)",
        None => ", price not known",
    };
    format!("{account}{unknown}")
}
