//! System calls without the C library, for processes that share the memory of a thread that goes on.
//!
//! The C library keeps the error number of a call in the calling thread's storage. A process that was started in a thread's memory
//! (`clone(2)` with `CLONE_VM`) has the same storage: what it called there would change the errors of a thread that does not wait.
//! These leave nothing behind but their effect. Numbers and registers are those of syscall(2), which also says what a call
//! changes: everything else is as it was, in the new process too.

use std::arch::asm;
use std::ffi::{CStr, c_int, c_long, c_void};
use std::io;

use nix::libc::{self, pid_t};

/// What the kernel answers for errors: -4095 to -1.
const MOST_ERRORS: isize = 4095;

/// An argument, as a register holds it.
pub(crate) trait Word {
    /// Integers with a sign keep it.
    fn word(self) -> usize;
}

impl Word for usize {
    fn word(self) -> usize {
        self
    }
}

impl Word for c_int {
    fn word(self) -> usize {
        (self as isize).cast_unsigned()
    }
}

impl Word for u32 {
    fn word(self) -> usize {
        self as usize
    }
}

impl<T> Word for *const T {
    fn word(self) -> usize {
        self.expose_provenance()
    }
}

impl<T> Word for *mut T {
    fn word(self) -> usize {
        self.expose_provenance()
    }
}

impl Word for &CStr {
    fn word(self) -> usize {
        self.as_ptr().word()
    }
}

/// A system call by its number, with up to six [words](Word).
macro_rules! call {
    ($number:expr) => { $crate::raw::invoke($number, []) };
    ($number:expr, $($argument:expr),+) => {
        $crate::raw::invoke($number, [$($crate::raw::Word::word($argument)),+])
    };
}
pub(crate) use call;

/// See [`call!`].
///
/// # Safety
/// As of the call: what it reads and writes is valid for that.
pub(crate) unsafe fn invoke<const N: usize>(number: c_long, arguments: [usize; N]) -> io::Result<usize> {
    const { assert!(N <= 6) };
    let mut words = [0; 6];
    words[..N].copy_from_slice(&arguments);
    // SAFETY: as the caller says.
    answer(unsafe { trap(number, words) })
}

/// Starts a process that shares this one's memory, runs `enter(argument)` on a stack of its own, and ends with what that answers. The
/// flags are those of clone(2).
///
/// # Safety
/// `top` is the aligned upper end of a stack that nobody else uses, and that outlives the process as the argument does. `enter` calls
/// nothing that uses the storage of this thread while the thread does.
pub(crate) unsafe fn start(
    flags: c_int,
    top: *mut c_void,
    enter: extern "C" fn(*mut c_void) -> c_int,
    argument: *mut c_void,
) -> io::Result<pid_t> {
    // SAFETY: as the caller says.
    let child = answer(unsafe { begin(flags | libc::CLONE_VM, top, enter, argument) })?;
    pid_t::try_from(child).map_err(io::Error::other)
}

fn answer(answer: isize) -> io::Result<usize> {
    match answer {
        error if (-MOST_ERRORS..0).contains(&error) => {
            Err(io::Error::from_raw_os_error(c_int::try_from(-error).unwrap_or(libc::EINVAL)))
        }
        answer => Ok(answer.cast_unsigned()),
    }
}

#[cfg(target_arch = "x86_64")]
unsafe fn trap(number: c_long, [first, second, third, fourth, fifth, sixth]: [usize; 6]) -> isize {
    let answer;
    // SAFETY: the instruction changes rax, rcx and r11 and what the call is to change.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => answer,
            in("rdi") first, in("rsi") second, in("rdx") third, in("r10") fourth, in("r8") fifth, in("r9") sixth,
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    answer
}

#[cfg(target_arch = "x86_64")]
unsafe fn begin(
    flags: c_int,
    top: *mut c_void,
    enter: extern "C" fn(*mut c_void) -> c_int,
    argument: *mut c_void,
) -> isize {
    let answer;
    // SAFETY: in this process as above. In the new one rax is 0 and the stack empty: it goes no further than here.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r9",
            "mov edi, eax",
            "mov eax, {exit}",
            "syscall",
            "ud2",
            "2:",
            exit = const libc::SYS_exit_group,
            inlateout("rax") libc::SYS_clone => answer,
            in("rdi") flags.word(), in("rsi") top, in("rdx") 0, in("r10") 0, in("r8") 0,
            in("r9") enter, in("r12") argument,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    answer
}

#[cfg(target_arch = "aarch64")]
unsafe fn trap(number: c_long, [first, second, third, fourth, fifth, sixth]: [usize; 6]) -> isize {
    let answer;
    // SAFETY: the instruction changes x0 and what the call is to change.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") first => answer,
            in("x1") second, in("x2") third, in("x3") fourth, in("x4") fifth, in("x5") sixth,
            options(nostack)
        );
    }
    answer
}

#[cfg(target_arch = "aarch64")]
unsafe fn begin(
    flags: c_int,
    top: *mut c_void,
    enter: extern "C" fn(*mut c_void) -> c_int,
    argument: *mut c_void,
) -> isize {
    let answer;
    // SAFETY: in this process as above. In the new one x0 is 0 and the stack empty: it goes no further than here.
    unsafe {
        asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, x10",
            "blr x9",
            "mov x8, {exit}",
            "svc 0",
            "brk 1",
            "2:",
            exit = const libc::SYS_exit_group,
            in("x8") libc::SYS_clone,
            inlateout("x0") flags.word() => answer,
            in("x1") top, in("x2") 0_usize, in("x3") 0_usize, in("x4") 0_usize,
            in("x9") enter, in("x10") argument,
        );
    }
    answer
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::Pid;

    use super::*;

    #[test]
    fn an_error_is_the_answer_and_not_the_threads() {
        Errno::clear();
        // SAFETY: integers.
        let error = unsafe { call!(libc::SYS_close, -1) }.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
        assert_eq!(Errno::last_raw(), 0);
    }

    #[test]
    fn six_arguments_arrive_in_order_and_signs_are_kept() {
        let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a mapping that nobody uses, in pages of four kilobytes or more, and its end.
        let pages =
            unsafe { call!(libc::SYS_mmap, 0_usize, 4096_usize, libc::PROT_READ, anonymous, -1, 0_usize) };
        // SAFETY: as above.
        unsafe { call!(libc::SYS_munmap, pages.unwrap(), 4096_usize) }.unwrap();
        // SAFETY: signal 0 is none. The group of this process exists, and is meant by 0 alone.
        assert!(unsafe { call!(libc::SYS_kill, 0, 0) }.is_ok());
        // SAFETY: as above.
        let nobody = unsafe { call!(libc::SYS_kill, c_int::MAX, 0) }.unwrap_err();
        assert_eq!(nobody.raw_os_error(), Some(libc::ESRCH));
    }

    #[test]
    fn a_process_starts_in_this_memory_and_ends_with_its_answer() {
        extern "C" fn enter(number: *mut c_void) -> c_int {
            // SAFETY: the one below.
            unsafe { *number.cast::<c_int>() += 1 };
            7
        }
        let (mut number, mut stack) = (1, vec![0_u128; 1024]);
        let top = stack.as_mut_ptr_range().end.cast();
        // SAFETY: both outlive the process, for which this thread waits.
        let child = unsafe { start(libc::CLONE_VFORK | libc::SIGCHLD, top, enter, (&raw mut number).cast()) };
        let child = Pid::from_raw(child.unwrap());
        assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 7)));
        assert_eq!(number, 2);
    }
}
