use ipc::denial::Denial;
use ipc::id::AgentId;
use protocol::event::{Account, SubAgentResult, SubAgentSpawned, SubAgentStatus, counted};

use super::calls::duration;
use super::{AgentView, Agents, Block, Look, Model, Part, access};
use crate::text::{Ink, SafeText, Styled, Tone};
use crate::tool_summary::{cut, first_line};

/// Maximum number of columns of a task, a step or a denied place.
const COLUMNS: usize = 32;

#[derive(Clone, Debug)]
pub(crate) struct AgentRow {
    parent: AgentId,
    block: usize,
    hint: String,
    text: Styled,
}

impl AgentRow {
    /// True if the row is this block of an agent's transcript.
    pub(crate) fn is_at(&self, parent: &AgentId, block: usize) -> bool {
        self.parent == *parent && self.block == block
    }
}

impl AgentView {
    /// Shown in the row.
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
    /// Drops the rows from a block on, which the first agent's transcript has no more.
    pub(crate) fn forget_rows(&mut self, block: usize) {
        let is_cut = |row: &mut AgentRow| row.parent == AgentId::root() && row.block >= block;
        self.all_mut().for_each(|view| _ = view.row.take_if(is_cut));
    }
}

impl Model {
    /// Replaces the row of the call that started the sub-agent.
    pub(crate) fn begin_row(&mut self, parent: &AgentId, spawned: &SubAgentSpawned) {
        let view = self.agents.of(parent);
        let call = spawned.call.and_then(|call| view.calls.get_mut(&call));
        let block = if let Some(call) = call {
            call.is_agent = true;
            call.block
        } else {
            view.transcript.push(Block::of(vec![Part::new(SafeText::default(), Look::Tool)]))
        };
        let hint = match spawned.call {
            Some(_) => String::new(),
            None => format!(":agent {} shows it", spawned.agent),
        };
        self.agents.of(&spawned.agent).row =
            Some(AgentRow { parent: parent.clone(), block, hint, text: Styled::default() });
    }

    pub(crate) fn renew_rows(&mut self) {
        let running = self.agents.each().filter(|(_, view)| view.ended.is_none() && view.row.is_some());
        let running: Vec<_> = running.map(|(agent, _)| agent.clone()).collect();
        for agent in running {
            self.renew_row(&agent, None);
        }
    }

    /// With the steps of a plan that the sub-agent executed.
    pub(crate) fn end_row(&mut self, result: &SubAgentResult) {
        let view = self.agents.of(&result.agent);
        result.denied.iter().for_each(|denial| view.was_denied(denial));
        self.renew_row(&result.agent, Some(result));
        let Some(row) = self.agents.of(&result.agent).row.take() else { return };
        let steps = result.plan.iter().map(|step| format!("  {step}"));
        // The row names what was denied, and the message repeats that in the model's words.
        let message = result.message.as_ref().filter(|_| result.status != SubAgentStatus::Denied);
        let further = steps.chain(message.map(|message| format!("  {message}")));
        let parts: Vec<_> = further.map(|text| Part::new(SafeText::prose(&text), Look::Turn)).collect();
        if let Some(block) = self.agents.of(&row.parent).transcript.block_mut(row.block) {
            let at = block.parts.len().min(1);
            block.parts.splice(at..at, parts);
        }
    }

    /// True if the row of a running sub-agent counts its seconds.
    pub(crate) fn has_running_row(&self) -> bool {
        self.agents.each().any(|(_, view)| view.row.is_some() && view.turn.is_running())
    }

    fn renew_row(&mut self, agent: &AgentId, result: Option<&SubAgentResult>) {
        let Some((_, view)) = self.agents.each().find(|(other, _)| *other == agent) else { return };
        let Some(row) = &view.row else { return };
        let text = self.row_of(agent, view, row, result);
        if text == row.text {
            return;
        }
        let (parent, block) = (row.parent.clone(), row.block);
        if let Some(row) = &mut self.agents.of(agent).row {
            row.text = text.clone();
        }
        let block = self.agents.of(&parent).transcript.block_mut(block);
        if let Some(head) = block.and_then(|block| block.parts.first_mut()) {
            head.replace(text, Look::Tool);
        }
    }

    /// Such as `→ 1.2 List the tests · read-only · run rg -n test · 4 s · $0.01 · blocked: /etc`.
    fn row_of(
        &self,
        agent: &AgentId,
        view: &AgentView,
        row: &AgentRow,
        result: Option<&SubAgentResult>,
    ) -> Styled {
        // As in the row of a call, a mark and a word are enough to find the failure.
        let (mark, ink) = match result.map(|result| result.status) {
            None => ("→", Ink::Plain),
            Some(SubAgentStatus::Done) => ("✓", Ink::Plain),
            Some(_) => ("✗", Ink::Failed),
        };
        let task = cut(first_line(view.task.as_deref().unwrap_or_default()), COLUMNS);
        let role = view.role.as_ref().map(|role| format!(" as {role}")).unwrap_or_default();
        let access = access::brief(&view.session.rights, &self.start.project);
        let mut words = vec![format!(" {agent}{role} {task}").trim_end().to_owned(), access];
        let status = words.iter().filter(|word| !word.is_empty()).count();
        match result {
            None => words.extend([self.step_of(agent, view), self.lasted(view)]),
            Some(result) => words.extend(ending(result)),
        }
        let account = result
            .map_or_else(|| self.agents.spent_by(agent), |result| Account::of(result.usage, result.cost_usd));
        words.push(spent(&account));
        words.extend(view.blocked());
        words.push(row.hint.clone());
        words.retain(|word| !word.is_empty());
        let mut row = Styled::default();
        row.append(SafeText::line(mark).all(), Tone::of(ink));
        for (at, word) in words.iter().enumerate() {
            let ink = if at == status { ink } else { Ink::Plain };
            row.append(SafeText::line(if at == 0 { "" } else { " · " }).all(), Tone::default());
            row.append(SafeText::line(word).all(), Tone::of(ink));
        }
        row
    }

    fn lasted(&self, view: &AgentView) -> String {
        view.turn.began.map(|began| format!("{} s", self.now.since(began).as_secs())).unwrap_or_default()
    }

    /// A call, or a word for the turn.
    fn step_of(&self, agent: &AgentId, view: &AgentView) -> String {
        if self.cards.iter().any(|card| card.asked.agent == *agent) {
            return "asks you".to_owned();
        }
        view.activity().map_or_else(|| view.turn.doing.word().to_owned(), |call| cut(&call, COLUMNS))
    }
}

/// Kind of the end, unless it is the usual one, with steps, changed files and time.
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

/// The tokens if no price is known.
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
