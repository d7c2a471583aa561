//! `bailiwick demo`: a recorded model, a real project, a real fix, really confined. No key, no network.
//!
//! The replies are served over HTTP on loopback and go through the same provider, core, gate, worker and kernel as any
//! other run; only the model's words were written beforehand.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::args::{ConfinementArgs, DemoArgs, ExecArgs, ModeArg, Output};
use super::exec;
use super::exit::Exit;
use crate::demo::project::FILES;
use crate::demo::session::{PROMPT, script};
use crate::directories::Directories;
use crate::replay::ReplayServer;
use crate::secrets::TakenKeys;

/// Runs the demonstration.
pub(super) async fn run(args: DemoArgs) -> Exit {
    match Stage::build(args.keep) {
        Ok(stage) => Box::pin(stage.play()).await,
        Err(error) => {
            super::complain(&format!("cannot prepare the demonstration: {error}"));
            Exit::Internal
        }
    }
}

/// Where it plays: a sample project, a server, and directories of our own that nobody else's session sees.
struct Stage {
    project: PathBuf,
    server: ReplayServer,
    directories: Directories,
    patch: PathBuf,
    /// Removed at the end, with everything that is not to be kept.
    _place: TempDir,
}

impl Stage {
    fn build(keep: Option<PathBuf>) -> io::Result<Self> {
        let place = tempfile::Builder::new().prefix("bailiwick-demo-").tempdir()?;
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
            patch: own("fix.diff"),
            project,
            _place: place,
        })
    }

    async fn play(self) -> Exit {
        super::say(&format!("a recorded model works on {}", self.project.display()));
        let exit =
            exec::run(self.task(), exec::Place { directories: self.directories.clone(), keys: key() }).await;
        if let Err(error) = show(&self.patch) {
            super::complain(&format!("cannot show the patch: {error}"));
        }
        exit
    }

    fn task(&self) -> ExecArgs {
        ExecArgs {
            prompt: Some(PROMPT.to_owned()),
            directory: self.project.clone(),
            mode: ModeArg::Auto,
            confinement: ConfinementArgs::default(),
            output: Output::Text,
            patch: Some(self.patch.clone()),
            model: "recorded".to_owned(),
            base_url: Some(self.server.base_url()),
            max_steps: None,
            max_tokens: None,
            timeout: None,
        }
    }
}

/// The server takes any key.
fn key() -> TakenKeys {
    TakenKeys { anthropic: Some("demo".into()), openai: None }
}

/// Where the recorded model tries to write, and must not.
fn home() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_dir());
    home.unwrap_or_else(|| PathBuf::from("/etc"))
}

fn show(patch: &Path) -> io::Result<()> {
    let text = fs::read(patch)?;
    let mut out = io::stdout().lock();
    out.write_all(b"\n")?;
    out.write_all(&text)?;
    out.flush()
}
