//! A child begins on another processor than its parent goes on.
//!
//! A kernel that packs what runs onto few processors, as those of virtual machines can, has it wait behind its parent while others
//! are idle, and a start takes a tenth longer. So it is moved away once. Where it may run stays what it was.

use nix::libc::{self, c_int, cpu_set_t, pid_t};

/// Has a process of one thread leave the processor of this thread, where it waits behind that. Whether it does is up to the
/// kernel; nothing depends on it but when something is done.
pub(crate) fn apart(process: pid_t) {
    let (Some(all), Some(here)) = (allowed(process), here()) else { return };
    let mut others = all;
    // SAFETY: a number that does not fit into the set changes nothing.
    unsafe { libc::CPU_CLR(here, &mut others) };
    // SAFETY: reads the set.
    let is_alone = unsafe { libc::CPU_COUNT(&others) } == 0;
    if !is_alone && allow(process, &others) == 0 {
        allow(process, &all);
    }
}

/// Where it may run; nothing where there are more processors than a set has.
fn allowed(process: pid_t) -> Option<cpu_set_t> {
    // SAFETY: a set of nothing is all zeroes.
    let mut set: cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes no more than the set.
    let asked = unsafe { libc::sched_getaffinity(process, size_of_val(&set), &raw mut set) };
    (asked == 0).then_some(set)
}

fn allow(process: pid_t, set: &cpu_set_t) -> c_int {
    // SAFETY: the kernel reads the set.
    unsafe { libc::sched_setaffinity(process, size_of_val(set), set) }
}

fn here() -> Option<usize> {
    // SAFETY: asks for a number.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}
