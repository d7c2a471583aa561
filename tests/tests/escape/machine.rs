//! Finds out what the machine itself denies: in a container, by the engine's filter, and by masked or missing files.
//!
//! An attack that is denied without a sandbox, too, shows nothing about the sandbox. Such attacks are printed. They are
//! accepted only if a filter applies to this process already, or set-id bits have no effect.

use nix::errno::Errno;
use nix::libc::{self, EACCES, ENOENT, ENOSYS, EPERM, EROFS};
use nix::sys::statvfs::{FsFlags, statvfs};
use sandbox_exec::system::release;
use tests::World;
use tests::world::PLACE;

use crate::attack::{Attack, Place, Tried};
use crate::run::unconfined;
use crate::victim::Victim;

/// Errors of denials by a container engine: by its filter, a missing device, or a read-only mount.
const DENIALS: &[i32] = &[EACCES, ENOENT, ENOSYS, EPERM, EROFS];

/// True if a seccomp filter applies to this process (`Seccomp:`, `proc_pid_status(5)`).
pub(crate) fn is_filtered() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|line| line.split_whitespace().eq(["Seccomp:", "2"]))
}

/// True if set-id bits have no effect: with `no_new_privs`, or on a file system that ignores them.
fn ignores_set_ids() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let is_bound = status.lines().any(|line| line.split_whitespace().eq(["NoNewPrivs:", "1"]));
    is_bound || statvfs(PLACE).is_ok_and(|stat| stat.flags().contains(FsFlags::ST_NOSUID))
}

/// True if a broker may duplicate descriptors of its descendants (`pidfd_getfd(2)`). Tried with invalid arguments.
pub(crate) fn lets_duplicate() -> bool {
    // SAFETY: no pointer is passed.
    let answer = unsafe { libc::syscall(libc::SYS_pidfd_getfd, -1, 0, 0) };
    Errno::result(answer) != Err(Errno::EPERM)
}

/// True if the kernel lacks the system call of this attack: Linux before 6.6 has no fchmodat2(2).
fn is_unknown(attack: &Attack, tried: &Tried) -> bool {
    attack.act.starts_with("fchmodat2 ")
        && tried.is(&[ENOSYS])
        && release().is_some_and(|release| release < (6, 6))
}

/// True if the machine itself denied this attack, which was made without a sandbox.
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

/// True if the machine denies the attack even without a sandbox, and with the same error.
pub(crate) fn denies_alike(attack: &Attack, place: &Place, tried: &Tried) -> bool {
    let unconfined = |world: &World| unconfined(world, &Victim::new(world).aim(&attack.act, world));
    is_unknown(attack, tried)
        || is_filtered() && tried.is(DENIALS) && unconfined(place.world).errno == tried.errno
}
