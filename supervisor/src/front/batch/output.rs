//! The output directory: the results of a batch, and the lock that keeps another batch out.
//!
//! ```text
//! batch.json            the settings of the batch; a later batch in this directory must have the same
//! tasks.json            the names of the chosen tasks; a task that was not begun appears nowhere else
//! predictions/          predictions.jsonl: a line for each finished task; preds.json: the same as one object
//! instances/ID/         state.json, patch.diff, result.json, stderr.log, session.jsonl
//! work/ID.N/            the N-th run of a task, while it runs: prompt, checkout/ and what the run writes
//! ```

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use agent::prompt::Profile;
use gate::activity::Activity;
use gate::modes::ApprovalMode;
use serde::{Deserialize, Serialize};

use super::state::{BatchState, load, read_bounded, store};
use crate::settings::args::BatchRunsArgs;
use crate::settings::config::{Effective, McpFile};

/// Maximum size in bytes of the file with the names of all tasks.
const MOST_NAMES: u64 = 64 << 20;

#[derive(Debug)]
pub(super) struct BatchOutput {
    root: PathBuf,
    _lock: File,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum OutputError {
    #[error("cannot use {} for results: {source}", path.display())]
    Unusable { path: PathBuf, source: io::Error },
    #[error("cannot use {}: another batch is writing to this directory", .0.display())]
    Locked(PathBuf),
    #[error(
        "cannot continue the batch in {}: that batch has a different {what}\n  hint: name another directory with --output",
        path.display()
    )]
    Other { path: PathBuf, what: &'static str },
}

/// The settings of a batch. Results of batches with different settings may not be mixed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// SHA-256 of the file of tasks.
    pub tasks: String,
    pub name: String,
    pub model: String,
    pub provider: String,
    pub activity: String,
    pub mode: String,
    pub profile: String,
    /// Names of the MCP servers, and of the tools that agents call without asking, separated by commas.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mcp: String,
    /// SHA-256 of the file of MCP servers; empty if the batch has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mcp_config: String,
}

impl Manifest {
    pub(super) fn new(tasks: String, name: String, effective: &Effective, args: &BatchRunsArgs) -> Self {
        let activity = Activity::from(args.activity);
        let mode = ApprovalMode::from(args.mode);
        Self {
            tasks,
            name,
            model: effective.model().to_owned(),
            provider: effective.provider().as_str().to_owned(),
            activity: activity.as_str().to_owned(),
            mode: mode.as_str().to_owned(),
            profile: Profile::from(args.profile).as_str().to_owned(),
            mcp: servers(args),
            mcp_config: String::new(),
        }
    }

    /// Adds the digest of the file of MCP servers, if the batch has one.
    pub(super) fn with_servers(self, file: Option<&McpFile>) -> Self {
        Self { mcp_config: file.map(|file| file.digest.to_string()).unwrap_or_default(), ..self }
    }

    /// Returns the name of the first setting in which two manifests differ; `None` if they agree.
    pub(super) fn difference(&self, other: &Self) -> Option<&'static str> {
        let pairs = [
            (&self.tasks, &other.tasks, "file of tasks"),
            (&self.model, &other.model, "model"),
            (&self.name, &other.name, "name of the model"),
            (&self.provider, &other.provider, "provider"),
            (&self.activity, &other.activity, "activity"),
            (&self.mode, &other.mode, "mode"),
            (&self.profile, &other.profile, "profile"),
            (&self.mcp, &other.mcp, "list of MCP servers"),
            (&self.mcp_config, &other.mcp_config, "file of MCP servers"),
        ];
        pairs.into_iter().find(|(ours, theirs, _)| ours != theirs).map(|(_, _, what)| what)
    }
}

/// Returns the names of the MCP servers, and of the tools that agents call without asking, separated by commas.
fn servers(args: &BatchRunsArgs) -> String {
    let tools = args.allow_tool.iter().map(ToString::to_string);
    args.servers.mcp.iter().cloned().chain(tools).collect::<Vec<_>>().join(",")
}

