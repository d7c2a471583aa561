//! Signals to other processes where Landlock has no scope for signals (below ABI 6). A signal to a process in the
//! caller's scope ([`self::lineage`]) succeeds; any other fails with `EPERM`.
//!
//! A signal to the caller's own process is left to the kernel: the target's number is in a register, which no other
//! thread can change. The broker sends all other signals. It holds the target by a descriptor (`pidfd_open(2)`), since
//! pids recur.
//!
//! Visible to a program: the sender of a signal (`si_pid`) is the broker; data of `sigqueue(3)` arrives as written. A
//! process forked while its group is signalled may be missed, except by SIGKILL and SIGSTOP. Before Linux 5.19, a
//! handler that runs while the call waits restarts it (`SA_RESTART`) or fails it with `EINTR`.

mod lineage;
pub(super) mod owner;
mod pinned_target;
mod sender;

use std::fs;

use ipc::refusal::Act;
use nix::errno::Errno;
use nix::libc::{self, c_int, c_long, pid_t};

use super::act::MediatedCall;
use super::call::address::integer;
use super::call::listener::NotificationAnswer;
use super::kernel::status::Status;
use super::refusals::Denied;
use crate::descendants::FENCE;
use crate::system;
use lineage::Lineage;
use pinned_target::{Info, MAX_SIGNAL, PinnedTarget};
use sender::{Sender, Sent};

// Flags of `pidfd_send_signal(2)`: `PIDFD_SIGNAL_THREAD` and the others (linux/pidfd.h, Linux 6.9).
const SIGNAL_THREAD: u64 = 1;
const SIGNAL_PROCESS: u64 = 2;
const SIGNAL_GROUP: u64 = 4;

#[derive(Debug)]
pub(super) struct Signals {
    lineage: Lineage,
    undisturbed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whom {
    /// Process, given by the thread id of any of its threads.
    Process(pid_t),
    Thread(Option<pid_t>, pid_t),
    Group(pid_t),
    Everybody,
}

impl Signals {
    pub(super) fn new() -> Self {
        Self { lineage: Lineage::new(), undisturbed: system::waits_undisturbed() }
    }
}

impl MediatedCall<'_, '_> {
    /// Mediates kill(2), tkill(2), `rt_sigqueueinfo(2)`, `pidfd_send_signal(2)` and similar calls.
    pub(in crate::mediate) fn signal(&mut self, call: c_long) -> Result<NotificationAnswer, Errno> {
        let signals = self.shared.signals.as_ref().ok_or(Errno::ENOSYS)?;
        let caller = Status::of(self.caller.thread())?;
        let [first, second, third, fourth, ..] = self.arguments;
        let (first, second, third) = (integer(first), integer(second), integer(third));
        let (whom, number, info) = match call {
            libc::SYS_kill if (first, second) == (0, FENCE) => {
                self.caller.still_waits()?;
                signals.lineage.fence(caller.process)?;
                return Ok(NotificationAnswer::Value(0));
            }
            libc::SYS_kill => (processes(first, &caller)?, second, 0),
            libc::SYS_tkill => (Whom::Thread(None, positive(first)?), second, 0),
            libc::SYS_tgkill => (Whom::Thread(Some(positive(first)?), positive(second)?), third, 0),
            libc::SYS_rt_sigqueueinfo => (Whom::Process(positive(first)?), second, self.arguments[2]),
            libc::SYS_rt_tgsigqueueinfo => {
                (Whom::Thread(Some(positive(first)?), positive(second)?), third, fourth)
            }
            libc::SYS_pidfd_send_signal => return self.signal_by_descriptor(signals, &caller),
            _ => return Err(Errno::ENOSYS),
        };
        if is_itself(whom, self.caller.thread(), &caller) {
            return Ok(NotificationAnswer::GoesOn);
        }
        let queued = matches!(call, libc::SYS_rt_sigqueueinfo | libc::SYS_rt_tgsigqueueinfo);
        let info = queued.then(|| Info::read(self.caller.memory(), info)).transpose()?;
        let sent = Sent { number, info: info.map(|info| info.of_signal(number)) };
        self.send_signal(signals, &caller, whom, sent, || Ok(()))
    }

    /// Mediates `pidfd_send_signal(2)`. Finds the target in the descriptor's `fdinfo`.
    fn signal_by_descriptor(&self, signals: &Signals, caller: &Status) -> Result<NotificationAnswer, Errno> {
        let [descriptor, number, info, flags, ..] = self.arguments;
        let named = self.named(descriptor)?;
        let whom = match flags & 0xffff_ffff {
            0 if named.thread => Whom::Thread(None, named.number),
            SIGNAL_THREAD => Whom::Thread(None, named.number),
            0 | SIGNAL_PROCESS => Whom::Process(named.number),
            SIGNAL_GROUP => Whom::Group(named.number),
            _ => return Err(Errno::EINVAL),
        };
        let info = (info != 0).then(|| Info::read(self.caller.memory(), info)).transpose()?;
        let sent = Sent { number: integer(number), info };
        if sent.info.is_some_and(|info| info.signal() != sent.number) {
            return Err(Errno::EINVAL);
        }
        let same = || if self.named(descriptor)? == named { Ok(()) } else { Err(Errno::ESRCH) };
        self.send_signal(signals, caller, whom, sent, same)
    }

    /// Sends a signal, also to the caller's own process. First holds the target by a descriptor, then calls `confirm`.
    fn send_signal(
        &self,
        signals: &Signals,
        caller: &Status,
        whom: Whom,
        sent: Sent,
        confirm: impl Fn() -> Result<(), Errno>,
    ) -> Result<NotificationAnswer, Errno> {
        let itself = self.signal_others(signals, caller, whom, sent, confirm);
        let itself = itself.map_err(|hindrance| self.refused(Act::Signal, hindrance))?;
        self.signal_itself(signals, itself, sent)
    }

