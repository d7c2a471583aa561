//! Recognises denied system calls in a command's output that no access would permit.

use complaint::{DeniedCall, When, denied_call};
use ipc::confinement::Tier;
use ipc::denial::{Denial, Grade, Layer, Object, Operation};
use ipc::missing_right::MissingRight;
use libc::{ENOSYS, EPERM};

use super::StandingRights;

impl StandingRights {
    /// The denial of the system call that a line names. `None` if the user could not make the call without a sandbox
    /// either.
    pub(super) fn refused_call(&self, line: &str) -> Option<Denial> {
        let call = self.denied_call(line)?;
        self.machine.permits(call.capability).then(|| Denial {
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

    /// The system call that a line names, if no access permits it. Sockets count only without a broker, which otherwise
    /// decides, and `io_uring` only if the kernel has it.
    pub(super) fn denied_call(&self, line: &str) -> Option<DeniedCall> {
        denied_call(line).filter(|call| match call.name {
            "socket" => self.tier != Tier::FloorUnmediated,
            name => !name.starts_with("io_uring") || self.machine.has_io_uring(),
        })
    }
}
