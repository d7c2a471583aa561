//! Recognises system calls in a command's output that the sandbox denies with any access.

use complaint::{DeniedCall, When, denied_call};
use ipc::confinement::Tier;
use ipc::denial::{Denial, Grade, Layer, Object, Operation};
use ipc::missing_right::MissingRight;
use libc::{ENOSYS, EPERM};

use crate::judgement::StandingRights;

/// Returns the denial of the system call that a line names. `None` if the call would fail without a sandbox too.
pub(super) fn refused_call(standing: &StandingRights, line: &str) -> Option<Denial> {
    let call = unpermitted_call(standing, line)?;
    standing.machine.permits(call.capability).then(|| Denial {
        layer: Layer::Seccomp,
        operation: Operation::Call,
        missing_right: MissingRight::Call { name: call.name.to_owned() }.into(),
        object: Object::Syscall(call.name.to_owned()),
        program: None,
        grant: None,
        grade: if call.when == When::Sometimes { Grade::Likely } else { Grade::Proved },
        errno: Some(if call.when == When::AsIfAbsent { ENOSYS } else { EPERM }),
    })
}

/// Returns the system call that a line names, if the sandbox denies this call with any access. `socket` counts only
/// with a broker, since without one the network allows it; `io_uring` calls count only if the kernel has them.
pub(super) fn unpermitted_call(standing: &StandingRights, line: &str) -> Option<DeniedCall> {
    denied_call(line).filter(|call| match call.name {
        "socket" => standing.tier != Tier::FloorUnmediated,
        name => !name.starts_with("io_uring") || standing.machine.has_io_uring(),
    })
}
