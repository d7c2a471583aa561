use ipc::denial::Denial;
use ipc::id::AgentId;
use protocol::event::{Account, SubAgentResult, SubAgentStatus, counted};

use super::calls::duration;
use super::{AgentView, Agents, Model, access};
use crate::moment::UiTime;
use crate::text::{Ink, SafeText, Styled, Tone};
use crate::tool_summary::{cut, first_line};

/// Maximum number of columns for each of: task, running call, name of a denied object.
const COLUMNS: usize = 32;

/// Row of a sub-agent in the transcript of its parent.
#[derive(Clone, Debug)]
pub(crate) struct AgentRow {
    parent: AgentId,
    block: usize,
    hint: String,
    text: Styled,
}

impl AgentRow {
    pub(crate) fn new(parent: AgentId, block: usize, hint: String) -> Self {
        Self { parent, block, hint, text: Styled::default() }
    }

    pub(crate) fn is_at(&self, parent: &AgentId, block: usize) -> bool {
        self.parent == *parent && self.block == block
    }

    pub(crate) fn place(&self) -> (AgentId, usize) {
        (self.parent.clone(), self.block)
    }

    /// Replaces the text of the row. Returns false if the new text equals the old one.
    pub(crate) fn set(&mut self, text: &Styled) -> bool {
        let is_new = self.text != *text;
        if is_new {
            self.text = text.clone();
        }
        is_new
    }
}

impl AgentView {
    pub(crate) fn was_denied(&mut self, denial: &Denial) {
        let object = denial.object.to_string();
        if !self.denied.contains(&object) {
            self.denied.push(object);
        }
    }

    fn blocked(&self) -> Option<String> {
        let first = cut(self.denied.first()?, COLUMNS);
        Some(match self.denied.len() - 1 {
            0 => format!("blocked: {first}"),
            more => format!("blocked: {first} and {more} more"),
        })
    }
}

impl Agents {
    /// Drops the rows in the first agent's transcript whose blocks were removed: block `block` and all later ones.
    pub(crate) fn forget_rows(&mut self, block: usize) {
        let is_cut = |row: &mut AgentRow| row.parent == AgentId::root() && row.block >= block;
        self.all_mut().for_each(|view| _ = view.row.take_if(is_cut));
    }

    pub(crate) fn has_running_row(&self) -> bool {
        self.each().any(|(_, view)| view.row.is_some() && view.turn.is_running())
    }
}

/// Returns the text of a sub-agent's row; `None` if the sub-agent has no row. Example: `→ 1.2 List the tests ·
/// read-only · run rg -n test · 4 s · $0.01 · blocked: /etc`.
pub(crate) fn text(model: &Model, agent: &AgentId, result: Option<&SubAgentResult>) -> Option<Styled> {
    let (_, view) = model.agents.each().find(|(other, _)| *other == agent)?;
    let row = view.row.as_ref()?;
    // As in the row of a call, a mark and a word suffice to find the failure.
    let (mark, ink) = match result.map(|result| result.status) {
        None => ("→", Ink::Plain),
        Some(SubAgentStatus::Done) => ("✓", Ink::Plain),
        Some(_) => ("✗", Ink::Failed),
    };
    let task = cut(first_line(view.task.as_deref().unwrap_or_default()), COLUMNS);
    let role = view.role.as_ref().map(|role| format!(" as {role}")).unwrap_or_default();
    let access = access::brief(&view.session.rights, &model.start.project);
    let mut words = vec![format!(" {agent}{role} {task}").trim_end().to_owned(), access];
    let status = words.iter().filter(|word| !word.is_empty()).count();
    match result {
        None => words.extend([step(model, agent, view), lasted(view, model.now)]),
        Some(result) => words.extend(ending(result)),
    }
    let account = result
        .map_or_else(|| model.agents.spent_by(agent), |result| Account::of(result.usage, result.cost_usd));
    words.push(spent(&account));
    words.extend(view.blocked());
    words.push(row.hint.clone());
    words.retain(|word| !word.is_empty());
    let mut text = Styled::default();
    text.append(SafeText::line(mark).all(), Tone::of(ink));
    for (at, word) in words.iter().enumerate() {
        let ink = if at == status { ink } else { Ink::Plain };
        text.append(SafeText::line(if at == 0 { "" } else { " · " }).all(), Tone::default());
        text.append(SafeText::line(word).all(), Tone::of(ink));
    }
    Some(text)
}

fn lasted(view: &AgentView, now: UiTime) -> String {
    view.turn.began.map(|began| format!("{} s", now.since(began).as_secs())).unwrap_or_default()
}

/// Returns the agent's running call, or a word for its activity if no call runs.
fn step(model: &Model, agent: &AgentId, view: &AgentView) -> String {
    if model.cards.iter().any(|card| card.asked.agent == *agent) {
        return "asks you".to_owned();
    }
    view.activity().map_or_else(|| view.turn.doing.word().to_owned(), |call| cut(&call, COLUMNS))
}

/// Returns words for a sub-agent's result: status unless it is done, numbers of steps and changed files, duration.
fn ending(result: &SubAgentResult) -> Vec<String> {
    let status = match result.status {
        SubAgentStatus::Done => String::new(),
        status => status.to_string(),
    };
    let steps = match result.steps {
        0 => String::new(),
        1 => "1 step".to_owned(),
        steps => format!("{steps} steps"),
    };
    let files = match result.files.len() {
        0 => String::new(),
        1 => "1 file changed".to_owned(),
        files => format!("{files} files changed"),
    };
    vec![status, steps, files, duration(result.duration_ms)]
}

/// Returns the cost in money; if no price is known, the numbers of tokens.
fn spent(account: &Account) -> String {
    let usage = &account.usage;
    match account.money() {
        _ if usage.total() == 0 => String::new(),
        Some(money) => money,
        None => {
            let mark = usage.mark();
            format!("↑{mark}{} ↓{mark}{}", counted(usage.prompt()), counted(usage.output))
        }
    }
}
