//! Planners that a person starts in addition to the first agent. They are its sub-agents, but outlast its turns.

use agent::core::{NewAgent, Purpose};
use gate::Change;
use gate::tools::SpawnAgent;
use ipc::id::AgentId;
use ipc::rights::{Grant, Network, Reach, Rights};
use protocol::event::NoticeCode;
use protocol::frontend::AgentAction;

use super::super::SessionError;
use super::super::actions::resolved;
use super::super::run::Request;
use super::Session;

impl Session {
    pub(super) fn start_planner(&mut self, text: String) -> Result<(), SessionError> {
        match self.planner(text) {
            Ok(agent) => {
                // Where nobody works it is a turn of its own, with the limits of one.
                if !self.runs.iter().any(|run| !run.is_over() && run.agent().is_busy()) {
                    self.shared.begin_turn(&AgentId::root());
                }
                self.start_beside(AgentId::root(), agent)
            }
            Err(why) => self.notice(NoticeCode::PlanRefused, &format!("no planner was started: {why}")),
        }
    }

    /// Withdraws access from all planners and executors when the user withdraws it from any agent, before other steps.
    pub(super) fn take_back_from_plans(&mut self, action: &AgentAction) -> Result<(), SessionError> {
        let Some(first) = self.runs.first() else { return Ok(()) };
        let project = first.worker().confinement().project.as_path().to_owned();
        let change = match resolved(&project, action.clone()) {
            Ok(AgentAction::SetRights { change }) => Change::Rights(change),
            Ok(AgentAction::SetMode { mode }) => Change::Mode(mode),
            _ => return Ok(()),
        };
        self.tree.take_back_from_waiting(&change);
        self.for_each(|run, shared| run.take(shared, Request::TakeBack(change.clone())))
    }

    fn planner(&self, text: String) -> Result<Box<NewAgent>, String> {
        if text.trim().is_empty() {
            return Err("expected a text that says what to plan".to_owned());
        }
        if let Some(planner) = self.runs.iter().find(|run| run.agent().planning().is_some() && !run.is_over())
        {
            return Err(format!(
                "agent {} is making a plan already; write to that agent, or end it",
                planner.id()
            ));
        }
        let first = self.runs.first().filter(|first| !first.is_over()).ok_or("the session is over")?;
        let ceiling = first.agent().host_standing().clone();
        let rights = Rights {
            write: Vec::new(),
            net: Network::Off,
            reach: Reach::default(),
            sockets: Vec::new(),
            ..ceiling.rights.clone()
        };
        let said = first.agent().conversation();
        let task = if said.is_empty() {
            text
        } else {
            format!(
                "{text}\n\n<conversation>\nWhat the user and another agent have said so far, for context:\n{said}\n</conversation>"
            )
        };
        let planning = self.tree.planning(ceiling).ok_or("this session cannot make plans")?;
        let spawn = SpawnAgent {
            task,
            writes: false,
            write: Vec::new(),
            network: false,
            role: None,
            servers: Vec::new(),
            model: None,
            max_steps: None,
        };
        let purpose = Purpose::Planner(Box::new(planning));
        Ok(Box::new(NewAgent { spawn, rights: rights.normalised(), grant: Grant::default(), purpose }))
    }
}
