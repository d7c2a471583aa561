//! The access that running agents really have. A process in the sandbox of each worker measures this access.

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

use ipc::id::{AgentId, Generation};
use ipc::path::WirePath;
use ipc::rights::NamedPlaces;
use protocol::event::EventKind;
use serde::Serialize;

use super::effective::EffectiveAccess;
use crate::engine::driver::Live;
use crate::engine::live::{LiveAnswer, ask_all};
use crate::inspect::explain::ExplainedPlace;
use crate::journal::session;
use crate::process::directories::Directories;
use crate::settings::args::AgentArgs;

#[derive(Debug, Serialize)]
pub(super) struct RunningAgent {
    session: String,
    #[serde(flatten)]
    found: FoundAgent,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum FoundAgent {
    Agent(Box<OfAgent>),
    Unasked {
        /// The agent; `None` if its session did not answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
        /// The reason why the agent was not measured.
        unasked: String,
    },
}

#[derive(Debug, Serialize)]
struct OfAgent {
    agent: AgentId,
    worker: Generation,
    pid: u32,
    project: WirePath,
    /// SHA-256 of the kernel's rules in the session's log; `None` if the log does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    logged_digest: Option<String>,
    #[serde(flatten)]
    effective: EffectiveAccess,
}

impl RunningAgent {
    /// Measures the agents of all sessions of this user that are running.
    pub(super) async fn all(args: &AgentArgs, directories: &Directories) -> Vec<Self> {
        let mut all = Vec::new();
        for (session, answered) in ask_all(directories).await {
            let unasked = |why: String| vec![FoundAgent::Unasked { agent: None, unasked: why }];
            let found = match answered {
                LiveAnswer::Live(lives) => of_agents(args, directories, lives).await,
                LiveAnswer::NoWorker => unasked("the agent has no worker at present".to_owned()),
                LiveAnswer::Nothing(why) => unasked(why),
            };
            all.extend(found.into_iter().map(|found| Self { session: session.clone(), found }));
        }
        all
    }

    /// True if the measured access agrees with the declared access and with the log.
    pub(super) fn is_sound(&self) -> bool {
        match &self.found {
            FoundAgent::Agent(agent) => agent.effective.is_as_declared(),
            FoundAgent::Unasked { .. } => false,
        }
    }
}

/// Measures one agent after another, because parallel measurements would delay each other.
async fn of_agents(args: &AgentArgs, directories: &Directories, lives: Vec<Live>) -> Vec<FoundAgent> {
    let mut found = Vec::new();
    for live in lives {
        let agent = live.agent.clone();
        found.push(match Box::pin(of_agent(args, directories, live)).await {
            Ok(agent) => FoundAgent::Agent(Box::new(agent)),
            Err(unasked) => FoundAgent::Unasked { agent: Some(agent), unasked },
        });
    }
    found
}

async fn of_agent(args: &AgentArgs, directories: &Directories, live: Live) -> Result<OfAgent, String> {
    let directory = PathBuf::from(live.confinement.project.as_path());
    let place = ExplainedPlace::prepare(&AgentArgs { directory, ..args.clone() })
        .map_err(|error| error.to_string())?;
    let Live { agent, generation, pid, mode, is_fixed, ref confinement, .. } = live;
    let declared = place.setup.standing().with_rights(confinement.rights.clone());
    let declared = declared.in_directories(confinement.project.clone(), confinement.temp.clone());
    let declared = declared.with_caches(live.caches.clone()).with_mode(mode);
    let declared = if is_fixed { declared.fixed() } else { declared };
    let tried = EffectiveAccess::tried(&place, confinement.clone(), |tier| declared.seen_in(tier)).await;
    let mut effective = tried.map_err(|error| error.to_string())?;
    let (project, temp) = (&confinement.project, confinement.temp.as_ref());
    effective.rights =
        confinement.rights.summary(NamedPlaces { project, temp, caches: live.caches.as_ref() });
    let logged_digest = logged(directories, &live.session.to_string(), &agent, generation);
    effective.differences.extend(differences(&effective, &live.ruleset_digest, logged_digest.as_deref()));
    let project = live.confinement.project;
    Ok(OfAgent { agent, worker: generation, pid, project, logged_digest, effective })
}

/// Returns the differences of the measured rules from the rules that the session reports, and from those in the log.
fn differences(effective: &EffectiveAccess, told: &str, logged: Option<&str>) -> Vec<String> {
    let found = &effective.ruleset_digest;
    let mut differences = Vec::new();
    if found != told {
        differences.push(format!("ruleset: the session reports {told}"));
    }
    match logged {
        Some(logged) if logged != found => {
            differences.push(format!("ruleset: the session's log has {logged}"));
        }
        Some(_) => {}
        None => differences.push("ruleset: the session's log has no ruleset of this worker".to_owned()),
    }
    differences
}

/// Returns the SHA-256 of a worker's rules from the session's log; `None` if the log does not have it.
fn logged(
    directories: &Directories,
    session: &str,
    agent: &AgentId,
    generation: Generation,
) -> Option<String> {
    let loaded = session::load(&directories.sessions().join(session).with_extension("jsonl")).ok()?;
    let of_agent = loaded.tree.events().filter(|event| event.agent == *agent);
    let digests = of_agent.filter_map(|event| match &event.kind {
        EventKind::WorkerStarted(started)
            if started.generation == generation && started.one_shot.is_none() =>
        {
            Some(started.ruleset_digest.clone())
        }
        _ => None,
    });
    digests.last()
}

impl Display for RunningAgent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let session = &self.session;
        match &self.found {
            FoundAgent::Unasked { agent: None, unasked } => {
                writeln!(f, "session {session} runs, but did not answer: {unasked}")
            }
            FoundAgent::Unasked { agent: Some(agent), unasked } => {
                writeln!(f, "session {session} runs: agent {agent} could not be tested: {unasked}")
            }
            FoundAgent::Agent(found) => {
                let OfAgent { agent, worker, pid, project, effective, .. } = &**found;
                writeln!(
                    f,
                    "session {session} runs: agent {agent}, worker {worker} (pid {pid}) in {project}"
                )?;
                effective.fmt(f)
            }
        }
    }
}
