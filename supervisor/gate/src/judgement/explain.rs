//! Explains failed system calls of Bailiwick's own tools.

use ipc::confinement::Tier;
use ipc::denial::{Denial, Grade, Operation};
use ipc::missing_right::MissingRight;
use ipc::path::WirePath;
use ipc::tool::{FailedAccess, ToolError};
use libc::{EACCES, EBUSY, EPERM, EROFS, EXDEV};

use super::StandingRights;

impl StandingRights {
    /// The denial that caused a tool's error: the kernel denied the access, file modes would have permitted it, and the
    /// agent's access does not include it.
    pub fn explain(&self, error: &ToolError) -> Option<Denial> {
        let access = error.access.as_ref()?;
        // EXDEV: Landlock's error for a rename or link between directories without the right REFER (landlock(7)), and
        // the kernel's error across mounts.
        // In the full sandbox tier, a hidden path is covered by a mount with a mode that permits nothing.
        if !(access.permitted_by_mode || self.is_masked(&access.path)) || !self.refuses_by(access.errno) {
            return None;
        }
        let by_machine = match access.operation {
            Operation::Write => self.machine.is_read_only(&access.path),
            Operation::Read | Operation::Execute => self.machine.closes(&access.path),
            Operation::Network | Operation::Signal | Operation::Share | Operation::Call => false,
        };
        if by_machine {
            return None;
        }
        let denial = self.missing(access)?;
        Some(Denial { errno: Some(access.errno), ..denial })
    }

    /// True if the sandbox causes such an error. EBUSY: a path that is mounted onto itself can be neither replaced nor
    /// removed.
    fn refuses_by(&self, errno: i32) -> bool {
        [EACCES, EPERM, EROFS, EXDEV].contains(&errno) || (self.tier == Tier::Full && errno == EBUSY)
    }

    pub(super) fn is_masked(&self, path: &WirePath) -> bool {
        self.tier == Tier::Full && self.hidden_root(path).is_some()
    }

    fn missing(&self, access: &FailedAccess) -> Option<Denial> {
        let path = &access.path;
        let (read, write) = (self.allows_read(path), self.allows_write(path));
        match access.operation {
            Operation::Write if !write => {
                let denial = self.unwritable(path, Grade::Proved, Some(access.errno));
                Some(self.granted_at(denial, path, nearest(access).unwrap_or(path)))
            }
            Operation::Read if !read => Some(self.unreadable(path, Grade::Proved)),
            // A directory that may be read may be executed from.
            Operation::Execute if !read => {
                let denial = self.unreadable(path, Grade::Proved);
                let missing_right = MissingRight::Execute { path: path.clone() }.into();
                Some(Denial { operation: Operation::Execute, missing_right, ..denial })
            }
            Operation::Network if self.rights.net.is_off() => {
                Some(self.unreachable("the network", Grade::Proved))
            }
            _ => None,
        }
    }
}

/// The nearest existing directory above a missing path, as the worker found it. Ignores paths that are not above it.
fn nearest(access: &FailedAccess) -> Option<&WirePath> {
    access.nearest.as_ref().filter(|nearest| access.path.is_within(nearest))
}
