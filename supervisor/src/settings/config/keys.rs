//! The table of keys: the settings, their kinds of values, and what a project's file may do with each.

use agent::core::Window;

#[derive(Debug)]
pub struct Key {
    pub name: &'static str,
    pub kind: Kind,
    pub project: ProjectMay,
    pub preset: Preset,
    pub about: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    /// The base URL of a server.
    Address,
    /// One of these words, the strictest first.
    Choice(&'static [&'static str]),
    Choices(&'static [&'static str]),
    Paths,
    /// Environment variables as `NAME` or `NAME=VALUE`.
    Variables,
    /// Beginnings of commands, each a list of words.
    Commands,
    Names,
    /// A number within these bounds. Lower numbers are stricter.
    Count {
        least: u64,
        most: u64,
    },
    /// An amount in US dollars. Lower amounts are stricter.
    Amount,
    /// A time in seconds, whole or with a fraction ([`time_of`](super::value::time_of)). Shorter times are stricter.
    Time,
    Switch,
    /// `off`, or a list of hosts; a flag can also set `on`. A network is stricter than one that includes it.
    Network,
}

/// The effect that a project's file may have on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectMay {
    /// The file may add elements to the list. Each element restricts agents.
    Narrow,
    /// The file may set a stricter value. A less strict value needs the person's trust.
    Lower,
    IfTrusted,
    /// The file cannot set the key.
    Never,
}

/// The default value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    Word(&'static str),
    Number(u64),
    Off,
    NoNetwork,
    Empty,
    /// No value. The text explains the behaviour without a value.
    Unset(&'static str),
}

const DAY: u64 = 24 * 60 * 60;

/// Maximum value of a limit of replies or tokens: some of these limits are stored as `u32`.
const MOST: u64 = u32::MAX as u64;

pub(crate) const MODEL: &str = "claude-opus-5-5";

