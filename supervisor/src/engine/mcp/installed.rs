//! Servers whose commands install packages: their files are installed once, and are read-only to them.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};

use boundary::install::{
    InstallError, SelfInstaller, TreeChanges, TreeError, compare_trees, digest_tree, install,
};
use ipc::confinement::Identity;
use protocol::event::HostUse;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::confine::{ConfineError, confine_installation};
use super::pin::Pin;
use crate::engine::place::ProjectSandbox;
use crate::process::directories::Directories;
use crate::process::scratch::private_in;
use crate::settings::config::McpServer;

/// The installed files of a server, as a person approved them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InstalledServer {
    /// The packages as they were asked for.
    pub(crate) packages: Vec<String>,
    /// Name of the registry.
    pub(crate) registry: String,
    /// Version of the first package, as its installer says.
    pub(crate) version: String,
    /// The directory with all files.
    pub(crate) tree: PathBuf,
    /// The program in it.
    command: String,
    /// SHA-256 of the whole directory, in hexadecimal.
    pub(crate) sha256: String,
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
}

impl InstalledServer {
    /// The installed program.
    pub(crate) fn command(&self) -> &str {
        &self.command
    }

    /// Version, package and digest.
    pub(crate) fn in_words(&self) -> String {
        let Self { packages, registry, version, sha256, .. } = self;
        format!("{version} of {} from {registry}, SHA-256 {sha256}", packages.join(" "))
    }

    /// Compares the files with those that the person approved. Reads all of them. The error says what is wrong.
    pub(crate) fn check(&self) -> Result<(), InstalledError> {
        let found = digest_tree(&self.tree)?;
        if found.sha256 == self.sha256 { Ok(()) } else { Err(InstalledError::Changed) }
    }

    /// Checks the files beside other work.
    pub(super) async fn checked(&self) -> Result<(), InstalledError> {
        let this = self.clone();
        tokio::task::spawn_blocking(move || this.check()).await.map_err(|_| InstalledError::Ended)?
    }

    /// Counts the files that differ in another installation.
    pub(crate) fn changes(&self, now: &Self) -> Result<TreeChanges, TreeError> {
        compare_trees(&self.tree, &now.tree)
    }
}

/// Returns the reason and remedy if an approved server is not started because of its installed files. Reads all of them.
pub(crate) fn fault(server: &McpServer, pin: &Pin) -> Option<String> {
    let name = &server.name;
    match &pin.installed {
        None => SelfInstaller::of(&server.command, &server.args).map(|_| {
            format!("its package is not installed yet; bailiwick mcp add {name} installs it and asks")
        }),
        Some(installed) => {
            let why = installed.check().err()?;
            Some(format!("{why}; bailiwick mcp update {name} installs it anew and asks"))
        }
    }
}

/// The reason why installed files are not used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InstalledError {
    #[error("its installed files have changed since you approved them")]
    Changed,
    #[error("the check of its installed files did not end")]
    Ended,
    #[error("its installed files cannot be read: {0}")]
    Tree(#[from] TreeError),
}

/// The directories of installed servers.
pub(crate) struct Installations(PathBuf);

/// An installation that nobody has approved yet. Dropping it removes its files.
pub(crate) struct NewInstallation {
    pub(crate) server: InstalledServer,
    pub(crate) hosts: Vec<HostUse>,
    place: TempDir,
    /// Held until the installation is kept or dropped.
    _lock: File,
}

impl NewInstallation {
    /// Keeps the files, in place of earlier ones.
    pub(crate) fn keep(self) -> InstalledServer {
        let kept = self.place.keep();
        for other in kept.parent().into_iter().flat_map(fs::read_dir).flatten().flatten() {
            if other.path() != kept {
                // A directory that stays is removed by the next installation, or with the server.
                let _ = fs::remove_dir_all(other.path());
            }
        }
        self.server
    }
}

/// The reason why a server was not installed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotInstalled {
    #[error("cannot make {path}: {source}", path = .0.display(), source = .1)]
    Make(PathBuf, #[source] io::Error),
    #[error("another bailiwick installs this server at the moment")]
    Busy,
    #[error(transparent)]
    Confine(#[from] ConfineError),
    #[error(transparent)]
    Install(#[from] InstallError),
}

impl Installations {
    pub(crate) fn new(directories: &Directories) -> Self {
        Self(directories.state.join("installed"))
    }

    /// Removes the installed files of a server, and the remains of what was not approved.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        let removed = fs::remove_dir_all(self.0.join(name));
        let _ = fs::remove_file(self.lock(name));
        removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
    }

    fn lock(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.lock"))
    }

    /// Installs a server's packages into a new directory, in a sandbox that writes nothing else and reaches the registry alone.
    /// `programs` are places that the installer has to read beside the system's.
    pub(crate) async fn install(
        &self,
        setup: &ProjectSandbox,
        name: &str,
        what: &SelfInstaller,
        programs: Vec<String>,
    ) -> Result<NewInstallation, NotInstalled> {
        let parent = self.0.join(name);
        let failed = |place: &Path| {
            let place = place.to_owned();
            move |source| NotInstalled::Make(place, source)
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&parent).map_err(failed(&parent))?;
        let parent = fs::canonicalize(&parent).map_err(failed(&parent))?;
        let lock = File::create(self.lock(name)).map_err(failed(&parent))?;
        lock.try_lock().map_err(|_| NotInstalled::Busy)?;
        let place = private_in(&parent, "").map_err(failed(&parent))?;
        let [tree, temp] = ["tree", "temp"].map(|name| place.path().join(name));
        DirBuilder::new().mode(0o700).create(&tree).map_err(failed(&tree))?;
        if let Some(Identity { uid, gid }) = setup.identity {
            for place in [place.path(), &tree] {
                chown(place, Some(uid), Some(gid)).map_err(failed(place))?;
            }
        }
        let confinement = confine_installation(setup, name, programs, temp.clone(), &tree)?;
        let installed =
            install(&setup.spawner, what.confinement(confinement, &tree), what, tree.clone()).await?;
        fs::remove_dir_all(&temp).map_err(failed(&temp))?;
        let server = InstalledServer {
            packages: what.packages.clone(),
            registry: what.registry.name().to_owned(),
            version: installed.version,
            command: installed.command,
            sha256: installed.tree.sha256,
            entries: installed.tree.entries,
            bytes: installed.tree.bytes,
            tree,
        };
        Ok(NewInstallation { server, hosts: installed.hosts, place, _lock: lock })
    }
}
