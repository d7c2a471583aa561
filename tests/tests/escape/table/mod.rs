//! The table of attacks, by group. In an act, names in braces are the victim's: `{o}` the directory outside, `{p}` the
//! project, `{h}` the home, `{v}` the process.
//!
//! Tested elsewhere: inherited descriptors, readers that write, signals to everybody, listeners and the host's own
//! addresses in the other files here; what is above a command, daemons and survivors in `protocol/life.rs` and `storm.rs`; the key in
//! `secrets.rs`; files that the host runs later in `tripwire.rs`; x32, and every rule of seccomp by itself, in sandbox-exec's
//! own tests.

mod files;
mod kernel;
mod network;
mod processes;

use crate::attack::Attack;

pub(crate) fn all() -> Vec<Attack> {
    [files::all(), processes::all(), network::all(), kernel::all()].concat()
}