/// Every key in the order of display.
pub const KEYS: &[Key] = &[
    Key {
        name: "mode",
        kind: Kind::Choice(&["deny", "ask", "auto"]),
        project: ProjectMay::Lower,
        preset: Preset::Word("ask"),
        about: "The mode in which the terminal UI starts: `ask` asks before changes, `auto` allows changes in the project, `deny` denies changes. `exec` takes its mode from `--mode`, which a project can restrict as well; `sandbox` has no mode.",
    },
    Key {
        name: "model",
        kind: Kind::Text,
        project: ProjectMay::IfTrusted,
        preset: Preset::Word(MODEL),
        about: "The name of the model.",
    },
    Key {
        name: "theme",
        kind: Kind::Choice(&["auto", "dark", "light", "high-contrast"]),
        project: ProjectMay::Never,
        preset: Preset::Word("auto"),
        about: "The colours of the terminal UI. `auto` asks the terminal for its background colour; without an answer it reads `COLORFGBG`, and without that variable it uses `dark`. `NO_COLOR` switches all colours off.",
    },
    Key {
        name: "key_modes",
        kind: Kind::Choice(&["modal", "plain"]),
        project: ProjectMay::Never,
        preset: Preset::Word("modal"),
        about: "The modes of the keys in the terminal UI: `modal` has INSERT and NORMAL, `plain` has no NORMAL, so that keys for characters always write text.",
    },
    Key {
        name: "status",
        kind: Kind::Choice(&["full", "short"]),
        project: ProjectMay::Never,
        preset: Preset::Word("full"),
        about: "The status row of the terminal UI: `short` hides what is usual, such as INSERT, EXECUTE, `net off`, `read-only` and the directory.",
    },
    Key {
        name: "mouse",
        kind: Kind::Choice(&["wheel", "off"]),
        project: ProjectMay::Never,
        preset: Preset::Word("wheel"),
        about: "The mouse in the terminal UI: with `wheel` it scrolls, and Shift and drag select text; with `off` the terminal handles the mouse.",
    },
    Key {
        name: "provider",
        kind: Kind::Choice(&["anthropic", "openai", "responses"]),
        project: ProjectMay::Never,
        preset: Preset::Unset("the known provider of the model, else `anthropic`"),
        about: "The API by which the model is reached: `anthropic` is the Messages API; `openai` is chat completions and `responses` is the Responses API, of OpenAI or of another server with the same API.",
    },
    Key {
        name: "base_url",
        kind: Kind::Address,
        project: ProjectMay::Never,
        preset: Preset::Unset("the provider's own"),
        about: "The address of the provider's API, or of another server with that API; the key is sent there. `--base-url` has priority over `ANTHROPIC_BASE_URL` or `OPENAI_BASE_URL`, and these over the file; an address in the file is used only with the provider in the file. `unix:PATH` is the socket of a relay.",
    },
    Key {
        name: "effort",
        kind: Kind::Choice(&["low", "medium", "high", "xhigh", "max"]),
        project: ProjectMay::IfTrusted,
        preset: Preset::Unset("the model's own"),
        about: "The effort of the model for a reply. Not every model has every level.",
    },
    Key {
        name: "thinking",
        kind: Kind::Choice(&["on", "off"]),
        project: ProjectMay::IfTrusted,
        preset: Preset::Unset("as the model does by itself"),
        about: "Has the model think before it answers. `off` is the quickest; `on` is refused for a model that is not known to think.",
    },
    Key {
        name: "cache_ttl",
        kind: Kind::Choice(&["5m", "1h", "auto"]),
        project: ProjectMay::Never,
        preset: Preset::Word("auto"),
        about: "The time for which the provider caches the tools and the system prompt; a cache for an hour costs more, but lasts over a pause. `auto` is an hour in the terminal UI and five minutes elsewhere.",
    },
    Key {
        name: "timeouts.connect_s",
        kind: Kind::Count { least: 1, most: 600 },
        project: ProjectMay::Never,
        preset: Preset::Number(5),
        about: "The longest that a connection to the provider may take, in seconds.",
    },
    Key {
        name: "timeouts.first_byte_s",
        kind: Kind::Count { least: 1, most: DAY },
        project: ProjectMay::Never,
        preset: Preset::Number(300),
        about: "The longest that a reply may take to begin, in seconds. A model on a small machine reads a long prompt for minutes.",
    },
    Key {
        name: "timeouts.idle_s",
        kind: Kind::Count { least: 1, most: DAY },
        project: ProjectMay::Never,
        preset: Preset::Number(120),
        about: "The longest pause in a reply that has begun, in seconds.",
    },
    Key {
        name: "timeouts.progress_s",
        kind: Kind::Count { least: 1, most: DAY },
        project: ProjectMay::Never,
        preset: Preset::Number(1800),
        about: "The longest pause between two parts of a reply, in seconds; pings and comments do not count.",
    },
    Key {
        name: "retries.attempts",
        kind: Kind::Count { least: 1, most: 1000 },
        project: ProjectMay::Never,
        preset: Preset::Number(8),
        about: "The most attempts at one request: when the provider is overloaded or fails, and when the reply is cut off.",
    },
    Key {
        name: "retries.longest_wait_s",
        kind: Kind::Count { least: 0, most: DAY },
        project: ProjectMay::Never,
        preset: Preset::Unset("300; in the terminal UI 3600"),
        about: "The longest wait between two attempts that the provider can ask for, in seconds. If the provider asks for more, the turn ends at once.",
    },
    Key {
        name: "retries.budget_s",
        kind: Kind::Count { least: 0, most: DAY },
        project: ProjectMay::Never,
        preset: Preset::Number(3600),
        about: "The longest that one turn waits between attempts, in seconds, for all requests of the turn together.",
    },
    Key {
        name: "rights.net",
        kind: Kind::Network,
        project: ProjectMay::Lower,
        preset: Preset::NoNetwork,
        about: "The network of commands: `off`, or the hosts that commands can reach by name, such as `[\"docs.example\", \"*.docs.example:8443\", \"@npm\"]` (port 443 unless another is named). No file turns all of it on: `--net on` and `:net on` do. A project's `off` or list also restricts `--net`: at the start, only hosts that both name can be reached.",
    },
    Key {
        name: "rights.reach",
        kind: Kind::Choices(&["host", "lan", "link-local", "metadata"]),
        project: ProjectMay::IfTrusted,
        preset: Preset::Empty,
        about: "Further addresses that commands can reach while the network is on: this machine itself, private networks, link-local addresses, a cloud's metadata service.",
    },
    Key {
        name: "rights.write",
        kind: Kind::Paths,
        project: ProjectMay::IfTrusted,
        preset: Preset::Empty,
        about: "Further files and directories that agents can change in every mode.",
    },
    Key {
        name: "rights.sockets",
        kind: Kind::Paths,
        project: ProjectMay::Never,
        preset: Preset::Empty,
        about: "Unix sockets of other programs that commands can reach, each by its own path, such as `/run/postgresql/.s.PGSQL.5432`. A program that reaches one can do what its server does: `/run/docker.sock` controls the whole machine.",
    },
    Key {
        name: "rights.hide",
        kind: Kind::Paths,
        project: ProjectMay::Narrow,
        preset: Preset::Empty,
        about: "Further paths whose content is hidden, such as `.env`.",
    },
    Key {
        name: "rights.protect",
        kind: Kind::Paths,
        project: ProjectMay::Narrow,
        preset: Preset::Empty,
        about: "Files and directories inside the project that agents cannot change although the project is writable, such as `.github/workflows`.",
    },
    Key {
        name: "rights.env",
        kind: Kind::Variables,
        project: ProjectMay::IfTrusted,
        preset: Preset::Empty,
        about: "Environment variables that commands get in addition to the built-in list: `NAME` passes one, `NAME=VALUE` sets it.",
    },
    Key {
        name: "limits.max_steps",
        kind: Kind::Count { least: 1, most: MOST },
        project: ProjectMay::Lower,
        preset: Preset::Unset("none"),
        about: "The most replies of the model in one turn, those to sub-agents included.",
    },
    Key {
        name: "limits.max_tokens",
        kind: Kind::Count { least: 1, most: MOST },
        project: ProjectMay::Lower,
        preset: Preset::Unset("none"),
        about: "The most tokens in one turn, of prompts and replies, those of sub-agents included; the reply that passes the limit is the last.",
    },
    Key {
        name: "limits.max_usd",
        kind: Kind::Amount,
        project: ProjectMay::Lower,
        preset: Preset::Unset("none"),
        about: "The most that one turn can cost, in US dollars. After the request that reaches this amount, the turn ends; a model of unknown price is not used.",
    },
    Key {
        name: "limits.context_tokens",
        kind: Kind::Count { least: Window::LEAST, most: MOST },
        project: ProjectMay::Lower,
        preset: Preset::Unset("the model's"),
        about: "The most tokens of a prompt and its reply together. A conversation that comes near this size is summarised, and continues with the summary.",
    },
    Key {
        name: "limits.timeout_s",
        kind: Kind::Time,
        project: ProjectMay::Lower,
        preset: Preset::Unset("none"),
        about: "The longest that a run of `exec` may last, in seconds, as in 90 or 0.5.",
    },
    Key {
        name: "limits.command_timeout_s",
        kind: Kind::Count { least: 1, most: 7 * DAY },
        project: ProjectMay::Lower,
        preset: Preset::Number(600),
        about: "The longest that one command of an agent may run, in seconds.",
    },
    Key {
        name: "limits.output_bytes",
        kind: Kind::Count { least: 1 << 10, most: 1 << 20 },
        project: ProjectMay::Lower,
        preset: Preset::Number(64 << 10),
        about: "The most bytes of a command's output that are saved: the beginning and the end; the bytes between are only counted.",
    },
    Key {
        name: "limits.processes",
        kind: Kind::Count { least: 64, most: 1 << 22 },
        project: ProjectMay::Lower,
        preset: Preset::Number(4096),
        about: "The most processes and threads of one worker and its commands at a time. Enforced where a control group is delegated, and in the full tier for a user who is not root (Linux 5.14).",
    },
    Key {
        name: "limits.memory_bytes",
        kind: Kind::Count { least: 64 << 20, most: 1 << 50 },
        project: ProjectMay::Lower,
        preset: Preset::Unset("three quarters of the machine's"),
        about: "The most memory of one worker and its commands, in bytes, without swap. Enforced where a control group is delegated; `bailiwick doctor` shows whether a control group is delegated.",
    },
    Key {
        name: "agents.depth",
        kind: Kind::Count { least: 0, most: 8 },
        project: ProjectMay::Lower,
        preset: Preset::Number(2),
        about: "The most levels of sub-agents below each other; 0 for no sub-agents.",
    },
    Key {
        name: "agents.at_once",
        kind: Kind::Count { least: 1, most: 200 },
        project: ProjectMay::Lower,
        preset: Preset::Number(8),
        about: "The most sub-agents of one level that work at a time; others wait.",
    },
    Key {
        name: "agents.per_turn",
        kind: Kind::Count { least: 1, most: 10_000 },
        project: ProjectMay::Lower,
        preset: Preset::Number(32),
        about: "The most sub-agents that are started in one turn.",
    },
    Key {
        name: "agents.models",
        kind: Kind::Names,
        project: ProjectMay::Never,
        preset: Preset::Empty,
        about: "The models, in addition to the session's own, that an agent or a role of a project can choose for a sub-agent; they have to be models of the same provider.",
    },
    Key {
        name: "plan.model",
        kind: Kind::Text,
        project: ProjectMay::IfTrusted,
        preset: Preset::Unset("the session's own"),
        about: "The model of an agent that makes a plan; it has to be a model of the same provider.",
    },
    Key {
        name: "plan.max_usd",
        kind: Kind::Amount,
        project: ProjectMay::Lower,
        preset: Preset::Unset("no separate limit"),
        about: "The most that a planner that runs beside the main agent may cost, in US dollars.",
    },
    Key {
        name: "plan.on_failure",
        kind: Kind::Choice(&["stop", "retry", "replan"]),
        project: ProjectMay::Lower,
        preset: Preset::Word("stop"),
        about: "What follows a failed step, if the plan does not say: `stop` ends the execution, `retry` repeats the step, `replan` ends the execution and has the planner revise the remaining steps.",
    },
    Key {
        name: "plan.retries",
        kind: Kind::Count { least: 0, most: 20 },
        project: ProjectMay::Lower,
        preset: Preset::Number(2),
        about: "The most repetitions of a failed step, with `retry`.",
    },
    Key {
        name: "plan.acceptance_timeout_s",
        kind: Kind::Count { least: 1, most: DAY },
        project: ProjectMay::Lower,
        preset: Preset::Number(600),
        about: "The longest that an acceptance command of a plan may take, in seconds.",
    },
    Key {
        name: "execute.model",
        kind: Kind::Text,
        project: ProjectMay::IfTrusted,
        preset: Preset::Unset("the session's own"),
        about: "The model of an agent that executes a plan; it has to be a model of the same provider.",
    },
    Key {
        name: "execute.max_usd",
        kind: Kind::Amount,
        project: ProjectMay::Lower,
        preset: Preset::Unset("no separate limit"),
        about: "The most that the execution of a plan may cost, in US dollars.",
    },
    Key {
        name: "approvals.timeout_s",
        kind: Kind::Count { least: 10, most: DAY },
        project: ProjectMay::Lower,
        preset: Preset::Number(300),
        about: "The time for your answer to an approval, in seconds; then the call is denied. The terminal UI waits for a day if this key is not set.",
    },
    Key {
        name: "approvals.confirm_shell",
        kind: Kind::Switch,
        project: ProjectMay::Lower,
        preset: Preset::Off,
        about: "Makes mode `ask` ask before every command except read-only ones.",
    },
    Key {
        name: "approvals.preapproved",
        kind: Kind::Commands,
        project: ProjectMay::IfTrusted,
        preset: Preset::Empty,
        about: "Beginnings of commands that mode `ask` approves by itself, without the network; each runs in a worker of its own. The answer \"always in this project\" writes them into the table of the project.",
    },
    Key {
        name: "approvals.tools",
        kind: Kind::Names,
        project: ProjectMay::Never,
        preset: Preset::Empty,
        about: "Tools of MCP servers that the main agent calls without a question, each as `SERVER/TOOL@DIGEST`: a tool with another definition needs a new approval. The answer \"always in this project\" writes them into the table of the project.",
    },
    Key {
        name: "sessions.keep_days",
        kind: Kind::Count { least: 1, most: 36_500 },
        project: ProjectMay::Never,
        preset: Preset::Unset("for ever"),
        about: "The days for which the log of a session is saved after its last change. Older logs, of every project, are deleted when a session starts.",
    },
    Key {
        name: "sessions.keep_mib",
        kind: Kind::Count { least: 1, most: MOST },
        project: ProjectMay::Never,
        preset: Preset::Unset("no limit"),
        about: "The most MiB of all logs together. The oldest are deleted when a session starts.",
    },
];

impl Key {
    pub fn named(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }
}
