//! Attacks on other processes. The first argument is a process id.

use std::fs;
use std::io;
use std::ptr;

use nix::libc::{self, c_int, c_long, pid_t};

use super::files::read_some;
use super::victim::SECRET;
use super::{Act, Arguments, check, descriptor, done};

pub(super) const ACTS: &[(&str, Act)] = &[
    ("kill", |a| {
        // SAFETY: integers. The pid comes from the test: never -1.
        done(unsafe { libc::kill(a.number::<u32>(0)?.cast_signed(), a.number(1)?) })
    }),
    ("killpg", |a| {
        // SAFETY: integers.
        done(unsafe { libc::killpg(a.number::<u32>(0)?.cast_signed(), a.number(1)?) })
    }),
    ("tgkill", |a| call(libc::SYS_tgkill, [a.number(0)?, a.number(0)?, a.number(1)?, 0])),
    ("tkill", |a| call(libc::SYS_tkill, [a.number(0)?, a.number(1)?, 0, 0])),
    ("sigqueue", |a| {
        let value = libc::sigval { sival_ptr: ptr::null_mut() };
        // SAFETY: integers.
        done(unsafe { libc::sigqueue(a.number(0)?, a.number(1)?, value) })
    }),
    ("pidfd-signal", |a| call(libc::SYS_pidfd_send_signal, [pidfd(a)?.into(), a.number(1)?, 0, 0])),
    ("procfd-signal", |a| {
        // A directory of /proc is a pidfd too; pidfd_send_signal(2).
        let directory = fs::File::open(format!("/proc/{}", a.text(0)?))?;
        let number = std::os::fd::AsRawFd::as_raw_fd(&directory);
        call(libc::SYS_pidfd_send_signal, [number.into(), a.number(1)?, 0, 0])
    }),
    ("sigio", sigio),
    ("ptrace-attach", |a| trace(libc::PTRACE_ATTACH, a)),
    ("ptrace-seize", |a| trace(libc::PTRACE_SEIZE, a)),
    ("vm-read", |a| vm(libc::SYS_process_vm_readv, a)),
    ("vm-write", |a| vm(libc::SYS_process_vm_writev, a)),
    ("proc-mem", proc_mem),
    ("proc", |a| read_some(&format!("/proc/{}/{}", a.text(0)?, a.text(1)?), 1 << 20)),
    ("proc-links", |a| {
        let link = fs::read_link(format!("/proc/{}/{}", a.text(0)?, a.text(1)?))?;
        Ok(link.into_os_string().into_encoded_bytes())
    }),
    ("proc-list", |a| {
        let entries = fs::read_dir(format!("/proc/{}/{}", a.text(0)?, a.text(1)?))?;
        Ok(entries.collect::<io::Result<Vec<_>>>()?.len().to_string().into_bytes())
    }),
    ("pidfd-getfd", |a| {
        let taken = call_for_descriptor(libc::SYS_pidfd_getfd, [pidfd(a)?.into(), a.number(1)?, 0, 0])?;
        fs::read(format!("/proc/self/fd/{taken}"))
    }),
    ("prlimit", |a| {
        let (pid, none) = (a.number(0)?, ptr::null_mut());
        let limit = libc::rlimit { rlim_cur: 4, rlim_max: 4 };
        // SAFETY: the limit is valid for reading; nothing is asked for.
        done(unsafe { libc::prlimit(pid, libc::RLIMIT_NOFILE, &raw const limit, none) })
    }),
    ("setpriority", |a| {
        // SAFETY: integers.
        done(unsafe { libc::setpriority(libc::PRIO_PROCESS, a.number(0)?, 19) })
    }),
    ("affinity", |a| {
        // SAFETY: a set of zeros is an empty one; CPU 0 always exists.
        let set = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(0, &mut set);
            set
        };
        // SAFETY: the set is valid for its size.
        done(unsafe { libc::sched_setaffinity(a.number(0)?, size_of_val(&set), &raw const set) })
    }),
    ("scheduler", |a| {
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: the parameters are valid.
        done(unsafe { libc::sched_setscheduler(a.number(0)?, libc::SCHED_BATCH, &raw const parameters) })
    }),
    ("io-priority", |a| {
        // IOPRIO_WHO_PROCESS; the idle class, 3 << 13.
        call(libc::SYS_ioprio_set, [1, a.number(0)?, 3 << 13, 0])
    }),
    ("out-of-memory", |a| {
        fs::write(format!("/proc/{}/oom_score_adj", a.text(0)?), "777").map(|()| Vec::new())
    }),
    ("find-process", |a| {
        let found = fs::read_dir("/proc")?.flatten().any(|entry| entry.file_name() == a.0[0]);
        if found { Ok(Vec::new()) } else { Err(io::Error::from_raw_os_error(libc::ENOENT)) }
    }),
    ("setns", |a| call(libc::SYS_setns, [pidfd(a)?.into(), libc::CLONE_NEWUTS.into(), 0, 0])),
    ("kcmp", |a| call(libc::SYS_kcmp, [std::process::id().into(), a.number(0)?, 1, 0])),
    ("process-madvise", |a| {
        let part = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        let pidfd = pidfd(a)?;
        // SAFETY: one empty range; MADV_COLD changes nothing.
        done(unsafe {
            libc::syscall(libc::SYS_process_madvise, pidfd, &raw const part, 1, libc::MADV_COLD, 0)
        })
    }),
];

