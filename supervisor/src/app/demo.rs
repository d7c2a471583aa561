//! `bailiwick demo`: a scripted model, a real project, a real fix, really confined. No key, no network.
//!
//! The replies are served over HTTP on loopback and go through the same provider, core, gate, worker and kernel as any
//! other run; only the model's words were written beforehand. They claim what the run must then have shown, so the
//! session's own log is read at the end: a demonstration that showed nothing fails.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ipc::denial::Grade;
use ipc::event::{EventKind, ToolCallStatus};
use tempfile::TempDir;

use super::args::{
    ConfinementArgs, DemoArgs, DeniedArg, ExecArgs, ModeArg, ModelArgs, Output, ProviderArg, TuiArgs,
};
use super::exec;
use super::exit::Exit;
use super::session::Place;
use super::tui;
use crate::demo::project::FILES;
use crate::demo::session::{PROMPT, script};
use crate::directories::Directories;
use crate::replay::ReplayServer;
use crate::secrets::TakenKeys;

/// The patch goes where the model's words go, behind them: the place of the demonstration is gone when it ends.
const PATCH: &str = "/dev/stdout";

/// Runs the demonstration.
pub(super) async fn run(args: DemoArgs) -> Exit {
    if let Err((exit, message)) = possible(args.keep.as_deref()) {
        super::complain(&message);
        return exit;
    }
    match Stage::build(args.keep) {
        Ok(stage) if args.tui => Box::pin(stage.play_in_ui()).await,
        Ok(stage) => Box::pin(stage.play()).await,
        Err(error) => {
            super::complain(&format!("cannot prepare the demonstration: {error}"));
            Exit::Internal
        }
    }
}

/// What is known before anything is made.
fn possible(keep: Option<&Path>) -> Result<(), (Exit, String)> {
    // Also a link that leads nowhere is in the way.
    if let Some(keep) = keep.filter(|keep| keep.symlink_metadata().is_ok()) {
        let message = format!("--keep {}: it exists already; name a directory that does not", keep.display());
        return Err((Exit::Usage, message));
    }
    if !on_path("cargo") {
        let message = "the demonstration needs cargo on PATH: it runs the tests of a small crate";
        return Err((Exit::Internal, message.to_owned()));
    }
    Ok(())
}

/// Whether a shell would find the program.
fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| {
        let found = fs::metadata(directory.join(program));
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    })
}

/// Where it plays: a sample project, a server, and directories of our own that nobody else's session sees.
struct Stage {
    project: PathBuf,
    /// Whether the project outlives the demonstration.
    kept: bool,
    server: ReplayServer,
    directories: Directories,
    /// Removed at the end, with everything that is not to be kept.
    _place: TempDir,
}

impl Stage {
    fn build(keep: Option<PathBuf>) -> io::Result<Self> {
        let place = tempfile::Builder::new().prefix("bailiwick-demo-").tempdir()?;
        let kept = keep.is_some();
        let project = keep.unwrap_or_else(|| place.path().join("project"));
        fs::create_dir(&project)?;
        for (name, content) in FILES {
            let file = project.join(name);
            fs::create_dir_all(file.parent().unwrap_or(&project))?;
            fs::write(file, content)?;
        }
        let own = |name: &str| place.path().join(name);
        Ok(Self {
            server: ReplayServer::start(script(&home()))?,
            directories: Directories { config: own("config"), state: own("state"), cache: own("cache") },
            project,
            kept,
            _place: place,
        })
    }

    async fn play(self) -> Exit {
        super::say(&format!("a scripted model works on {}", self.project.display()));
        let exit = exec::run(self.task(), self.place()).await;
        self.say_what_is_left();
        match (exit, Shown::in_logs(&self.directories.state)) {
            (Exit::Done, Ok(shown)) => shown.verdict(),
            (Exit::Done, Err(error)) => {
                super::complain(&format!("cannot check the demonstration by its log: {error}"));
                Exit::Internal
            }
            (exit, _) => exit,
        }
    }

    /// In the terminal UI the user sees what is shown, and may leave before its end.
    async fn play_in_ui(self) -> Exit {
        let exit = tui::play(self.task_in_ui(), self.place()).await;
        self.say_what_is_left();
        exit
    }

    fn place(&self) -> Place {
        Place { directories: self.directories.clone(), keys: key() }
    }

    fn say_what_is_left(&self) {
        if self.kept {
            super::say(&format!("the project is left in {}", self.project.display()));
        }
    }

    fn task_in_ui(&self) -> TuiArgs {
        TuiArgs {
            prompt: Some(PROMPT.to_owned()),
            directory: self.project.clone(),
            mode: Some(ModeArg::Auto),
            confinement: ConfinementArgs::default(),
            model: self.model(),
            record: None,
        }
    }

    fn model(&self) -> ModelArgs {
        ModelArgs {
            model: Some("scripted".to_owned()),
            provider: Some(ProviderArg::Anthropic),
            base_url: Some(self.server.base_url()),
        }
    }

