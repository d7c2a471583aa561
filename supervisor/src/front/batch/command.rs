//! The command lines that a run starts: `exec` for the task and `sandbox` for the checkout, both of this program.

use ipc::rights::Network;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;
use model::secrets::TakenKeys;
use nix::unistd::{getegid, geteuid};
use protocol::cost::Usd;
use secrecy::ExposeSecret;

use super::engine::{Container, Engine, OUT};
use super::presence::EnginePresence;
use super::task::{BatchTask, TaskSource};
use crate::settings::args::{ActivityArg, BatchRunsArgs, ConfinementArgs, ProfileArg};

/// A shell script that checks out the commit `$2` of the repository `$1`. Agents cannot read later commits there.
const CHECK_OUT: &str = r#"git init --quiet checkout
cd checkout
git fetch --quiet --no-tags --no-recurse-submodules --upload-pack "git -c safe.directory=* -c uploadpack.allowAnySHA1InWant=true upload-pack" "$1" "$2"
git checkout --quiet --detach FETCH_HEAD
rm .git/FETCH_HEAD"#;

/// A shell script that copies the directory `$1`.
const COPY: &str = r#"cp -a --reflink=auto -- "$1" checkout"#;

/// A shell script that removes the checkout, even if the agent removed permissions.
const REMOVE: &str = "chmod -R u+rwX -- checkout 2>/dev/null || true
rm -rf -- checkout";

/// Subdirectory of a run's directory. A confined process makes the checkout in it, and can write nowhere else.
pub(super) const TREE: &str = "tree";

/// Name of the checkout inside [`TREE`].
const CHECKOUT: &str = "checkout";

/// Client name under which a run connects to its relay.
pub(super) const RELAY_CLIENT: &str = "run";

pub(super) const PATCH: &str = "patch.diff";

pub(super) struct Runs {
    program: PathBuf,
    args: BatchRunsArgs,
    keys: TakenKeys,
    hidden: Vec<PathBuf>,
    engine: Option<Engine>,
    pub(super) presence: EnginePresence,
    /// Names of the model and of its provider, for the containers, which cannot read the settings.
    model: [String; 2],
}

pub(super) struct BatchPlaces {
    pub project: PathBuf,
    pub patch: PathBuf,
}

