//! A system call that a command's output says was refused, and that no right permits.

use complaint::{DeniedCall, When, denied_call};
use ipc::confinement::Tier;
use ipc::denial::{Denial, Grade, Layer, Object, Operation};
use ipc::missing_right::MissingRight;
use libc::{ENOSYS, EPERM};

use super::StandingRights;

impl StandingRights {
    /// The denial of the call that a line names. Nothing has to be tried: the filter answers these calls before the kernel looks at
    /// their arguments. Whoever lacks what the call takes, or is filtered already, would have been refused it anyway.
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

    /// The call that a line names, if it is one that no right is for: without a broker sockets of the network are a matter of it, and
    /// a kernel may have no `io_uring`.
    pub(super) fn denied_call(&self, line: &str) -> Option<DeniedCall> {
        denied_call(line).filter(|call| match call.name {
            "socket" => self.tier != Tier::FloorUnmediated,
            name => !name.starts_with("io_uring") || self.machine.has_io_uring(),
        })
    }
}
