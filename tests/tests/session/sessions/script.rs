//! A script: the project, the model's replies, and the front end's part.

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
    /// A sentence for the reader.
    pub(crate) about: String,
    /// The project's files, by name.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// The misbehaviour of a worker that was taken over, if one stands in the worker's place: see `fake-worker`.
    pub(crate) worker: Option<String>,
    /// The driver of the session.
    pub(crate) front_end: FrontEnd,
    /// The model's replies, in their order.
    replies: Vec<Reply>,
    /// Its replies to sub-agents that work at the same time, by their tasks; with any, `replies` has those of the others.
    #[serde(default)]
    agents: BTreeMap<String, Vec<Reply>>,
    /// Files of the project that are shown after the session.
    #[serde(default)]
    left: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum FrontEnd {
    /// `bailiwick exec`, with these flags.
    Exec { flags: Vec<String> },
    /// `bailiwick serve`, with these parameters of `newConversation`.
    Serve { options: Map<String, Value>, steps: Vec<Step> },
}

/// The next action of a front end.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Step {
    /// Sends a request of the conversation, and waits for its response.
    Call { method: String, params: Map<String, Value> },
    /// Waits for a notification.
    Until(String),
    /// Waits for a notification about an agent, whatever came before it of others.
    UntilOf { agent: String, method: String },
    /// Waits for a request of the server, and answers it.
    Answer { method: String, result: Value },
    /// Waits until a command has made a file of the project.
    File(String),
    /// Makes a file of the project, which a command waits for.
    Make(String),
    /// Kills the worker of an agent.
    KillWorker(String),
    /// Fails unless the first workers of these agents are gone, and this command line with them.
    Gone { workers_of: Vec<String>, command: String },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    /// Words before the calls.
    says: Option<String>,
    /// Names and arguments of tool calls.
    #[serde(default)]
    calls: Vec<(String, Value)>,
    /// The tokens of the prompt, as the model counts them.
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

    /// True if agents work at the same time, so that only the order of each one's own events is always the same.
    pub(crate) fn is_parallel(&self) -> bool {
        !self.agents.is_empty()
    }

    /// Returns the content of the important files after the session.
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
