//! Whether the kernel gives this process's children a listener.

use std::io;

use nix::sys::wait::{WaitStatus, waitpid};

use super::filter::FilteredCalls;
use crate::system::{self, process};

/// Whether a filter with a listener can be attached beneath this process. There can be none beneath another (`EBUSY`), nor where
/// the kernel knows no user notification, or takes no filter from whoever is under one (`EINVAL`).
pub fn has_listener() -> bool {
    // Under a filter what the kernel can do says little.
    if process::is_filtered() { is_given() } else { system::has_listeners() }
}

/// Tries it in a child, since a filter stays.
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
