//! Facts about an agent that its worker gets in the first message, `Hello`, and the resolution of paths by them.

use std::path::{Path, PathBuf};

use ipc::confinement::Tier;
use ipc::denial::Operation;
use ipc::message::Hello;
use ipc::path::WirePath;
use ipc::rights::Rights;
use ipc::tool::ToolErrorKind;
use nix::sys::stat::{Mode, umask};

use crate::fault::{Result, failed, refused_io};

#[derive(Clone, Debug)]
pub struct Assignment {
    /// Root directory of the project; relative paths start here.
    pub project: PathBuf,
    /// Private directory of the agent for temporary files; `None` if it has none.
    pub temp: Option<PathBuf>,
    /// Copy of the agent's rights, for error messages. The kernel enforces the rights.
    pub rights: Rights,
    /// Kind of sandbox that enforces the rights on this kernel.
    pub tier: Tier,
    pub shell_init: Option<String>,
    pub new_file_mode: u32,
}

impl Assignment {
    /// Records the facts of the first message. Must be called before a second thread exists: the umask can be read only
    /// by changing it for a moment (umask(2)).
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

    /// Makes a path absolute, without resolving `..` or symbolic links.
    pub fn absolute(&self, path: &WirePath) -> PathBuf {
        self.project.join(path.as_path())
    }

    /// Fails if `place`, a path without links, is outside the project. The error message has the path `named`.
    pub fn stays_inside(&self, named: &Path, place: &Path) -> Result<()> {
        let found = place.canonicalize().map_err(|error| refused_io(Operation::Read, named, &error))?;
        if found.starts_with(&self.project) {
            return Ok(());
        }
        let message =
            format!("`{}` is a link that leads out of the project, and is not followed.", named.display());
        Err(failed(ToolErrorKind::WrongKind, message))
    }

    pub fn shown<'a>(&self, path: &'a Path) -> std::path::Display<'a> {
        path.strip_prefix(&self.project).unwrap_or(path).display()
    }
}
