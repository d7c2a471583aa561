use std::time::Duration;

use ipc::id::AgentId;
use ipc::path::WirePath;
use ipc::rights::{NamedRoot, RightsSummary};
use protocol::event::{Account, Activity, SubAgentResult, SubAgentSpawned, SubAgentStatus, counted};

use super::part::MEASURE;
use super::{AgentView, Agents, Look, Model, Session, access, open_tasks};
use crate::moment::UiTime;
use crate::plan::Progress;
use crate::tool_summary::first_line;

/// Minimum width of a screen with a pane beside the transcript.
const BESIDE: u16 = 130;

/// Minimum and maximum width of the pane beside the transcript, in columns.
const COLUMNS: (u16, u16) = (30, 48);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    status: SubAgentStatus,
    lasted: Duration,
    past: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeLine {
    pub agent: AgentId,
    pub indent: u16,
    /// True if this line begins with the agent's name: the first of the lines about the agent.
    pub names: bool,
    pub over: bool,
    pub text: String,
}

impl AgentView {
    pub(crate) fn started(
        &mut self,
        now: UiTime,
        spawned: &SubAgentSpawned,
        parents: Activity,
        project: &WirePath,
    ) {
        self.task = Some(spawned.task.clone());
        self.role.clone_from(&spawned.role);
        self.session.activity = spawned.activity.unwrap_or(parents);
        let Session { model, window, net, rights, grants, pending, .. } = &mut self.session;
        // The context window of another model is unknown.
        *window = window.filter(|_| *model == spawned.model);
        model.clone_from(&spawned.model);
        net.clone_from(&spawned.net);
        *rights = RightsSummary {
            write: spawned.write.iter().map(|root| named(root, project, spawned.caches.as_ref())).collect(),
            net: spawned.net.clone(),
            reach: spawned.reach,
            sockets: spawned.sockets.clone(),
            ..rights.clone()
        };
        grants.clear();
        *pending = None;
        self.turn.begin(now);
        self.say(Look::Heading, &spawned.to_string());
    }

    pub(crate) fn ended(&mut self, result: &SubAgentResult) {
        let lasted = Duration::from_millis(result.duration_ms);
        self.ended = Some(Ended { status: result.status, lasted, past: false });
        self.turn.end();
        self.say(Look::Turn, &result.to_string());
    }

    fn is_past(&self) -> bool {
        self.ended.is_some_and(|ended| ended.past)
    }

    fn state(&self, asks: bool, now: UiTime) -> String {
        match (self.ended, self.turn.began) {
            (Some(Ended { status, lasted, .. }), _) => format!("{status} {} s", lasted.as_secs()),
            (None, Some(_)) if asks => "asks you".to_owned(),
            (None, Some(began)) => self.turn.doing.words(began, now),
            (None, None) => "idle".to_owned(),
        }
    }

    pub(super) fn activity(&self) -> Option<String> {
        self.calls.values().next().map(super::Call::summary)
    }
}

impl Agents {
    pub(crate) fn listed(&self, all: bool) -> Vec<(&AgentId, &AgentView)> {
        let is_wanted = |view: &AgentView| all || !view.is_past();
        let mut agents: Vec<_> = self.each().filter(|(_, view)| is_wanted(view)).collect();
        agents.sort_by(|(one, _), (other, _)| one.in_tree().cmp(&other.in_tree()));
        agents
    }

    pub(crate) fn of_turn(&self, agent: &AgentId) -> Account {
        let turn = self.each().find(|(other, _)| *other == agent).map(|(_, view)| &view.turn);
        let mut account = turn.map(|turn| turn.account).unwrap_or_default();
        account += turn.map(|turn| turn.below).unwrap_or_default();
        account
    }

    pub(crate) fn began(&self) -> Option<UiTime> {
        self.each().filter_map(|(_, view)| view.turn.began).max()
    }

    /// Hides sub-agents that have ended. Called when the user's next turn begins.
    pub(crate) fn forget_ended(&mut self) {
        for view in self.all_mut() {
            view.guests.forget_ended();
            view.ended.iter_mut().for_each(|ended| ended.past = true);
        }
    }
}

/// Returns the agents in the order of the list, parents before their sub-agents.
pub(crate) fn listed(model: &Model) -> Vec<(&AgentId, &AgentView)> {
    model.agents.listed(model.walks_tree())
}

/// True if the screen shows other running times than that of the shown agent's turn: of agents, or of plan steps.
pub(crate) fn counts_seconds(model: &Model) -> bool {
    let is_listed = model.walks_tree() || columns(model, model.size.0).is_some();
    is_listed
        || model.agents.has_running_row()
        || model.mode == super::Mode::Plan && model.plans.current().is_some_and(Progress::runs)
}

/// Returns the width of the pane beside the transcript; `None` if the pane is hidden. It gets columns that prose does
/// not use, so that opening it does not wrap prose again.
pub(crate) fn columns(model: &Model, width: u16) -> Option<u16> {
    let has_content =
        listed(model).len() > 1 || model.plans.beside().is_some() || open_tasks(model).is_some();
    let shows = model.walks_tree() || has_content && !model.is_pane_folded;
    let left = width.saturating_sub(MEASURE);
    (shows && width >= BESIDE).then(|| left.clamp(COLUMNS.0, COLUMNS.1))
}

pub(crate) fn lines(model: &Model) -> Vec<TreeLine> {
    listed(model).into_iter().flat_map(|(agent, view)| lines_of(model, agent, view)).collect()
}

fn lines_of(model: &Model, agent: &AgentId, view: &AgentView) -> Vec<TreeLine> {
    let asks = model.cards.iter().any(|card| card.asked.agent == *agent);
    let indent = u16::try_from(agent.level()).unwrap_or(u16::MAX).saturating_mul(2);
    let over = view.ended.is_some();
    let line = |names, text| TreeLine { agent: agent.clone(), indent, names, over, text };
    let (state, spent) = (view.state(asks, model.now), brief(&model.agents.spent_by(agent)));
    let task = view.task.as_deref().map_or("main", first_line);
    let plans = if view.session.activity == Activity::Plan { "plan · " } else { "" };
    if over {
        return vec![line(true, format!("{agent} {state} · {plans}{task} · {spent}"))];
    }
    let activity = view.activity().map(|activity| format!(" · {activity}")).unwrap_or_default();
    let project = &model.start.project;
    let own = [
        line(true, format!("{agent} {plans}{task}")),
        line(false, format!("{state}{activity}")),
        line(false, format!("{} · {spent}", access::brief(&view.session.rights, project))),
    ];
    let guests = view.guests.lines(project).into_iter();
    let guests = guests.map(|(text, over)| TreeLine { over, ..line(false, format!("◦ {text}")) });
    own.into_iter().chain(guests).collect()
}

fn named(root: &WirePath, project: &WirePath, caches: Option<&WirePath>) -> NamedRoot {
    if root == project {
        NamedRoot::Project
    } else if caches == Some(root) {
        NamedRoot::Caches
    } else {
        NamedRoot::Path(root.clone())
    }
}

fn brief(account: &Account) -> String {
    let mark = account.usage.mark();
    let cost = account.money().map(|money| format!(" {money}")).unwrap_or_default();
    format!("↑{mark}{} ↓{mark}{}{cost}", counted(account.usage.prompt()), counted(account.usage.output))
}
