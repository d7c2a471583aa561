//! MCP servers whose commands install packages. The files are installed once, and are read-only from then on.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};

use boundary::install::{
    InstallError, SelfInstaller, TreeChanges, TreeError, compare_trees, digest_tree, install,
};
use ipc::confinement::Identity;
use ipc::refusal::Refusal;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::confine::{ConfineError, confine_installation};
use super::pin::Pin;
use crate::engine::place::ProjectSandbox;
use crate::process::directories::Directories;
use crate::process::scratch::private_in;
use crate::settings::config::McpServer;

/// Installed files of a server, as the user approved them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InstalledServer {
    pub(crate) packages: Vec<String>,
    pub(crate) registry: String,
    /// Version of the first package in the list of packages, as the installer reports it.
    pub(crate) version: String,
    /// Directory with all installed files.
    pub(crate) tree: PathBuf,
    /// Path of the installed program.
    command: String,
    /// SHA-256 of `tree` with all files, in hexadecimal.
    pub(crate) sha256: String,
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
}

impl InstalledServer {
    pub(crate) fn command(&self) -> &str {
        &self.command
    }

    pub(crate) fn in_words(&self) -> String {
        let Self { packages, registry, version, sha256, .. } = self;
        format!("{version} of {} from {registry}, SHA-256 {sha256}", packages.join(" "))
    }

    /// Checks that the installed files are the approved ones.
    pub(crate) fn check(&self) -> Result<(), NotStarted> {
        let found = digest_tree(&self.tree)?;
        if found.sha256 == self.sha256 { Ok(()) } else { Err(NotStarted::Changed) }
    }

    /// Calls [`InstalledServer::check`] without blocking other tasks.
    pub(super) async fn checked(&self) -> Result<(), NotStarted> {
        let this = self.clone();
        tokio::task::spawn_blocking(move || this.check()).await.map_err(|_| NotStarted::Ended)?
    }

    /// Returns the differences between these files and `now`, another installation of the server.
    pub(crate) fn changes(&self, now: &Self) -> Result<TreeChanges, TreeError> {
        compare_trees(&self.tree, &now.tree)
    }
}

