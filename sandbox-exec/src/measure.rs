//! What a start pays for its seccomp program, for `bailiwick bench`: measured in children of its own, since a program stays.

use std::fs::File;
use std::io::{self, Read, Write};
use std::time::Instant;

use ipc::confinement::Tier;
use ipc::rights::Network;
use nix::sys::wait::waitpid;
use nix::unistd::pipe;

use crate::platform::Platform;
use crate::seccomp::{Policy, Program};
use crate::system::{self, process};

const ROUNDS: usize = 200;

/// Writes a line for each tier: its name, and the tenth percentile of attaching its standing program, in nanoseconds.
pub fn run(out: &mut impl Write) -> io::Result<()> {
    for tier in [Tier::Full, Tier::Floor] {
        let program = Program::standing(Policy::of(Network::Off, Platform::probe(), tier));
        let mut took = (0..ROUNDS).map(|_| attach(program)).collect::<io::Result<Vec<_>>>()?;
        took.sort_unstable();
        writeln!(out, "{tier}\t{}", took[ROUNDS / 10])?;
    }
    out.flush()
}

/// Attaches it to a child, which says how long that took.
fn attach(program: Program) -> io::Result<u64> {
    let (told, tell) = pipe()?;
    let mut tell = File::from(tell);
    let child = process::in_child(|| {
        let took = system::set_no_new_privs().ok().and_then(|()| {
            let began = Instant::now();
            program.attach().ok()?;
            u64::try_from(began.elapsed().as_nanos()).ok()
        });
        let said = took.map(|took| tell.write_all(&took.to_ne_bytes()));
        u8::from(!matches!(said, Some(Ok(()))))
    })?;
    drop(tell);
    let mut bytes = [0; 8];
    let read = File::from(told).read_exact(&mut bytes);
    waitpid(child, None)?;
    read.map(|()| u64::from_ne_bytes(bytes))
}
