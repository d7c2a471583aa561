//! Owner of a descriptor, which gets a signal of any number at events of the descriptor (`F_SETOWN` of fcntl(2),
//! `FIOSETOWN` of ioctl(2)). The kernel chooses the receiving process only at the event. So a process whose signals are
//! mediated may set only itself or nobody as the owner.

use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::libc::{self, c_int, c_long, pid_t};

use crate::mediate::act::MediatedCall;
use crate::mediate::call::address::integer;
use crate::mediate::call::listener::NotificationAnswer;
use crate::mediate::filter::{F_SETOWN, F_SETOWN_EX, FIOSETOWN, SIOCSPGRP};
use crate::mediate::kernel::status::Status;
use crate::system::process;

// `F_OWNER_TID`, `F_OWNER_PID` (asm-generic/fcntl.h).
const OWNER_THREAD: c_int = 0;
const OWNER_PROCESS: c_int = 1;

pub(in crate::mediate) fn set_owner(
    call: &MediatedCall<'_, '_>,
    syscall: c_long,
) -> Result<NotificationAnswer, Errno> {
    let [number, command, argument, ..] = call.arguments;
    let process = Status::of(call.caller.thread())?.process;
    match integer(command).cast_unsigned() {
        // By value, so that the judged argument is the one that continues; and the caller's number is its
        // own while it waits.
        F_SETOWN if syscall == libc::SYS_fcntl => {
            may_own(integer(argument), process).map(|()| NotificationAnswer::GoesOn)
        }
        F_SETOWN_EX if syscall == libc::SYS_fcntl => set_owner_as_told(call, number, argument, process),
        command @ (FIOSETOWN | SIOCSPGRP) if syscall == libc::SYS_ioctl => {
            let owner = c_int::from_ne_bytes(call.caller.memory().read(argument)?);
            may_own(owner, process)?;
            let descriptor = call.caller.descriptor(integer(number))?;
            call.caller.still_waits()?;
            performed(process::set_owner_by(descriptor.as_fd(), command, owner))
        }
        _ => Err(Errno::ENOSYS),
    }
}

/// Mediates `F_SETOWN_EX`. Its argument is a `struct f_owner_ex`: a kind of owner (thread, process or group) and an id.
fn set_owner_as_told(
    call: &MediatedCall<'_, '_>,
    number: u64,
    start: u64,
    process: pid_t,
) -> Result<NotificationAnswer, Errno> {
    let bytes: [u8; 8] = call.caller.memory().read(start)?;
    let words = bytes.as_chunks::<4>().0;
    let owner: [c_int; 2] =
        std::array::from_fn(|at| words.get(at).map_or(0, |word| c_int::from_ne_bytes(*word)));
    match owner {
        [OWNER_THREAD, 0] => {}
        [OWNER_THREAD, thread] if thread == call.caller.thread() => {}
        [OWNER_PROCESS, owner] => may_own(owner, process)?,
        _ => return Err(Errno::EPERM),
    }
    let descriptor = call.caller.descriptor(integer(number))?;
    call.caller.still_waits()?;
    performed(process::set_owner(descriptor.as_fd(), owner))
}

fn may_own(owner: c_int, process: pid_t) -> Result<(), Errno> {
    if owner == 0 || owner == process { Ok(()) } else { Err(Errno::EPERM) }
}

fn performed(answer: Result<c_int, Errno>) -> Result<NotificationAnswer, Errno> {
    answer.map(|value| NotificationAnswer::Value(value.into()))
}
