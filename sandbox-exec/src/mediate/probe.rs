//! Whether the kernel gives this process's children a listener.

use std::io;

use nix::libc;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

use super::filter::Calls;
use crate::system;

/// Whether a filter with a listener can be attached beneath this process. There can be none beneath another (`EBUSY`), nor where
/// the kernel knows no user notification, or takes no filter from whoever is under one (`EINVAL`).
pub fn has_listener() -> bool {
    if is_filtered() { is_given() } else { system::has_listeners() }
}

/// Whether this process is under a filter already, so that what its kernel can do says little.
fn is_filtered() -> bool {
    // SAFETY: asks for a number. A kernel without seccomp has no such mode either (EINVAL).
    unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) != 0 }
}

/// Tries it in a child, since a filter stays.
fn is_given() -> bool {
    // SAFETY: this process has one thread, so that its image is whole in the child.
    match unsafe { fork() } {
        Ok(ForkResult::Parent { child }) => loop {
            match waitpid(child, None) {
                Err(nix::errno::Errno::EINTR) => {}
                ended => return ended == Ok(WaitStatus::Exited(child, 0)),
            }
        },
        Ok(ForkResult::Child) => {
            let attached = attach().is_ok();
            // SAFETY: ends the child without running what belongs to the parent's image.
            unsafe { libc::_exit(i32::from(!attached)) }
        }
        Err(_) => false,
    }
}

fn attach() -> io::Result<()> {
    system::set_no_new_privs()?;
    Calls::new(true).filter().attach().map(drop)
}
