//! The tool that starts a sub-agent. The documentation of a field is what the model reads.

use ipc::path::WirePath;
use schemars::JsonSchema;
use serde::Deserialize;

use super::arguments::{Misfit, filled, path, positive};
use super::typed::{Arguments, Typed};
use super::{Invocation, Tool};

/// The most characters of a task.
const LONGEST_TASK: usize = 32 << 10;

/// A call for a sub-agent, as its parent wrote it: its rights are the gate's to work out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnAgent {
    /// The whole of what the sub-agent is told to do.
    pub task: String,
    /// True if it may write at all.
    pub writes: bool,
    /// The files and trees that it may write, relative to the project or absolute; all that its parent may if there are none.
    pub write: Vec<WirePath>,
    /// True if it needs the network.
    pub network: bool,
    /// Its model, where that is another than its parent's.
    pub model: Option<String>,
    /// The most replies of its model.
    pub max_steps: Option<u32>,
}

/// The tool, for an agent that may have sub-agents.
pub(super) fn spawning() -> Box<dyn Tool> {
    Box::new(Typed::<Spawn>::new())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Spawn {
    /// Everything that it has to know: it sees nothing of this conversation. Say what to do, where to look, what to report.
    task: String,
    /// "read" (the default): it reads, and runs commands that write nothing but its own TMPDIR. "write": it may change
    /// files.
    access: Option<Access>,
    /// Only these files and directories may it change, relative to the project or absolute. Absent with access "write":
    /// all that you may change.
    write: Option<Vec<String>>,
    /// Whether it needs the network.
    network: Option<bool>,
    /// Another model than yours, where the user allows it.
    model: Option<String>,
    /// The most replies that it may take.
    #[schemars(range(min = 1))]
    max_steps: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Access {
    Read,
    Write,
}

impl Arguments for Spawn {
    type Call = SpawnAgent;

    const NAME: &'static str = "spawn_agent";
    const DESCRIPTION: &'static str = "Starts a sub-agent: another agent with an empty conversation and a sandbox of its \
        own, which carries out one task and reports back. Several in one reply run at the same time. Returns what the \
        supervisor saw of it (status, files, cost), then its last message.";

    fn into_call(self) -> Result<SpawnAgent, Misfit> {
        let Self { task, access, write, network, model, max_steps } = self;
        let task = filled("task", task)?;
        if task.len() > LONGEST_TASK {
            let got = task.len();
            return Err(("task", format!("got {got} bytes, expected at most {LONGEST_TASK}")));
        }
        let write = write.unwrap_or_default();
        if matches!(access, Some(Access::Read)) && !write.is_empty() {
            return Err(("write", "got paths beside access \"read\", expected one of the two".to_owned()));
        }
        let writes = matches!(access, Some(Access::Write)) || !write.is_empty();
        Ok(SpawnAgent {
            task,
            writes,
            write: write.iter().map(|text| path("write", text)).collect::<Result<_, _>>()?,
            network: network.unwrap_or(false),
            model: model.map(|name| filled("model", name)).transpose()?,
            max_steps: positive("max_steps", max_steps)?,
        })
    }
}

impl From<SpawnAgent> for Invocation {
    fn from(spawn: SpawnAgent) -> Self {
        Self::Agent(spawn)
    }
}
