use std::io;

use nix::sys::wait::{WaitStatus, waitpid};

use crate::mediate::filter::FilteredCalls;
use crate::system::{self, process};

/// True if this process can have a seccomp listener. It cannot if a program above it has one (`EBUSY`), if the kernel
/// has no user notification, or if a filter of its own denies filters (`EINVAL`).
pub fn has_listener() -> bool {
    // Under a filter, the features of the kernel do not settle the question.
    if process::is_filtered() { is_given() } else { system::has_listeners() }
}

/// Tries to get a listener in a child, since a filter stays. True if the child got it.
fn is_given() -> bool {
    let Ok(child) = process::in_child(|| u8::from(attach().is_err())) else { return false };
    loop {
        match waitpid(child, None) {
            Err(nix::errno::Errno::EINTR) => {}
            ended => return ended == Ok(WaitStatus::Exited(child, 0)),
        }
    }
}

fn attach() -> io::Result<()> {
    system::set_no_new_privs()?;
    FilteredCalls::new(true).filter().attach().map(drop)
}
