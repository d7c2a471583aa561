use std::collections::HashMap;

use ipc::refusal::Target;
use nix::errno::Errno;
use nix::libc::{self, c_int, pid_t};
use nix::unistd::geteuid;

use super::lineage::{Lineage, Scope};
use super::pinned_target::{Info, PinnedTarget};
use crate::mediate::kernel::open_descriptors::numbers;
use crate::mediate::kernel::status::Status;
use crate::mediate::refusals::Denied;

/// Maximum number of searches of a group for newly forked processes.
const ROUNDS: usize = 16;

#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) number: c_int,
    pub(super) info: Option<Info>,
}

pub(super) struct Sender<'a> {
    pub(super) lineage: &'a Lineage,
    pub(super) scope: Scope,
    pub(super) caller: &'a Status,
    pub(super) sent: Sent,
}

impl Sender<'_> {
    /// Signals one process or thread; calls `confirm` once the target is pinned. If the target is the caller's own
    /// process, returns it and sends nothing.
    pub(super) fn to_one(
        &self,
        process: pid_t,
        thread: Option<pid_t>,
        confirm: impl Fn() -> Result<(), Errno>,
    ) -> Result<Option<PinnedTarget>, Denied> {
        let aim = self.aim(process, thread)?;
        confirm()?;
        if process == self.caller.process {
            return Ok(Some(aim));
        }
        Ok(aim.fire(self.sent.number, self.sent.info).map(|()| None)?)
    }

    fn aim(&self, process: pid_t, thread: Option<pid_t>) -> Result<PinnedTarget, Denied> {
        let aim = PinnedTarget::take(process, thread)?;
        let target = Status::of(process)?;
        let errno = Errno::EPERM;
        // Root may signal all processes, except those that the sandbox protects.
        if !may_signal(self.caller, &target) && !geteuid().is_root() {
            return Err(errno.into());
        }
        if !self.lineage.contains(&self.scope, process)? {
            return Err(Denied::Rules { target: Target::Process(process.cast_unsigned()), errno });
        }
        if may_signal(self.caller, &target) { Ok(aim) } else { Err(errno.into()) }
    }

    /// Signals a process group, or all processes if `group` is `None`, as far as they are in the scope. Returns the
    /// caller's own process if it is among them, and does not signal it.
    pub(super) fn to_group(&self, group: Option<pid_t>) -> Result<Option<PinnedTarget>, Denied> {
        let mut reached: HashMap<pid_t, PinnedTarget> = HashMap::new();
        let (mut itself, mut denied) = (None, None);
        let forking = matches!(self.sent.number, libc::SIGKILL | libc::SIGSTOP);
        for _ in 0..if forking { ROUNDS } else { 1 } {
            let before = reached.len();
            for process in members(group) {
                if process == self.caller.process || reached.get(&process).is_some_and(PinnedTarget::is_there)
                {
                    continue;
                }
                let sent = self.aim(process, None).and_then(|aim| {
                    in_group(process, group)?;
                    aim.fire(self.sent.number, self.sent.info)?;
                    Ok(aim)
                });
                match sent {
                    Ok(aim) => drop(reached.insert(process, aim)),
                    Err(hindrance) if hindrance.errno() == Errno::EPERM => {
                        denied = denied.or(Some(hindrance));
                    }
                    Err(_) => {}
                }
            }
            if reached.len() == before {
                break;
            }
        }
        if group.is_some_and(|group| group == self.caller.group) {
            itself = Some(self.aim(self.caller.process, None)?);
        }
        // There is always a process outside, and kill(-1) does not report it.
        match (itself, group) {
            (None, Some(_)) if reached.is_empty() => Err(denied.unwrap_or(Errno::ESRCH.into())),
            (itself, _) => Ok(itself),
        }
    }
}

/// True if plain permissions allow the signal. As in kill(2) without capabilities, the sender's real or effective uid
/// must be the target's real or saved one.
fn may_signal(sender: &Status, target: &Status) -> bool {
    let [real, _, saved] = target.uids;
    sender.uids.iter().take(2).any(|uid| [real, saved].contains(uid))
}

fn members(group: Option<pid_t>) -> Vec<pid_t> {
    numbers("/proc").filter(|process| in_group(*process, group).is_ok()).collect()
}

fn in_group(process: pid_t, group: Option<pid_t>) -> Result<(), Errno> {
    match group {
        Some(group) if Status::of(process)?.group != group => Err(Errno::ESRCH),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_signal_their_own() {
        let of = |uids| Status { uids, ..Status::default() };
        assert!(may_signal(&of([1, 2, 3]), &of([1, 9, 9])));
        assert!(may_signal(&of([1, 2, 3]), &of([9, 9, 2])));
        assert!(!may_signal(&of([1, 2, 3]), &of([3, 1, 9])));
        assert!(!may_signal(&of([0, 0, 0]), &of([1, 0, 1])));
    }
}
