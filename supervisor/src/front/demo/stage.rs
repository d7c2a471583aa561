//! The set-up of the demo: a sample project, a scripted model, and directories that no other session uses.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use model::replay::ReplayServer;
use model::secrets::TakenKeys;
use nix::unistd::{AccessFlags, access};
use tempfile::TempDir;

use super::repair::{PROMPT, Repairer};
use super::{conversation, project};
use crate::engine::opening::SessionDirs;
use crate::process::directories::Directories;
use crate::process::scratch::private_directory;
use crate::settings::args::{
    ActivityArg, ConfinementArgs, DemoArgs, ModeArg, ModelArgs, ProviderArg, TuiArgs,
};

/// Sample project, scripted model and directories of the demo. Dropping the value removes them, except for a project
/// that the person keeps.
pub(super) struct DemoStage {
    pub(super) project: PathBuf,
    pub(super) directories: Directories,
    pub(super) patch: PathBuf,
    server: ReplayServer,
    confinement: ConfinementArgs,
    _place: TempDir,
}

impl DemoStage {
    pub(super) fn build(args: &DemoArgs) -> io::Result<Self> {
        let place = private_directory("bailiwick-demo-")?;
        let own = |name: &str| place.path().join(name);
        let project = args.keep.clone().unwrap_or_else(|| own("sizes"));
        fs::create_dir(&project)?;
        project::create(&project)?;
        let model = Repairer::new(&outside().join("sizes-bug.md"), args.tui);
        Ok(Self {
            server: conversation::serve(move |turn| model.reply(turn))?,
            directories: directories_in(place.path()),
            patch: own("fix.diff"),
            project,
            confinement: ConfinementArgs { tier: args.tier, ..ConfinementArgs::default() },
            _place: place,
        })
    }

    pub(super) fn place(&self) -> SessionDirs {
        // The scripted model accepts any key.
        let keys = TakenKeys { anthropic: Some("demo".into()), ..TakenKeys::default() };
        SessionDirs { directories: self.directories.clone(), keys }
    }

    pub(super) fn task(&self) -> TuiArgs {
        TuiArgs {
            prompt: Some(PROMPT.to_owned()),
            directory: self.project.clone(),
            mode: Some(ModeArg::Ask),
            activity: ActivityArg::Execute,
            confinement: self.confinement.clone(),
            model: ModelArgs {
                model: Some("scripted".to_owned()),
                provider: Some(ProviderArg::Anthropic),
                base_url: Some(self.server.base_url()),
            },
            plain: false,
            record: None,
            goes_on: false,
            forks: false,
            session: None,
        }
    }
}

fn directories_in(place: &Path) -> Directories {
    let own = |name: &str| place.join(name);
    Directories { config: own("config"), state: own("state"), cache: own("cache") }
}

/// Returns a directory outside `/tmp`, which full confinement replaces: the home directory, or else `/var/tmp`.
fn outside() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let places = home.into_iter().chain([PathBuf::from("/var/tmp")]);
    let writable = |place: &PathBuf| {
        let real = place.canonicalize();
        real.is_ok_and(|real| real.is_dir() && !real.starts_with("/tmp"))
            && access(place, AccessFlags::W_OK).is_ok()
    };
    places.into_iter().find(writable).unwrap_or_else(|| PathBuf::from("/etc"))
}
