//! The table of attacks, by group. In the text of an attack, names in braces stand for the victim's objects: `{o}` for
//! a directory outside of the project, `{p}` for the project, `{h}` for the home, `{v}` for the process.
//!
//! Other tests have inherited descriptors, read-only commands, signals to all processes, listeners and the host's
//! addresses (the other files here); processes above a command, daemons and survivors (`boundary/protocol/life.rs`,
//! `boundary/storm.rs`); the key (`boundary/secrets.rs`); files that the host executes later (`boundary/tripwire`);
//! x32 and single seccomp rules (tests of sandbox-exec).

mod files;
mod kernel;
mod network;
mod processes;

use crate::attack::Attack;

pub(crate) fn all() -> Vec<Attack> {
    [files::all(), processes::all(), network::all(), kernel::all()].concat()
}
