//! Confinement of an MCP server, derived from the server's table in the settings.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use boundary::policy::{SYSTEM, closed_to, users_home};
use boundary::tripwire::Watch;
use gate::tools::GuestTool;
use ipc::confinement::{Confinement, Environment};
use ipc::path::WirePath;
use ipc::rights::{Execution, Reach, Rights};
use protocol::approval::ServerAccess;

use super::store;
use crate::engine::place::ProjectSandbox;
use crate::process::directories::Directories;
use crate::settings::config::{ConfigOrigin, McpServer, at_home};

#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfineError {
    #[error(
        "cannot use {path:?}: {source}\n  hint: create the path, or remove it from the server's table in config.toml"
    )]
    Path { path: PathBuf, source: io::Error },
    #[error(
        "{0} is hidden from agents and servers, and a server's table cannot allow it\n  hint: name another path"
    )]
    Hidden(WirePath),
    #[error("{0} contains {1}, which is hidden\n  hint: let the server write a directory inside {0} instead")]
    HoldsHidden(WirePath, WirePath),
    #[error(
        "a server cannot write {0}, which belongs to the project: only agents can change the project\n  hint: let the server write \
         another directory"
    )]
    Project(WirePath),
    #[error(
        "the server's own directory is inside {closed}, which servers for this project cannot open (they run as uid {uid})\n  hint: run bailiwick as \
         the project's owner", closed = .closed.display()
    )]
    Closed { uid: u32, closed: PathBuf },
    #[error("cannot make the server's own directory {path}: {source}", path = .0.display(), source = .1)]
    Store(PathBuf, #[source] io::Error),
}

#[derive(Clone, Debug)]
pub(crate) struct Confined {
    pub(crate) confinement: Confinement,
    /// Access without the server's own directories. The gate compares this access with that of an agent.
    pub(crate) shared: Rights,
    pub(crate) access: ServerAccess,
}

impl Confined {
    /// Returns the data by which the gate judges calls of a tool. `always` is true if such calls need no request.
    pub(crate) fn tool(&self, definition: String, always: bool) -> GuestTool {
        GuestTool { rights: self.shared.clone(), access: self.access.clone(), definition, always }
    }
}

/// Returns the directory that contains the servers' own directories.
pub(crate) fn stores(directories: &Directories) -> PathBuf {
    directories.state.join("guests")
}

/// Returns the confinement of a server, and creates the server's own directory. The access comes from the server's
/// table and never from an agent; hidden paths come from the session.
pub(crate) fn confine(
    setup: &ProjectSandbox,
    server: &McpServer,
    installed: Option<&Path>,
) -> Result<Confined, ConfineError> {
    let store = stores(&setup.directories).join(&server.name);
    confine_at(setup, server, installed, store)
}

/// Returns the confinement of a server whose own directory is `own`, which exists.
pub(super) fn confine_in(
    setup: &ProjectSandbox,
    server: &McpServer,
    own: &Path,
) -> Result<Confined, ConfineError> {
    confine_at(setup, server, None, own.to_owned())
}

/// Returns the confinement of an installation: only `store` is writable, and the project, variables and the user's
/// files are left out. `programs` are directories outside the system's that the installer reads.
pub(crate) fn confine_installation(
    setup: &ProjectSandbox,
    name: &str,
    programs: Vec<String>,
    store: PathBuf,
    tree: &Path,
) -> Result<Confinement, ConfineError> {
    let server = McpServer { read: programs, ..McpServer::new(name, ConfigOrigin::Default) };
    let mut confinement = confine_at(setup, &server, None, store)?.confinement;
    confinement.rights.hidden = around(confinement.rights.hidden, tree);
    Ok(confinement)
}

