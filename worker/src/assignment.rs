//! Assignment of a worker: the content of `Hello`, and the paths that follow from it.

use std::path::{Path, PathBuf};

use ipc::confinement::Tier;
use ipc::denial::Operation;
use ipc::message::Hello;
use ipc::path::WirePath;
use ipc::rights::Rights;
use ipc::tool::ToolErrorKind;
use nix::sys::stat::{Mode, umask};

use crate::fault::{Result, failed, refused_io};

/// Facts that a worker knows about its agent.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// Root of the project, where relative paths start.
    pub project: PathBuf,
    pub temp: Option<PathBuf>,
    /// Rights of the process since its start. They explain; the kernel enforces.
    pub rights: Rights,
    /// Tier by which the kernel enforces the rights.
    pub tier: Tier,
    /// Line that every command's shell runs first.
    pub shell_init: Option<String>,
    /// Permission bits of a new file.
    pub new_file_mode: u32,
}

impl Assignment {
    /// Takes over the assignment. Reads the process's umask, so it must be called before any thread exists.
    pub fn new(hello: Hello) -> Self {
        let mask = umask(Mode::empty());
        umask(mask);
        Self {
            project: hello.project.into(),
            temp: hello.temp.map(Into::into),
            rights: hello.rights,
            tier: hello.tier,
            shell_init: hello.shell_init,
            new_file_mode: 0o666 & !mask.bits(),
        }
    }

    /// Makes a path absolute. Nothing else: `..` and symbolic links are the kernel's to resolve and to judge.
    pub fn absolute(&self, path: &WirePath) -> PathBuf {
        self.project.join(path.as_path())
    }

    /// Fails for a place that a link has led out of the project.
    pub fn stays_inside(&self, named: &Path, place: &Path) -> Result<()> {
        let found = place.canonicalize().map_err(|error| refused_io(Operation::Read, named, &error))?;
        if found.starts_with(&self.project) {
            return Ok(());
        }
        let message = format!("`{}` is a link out of the project, which is not followed.", named.display());
        Err(failed(ToolErrorKind::WrongKind, message))
    }

    /// Returns a path for the model: relative to the project if it lies in it.
    pub fn shown<'a>(&self, path: &'a Path) -> std::path::Display<'a> {
        path.strip_prefix(&self.project).unwrap_or(path).display()
    }
}