impl BatchOutput {
    /// Creates the directory if it is missing, and locks it. Fails if another batch has the lock.
    pub(super) fn open(root: &Path) -> Result<Self, OutputError> {
        let failed = |source| OutputError::Unusable { path: root.to_owned(), source };
        for directory in [root, &root.join("instances"), &root.join("predictions"), &root.join("work")] {
            make(directory).map_err(failed)?;
        }
        let root = root.canonicalize().map_err(failed)?;
        let lock = File::options().create(true).append(true).open(root.join("lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { root, _lock: lock }),
            Err(fs::TryLockError::WouldBlock) => Err(OutputError::Locked(root)),
            Err(fs::TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    /// Stores the settings of the batch. Fails if an earlier batch in this directory had other settings.
    pub(super) fn agree(&self, manifest: &Manifest) -> Result<(), OutputError> {
        let path = self.root.join("batch.json");
        let failed = |source| OutputError::Unusable { path: path.clone(), source };
        match load::<Manifest>(&path).map_err(failed)? {
            Some(earlier) => match earlier.difference(manifest) {
                Some(what) => Err(OutputError::Other { path: self.root.clone(), what }),
                None => Ok(()),
            },
            None => store(&path, manifest).map_err(failed),
        }
    }

    pub(super) fn choose<'a>(&self, ids: impl Iterator<Item = &'a str>) -> Result<(), OutputError> {
        let path = tasks_file(&self.root);
        let failed = |source| OutputError::Unusable { path: path.clone(), source };
        let earlier = chosen(&self.root).map_err(failed)?;
        let all: BTreeSet<String> = ids.map(str::to_owned).chain(earlier.iter().cloned()).collect();
        if all == earlier { Ok(()) } else { store(&path, &all).map_err(failed) }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn instances(&self) -> PathBuf {
        self.root.join("instances")
    }

    pub(super) fn predictions(&self) -> PathBuf {
        self.root.join("predictions")
    }

    pub(super) fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// Returns the directory of the relays' sockets, which is at the top level, because a socket's path must be short.
    pub(super) fn relays(&self) -> PathBuf {
        self.root.join("relays")
    }

    pub(super) fn instance(&self, id: &str) -> PathBuf {
        self.instances().join(id)
    }

    pub(super) fn state(&self, id: &str) -> io::Result<BatchState> {
        Ok(load(&state_file(&self.instance(id)))?.unwrap_or_else(|| BatchState::queued(id)))
    }

    pub(super) fn keep(&self, state: &BatchState) -> io::Result<()> {
        let directory = self.instance(&state.id);
        make(&directory)?;
        store(&state_file(&directory), state)
    }
}

pub(super) fn state_file(instance: &Path) -> PathBuf {
    instance.join("state.json")
}

fn tasks_file(root: &Path) -> PathBuf {
    root.join("tasks.json")
}

fn chosen(root: &Path) -> io::Result<BTreeSet<String>> {
    match read_bounded(&tasks_file(root), MOST_NAMES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        read => Ok(serde_json::from_slice(&read?)?),
    }
}

pub(super) fn make(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

pub(super) fn states(root: &Path) -> io::Result<Vec<BatchState>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(root.join("instances"))? {
        paths.push(state_file(&entry?.path()));
    }
    paths.sort_unstable();
    paths.iter().filter_map(|path| load(path).transpose()).collect()
}

/// Returns the states of all chosen tasks, including those that were not begun.
pub(super) fn states_of_all(root: &Path) -> io::Result<Vec<BatchState>> {
    let mut states = states(root)?;
    let begun: BTreeSet<_> = states.iter().map(|state| state.id.clone()).collect();
    states.extend(chosen(root)?.difference(&begun).map(|id| BatchState::queued(id)));
    states.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(states)
}
