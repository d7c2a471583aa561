//! Executions of plans that the end of Bailiwick's process cut off. A resumed session continues them at the same step.

use std::collections::BTreeSet;

use ipc::id::{AgentId, ConversationId};
use ipc::path::WirePath;
use protocol::event::{EventKind, PlanCreated, SessionEvent};
use protocol::frontend::{AgentAction, UserAction, UserActionKind};
use protocol::plan::{PlanStep, StepStatus};

use agent::core::Planning;

/// A plan whose execution has no end event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CutOffPlan {
    pub executor: AgentId,
    pub title: String,
    pub path: WirePath,
    /// SHA-256 of the plan's bytes, in hexadecimal.
    pub digest: String,
    pub markdown: String,
    pub steps: Vec<PlanStep>,
    /// Steps that are finished, counted from the first step. They are not executed again.
    pub finished: Vec<PlanStep>,
}

struct CutOffExecution<'a> {
    agent: &'a AgentId,
    plan: &'a PlanCreated,
    done: Vec<bool>,
}

impl CutOffExecution<'_> {
    fn finished(&self) -> Vec<PlanStep> {
        let done = self.plan.plan.steps.iter().zip(&self.done).take_while(|(_, done)| **done);
        done.map(|(step, _)| step.clone()).collect()
    }
}

struct Executions<'a> {
    /// The execution without an end event; `None` if all have ended.
    running: Option<CutOffExecution<'a>>,
    /// The latest execution that has an end event; `None` if none has.
    ended: Option<CutOffExecution<'a>>,
}

impl<'a> Executions<'a> {
    fn of(events: &'a [SessionEvent], planner: &AgentId) -> Self {
        let mut plans: Vec<&PlanCreated> = Vec::new();
        let (mut running, mut ended): (Option<CutOffExecution<'_>>, Option<CutOffExecution<'_>>) =
            (None, None);
        for event in events {
            match &event.kind {
                EventKind::PlanCreated(plan) if event.agent == *planner => plans.push(plan),
                EventKind::SubAgentSpawned(spawned) if event.agent == *planner => {
                    let digest = spawned.plan.as_deref();
                    let plan = plans.iter().rev().find(|plan| Some(plan.digest.as_str()) == digest);
                    let Some(plan) = plan else { continue };
                    let steps = plan.plan.steps.as_slice();
                    let finished = ended.as_ref().map(CutOffExecution::finished).unwrap_or_default();
                    let kept = finished.iter().zip(steps).take_while(|(done, step)| done == step).count();
                    // Only the start event reports steps that another session finished.
                    let kept = kept.max(usize::try_from(spawned.finished).unwrap_or(usize::MAX));
                    let done = (0..steps.len()).map(|at| at < kept).collect();
                    running = Some(CutOffExecution { agent: &spawned.agent, plan, done });
                }
                EventKind::PlanStepStatus(step) => {
                    let at = usize::try_from(step.step).ok().and_then(|number| number.checked_sub(1));
                    let of_it = running.as_mut().filter(|running| *running.agent == event.agent);
                    if let (Some(at), Some(running)) = (at, of_it)
                        && let Some(done) = running.done.get_mut(at)
                    {
                        *done = matches!(step.to, StepStatus::Completed | StepStatus::Skipped);
                    }
                }
                EventKind::SubAgentResult(result) => {
                    let over = running.take_if(|running| *running.agent == result.agent);
                    ended = over.or(ended);
                }
                _ => {}
            }
        }
        Self { running, ended }
    }
}

/// Returns the number of finished steps of the plan with this digest; `None` unless that plan was executed last.
pub(crate) fn finished_steps(events: &[SessionEvent], digest: &str) -> Option<u32> {
    let of_planner = |planner: &AgentId| {
        let Executions { running, ended } = Executions::of(events, planner);
        let last = running.or(ended).filter(|last| last.plan.digest == digest)?;
        u32::try_from(last.finished().len()).ok()
    };
    planners(events).into_iter().filter_map(of_planner).max()
}

fn planners(events: &[SessionEvent]) -> BTreeSet<&AgentId> {
    let is_plan = |event: &&SessionEvent| matches!(event.kind, EventKind::PlanCreated(_));
    events.iter().filter(is_plan).map(|event| &event.agent).collect()
}

impl CutOffPlan {
    /// Sets the finished steps of `planning` to those of the cut-off plan, if there is one.
    pub(super) fn with_finished(plan: Option<&Self>, planning: Planning) -> Planning {
        let finished = plan.map(|plan| plan.finished.clone());
        Planning { finished: finished.unwrap_or(planning.finished), ..planning }
    }

    /// Returns the user action that continues the execution. It needs a new approval.
    pub(super) fn goes_on(self, conversation: &ConversationId) -> UserAction {
        let kind = UserActionKind::Agent(AgentAction::ExecutePlan { markdown: self.markdown });
        UserAction { conversation_id: conversation.clone(), agent: None, kind }
    }

    /// Returns the cut-off plan of the first agent; `None` if there is none.
    pub(super) fn of(events: &[SessionEvent]) -> Option<Self> {
        Self::of_planner(events, &AgentId::root())
    }