/// Returns the reason why installed files prevent the start of an approved server; `None` if they do not.
pub(crate) fn fault(server: &McpServer, pin: &Pin) -> Option<String> {
    let name = &server.name;
    match &pin.installed {
        None => SelfInstaller::of(&server.command, &server.args).map(|_| {
            format!(
                "the server's package is not installed yet; bailiwick mcp add {name} installs the package and asks for your approval"
            )
        }),
        Some(installed) => {
            let why = installed.check().err()?;
            Some(format!("{why}; {}", why.remedy(name)))
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum NotStarted {
    #[error("the server's installed files have changed since you approved them")]
    Changed,
    #[error("the check of the server's installed files did not end")]
    Ended,
    /// A file of the server's command differs from its state at the start of the session.
    #[error("{path}, which the server executes, has changed since the session began", path = .0.display())]
    CodeChanged(PathBuf),
    #[error("the server's installed files cannot be read: {0}")]
    Tree(#[from] TreeError),
    #[error(
        "files that your programs run later, in a directory that the server can write, cannot be read: {0}"
    )]
    RunsLater(#[source] io::Error),
}

impl NotStarted {
    /// Returns a sentence with the command that solves the problem.
    pub(super) fn remedy(&self, name: &str) -> String {
        match self {
            Self::Changed | Self::Ended | Self::Tree(_) => {
                format!("bailiwick mcp update {name} reinstalls the server and asks you")
            }
            Self::CodeChanged(_) => {
                "check the file, then start a new session; keep the program of a server outside of the project".to_owned()
            }
            Self::RunsLater(_) => {
                format!("let the server write another directory, then run bailiwick mcp add {name}")
            }
        }
    }
}

/// Directory that contains the installed files of each server in a directory of its own.
pub(crate) struct Installations(PathBuf);

/// An installation that the user has not approved. Dropping it removes its files.
pub(crate) struct NewInstallation {
    pub(crate) server: InstalledServer,
    pub(crate) refused: Vec<Refusal>,
    place: TempDir,
    _parent: ServersDirectory,
}

/// Directory for the installations of one server, locked against other installers. Removed if it stays empty.
struct ServersDirectory {
    path: PathBuf,
    _lock: File,
}

impl Drop for ServersDirectory {
    fn drop(&mut self) {
        // An error means that there are installed files.
        let _ = fs::remove_dir(&self.path);
    }
}

impl ServersDirectory {
    fn make(path: &Path) -> Result<Self, NotInstalled> {
        let failed = |source| NotInstalled::Make(path.to_owned(), source);
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        let path = fs::canonicalize(path).map_err(failed)?;
        let directory = File::open(&path).map_err(failed)?;
        directory.try_lock().map_err(|_| NotInstalled::Busy)?;
        Ok(Self { path, _lock: directory })
    }
}

impl NewInstallation {
    /// Keeps the files, and removes earlier installations of the server.
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

#[derive(Debug, thiserror::Error)]
pub(crate) enum NotInstalled {
    #[error("cannot make {path}: {source}", path = .0.display(), source = .1)]
    Make(PathBuf, #[source] io::Error),
    #[error("another process of Bailiwick is installing this server")]
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

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.join(name).exists()
    }

    /// Removes all installed files of a server, also those that were never approved.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_dir_all(self.0.join(name))
            .or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
    }

    /// Installs a server's packages into a new directory. The sandbox can write only there and access only the
    /// registry. `programs` are further paths that the installer has to read.
    pub(crate) async fn install(
        &self,
        setup: &ProjectSandbox,
        name: &str,
        what: &SelfInstaller,
        programs: Vec<String>,
    ) -> Result<NewInstallation, NotInstalled> {
        let parent = ServersDirectory::make(&self.0.join(name))?;
        let failed = |place: &Path| {
            let place = place.to_owned();
            move |source| NotInstalled::Make(place, source)
        };
        let place = private_in(&parent.path, "").map_err(failed(&parent.path))?;
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
        Ok(NewInstallation { server, refused: installed.refused, place, _parent: parent })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::os::unix::fs::symlink;

    use super::super::pin::tests::{pin, server};
    use super::*;

    /// Returns a server whose command installs packages, and its installed files, which are in the directory `place`.
    pub(crate) fn installed(place: &Path) -> (McpServer, InstalledServer) {
        let tree = place.join("tree");
        fs::create_dir_all(tree.join("bin")).unwrap();
        fs::write(tree.join("bin/server"), "#!/bin/sh\n").unwrap();
        let digest = digest_tree(&tree).unwrap();
        let installed = InstalledServer {
            packages: vec!["docs-server".to_owned()],
            registry: "npm".to_owned(),
            version: "1.0".to_owned(),
            command: tree.join("bin/server").display().to_string(),
            tree,
            sha256: digest.sha256,
            entries: digest.entries,
            bytes: digest.bytes,
        };
        let server = McpServer {
            command: "npx".to_owned(),
            args: vec!["-y".to_owned(), "docs-server".to_owned(), "--port=3".to_owned()],
            ..server()
        };
        (server, installed)
    }

    #[test]
    fn a_server_is_not_started_from_files_that_have_changed_or_are_not_installed() {
        let place = tempfile::tempdir().unwrap();
        let (server, installed) = installed(place.path());
        let program = place.path().join("tree/bin/server");
        let mut pin = pin(Vec::new());
        let said = |pin: &Pin| fault(&server, pin).unwrap_or_default();
        insta::assert_snapshot!(said(&pin), @"the server's package is not installed yet; bailiwick mcp add docs installs the package and asks for your approval");
        pin.installed = Some(installed);
        assert_eq!(said(&pin), "");
        fs::write(&program, "#!/bin/sh\ntrue\n").unwrap();
        insta::assert_snapshot!(said(&pin), @"the server's installed files have changed since you approved them; bailiwick mcp update docs reinstalls the server and asks you");
        fs::write(&program, "#!/bin/sh\n").unwrap();
        assert_eq!(said(&pin), "");
        symlink("/etc/passwd", place.path().join("tree/more")).unwrap();
        assert!(said(&pin).contains("have changed"));
        fs::remove_dir_all(place.path().join("tree")).unwrap();
        assert!(said(&pin).starts_with("the server's installed files cannot be read: "), "{}", said(&pin));
    }

    #[test]
    fn a_directory_of_installations_is_locked_and_leaves_nothing_empty() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("installed/docs");
        let first = ServersDirectory::make(&path).unwrap();
        assert!(matches!(ServersDirectory::make(&path), Err(NotInstalled::Busy)));
        drop(first);
        assert!(!path.exists());
        let again = ServersDirectory::make(&path).unwrap();
        fs::create_dir(path.join("kept")).unwrap();
        drop(again);
        assert!(path.join("kept").exists());
    }
}
