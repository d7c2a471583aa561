//! The confinement of a server, from its table alone.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};

use boundary::policy::users_home;
use gate::tools::GuestTool;
use ipc::confinement::{Confinement, Environment, Identity};
use ipc::path::WirePath;
use ipc::rights::{Execution, Reach, Rights};
use protocol::approval::ServerAccess;

use crate::engine::place::ProjectSandbox;
use crate::process::directories::Directories;
use crate::settings::config::{McpServer, at_home};

/// Places of the system's programs, which every server may read.
pub(crate) const SYSTEM: [&str; 15] = [
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/usr",
    "/etc",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
    "/proc",
    "/sys",
    "/dev",
];

/// Directories of a server's home, and the variables that name them.
const HOME: [(&str, &str); 5] = [
    ("HOME", "home"),
    ("XDG_CACHE_HOME", "home/.cache"),
    ("XDG_CONFIG_HOME", "home/.config"),
    ("XDG_DATA_HOME", "home/.local/share"),
    ("XDG_STATE_HOME", "home/.local/state"),
];

/// The reason why a server cannot be confined as its table says.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfineError {
    #[error("cannot use {path:?}: {source}\n  hint: create it, or take it out of the table")]
    Path { path: PathBuf, source: io::Error },
    #[error("{0} is hidden from agents and servers, and no table opens it\n  hint: name another place")]
    Hidden(WirePath),
    #[error("{0} holds {1}, which is hidden\n  hint: let the server write a directory below it")]
    HoldsHidden(WirePath, WirePath),
    #[error(
        "a server cannot write {0}, which belongs to the project: changes there are an agent's to make\n  hint: let the server write \
         another directory"
    )]
    Project(WirePath),
    #[error("cannot make the server's own directory {path}: {source}", path = .0.display(), source = .1)]
    Store(PathBuf, #[source] io::Error),
}

#[derive(Clone, Debug)]
pub(crate) struct Confined {
    pub(crate) confinement: Confinement,
    /// The rights without the places that are the server's own, to be compared with those of an agent.
    pub(crate) shared: Rights,
    /// The rights in a person's words.
    pub(crate) access: ServerAccess,
}

impl Confined {
    /// Returns the confinement of a tool, as the gate judges it.
    pub(crate) fn tool(&self, definition: String) -> GuestTool {
        GuestTool { rights: self.shared.clone(), access: self.access.clone(), definition }
    }
}

/// The parent of the servers' own directories.
pub(crate) fn stores(directories: &Directories) -> PathBuf {
    directories.state.join("guests")
}

/// Computes the confinement of a server, and makes its own directory. Nothing in it comes from the rights of an agent; hidden paths
/// are those of the session.
pub(crate) fn confine(setup: &ProjectSandbox, server: &McpServer) -> Result<Confined, ConfineError> {
    let project = &setup.policy.project;
    let read = resolved(project, &server.read)?;
    let write = resolved(project, &server.write)?;
    let hidden = &setup.policy.hidden;
    for path in read.iter().chain(&write) {
        if hidden.iter().any(|place| path.is_within(place)) {
            return Err(ConfineError::Hidden(path.clone()));
        }
    }
    for path in &write {
        if path.is_within(project) || project.is_within(path) {
            return Err(ConfineError::Project(path.clone()));
        }
        if let Some(place) = hidden.iter().find(|place| place.is_within(path)) {
            return Err(ConfineError::HoldsHidden(path.clone(), place.clone()));
        }
    }
    let store = store(setup, &server.name)?;
    let system = SYSTEM.iter().filter_map(|place| fs::canonicalize(place).ok()).map(WirePath::from);
    let shared = Rights {
        read: system.chain(read.iter().cloned()).chain(write.iter().cloned()).collect(),
        hidden: hidden.clone(),
        write: write.clone(),
        protected: setup.policy.protected.clone(),
        net: server.net.clone(),
        sockets: Vec::new(),
        reach: Reach::default(),
        exec: Execution::Allowed,
        limits: setup.policy.limits,
    }
    .normalised();
    let mut rights = shared.clone();
    rights.read.push(WirePath::from(
        fs::canonicalize(&setup.programs.worker).unwrap_or_else(|_| setup.programs.worker.clone()),
    ));
    rights.write.push(WirePath::from(store.as_path()));
    let confinement = setup.confinement_beside(rights.normalised(), WirePath::from(store.as_path()));
    let reads_project = read.iter().any(|root| project.is_within(root));
    let confinement = Confinement {
        project: if reads_project { project.clone() } else { "/".into() },
        environment: environment(server, &store),
        ..confinement
    };
    let access = ServerAccess { read, write, net: server.net.clone(), variables: server.env.clone() };
    Ok(Confined { confinement, shared, access })
}

/// Returns the variables of a server: those of its own directory, and those that its table names.
fn environment(server: &McpServer, store: &Path) -> Environment {
    let own = |(name, place): &(&str, &str)| {
        ((*name).to_owned(), WirePath::from(store.join(place).as_path()).as_bytes().to_vec())
    };
    Environment { pass: server.env.clone(), set: HOME.iter().map(own).collect(), caches: None }
}

/// Resolves the paths of a table.
fn resolved(project: &WirePath, named: &[String]) -> Result<Vec<WirePath>, ConfineError> {
    let home = users_home();
    let place = |named: &String| {
        let path = project.as_path().join(at_home(named.as_ref(), home.as_deref()));
        let found = fs::canonicalize(&path).map_err(|source| ConfineError::Path { path, source })?;
        Ok(found.into())
    };
    named.iter().map(place).collect()
}

/// Makes the directory that only this server has: its temp, its home and its caches, which last.
fn store(setup: &ProjectSandbox, name: &str) -> Result<PathBuf, ConfineError> {
    let store = stores(&setup.directories).join(name);
    let failed = |source| ConfineError::Store(store.clone(), source);
    for place in ["", "home/.cache", "home/.config", "home/.local/share", "home/.local/state"] {
        DirBuilder::new().recursive(true).mode(0o700).create(store.join(place)).map_err(failed)?;
    }
    if let Some(Identity { uid, gid }) = setup.identity {
        for place in [
            "",
            "home",
            "home/.cache",
            "home/.config",
            "home/.local",
            "home/.local/share",
            "home/.local/state",
        ] {
            chown(store.join(place), Some(uid), Some(gid)).map_err(failed)?;
        }
    }
    fs::canonicalize(&store).map_err(failed)
}
