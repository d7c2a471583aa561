//! What a worker is for: what `Hello` said, and the paths that follow from it.

use std::path::{Path, PathBuf};

use ipc::confinement::Tier;
use ipc::denial::Operation;
use ipc::message::Hello;
use ipc::path::WirePath;
use ipc::rights::Rights;
use ipc::tool::ToolErrorKind;
use nix::sys::stat::{Mode, umask};

use crate::fault::{Result, failed, refused_io};

/// What a worker knows of its agent.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The project's root: where relative paths begin.
    pub project: PathBuf,
    /// The private temp directory.
    pub temp: Option<PathBuf>,
    /// The rights that the process was born with. They explain; the kernel enforces.
    pub rights: Rights,
    /// The tier that the kernel holds it to them by.
    pub tier: Tier,
    /// A line that every command's shell runs first.
    pub shell_init: Option<String>,
    /// The permission bits of a new file.
    pub new_file_mode: u32,
}

impl Assignment {
    /// Takes over what the supervisor said. Reads the process's umask, so it is called before any thread exists.
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

    /// Refuses a place that a link has led out of the project.
    pub fn stays_inside(&self, named: &Path, place: &Path) -> Result<()> {
        let found = place.canonicalize().map_err(|error| refused_io(Operation::Read, named, &error))?;
        if found.starts_with(&self.project) {
            return Ok(());
        }
        let message = format!("`{}` is a link out of the project, which is not followed.", named.display());
        Err(failed(ToolErrorKind::WrongKind, message))
    }

    /// A path as the model should see it: relative to the project where it lies in it.
    pub fn shown<'a>(&self, path: &'a Path) -> std::path::Display<'a> {
        path.strip_prefix(&self.project).unwrap_or(path).display()
    }
}
