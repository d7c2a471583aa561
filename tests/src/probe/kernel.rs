//! Attacks on the kernel and the host. If the sandbox permits one, its arguments have no effect.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::ptr;

use nix::libc::{self, c_long};

use super::{Act, check, done};

pub(super) const ACTS: &[(&str, Act)] = &[
    ("call", |a| {
        let argument = |index| if index < a.0.len() { a.number::<i64>(index) } else { Ok(0) };
        let number: c_long = a.number(0)?;
        let (one, two, three) = (argument(1)?, argument(2)?, argument(3)?);
        let (four, five) = (argument(4)?, argument(5)?);
        // SAFETY: the tests pass integers, null pointers and addresses that are bad: the kernel answers EFAULT.
        done(unsafe { libc::syscall(number, one, two, three, four, five, 0) })
    }),
    ("unshare", |a| {
        // SAFETY: flags; the new namespace ends with this process.
        done(unsafe { libc::unshare(a.number(0)?) })
    }),
    ("clone", |a| {
        let flags: i64 = a.number(0)?;
        // SAFETY: like fork(2), in a process with one thread; the child exits at once.
        let child = unsafe { libc::syscall(libc::SYS_clone, flags | i64::from(libc::SIGCHLD), 0, 0, 0, 0) };
        if child == 0 {
            // SAFETY: ends the child.
            unsafe { libc::_exit(0) };
        }
        done(child)
    }),
    ("mount", |a| {
        let (target, kind) = (a.path(0)?, c"tmpfs");
        // SAFETY: C strings; no data.
        let mounted = unsafe { libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, ptr::null()) };
        check(mounted)?;
        // SAFETY: as above; what was just mounted goes again.
        done(unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) })
    }),
    ("bind-mount", |a| {
        let (from, target) = (a.path(0)?, a.path(1)?);
        // SAFETY: C strings; no data.
        let mounted =
            unsafe { libc::mount(from.as_ptr(), target.as_ptr(), ptr::null(), libc::MS_BIND, ptr::null()) };
        check(mounted)?;
        // SAFETY: as above.
        done(unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) })
    }),
    ("chroot", |a| {
        // SAFETY: a C string; the root of this process alone.
        done(unsafe { libc::chroot(a.path(0)?.as_ptr()) })
    }),
    ("terminal-write", |a| {
        let mut terminal = OpenOptions::new().write(true).custom_flags(libc::O_NOCTTY).open(a.os(0)?)?;
        terminal.write_all(b"\x1b]0;approve?\x07").map(|()| Vec::new())
    }),
    ("terminal-input", |a| {
        let terminal = OpenOptions::new().read(true).write(true).open("/dev/ptmx");
        let descriptor = terminal.as_ref().map_or(0, std::os::fd::AsRawFd::as_raw_fd);
        let request: libc::Ioctl = a.number(0)?;
        // SAFETY: TIOCSTI and TIOCLINUX read one byte.
        done(unsafe { libc::ioctl(descriptor, request, c"x".as_ptr()) })
    }),
    ("host-name", |_| {
        let name = nix::unistd::gethostname()?;
        nix::unistd::sethostname(name).map(|()| Vec::new()).map_err(io::Error::from)
    }),
    ("message-queue", |_| {
        let name = c"/bailiwick-probe";
        // SAFETY: a C string; the queue is removed at once.
        unsafe {
            let flags = libc::O_CREAT | libc::O_RDWR;
            check(libc::mq_open(name.as_ptr(), flags, 0o600, ptr::null::<libc::mq_attr>()))?;
            done(libc::mq_unlink(name.as_ptr()))
        }
    }),
    ("shared-memory", |_| {
        // SAFETY: integers; the segment is removed at once.
        unsafe {
            let segment = libc::shmget(libc::IPC_PRIVATE, 4096, 0o600 | libc::IPC_CREAT);
            check(segment)?;
            done(libc::shmctl(segment, libc::IPC_RMID, ptr::null_mut()))
        }
    }),
    ("message-queue-sysv", |_| {
        // SAFETY: integers; the queue is removed at once.
        unsafe {
            let queue = libc::msgget(libc::IPC_PRIVATE, 0o600 | libc::IPC_CREAT);
            check(queue)?;
            done(libc::msgctl(queue, libc::IPC_RMID, ptr::null_mut()))
        }
    }),
    ("semaphore-sysv", |_| {
        // SAFETY: integers; the set is removed at once.
        unsafe {
            let set = libc::semget(libc::IPC_PRIVATE, 1, 0o600 | libc::IPC_CREAT);
            check(set)?;
            done(libc::semctl(set, 0, libc::IPC_RMID))
        }
    }),
];