    fn task(&self) -> ExecArgs {
        ExecArgs {
            prompt: Some(PROMPT.to_owned()),
            directory: self.project.clone(),
            mode: ModeArg::Auto,
            confinement: ConfinementArgs::default(),
            output: Output::Text,
            deltas: false,
            denied: DeniedArg::Fail,
            image: Vec::new(),
            patch: Some(PATCH.into()),
            model: self.model(),
            approval_socket: None,
            max_steps: None,
            max_tokens: None,
            max_usd: None,
            timeout: None,
            record: None,
        }
    }
}

/// The server takes any key.
fn key() -> TakenKeys {
    TakenKeys { anthropic: Some("demo".into()), ..TakenKeys::default() }
}

/// Where the scripted model tries to write, and must not.
fn home() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_dir());
    home.unwrap_or_else(|| PathBuf::from("/etc"))
}

/// What a session did show, by its log.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shown {
    /// How the last command ended: the tests, when the fix is in.
    last_command: Option<ToolCallStatus>,
    /// Whether a denial was proved.
    denial: bool,
}

impl Shown {
    /// Reads the log of the only session that there is.
    fn in_logs(state: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        let mut logs = fs::read_dir(state.join("sessions"))?;
        let log = logs.next().ok_or("there is none")??.path();
        let loaded = crate::session::load(&log)?;
        if let Some(fault) = loaded.faults.first() {
            return Err(fault.to_string().into());
        }
        Ok(Self::of(loaded.tree.events().map(|event| &event.kind)))
    }

    fn of<'a>(events: impl Iterator<Item = &'a EventKind>) -> Self {
        let (mut shown, mut command) = (Self::default(), None);
        for kind in events {
            match kind {
                EventKind::ToolCallStarted { call, name, .. } if name == "shell_exec" => {
                    (command, shown.last_command) = (Some(*call), None);
                }
                EventKind::ToolCallFinished { call, status, .. } if command == Some(*call) => {
                    shown.last_command = Some(*status);
                }
                EventKind::Denied { denial, .. } => shown.denial |= denial.grade == Grade::Proved,
                _ => {}
            }
        }
        shown
    }

    fn verdict(&self) -> Exit {
        let passed = self.last_command == Some(ToolCallStatus::Completed);
        if !passed {
            super::complain(&"the demonstration failed: the last `cargo test` did not pass");
        }
        if !self.denial {
            super::complain(&"the demonstration failed: nothing was provably denied");
        }
        if !(passed && self.denial) {
            return Exit::Internal;
        }
        super::say("by the session's log: the tests pass now, and a write outside of the project was denied");
        Exit::Done
    }
}

#[cfg(test)]
mod tests {
    use ipc::denial::{Denial, Layer, Object, Operation};
    use ipc::id::{CallId, ToolUseId};
    use serde_json::value::RawValue;

    use super::*;

    fn started(call: u64, name: &str) -> EventKind {
        let input = RawValue::from_string("{}".to_owned()).unwrap();
        EventKind::ToolCallStarted { call: CallId(call), tool_use: tool_use(), name: name.to_owned(), input }
    }

    fn finished(call: u64, status: ToolCallStatus) -> EventKind {
        let content = String::new();
        EventKind::ToolCallFinished {
            call: CallId(call),
            tool_use: tool_use(),
            status,
            content,
            duration_ms: 1,
            images: Vec::new(),
        }
    }

    fn tool_use() -> ToolUseId {
        "toolu_0".into()
    }

    fn denied(grade: Grade) -> EventKind {
        let denial = Denial {
            layer: Layer::Landlock,
            operation: Operation::Write,
            object: Object::Command("x".to_owned()),
            program: None,
            missing_right: "write x".to_owned(),
            grant: None,
            grade,
            errno: None,
        };
        EventKind::Denied { call: Some(CallId(2)), denial, rights: String::new() }
    }

    #[test]
    fn the_last_command_and_a_proved_denial_decide() {
        use ToolCallStatus::{Completed, Failed};
        let run = |call, status| [started(call, "shell_exec"), finished(call, status)];
        let verdict = |events: &[EventKind]| Shown::of(events.iter()).verdict();
        let [first, failing] = run(1, Failed);
        let [last, passing] = run(3, Completed);
        let [broken_start, broken] = run(3, Failed);
        let (proved, likely) = (denied(Grade::Proved), denied(Grade::Likely));
        let (read, done) = (started(4, "read_file"), finished(4, Completed));
        let before = [first, failing];
        let all =
            |events: &[&EventKind]| before.iter().chain(events.iter().copied()).cloned().collect::<Vec<_>>();
        assert_eq!(verdict(&all(&[&proved, &last, &passing])), Exit::Done);
        assert_eq!(verdict(&all(&[&proved, &broken_start, &broken, &read, &done])), Exit::Internal);
        assert_eq!(verdict(&all(&[&proved, &last])), Exit::Internal);
        assert_eq!(verdict(&all(&[&likely, &last, &passing])), Exit::Internal);
        assert_eq!(verdict(&[]), Exit::Internal);
    }
}