    /// Returns the cut-off plans of all agents.
    pub(super) fn all(events: &[SessionEvent]) -> Vec<Self> {
        planners(events).into_iter().filter_map(|planner| Self::of_planner(events, planner)).collect()
    }

    fn of_planner(events: &[SessionEvent], planner: &AgentId) -> Option<Self> {
        let running = Executions::of(events, planner).running?;
        let PlanCreated { path, digest, markdown, plan, .. } = running.plan;
        Some(Self {
            executor: running.agent.clone(),
            title: plan.title.clone(),
            path: path.clone(),
            digest: digest.clone(),
            markdown: markdown.clone(),
            steps: plan.steps.clone(),
            finished: running.finished(),
        })
    }

    /// Returns a sentence for the user. `name` is the name of the plan's file; `None` if the file is gone.
    pub(super) fn told(&self, name: Option<&str>) -> String {
        let Self { executor, title, steps, finished, .. } = self;
        let number = finished.len() + 1;
        let step = steps.get(finished.len()).map(|step| format!(" ({})", step.title)).unwrap_or_default();
        let goes_on = match name {
            Some(name) => format!("`bailiwick plan execute {name}` continues at this step"),
            None => "the plan's file no longer exists: the session's log has its text".to_owned(),
        };
        format!(
            "agent {executor} was cut off while it executed the plan \"{title}\", at step {number} of {}{step}; {goes_on}",
            steps.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::journal::session::made::Log;
    use gate::plan::Document;

    const PLAN: &str = "# Two words\n\n## Steps\n\n### 1. Write two\n\n### 2. Write three\n";

    fn planned(log: Log) -> Log {
        planned_by(log, "1")
    }

    fn planned_by(log: Log, agent: &str) -> Log {
        let plan = Document::parse(PLAN).unwrap().plan().clone();
        log.with(
            agent,
            "plan_created",
            json!({"call": 1, "path": "/s/p.md", "digest": "d", "author": "planner", "markdown": PLAN, "plan": plan}),
        )
    }

    fn executed(log: Log, agent: &str) -> Log {
        let reach = json!({"host": false, "lan": false, "link_local": false, "metadata": false});
        let spawned = json!({"agent": agent, "call": 1, "plan": "d", "task": "t", "model": "m", "write": [], "net": "off",
            "reach": reach, "rights_digest": "r"});
        log.with(agent.rsplit_once('.').unwrap().0, "sub_agent_spawned", spawned)
    }

    fn step(log: Log, agent: &str, number: u32, to: &str) -> Log {
        log.with(
            agent,
            "plan_step_status",
            json!({"step": number, "title": "t", "from": "pending", "to": to}),
        )
    }

    fn ended(log: Log, agent: &str) -> Log {
        let usage = json!({"input": 0, "cache_creation": 0, "cache_read": 0, "output": 0});
        log.with(
            "1",
            "sub_agent_result",
            json!({"agent": agent, "call": 1, "status": "interrupted", "denials": 0, "steps": 1, "usage": usage,
                "duration_ms": 1, "text": ""}),
        )
    }

    fn cut_off(log: &Log) -> Option<usize> {
        let loaded = log.loaded();
        assert_eq!(loaded.faults, []);
        let events: Vec<_> = loaded.tree.events().cloned().collect();
        let cut_off = CutOffPlan::of(&events)?;
        assert_eq!(cut_off.markdown, PLAN);
        Some(cut_off.finished.len())
    }

    #[test]
    fn an_execution_without_an_end_goes_on_behind_what_every_execution_has_finished() {
        let log = planned(Log::new());
        assert_eq!(cut_off(&log), None);
        let log = step(executed(log, "1.1"), "1.1", 1, "in_progress");
        assert_eq!(cut_off(&log), Some(0));
        let log = step(log, "1.1", 1, "completed");
        assert_eq!(cut_off(&log), Some(1));
        // A continued execution does not report its earlier steps again.
        let log = ended(log, "1.1");
        assert_eq!(cut_off(&log), None);
        let log = executed(planned(log), "1.2");
        assert_eq!(cut_off(&log), Some(1));
        let log = step(step(log, "1.2", 2, "failed"), "1.1", 2, "completed");
        assert_eq!(cut_off(&log), Some(1), "the report of another agent");
        assert_eq!(cut_off(&step(log, "1.2", 2, "skipped")), Some(2));
    }

    #[test]
    fn an_execution_beside_the_first_agent_is_told_of_with_its_step() {
        let log = executed(planned_by(Log::new(), "1.1"), "1.1.2");
        let log = step(log, "1.1.2", 1, "completed");
        assert_eq!(cut_off(&log), None, "it is none of the first agent's");
        let events: Vec<_> = log.loaded().tree.events().cloned().collect();
        let [plan] = &CutOffPlan::all(&events)[..] else { panic!("{events:?}") };
        insta::assert_snapshot!(plan.told(Some("2026-11-26-120000")), @r#"agent 1.1.2 was cut off while it executed the plan "Two words", at step 2 of 2 (Write three); `bailiwick plan execute 2026-11-26-120000` continues at this step"#);
        insta::assert_snapshot!(plan.told(None), @r#"agent 1.1.2 was cut off while it executed the plan "Two words", at step 2 of 2 (Write three); the plan's file no longer exists: the session's log has its text"#);
    }
}
