//! Planners that the user starts. They are sub-agents of the first agent, but do not end with its turn.

use agent::core::{NewAgent, Planning, Purpose};
use gate::StandingRights;
use gate::tools::SpawnAgent;
use ipc::rights::{Grant, Network, Reach, Rights};

use super::runs::AgentRuns;

/// Returns a planner for this task of the user. The error says why none can start. `planning` returns `None` if the
/// session makes no plans.
pub(super) fn planner(
    text: String,
    runs: &AgentRuns,
    planning: impl FnOnce(StandingRights) -> Option<Planning>,
) -> Result<Box<NewAgent>, String> {
    if text.trim().is_empty() {
        return Err("expected a text that says what to plan".to_owned());
    }
    if let Some(planner) = runs.iter().find(|run| run.agent().planning().is_some() && !run.is_over()) {
        return Err(format!(
            "agent {} is making a plan already; write to that agent, or end it",
            planner.id()
        ));
    }
    let first = runs.first().filter(|first| !first.is_over()).ok_or("the session is over")?;
    let ceiling = first.agent().host_standing().clone();
    let rights = Rights {
        write: Vec::new(),
        net: Network::Off,
        reach: Reach::default(),
        sockets: Vec::new(),
        ..ceiling.rights().clone()
    };
    let said = first.agent().conversation();
    let task = if said.is_empty() {
        text
    } else {
        format!(
            "{text}\n\n<conversation>\nWhat the user and another agent have said so far, for context:\n{said}\n</conversation>"
        )
    };
    let planning = planning(ceiling).ok_or("this session cannot make plans")?;
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
