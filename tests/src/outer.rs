//! Imitates the system call filter of a container engine: a seccomp filter that denies system calls to a program.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::errno::Errno;
use nix::libc::{self, sock_filter, sock_fprog};

/// Makes the system calls `calls` of the command and its children fail with the error `errno`.
pub fn refuse(command: &mut Command, calls: &[libc::c_long], errno: Errno) {
    let program = program(calls, errno);
    let attach = move || {
        let length = u16::try_from(program.len()).map_err(io::Error::other)?;
        let filter = sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
        // SAFETY: integers; no pointer is passed.
        Errno::result(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
        // SAFETY: the program outlives the call, which only reads it.
        let attached =
            unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) };
        Errno::result(attached)?;
        Ok(())
    };
    // SAFETY: two system calls on memory that was allocated before the fork.
    unsafe { command.pre_exec(attach) };
}

/// Returns a BPF program that loads the system call's number (`seccomp_data.nr`), compares it with each denied one, and
/// returns the verdict.
fn program(calls: &[libc::c_long], errno: Errno) -> Vec<sock_filter> {
    let instruction =
        |code: u32, jt, k| sock_filter { code: u16::try_from(code).expect("a code"), jt, jf: 0, k };
    let mut program = vec![instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    for (at, call) in calls.iter().enumerate() {
        // Skips the other comparisons and the instruction that allows the call.
        let over = u8::try_from(calls.len() - at).expect("few calls");
        let number = u32::try_from(*call).expect("the number of a call");
        program.push(instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, over, number));
    }
    program.push(instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW));
    let errno = u32::try_from(errno as i32).expect("an error number");
    program.push(instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | errno));
    program
}