impl Runs {
    /// Creates the commands of a batch. `hidden` lists paths that no agent may read. `root` is the output directory.
    pub(super) fn new(
        args: &BatchRunsArgs,
        keys: TakenKeys,
        hidden: Vec<PathBuf>,
        root: &Path,
        model: [String; 2],
    ) -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let beside = program.parent().map(Path::to_owned).unwrap_or_default();
        let programs = args.programs.clone().unwrap_or(beside);
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        let engine = Engine::new(args.engine, &programs, root, uid, gid)?;
        let presence = EnginePresence::default();
        Ok(Self { program, args: args.clone(), keys, hidden, engine, presence, model })
    }

    pub(super) fn engine(&self) -> Option<&Engine> {
        self.engine.as_ref()
    }

    /// Returns a command that calls the container engine with these arguments.
    pub(super) fn with_engine(engine: &Engine, arguments: Vec<OsString>) -> Command {
        let mut command = Command::new(engine.program);
        command.args(arguments);
        command
    }

    /// Returns the command that runs `exec` in a container, with the task on standard input. The container has neither
    /// key nor network. Requests to the model go through a relay.
    pub(super) fn contained(&self, engine: &Engine, task: &BatchTask, container: &Container<'_>) -> Command {
        let places = BatchPlaces { project: container.project.into(), patch: Path::new(OUT).join(PATCH) };
        let mut args = self.args.clone();
        let [model, _] = &self.model;
        args.model.model = Some(model.clone());
        args.model.base_url = Some(Engine::base_url());
        let mut exec = exec_arguments(&args, task, &places);
        let [_, provider] = &self.model;
        if args.model.provider.is_none() {
            exec.push(format!("--provider={provider}").into());
        }
        exec.push("-".into());
        Self::with_engine(engine, engine.run(container, exec))
    }

    /// Returns the command that starts a relay. The relay has the API key, and enforces the budget of the task.
    pub(super) fn relay(&self, task: &BatchTask, directory: &Path) -> Command {
        let mut command = Command::new(&self.program);
        let mut listen = OsString::from("unix:");
        listen.push(directory);
        let [model, provider] = &self.model;
        command.args(["relay", "--client", RELAY_CLIENT, "--listen"]).arg(listen);
        // The image may run as any user, so every user may connect. On the host others cannot enter the parent
        // directory.
        command.args(["--socket-mode", "666"]);
        command.args(["--model", model, "--provider", provider]);
        if let Some(url) = &self.args.model.base_url {
            command.args(["--base-url", url]);
        }
        let mut line = CommandLine::default();
        line.value("--max-tokens", task.limits.max_tokens.or(self.args.max_tokens))
            .value("--max-usd", task.limits.max_usd.or(self.args.max_usd).map(dollars));
        command.args(line.0);
        self.equip(&mut command);
        command
    }

    pub(super) fn keeps_checkouts(&self) -> bool {
        self.args.keep_checkouts
    }

    /// Returns the time limit in seconds that `exec` enforces for a task; `None` without a limit.
    pub(super) fn timeout_s(&self, task: &BatchTask) -> Option<f64> {
        task.limits.timeout_s.or_else(|| self.args.timeout.map(|time| time.as_secs_f64()))
    }

    /// Returns the command that makes the checkout in the directory of the run.
    pub(super) fn check_out(&self, source: &TaskSource, directory: &Path) -> Command {
        let (script, words): (_, Vec<&OsStr>) = match source {
            TaskSource::Copy { directory } => (COPY, vec![directory.as_os_str()]),
            TaskSource::Commit { repository, commit } => {
                (CHECK_OUT, vec![repository.as_os_str(), OsStr::new(commit)])
            }
            // The image contains the project.
            TaskSource::Image { .. } => ("true", Vec::new()),
        };
        self.sandboxed(directory, script, &words)
    }

    /// Returns the command that removes the checkout of a run.
    pub(super) fn remove(&self, directory: &Path) -> Command {
        let mut command = self.sandbox(directory);
        // After a killed run it is unknown which changes are the person's. That does not matter for a removal.
        command.args(["--baseline", "mine", "--", "sh", "-ec", REMOVE, "sh"]);
        command
    }

    /// Returns a command that runs a script in the sandbox, because git in the script obeys files of the repository.
    fn sandboxed(&self, directory: &Path, script: &str, words: &[&OsStr]) -> Command {
        let mut command = self.sandbox(directory);
        command.args(["--", "sh", "-ec", script, "sh"]).args(words);
        command
    }

    /// Returns the beginning of a `sandbox` command that can write only to the directory of the checkout.
    fn sandbox(&self, directory: &Path) -> Command {
        let mut command = self.own("sandbox");
        command.arg("-C").arg(directory.join(TREE)).args(["--access", "write", "--net", "off"]);
        // Git's settings of the person and of the machine could name programs to execute, so they are not read.
        for setting in ["GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0"] {
            command.args(["--env", setting]);
        }
        command
    }

    /// Returns the command that runs `exec` on the checkout, with the task on standard input.
    pub(super) fn exec(&self, task: &BatchTask, directory: &Path) -> Command {
        let mut command = self.own("exec");
        let places =
            BatchPlaces { project: directory.join(TREE).join(CHECKOUT), patch: directory.join(PATCH) };
        command.args(exec_arguments(&self.args, task, &places));
        command.args(self.hidden.iter().flat_map(|path| [OsStr::new("--hide"), path.as_os_str()]));
        // The directories of the other runs are hidden.
        command.args(siblings(directory).iter().flat_map(|path| [OsStr::new("--hide"), path.as_os_str()]));
        if let TaskSource::Commit { repository, .. } = &task.source {
            // The repository contains later commits.
            command.arg("--hide").arg(repository);
        }
        command.arg("-");
        self.equip(&mut command);
        command
    }

    /// Passes the API keys to a command in environment variables.
    fn equip(&self, command: &mut Command) {
        for (name, key) in self.keys.variables() {
            // The started process removes the variable from its environment first.
            command.env(name, key.expose_secret());
        }
    }

    fn own(&self, name: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(name).arg("--batch").arg(std::process::id().to_string());
        command
    }
}

