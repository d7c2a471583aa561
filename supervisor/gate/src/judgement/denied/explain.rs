//! Explains errors of Bailiwick's own tools.

use ipc::confinement::Tier;
use ipc::denial::{Denial, Grade, Operation};
use ipc::missing_right::MissingRight;
use ipc::path::WirePath;
use ipc::tool::{FailedAccess, ToolError};
use libc::{EACCES, EBUSY, EPERM, EROFS, EXDEV};

use crate::judgement::{StandingRights, denial};

/// Returns the denial that caused a tool's error: the kernel denied the access, file modes would have permitted it, and
/// the agent's access does not include it. `None` for other causes.
pub fn explain(standing: &StandingRights, error: &ToolError) -> Option<Denial> {
    let access = error.access.as_ref()?;
    // EXDEV: Landlock's error for a rename or link between directories without the right REFER (landlock(7)), and
    // the kernel's error across mounts.
    // In the full sandbox tier, a hidden path is covered by a mount with a mode that permits nothing.
    if !(access.permitted_by_mode || standing.is_masked(&access.path)) || !refuses_by(standing, access.errno)
    {
        return None;
    }
    let by_machine = match access.operation {
        Operation::Write => standing.machine.is_read_only(&access.path),
        Operation::Read | Operation::Execute => standing.machine.closes(&access.path),
        Operation::Network | Operation::Signal | Operation::Share | Operation::Call => false,
    };
    if by_machine {
        return None;
    }
    let denial = missing(standing, access)?;
    Some(Denial { errno: Some(access.errno), ..denial })
}

/// True if the sandbox can cause this error. EBUSY: a path that is mounted onto itself cannot be replaced.
fn refuses_by(standing: &StandingRights, errno: i32) -> bool {
    [EACCES, EPERM, EROFS, EXDEV].contains(&errno) || (standing.tier == Tier::Full && errno == EBUSY)
}

fn missing(standing: &StandingRights, access: &FailedAccess) -> Option<Denial> {
    let path = &access.path;
    let (read, write) = (standing.allows_read(path), standing.allows_write(path));
    match access.operation {
        Operation::Write if !write => {
            let denial = denial::unwritable(standing, path, Grade::Proved, Some(access.errno));
            Some(denial::granted_at(standing, denial, path, nearest(access).unwrap_or(path)))
        }
        Operation::Read if !read => Some(denial::unreadable(standing, path, Grade::Proved)),
        // A directory that may be read may be executed from.
        Operation::Execute if !read => {
            let denial = denial::unreadable(standing, path, Grade::Proved);
            let missing_right = MissingRight::Execute { path: path.clone() }.into();
            Some(Denial { operation: Operation::Execute, missing_right, ..denial })
        }
        Operation::Network if standing.rights.net.is_off() => {
            Some(denial::unreachable(standing, "the network", Grade::Proved))
        }
        _ => None,
    }
}

/// Returns the nearest existing directory that the worker found; `None` if it is not above the missing path.
fn nearest(access: &FailedAccess) -> Option<&WirePath> {
    access.nearest.as_ref().filter(|nearest| access.path.is_within(nearest))
}
