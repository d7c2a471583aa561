//! Recording of a session's traffic with the model (`--record`).

use std::path::{Path, PathBuf};

use agent::core::Approver;
use gate::modes::{Position, permits};
use ipc::path::WirePath;
use model::recording::{DirectoryError, FORMAT, FrontEnd, Places, Recorder, Run, Task};

use super::options::SessionOptions;
use crate::engine::place::NamedPath;
use crate::process::messages::say;

#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub directory: PathBuf,
    pub front_end: FrontEnd,
    pub task: Option<Task>,
}

impl Record {
    /// Opens the recording's directory before a worker exists, which could replace the directory.
    pub(crate) fn open(&self, options: &SessionOptions) -> Result<Recorder, DirectoryError> {
        let recorder = Recorder::create(&self.directory, say)?;
        if let Some(root) = writable_root(&self.directory, options) {
            let (place, root) = (self.directory.display(), root.display());
            say(&format!(
                "the recording in {place} is inside {root}, where the agent can write: the agent could change the recording"
            ));
        }
        Ok(recorder)
    }

    /// Writes the description of the run into the recording.
    pub(crate) fn describe(self, recorder: &Recorder, options: &SessionOptions, places: Places) {
        let paths =
            |named: &[NamedPath]| named.iter().map(|named| WirePath::from(named.path.clone())).collect();
        recorder.describe(&Run {
            format: FORMAT,
            bailiwick: env!("CARGO_PKG_VERSION").to_owned(),
            front_end: self.front_end,
            task: self.task,
            provider: options.provider.as_str().to_owned(),
            model: options.model.name.clone(),
            activity: options.activity,
            approve_plan: match options.plan.approver {
                Approver::Person => None,
                Approver::Flags { rounds } => Some(rounds),
            },
            mode: options.mode,
            net: options.wanted.net.clone(),
            reach: options.wanted.reach,
            write: paths(&options.wanted.write),
            sockets: paths(&options.wanted.sockets),
            hide: paths(&options.wanted.hide),
            max_steps: options.limits.max_steps,
            max_tokens: options.limits.max_tokens,
            max_usd: options.limits.max_usd,
            places,
        });
    }
}

/// Returns the directory that agents may write and that contains `directory`; `None` if there is none.
fn writable_root(directory: &Path, options: &SessionOptions) -> Option<PathBuf> {
    let directory = directory.canonicalize().ok()?;
    let project = &options.directory;
    let given = options.wanted.write.iter().map(|root| project.join(&root.path));
    let may_write = permits(Position::FIRST, options.mode).may_come_to_write();
    let own = may_write.then(|| project.clone());
    let mut roots = own.into_iter().chain(given).filter_map(|root| root.canonicalize().ok());
    roots.find(|root| directory.starts_with(root))
}
