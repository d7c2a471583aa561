//! The machine's own denials: in a container the engine's filter, and masked or missing files.
//!
//! A row that is also denied unconfined proves nothing about us. Such rows are reported, and permitted only if this
//! process is filtered already or its set-id bits have no effect.

use nix::errno::Errno;
use nix::libc::{self, EACCES, ENOENT, ENOSYS, EPERM, EROFS};
use nix::sys::statvfs::{FsFlags, statvfs};
use sandbox_exec::system::release;
use tests::World;
use tests::world::PLACE;

use crate::attack::{Attack, Place, Tried};
use crate::run::unconfined;
use crate::victim::Victim;

/// Errors of an engine's denials: by its filter, a missing device, or a read-only mount.
const DENIALS: &[i32] = &[EACCES, ENOENT, ENOSYS, EPERM, EROFS];

/// True if a filter applies to this process: `Seccomp:` in `proc_pid_status(5)`.
pub(crate) fn is_filtered() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|line| line.split_whitespace().eq(["Seccomp:", "2"]))
}

/// True if set-id bits have no effect here: under `no_new_privs`, or on a file system that ignores them.
fn ignores_set_ids() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let is_bound = status.lines().any(|line| line.split_whitespace().eq(["NoNewPrivs:", "1"]));
    is_bound || statvfs(PLACE).is_ok_and(|stat| stat.flags().contains(FsFlags::ST_NOSUID))
}

/// True if the broker may duplicate a descriptor of a process below it, tried with invalid arguments.
pub(crate) fn lets_duplicate() -> bool {
    // SAFETY: no pointer is passed.
    let answer = unsafe { libc::syscall(libc::SYS_pidfd_getfd, -1, 0, 0) };
    Errno::result(answer) != Err(Errno::EPERM)
}

/// True if the kernel does not know the call of this act: fchmodat2(2) is of Linux 6.6.
fn is_unknown(attack: &Attack, tried: &Tried) -> bool {
    attack.act.starts_with("fchmodat2 ")
        && tried.is(&[ENOSYS])
        && release().is_some_and(|release| release < (6, 6))
}

/// True if the machine denied the unconfined attempt.
pub(crate) fn denies(attack: &Attack, tried: &Tried) -> bool {
    if is_unknown(attack, tried) {
        return true;
    }
    let runs_set_id = attack.act.starts_with("execute {o}/set-uid ");
    let denied = is_filtered() && tried.is(DENIALS) || runs_set_id && tried.errno == -1 && ignores_set_ids();
    if denied {
        eprintln!("skipped: the container itself denies it: {}", attack.act);
    }
    denied
}

/// True if the unconfined attempt was denied in exactly the same way.
pub(crate) fn denies_alike(attack: &Attack, place: &Place, tried: &Tried) -> bool {
    let unconfined = |world: &World| unconfined(world, &Victim::new(world).aim(&attack.act, world));
    is_unknown(attack, tried)
        || is_filtered() && tried.is(DENIALS) && unconfined(place.world).errno == tried.errno
}