/// Returns the directories of the other runs that exist now.
fn siblings(directory: &Path) -> Vec<PathBuf> {
    let entries = directory.parent().and_then(|work| std::fs::read_dir(work).ok());
    let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    paths.filter(|path| path != directory).collect()
}

/// Returns the arguments of `exec`, except for the hidden paths and the task.
pub(super) fn exec_arguments(args: &BatchRunsArgs, task: &BatchTask, places: &BatchPlaces) -> Vec<OsString> {
    let mut line = CommandLine::default();
    line.path("-C", &places.project).path("--patch", &places.patch);
    // The checkout is removed after the run, so nothing can be restored later.
    line.0.push("--no-rewind".into());
    line.value("--output", Some("json")).word("--mode", Some(args.mode));
    if args.activity != ActivityArg::Execute {
        line.word("--activity", Some(args.activity));
    }
    if args.profile != ProfileArg::Full {
        line.word("--profile", Some(args.profile));
    }
    if let Some(rounds) = args.approve_plan {
        line.0.push(format!("--approve-plan={rounds}").into());
    }
    confinement(&mut line, &args.confinement);
    for server in &args.servers.mcp {
        line.value("--mcp", Some(server));
    }
    for tool in &args.allow_tool {
        line.value("--allow-tool", Some(tool));
    }
    if let Some(file) = &args.servers.mcp_config {
        line.path("--mcp-config", &absolute(file));
    }
    line.value("--model", args.model.model.as_ref())
        .word("--provider", args.model.provider)
        .value("--base-url", args.model.base_url.as_ref());
    let limits = task.limits;
    line.value("--max-steps", limits.max_steps.or(args.max_steps))
        .value("--max-tokens", limits.max_tokens.or(args.max_tokens))
        .value("--max-usd", limits.max_usd.or(args.max_usd).map(dollars))
        .value("--timeout", limits.timeout_s.or_else(|| args.timeout.map(|time| time.as_secs_f64())));
    line.0
}

/// Makes a path absolute, because a run has its own working directory.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn dollars(amount: Usd) -> String {
    format!("{:.12}", amount.dollars())
}

fn confinement(line: &mut CommandLine, args: &ConfinementArgs) {
    line.value("--net", args.net.as_ref().map(Network::flag)).word("--tier", Some(args.tier));
    for place in &args.reach {
        line.word("--reach", Some(*place));
    }
    for (flag, paths) in [("--write", &args.write), ("--socket", &args.socket), ("--hide", &args.hide)] {
        for path in paths {
            line.path(flag, &absolute(path));
        }
    }
    for variable in &args.env {
        line.0.extend(["--env".into(), variable.clone()]);
    }
    if args.allow_degraded {
        line.0.push("--allow-degraded".into());
    }
    if args.forget_caches {
        line.0.push("--forget-caches".into());
    }
    line.word("--baseline", args.baseline);
}

#[derive(Default)]
struct CommandLine(Vec<OsString>);

impl CommandLine {
    fn path(&mut self, flag: &str, path: &Path) -> &mut Self {
        self.0.extend([flag.into(), path.into()]);
        self
    }

    fn value(&mut self, flag: &str, value: Option<impl ToString>) -> &mut Self {
        // Flag and value are one word, because a value may begin with a dash.
        self.0.extend(value.map(|value| format!("{flag}={}", value.to_string()).into()));
        self
    }

    fn word(&mut self, flag: &str, value: Option<impl ValueEnum>) -> &mut Self {
        let value = value.and_then(|value| Some(value.to_possible_value()?.get_name().to_owned()));
        self.value(flag, value)
    }
}
