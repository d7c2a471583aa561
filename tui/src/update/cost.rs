//! `:cost`: the tokens and the money of the session, by agent.

use ipc::event::{Account, TokenUsage};

use crate::model::{AgentView, Block, Look, Model, Part};
use crate::text::SafeText;

/// Shows the account of all agents together, and below it that of each sub-agent.
pub(super) fn show(model: &mut Model) {
    let line = |name: &str, account: &Account| SafeText::line(&format!("{name:<14}{}", told(account)));
    let mut parts = vec![Part::new(SafeText::line("tokens and money of this session"), Look::Heading)];
    for (agent, view) in model.agents.each() {
        let name = if agent.is_top_level() { "all agents".to_owned() } else { format!("  agent {agent}") };
        parts.push(Part::new(line(&name, &account(view)), Look::Fact));
    }
    if let Some(share) = model.agents.shown().session.filled() {
        let text = format!("{:<14}{share}% of the model's window", "context");
        parts.push(Part::new(SafeText::line(&text), Look::Fact));
    }
    model.agents.shown_mut().transcript.push(Block::of(parts).apart());
}

/// The account of an agent, with the turn that runs.
fn account(view: &AgentView) -> Account {
    let mut account = view.session.account;
    if view.turn.is_running() {
        account += view.turn.account;
    }
    account
}

fn told(account: &Account) -> String {
    let is_priced = account.cost.is_some() || account.usage == TokenUsage::default();
    let unknown = if is_priced { "" } else { ", price not known" };
    format!("{account}{unknown}")
}