fn call(number: c_long, arguments: [i64; 4]) -> io::Result<Vec<u8>> {
    let [one, two, three, four] = arguments;
    // SAFETY: only calls that take integers, or null pointers, come here.
    done(unsafe { libc::syscall(number, one, two, three, four) })
}

fn call_for_descriptor(number: c_long, arguments: [i64; 4]) -> io::Result<c_int> {
    let [one, two, three, four] = arguments;
    // SAFETY: as above.
    descriptor(unsafe { libc::syscall(number, one, two, three, four) })
}

fn pidfd(a: &Arguments) -> io::Result<c_int> {
    call_for_descriptor(libc::SYS_pidfd_open, [a.number(0)?, 0, 0, 0])
}

/// Makes the kernel send SIGIO to a process when a pipe becomes readable. By default the signal ends the process
/// (fcntl(2), `F_SETOWN`).
fn sigio(a: &Arguments) -> io::Result<Vec<u8>> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for two descriptors.
    done(unsafe { libc::pipe(ends.as_mut_ptr()) })?;
    let owner: pid_t = a.number(0)?;
    // SAFETY: integers, on a descriptor of our own.
    unsafe {
        check(libc::fcntl(ends[0], libc::F_SETOWN, owner))?;
        check(libc::fcntl(ends[0], libc::F_SETFL, libc::O_ASYNC | libc::O_NONBLOCK))?;
        done(libc::write(ends[1], c"x".as_ptr().cast(), 1) as i64)
    }
}

fn trace(request: libc::c_uint, a: &Arguments) -> io::Result<Vec<u8>> {
    let nothing = ptr::null_mut::<libc::c_void>();
    let pid: pid_t = a.number(0)?;
    // SAFETY: neither request reads its pointers; what is traced is let go when this process ends.
    unsafe { check(libc::ptrace(request, pid, nothing, nothing))? };
    if request == libc::PTRACE_ATTACH {
        let mut status = 0;
        // SAFETY: the status is a valid place for an integer. The tracee runs on after PTRACE_DETACH.
        unsafe {
            check(libc::waitpid(pid, &raw mut status, libc::__WALL))?;
            check(libc::ptrace(libc::PTRACE_DETACH, pid, nothing, nothing))?;
        }
    }
    Ok(Vec::new())
}

/// Reads the secret from the victim's memory, or overwrites it.
fn vm(number: c_long, a: &Arguments) -> io::Result<Vec<u8>> {
    let mut bytes = if number == libc::SYS_process_vm_writev {
        SECRET.to_uppercase().into_bytes()
    } else {
        vec![0; SECRET.len()]
    };
    let address: usize = a.number(1)?;
    let ours = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let theirs = libc::iovec { iov_base: ptr::without_provenance_mut(address), iov_len: bytes.len() };
    let pid: pid_t = a.number(0)?;
    // SAFETY: our range is valid for its length; theirs is in the other process.
    unsafe { check(libc::syscall(number, pid, &raw const ours, 1, &raw const theirs, 1, 0))? };
    Ok(bytes)
}

fn proc_mem(a: &Arguments) -> io::Result<Vec<u8>> {
    use std::os::unix::fs::FileExt;
    let mut bytes = vec![0; SECRET.len()];
    fs::File::open(format!("/proc/{}/mem", a.text(0)?))?.read_exact_at(&mut bytes, a.number(1)?)?;
    Ok(bytes)
}