    /// Signals processes other than the caller's. Returns the caller's own process if it is a target, too.
    fn signal_others(
        &self,
        signals: &Signals,
        caller: &Status,
        whom: Whom,
        sent: Sent,
        confirm: impl Fn() -> Result<(), Errno>,
    ) -> Result<Option<PinnedTarget>, Denied> {
        if !(0..=MAX_SIGNAL).contains(&sent.number) {
            return Err(Errno::EINVAL.into());
        }
        let scope = signals.lineage.scope(caller.process)?;
        self.caller.still_waits()?;
        let sender = Sender { lineage: &signals.lineage, scope, caller, sent };
        match whom {
            Whom::Group(group) => sender.to_group(Some(group)),
            Whom::Everybody => sender.to_group(None),
            Whom::Process(process) => sender.to_one(Status::of(process)?.process, None, confirm),
            Whom::Thread(process, thread) => {
                let owner = Status::of(thread)?.process;
                if process.is_some_and(|process| process != owner) {
                    return Err(Errno::ESRCH.into());
                }
                sender.to_one(owner, Some(thread), confirm)
            }
        }
    }

    /// Signals the caller's own process, if it is a target. First answers the call if the signal could interrupt it.
    fn signal_itself(
        &self,
        signals: &Signals,
        itself: Option<PinnedTarget>,
        sent: Sent,
    ) -> Result<NotificationAnswer, Errno> {
        let Some(aim) = itself else {
            return Ok(NotificationAnswer::Value(0));
        };
        if signals.undisturbed {
            return aim.fire(sent.number, sent.info).map(|()| NotificationAnswer::Value(0));
        }
        self.shared.listener.answer(self.caller.id(), NotificationAnswer::Value(0));
        // The target existed when the call was made.
        let _ended = aim.fire(sent.number, sent.info);
        Ok(NotificationAnswer::Given)
    }

    fn named(&self, descriptor: u64) -> Result<Named, Errno> {
        let path = format!("/proc/{}/fdinfo/{}", self.caller.thread(), integer(descriptor));
        let text = fs::read_to_string(path).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOENT) => Errno::EBADF,
            _ => Errno::EPERM,
        })?;
        Named::parse(&text)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Named {
    number: pid_t,
    thread: bool,
}

impl Named {
    /// Parses `flags:` (octal) and `Pid:` (negative once the process is reaped) of a pidfd's `fdinfo`
    /// (`pidfd_open(2)`).
    fn parse(text: &str) -> Result<Self, Errno> {
        let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let number = value("Pid:").and_then(|number| number.parse().ok()).ok_or(Errno::EBADF)?;
        let flags = value("flags:").and_then(|flags| c_int::from_str_radix(flags, 8).ok()).unwrap_or(0);
        // PIDFD_THREAD.
        let thread = flags & libc::O_EXCL != 0;
        if number > 0 { Ok(Self { number, thread }) } else { Err(Errno::ESRCH) }
    }
}

fn processes(number: c_int, caller: &Status) -> Result<Whom, Errno> {
    match number {
        0 => Ok(Whom::Group(caller.group)),
        -1 => Ok(Whom::Everybody),
        1.. => Ok(Whom::Process(number)),
        _ => number.checked_neg().map(Whom::Group).ok_or(Errno::ESRCH),
    }
}

fn positive(number: c_int) -> Result<pid_t, Errno> {
    if number > 0 { Ok(number) } else { Err(Errno::EINVAL) }
}

/// True if the target is certainly the caller's own process. The id of another thread of the process does not suffice:
/// the thread may end, and its id may pass to another process.
fn is_itself(whom: Whom, thread: pid_t, caller: &Status) -> bool {
    match whom {
        Whom::Process(number) => number == caller.process || number == thread,
        Whom::Thread(Some(process), _) => process == caller.process,
        Whom::Thread(None, number) => number == thread,
        Whom::Group(_) | Whom::Everybody => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pidfd_says_whom_it_means() {
        let named = |text| Named::parse(text).map(|named| (named.number, named.thread));
        assert_eq!(named("pos:\t0\nflags:\t02000002\nmnt_id:\t14\nPid:\t7\nNSpid:\t7\n"), Ok((7, false)));
        assert_eq!(named("flags:\t02000202\nPid:\t7\n"), Ok((7, true)));
        assert_eq!(named("flags:\t02000002\nPid:\t-1\n"), Err(Errno::ESRCH));
        assert_eq!(named("flags:\t02000002\n"), Err(Errno::EBADF));
    }

    #[test]
    fn only_what_cannot_become_another_is_itself() {
        let caller = Status { process: 7, ..Status::default() };
        let itself = |whom| is_itself(whom, 9, &caller);
        for own in [Whom::Process(7), Whom::Process(9), Whom::Thread(Some(7), 8), Whom::Thread(None, 9)] {
            assert!(itself(own), "{own:?}");
        }
        for other in [Whom::Process(8), Whom::Thread(Some(8), 9), Whom::Thread(None, 7), Whom::Group(7)] {
            assert!(!itself(other), "{other:?}");
        }
    }

    #[test]
    fn numbers_mean_what_kill_says() {
        let caller = Status { group: 5, ..Status::default() };
        let meant = [0, -1, 3, -3].map(|number| processes(number, &caller).unwrap());
        assert_eq!(meant, [Whom::Group(5), Whom::Everybody, Whom::Process(3), Whom::Group(3)]);
        assert_eq!(processes(c_int::MIN, &caller), Err(Errno::ESRCH));
    }
}
