//! Safe functions around system calls that neither the standard library nor nix provides.

#![expect(
    unsafe_code,
    reason = "the calls below take integers, C strings and structures of this process, which outlive \
              them; descriptors that the kernel has just made get their owner here"
)]

use std::ffi::{CStr, CString, c_int, c_long};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use nix::errno::Errno;
use nix::pty::Winsize;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::Pid;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub fn own(answer: impl TryInto<c_int>) -> io::Result<OwnedFd> {
    let number = answer.try_into().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Registers a descriptor with the async runtime. Must be called within that runtime.
pub fn register(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` gives the same open descriptor for as long as it lives.
    Ok(unsafe { AsyncFd::register_with_interest(descriptor, interest) }?)
}

/// Opens a pidfd for a child. It is valid until the child is reaped (`pidfd_open(2)`).
pub fn open_process(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: all arguments are integers.
    own(unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) })
}

/// Sends a signal to the process that a pidfd refers to (`pidfd_send_signal(2)`).
pub fn signal_process(process: BorrowedFd<'_>, signal: Signal) -> io::Result<()> {
    let info = ptr::null::<libc::siginfo_t>();
    // SAFETY: a null siginfo is allowed.
    done(unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), signal as c_int, info, 0) })
}

/// True if this process ignores a signal, as it does when nohup(1) started it.
pub fn is_ignored(signal: Signal) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the call changes no handler, and writes the structure, for which zeros are valid, too.
    let action = unsafe {
        libc::sigaction(signal as c_int, ptr::null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction == libc::SIG_IGN
}

/// Runs `act` while this process handles a signal in the default way.
pub fn with_default_action<T>(signal: Signal, act: impl FnOnce() -> T) -> nix::Result<T> {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: installs the default action; no handler is involved.
    let handler = unsafe { sigaction(signal, &default) }?;
    let outcome = act();
    // SAFETY: the call restores the handler that was installed before.
    unsafe { sigaction(signal, &handler) }?;
    Ok(outcome)
}

/// Returns the number of unread bytes in a pipe; 0 if that is unknown.
pub fn unread(pipe: &impl AsFd) -> usize {
    let mut bytes: c_int = 0;
    // SAFETY: FIONREAD writes one integer (pipe_ioctl in the kernel's fs/pipe.c).
    let answer = unsafe { libc::ioctl(pipe.as_fd().as_raw_fd(), libc::FIONREAD, &raw mut bytes) };
    Errno::result(answer).ok().and_then(|_| usize::try_from(bytes).ok()).unwrap_or(0)
}

/// Unlocks a pseudo-terminal and opens its slave side, without a path (`TIOCGPTPEER`, Linux 4.13).
pub fn open_peer(terminal: &impl AsFd) -> io::Result<OwnedFd> {
    let number = terminal.as_fd().as_raw_fd();
    let unlocked: c_int = 0;
    // SAFETY: TIOCSPTLCK reads one integer (ioctl_tty(2)).
    done(unsafe { libc::ioctl(number, libc::TIOCSPTLCK, &raw const unlocked) })?;
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: TIOCGPTPEER takes open(2) flags and returns a new descriptor.
    own(unsafe { libc::ioctl(number, libc::TIOCGPTPEER, flags) })
}

/// Sets a terminal's size. The kernel sends SIGWINCH to the foreground processes. Cannot fail for an open terminal.
pub fn set_window_size(terminal: &impl AsRawFd, size: Winsize) {
    // SAFETY: TIOCSWINSZ reads one `winsize`.
    unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
}

/// Makes a new file share the blocks of another one (`FICLONE`, `ioctl_ficlonerange(2)`).
pub fn share_blocks(source: &impl AsFd, target: &impl AsFd) -> io::Result<()> {
    let (source, target) = (source.as_fd().as_raw_fd(), target.as_fd().as_raw_fd());
    // SAFETY: FICLONE takes two descriptors.
    done(unsafe { libc::ioctl(target, libc::FICLONE, source) })
}

/// Returns a terminal's size. `None` if the descriptor is no terminal.
pub fn window_size(terminal: BorrowedFd<'_>) -> Option<Winsize> {
    let mut size = MaybeUninit::<Winsize>::uninit();
    // SAFETY: TIOCGWINSZ writes one `winsize`, or fails.
    let answer = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCGWINSZ, size.as_mut_ptr()) };
    // SAFETY: the ioctl succeeded, so it has written the size.
    (answer == 0).then(|| unsafe { size.assume_init() })
}

/// Returns the session id of the pseudo-terminal with this master side; `None` if it is the terminal of no session.
pub fn session_of(terminal: &impl AsRawFd) -> Option<Pid> {
    let mut session: libc::pid_t = 0;
    // SAFETY: TIOCGSID writes one `pid_t`.
    let answer = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCGSID, &raw mut session) };
    (answer == 0 && session > 0).then(|| Pid::from_raw(session))
}

/// Inserts a key into a terminal's input (`TIOCSTI`).
pub fn type_key(terminal: &impl AsFd, key: &CStr) -> io::Result<()> {
    // SAFETY: TIOCSTI reads one byte, and a C string has one.
    done(unsafe { libc::ioctl(terminal.as_fd().as_raw_fd(), libc::TIOCSTI, key.as_ptr()) })
}

/// Traces a process without stopping it, until this process ends (`PTRACE_SEIZE`).
pub fn seize(pid: c_int) -> io::Result<()> {
    let nothing = ptr::null_mut::<libc::c_void>();
    // SAFETY: integers, and pointers that are not followed.
    done(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, nothing, nothing) })
}

/// Tries to load an empty file as a kernel module. If the system call is permitted, it fails with `ENOEXEC`.
pub fn load_empty_module() -> io::Result<()> {
    // SAFETY: the kernel reads an image of no bytes, and an empty C string.
    done(unsafe { libc::syscall(libc::SYS_init_module, ptr::null::<u8>(), 0, c"".as_ptr()) })
}

/// System calls that a container may deny, each called with arguments that have no effect.
pub mod harmless {
    use super::{Errno, c_long};

    pub fn landlock() -> Result<(), Errno> {
        call(libc::SYS_landlock_create_ruleset, [0, 0, 1])
    }

    /// Passes a seccomp program at an invalid address.
    pub fn seccomp() -> Result<(), Errno> {
        call(libc::SYS_seccomp, [libc::SECCOMP_SET_MODE_FILTER.into(), 0, 0])
    }

    /// Duplicates a descriptor of the process of a pidfd that is invalid.
    pub fn pidfd_getfd() -> Result<(), Errno> {
        call(libc::SYS_pidfd_getfd, [-1, 0, 0])
    }

    /// Reads no bytes from a process that cannot exist.
    pub fn process_vm_readv() -> Result<(), Errno> {
        call(libc::SYS_process_vm_readv, [libc::pid_t::MAX.into(), 0, 0])
    }

    fn call(number: c_long, [first, second, third]: [c_long; 3]) -> Result<(), Errno> {
        // SAFETY: each of the calls above refuses its arguments, or answers without reading or writing memory.
        Errno::result(unsafe { libc::syscall(number, first, second, third, 0, 0, 0) }).map(drop)
    }
}

/// Returns freed memory to the kernel. By itself, glibc does so only at the end of the heap.
pub fn give_back_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim(3) has no preconditions.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Returns the type and bytes of a directory's file handle, which is never reused. Fails on a file system without
/// handles.
pub fn file_handle(directory: &impl AsFd) -> io::Result<Vec<u8>> {
    #[repr(C)]
    struct RawFileHandle {
        bytes: u32,
        kind: c_int,
        handle: [u8; libc::MAX_HANDLE_SZ as usize],
    }
    // AT_HANDLE_FID, Linux 6.5: even file systems without decodable handles have identifying ones (linux/fcntl.h).
    const IDENTIFIES: c_int = 0x200;
    let mut refused = io::Error::from(io::ErrorKind::Unsupported);
    for flags in [libc::AT_EMPTY_PATH, libc::AT_EMPTY_PATH | IDENTIFIES] {
        let room = [0; libc::MAX_HANDLE_SZ as usize];
        let mut found = RawFileHandle { bytes: libc::MAX_HANDLE_SZ as u32, kind: 0, handle: room };
        let mut mount: c_int = 0;
        let (number, name) = (directory.as_fd().as_raw_fd(), c"".as_ptr());
        let (handle, mount) = (&raw mut found, &raw mut mount);
        // SAFETY: the kernel writes at most as many bytes as `bytes` says, and one integer.
        match done(unsafe { libc::syscall(libc::SYS_name_to_handle_at, number, name, handle, mount, flags) })
        {
            Ok(()) => {
                let used = found.handle.get(..found.bytes as usize).unwrap_or_default();
                return Ok([&found.kind.to_ne_bytes(), used].concat());
            }
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// Reads an extended attribute. `None` if the file lacks it or the file system has no attributes (`fgetxattr(2)`).
pub fn attribute(held: impl AsFd, name: &CStr) -> io::Result<Option<Vec<u8>>> {
    let number = held.as_fd().as_raw_fd();
    let mut value = vec![0; 256];
    loop {
        // SAFETY: the kernel writes at most as many bytes as the buffer has.
        let answer =
            unsafe { libc::fgetxattr(number, name.as_ptr(), value.as_mut_ptr().cast(), value.len()) };
        match usize::try_from(answer) {
            Ok(length) => {
                value.truncate(length);
                return Ok(Some(value));
            }
            Err(_) => match Errno::last() {
                Errno::ENODATA | Errno::EOPNOTSUPP => return Ok(None),
                // XATTR_SIZE_MAX of the kernel.
                Errno::ERANGE if value.len() < 1 << 16 => value.resize(1 << 16, 0),
                error => return Err(error.into()),
            },
        }
    }
}

/// Sets an extended attribute, or removes it if `value` is `None`. Follows links (`setxattr(2)`, `removexattr(2)`).
pub fn set_attribute(path: &Path, name: &CStr, value: Option<&[u8]>) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let (path, name) = (path.as_ptr(), name.as_ptr());
    match value {
        // SAFETY: the kernel reads as many bytes as the value has.
        Some(value) => done(unsafe { libc::setxattr(path, name, value.as_ptr().cast(), value.len(), 0) }),
        // SAFETY: two C strings.
        None => match done(unsafe { libc::removexattr(path, name) }) {
            Err(error) if is_absent(&error) => Ok(()),
            removed => removed,
        },
    }
}

fn is_absent(error: &io::Error) -> bool {
    [Some(libc::ENODATA), Some(libc::EOPNOTSUPP)].contains(&error.raw_os_error())
}

fn done(answer: impl Into<c_long>) -> io::Result<()> {
    if answer.into() < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
