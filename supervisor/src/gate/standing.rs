//! What an agent may do without asking.

use std::fmt;
use std::path::Path;

use ipc::denial::{Denial, Grade, Layer, Object, Operation};
use ipc::path::WirePath;
use ipc::rights::Rights;

/// What becomes of a call that the standing rights do not cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApprovalMode {
    /// It is denied; the project is writable.
    Auto,
    /// It is denied; the project is read-only.
    Deny,
}

impl ApprovalMode {
    /// The word for it, as on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for ApprovalMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An agent's standing rights, and the places that they are told relative to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The rights that its worker was born with.
    pub rights: Rights,
    /// The project: where relative paths begin.
    pub project: WirePath,
    /// The private temp directory.
    pub temp: Option<WirePath>,
    /// What becomes of a call beyond the rights.
    pub mode: ApprovalMode,
}

impl Standing {
    /// The rights in one line.
    pub fn line(&self) -> String {
        self.rights.line(&self.project, self.temp.as_ref()).to_string()
    }

    /// The denial of changing `path`.
    pub(super) fn unwritable(&self, path: &WirePath, grade: Grade) -> Denial {
        Denial {
            layer: Layer::Landlock,
            operation: Operation::Write,
            object: Object::Path(path.clone()),
            missing_right: format!("write {path}"),
            grant: self.write_grant(path),
            grade,
            errno: None,
        }
    }

    /// What would allow exactly this write: nothing for hidden, protected and kernel-owned trees, nor
    /// for the whole file system.
    pub fn write_grant(&self, path: &WirePath) -> Option<String> {
        let closed = self.rights.hidden.iter().chain(&self.rights.protected);
        if closed.into_iter().any(|root| path.is_within(root)) || is_kernel_tree(path) {
            return None;
        }
        if path.as_path() == Path::new("/") {
            return None;
        }
        if path.is_within(&self.project) && self.mode == ApprovalMode::Deny {
            return Some("--mode auto".to_owned());
        }
        Some(format!("--write {}", quoted(path)))
    }
}

/// The denial of reading `path`. No flag opens what is hidden.
pub(super) fn unreadable(path: &WirePath, grade: Grade) -> Denial {
    Denial {
        layer: Layer::Landlock,
        operation: Operation::Read,
        object: Object::Path(path.clone()),
        missing_right: format!("read {path}"),
        grant: None,
        grade,
        errno: None,
    }
}

/// The denial of the network.
pub(super) fn unreachable(address: &str, grade: Grade) -> Denial {
    Denial {
        layer: Layer::Seccomp,
        operation: Operation::Network,
        object: Object::Address(address.to_owned()),
        missing_right: "network".to_owned(),
        grant: Some("--net on".to_owned()),
        grade,
        errno: None,
    }
}

/// Whether the path is the kernel's own: what is refused there is rarely a matter of rights.
pub(super) fn is_kernel_tree(path: &WirePath) -> bool {
    ["/proc", "/sys", "/dev"].iter().any(|tree| path.is_within(&WirePath::from(*tree)))
}

/// The path as one word of a shell.
fn quoted(path: &WirePath) -> String {
    let text = path.to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+:@%,=".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
