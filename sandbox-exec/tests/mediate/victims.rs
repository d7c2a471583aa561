//! Processes that tests try to signal, and that report which signals reached them.

use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::libc::{self, c_int, c_long, pid_t};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, setsid};

use crate::harness::{Place, pipe};

/// Maximum time to wait until a process sleeps.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Victim {
    pid: Pid,
}

impl Victim {
    pub(crate) fn new() -> Self {
        Self::prepared(|| {})
    }

    pub(crate) fn of(place: &Place) -> Self {
        Self::prepared(|| place.become_user())
    }

    fn prepared(prepare: impl FnOnce()) -> Self {
        let (mut ready, mut tell) = pipe();
        // SAFETY: the child only makes calls.
        match unsafe { fork() }.unwrap() {
            ForkResult::Parent { child } => {
                ready.read_exact(&mut [0]).unwrap();
                Self { pid: child }
            }
            ForkResult::Child => {
                // SAFETY: integers.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                prepare();
                setsid().unwrap();
                sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None).unwrap();
                tell.write_all(b"x").unwrap();
                loop {
                    nix::unistd::pause();
                }
            }
        }
    }

    pub(crate) fn pid(&self) -> pid_t {
        self.pid.as_raw()
    }

    pub(crate) fn got(&self, signal: c_int) -> bool {
        got(self.pid(), signal)
    }

    /// True if no signal was delivered to the process and it sleeps.
    pub(crate) fn is_untouched(&self) -> bool {
        let state = || status(self.pid(), "State:");
        let until = Instant::now() + PATIENCE;
        while state().starts_with('R') && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        (1..=libc::SIGRTMAX()).all(|signal| !self.got(signal)) && state().starts_with('S')
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _gone = kill(self.pid, Signal::SIGKILL);
        let _gone = waitpid(self.pid, None);
    }
}

pub(crate) fn got(pid: pid_t, signal: c_int) -> bool {
    let pending = |name| u64::from_str_radix(&status(pid, name), 16).unwrap();
    (pending("SigPnd:") | pending("ShdPnd:")) >> (signal - 1) & 1 != 0
}

pub(crate) fn status(pid: pid_t, name: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    text.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned()
}

pub(crate) fn call(number: c_long, arguments: [i64; 4]) -> c_int {
    let [a, b, c, d] = arguments;
    // SAFETY: whoever calls passes what the call wants.
    let answer = unsafe { libc::syscall(number, a, b, c, d) };
    if answer < 0 { std::io::Error::last_os_error().raw_os_error().unwrap() } else { 0 }
}

pub(crate) fn pidfd(pid: pid_t) -> OwnedFd {
    // SAFETY: integers; the descriptor is new.
    unsafe {
        let descriptor = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        assert!(descriptor >= 0, "{}", std::io::Error::last_os_error());
        OwnedFd::from_raw_fd(i32::try_from(descriptor).unwrap())
    }
}

/// Returns a `siginfo_t` as `sigqueue(3)` sends it, with this process's id as the sender and a value.
pub(crate) fn queued(signal: c_int, value: i64) -> [i64; 16] {
    let mut info = [0_i64; 16];
    let pair = |low: c_int, high: c_int| i64::from(low.cast_unsigned()) | i64::from(high) << 32;
    info[0] = pair(signal, 0);
    info[1] = pair(libc::SI_QUEUE, 0);
    info[2] = pair(std::process::id().cast_signed(), 4711);
    info[3] = value;
    info
}

/// Way to signal a process: its name, and a function that signals the process and returns an errno.
pub(crate) type Form = (&'static str, fn(pid_t) -> c_int);

/// All ways to send SIGUSR1 to a process.
pub(crate) const FORMS: &[Form] = &[
    ("kill", |pid| call(libc::SYS_kill, [pid.into(), SIGNAL, 0, 0])),
    ("kill of the group", |pid| call(libc::SYS_kill, [(-pid).into(), SIGNAL, 0, 0])),
    ("tkill", |pid| call(libc::SYS_tkill, [pid.into(), SIGNAL, 0, 0])),
    ("tgkill", |pid| call(libc::SYS_tgkill, [pid.into(), pid.into(), SIGNAL, 0])),
    ("sigqueue", |pid| {
        let info = queued(libc::SIGUSR1, 1);
        call(libc::SYS_rt_sigqueueinfo, [pid.into(), SIGNAL, info.as_ptr() as i64, 0])
    }),
    ("sigqueue to a thread", |pid| {
        let info = queued(libc::SIGUSR1, 1);
        call(libc::SYS_rt_tgsigqueueinfo, [pid.into(), pid.into(), SIGNAL, info.as_ptr() as i64])
    }),
    ("pidfd", |pid| by_descriptor(pid, 0)),
    ("pidfd, to a thread", |pid| by_descriptor(pid, 1)),
    ("pidfd, to the process", |pid| by_descriptor(pid, 2)),
    ("pidfd, to the group", |pid| by_descriptor(pid, 4)),
];

/// All ways to make the kernel send SIGUSR1 to a process later.
pub(crate) const OWNERS: &[Form] = &[
    ("F_SETOWN", |pid| owned(|pipe| call(libc::SYS_fcntl, [pipe, 8, pid.into(), 0]))),
    ("F_SETOWN of the group", |pid| owned(|pipe| call(libc::SYS_fcntl, [pipe, 8, (-pid).into(), 0]))),
    ("F_SETOWN_EX of a thread", |pid| owned_ex(0, pid)),
    ("F_SETOWN_EX", |pid| owned_ex(1, pid)),
    ("F_SETOWN_EX of the group", |pid| owned_ex(2, pid)),
    ("FIOSETOWN", |pid| owned(|pipe| call(libc::SYS_ioctl, [pipe, 0x8901, (&raw const pid) as i64, 0]))),
    ("SIOCSPGRP", |pid| owned(|pipe| call(libc::SYS_ioctl, [pipe, 0x8902, (&raw const pid) as i64, 0]))),
];

const SIGNAL: i64 = libc::SIGUSR1 as i64;

fn by_descriptor(pid: pid_t, flags: i64) -> c_int {
    let target = pidfd(pid);
    call(libc::SYS_pidfd_send_signal, [target.as_raw_fd().into(), SIGNAL, 0, flags])
}

fn owned_ex(kind: c_int, pid: pid_t) -> c_int {
    let owner = [kind, pid];
    owned(|socket| call(libc::SYS_fcntl, [socket, 15, owner.as_ptr() as i64, 0]))
}

/// Makes the kernel send SIGUSR1 for a socket that becomes readable; `own` sets the receiver. Uses a stream socket,
/// which knows all commands that set one.
fn owned(own: impl FnOnce(i64) -> c_int) -> c_int {
    let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let errno = own(ours.as_raw_fd().into());
    assert_eq!(call(libc::SYS_fcntl, [ours.as_raw_fd().into(), 10, SIGNAL, 0]), 0, "F_SETSIG");
    let flags = i64::from(libc::O_ASYNC);
    assert_eq!(call(libc::SYS_fcntl, [ours.as_raw_fd().into(), libc::F_SETFL.into(), flags, 0]), 0);
    theirs.write_all(b"x").unwrap();
    errno
}