fn confine_at(
    setup: &ProjectSandbox,
    server: &McpServer,
    installed: Option<&Path>,
    store: PathBuf,
) -> Result<Confined, ConfineError> {
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
    let store = store::make(&store, setup.identity).map_err(|source| ConfineError::Store(store, source))?;
    if let Some(identity) = setup.identity
        && let Some(closed) = closed_to(identity, &store)
    {
        return Err(ConfineError::Closed { uid: identity.uid, closed });
    }
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
    if let Some(installed) = installed {
        rights.read.push(WirePath::from(installed));
        rights.hidden = around(rights.hidden, installed);
    }
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

/// Makes existing files read-only if programs outside the sandbox run them later. Only the full tier enforces this.
pub(super) fn keep_what_runs_later(confinement: &mut Confinement) -> io::Result<()> {
    let own = confinement.temp.clone();
    let written = confinement.rights.write.iter().filter(|root| Some(*root) != own.as_ref());
    let mut existing = Vec::new();
    for root in written.map(WirePath::as_path).filter(|root| root.is_dir()) {
        existing.extend(Watch::of(root.to_owned()).existing()?.iter().map(WirePath::from));
    }
    confinement.rights.protected.extend(existing);
    confinement.rights = std::mem::take(&mut confinement.rights).normalised();
    Ok(())
}

/// Replaces each hidden path that contains `own` by the other paths in it, so that `own` itself is not hidden.
fn around(hidden: Vec<WirePath>, own: &Path) -> Vec<WirePath> {
    let (holding, mut kept): (Vec<_>, Vec<_>) =
        hidden.into_iter().partition(|place| own.starts_with(place.as_path()));
    for place in holding {
        let mut above = place.as_path().to_owned();
        for next in own.strip_prefix(&place).into_iter().flat_map(Path::components) {
            let next = above.join(next);
            let entries = fs::read_dir(&above).into_iter().flatten().flatten().map(|entry| entry.path());
            kept.extend(entries.filter(|entry| *entry != next).map(WirePath::from));
            above = next;
        }
    }
    kept
}

/// Returns a server's variables: paths in the server's own directory, and the variables that the server's table names.
fn environment(server: &McpServer, store: &Path) -> Environment {
    let own = |(name, place): &(&str, &str)| {
        ((*name).to_owned(), WirePath::from(store.join(place).as_path()).as_bytes().to_vec())
    };
    Environment { pass: server.env.clone(), set: store::HOME.iter().map(own).collect(), caches: None }
}

fn resolved(project: &WirePath, named: &[String]) -> Result<Vec<WirePath>, ConfineError> {
    let home = users_home();
    let place = |named: &String| {
        let path = project.as_path().join(at_home(named.as_ref(), home.as_deref()));
        let found = fs::canonicalize(&path).map_err(|source| ConfineError::Path { path, source })?;
        Ok(found.into())
    };
    named.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_run_later_are_read_only_to_a_server_where_it_writes() {
        let place = tempfile::tempdir().unwrap();
        let [notes, store] = ["notes", "store"].map(|name| place.path().join(name));
        for name in ["notes/.git/hooks", "store/.git/hooks"] {
            fs::create_dir_all(place.path().join(name)).unwrap();
        }
        fs::write(notes.join(".git/config"), "[core]\n").unwrap();
        fs::write(notes.join(".envrc"), "x\n").unwrap();
        fs::write(notes.join("note.md"), "x\n").unwrap();
        let write = [&notes, &store].map(|place| WirePath::from(place.as_path())).to_vec();
        let rights = Rights { write, ..Rights::default() };
        let temp = Some(WirePath::from(store.as_path()));
        let mut confinement = Confinement { temp, ..Confinement::new(rights, "/".into()) };
        keep_what_runs_later(&mut confinement).unwrap();
        let allows =
            |path: &str| confinement.rights.allows_write(&WirePath::from(place.path().join(path).as_path()));
        for path in ["notes/.git/hooks/pre-commit", "notes/.git/config", "notes/.envrc"] {
            assert!(!allows(path), "{path}");
        }
        assert!(allows("notes/note.md") && allows("store/.git/hooks/x"));
    }

    #[test]
    fn everything_beside_an_own_place_stays_hidden() {
        let place = tempfile::tempdir().unwrap();
        for name in [
            "state/sessions",
            "state/installed/other",
            "state/installed/mine/tree",
            "state/installed/mine/temp",
        ] {
            fs::create_dir_all(place.path().join(name)).unwrap();
        }
        let at = |name: &str| WirePath::from(place.path().join(name).as_path());
        let own = place.path().join("state/installed/mine/tree");
        let mut found = around(vec![at("state"), at("elsewhere")], &own);
        found.sort();
        let expected = ["elsewhere", "state/installed/mine/temp", "state/installed/other", "state/sessions"];
        assert_eq!(found, expected.map(at));
    }
}
