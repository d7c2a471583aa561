//! What the machine denies before we can: in a container its engine's own filter, and what it masked or left out.
//!
//! A row that is denied unconfined too shows nothing of us. It is said aloud, and there may be such rows only where this process is
//! filtered already.

use nix::libc::{EACCES, ENOENT, ENOSYS, EPERM, EROFS};
use tests::World;

use crate::attack::{Attack, Place, Tried};
use crate::run::unconfined;
use crate::victim::Victim;

/// How an engine denies: by its filter, by a device that is not there, by a read-only mount.
const DENIALS: &[i32] = &[EACCES, ENOENT, ENOSYS, EPERM, EROFS];

/// Whether somebody filters the calls of this process: `Seccomp:` in `proc_pid_status(5)`.
pub(crate) fn is_filtered() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|line| line.split_whitespace().eq(["Seccomp:", "2"]))
}

/// Whether what was tried unconfined was denied by the machine.
pub(crate) fn denies(attack: &Attack, tried: &Tried) -> bool {
    let denied = is_filtered() && tried.is(DENIALS);
    if denied {
        eprintln!("skipped: the container itself denies it: {}", attack.act);
    }
    denied
}

/// Whether what was tried confined is denied in just this way unconfined.
pub(crate) fn denies_alike(attack: &Attack, place: &Place, tried: &Tried) -> bool {
    let unconfined = |world: &World| unconfined(world, &Victim::new(world).aim(&attack.act, world));
    is_filtered() && tried.is(DENIALS) && unconfined(place.world).errno == tried.errno
}
