//! Reads scripts. A script contains the project, the model's replies, and the actions of the front end.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use model::replay::{ReplayServer, sse};
use serde::Deserialize;
use serde_json::{Map, Value};
use tests::World;
use tests::replies::{model_of, model_of_agents};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
    /// Description for readers of the script.
    pub(crate) about: String,
    /// Content of the project's files, by name.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// Misbehaviour of `fake-worker`, if that replaces the worker; `None` for the real worker.
    pub(crate) worker: Option<String>,
    pub(crate) front_end: FrontEnd,
    replies: Vec<Reply>,
    /// Replies to sub-agents that work at the same time, by their tasks. If there are any, `replies` has those of the
    /// other agents.
    #[serde(default)]
    agents: BTreeMap<String, Vec<Reply>>,
    /// Names of the project's files that the snapshot contains.
    #[serde(default)]
    left: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum FrontEnd {
    /// Runs `bailiwick exec` with these flags.
    Exec { flags: Vec<String> },
    /// Runs `bailiwick serve`, with these parameters of `newConversation` and these steps.
    Serve { options: Map<String, Value>, steps: Vec<Step> },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Step {
    /// Sends a request of the conversation, and waits for the response.
    Call { method: String, params: Map<String, Value> },
    /// Waits for a notification with this method.
    Until(String),
    /// Waits for a notification with this method about an agent. Skips those about others.
    UntilOf { agent: String, method: String },
    /// Waits for a request of the server with this method, and answers it.
    Answer { method: String, result: Value },
    /// Waits until this file exists in the project.
    File(String),
    /// Creates a file in the project. A command waits for it.
    Make(String),
    /// Kills the worker of this agent.
    KillWorker(String),
    /// Checks that the first workers of these agents have ended, and that no process runs this command line.
    Gone { workers_of: Vec<String>, command: String },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    /// Text before the calls; `None` without one.
    says: Option<String>,
    #[serde(default)]
    calls: Vec<(String, Value)>,
    /// Number of tokens in the prompt, as the model reports it. `None` for a default number.
    prompt_tokens: Option<u64>,
}

impl Script {
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub(crate) fn lay_out(&self, world: &World) {
        for (name, text) in &self.files {
            world.file(name, text);
        }
    }

    pub(crate) fn model(&self) -> ReplayServer {
        let streams = |name: &str, replies: &[Reply]| -> Vec<String> {
            replies.iter().zip(1..).map(|(reply, number)| reply.stream(&format!("{name}{number}"))).collect()
        };
        let own = streams("", &self.replies);
        if !self.is_parallel() {
            return model_of(own);
        }
        let agents = self.agents.iter().zip('a'..);
        let theirs =
            agents.map(|((task, replies), name)| (task.clone(), streams(&name.to_string(), replies)));
        model_of_agents(own, theirs)
    }

    /// True if agents work at the same time, so that only the order of each agent's own events is fixed.
    pub(crate) fn is_parallel(&self) -> bool {
        !self.agents.is_empty()
    }

    /// Returns the names in `left`, each with the file's content after the session. `None` if there is no such file.
    pub(crate) fn left(&self, world: &World) -> Vec<(&str, Option<String>)> {
        let text = |name| fs::read_to_string(world.project().join(name)).ok();
        self.left.iter().map(|name| (name.as_str(), text(name))).collect()
    }
}

impl Reply {
    fn stream(&self, number: &str) -> String {
        let call = |(index, (name, input)): (usize, &(String, Value))| {
            sse::Block::tool_use(format!("toolu_{number}_{}", index + 1), name, input.to_string())
        };
        let words = self.says.iter().map(sse::Block::text);
        let blocks: Vec<_> = words.chain(self.calls.iter().enumerate().map(call)).collect();
        let usage = sse::Usage::default();
        let usage = sse::Usage { input: self.prompt_tokens.unwrap_or(usage.input), ..usage };
        sse::message(&blocks, if self.calls.is_empty() { "end_turn" } else { "tool_use" }, usage)
    }
}
