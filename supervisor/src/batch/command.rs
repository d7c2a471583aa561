//! The command lines of a run: `exec` for the task, `sandbox` for the checkout. Both are this very program.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;
use secrecy::ExposeSecret;

use super::task::{Source, Task};
use crate::args::{ActivityArg, BatchRunsArgs, ConfinementArgs, ProfileArg};
use crate::secrets::TakenKeys;

/// Makes a checkout of `$1` at the commit `$2`: the commit and what came before it, so that no later one can be looked up.
const CHECK_OUT: &str = r#"git init --quiet checkout
cd checkout
git fetch --quiet --no-tags --no-recurse-submodules --upload-pack "git -c safe.directory=* -c uploadpack.allowAnySHA1InWant=true upload-pack" "$1" "$2"
git checkout --quiet --detach FETCH_HEAD
rm .git/FETCH_HEAD"#;

/// Makes a copy of the directory `$1`.
const COPY: &str = r#"cp -a --reflink=auto -- "$1" checkout"#;

/// Removes a checkout, whatever rights its agent gave to the files.
const REMOVE: &str = "chmod -R u+rwX -- checkout 2>/dev/null || true
rm -rf -- checkout";

/// The directory of a run in which a confined process makes the checkout. Nothing else of the run is in its reach.
pub(super) const TREE: &str = "tree";

/// The name of a checkout there.
const CHECKOUT: &str = "checkout";

/// The name of the patch there.
pub(super) const PATCH: &str = "patch.diff";

/// What all runs of a batch are started with.
pub(super) struct Runs {
    program: PathBuf,
    args: BatchRunsArgs,
    keys: TakenKeys,
    hidden: Vec<PathBuf>,
}

impl Runs {
    /// `hidden` is what no agent is to read.
    pub(super) fn new(args: &BatchRunsArgs, keys: TakenKeys, hidden: Vec<PathBuf>) -> io::Result<Self> {
        Ok(Self { program: std::env::current_exe()?, args: args.clone(), keys, hidden })
    }

    pub(super) fn keeps_checkouts(&self) -> bool {
        self.args.keep_checkouts
    }

    /// The longest time that a run may take, if there is a limit; the run itself ends before.
    pub(super) fn timeout_s(&self, task: &Task) -> Option<f64> {
        task.limits.timeout_s.or_else(|| self.args.timeout.map(|time| time.as_secs_f64()))
    }

    /// Makes the checkout of a task in the directory of its run.
    pub(super) fn check_out(&self, source: &Source, directory: &Path) -> Command {
        let (script, words): (_, Vec<&OsStr>) = match source {
            Source::Copy { directory } => (COPY, vec![directory.as_os_str()]),
            Source::Commit { repository, commit } => {
                (CHECK_OUT, vec![repository.as_os_str(), OsStr::new(commit)])
            }
        };
        self.sandboxed(directory, script, &words)
    }

    /// Removes the checkout of a run.
    pub(super) fn remove(&self, directory: &Path) -> Command {
        self.sandboxed(directory, REMOVE, &[])
    }

    /// A script of ours, confined: git obeys files of repositories, and a checkout is the work of others.
    fn sandboxed(&self, directory: &Path, script: &str, words: &[&OsStr]) -> Command {
        let mut command = self.own("sandbox");
        command.arg("-C").arg(directory.join(TREE)).args(["--access", "write", "--net", "off"]);
        // Neither the person's nor the machine's settings of git name programs to execute.
        for setting in ["GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0"] {
            command.args(["--env", setting]);
        }
        command.args(["--", "sh", "-ec", script, "sh"]).args(words);
        command
    }

    /// Runs the task, which is standard input.
    pub(super) fn exec(&self, task: &Task, directory: &Path) -> Command {
        let mut command = self.own("exec");
        command.args(exec_arguments(&self.args, task, directory));
        command.args(self.hidden.iter().flat_map(|path| [OsStr::new("--hide"), path.as_os_str()]));
        if let Source::Commit { repository, .. } = &task.source {
            // It has the commits that came later.
            command.arg("--hide").arg(repository);
        }
        command.arg("-");
        self.equip(&mut command);
        command
    }

    /// Gives a run the way to its model: the address goes as flags, the keys as the person gave them to this process.
    fn equip(&self, command: &mut Command) {
        for (name, key) in self.keys.variables() {
            // The process takes it out of its environment before it does anything else.
            command.env(name, key.expose_secret());
        }
    }

    /// A command of this program, which ends with this process.
    fn own(&self, name: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(name).arg("--batch").arg(std::process::id().to_string());
        command
    }
}

/// The arguments of `exec`, but for the hidden places and the task.
pub(super) fn exec_arguments(args: &BatchRunsArgs, task: &Task, directory: &Path) -> Vec<OsString> {
    let mut line = Line::default();
    line.path("-C", &directory.join(TREE).join(CHECKOUT)).path("--patch", &directory.join(PATCH));
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
    line.value("--model", args.model.model.as_ref())
        .word("--provider", args.model.provider)
        .value("--base-url", args.model.base_url.as_ref());
    let limits = task.limits;
    line.value("--max-steps", limits.max_steps.or(args.max_steps))
        .value("--max-tokens", limits.max_tokens.or(args.max_tokens))
        .value("--max-usd", limits.max_usd.or(args.max_usd).map(|usd| format!("{:.12}", usd.dollars())))
        .value("--timeout", limits.timeout_s.or_else(|| args.timeout.map(|time| time.as_secs_f64())));
    line.0
}

fn confinement(line: &mut Line, args: &ConfinementArgs) {
    line.word("--net", args.net).word("--tier", Some(args.tier));
    for place in &args.reach {
        line.word("--reach", Some(*place));
    }
    // A run has another directory than the person.
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    for (flag, paths) in [("--write", &args.write), ("--hide", &args.hide)] {
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
}

/// A command line as it grows.
#[derive(Default)]
struct Line(Vec<OsString>);

impl Line {
    fn path(&mut self, flag: &str, path: &Path) -> &mut Self {
        self.0.extend([flag.into(), path.into()]);
        self
    }

    fn value(&mut self, flag: &str, value: Option<impl ToString>) -> &mut Self {
        // One word: a value may begin with a dash.
        self.0.extend(value.map(|value| format!("{flag}={}", value.to_string()).into()));
        self
    }

    fn word(&mut self, flag: &str, value: Option<impl ValueEnum>) -> &mut Self {
        let value = value.and_then(|value| Some(value.to_possible_value()?.get_name().to_owned()));
        self.value(flag, value)
    }
}
