use std::io;

use nix::sys::wait::{WaitStatus, waitpid};

use crate::mediate::filter::FilteredCalls;
use crate::system::{self, process};

/// True if this process can have a seccomp listener. It cannot have one if one of its seccomp programs already has a
/// listener (`EBUSY`), if the kernel lacks user notification, or if a seccomp program denies new ones (`EINVAL`).
pub fn has_listener() -> bool {
    // Under a filter, the features of the kernel do not settle the question.
    if process::is_filtered() { is_given() } else { system::has_listeners() }
}

/// Tries in a child to get a listener, since a filter cannot be removed. True if the child got it.
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
