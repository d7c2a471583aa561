//! Signals of a reaper and its command, which are blocked from before the reaper is started: no handler of the worker runs in either.

use std::ffi::{c_int, c_void};
use std::io;
use std::ptr;

use nix::libc;

use crate::raw::call;

/// A set of signals as the kernel has it: bit `n - 1` is signal `n`.
pub(super) type Mask = u64;

/// No signal.
pub(super) const NONE: Mask = 0;

/// The size of a [`Mask`], which the kernel wants to know.
const SIZE: usize = size_of::<Mask>();

/// `struct sigaction` as the kernel has it on x86-64 and aarch64: handler, flags, restorer and mask.
const DEFAULT: [u64; 4] = [0; 4];

/// Blocks all signals of this thread that can be blocked; those that were blocked before.
pub(super) fn block() -> io::Result<Mask> {
    let (all, mut before) = (Mask::MAX, NONE);
    // SAFETY: both are sets of the size that it says.
    unsafe { call!(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const all, &raw mut before, SIZE) }?;
    Ok(before)
}

/// Blocks these signals and no others.
pub(super) fn restore(mask: Mask) {
    // SAFETY: as above. It cannot fail.
    let _set = unsafe {
        call!(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const mask, ptr::null::<c_void>(), SIZE)
    };
}

/// Takes back what the worker does with a signal.
pub(super) fn set_default(signal: c_int) -> io::Result<()> {
    // SAFETY: installs the default action; no handler is involved.
    unsafe { call!(libc::SYS_rt_sigaction, signal, DEFAULT.as_ptr(), ptr::null::<c_void>(), SIZE) }.map(drop)
}

/// Waits for one of two signals, which are blocked, so that none is lost; which it was, or 0 if it is to be waited for again.
pub(super) fn wait(one: c_int, other: c_int) -> c_int {
    let awaited: Mask = 1 << (one - 1) | 1 << (other - 1);
    let nothing = ptr::null::<c_void>();
    // SAFETY: the set is of the size that it says; no information is asked for, and no time-out set.
    let signal = unsafe { call!(libc::SYS_rt_sigtimedwait, &raw const awaited, nothing, nothing, SIZE) };
    signal.ok().and_then(|signal| c_int::try_from(signal).ok()).unwrap_or(0)
}
